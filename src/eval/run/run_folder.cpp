// SPDX-License-Identifier: Apache-2.0
#include "eval/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/files/output_file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "mrrope/version.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
namespace {

constexpr const char* kRun = "run.json";
constexpr const char* kJournal = "journal.jsonl";
constexpr const char* kParts = "parts.jsonl";
constexpr const char* kResults = "results.json";

// A run of 100,000 documents fits.
constexpr JsonLimits kRunLimits{.bytes = std::uint64_t{64} << 20, .depth = 32};

// How often the cost of a run is written while it goes on.
constexpr std::chrono::seconds kCostInterval{5};

// Results do not depend on these, or (precision, model_file) the digest of the model and the engine
// say the same.
ordered_json without_volatile(ordered_json run) {
  // A commit is added where runs are kept (tools/docs).
  for (const char* key : {"command", "commit", "precision", "model_file", "measured"}) {
    run.erase(key);
  }
  return run;
}

// A command line need not be UTF-8; JSON must be.
std::string digest(const ordered_json& run) {
  return sha256(json_text(without_volatile(run))).substr(0, 16);
}

std::string shortened(const ordered_json& value) {
  const std::string text = json_text(value);
  return text.size() > 80 ? text.substr(0, 77) + "..." : text;
}

// "methods/0/plan: "..." there, "..." now" for the first difference, in the order of `now`.
std::string first_difference(const ordered_json& there, const ordered_json& now,
                             const std::string& at = {}) {
  const auto below = [&](const std::string& key) { return at.empty() ? key : at + "/" + key; };
  if (there.is_object() && now.is_object()) {
    for (const auto& [key, value] : now.items()) {
      if (!there.contains(key)) return below(key) + " is not in it";
      if (there[key] != value) return first_difference(there[key], value, below(key));
    }
    for (const auto& [key, value] : there.items()) {
      if (!now.contains(key)) return below(key) + " is only there";
    }
  }
  if (there.is_array() && now.is_array() && there.size() == now.size()) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (there[i] != now[i]) return first_difference(there[i], now[i], below(std::to_string(i)));
    }
  }
  return cat(at, " is ", shortened(there), " there and ", shortened(now), " now");
}

ordered_json read_run_json(const fs::path& path) {
  ordered_json run =
      parse_ordered_json(read_text(Source::open(path), kRunLimits), path.string(), kRunLimits);
  if (run.is_object()) return run;
  damaged_run(cat(path.string(), " is not a JSON object"), "give another --out folder");
}

[[noreturn]] void refuse_folder(const fs::path& folder, const std::string& why) {
  refuse(cat(folder.string(), " holds another run: ", why),
         "give another --out folder, or delete this one");
}

// run.json of the folder, where that has one. Throws Error (usage) if it is of another run.
ordered_json same_run_there(const fs::path& folder, const ordered_json& run) {
  if (!path_exists(folder / kRun)) return {};
  ordered_json there = read_run_json(folder / kRun);
  if (const std::string why = run_difference(there, run); !why.empty()) refuse_folder(folder, why);
  return there;
}

// By the first line of a journal.
bool is_of_run(const std::vector<ordered_json>& lines, const ordered_json& run) {
  return lines.front().value("run", ordered_json()) == digest(run);
}

// Makes it if need be. A run replaces its own files only.
void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  fail_if(error || !folder_exists(folder),
          cat("cannot make the folder ", folder.string(),
              error ? ": " + error.message() : std::string(": a file has this name")),
          "give --out a folder that can be written to");
  if (path_exists(folder / kRun)) return;
  for (const char* name : {kResults, "report.html"}) {
    if (!path_exists(folder / name)) continue;
    refuse(cat(folder.string(), " has a ", name, " but no ", kRun,
               ": it is not of a run, and would be replaced"),
           "give another --out folder");
  }
}

[[noreturn]] void cannot(const char* what, const fs::path& path, int code) {
  const bool space = code == ENOSPC || code == EDQUOT || code == EFBIG;
  fail(cat("cannot ", what, " ", path.string(), ": ", std::strerror(code)),
       space ? "free some space and rerun the command: finished work is kept"
             : "give --out a folder that can be written to");
}

// A journal or a line longer than this is not one of ours.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
constexpr JsonLimits kLineLimits{.bytes = std::uint64_t{64} << 20, .depth = 32};

ParsedJournal read_journal(const fs::path& path) {
  return parse_journal(read_text(Source::open(path), {.bytes = kMaxBytes}), path.string());
}

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
      throw_if(end != std::string::npos && end + 1 < content.size(), ErrorKind::corrupt,
               cat(name, " is damaged in line ", parsed.lines.size() + 1),
               "delete this line, or the folder; or give another --out");
      parsed.half_line = content.size() - parsed.size;
      break;
    }
    parsed.lines.push_back(std::move(line));
    parsed.size = end + 1;
  }
  return parsed;
}

Journal::Journal(const fs::path& path) : path_(path) {
  file_ = retry_open(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (file_ < 0) cannot("open", path, errno);
  try {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) cannot("lock", path, errno);
      fail(cat("another run is writing to ", path.string()),
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

void Journal::clear() {
  if (::ftruncate(file_, 0) != 0) cannot("write", path_, errno);
  parsed_ = {};
}

void Journal::append(const ordered_json& line, bool flush) {
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

RunFolder::RunFolder(fs::path folder, RunInfo info)
    : folder_(std::move(folder)), info_(std::move(info)) {
  make_folder(folder_);
  journal_ = std::make_unique<Journal>(folder_ / kJournal);
}

std::string to_text(const Shard& shard) { return cat(shard.index, "/", shard.count); }

void RunFolder::begin(const ordered_json& identity, std::size_t units) {
  ordered_json run = {{"mrrope", version()},
                      {"command", info_.command},
                      {"model_digest", info_.model_digest},
                      {"seed", info_.seed}};
  run.update(identity);
  if (!info_.precision.is_null()) run["precision"] = info_.precision;
  if (!info_.model_file.is_null()) run["model_file"] = info_.model_file;
  if (info_.shard.part()) {
    run["shard"] = {{"index", info_.shard.index}, {"count", info_.shard.count}, {"units", units}};
  }
  recorded_.run = std::move(run);
  started_ = time_text(std::time(nullptr));
  if (in_memory()) return;

  const std::vector<ordered_json>& lines = journal_->lines();
  read_cost(same_run_there(folder_, recorded_.run));
  if (!lines.empty()) {
    if (!is_of_run(lines, recorded_.run)) {
      refuse_folder(folder_, cat("its ", kJournal, " is not of this run"));
    }
    recorded_.units.assign(lines.begin() + 1, lines.end());
  }
  if (journal_->half_line() > 0) {
    notes_.push_back(cat("the journal ended in an incomplete line (", journal_->half_line(),
                         " bytes), which was removed: its unit is computed again"));
  }
  if (!recorded_.units.empty()) {
    notes_.push_back(
        cat("resuming: ", recorded_.units.size(), " units already done in ", folder_.string()));
  }
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder_ / kParts, error))) open_parts();
  write_atomically(folder_ / kRun, results_text(recorded_.run));
  cost_saved_ = std::chrono::steady_clock::now();
  if (lines.empty()) journal_->append({{"journal", 1}, {"run", digest(recorded_.run)}});
}

void RunFolder::open_parts() {
  parts_ = std::make_unique<Journal>(folder_ / kParts);
  const std::vector<ordered_json>& lines = parts_->lines();
  if (!lines.empty() && !is_of_run(lines, recorded_.run)) {
    refuse_folder(folder_, cat("its ", kParts, " is not of this run"));
  }
}

RunFolder::~RunFolder() {
  try {
    save_cost();
  } catch (const Error&) {  // the journal has the results; only the cost is lost
  }
}

void RunFolder::append(const ordered_json& unit, const RunCost& so_far) {
  if (journal_) journal_->append(unit);
  if (parts_) parts_->clear();
  recorded_.units.push_back(unit);
  set_cost(so_far);
}

std::vector<ordered_json> RunFolder::parts(const UnitPlace& place) const {
  if (!parts_ || parts_->lines().empty()) return {};
  const std::vector<ordered_json>& lines = parts_->lines();
  if (lines.front().value("unit", ordered_json()) != ordered_json(place)) return {};
  return {lines.begin() + 1, lines.end()};
}

void RunFolder::append_part(const UnitPlace& place, const ordered_json& part,
                            const RunCost& so_far) {
  if (in_memory()) return;
  if (!parts_) open_parts();
  const std::vector<ordered_json>& lines = parts_->lines();
  if (lines.empty() || lines.front().value("unit", ordered_json()) != ordered_json(place)) {
    parts_->clear();  // of a unit that the journal has
    parts_->append({{"journal", 1}, {"run", digest(recorded_.run)}, {"unit", place}}, false);
  }
  parts_->append(part, false);
  set_cost(so_far);
}

void RunFolder::finish(const std::string& results, const RunCost& cost) {
  if (!in_memory() && !info_.shard.part()) write_atomically(folder_ / kResults, results);
  set_cost(cost);
  save_cost();
  std::error_code ignored;
  if (std::exchange(parts_, nullptr)) fs::remove(folder_ / kParts, ignored);
}

void RunFolder::read_cost(const ordered_json& there) {
  const auto measured = there.find("measured");
  if (measured == there.end()) return;
  try {
    total_cost(*measured, *measured);
  } catch (const nlohmann::json::exception& e) {
    damaged_run(cat("\"measured\" in ", (folder_ / kRun).string(), " cannot be read: ", e.what()),
                "delete its line \"measured\"");
  }
  earlier_ = recorded_.run["measured"] = *measured;
}

void RunFolder::set_cost(const RunCost& so_far) {
  if (so_far.tokens == 0) return;  // nothing was computed: what earlier calls have measured stays
  const ordered_json now = {{"started", started_},
                            {"finished", time_text(std::time(nullptr))},
                            {"seconds", so_far.seconds},
                            {"tokens", so_far.tokens},
                            {"tokens_per_second", double(so_far.tokens) / so_far.seconds},
                            {"peak_memory_bytes", peak_memory()}};
  recorded_.run["measured"] = earlier_.is_null() ? now : total_cost(earlier_, now);
  cost_changed_ = true;
  if (std::chrono::steady_clock::now() - cost_saved_ >= kCostInterval) save_cost();
}

void RunFolder::save_cost() {
  if (in_memory() || !cost_changed_) return;
  write_atomically(folder_ / kRun, results_text(recorded_.run));
  cost_changed_ = false;
  cost_saved_ = std::chrono::steady_clock::now();
}

Error RunFolder::interrupted(std::size_t units_done, std::size_t units, std::size_t parts) const {
  std::string done = cat("interrupted after ", units_done, " of ", units, " units");
  if (in_memory()) {
    return {ErrorKind::interrupted, done, "give --out FOLDER to keep finished work"};
  }
  if (parts > 0) done += cat(" and ", parts, " parts of the next");
  return {ErrorKind::interrupted, cat(done, ", which are kept in ", folder_.string()),
          "resume with: " + info_.command};
}

RecordedRun read_run(const fs::path& folder) {
  fail_if(!path_exists(folder / kRun),
          cat(folder.string(), " is not a run folder: it has no ", kRun),
          "give the --out folder of an evaluation");
  RecordedRun recorded;
  recorded.run = read_run_json(folder / kRun);
  ParsedJournal journal = read_journal(folder / kJournal);
  if (!journal.lines.empty()) {
    if (!is_of_run(journal.lines, recorded.run)) {
      damaged_run(cat("journal and run.json in ", folder.string(), " are of different runs"));
    }
    recorded.units.assign(journal.lines.begin() + 1, journal.lines.end());
  }
  return recorded;
}

ordered_json whole_run(ordered_json run) {
  run.erase("shard");
  return run;
}

ordered_json total_cost(const ordered_json& a, const ordered_json& b) {
  const double seconds = a.at("seconds").get<double>() + b.at("seconds").get<double>();
  const std::int64_t tokens = token_count(a, "tokens") + token_count(b, "tokens");
  const auto memory = [](const ordered_json& cost) {
    return whole<std::uint64_t>(cost.at("peak_memory_bytes"));
  };
  return {{"started", std::min(a.value("started", ""), b.value("started", ""))},
          {"finished", std::max(a.value("finished", ""), b.value("finished", ""))},
          {"seconds", seconds},
          {"tokens", tokens},
          {"tokens_per_second", seconds > 0 ? double(tokens) / seconds : 0},
          {"peak_memory_bytes", std::max(memory(a), memory(b))}};
}

std::string run_difference(const ordered_json& there, const ordered_json& now) {
  ordered_json a = without_volatile(there);
  ordered_json b = without_volatile(now);
  if (a == b) return {};
  // What was asked for comes before the engine's description, which follows from it: another
  // length may mean another batch size.
  const ordered_json engine_there = a.value("engine", ordered_json());
  const ordered_json engine_now = b.value("engine", ordered_json());
  a.erase("engine");
  b.erase("engine");
  return a == b ? first_difference(engine_there, engine_now, "engine") : first_difference(a, b);
}

void write_recorded(const fs::path& folder, const RecordedRun& recorded) {
  make_folder(folder);
  same_run_there(folder, recorded.run);
  std::string lines = ordered_json{{"journal", 1}, {"run", digest(recorded.run)}}.dump() + "\n";
  for (const ordered_json& unit : recorded.units) lines += unit.dump() + "\n";
  write_atomically(folder / kJournal, lines);
  write_atomically(folder / kRun, results_text(recorded.run));
}

std::string results_text(const ordered_json& results) {
  std::string text = "{";
  for (const auto& [key, value] : results.items()) {
    text += cat(text.size() > 1 ? "," : "", "\n  ", json_text(ordered_json(key)), ": ");
    if (!value.is_array() || value.empty()) {
      text += json_text(value);
      continue;
    }
    text += "[";
    for (std::size_t i = 0; i < value.size(); ++i) {
      text += cat(i > 0 ? "," : "", "\n    ", json_text(value[i]));
    }
    text += "\n  ]";
  }
  return text + "\n}\n";
}

std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return std::uint64_t(usage.ru_maxrss);  // bytes there, kilobytes elsewhere
#else
  return std::uint64_t(usage.ru_maxrss) * 1024;
#endif
}

}  // namespace mrrope::eval
