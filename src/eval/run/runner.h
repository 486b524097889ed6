// SPDX-License-Identifier: Apache-2.0
// Runs the units of work of a task: deals them to shards, skips what the journal holds, computes
// the rest on a local engine or asks an endpoint, and journals each one. The same for every task.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/run/progress.h"
#include "eval/run/run_folder.h"
#include "eval/run/target.h"
#include "eval/run/task.h"

namespace mrrope::eval {

// One line of the journal. A unit starts with no timeline alive: the state of an engine's cache
// then does not depend on earlier units, nor on whether the run was interrupted between them.
struct Unit {
  UnitPlace place;
  std::int64_t cost = 0;  // tokens, for shards and progress
  std::string label;      // for progress: "pro  document 3 of 10"
  std::string where;      // for errors: "method pro, document a.txt"
  std::string method{};   // of the line
  // An earlier unit: the same model on the same text. It is in the same shard, and this one gets
  // its line.
  std::optional<std::size_t> same_as{};
};

// What a unit reports while it is computed.
class UnitProgress {
 public:
  UnitProgress(RunFolder& folder, Progress& progress, std::size_t units)
      : folder_(folder), progress_(progress), units_(units) {}

  void begin(const Unit& unit);
  // A unit that takes long has parts, one per answer, so that a stop loses little. Those that an
  // earlier call finished, in the order in which they were computed.
  const std::vector<nlohmann::ordered_json>& parts() const noexcept { return parts_; }
  void part_done(nlohmann::ordered_json part);
  // cost: the share of the unit's cost that its finished parts save.
  void skip(std::int64_t cost) { progress_.skip(cost); }

  // Between batches. Throws Error (interrupted) after Ctrl-C.
  void check() const;
  // cost: its share of the unit's cost; tokens: what was computed, for the speed in run.json.
  void advance(std::int64_t cost, std::int64_t tokens);

  void unit_done() {
    ++done_;
    parts_.clear();
  }
  RunCost so_far() const { return {progress_.seconds(), tokens_}; }

 private:
  RunFolder& folder_;
  Progress& progress_;
  std::size_t units_;
  UnitPlace place_;
  std::vector<nlohmann::ordered_json> parts_;
  std::size_t done_ = 0;
  std::int64_t tokens_ = 0;
};

// A prompt for an endpoint.
struct Question {
  WholePrompt prompt;
  GenerateOptions options;  // on_text is taken for Ctrl-C
};

struct UnitJob {
  nlohmann::ordered_json identity;  // for run.json: everything that the results depend on
  MakePlaceOf places;
  std::vector<Unit> units;  // of the whole run, in the order in which they are computed
  // The journal line of units[i], on a local engine.
  std::function<nlohmann::ordered_json(std::size_t i, UnitProgress& progress)> compute;
  // Changes what it has from the unit that it is the same as, where a task must.
  std::function<void(std::size_t i, nlohmann::ordered_json& line)> same{};
  // Behind an endpoint a unit is one prompt. Prompts are made in order, shortly before they are
  // sent; answers arrive in any order.
  std::function<Question(std::size_t i)> question{};
  std::function<nlohmann::ordered_json(std::size_t i, const WholePrompt& prompt,
                                       const Generation& said)>
      answered{};
  // The line of a prompt that got no answer, without the reason.
  std::function<nlohmann::ordered_json(std::size_t i)> unanswered{};
};

// A job of an object with units() and compute(), perhaps same() and, for a task that can ask an
// endpoint, question(), answered() and unanswered(). The object must outlive the job.
template <typename Units>
UnitJob make_job(Units& units, nlohmann::ordered_json identity, MakePlaceOf places) {
  UnitJob job;
  job.identity = std::move(identity);
  job.places = std::move(places);
  job.units = units.units();
  job.compute = [&](std::size_t i, UnitProgress& progress) { return units.compute(i, progress); };
  if constexpr (requires { &Units::same; }) {
    job.same = [&](std::size_t i, nlohmann::ordered_json& line) { units.same(i, line); };
  }
  if constexpr (requires { &Units::question; }) {
    job.question = [&](std::size_t i) { return units.question(i); };
    job.answered = [&](std::size_t i, const WholePrompt& prompt, const Generation& said) {
      return units.answered(i, prompt, said);
    };
    job.unanswered = [&](std::size_t i) { return units.unanswered(i); };
  }
  return job;
}

// Leaves all units of this shard in the folder. Throws Error: interrupted (with the command to
// resume), corrupt, and whatever the engine throws, with the unit named.
RunCost run_units(const Target& target, const UnitJob& job, RunFolder& folder, Progress& progress);

// Runs the units and writes results.json, made of the journal by `collect`.
using Collect = std::function<ResultTable(const nlohmann::ordered_json& run,
                                          const std::vector<nlohmann::ordered_json>& units)>;
ResultTable run_job(const Target& target, const UnitJob& job, RunFolder& folder, Progress& progress,
                    const Collect& collect);

}  // namespace mrrope::eval
