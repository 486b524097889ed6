// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mrrope::fuzz::reply(std::as_bytes(std::span(data, size)));
  return 0;
}
