// SPDX-License-Identifier: Apache-2.0
#include "eval/run/runner.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/files/output_file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/plan_file.h"

namespace mrrope::eval {

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
    std::unique_lock lock(mutex_);
    closed_ = true;
    waiting_.clear();
    lock.unlock();
    changed_.notify_all();
    if (under_way_ > 0) model_.cancel();
    for (std::thread& t : threads_) t.join();
  }
  Askers(const Askers&) = delete;
  Askers& operator=(const Askers&) = delete;

  void send(Item item) {
    ++under_way_;
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(item));
    changed_.notify_one();
  }

  std::size_t under_way() const { return under_way_; }

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
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Item item = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      try {
        item.answer = model_.ask(item.question.prompt, item.question.options);
      } catch (...) {
        item.error = std::current_exception();
      }
      lock.lock();
      done_.push_back(std::move(item));
      through_.notify_one();
    }
  }

  PromptModel& model_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable through_;
  std::deque<Item> waiting_;
  std::deque<Item> done_;
  std::size_t under_way_ = 0;  // of the thread that sends and receives
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

// "status 429 x3, cut x1"; empty where there are none.
std::string retries_text(const std::map<std::string, int>& counts) {
  return joined(mapped(counts, [](const auto& c) { return cat(c.first, " x", c.second); }), ", ");
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
    ordered_json line = item.question.line(answered ? &answer.said : nullptr);
    if (!answered) line["no_answer"] = valid_utf8(answer.failed);
    if (!answer.troubles.empty()) line["troubles"] = answer.troubles;
    const std::int64_t tokens = answered ? std::int64_t(item.question.prompt.tokens.size()) : 0;
    report.advance(item.unit->cost, tokens);
    folder.append(line, report.so_far());
    in_a_row = answered ? 0 : in_a_row + 1;
    if (answered) {
      report.unit_done();
      continue;
    }
    ++failed;
    last_failure = answer.failed;
    fail_if(in_a_row >= std::max(kMaxConsecutiveFailures, parallel),
            cat("no answer to ", in_a_row, " prompts in a row: ", last_failure),
            "rerun the command once the server is back: answers so far are kept");
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
    throw Error(
        e.kind(), cat(e.what(), " (", unit.where, ")"),
        e.hint().empty() ? "rerun the command to resume after the finished units" : e.hint());
  }
}

// The units of this shard.
std::vector<std::size_t> own_units(const std::vector<Unit>& units, const Shard& shard) {
  const std::vector<bool> mine = assign_shard(mapped(units, &Unit::cost), shard);
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

  const std::vector<UnitPlace> places = unit_places(folder.recorded());
  std::map<UnitPlace, std::size_t> done;             // the line of each
  for (std::size_t i = 0; i < places.size(); ++i) {  // without an answer a unit is not done
    if (!folder.units()[i].contains("no_answer")) done[places[i]] = i;
  }
  UnitProgress report(folder, progress, own.size());
  std::int64_t total = 0;
  std::int64_t before = 0;
  std::vector<std::size_t> left;
  for (const std::size_t i : own) {
    total += units[i].cost + units[i].answers;
    if (done.count(units[i].place) == 0) {
      left.push_back(i);
    } else {
      before += units[i].cost + units[i].answers;
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

// The first of the methods before methods[m], in their order, that is the same model.
std::optional<std::size_t> same_before(const std::vector<MethodUnderTest>& methods, std::size_t m,
                                       std::int64_t longest) {
  for (std::size_t i = 0; i < m; ++i) {
    if (same_model(methods[i], methods[m], longest)) return i;
  }
  return std::nullopt;
}

using Seconds = std::chrono::duration<double>;
constexpr Seconds kRedraw{0.1};
constexpr Seconds kLine{15};
constexpr int kBar = 20;
constexpr std::size_t kWidest = 79;  // a bar that wraps cannot be redrawn in place

}  // namespace

ordered_json Target::identity() const {
  if (prompts_ != nullptr) {
    return {{"name", prompts_->name()},
            {"architecture", "served"},
            {"train_length", prompts_->train_length()}};
  }
  const Model& facts = timelines_->facts();
  return {{"name", facts.name},
          {"architecture", facts.architecture},
          {"train_length", facts.geometry.train_length}};
}

bool MethodUnderTest::untouched() const {
  if (!ladder || ladder->elastic()) return false;
  const Plan& plan = ladder->rungs().front().plan;
  return plan.attention_scale() == 1 &&
         std::all_of(plan.factor().begin(), plan.factor().end(), [](double f) { return f == 1; });
}

bool same_model(const MethodUnderTest& a, const MethodUnderTest& b, std::int64_t longest) {
  if (!a.ladder || !b.ladder) return false;
  for (std::int64_t length = 0; length < longest;) {
    const Rung& one = a.ladder->rungs()[a.ladder->rung_at(length + 1)];
    const Rung& other = b.ladder->rungs()[b.ladder->rung_at(length + 1)];
    const bool near = one.border > 0 || other.border > 0;
    if (!one.plan.same_numbers(other.plan) || one.border != other.border ||
        one.shift != other.shift || (near && a.ladder->near() != b.ladder->near())) {
      return false;
    }
    length = std::min(one.length, other.length);
  }
  return true;
}

void note_same_models(RunFolder& folder, const std::vector<MethodUnderTest>& methods,
                      const std::vector<std::int64_t>& lengths) {
  std::set<std::string> notes;
  for (const std::int64_t longest : lengths) {
    std::map<std::size_t, std::vector<std::string>> names;
    for (std::size_t m = 0; m < methods.size(); ++m) {
      const auto first = same_before(methods, m, longest);
      if (first) names[*first].push_back(methods[m].name);
    }
    const auto texts = mapped(names, [&](const auto& same) {
      return cat("the same model as ", methods[same.first].name, " up to ", length_text(longest),
                 ", so measured once: ", joined(same.second, ", "));
    });
    if (!texts.empty()) notes.insert(joined(texts, "; "));
  }
  for (const std::string& text : notes) folder.add_note(text);
}

MethodUnderTest served_method() { return {"served", std::nullopt}; }

std::vector<std::int64_t> sorted_lengths(std::vector<std::int64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

std::vector<std::int64_t> doubling(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = first; n < last; n *= 2) lengths.push_back(n);
  lengths.push_back(last);
  return lengths;
}

void check_names(const std::vector<MethodUnderTest>& methods) {
  std::set<std::string> names;
  for (const MethodUnderTest& method : methods) {
    refuse_if(!names.insert(method.name).second, cat("method ", method.name, " is given twice"),
              "name each method once");
  }
}

void check_methods(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const std::vector<std::int64_t>& lengths) {
  if (methods.empty()) refuse("no method to evaluate", "give --method none,yarn,pro");
  if (lengths.empty()) refuse("no length to evaluate", "give --lengths 1k,2k,4k");
  const std::int64_t longest = lengths.back();
  refuse_if(longest > target.context_length(),
            cat("length ", longest, " does not fit the context of ", target.context_length()),
            cat("give --ctx ", longest));
  check_names(methods);
  for (const MethodUnderTest& method : methods) {
    if (method.ladder && longest > method.ladder->longest()) {
      refuse(cat("length ", longest, " is beyond the last rung of ", method.name, ", ",
                 method.ladder->longest()),
             cat("give --ctx ", longest, "; a plan file must be made again for that length"));
    }
  }
}

ordered_json methods_identity(const std::vector<MethodUnderTest>& methods) {
  ordered_json list = ordered_json::array();
  for (const MethodUnderTest& method : methods) {
    const Ladder* ladder = method.ladder ? &*method.ladder : nullptr;
    const Plan* plan = ladder != nullptr ? &ladder->rungs().back().plan : nullptr;
    list.push_back({{"method", method.name},
                    {"plan", ladder != nullptr ? ladder_digest(*ladder) : "served"},
                    {"scale", plan != nullptr ? ordered_json(plan->extension().scale) : nullptr},
                    {"untouched", method.untouched()},
                    {"numbers", ladder == nullptr   ? ordered_json()
                                : ladder->elastic() ? ladder_json(*ladder)
                                                    : plan_json(*plan)}});
  }
  return list;
}

ordered_json run_identity(const std::string& task, const Target& target,
                          const std::vector<MethodUnderTest>& methods, ordered_json settings) {
  return {{"task", task},
          {"model", target.identity()},
          {"engine", target.prompts() != nullptr ? target.prompts()->description()
                                                 : target.timelines()->description()},
          {"settings", std::move(settings)},
          {"methods", methods_identity(methods)}};
}

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
      all.back().cost = all.back().answers = 0;
    }
  }
}

ResultTable run_job(const Target& target, UnitWork& work, const ordered_json& identity,
                    RunFolder& folder, Progress& progress) {
  const RunCost cost = run_units(target, work, identity, folder, progress);
  ResultTable table = results_of(folder.recorded());
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
  const std::string& format = options.format;
  done.printed = format == "csv"       ? results_csv(done.table)
                 : format == "lm-eval" ? results_text(lm_eval_results(done.run, done.table))
                 : format == "json"    ? results_text(to_json(done.table))
                                       : to_text(done.table, options.shaded);
  if (options.out.empty()) return done;
  const auto wrote = [&](const char* file) {
    done.notes.push_back(cat("wrote ", (options.out / file).string()));
  };
  wrote("results.json");
  if (format == "csv" || format == "lm-eval") {
    const char* file = format == "csv" ? "results.csv" : "results_lm-eval.json";
    write_atomically(options.out / file, done.printed);
    wrote(file);
  }
  return done;
}

Progress::Progress(std::function<void(const std::string&)> write, bool terminal,
                   std::function<Clock::time_point()> now)
    : write_(std::move(write)), terminal_(terminal), now_(std::move(now)) {}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // failing to clear the bar is not fatal
  }
}

void Progress::start(std::int64_t total, std::int64_t done, std::string unit) {
  finish();
  total_ = total;
  before_ = done;
  computed_ = 0;
  unit_ = std::move(unit);
  started_ = shown_ = now_();
  running_ = true;
  if (silent_.count() == 0) show(false);
}

void Progress::label(std::string text) { label_ = std::move(text); }

void Progress::advance(std::int64_t amount) {
  computed_ += amount;
  if (running_) show(false);
}

void Progress::finish() {
  if (running_ && visible_) show(true);
  visible_ = false;
  running_ = false;
}

double Progress::seconds() const { return Seconds(now_() - started_).count(); }

void Progress::show(bool last) {
  if (!write_) return;
  const Clock::time_point now = now_();
  if (last) {
    write_(terminal_ ? "\r\x1b[K" : line() + "\n");
    return;
  }
  if (now - started_ < silent_) return;
  if (visible_ && now - shown_ < (terminal_ ? kRedraw : kLine)) return;
  write_(terminal_ ? "\r" + line() + "\x1b[K" : line() + "\n");
  visible_ = true;
  shown_ = now;
}

double Progress::cost(std::int64_t tokens) const {
  return double(tokens) * (1 + growth_ * (from_ + double(tokens) / 2));
}

std::string Progress::line() const {
  const std::int64_t done = std::min(total_, before_ + computed_);
  const double part = total_ > 0 ? cost(done) / cost(total_) : 1;
  std::string text;
  if (terminal_) {
    const int filled = int(part * kBar);
    text = "[" + std::string(std::size_t(filled), '#') +
           std::string(std::size_t(kBar - filled), '-') + "] ";
  }
  text += fixed(std::floor(100 * part), 0) + "%";
  std::string pace;
  const double elapsed = seconds();
  if (elapsed > 0 && computed_ > 0) {
    const double speed = double(computed_) / elapsed;
    pace = "  " + (speed < 10 ? fixed(speed, 1) : fixed(speed, 0)) + " " + unit_ + "/s";
    const double rest = (cost(total_) - cost(done)) / (cost(done) - cost(done - computed_));
    pace += "  " + duration_text(elapsed * rest) + " left";
  }
  if (!label_.empty()) text += "  " + label_;
  const std::size_t room = kWidest - std::min(kWidest, pace.size());
  if (terminal_ && text.size() > room) text.replace(room - 3, std::string::npos, "...");
  return text + pace;
}

std::function<void(const std::string&)> stderr_writer() {
  return [](const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  };
}

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

std::vector<Token> answer_tokens(const Tokenizer& tokenizer, std::string_view prompt_end,
                                 const std::string& answer) {
  // Only the end decides how the first word of the answer is cut.
  constexpr std::size_t kEnd = 24;
  std::string before(prompt_end.substr(prompt_end.size() - std::min(kEnd, prompt_end.size())));
  const std::vector<Token> head = tokenizer.tokenize(before, false, false);
  const bool space = before.empty() || before.back() == ' ' || before.back() == '\n';
  std::vector<Token> whole = tokenizer.tokenize(before + (space ? "" : " ") + answer, false, false);
  whole.erase(whole.begin(), whole.begin() + std::ptrdiff_t(common_prefix(head, whole)));
  return whole;
}

double answer_loss(Timeline& timeline, std::int64_t prompt, std::span<const Token> answer) {
  timeline.truncate(prompt);
  const std::vector<double> scores = timeline.append_scored(answer);
  return -std::accumulate(scores.begin(), scores.end(), 0.0) / double(scores.size());
}

}  // namespace mrrope::eval
