// SPDX-License-Identifier: Apache-2.0
#include "base/files/staging.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/files/output_file.h"
#include "base/files/source.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {

namespace fs = std::filesystem;

namespace {

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
#else
constexpr unsigned kNoReplace = 0;
constexpr unsigned kExchange = 0;
int rename_with(const fs::path&, const fs::path&, unsigned) { return ENOSYS; }
#endif

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
  const int file =
      ::open((folder / kMarker).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return -1;
  char text[kMarkerText.size() + 1];
  const ssize_t got = ::read(file, text, sizeof text);
  if (got == ssize_t(kMarkerText.size()) &&
      std::string_view(text, kMarkerText.size()) == kMarkerText) {
    return file;
  }
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
      throw Error(ErrorKind::failed,
                  cat("another process is writing ", shown((parent / name).string())),
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
  throw Error(ErrorKind::failed,
              cat(shown(out.string()), " needs ", bytes_text(double(size)), "; only ",
                  bytes_text(double(space.available)), " are free there"),
              "free some space, or choose an output path on another disk");
}

}  // namespace

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
  const bool good =
      marker_ >= 0 &&
      ::write(marker_, kMarkerText.data(), kMarkerText.size()) == ssize_t(kMarkerText.size()) &&
      ::mkdir((folder_ / "new").c_str(), 0755) == 0;
  if (good) return;
  const int code = errno;
  remove();
  cannot("create", out, code);
}

Staging::~Staging() { remove(); }

void Staging::remove() noexcept {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  folder_.clear();
  if (marker_ >= 0) ::close(std::exchange(marker_, -1));
}

fs::path Staging::path(const fs::path& name) const { return folder_ / "new" / name; }

Staging::How Staging::replace_existing(const fs::path& name) {
  const fs::path from = path(name);
  const fs::path to = parent_ / name;
  if (is_folder(from) != is_folder(to)) {
    refuse(cat(shown(to.string()), is_folder(to) ? " is a folder" : " is not a folder",
               ", so it is not replaced"),
           "give another name with -o");
  }
  int code = rename_with(from, to, kExchange);
  if (code == 0) return How::exchanged;
  if (!is_unsupported(code)) cannot("replace", to, code);
  if (is_folder(to)) {
    code = plain_rename(to, folder_ / "old");
    if (code != 0) cannot("replace", to, code);
  }
  code = plain_rename(from, to);
  if (code == 0) return How::overwritten;
  if (is_there(folder_ / "old")) plain_rename(folder_ / "old", to);
  cannot("replace", to, code);
}

Staging::How Staging::place(const fs::path& name, bool replace) {
  const fs::path to = parent_ / name;
  int code = rename_with(path(name), to, kNoReplace);
  if (is_unsupported(code)) code = is_there(to) ? EEXIST : plain_rename(path(name), to);
  if (code == 0) return How::created;
  if (code != EEXIST) cannot("rename to", to, code);
  if (!replace) refuse_existing(to, is_folder(path(name)) ? "folder" : "name");
  return replace_existing(name);
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
