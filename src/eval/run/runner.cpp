// SPDX-License-Identifier: Apache-2.0
#include "eval/run/runner.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/files/output_file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/run/shard.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

constexpr std::size_t kMaxConsecutiveFailures = 8;

struct Item {
  const Unit* unit = nullptr;
  Question question;
  WholeAnswer answer;
  std::exception_ptr error;
};

// The threads that wait for the server.
class Askers {
 public:
  explicit Askers(PromptModel& model) : model_(model) {
    for (int i = 0; i < model.parallel(); ++i) threads_.emplace_back([this] { work(); });
  }
  ~Askers() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      waiting_.clear();
    }
    changed_.notify_all();
    if (under_way_ > 0) model_.cancel();
    for (std::thread& t : threads_) t.join();
  }
  Askers(const Askers&) = delete;
  Askers& operator=(const Askers&) = delete;

  void send(Item item) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(item));
      ++under_way_;
    }
    changed_.notify_one();
  }

  std::size_t under_way() const {
    const std::lock_guard lock(mutex_);
    return under_way_;
  }

  // A finished one, or false after a tenth of a second.
  bool receive(Item& item) {
    std::unique_lock lock(mutex_);
    through_.wait_for(lock, std::chrono::milliseconds(100), [&] { return !done_.empty(); });
    if (done_.empty()) return false;
    item = std::move(done_.front());
    done_.pop_front();
    --under_way_;
    return true;
  }

 private:
  void work() {
    for (;;) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        item = std::move(waiting_.front());
        waiting_.pop_front();
      }
      try {
        item.answer = model_.ask(item.question.prompt, item.question.options);
      } catch (...) {
        item.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        done_.push_back(std::move(item));
      }
      through_.notify_one();
    }
  }

  PromptModel& model_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable through_;
  std::deque<Item> waiting_;
  std::deque<Item> done_;
  std::size_t under_way_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

// "status 429 x3, cut x1"; empty where there are none.
std::string retries_text(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += cat(text.empty() ? "" : ", ", kind, " x", count);
  }
  return text;
}

// Prompts for a model behind an endpoint, several in flight at once. Answers are journaled in this
// thread. Returns early after Ctrl-C; answers that arrived before are journaled.
void ask_units(PromptModel& model, UnitWork& work, const std::vector<Unit>& units,
               const std::vector<std::size_t>& left, RunFolder& folder, Progress& progress,
               UnitProgress& report) {
  std::map<std::string, int> retries;
  std::size_t failed = 0;
  std::string last_failure;
  const auto parallel = std::size_t(model.parallel());
  const std::size_t max_ready = parallel + parallel / 4 + 1;  // a few are ready to send
  std::size_t next = 0;
  std::size_t in_a_row = 0;
  Askers askers(model);
  while ((next < left.size() || askers.under_way() > 0) && !interrupt_requested()) {
    while (next < left.size() && askers.under_way() < max_ready && !interrupt_requested()) {
      Item item{&units[left[next]], work.question(units[left[next]]), {}, nullptr};
      item.question.options.on_text = [](std::string_view) { return !interrupt_requested(); };
      askers.send(std::move(item));
      ++next;
    }
    const std::string wrong = retries_text(retries);
    progress.label(cat("prompt ", next, " of ", left.size(), ", ",
                       std::min(askers.under_way(), parallel), " in flight",
                       wrong.empty() ? "" : "; retried after: ", wrong));
    Item item;
    if (!askers.receive(item)) continue;
    if (item.error) std::rethrow_exception(item.error);
    const WholeAnswer& answer = item.answer;
    const bool answered = answer.failed.empty();
    if (interrupt_requested() && !answered) break;
    for (const auto& [kind, count] : answer.troubles) retries[kind] += count;
    const WholePrompt& prompt = item.question.prompt;
    ordered_json line =
        answered ? work.answered(*item.unit, prompt, answer.said) : work.unanswered(*item.unit);
    if (!answered) line["no_answer"] = valid_utf8(answer.failed);
    if (!answer.troubles.empty()) line["troubles"] = answer.troubles;
    report.advance(item.unit->cost, answered ? std::int64_t(prompt.tokens.size()) : 0);
    folder.append(line, report.so_far());
    in_a_row = answered ? 0 : in_a_row + 1;
    if (answered) {
      report.unit_done();
      continue;
    }
    ++failed;
    last_failure = answer.failed;
    if (in_a_row >= std::max(kMaxConsecutiveFailures, parallel)) {
      throw Error(ErrorKind::failed,
                  cat("no answer to ", in_a_row, " prompts in a row: ", last_failure),
                  "give the same command again once the server is back: answers so far are kept");
    }
  }
  if (!retries.empty()) {
    folder.add_note(cat("problems with the server: ", retries_text(retries),
                        retries.count("usage") > 0
                            ? " (usage: its token counts differ from what was sent or asked for)"
                            : ""));
  }
  if (failed > 0) {
    folder.add_note(cat(
        failed,
        " prompts got no answer and are excluded from the results; the last one: ", last_failure));
  }
  report.check();
}

ordered_json compute_named(UnitWork& work, const Unit& unit, UnitProgress& progress) {
  try {
    return work.compute(unit, progress);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::interrupted) throw;
    throw Error(e.kind(), cat(e.what(), " (", unit.where, ")"),
                e.hint().empty() ? "give the same command again to resume after the finished units"
                                 : e.hint());
  }
}

// The units of this shard.
std::vector<std::size_t> own_units(const std::vector<Unit>& units, const Shard& shard) {
  std::vector<std::int64_t> costs;
  for (const Unit& unit : units) costs.push_back(unit.cost);
  const std::vector<bool> mine = assign_shard(costs, shard);
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (mine[units[i].same_as.value_or(i)]) own.push_back(i);
  }
  return own;
}

RunCost run_units(const Target& target, UnitWork& work, const ordered_json& identity,
                  RunFolder& folder, Progress& progress) {
  const std::vector<Unit> units = work.units();
  const std::vector<std::size_t> own = own_units(units, folder.info().shard);
  folder.begin(identity, own.size());

  const std::vector<UnitPlace> places =
      unit_places(task_of(identity).places, folder.run(), folder.units());
  std::map<UnitPlace, std::size_t> done;             // the line of each
  for (std::size_t i = 0; i < places.size(); ++i) {  // without an answer a unit is not done
    if (!folder.units()[i].contains("no_answer")) done[places[i]] = i;
  }
  UnitProgress report(folder, progress, own.size());
  std::int64_t total = 0;
  std::int64_t before = 0;
  std::vector<std::size_t> left;
  for (const std::size_t i : own) {
    total += units[i].cost;
    if (done.count(units[i].place) == 0) {
      left.push_back(i);
    } else {
      before += units[i].cost;
      report.unit_done();
    }
  }
  progress.start(total, before);
  const std::size_t parts = left.empty() ? 0 : folder.parts(units[left.front()].place).size();
  if (parts > 0) {
    folder.add_note(
        cat("resuming: ", parts, " parts of a unit already done in ", folder.folder().string()));
  }
  if (target.prompts() != nullptr) {
    ask_units(*target.prompts(), work, units, left, folder, progress, report);
  } else {
    for (const std::size_t i : left) {
      const Unit& unit = units[i];
      report.begin(unit);
      const auto same = unit.same_as ? done.find(units[*unit.same_as].place) : done.end();
      ordered_json line;
      if (same == done.end()) {
        line = compute_named(work, unit, report);
      } else {
        line = folder.units()[same->second];
        line["same_as"] = line.at("method");
        line["method"] = unit.method;
        if (line.contains("tokens")) line["tokens"] = 0;
        work.same(unit, line);
      }
      folder.append(line, report.so_far());
      done[unit.place] = folder.units().size() - 1;
      report.unit_done();
    }
  }
  const RunCost cost = report.so_far();
  progress.finish();
  return cost;
}

std::string shard_text(const EvaluationOptions& options, const ordered_json& shard) {
  if (options.format == "json") return ordered_json{{"shard", shard}}.dump() + "\n";
  const std::size_t count = options.info.shard.count;
  return cat("shard ", to_text(options.info.shard), ": ", shard.at("units"), " units in ",
             options.out.string(), "; when all ", count,
             " are done, run: mrrope report DIR... -o WHOLE\n");
}

}  // namespace

void UnitProgress::check() const {
  if (interrupt_requested()) throw folder_.interrupted(done_, units_, parts_.size());
}

void UnitProgress::read(Timeline& timeline, std::span<const Token> tokens, std::int64_t batch,
                        const std::function<void(std::int64_t)>& done, std::size_t needed) const {
  for (std::size_t at = 0; at < std::min(tokens.size(), needed);) {
    check();
    const std::size_t size = std::min(std::size_t(batch), tokens.size() - at);
    timeline.append(tokens.subspan(at, size));
    if (done) done(std::int64_t(size));
    at += size;
  }
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

void add_units(std::vector<Unit>& all, const std::vector<MethodUnderTest>& methods,
               std::int64_t longest, const std::function<Unit(std::size_t)>& make) {
  const std::size_t first = all.size();
  for (std::size_t m = 0; m < methods.size(); ++m) {
    all.push_back(make(m));
    all.back().method = methods[m].name;
    if (const auto same = same_before(methods, m, longest)) {
      all.back().same_as = first + *same;
      all.back().cost = 0;
    }
  }
}

ResultTable run_job(const Target& target, UnitWork& work, const ordered_json& identity,
                    RunFolder& folder, Progress& progress) {
  const RunCost cost = run_units(target, work, identity, folder, progress);
  ResultTable table = task_of(identity).results(folder.run(), folder.units());
  folder.finish(results_text(to_json(table)), cost);
  return table;
}

Evaluation run_evaluation(const EvaluationOptions& options, Progress& progress,
                          const RunTask& run) {
  RunFolder folder = options.out.empty() ? RunFolder() : RunFolder(options.out, options.info);
  Evaluation done;
  done.table = run(folder, progress);
  done.run = folder.run();
  done.notes = folder.notes();
  if (options.info.shard.part()) {
    done.printed = shard_text(options, done.run.at("shard"));
    return done;
  }
  const auto wrote = [&](const char* file) {
    done.notes.push_back(cat("wrote ", (options.out / file).string()));
  };
  if (!options.out.empty()) wrote("results.json");
  const char* file = nullptr;
  if (options.format == "csv") {
    file = "results.csv";
    done.printed = results_csv(done.table);
  } else if (options.format == "lm-eval") {
    file = "results_lm-eval.json";
    done.printed = results_text(lm_eval_results(done.run, done.table));
  } else {
    done.printed = options.format == "json" ? results_text(to_json(done.table))
                                            : to_text(done.table, options.shaded);
  }
  if (file != nullptr && !options.out.empty()) {
    write_atomically(options.out / file, done.printed);
    wrote(file);
  }
  return done;
}

}  // namespace mrrope::eval
