// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr std::uint64_t kStep = std::uint64_t{8} << 20;  // bytes between two calls of on_bytes

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

int retry_open(const fs::path& path, int flags) {
  int file = -1;
  do {
    file = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (file < 0 && errno == EINTR);
  return file;
}

bool is_same_file(int file, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void refuse_existing(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return;
  throw Error(ErrorKind::usage, cat(shown(path.string()), " exists already"),
              "give another name with -o, or --force to replace it");
}

}  // namespace

void OutputFile::fail(const char* what, int code) const {
  const bool space = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw Error(ErrorKind::failed,
              cat("cannot ", what, " ", shown(path_.string()), ": ", std::strerror(code)),
              space ? "free some space, or give -o a place on another disk; nothing was left behind"
                    : "give -o a place that can be written to");
}

OutputFile::OutputFile(fs::path path, std::uint64_t size, bool replace)
    : path_(std::move(path)), temporary_(path_), replace_(replace) {
  temporary_ += ".part";
  std::error_code error;
  if (!replace_) refuse_existing(path_);
  if (fs::is_directory(path_, error)) fail("write", EISDIR);
  const fs::space_info space = fs::space(folder_of(path_), error);
  if (!error && space.available < size) {
    throw Error(ErrorKind::failed,
                cat(shown(path_.string()), " needs ", bytes_text(double(size)), ", and ",
                    bytes_text(double(space.available)), " are free there"),
                "free some space, or give -o a place on another disk");
  }
  // A name left by a process that was killed is taken over. The lock may belong to a file that was
  // renamed meanwhile; then the name is opened again.
  for (;;) {
    file_ = retry_open(temporary_, O_RDWR | O_CREAT);
    if (file_ < 0) fail("create", errno);
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const int code = errno;
      ::close(std::exchange(file_, -1));
      if (code == EWOULDBLOCK) {
        throw Error(ErrorKind::failed, cat("another process is writing ", shown(path_.string())),
                    "wait for it to end, or give another name with -o");
      }
      fail("lock", code);
    }
    if (is_same_file(file_, temporary_)) break;
    ::close(std::exchange(file_, -1));
  }
  if (::ftruncate(file_, 0) != 0) fail("write", errno);
  buffer_.reserve(kBuffer);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : on_bytes(std::move(other.on_bytes)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      replace_(other.replace_),
      file_(std::exchange(other.file_, -1)),
      flushed_(other.flushed_),
      position_(other.position_),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(file_);
}

void OutputFile::advance(std::uint64_t bytes) {
  position_ += bytes;
  if (on_bytes) on_bytes(bytes);
}

void OutputFile::drain() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::pwrite(file_, buffer_.data() + done, buffer_.size() - done,
                                     static_cast<off_t>(position_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
  if (done > 0) advance(done);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kBuffer - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kBuffer) drain();
  }
}

void OutputFile::zeros(std::uint64_t count) {
  static constexpr std::byte zero[4096] = {};
  for (; count > 0;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, sizeof zero));
    write(std::span(zero, part));
    count -= part;
  }
}

bool OutputFile::copy_in_kernel([[maybe_unused]] const Source& source,
                                [[maybe_unused]] std::uint64_t offset,
                                [[maybe_unused]] std::uint64_t size) {
#ifdef __linux__
  if (source.descriptor() < 0) return false;
  auto from = static_cast<off_t>(offset);
  auto to = static_cast<off_t>(position_);
  const ssize_t copied =
      ::copy_file_range(source.descriptor(), &from, file_, &to, static_cast<std::size_t>(size), 0);
  if (copied > 0) {
    advance(static_cast<std::uint64_t>(copied));
    return true;
  }
  if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) fail("write", errno);
#endif
  return false;  // not between these two file systems, say: read() finds out the rest
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
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(step, kBuffer)));
      source.read(offset, bytes);
      write(bytes);
    }
    offset += position() - before;
    size -= position() - before;
  }
}

void OutputFile::flush() {
  drain();
  if (::fsync(file_) != 0) fail("flush", errno);
  flushed_ = true;
}

void OutputFile::publish() {
  if (!flushed_) flush();
  if (!replace_) refuse_existing(path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename to", errno);
  ::close(std::exchange(file_, -1));
  // The folder is flushed so that the new name survives a power cut. Some file systems refuse.
  const int folder = retry_open(folder_of(path_), O_RDONLY | O_DIRECTORY);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace mrrope
