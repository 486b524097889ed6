// SPDX-License-Identifier: Apache-2.0
// A large file written in full or not at all: under a temporary name in the same folder, flushed to
// the disk, then renamed. Needs a few MiB of memory whatever the size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/source.h"

namespace mrrope {

class OutputFile {
 public:
  // Creates PATH.part and locks it. Throws Error (failed) where the folder cannot be written to,
  // has less than `size` bytes free, or another process writes the same file; Error (usage) where
  // the final name exists and `replace` is false.
  OutputFile(std::filesystem::path path, std::uint64_t size, bool replace);
  // Removes what was not published.
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  // Each throws Error (failed) with the reason, a full disk among them.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  void zeros(std::uint64_t count);
  // Bytes of another file, copied by the system where it can.
  void copy(const Source& source, std::uint64_t offset, std::uint64_t size);
  // Bytes written so far.
  std::uint64_t position() const noexcept { return position_ + buffer_.size(); }

  // To the disk, still under the temporary name.
  void flush();
  // Under the final name, for good.
  void publish();

  // Called now and then with the number of bytes since the last call; may throw to give up.
  std::function<void(std::uint64_t)> on_bytes;

 private:
  void drain();
  bool copy_in_kernel(const Source& source, std::uint64_t offset, std::uint64_t size);
  void advance(std::uint64_t bytes);
  [[noreturn]] void fail(const char* what, int code) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  bool replace_ = false;
  int file_ = -1;
  bool flushed_ = false;
  std::uint64_t position_ = 0;  // of what is in the file; the buffer comes after
  std::vector<std::byte> buffer_;
};

}  // namespace mrrope
