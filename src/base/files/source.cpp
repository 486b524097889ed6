// SPDX-License-Identifier: Apache-2.0
#include "base/files/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"

namespace mrrope {
namespace {

constexpr const char* kCutShort = "the file is cut short or damaged: fetch it again";
constexpr const char* kOwnFolder = "a part of a model must be in the model's own folder";
constexpr std::size_t kBuffer = std::size_t{64} << 10;

bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder) {
  if (folder.empty()) return false;
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// Device and inode of the files that were opened for reading.
using FileId = std::pair<std::uint64_t, std::uint64_t>;
std::mutex g_inputs_mutex;
std::set<FileId> g_inputs;

FileId id_of(const struct stat& status) {
  return {std::uint64_t(status.st_dev), std::uint64_t(status.st_ino)};
}

}  // namespace

void check_readable(const std::filesystem::path& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  if (::access(path.c_str(), folder ? R_OK | X_OK : R_OK) != 0) {
    fail(cat("cannot read ", shown(path.string()), ": ", std::strerror(errno)),
         "check the path and its permissions");
  }
  refuse_if(folder && std::filesystem::is_empty(path, error),
            cat(shown(path.string()), " has no file"), "give a folder with files, or a file");
}

bool is_input(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  const std::lock_guard lock(g_inputs_mutex);
  return g_inputs.count(id_of(status)) != 0;
}

void forget_input(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  const std::lock_guard lock(g_inputs_mutex);
  g_inputs.erase(id_of(status));
}

Source Source::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const int error = errno;
    std::string hint = "check that the file can be read: ls -l " + name;
    if (error == ENOENT) {
      hint = path.extension() == ".gguf" ? "check the path; a split model needs all of its parts"
                                         : "check the path";
    }
    fail(cat("cannot open ", shown(name), ": ", std::strerror(error)), hint);
  }
  Source source;
  source.file_ = file;
  source.name_ = name;
  struct stat status {};
  if (::fstat(file, &status) != 0) {
    fail(cat("cannot examine ", shown(name), ": ", std::strerror(errno)));
  }
  fail_if(!S_ISREG(status.st_mode), cat(shown(name), " is not a regular file"),
          "give the name of a file; what a command prints must be in one first");
  source.size_ = std::uint64_t(status.st_size);
  const std::lock_guard lock(g_inputs_mutex);
  g_inputs.insert(id_of(status));
  return source;
}

Source Source::memory(std::span<const std::byte> bytes, std::string name) {
  Source source;
  source.bytes_ = bytes;
  source.size_ = bytes.size();
  source.name_ = std::move(name);
  return source;
}

Source::Source(Source&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_),
      size_(other.size_),
      name_(std::move(other.name_)) {}

Source::~Source() {
  if (file_ >= 0) ::close(file_);
}

void Source::read(std::uint64_t offset, std::span<std::byte> to) const {
  if (offset > size_ || to.size() > size_ - offset) {
    corrupt(
        name_,
        cat(to.size(), " bytes at offset ", offset, " are outside the file of ", size_, " bytes"),
        kCutShort);
  }
  if (to.empty()) return;
  if (file_ < 0) {
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
    return;
  }
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = ::pread(file_, to.data() + done, to.size() - done, off_t(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(cat("cannot read ", name_, ": ", std::strerror(errno)));
    if (got == 0) {
      fail(cat(name_, " became shorter while it was read"),
           "wait until it is fully written, then try again");
    }
    done += std::size_t(got);
  }
}

Reader::Reader(const Source& source, std::uint64_t position)
    : source_(source), position_(std::min(position, source.size())) {
  buffer_.resize(std::size_t(std::min<std::uint64_t>(kBuffer, source.size())));
}

void Reader::need(std::uint64_t length, std::string_view what) const {
  if (length <= remaining()) return;
  corrupt(source_.name(),
          cat(printable(what.substr(0, 96)), " needs ", length, " bytes at offset ", position_,
              ", but only ", remaining(), " are left"),
          kCutShort);
}

const std::byte* Reader::take(std::size_t length, std::string_view what) {
  need(length, what);
  if (length > buffer_.size()) buffer_.resize(length);
  const bool inside = position_ >= buffer_start_ && position_ - buffer_start_ <= buffer_size_ &&
                      length <= buffer_size_ - (position_ - buffer_start_);
  if (!inside) {
    buffer_start_ = position_;
    buffer_size_ = std::size_t(std::min<std::uint64_t>(buffer_.size(), remaining()));
    source_.read(buffer_start_, std::span(buffer_).first(buffer_size_));
  }
  const std::byte* bytes = buffer_.data() + (position_ - buffer_start_);
  position_ += length;
  return bytes;
}

std::uint64_t Reader::bits(std::size_t bytes, std::string_view what) {
  const std::byte* from = take(bytes, what);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t(from[i]) << (8 * i);
  return value;
}

std::string Reader::text(std::uint64_t length, std::string_view what) {
  const std::byte* bytes = take(std::size_t(length), what);
  return std::string(reinterpret_cast<const char*>(bytes), std::size_t(length));
}

void Reader::skip(std::uint64_t length, std::string_view what) {
  need(length, what);
  position_ += length;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 96;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
      out += escaped;
    }
  }
  if (text.size() > kShown) out += "...";
  return out + '"';
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    const bool control = c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0);
    const bool good = c.size > 0 && !control;
    out += good ? text.substr(0, c.size) : std::string_view("?");
    text.remove_prefix(good ? c.size : 1);
  }
  return out;
}

void check_plain_name(std::string_view file, std::string_view name) {
  const bool plain = !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
                     name.find_first_of("/\\:") == std::string_view::npos &&
                     name.find('\0') == std::string_view::npos;
  corrupt_if(!plain, std::string(file), cat(shown(name), " is not a plain file name"), kOwnFolder);
}

std::filesystem::path plain_file_in(const std::filesystem::path& folder, std::string_view name,
                                    const std::filesystem::path& also) {
  check_plain_name(folder.string(), name);
  std::filesystem::path path = folder / std::string(name);
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  if (error) return path;  // does not exist: opening it will say so
  const auto home = std::filesystem::canonical(folder.empty() ? "." : folder, error);
  const auto second = also.empty() ? also : std::filesystem::canonical(also, error);
  throw_if(!is_within(target, home) && !is_within(target, second), ErrorKind::corrupt,
           cat(shown(path.string()), " leads out of its folder, to ", shown(target.string())),
           kOwnFolder);
  return path;
}

void corrupt(const std::string& file, const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::corrupt, cat(file, ": ", message), hint);
}

}  // namespace mrrope
