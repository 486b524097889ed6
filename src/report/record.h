// SPDX-License-Identifier: Apache-2.0
// Recorded runs, as a report needs them: read from run.json and the journal alone. Their files may
// be damaged or hostile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval/results/result_table.h"
#include "mrrope/error.h"
#include "mrrope/plan.h"

namespace mrrope::report {

struct RecordedMethod : eval::MethodRow {
  std::optional<Plan> numbers;  // of a ladder its last rung; absent where they make no plan
};

struct RunRecord {
  std::string name;     // its name in the report
  std::string folder;   // as given
  std::string problem;  // not empty: why it could not be read
  ErrorKind problem_kind = ErrorKind::failed;

  std::string task;
  std::string model, architecture, model_digest;
  std::int64_t window = 0;
  nlohmann::ordered_json run;
  std::vector<RecordedMethod> methods;

  std::size_t units = 0;
  bool finished = false;

  eval::ResultTable table;
  nlohmann::ordered_json search;  // results.json of mrrope tune; null: none
};

// Reads a folder. Never throws because of its content: `problem` says what is wrong with it.
RunRecord read_record(const std::filesystem::path& folder);

// The record of a run that has just finished, from run.json and its results.
RunRecord record_of(nlohmann::ordered_json run, eval::ResultTable table);

// All given folders; one without run.json means the runs directly below it. Shards of one run
// become one record. Names are made unique. Throws the Error of the first
// folder if none has a readable run.
std::vector<RunRecord> read_records(const std::vector<std::string>& folders);

// Runs that may share a chart: same task, model, texts and settings (lengths may differ).
struct RunGroup {
  std::vector<const RunRecord*> runs;
  const RunRecord& front() const { return *runs.front(); }
};
std::vector<RunGroup> grouped(const std::vector<RunRecord>& records);

// Empty if the field is missing or not a text.
std::string text_at(const nlohmann::ordered_json& object, const char* key);

// NaN if the field is missing or not a number.
double value_at(const nlohmann::ordered_json& object, const char* key);

// 0 if the field is missing or cannot be a count.
std::int64_t count_at(const nlohmann::ordered_json& object, const char* key);

// results.json of mrrope tune with everything that a report reads of it. Throws Error (corrupt),
// naming the key.
nlohmann::ordered_json checked_search(nlohmann::ordered_json results);

}  // namespace mrrope::report
