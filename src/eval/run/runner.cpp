// SPDX-License-Identifier: Apache-2.0
#include "eval/run/runner.h"

#include <map>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/results/result_formats.h"
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

// The line of a unit whose model and text are those of an earlier one.
ordered_json same_line(const UnitJob& job, std::size_t i, ordered_json line) {
  line["same_as"] = line.at("method");
  line["method"] = job.units[i].method;
  if (line.contains("tokens")) line["tokens"] = 0;
  if (job.same) job.same(i, line);
  return line;
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
  note_retries(ask_all(model, ask, progress), folder);
  report.check();
}

}  // namespace

void UnitProgress::check() const {
  if (interrupt_requested()) throw folder_.interrupted(done_, units_, parts_.size());
}

void UnitProgress::begin(const Unit& unit) {
  progress_.label(unit.label);
  place_ = unit.place;
  parts_ = folder_.parts(place_);
}

void UnitProgress::part_done(ordered_json part) {
  folder_.append_part(place_, part, so_far());
  parts_.push_back(std::move(part));
}

void UnitProgress::advance(std::int64_t cost, std::int64_t tokens) {
  tokens_ += tokens;
  progress_.advance(cost);
}

RunCost run_units(const Target& target, const UnitJob& job, RunFolder& folder, Progress& progress) {
  std::vector<std::int64_t> costs;
  for (const Unit& unit : job.units) costs.push_back(unit.cost);
  std::vector<bool> mine = assign_shard(costs, folder.info().shard);
  for (std::size_t i = 0; i < job.units.size(); ++i) {
    if (job.units[i].same_as) mine[i] = mine[*job.units[i].same_as];
  }
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < job.units.size(); ++i) {
    if (mine[i]) own.push_back(i);
  }
  folder.begin(job.identity, own.size());

  const std::vector<UnitPlace> places = unit_places(job.places, folder.run(), folder.units());
  std::map<UnitPlace, std::size_t> done;             // the line of each
  for (std::size_t i = 0; i < places.size(); ++i) {  // without an answer a unit is not done
    if (!folder.units()[i].contains("no_answer")) done[places[i]] = i;
  }
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
  const std::size_t parts = left.empty() ? 0 : folder.parts(job.units[left.front()].place).size();
  if (parts > 0) {
    folder.add_note(
        cat("resuming: ", parts, " parts of a unit already done in ", folder.folder().string()));
  }
  if (target.prompts() != nullptr) {
    ask_units(*target.prompts(), job, left, folder, progress, report);
  } else {
    for (const std::size_t i : left) {
      const Unit& unit = job.units[i];
      report.begin(unit);
      const auto same = unit.same_as ? done.find(job.units[*unit.same_as].place) : done.end();
      folder.append(same == done.end() ? compute_named(job, i, report)
                                       : same_line(job, i, folder.units()[same->second]),
                    report.so_far());
      done[unit.place] = folder.units().size() - 1;
      report.unit_done();
    }
  }
  const RunCost cost = report.so_far();
  progress.finish();
  return cost;
}

ResultTable run_job(const Target& target, const UnitJob& job, RunFolder& folder, Progress& progress,
                    const Collect& collect) {
  const RunCost cost = run_units(target, job, folder, progress);
  ResultTable table = collect(folder.run(), folder.units());
  folder.finish(results_text(to_json(table)), cost);
  return table;
}

}  // namespace mrrope::eval
