// SPDX-License-Identifier: Apache-2.0
#include "eval/run/runner.h"

#include <set>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/run/ask.h"
#include "eval/run/shard.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

ordered_json compute_named(const UnitJob& job, std::size_t i, UnitProgress& progress) {
  try {
    return job.compute(i, progress);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::interrupted) throw;
    throw Error(e.kind(), cat(e.what(), " (", job.units[i].where, ")"),
                e.hint().empty() ? "give the same command again to resume after the finished units"
                                 : e.hint());
  }
}

void ask_units(PromptModel& model, const UnitJob& job, const std::vector<std::size_t>& left,
               RunFolder& folder, Progress& progress, UnitProgress& report) {
  AskJob ask;
  ask.count = left.size();
  ask.make = [&](std::size_t i) { return job.question(left[i]); };
  ask.done = [&](std::size_t i, const WholePrompt& prompt, const WholeAnswer& answer) {
    const bool answered = answer.failed.empty();
    ordered_json line =
        answered ? job.answered(left[i], prompt, answer.said) : job.unanswered(left[i]);
    if (!answered) line["no_answer"] = valid_utf8(answer.failed);
    if (!answer.troubles.empty()) line["troubles"] = answer.troubles;
    report.advance(job.units[left[i]].cost, answered ? std::int64_t(prompt.tokens.size()) : 0);
    folder.append(line, report.so_far());
    if (answered) report.unit_done();
  };
  note_troubles(ask_all(model, ask, progress), folder);
  report.check();
}

}  // namespace

void UnitProgress::check() const {
  if (interrupt_requested()) throw folder_.interrupted(done_, units_);
}

void UnitProgress::advance(std::int64_t cost, std::int64_t tokens) {
  tokens_ += tokens;
  progress_.advance(cost);
}

RunCost run_units(const Target& target, const UnitJob& job, RunFolder& folder, Progress& progress) {
  std::vector<std::int64_t> costs;
  for (const Unit& unit : job.units) costs.push_back(unit.cost);
  const std::vector<bool> mine = assign_shard(costs, folder.info().shard);
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < job.units.size(); ++i) {
    if (mine[i]) own.push_back(i);
  }
  folder.begin(job.identity, own.size());

  std::vector<ordered_json> finished;  // without an answer a unit is not done
  for (const ordered_json& unit : folder.units()) {
    if (!unit.contains("no_answer")) finished.push_back(unit);
  }
  const std::vector<UnitPlace> places = unit_places(job.places, folder.run(), finished);
  const std::set<UnitPlace> done(places.begin(), places.end());
  UnitProgress report(folder, progress, own.size());
  std::int64_t total = 0;
  std::int64_t before = 0;
  std::vector<std::size_t> left;
  for (const std::size_t i : own) {
    total += job.units[i].cost;
    if (done.count(job.units[i].place) == 0) {
      left.push_back(i);
    } else {
      before += job.units[i].cost;
      report.unit_done();
    }
  }
  progress.start(total, before);
  if (target.prompts() != nullptr) {
    ask_units(*target.prompts(), job, left, folder, progress, report);
  } else {
    for (const std::size_t i : left) {
      progress.label(job.units[i].label);
      folder.append(compute_named(job, i, report), report.so_far());
      report.unit_done();
    }
  }
  const RunCost cost = report.so_far();
  progress.finish();
  return cost;
}

}  // namespace mrrope::eval
