// SPDX-License-Identifier: Apache-2.0
#include "eval/run/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files/output_file.h"
#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

[[noreturn]] void cannot(const char* what, const fs::path& path, int code) {
  const bool space = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw Error(ErrorKind::failed,
              cat("cannot ", what, " ", path.string(), ": ", std::strerror(code)),
              space ? "free some space and give the same command again: finished work is kept"
                    : "give --out a folder that can be written to");
}

int retry_open(const fs::path& path, int flags) {
  int file = -1;
  do {
    file = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (file < 0 && errno == EINTR);
  return file;
}

// 0, or the error code.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(std::size_t(written));
  }
  return 0;
}

// A journal or a line longer than this is not one of ours.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
constexpr JsonLimits kLineLimits{.bytes = std::uint64_t{64} << 20, .depth = 32};

// null where the line is not a JSON object.
ordered_json parse_line(std::string_view line, const std::string& name) {
  try {
    ordered_json object = parse_ordered_json(line, name, kLineLimits);
    if (object.is_object()) return object;
  } catch (const Error&) {  // the caller says which line it is
  }
  return {};
}

}  // namespace

ParsedJournal parse_journal(const std::string& content, const std::string& name) {
  ParsedJournal parsed;
  while (parsed.size < content.size()) {
    const std::size_t end = content.find('\n', parsed.size);
    ordered_json line;
    if (end != std::string::npos) {
      line = parse_line(std::string_view(content).substr(parsed.size, end - parsed.size), name);
    }
    if (!line.is_object()) {
      if (end != std::string::npos && end + 1 < content.size()) {
        throw Error(ErrorKind::corrupt, cat(name, " is damaged in line ", parsed.lines.size() + 1),
                    "delete this line, or the folder; or give another --out");
      }
      parsed.half_line = content.size() - parsed.size;
      break;
    }
    parsed.lines.push_back(std::move(line));
    parsed.size = end + 1;
  }
  return parsed;
}

ParsedJournal read_journal(const fs::path& path) {
  return parse_journal(read_text(Source::open(path), {.bytes = kMaxBytes}), path.string());
}

Journal::Journal(const fs::path& path) : path_(path) {
  file_ = retry_open(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (file_ < 0) cannot("open", path, errno);
  try {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) cannot("lock", path, errno);
      throw Error(ErrorKind::failed, cat("another run is writing to ", path.string()),
                  "wait for it, or give another --out folder");
    }
    parsed_ = read_journal(path);
  } catch (...) {
    ::close(file_);
    throw;
  }
  flush_folder(folder_of(path));
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

void Journal::append(const ordered_json& line) { write(line, true); }

void Journal::append_unflushed(const ordered_json& line) { write(line, false); }

void Journal::clear() {
  if (::ftruncate(file_, 0) != 0) cannot("write", path_, errno);
  parsed_ = {};
}

void Journal::write(const ordered_json& line, bool flush) {
  const std::string bytes = line.dump() + "\n";
  int code = 0;
  if (::ftruncate(file_, off_t(parsed_.size)) != 0 ||
      ::lseek(file_, off_t(parsed_.size), SEEK_SET) < 0) {
    code = errno;
  }
  if (code == 0) code = write_all(file_, bytes);
  if (code == 0 && flush && ::fsync(file_) != 0) code = errno;
  if (code != 0) {
    // If this fails too, the half line is cut off when the journal is read again.
    [[maybe_unused]] const int ignored = ::ftruncate(file_, off_t(parsed_.size));
    cannot("write", path_, code);
  }
  parsed_.size += bytes.size();
  parsed_.lines.push_back(line);
}

}  // namespace mrrope::eval
