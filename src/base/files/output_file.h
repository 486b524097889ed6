// SPDX-License-Identifier: Apache-2.0
// The only way this project creates files, apart from the journal, which appends. A file is written
// under a fresh name, flushed to the disk and then renamed, so that its final name never shows half
// a file. Nothing is written through a symbolic link, and an input is never replaced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/source.h"

namespace mrrope {

// Throws Error (usage) if `path` is an input (source.h), a folder, device or pipe.
void refuse_input(const std::filesystem::path& path);

// Throws what refuse_input() and write_atomically() would throw. The file itself is left alone.
void check_writable(const std::filesystem::path& path);

// Throws Error (failed) if this folder cannot be made, or nothing written into it. Leaves nothing.
void check_folder(const std::filesystem::path& folder);

// Writes a file in full or not at all; an existing file is replaced. Throws Error: failed; usage if
// `path` names a folder, device or pipe.
void write_atomically(const std::filesystem::path& path, std::string_view content);

// Throws Error (failed): "cannot WHAT PATH: REASON", where `code` is a value of errno.
[[noreturn]] void cannot(const char* what, const std::filesystem::path& path, int code);

// open(), again after a signal; new files are readable for all. -1: errno says why.
int retry_open(const std::filesystem::path& path, int flags);

// write(), again until all is written. 0, or the error code.
int write_all(int file, std::string_view bytes);

// Flushes a folder so that a rename in it survives a power cut. Some file systems cannot: ignored.
void flush_folder(const std::filesystem::path& folder);

// What is kept between calls: $XDG_CACHE_HOME/mrrope, or that of ~/.cache. Empty where the system
// has no place for it.
std::filesystem::path cache_folder();

// The folder that holds `path`; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

// A new file, for content of any size: needs a few MiB of memory.
class OutputFile {
 public:
  // Creates the file, which must not exist; a symbolic link of that name is not followed. Throws
  // Error (failed). `shown_as`: the name for error messages; empty: `path`.
  explicit OutputFile(std::filesystem::path path, std::filesystem::path shown_as = {});
  // Removes the file unless finish() succeeded.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Each throws Error (failed) with the reason, such as a full disk.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  void zeros(std::uint64_t count);
  // Bytes of another file, copied by the system where it can.
  void copy(const Source& source, std::uint64_t offset, std::uint64_t size);
  // Bytes written so far.
  std::uint64_t position() const noexcept { return position_ + buffer_.size(); }
  // Flushes the file to the disk and closes it; it stays.
  void finish();

  // Called after each part with the number of bytes since the last call; may throw to give up.
  std::function<void(std::uint64_t)> on_bytes;

 private:
  void drain();
  void advance(std::uint64_t bytes);

  std::filesystem::path path_;
  std::filesystem::path shown_as_;
  int file_ = -1;
  std::uint64_t position_ = 0;  // in the file; the buffer comes after
  std::vector<std::byte> buffer_;
};

// Output that gets its final name only after it has been verified. It is written in a private
// folder next to its final place (NAME.part-XXXXXX, a fresh name, mode 0700), under its final
// names, so that readers can open it there; publish() moves it.
// A process that is killed leaves this folder behind. The next Staging of the same output removes
// it, but only if a marker file inside shows that mrrope made it and no running process holds the
// marker's lock.
class Staging {
 public:
  // out: the file or folder to write, in an existing folder that has `size` bytes free. Throws
  // Error (failed), also if another process is writing the same output.
  Staging(const std::filesystem::path& out, std::uint64_t size);
  // Removes what was not published.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Where to write the file or folder that will be called `name`, next to `out`.
  std::filesystem::path path(const std::filesystem::path& name) const;

  // Gives each its final name, the first one last. Without `replace` existing names are refused.
  // With it each is replaced in one step, and a file never replaces a folder or the reverse. On
  // failure everything that was there before is restored. Throws Error: usage (a name is taken),
  // failed.
  void publish(const std::vector<std::filesystem::path>& names, bool replace);

  // Removes the folder now. For a process that is about to end without destructors.
  void remove() noexcept;

 private:
  enum class How { created, exchanged, overwritten };
  How place(const std::filesystem::path& name, bool replace);
  void take_back(const std::filesystem::path& name, How how) noexcept;

  std::filesystem::path parent_;
  std::filesystem::path folder_;
  int marker_ = -1;
};

// Throws Error (usage) if something has this name already. For the hint: `what`, "file" or
// "folder".
void refuse_existing(const std::filesystem::path& path, const char* what);

}  // namespace mrrope
