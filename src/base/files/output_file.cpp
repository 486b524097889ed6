// SPDX-License-Identifier: Apache-2.0
#include "base/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr std::uint64_t kStep = std::uint64_t{8} << 20;  // bytes between two calls of on_bytes

int retry_open(const fs::path& path, int flags) {
  int file = -1;
  do {
    file = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (file < 0 && errno == EINTR);
  return file;
}

void refuse_special(const fs::path& path) {
  std::error_code ignored;
  // Behind a link such as /dev/stdout there may be a regular file, and the link would be replaced.
  if (fs::is_symlink(fs::symlink_status(path, ignored))) {
    const std::string target = fs::read_symlink(path, ignored).string();
    if (target.starts_with("/proc/") || target.starts_with("/dev/")) {
      refuse(cat(shown(path.string()), " is a link to ", target),
             "give the name of a file; - means standard output");
    }
  }
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  refuse(cat(shown(path.string()), " is not a regular file"),
         fs::is_directory(status) ? "give the name of a file in that folder"
                                  : "give the name of a file; - means standard output");
}

// A name next to `path` that cannot be guessed.
fs::path fresh_name(const fs::path& path) {
  constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuv";
  std::random_device random;
  fs::path name = path;
  name += ".part-";
  for (int i = 0; i < 10; ++i) name += kDigits[random() % 32];
  return name;
}

}  // namespace

void cannot(const char* what, const fs::path& path, int code) {
  const bool space = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw Error(ErrorKind::failed,
              cat("cannot ", what, " ", shown(path.string()), ": ", std::strerror(code)),
              space ? "free some space, or choose an output path on another disk; no partial file "
                      "was left behind"
                    : "choose an output path that can be written to");
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void flush_folder(const fs::path& folder) {
  const int file = retry_open(folder.empty() ? fs::path(".") : folder, O_RDONLY | O_DIRECTORY);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

void refuse_input(const fs::path& path) {
  refuse_special(path);
  if (!is_input(path)) return;
  refuse(cat(shown(path.string()), " is an input of this command"),
         "give the output another name: inputs are never changed");
}

void check_writable(const fs::path& path) {
  refuse_input(path);
  OutputFile(fresh_name(path), path);  // removed at once
}

void check_folder(const fs::path& folder) {
  std::error_code error;
  fs::path there = folder;
  while (!there.empty() && !fs::exists(there, error)) there = there.parent_path();
  if (there.empty()) there = ".";
  if (!fs::is_directory(there, error)) {
    throw Error(ErrorKind::failed,
                cat("cannot make the folder ", shown(folder.string()), ": ", shown(there.string()),
                    " is not a folder"),
                "give a folder that can be written to");
  }
  OutputFile(fresh_name(there / "mrrope"), folder);  // removed at once
}

void write_atomically(const fs::path& path, std::string_view content) {
  refuse_special(path);
  const fs::path temporary = fresh_name(path);
  OutputFile file(temporary, path);
  file.write(content);
  file.finish();
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    cannot("write", path, code);
  }
  forget_input(path);
  flush_folder(folder_of(path));
}

void OutputFile::fail(const char* what, int code) const { cannot(what, shown_as_, code); }

OutputFile::OutputFile(fs::path path, fs::path shown_as)
    : path_(std::move(path)), shown_as_(shown_as.empty() ? path_ : std::move(shown_as)) {
  file_ = retry_open(path_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (file_ < 0) fail("create", errno);
  buffer_.reserve(kBuffer);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : on_bytes(std::move(other.on_bytes)),
      path_(std::move(other.path_)),
      shown_as_(std::move(other.shown_as_)),
      file_(std::exchange(other.file_, -1)),
      position_(other.position_),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
}

void OutputFile::advance(std::uint64_t bytes) {
  position_ += bytes;
  if (on_bytes) on_bytes(bytes);
}

void OutputFile::drain() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written =
        ::pwrite(file_, buffer_.data() + done, buffer_.size() - done, off_t(position_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    done += std::size_t(written);
  }
  buffer_.clear();
  if (done > 0) advance(done);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kBuffer - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + std::ptrdiff_t(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kBuffer) drain();
  }
}

void OutputFile::zeros(std::uint64_t count) {
  static constexpr std::byte zero[4096] = {};
  for (; count > 0;) {
    const auto part = std::size_t(std::min<std::uint64_t>(count, sizeof zero));
    write(std::span(zero, part));
    count -= part;
  }
}

bool OutputFile::copy_in_kernel([[maybe_unused]] const Source& source,
                                [[maybe_unused]] std::uint64_t offset,
                                [[maybe_unused]] std::uint64_t size) {
#ifdef __linux__
  if (source.descriptor() < 0) return false;
  auto from = off_t(offset);
  auto to = off_t(position_);
  const ssize_t copied =
      ::copy_file_range(source.descriptor(), &from, file_, &to, std::size_t(size), 0);
  if (copied > 0) {
    advance(std::uint64_t(copied));
    return true;
  }
  if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) fail("write", errno);
#endif
  return false;  // for example between two file systems: read() reports anything else
}

void OutputFile::copy(const Source& source, std::uint64_t offset, std::uint64_t size) {
  if (size > 4 * kBuffer) drain();
  std::vector<std::byte> bytes;
  bool in_kernel = size > 4 * kBuffer;
  while (size > 0) {
    const std::uint64_t step = std::min(size, kStep);
    const std::uint64_t before = position();
    in_kernel = in_kernel && copy_in_kernel(source, offset, step);
    if (!in_kernel) {
      bytes.resize(std::size_t(std::min<std::uint64_t>(step, kBuffer)));
      source.read(offset, bytes);
      write(bytes);
    }
    offset += position() - before;
    size -= position() - before;
  }
}

void OutputFile::finish() {
  drain();
  if (::fsync(file_) != 0) fail("flush", errno);
  const int file = std::exchange(file_, -1);
  if (::close(file) == 0) return;
  const int code = errno;
  ::unlink(path_.c_str());
  fail("close", code);
}

}  // namespace mrrope
