// SPDX-License-Identifier: Apache-2.0
// Recorded runs, as a report needs them: read from run.json and the journal alone.
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

// The search of mrrope tune, as search_part.h reads it.
struct SearchedPlan {
  std::string name;
  std::string origin;     // published, given, start, refined, knots
  bool complete = false;  // measured on the whole search set
  eval::Estimate objective, log_perplexity, retrieval;
};

struct ProofLine {
  struct Cell {
    std::int64_t length = 0;
    eval::Estimate perplexity;
    double above, above_error;  // the found plan above this one, percent, paired
  };
  std::string method;
  std::vector<Cell> cells;
  eval::Estimate needles;
  std::string against;  // why it rivals the found plan
};

struct RecordedSearch {
  double weight = 0, passes = 0;
  std::vector<SearchedPlan> plans;
  std::size_t chosen = 0;
  std::vector<std::size_t> front;
  std::vector<std::pair<double, double>> path;  // passes, objective: each time the best changed
  std::vector<std::pair<std::string, std::vector<double>>> factors;  // chosen, pro, yarn
  bool proved = false, better = false;
  std::string recommended;
  std::size_t documents = 0;
  std::vector<ProofLine> proof;  // the found plan first
};

// A sweep of the ramp boundaries, as sweep_part.h reads it.
struct RecordedSweep {
  struct Point {
    std::string method;
    int low = 0, high = 0;
    std::string beta_fast, beta_slow;  // intervals, as text
    eval::Estimate perplexity;
  };
  std::int64_t length = 0;
  double headroom = 1;
  std::size_t documents = 0;
  std::vector<Point> points;
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
  std::optional<RecordedSearch> search;
  std::optional<RecordedSweep> sweep;
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

}  // namespace mrrope::report
