// SPDX-License-Identifier: Apache-2.0
#include "base/files/output_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

#include "base/files/source.h"
#include "base/text.h"

namespace mrrope {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr std::uint64_t kStep = std::uint64_t{8} << 20;  // bytes between two calls of on_bytes

void refuse_special(const fs::path& path) {
  std::error_code ignored;
  // Behind a link such as /dev/stdout there may be a regular file, and the link would be replaced.
  if (fs::is_symlink(fs::symlink_status(path, ignored))) {
    const std::string target = fs::read_symlink(path, ignored).string();
    refuse_if(target.starts_with("/proc/") || target.starts_with("/dev/"),
              cat(shown(path.string()), " is a link to ", target),
              "give the name of a file; - means standard output");
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

constexpr const char* kMarker = ".mrrope-staging";
constexpr std::string_view kMarkerText = "Made by mrrope for an output that is being written.\n";
constexpr std::string_view kSuffix = ".part-XXXXXX";  // the end is replaced
constexpr std::size_t kRandom = 6;

#ifdef __linux__
constexpr unsigned kNoReplace = RENAME_NOREPLACE;
constexpr unsigned kExchange = RENAME_EXCHANGE;
int rename_with(const fs::path& from, const fs::path& to, unsigned flags) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0 ? 0 : errno;
}
ssize_t system_copy(int from, std::uint64_t offset, int to, std::uint64_t at, std::uint64_t size) {
  auto start = off_t(offset);
  auto end = off_t(at);
  return ::copy_file_range(from, &start, to, &end, std::size_t(size), 0);
}
#else
constexpr unsigned kNoReplace = 0;
constexpr unsigned kExchange = 0;
int rename_with(const fs::path&, const fs::path&, unsigned) { return ENOSYS; }
ssize_t system_copy(int, std::uint64_t, int, std::uint64_t, std::uint64_t) { return 0; }
#endif

bool is_full(int code) { return code == ENOSPC || code == EDQUOT || code == EFBIG; }
bool is_unsupported(int code) { return code == ENOSYS || code == EINVAL || code == ENOTSUP; }

int plain_rename(const fs::path& from, const fs::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// The marker of a folder that mrrope made for this user, opened; else -1.
int open_marker(const fs::path& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    return -1;
  }
  const int file = retry_open(folder / kMarker, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return -1;
  char text[kMarkerText.size() + 1];
  const ssize_t got = ::read(file, text, sizeof text);
  if (got >= 0 && std::string_view(text, std::size_t(got)) == kMarkerText) return file;
  ::close(file);
  return -1;
}

void remove_leftovers(const fs::path& parent, const std::string& name) {
  const std::string start = name + std::string(kSuffix.substr(0, kSuffix.size() - kRandom));
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const std::string other = at->path().filename().string();
    if (other.size() == start.size() + kRandom && other.rfind(start, 0) == 0) {
      found.push_back(at->path());
    }
  }
  for (const fs::path& folder : found) {
    const int marker = open_marker(folder);
    if (marker < 0) continue;
    if (::flock(marker, LOCK_EX | LOCK_NB) != 0) {
      const bool in_use = errno == EWOULDBLOCK;
      ::close(marker);
      if (!in_use) continue;  // no locks on this file system: it may be in use
      fail(cat("another process is writing ", shown((parent / name).string())),
           "wait for it to finish, or give another name with -o");
    }
    // Killed while replacing a folder, where the system cannot exchange two names.
    if (is_there(folder / "old") && !is_there(parent / name)) {
      plain_rename(folder / "old", parent / name);
    }
    fs::remove_all(folder, error);
    ::close(marker);
  }
}

void check_space(const fs::path& out, const fs::path& parent, std::uint64_t size) {
  std::error_code error;
  const fs::space_info space = fs::space(parent, error);
  if (error || space.available >= size) return;
  fail(cat(shown(out.string()), " needs ", bytes_text(double(size)), "; only ",
           bytes_text(double(space.available)), " are free there"),
       "free some space, or choose an output path on another disk");
}

}  // namespace

void cannot(const char* what, const fs::path& path, int code) {
  fail(cat("cannot ", what, " ", shown(path.string()), ": ", std::strerror(code)),
       is_full(code) ? "free some space, or choose an output path on another disk; no partial file "
                       "was left behind"
                     : "choose an output path that can be written to");
}

int retry_open(const fs::path& path, int flags) {
  int file = -1;
  do {
    file = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (file < 0 && errno == EINTR);
  return file;
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(std::size_t(written));
  }
  return 0;
}

fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return fs::path(cache) / "mrrope";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return fs::path(home) / ".cache/mrrope";
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
  fail_if(!fs::is_directory(there, error),
          cat("cannot make the folder ", shown(folder.string()), ": ", shown(there.string()),
              " is not a folder"),
          "give a folder that can be written to");
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

OutputFile::OutputFile(fs::path path, fs::path shown_as)
    : path_(std::move(path)), shown_as_(shown_as.empty() ? path_ : std::move(shown_as)) {
  file_ = retry_open(path_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (file_ < 0) cannot("create", shown_as_, errno);
  buffer_.reserve(kBuffer);
}

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
    if (written < 0) cannot("write", shown_as_, errno);
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
  for (; count > sizeof zero; count -= sizeof zero) write(std::span(zero));
  write(std::span(zero, std::size_t(count)));
}

void OutputFile::copy(const Source& source, std::uint64_t offset, std::uint64_t size) {
  bool by_system = size > 4 * kBuffer && source.descriptor() >= 0;
  if (by_system) drain();
  std::vector<std::byte> bytes;
  while (size > 0) {
    std::uint64_t step = std::min(size, kStep);
    const ssize_t copied =
        by_system ? system_copy(source.descriptor(), offset, file_, position_, step) : 0;
    if (copied < 0 && is_full(errno)) cannot("write", shown_as_, errno);
    by_system = copied > 0;  // not between two file systems; read() reports anything else
    if (by_system) {
      step = std::uint64_t(copied);
      advance(step);
    } else {
      step = std::min<std::uint64_t>(step, kBuffer);
      bytes.resize(std::size_t(step));
      source.read(offset, bytes);
      write(bytes);
    }
    offset += step;
    size -= step;
  }
}

void OutputFile::finish() {
  drain();
  if (::fsync(file_) != 0) cannot("flush", shown_as_, errno);
  const int file = std::exchange(file_, -1);
  if (::close(file) == 0) return;
  const int code = errno;
  ::unlink(path_.c_str());
  cannot("close", shown_as_, code);
}

void refuse_existing(const fs::path& path, const char* what) {
  if (!is_there(path)) return;
  refuse(cat(shown(path.string()), " already exists"),
         cat("give another ", what, " with -o, or --force to replace it"));
}

Staging::Staging(const fs::path& out, std::uint64_t size) : parent_(folder_of(out)) {
  check_space(out, parent_, size);
  const std::string name = out.filename().string();
  remove_leftovers(parent_, name);
  std::string made = (parent_ / (name + std::string(kSuffix))).string();
  if (::mkdtemp(made.data()) == nullptr) cannot("create", out, errno);
  folder_ = made;
  marker_ = ::open((folder_ / kMarker).c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (marker_ >= 0) ::flock(marker_, LOCK_EX | LOCK_NB);  // some file systems have no locks
  int code = marker_ >= 0 ? write_all(marker_, kMarkerText) : errno;
  if (code == 0 && ::mkdir((folder_ / "new").c_str(), 0755) != 0) code = errno;
  if (code == 0) return;
  remove();
  cannot("create", out, code);
}

Staging::~Staging() { remove(); }

void Staging::remove() noexcept {
  if (folder_.empty()) return;
  std::error_code ignored;
  // What was read here is gone; the next file may get its inode.
  for (fs::recursive_directory_iterator at(folder_, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (fs::is_regular_file(fs::symlink_status(at->path(), ignored))) forget_input(at->path());
  }
  fs::remove_all(folder_, ignored);
  folder_.clear();
  if (marker_ >= 0) ::close(std::exchange(marker_, -1));
}

fs::path Staging::path(const fs::path& name) const { return folder_ / "new" / name; }

Staging::How Staging::place(const fs::path& name, bool replace) {
  const fs::path from = path(name);
  const fs::path to = parent_ / name;
  int code = rename_with(from, to, kNoReplace);
  if (is_unsupported(code)) code = is_there(to) ? EEXIST : plain_rename(from, to);
  if (code == 0) return How::created;
  if (code != EEXIST) cannot("rename to", to, code);
  if (!replace) refuse_existing(to, is_folder(from) ? "folder" : "name");
  refuse_if(is_folder(from) != is_folder(to),
            cat(shown(to.string()), is_folder(to) ? " is a folder" : " is not a folder",
                ", so it is not replaced"),
            "give another name with -o");
  code = rename_with(from, to, kExchange);
  if (code == 0) return How::exchanged;
  if (!is_unsupported(code)) cannot("replace", to, code);
  code = is_folder(to) ? plain_rename(to, folder_ / "old") : 0;
  if (code != 0) cannot("replace", to, code);
  code = plain_rename(from, to);
  if (code == 0) return How::overwritten;
  if (is_there(folder_ / "old")) plain_rename(folder_ / "old", to);
  cannot("replace", to, code);
}

void Staging::take_back(const fs::path& name, How how) noexcept {
  if (how == How::created) plain_rename(parent_ / name, path(name));
  if (how == How::exchanged) rename_with(parent_ / name, path(name), kExchange);
}

void Staging::publish(const std::vector<fs::path>& names, bool replace) {
  std::vector<std::pair<fs::path, How>> done;
  try {
    for (std::size_t i = names.size(); i-- > 0;) {
      done.emplace_back(names[i], place(names[i], replace));
    }
  } catch (...) {
    for (std::size_t i = done.size(); i-- > 0;) take_back(done[i].first, done[i].second);
    throw;
  }
  for (const fs::path& name : names) forget_input(parent_ / name);
  flush_folder(parent_);
  remove();
}

}  // namespace mrrope
