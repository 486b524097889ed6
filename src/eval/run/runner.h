// SPDX-License-Identifier: Apache-2.0
// Runs the units of work of a task: deals them to shards, skips what the journal holds, computes
// the rest on a local engine or asks an endpoint, and journals each one.
#pragma once

#include "eval/run/run_folder.h"
#include "model/timeline_model.h"

namespace mrrope::eval {

// What a task runs on: a model with timelines, or one that answers whole prompts. For its cost
// alone, a tokenizer and the context that a model would have. Does not own them.
class Target {
 public:
  Target(TimelineModel& model) : timelines_(&model), tokenizer_(&model) {}  // NOLINT: implicit
  Target(PromptModel& model) : prompts_(&model), tokenizer_(&model) {}      // NOLINT: implicit
  Target(const Tokenizer& tokenizer, std::int64_t context)
      : tokenizer_(&tokenizer), context_(context) {}

  // At most one of the two is not null.
  TimelineModel* timelines() const noexcept { return timelines_; }
  PromptModel* prompts() const noexcept { return prompts_; }
  const Tokenizer& tokenizer() const noexcept { return *tokenizer_; }
  std::int64_t context_length() const {
    if (prompts_ != nullptr) return prompts_->context_length();
    return timelines_ != nullptr ? timelines_->context_length() : context_;
  }

  // For run.json: {name, architecture, train_length}.
  ordered_json identity() const;

 private:
  TimelineModel* timelines_ = nullptr;
  PromptModel* prompts_ = nullptr;
  const Tokenizer* tokenizer_;
  std::int64_t context_ = 0;
};

struct MethodUnderTest {
  std::string name;              // the row: "pro", "elastic:pro", "vendor", ...
  std::optional<Ladder> ladder;  // absent behind an endpoint: the server has its own scaling

  bool elastic() const { return ladder && ladder->elastic(); }
  bool untouched() const;  // the model as shipped
};

// Whether the two are the same model for every sequence up to this length: the same plan number by
// number, such as every growing plan inside the window and none.
bool same_model(const MethodUnderTest& a, const MethodUnderTest& b, std::int64_t longest);

// Adds a note such as "the same model as none up to 1K, so measured once: uni, pro" for each of the
// lengths where there are such methods.
void note_same_models(RunFolder& folder, const std::vector<MethodUnderTest>& methods,
                      const std::vector<std::int64_t>& lengths);

// The only row of a run against an endpoint.
MethodUnderTest served_method();

// Ascending, each once.
std::vector<std::int64_t> sorted_lengths(std::vector<std::int64_t> lengths);

// The first, and twice as much each time up to the last, which is always there.
std::vector<std::int64_t> doubling(std::int64_t first, std::int64_t last);

// Throws Error (usage) if two have the same name.
void check_names(const std::vector<MethodUnderTest>& methods);

// Throws Error (usage): no method, a method named twice, no length, or the longest length beyond
// the context or the last rung of a ladder. Lengths are sorted.
void check_methods(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const std::vector<std::int64_t>& lengths);

// Their entries in run.json.
ordered_json methods_identity(const std::vector<MethodUnderTest>& methods);

// What every run.json has; a task adds its texts.
ordered_json run_identity(const std::string& task, const Target& target,
                          const std::vector<MethodUnderTest>& methods, ordered_json settings);

// Progress on stderr: a bar on a terminal, redrawn in place; elsewhere a line now and then; nothing
// in the first two seconds, unless at_once(). It uses no colours, so NO_COLOR holds.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // write: where text goes; nothing is ever shown when empty. terminal: draw a bar.
  // now: for tests.
  explicit Progress(std::function<void(const std::string&)> write = {}, bool terminal = false,
                    std::function<Clock::time_point()> now = Clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // total: tokens (or whatever `unit` says) of the whole job; done: of an earlier run.
  void start(std::int64_t total, std::int64_t done = 0, std::string unit = "tok");
  void at_once() noexcept { silent_ = {}; }
  // A token costs more by `growth` for each one before it; `from`: what the text has before the
  // job.
  void grow(double growth, std::int64_t from) noexcept { growth_ = growth, from_ = double(from); }
  // What is being worked on, e.g. "pro  document 3 of 10".
  void label(std::string text);
  void advance(std::int64_t amount);
  // Part of the job that an earlier run did.
  void skip(std::int64_t amount) { before_ += amount; }
  // Clears the bar, or writes the last line where lines were written.
  void finish();

  double seconds() const;  // since start()
  std::int64_t computed() const noexcept { return computed_; }

 private:
  void show(bool last);
  std::string line() const;
  double cost(std::int64_t tokens) const;

  std::function<void(const std::string&)> write_;
  bool terminal_;
  std::function<Clock::time_point()> now_;
  std::string unit_;
  std::string label_;
  std::int64_t total_ = 0;
  std::int64_t before_ = 0;
  std::int64_t computed_ = 0;
  double growth_ = 0;
  double from_ = 0;
  std::chrono::duration<double> silent_{2};
  Clock::time_point started_;
  Clock::time_point shown_;
  bool visible_ = false;
  bool running_ = false;
};

// The tokens of an answer that follows a prompt with this end.
std::vector<Token> answer_tokens(const Tokenizer& tokenizer, std::string_view prompt_end,
                                 const std::string& answer);
// How well an answer is expected after the first `prompt` tokens of a timeline, which is cut back
// to them and then holds the answer too: nats per token.
double answer_loss(Timeline& timeline, std::int64_t prompt, std::span<const Token> answer);

// To stderr, with a bar if that is a terminal (and TERM is not "dumb").
std::function<void(const std::string&)> stderr_writer();
bool stderr_is_terminal();

// One line of the journal. A unit starts with no timeline alive: the state of an engine's cache
// then does not depend on earlier units, nor on whether the run was interrupted between them.
struct Unit {
  UnitPlace place;
  std::int64_t cost = 0;  // tokens, for shards and progress
  std::string label;      // for progress: "pro  document 3 of 10"
  std::string where;      // for errors: "method pro, document a.txt"
  std::string method{};   // of the line; add_units() sets what follows
  // An earlier unit: the same model on the same text. It is in the same shard, and this one gets
  // its line.
  std::optional<std::size_t> same_as{};
  std::int64_t answers = 0;  // tokens to write that `cost` does not count, for progress
};

// How a task uses the engine; part of the run's identity.
struct EngineUse {
  // Tokens per call; progress and Ctrl-C are checked between calls. Other batches round
  // differently.
  std::int64_t batch = 2048;
  // false: every prompt is computed alone. The answers are the same unless the top two logits
  // almost tie; for tests and cross-checks.
  bool share = true;
};

// What a unit reports while it is computed.
class UnitProgress {
 public:
  UnitProgress(RunFolder& folder, Progress& progress, std::size_t units)
      : folder_(folder), progress_(progress), units_(units) {}

  void begin(const Unit& unit);
  // A unit that takes long has parts, one per answer, so that a stop loses little. Those that an
  // earlier call finished, in the order in which they were computed.
  const std::vector<ordered_json>& parts() const noexcept { return parts_; }
  void part_done(ordered_json part);
  // cost: the share of the unit's cost that its finished parts save.
  void skip(std::int64_t cost) { progress_.skip(cost); }

  // Between batches. Throws Error (interrupted) after Ctrl-C.
  void check() const;
  // Appends tokens batch by batch, up to the batch with the last of the tokens that are needed.
  void read(Timeline& timeline, std::span<const Token> tokens, std::int64_t batch,
            const std::function<void(std::int64_t)>& done = {},
            std::size_t needed = SIZE_MAX) const;
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
  std::vector<ordered_json> parts_;
  std::size_t done_ = 0;
  std::int64_t tokens_ = 0;
};

// A prompt for an endpoint.
struct Question {
  WholePrompt prompt;
  GenerateOptions options;  // on_text is taken for Ctrl-C
  // The line of its unit. Null: no answer came, and the runner adds the reason.
  std::function<ordered_json(const Generation* said)> line{};
};

// The units of one run of a task.
class UnitWork {
 public:
  virtual ~UnitWork() = default;

  // Of the whole run, in the order in which they are computed. Called once.
  virtual std::vector<Unit> units() = 0;
  // Its journal line, on a local engine.
  virtual ordered_json compute(const Unit& unit, UnitProgress& progress) = 0;
  // Changes what it has from the unit that it is the same as, where a task must.
  virtual void same(const Unit& /*unit*/, ordered_json& /*line*/) const {}

  // For a task that can ask an endpoint, where a unit is one prompt. Prompts are made in order,
  // shortly before they are sent; answers arrive in any order.
  virtual Question question(const Unit& /*unit*/) { return {}; }
};

// Adds what make(m) returns for every method. A method that is the same model as an earlier one up
// to this length costs nothing.
void add_units(std::vector<Unit>& all, const std::vector<MethodUnderTest>& methods,
               std::int64_t longest, const std::function<Unit(std::size_t m)>& make);

// Leaves all units of this shard in the folder, then writes results.json, made of the journal. The
// identity names the task, whose row says how. Throws Error: interrupted (with the command to
// resume), corrupt, and whatever the engine throws, with the unit named; behind an endpoint what
// ask() throws, or (failed) after as many failures in a row as prompts are in flight, at least 8.
ResultTable run_job(const Target& target, UnitWork& work, const ordered_json& identity,
                    RunFolder& folder, Progress& progress);

struct EvaluationOptions {
  std::filesystem::path out{};  // folder of the run; empty: everything stays in memory
  RunInfo info{};
  std::string format = "text";  // text, json, csv or lm-eval; the last two are also written to out
  bool shaded = false;          // text with coloured backgrounds
};

struct Evaluation {
  ResultTable table;
  ordered_json run;                // run.json
  std::string printed;             // the results in the format; of a shard what it has done
  std::vector<std::string> notes;  // what the user should know, files that were written
};

// One evaluation from start to end: its folder, the units that are left, results.json, and the
// results in the format asked for. run: one of run_perplexity(), run_needle() and run_samples(),
// with a task's own options. Throws Error as that does.
using RunTask = std::function<ResultTable(RunFolder& folder, Progress& progress)>;
Evaluation run_evaluation(const EvaluationOptions& options, Progress& progress, const RunTask& run);

}  // namespace mrrope::eval
