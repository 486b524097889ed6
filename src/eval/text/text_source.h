// SPDX-License-Identifier: Apache-2.0
// The bytes of a text file, decompressed: plain, gzip, xz or zstd, recognized by the first bytes.
// Archives of several members are read to the end; a truncated or damaged one is an
// error, never a shorter text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace mrrope::eval {

class TextSource {
 public:
  virtual ~TextSource() = default;

  // Up to `size` more bytes; 0 at the end. Throws Error: failed (cannot be read), corrupt.
  virtual std::size_t read(char* to, std::size_t size) = 0;
};

// Throws Error: failed (cannot be opened), corrupt (the name says .gz, .xz or .zst and the content
// does not).
std::unique_ptr<TextSource> open_text(const std::filesystem::path& path);

// The file's name without .gz, .xz or .zst.
std::string inner_name(const std::filesystem::path& path);

}  // namespace mrrope::eval
