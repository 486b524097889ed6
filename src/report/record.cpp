// SPDX-License-Identifier: Apache-2.0

#include "base/json.h"
#include "base/text.h"
#include "eval/run/run_folder.h"
#include "formats/plan_file.h"
#include "report/report.h"

namespace mrrope::report {

namespace fs = std::filesystem;

namespace {

std::vector<RecordedMethod> methods_of(const ordered_json& run) {
  std::vector<RecordedMethod> methods;
  for (const ordered_json& entry : run.value("methods", ordered_json::array())) {
    if (!entry.is_object()) continue;
    const ordered_json numbers = entry.value("numbers", ordered_json());
    RecordedMethod& method = methods.emplace_back();
    method.method = text_at(entry, "method");
    method.plan = text_at(entry, "plan");
    method.scale = value_at(entry, "scale");
    method.untouched = entry.value("untouched", ordered_json()) == true;
    method.grows = numbers.contains("rungs");
    try {
      method.numbers = ladder_from_json(numbers).rungs().back().plan;
    } catch (const std::exception&) {
      // Numbers of another version: what is said of the plan goes without them.
    }
  }
  return methods;
}

void read_facts(RunRecord& record, ordered_json run) {
  record.run = std::move(run);
  record.task = text_at(record.run, "task");
  record.model_digest = text_at(record.run, "model_digest");
  if (const ordered_json model = record.run.value("model", ordered_json()); model.is_object()) {
    record.model = text_at(model, "name");
    record.architecture = text_at(model, "architecture");
    record.window = count_at(model, "train_length");
  }
  if (record.model.empty()) record.model = "model without a name";
  record.methods = methods_of(record.run);
}

void read_into(RunRecord& record, eval::RecordedRun recorded, bool has_results) {
  read_facts(record, std::move(recorded.run));
  throw_if(record.task == "sweep", ErrorKind::unsupported,
           "it is a run of mrrope sweep, which this version does not read",
           "measure it again: mrrope eval ppl MODEL --method 'pro(low=5..15)'");
  record.units =
      std::size_t(std::count_if(recorded.units.begin(), recorded.units.end(),
                                [](const ordered_json& u) { return !u.contains("no_answer"); }));
  if (const eval::Task* task = eval::find_task(record.task); task != nullptr) {
    // Results come from the journal; an unfinished run shows those it has.
    record.table = task->results({record.run, std::move(recorded.units)});
  } else if (has_results) {
    const ordered_json results =
        read_json(fs::path(record.folder) / "results.json", {.bytes = std::uint64_t{64} << 20});
    if (record.task == "tune") {
      record.search = checked_search(results);
    } else {
      record.table = eval::table_from_json(results);
      record.table.window = record.window;
      if (!record.methods.empty()) {
        record.table.methods.assign(record.methods.begin(), record.methods.end());
      }
    }
  }
  record.finished = has_results && (record.table.expected_units == 0 ||
                                    record.units >= record.table.expected_units);
}

// What `read` makes of a folder; what it throws becomes the problem of the record.
RunRecord read_safely(const fs::path& folder, const std::function<void(RunRecord&)>& read) {
  RunRecord record;
  record.folder = folder.string();
  fs::path plain = folder.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  record.name = plain.filename().string();
  try {
    read(record);
  } catch (const std::exception& error) {
    record.problem = error.what();
    if (const auto* known = dynamic_cast<const Error*>(&error)) record.problem_kind = known->kind();
  }
  return record;
}

// Equal for runs that may share a chart: everything but what may differ.
std::string group_key(const RunRecord& record) {
  ordered_json key = {{"task", record.task},
                      {"digest", record.model_digest},
                      {"window", record.window},
                      {"settings", record.run.value("settings", ordered_json::object())}};
  if (key["settings"].is_object()) {
    key["settings"].erase("lengths");
    key["settings"].erase("batch");
  }
  for (const char* texts : {"documents", "haystacks"}) {
    if (record.run.contains(texts)) key[texts] = record.run[texts];
  }
  return json_text(key);
}

// Shards of one run.
struct ShardGroup {
  ordered_json whole;  // run.json
  std::vector<fs::path> folders;
};

// Whether this folder holds a shard; if so it joins its group.
bool take_shard(std::vector<ShardGroup>& groups, const fs::path& folder) {
  if (!eval::is_shard(folder)) return false;
  const ordered_json whole = eval::whole_run(eval::read_run(folder).run);
  auto* group = find_by(
      groups, [&](const ShardGroup& g) { return eval::run_difference(g.whole, whole).empty(); });
  if (group == nullptr) group = &groups.emplace_back(ShardGroup{whole, {}});
  group->folders.push_back(folder);
  return true;
}

RunRecord read_shards(const ShardGroup& group) {
  return read_safely(group.folders.front(), [&](RunRecord& record) {
    const std::size_t others = group.folders.size() - 1;
    if (others > 0) record.name += cat(" and ", others, " more shards");
    eval::JoinedRun joined = eval::join_shards(group.folders);
    read_into(record, std::move(joined.recorded), joined.missing.empty());
    for (const std::string& missing : joined.missing) record.table.notes.push_back(missing);
  });
}

}  // namespace

RunRecord read_record(const fs::path& folder) {
  return read_safely(folder, [&](RunRecord& record) {
    read_into(record, eval::read_run(folder), path_exists(folder / "results.json"));
  });
}

RunRecord record_of(ordered_json run, eval::ResultTable table) {
  RunRecord record;
  read_facts(record, std::move(run));
  record.table = std::move(table);
  return record;
}

std::vector<RunRecord> read_records(const std::vector<std::string>& folders) {
  std::vector<RunRecord> records;
  std::vector<ShardGroup> shards;
  for (const std::string& name : folders) {
    const fs::path folder = name;
    std::error_code error;
    std::vector<fs::path> below;
    if (!path_exists(folder / "run.json") && folder_exists(folder)) {
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (path_exists(entry.path() / "run.json")) below.push_back(entry.path());
      }
    }
    std::sort(below.begin(), below.end());
    if (below.empty()) below.push_back(folder);
    for (const fs::path& path : below) {
      if (!take_shard(shards, path)) records.push_back(read_record(path));
    }
  }
  for (const ShardGroup& group : shards) records.push_back(read_shards(group));
  throw_if(find_by(records, &RunRecord::problem, "") == nullptr,
           records.empty() ? ErrorKind::failed : records.front().problem_kind,
           records.empty() ? std::string("no folder given") : records.front().problem,
           "give the --out folders of evaluations, e.g. mrrope report run1 run2");
  std::map<std::string, int> names;
  for (const RunRecord& r : records) ++names[r.name];
  for (RunRecord& r : records) {
    if (names[r.name] > 1) r.name = r.folder;
  }
  return records;
}

std::vector<RunGroup> grouped(const std::vector<RunRecord>& records) {
  std::vector<RunGroup> groups;
  std::map<std::string, std::size_t> index;
  for (const RunRecord& record : records) {
    if (!record.problem.empty()) continue;
    const auto [at, fresh] = index.emplace(group_key(record), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].runs.push_back(&record);
  }
  return groups;
}

}  // namespace mrrope::report
