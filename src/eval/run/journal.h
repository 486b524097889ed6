// SPDX-License-Identifier: Apache-2.0
// The journal: one JSON object per line, one line per finished unit of work, append-only. A line
// counts once its line feed is on the disk, so a run killed at any moment loses only what it was
// computing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mrrope::eval {

struct ParsedJournal {
  std::vector<nlohmann::ordered_json> lines;
  std::uint64_t size = 0;       // bytes of whole lines
  std::uint64_t half_line = 0;  // bytes after them: without a line feed, or not a JSON object
};

// Throws Error (corrupt) on a broken line before the last; `name` is for the message.
ParsedJournal parse_journal(const std::string& content, const std::string& name);

// The same of a file. Throws Error: failed (missing, or not a regular file), corrupt (larger than
// 1 GiB, unread).
ParsedJournal read_journal(const std::filesystem::path& path);

class Journal {
 public:
  // Opens or creates the file, locks it, and reads what is there. An incomplete line at the end
  // is ignored and overwritten by the next append. Throws Error: failed (cannot be written, or
  // another process holds the lock), corrupt.
  explicit Journal(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::vector<nlohmann::ordered_json>& lines() const noexcept { return parsed_.lines; }
  std::uint64_t half_line() const noexcept { return parsed_.half_line; }

  // One write() and one flush to the disk. After a failure the file is as it was before.
  void append(const nlohmann::ordered_json& line);
  // Without the flush: what the process wrote survives its end, but not a power cut.
  void append_unflushed(const nlohmann::ordered_json& line);
  // Removes all lines.
  void clear();

 private:
  void write(const nlohmann::ordered_json& line, bool flush);

  std::filesystem::path path_;
  int file_ = -1;
  ParsedJournal parsed_;
};

}  // namespace mrrope::eval
