// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for digests of plans, models and documents. Not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/files/source.h"

namespace mrrope {

class Sha256 {
 public:
  void update(std::string_view bytes);
  // `size` bytes from `start` on; on_bytes: called with how many are done.
  void update(const Source& source, std::uint64_t start, std::uint64_t size,
              const std::function<void(std::uint64_t)>& on_bytes = {});

  // 64 lower-case hexadecimal digits. Ends the computation: no update after it.
  std::string hex();

 private:
  void add_block();  // of `pending_`, which is full

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::uint64_t total_ = 0;  // bytes seen
};

std::string sha256(std::string_view bytes);

}  // namespace mrrope
