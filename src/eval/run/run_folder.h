// SPDX-License-Identifier: Apache-2.0
// The folder of one run: run.json (what was asked for, and its cost), journal.jsonl (finished
// units), parts.jsonl (finished parts of the unit that is being computed), results.json. The same
// command resumes where journal and parts end; results are always made from journal lines alone, so
// they do not depend on interruptions.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "eval/results/result_table.h"
#include "mrrope/error.h"

namespace mrrope::eval {

// The journal: one JSON object per line and finished unit of work. A line counts once its line feed
// is on the disk, so a run killed at any moment loses only what it was computing.
struct ParsedJournal {
  std::vector<ordered_json> lines;
  std::uint64_t size = 0;       // bytes of whole lines
  std::uint64_t half_line = 0;  // bytes after them: without a line feed, or not a JSON object
};

// Throws Error (corrupt) on a broken line before the last; `name` is for the message.
ParsedJournal parse_journal(const std::string& content, const std::string& name);

class Journal {
 public:
  // Opens or creates the file, locks it, and reads what is there. An incomplete line at the end
  // is ignored and overwritten by the next append. Throws Error: failed (cannot be written, or
  // another process holds the lock), corrupt.
  explicit Journal(const std::filesystem::path& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::vector<ordered_json>& lines() const noexcept { return parsed_.lines; }
  std::uint64_t half_line() const noexcept { return parsed_.half_line; }

  // One write(), and one flush to the disk: without it, what the process wrote survives its end,
  // but not a power cut. After a failure the file is as it was before.
  void append(const ordered_json& line, bool flush = true);
  // Removes all lines.
  void clear();

 private:
  std::filesystem::path path_;
  int file_ = -1;
  ParsedJournal parsed_;
};

// One of `count` parts of a run, counted from 1.
struct Shard {
  std::size_t index = 1;
  std::size_t count = 1;
  bool part() const noexcept { return count > 1; }
};
std::string to_text(const Shard& shard);  // 2/4

struct RunInfo {
  std::string command;       // as typed; shown as the way to resume
  std::string model_digest;  // model_digest()
  std::uint64_t seed = 1;
  Shard shard{};
  ordered_json precision{};   // number types of weights and cache, for the reader
  ordered_json model_file{};  // {path, train_ctx?, replace_scaling?}, for commands
};

// What a call of the command has computed so far; kept separate from its results.
struct RunCost {
  double seconds = 0;
  std::int64_t tokens = 0;
};

class RunFolder {
 public:
  // Keeps everything in memory.
  RunFolder() = default;

  // Creates the folder if need be and locks it. Throws Error (failed).
  RunFolder(std::filesystem::path folder, RunInfo info);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // identity: everything that the results depend on. Writes run.json, or throws Error (usage)
  // naming the first difference if the folder belongs to another run. units: how many this run, or
  // this shard of it, has in all.
  void begin(const ordered_json& identity, std::size_t units = 0);

  // What run.json holds, valid after begin(), and the finished units, oldest first.
  const RecordedRun& recorded() const noexcept { return recorded_; }
  const ordered_json& run() const noexcept { return recorded_.run; }
  const std::vector<ordered_json>& units() const noexcept { return recorded_.units; }
  // The cost goes into run.json, on top of the cost of earlier calls, every few seconds and at the
  // end: a call that is killed loses the cost since the last time.
  void append(const ordered_json& unit, const RunCost& so_far = {});

  // Finished parts of the unit at this place, which an earlier call did not finish, oldest first.
  std::vector<ordered_json> parts(const UnitPlace& place) const;
  // They are kept until the unit is appended.
  void append_part(const UnitPlace& place, const ordered_json& part, const RunCost& so_far);

  // Writes results.json and the cost; for a shard the cost alone, since its results are a part.
  void finish(const std::string& results, const RunCost& cost);

  bool in_memory() const noexcept { return folder_.empty(); }
  const std::filesystem::path& folder() const noexcept { return folder_; }
  const RunInfo& info() const noexcept { return info_; }
  // What the user should know: how many units were already done, an incomplete line removed.
  const std::vector<std::string>& notes() const noexcept { return notes_; }
  void add_note(std::string text) { notes_.push_back(std::move(text)); }

  // The Error (interrupted) to throw, with the command to resume. parts: of the next unit.
  Error interrupted(std::size_t units_done, std::size_t units, std::size_t parts = 0) const;

 private:
  void open_parts();
  void read_cost(const ordered_json& there);
  void set_cost(const RunCost& so_far);
  void save_cost();

  std::filesystem::path folder_;
  RunInfo info_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Journal> parts_;  // null: no file; the first line names run and unit
  RecordedRun recorded_;
  std::string started_;
  ordered_json earlier_;       // what calls before this one measured, or null
  bool cost_changed_ = false;  // since run.json was written
  std::chrono::steady_clock::time_point cost_saved_{};
  std::vector<std::string> notes_;
};

// run.json and the units of a folder, for reports: without a lock, without a model. An incomplete
// last line is ignored. Throws Error: failed (missing), corrupt.
RecordedRun read_run(const std::filesystem::path& folder);

// run.json of the run that a shard is part of.
ordered_json whole_run(ordered_json run);

// "measured" of both calls or shards: time and tokens add up, as if one machine had done it. Throws
// an exception of the JSON library.
ordered_json total_cost(const ordered_json& a, const ordered_json& b);

// Empty, or the first thing that results depend on and that differs between the two.
std::string run_difference(const ordered_json& there, const ordered_json& now);

// Writes run.json and journal.jsonl. Throws Error: usage (the folder holds another run), failed.
void write_recorded(const std::filesystem::path& folder, const RecordedRun& recorded);

// An object as JSON text, with one line for every element of its lists.
std::string results_text(const ordered_json& results);

// The most memory this process has held, in bytes.
std::uint64_t peak_memory();

// One run in several parts, each with its own folder: on other machines, at other times. A unit is
// computed with no timeline alive, so its numbers do not depend on the units before it. That is why
// any division gives the results of one run to the last bit (on the same kind of machine).

// "2/4". Throws Error (usage).
Shard parse_shard(const std::string& text);

// Which units belong to this shard, by the cost of each: the most expensive first, each to the
// shard with the smallest load so far. The same on every machine.
std::vector<bool> assign_shard(const std::vector<std::int64_t>& costs, const Shard& shard);

// A merged run: units in the order in which one run would have written them. run.json is that of
// the whole run, with the cost of all shards.
struct JoinedRun {
  RecordedRun recorded;
  std::vector<std::string> missing;  // what is not done yet, one line per shard
};

// Merges the shards of one run. Throws Error: usage (a folder that is not a shard, shards of
// different runs, one given twice), failed, corrupt.
JoinedRun join_shards(const std::vector<std::filesystem::path>& folders);

// Whether the folder holds a shard; false where it cannot be read.
bool is_shard(const std::filesystem::path& folder);

// Merges them into a folder: the files of the whole run, byte for byte but for the command and the
// cost. Throws Error as join_shards() does, and usage where a shard is missing or not done.
struct WrittenRun {
  std::size_t units = 0;
  ResultTable table;
};
WrittenRun write_joined(const std::vector<std::filesystem::path>& folders,
                        const std::filesystem::path& out, const std::string& command);

// The results of a recorded run, by the row of its task. Throws Error (corrupt).
ResultTable results_of(const RecordedRun& recorded);

}  // namespace mrrope::eval
