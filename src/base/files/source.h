// SPDX-License-Identifier: Apache-2.0
// Bytes of a file, or of memory, that know their own size. Every read is checked against it, so a
// count or an offset found in a file can never lead outside.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace mrrope {

class Source {
 public:
  // Opens a regular file for reading; never follows a pipe, device or folder.
  // Throws Error (failed) that says why.
  static Source open(const std::filesystem::path& path);

  // Bytes that outlive the source. The name appears in messages where a path would.
  static Source memory(std::span<const std::byte> bytes, std::string name);

  Source(Source&& other) noexcept;
  Source& operator=(Source&&) = delete;
  ~Source();

  std::uint64_t size() const noexcept { return size_; }
  const std::string& name() const noexcept { return name_; }
  // For the system's own copying; -1 where the bytes are in memory.
  int descriptor() const noexcept { return file_; }

  // Throws Error: corrupt if the range leaves the file, failed if the system cannot read it.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  Source() = default;

  int file_ = -1;
  std::span<const std::byte> bytes_;
  std::uint64_t size_ = 0;
  std::string name_;
};

// Questions that nothing can go wrong with: what cannot be looked at is not there.
inline bool path_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}
inline bool folder_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}
inline bool file_exists(const std::filesystem::path& path) {  // a regular one
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}
inline bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

// Throws Error (failed) for a file or folder that is missing or may not be read, and for a folder
// with nothing in it. Reads nothing, so that it may be a pipe.
void check_readable(const std::filesystem::path& path);

// The inputs of this process are the files that Source::open opened. They are known by device and
// inode, so that every name of an input is recognised.
bool is_input(const std::filesystem::path& path);
// For a file that this process has just written: its inode may have been that of an input.
void forget_input(const std::filesystem::path& path);

// Reads a source from front to back through a small buffer. Numbers are little-endian.
// Whatever would run past the end is an Error (corrupt) with the offset.
class Reader {
 public:
  explicit Reader(const Source& source, std::uint64_t position = 0);

  const Source& source() const noexcept { return source_; }
  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t remaining() const noexcept { return source_.size() - position_; }

  // `what` names the thing in the message of a failure.
  std::uint64_t bits(std::size_t bytes, std::string_view what);  // at most 8
  std::uint32_t u32(std::string_view what) { return std::uint32_t(bits(4, what)); }
  std::uint64_t u64(std::string_view what) { return bits(8, what); }
  float f32(std::string_view what) { return std::bit_cast<float>(u32(what)); }
  double f64(std::string_view what) { return std::bit_cast<double>(u64(what)); }
  std::string text(std::uint64_t length, std::string_view what);
  void skip(std::uint64_t length, std::string_view what);

 private:
  void need(std::uint64_t length, std::string_view what) const;
  const std::byte* take(std::size_t length, std::string_view what);

  const Source& source_;
  std::uint64_t position_;
  std::uint64_t buffer_start_ = 0;
  std::size_t buffer_size_ = 0;
  std::vector<std::byte> buffer_;
};

// The text in double quotes, with everything but printable ASCII escaped and long text cut: names
// and values from a file must not reach a terminal as they are.
std::string shown(std::string_view text);

// The text with control characters and broken UTF-8 replaced by '?', for names that are shown.
std::string printable(std::string_view text);

inline constexpr const char* kDamaged = "the file is damaged or was edited by hand: fetch it again";

// Throws Error (corrupt): "FILE: MESSAGE".
[[noreturn]] void corrupt(const std::string& file, const std::string& message,
                          const std::string& hint = kDamaged);
inline void corrupt_if(bool wrong, const std::string& file, const std::string& message,
                       const std::string& hint = kDamaged) {
  if (wrong) corrupt(file, message, hint);
}

// Throws Error (corrupt) unless `name`, found in `file`, is the plain name of a file.
void check_plain_name(std::string_view file, std::string_view name);

// `name` inside `folder`, where the name comes from a file or is derived from one. Throws Error
// (corrupt) unless it is a plain file name, or if it is a link that leads out of `folder` and of
// `also` (may be empty). A path that does not exist is returned as it is.
std::filesystem::path plain_file_in(const std::filesystem::path& folder, std::string_view name,
                                    const std::filesystem::path& also = {});

}  // namespace mrrope
