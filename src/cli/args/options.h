// SPDX-License-Identifier: Apache-2.0
// Flags that mean the same on every verb or on every task of mrrope eval, and what they become.
#pragma once

#include <CLI/CLI.hpp>
#include <type_traits>

#include "base/text.h"
#include "engine/remote/remote.h"
#include "engine/run/open.h"
#include "engine/run/speed.h"
#include "eval/run/runner.h"
#include "eval/text/documents.h"

namespace mrrope::cli {

using nlohmann::ordered_json;

// The largest number of samples, documents or positions that a flag takes. (CLI11 reads a negative
// number into an unsigned one without a word, so every such flag has a range: "least" in
// help.json.)
constexpr int kMostCounted = 1 << 24;

// "4096", "128k" (131072), "1m" (1048576). Throws Error (usage).
std::int64_t parse_length(const std::string& text);
// "1,1.5,2", or @FILE with a JSON list; flag is for the message. Throws Error (usage).
std::vector<double> parse_list(const std::string& text, const char* flag);

// A verb and its flags, which `run` gets when it was typed.
template <typename Flags>
struct Verb {
  CLI::App& app;
  Flags& flags;
};
// Below another one, with what args/help.json says of it.
CLI::App& add_named(CLI::App& above, const char* name);
template <typename Flags, typename Run>
Verb<Flags> add_verb(CLI::App& above, const char* name, Run run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& verb = add_named(above, name);
  verb.callback([flags, run] { run(*flags); });
  return {verb, *flags};
}

// Checks of values that say what a flag takes; the parser puts its name and a colon before that.
template <typename T>
CLI::Validator in_range(T low, T high) {
  CLI::Validator check = CLI::Range(low, high);
  return check.operation([=](std::string& text) {
    const std::optional<double> value = parse_double(text);
    const bool good = value && *value >= double(low) && *value <= double(high);
    return good ? "" : cat("takes a number from ", low, " to ", high, ", not '", text, "'");
  });
}
CLI::Validator among(const std::vector<std::string>& words);

// Gives a flag its words in args/help.json, and what those say about its values.
CLI::Option* with_words(const CLI::App& verb, CLI::Option* option);

template <typename T>
CLI::Option* add(CLI::App& verb, const char* name, T& value) {
  if constexpr (std::is_same_v<T, bool>) return with_words(verb, verb.add_flag(name, value));
  return with_words(verb, verb.add_option(name, value));
}

// The model, or a geometry without one.
struct SubjectFlags {
  std::string model;      // a path, the name of a local model, or a repository
  bool download = false;  // -hf: it is a repository
  std::optional<int> rotary_dim;
  std::optional<double> base;
  std::string train_ctx;
  bool replace_scaling = false;
};
// With the flags of a geometry without a file, for verbs that need no weights, or without.
enum class Takes { model, model_or_geometry };
void add_subject(CLI::App& verb, SubjectFlags& flags, Takes takes = Takes::model);

bool given(const SubjectFlags& flags);
// The model, and the geometry of it or of the flags. Throw Error (usage) where there is none.
Model model_of(const SubjectFlags& flags);
Geometry resolve(const SubjectFlags& flags);

// The methods, and how far they reach.
struct ExtensionFlags {
  std::vector<std::string> methods;  // each a list in the notation of mrrope/method.h
  std::optional<double> scale;
  std::string ctx;
  // Short forms of parameters, in the order of parameters(): --low 5 for pro(low=5).
  std::vector<std::string> parameters = std::vector<std::string>(mrrope::parameters().size());
  std::vector<std::string> plan_files;
  // A file that tune wrote, or none; empty: the one that is kept, if there is one.
  std::string profile;
  std::optional<MethodSpec> tuned = {};  // what take_profile() found in the place of auto
};
std::vector<std::string> method_names();
// without_method, without_ctx: what happens where the flag is not given, for the help. The short
// forms are not listed: they work with a note, for one version.
void add_extension(CLI::App& verb, ExtensionFlags& flags, const std::string& without_method,
                   const std::string& without_ctx);
inline constexpr const char* kWithoutMethod =
    "auto: none inside the window, far:pi beyond (Phi-3 and Phi-4: elastic:vendor)";

// --profile none: the profile that is kept is not wanted.
inline bool is_no_profile(const std::string& name) { return name == "none"; }
// Where auto is among the methods, for this many tokens: what tune found for this model, with a
// note. grows: whether a context that grows is wanted, or a static plan.
void take_profile(ExtensionFlags& flags, const Model& model, std::int64_t tokens, bool grows);

// --json and --format.
void add_format(CLI::App& verb, std::string& format);

// The methods, with the short forms filled in: a single method must use all of them, of several
// each gets those that it uses. Throws Error (usage) for one that none uses.
std::vector<MethodSpec> method_specs(const ExtensionFlags& flags);

// A method as a row of a table.
struct Candidate {
  std::string name;  // its notation, the path of a plan file, "from MODEL" or "vendor"
  Ladder ladder;
  MethodSpec method = {};  // as asked for; that of `auto` is not resolved
  MethodSpec meant = {};   // with a profile in the place of auto

  const Plan& plan() const { return ladder.rungs().back().plan; }
  // What auto stands for in this ladder; empty for other methods.
  std::string meaning() const;
};
// A note on stderr for a candidate that is auto.
void note_auto(const std::vector<Candidate>& candidates);

// Throws Error (usage) where both --ctx and --scale say how far a method reaches.
void check_reach(const ExtensionFlags& flags);

// One candidate per method and per plan file. The geometry may be absent if all come from files.
std::vector<Candidate> resolve(const ExtensionFlags& flags,
                               const std::optional<Geometry>& geometry);

// The ladder, with the only rung of a static method up to `length`.
Ladder up_to(const Ladder& ladder, std::int64_t length);

// The flags that give the geometry of a model file again: " --train-ctx 512", or nothing.
std::string geometry_words(const SubjectFlags& flags);

// The row "vendor" of a comparison: the scaling that the model's own files recommend for `ctx`
// tokens, unless `none` includes it already. Absent for most models.
std::optional<Candidate> vendor_plan(const Model& model, bool replaced, std::int64_t ctx);

// ---- What all verbs that run a model share. Flags are named as in llama.cpp.

void add_engine(CLI::App& verb, engine::LocalOptions& flags);

// The one plan or ladder that --method or --plan gives for a context of `ctx` tokens; auto if
// neither is given.
struct LadderChoice {
  std::string name;  // that of the method, with settings where auto chose them
  Ladder ladder;
  bool ours = false;       // chosen here, not by the user
  std::int64_t ctx = 0;    // --ctx; without it what the method was made for
  MethodSpec method = {};  // as given by the user
};
LadderChoice choose_ladder(ExtensionFlags flags, const Model& model, const char* verb);

// Applies it to the model. If the choice was ours and the keys of this model cannot be turned, it
// becomes static; either way a note says what is used, for a verb that does not say it otherwise.
void use(TimelineModel& model, LadderChoice& choice, bool tell = true);

// A line on the terminal for as long as what is returned lives.
std::shared_ptr<void> say_meanwhile(const std::string& text);

// engine::open_checked() and engine::measure_speed(), with such a line.
engine::ReadingSpeed measure_speed(TimelineModel& model);
std::unique_ptr<TimelineModel> load(const Model& model, const engine::LocalOptions& options,
                                    const std::vector<const Ladder*>& ladders,
                                    const engine::Places& places);

// For --dry-run: prints the memory that the model needs. Throws Error (failed) if it does not fit.
void print_memory(const Model& model, const engine::LocalOptions& options);

// ---- What all tasks of mrrope eval share. (eval_options.cpp)

struct EvalFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  engine::LocalOptions engine;
  std::vector<std::string> lengths;
  std::string out;
  std::string shard;
  std::string format = "text";
  bool dry_run = false;
  engine::RemoteOptions remote;  // with a url: the model is behind an endpoint
};

// In two parts; a task's own flags come between them.
void add_eval_subject(CLI::App& task, EvalFlags& flags);
enum class Runs { anywhere, local_only };
void add_eval_output(CLI::App& task, EvalFlags& flags, Runs runs = Runs::anywhere);

// What the flags ask for, worked out before the model is loaded.
struct EvalJob {
  Model model;
  engine::LocalOptions engine;  // a task sets how many timelines it needs
  std::int64_t ctx = 0;
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
  std::vector<eval::MethodUnderTest> methods;
  std::map<std::size_t, LadderChoice> automatic;  // which of the methods are auto
  engine::Places places;                          // a task adds what it reads
  engine::RemoteOptions remote;
  bool dry_run = false;  // the cost is asked for: the vocabulary is enough
  bool served() const noexcept { return !remote.url.empty(); }
};

// (window, ctx): the lengths if --lengths is not given.
using DefaultLengths =
    std::function<std::vector<std::int64_t>(std::int64_t window, std::int64_t ctx)>;
EvalJob prepare_eval(const EvalFlags& flags, const DefaultLengths& default_lengths);

// The local engine, the endpoint, or of a dry run the vocabulary and the context.
struct OpenModel {
  std::unique_ptr<TimelineModel> local;
  std::unique_ptr<PromptModel> served;
  std::unique_ptr<Tokenizer> vocabulary{};
  std::int64_t context = 0;
  eval::Target target() const {
    if (vocabulary) return {*vocabulary, context};
    return served ? eval::Target(*served) : eval::Target(*local);
  }
};
// Checks everything that needs no model first. Where this model cannot run auto, what takes its
// place is measured, as generate and serve would use it.
OpenModel open_model(EvalJob& job);

// Calls run_evaluation() and prints its results. Throws Error (failed) if prompts got no answer.
void run_eval(const EvalFlags& flags, const EvalJob& job, const eval::Target& target,
              std::uint64_t seed, const eval::RunTask& run);

// The cost of a task for --dry-run, on a local engine: memory, and the time that passes over these
// many tokens take.
void print_local_cost(const EvalJob& job, const eval::Target& target,
                      const std::vector<std::int64_t>& passes, const char* ending = "");

// The texts that come with mrrope, for tasks that were given none; says so in a note.
std::vector<std::string> default_texts();

// The texts of these files and folders, or the default ones; notes what was skipped.
eval::DocumentSet read_texts(const std::vector<std::string>& given,
                             const eval::DocumentOptions& options);

// The tasks of other files than eval_command.cpp, which lists all.
void add_eval_ppl(CLI::App& eval);
void add_eval_needle(CLI::App& eval);

}  // namespace mrrope::cli
