// SPDX-License-Identifier: Apache-2.0
// mrrope tune: a better plan than any published one for a given model, tested on texts that the
// search never saw.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "base/files/output_file.h"
#include "base/text.h"
#include "base/words.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"
#include "tune/search.h"

namespace mrrope::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The weight of a nat of answers relative to a nat of perplexity.
constexpr std::pair<const char*, double> kPreferences[] = {
    {"perplexity", 0.01}, {"balanced", 0.05}, {"retrieval", 0.25}};

struct TuneFlags {
  SubjectFlags subject;
  engine::LocalOptions engine;
  std::string ctx;
  std::string method = "power";
  std::vector<std::string> text;
  eval::DocumentOptions documents;
  std::string prefer = "balanced";
  tune::SearchOptions search;
  std::vector<std::size_t> documents_used = {8, 0};  // in the search, in the proof
  std::string proof = cat(tune::kProofNeedles);
  std::string form;
  std::string plan;
  std::string out = "tuned.json";
  bool json = false;
  bool dry_run = false;
};

double weight_of(const TuneFlags& flags) {
  for (const auto& [name, weight] : kPreferences) {
    if (flags.prefer == name) return weight;
  }
  const std::optional<double> weight = parse_double(flags.prefer);
  if (weight && *weight >= 0 && std::isfinite(*weight)) return *weight;
  refuse(cat("'", flags.prefer, "' is not a preference"),
         "give --prefer perplexity, balanced or retrieval, or the weight of the answers: 0 counts "
         "perplexity only, 0.05 is balanced");
}

// Needles per depth in the proof; nothing: no proof.
std::optional<std::size_t> proof_needles(const TuneFlags& flags) {
  if (flags.proof == "off") return std::nullopt;
  const std::optional<double> count = parse_double(flags.proof);
  if (count && *count >= 0 && *count <= kMostCounted && *count == std::floor(*count)) {
    return std::size_t(*count);
  }
  refuse(cat("--proof ", flags.proof, " is not a number of needles"),
         "give a number, 0 to let perplexity alone decide, or off");
}

Growth growth_asked_for(const std::string& method) {
  const MethodSpec spec = parse_method(method);
  if (!find_method(spec.name).own.empty() && spec.parameters == Parameters{}) return spec.growth;
  refuse(cat("tune searches the power family, not ", method),
         "give --method power, elastic:power or far:power");
}

void print_dry_run(const TuneFlags& flags, const Model& facts, const engine::LocalOptions& engine,
                   const tune::Split& split, const tune::SearchSet& set, std::size_t rows) {
  const std::int64_t ctx = set.texts.front().length;
  const std::optional<std::size_t> needles_per_depth = proof_needles(flags);
  // A needle's unit: the trunk once, and from each of ten depths on average half of it again.
  const std::int64_t needles = std::int64_t(rows * needles_per_depth.value_or(0)) * 6 * ctx;
  const std::int64_t proof = std::int64_t((rows + 1) * split.held_out.size()) * ctx + needles;
  const double search = flags.search.budget * double(set.pass);
  std::cout << "search: " << split.search.size() << " documents of " << length_text(ctx) << " with "
            << flags.search.planting.answers << " planted answers each, at most "
            << flags.search.budget << " passes of " << set.pass << " tokens\n";
  if (needles_per_depth) {
    std::cout << "proof: " << split.held_out.size() << " documents, " << rows << " plans, "
              << 10 * *needles_per_depth << " needles each: about " << proof << " tokens\n";
  }
  print_memory(facts, engine);
  const std::optional<engine::ReadingSpeed> speed = engine::kept_speed(facts, engine);
  std::cout << "a pass over one text takes " << engine::time_text(speed, {ctx});
  if (speed) {
    const auto minutes = [&](double tokens) {
      return duration_text(tokens / double(ctx) * engine::seconds_to_read(*speed, {ctx}));
    };
    std::cout << "\nabout " << minutes(search) << " to search";
    if (needles_per_depth) std::cout << ", " << minutes(double(proof)) << " to prove";
  }
  std::cout << "\nfor less, give a smaller --budget, or fewer --documents"
            << (needles_per_depth ? " or needles: --proof\n" : "\n");
}

void run_tune(const TuneFlags& flags) {
  refuse_if(flags.ctx.empty(), "no context length given", "give --ctx, e.g. --ctx 128k");
  const Model facts = model_of(flags.subject);
  const double weight = weight_of(flags);
  const tune::Space space =
      tune::make_space(facts.geometry, parse_length(flags.ctx), growth_asked_for(flags.method));
  const tune::Space fixed_space = tune::make_space(facts.geometry, space.ctx, Growth::none);
  std::vector<tune::Proposal> first = published(space);
  if (!flags.plan.empty()) first.push_back(from_plan(space, read_plan_file(flags.plan)));
  const std::optional<std::size_t> needles = proof_needles(flags);

  const std::vector<std::string> texts = flags.text.empty() ? default_texts() : flags.text;
  engine::LocalOptions engine = flags.engine;
  engine.context = space.ctx;
  engine.timelines = 3;
  const fs::path home = fs::path(flags.out).replace_extension(".tune");
  for (const fs::path& path : {fs::path(flags.out), home / "found.json"}) refuse_input(path);
  // The search's folder may make the parents of the plan file.
  const engine::Places places{texts, {home.string(), folder_of(flags.out).string()}};
  std::unique_ptr<TimelineModel> model;
  std::unique_ptr<Tokenizer> vocabulary;  // its cost needs no weights
  if (flags.dry_run) {
    engine::check_before_loading(facts, {}, places);
    vocabulary = engine::open_vocabulary(facts);
  } else {
    model = load(facts, engine, {}, places);
  }
  const Tokenizer& tokenizer = model ? *model : *vocabulary;
  const eval::DocumentSet read = read_documents({texts.begin(), texts.end()}, flags.documents);
  for (const std::string& line : read.notes()) note(line);
  const tune::Split split =
      tune::split_documents(tokenizer, read.documents, space.ctx, flags.documents_used[0],
                            flags.documents_used[1], flags.search.seed);
  tune::SearchOptions options = flags.search;
  options.weight = weight;
  options.form = eval::make_form(tokenizer, flags.form, std::nullopt, 0);
  const tune::SearchSet set = make_search_set(tokenizer, space, split.search, options);
  check_budget(set, first.size(), options.budget);  // before there is a folder
  const std::vector<tune::Proposal> rivals = published(fixed_space);
  if (flags.dry_run) {
    return print_dry_run(flags, facts, engine, split, set, rivals.size() + 1);
  }

  const eval::RunInfo info{command_line(), model_digest(facts.files), flags.search.seed};
  catch_interrupts();
  eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
  eval::RunFolder folder(home / "search", info);
  check_writable(flags.out);  // the folder may have made its parents
  const tune::SearchResult result =
      run_search(*model, space, set, first, options, folder, progress);
  for (const std::string& line : folder.notes()) note(line);
  ordered_json results = to_json(result, space, weight);
  tune::Proposal found = result.trials[result.best].proposal;
  const std::string what = found.name;
  found.name = "tuned";
  folder.finish(eval::results_text(results), {progress.seconds(), progress.computed()});
  write_output((home / "found.json").string(), to_json(found.ladder).dump(2) + "\n");

  std::string text = to_text(result) + cat("\nFound: ", what, "\n");
  if (!needles) {
    write_output(flags.out, to_json(found.ladder).dump(2) + "\n");
    std::cout << (flags.json ? eval::results_text(results) : text);
    note(cat("wrote ", flags.out, ", not tested on held-out text"));
    return;
  }
  if (!flags.json) std::cout << text << "\n" << std::flush;

  eval::NeedleOptions proving;
  proving.samples = *needles;
  proving.form = options.form;
  // A longer search may find another plan, which has a proof of its own.
  const fs::path proof_home = home / cat("proof-", found.plan.substr(0, 8));
  eval::RunFolder ppl(proof_home / "ppl", info);
  eval::RunFolder needle(proof_home / "needle", info);
  const tune::Proof proof =
      prove(*model, found, rivals, split.held_out, proving, weight, ppl, needle, progress);
  results["proof"] = to_json(proof);
  folder.finish(eval::results_text(results), {0, 0});
  const tune::Proposal* chosen = &found;
  for (const tune::Proposal& c : rivals) {
    if (!proof.better && c.name == proof.recommended) chosen = &c;
  }
  write_output(flags.out, to_json(chosen->ladder).dump(2) + "\n");
  std::cout << (flags.json ? eval::results_text(results) : to_text(proof));
  if (!proof.better) {
    throw Error(ErrorKind::goal_not_met,
                cat("the plan found is not better than every published one on held-out text; the "
                    "best published one is ",
                    proof.recommended),
                cat("wrote ", proof.recommended, " to ", flags.out, " and the plan found to ",
                    (home / "found.json").string(),
                    "; a larger --budget may help, or more --text with another -o"));
  }
  if (!flags.json) {
    std::cout << "\nBetter than every published method on held-out text: " << what << "\n";
  }
  note(cat("wrote ", flags.out, "; search and proof are in ", home.string()));
}

}  // namespace

void add_tune(CLI::App& app) {
  const auto [verb, flags] =
      add_verb<TuneFlags>(app, "tune", "Search for a better plan than any published one", run_tune);
  add_subject(verb, flags.subject);
  add_value(verb, "-c,--ctx", flags.ctx, "LENGTH", "Context length in tokens, e.g. 32768 or 128k");
  add_default(verb, "--method", flags.method, "NAME",
              "power for a static plan, elastic:power for a context that grows, far:power for one "
              "with a near part");
  add_value(verb, "--text", flags.text, "FILE",
            "Texts: plain, .jsonl, also .gz .xz .zst, or folders");
  add_default(verb, "--field", flags.documents.field, "NAME",
              "Field of a .jsonl line that holds the text");
  add_default(verb, "--budget", flags.search.budget, "PASSES",
              "Maximum passes over the search set");
  add_default(verb, "--prefer", flags.prefer, "WHAT",
              "perplexity, balanced, retrieval, or the weight of the answers' log-probability");
  std::vector<std::size_t>& used = flags.documents_used;
  verb.add_option_function<std::vector<std::size_t>>(
          "--documents",
          [&used](const std::vector<std::size_t>& given) {
            std::copy(given.begin(), given.end(), used.begin());
          },
          "Documents for the search, at most half of all, and for the proof (0: all the others)")
      ->type_name("N,N")
      ->delimiter(',')
      ->expected(1, 2)
      ->check(CLI::Range(0, kMostCounted))
      ->default_str("8,0");
  verb.add_option("--proof-documents", flags.documents_used[1])->group("");  // an old name
  add_default(verb, "--answers", flags.search.planting.answers, "N",
              "Answers planted in each document of the search")
      ->check(CLI::Range(1, 100));
  add_default(
      verb, "--proof", flags.proof, "N",
      "Needles per depth in the proof, at ten depths; 0: perplexity alone decides; off: no proof");
  add_value(verb, "--form", flags.form, "FORM",
            "planted, completion or chat (default: chat if the model has a template)")
      ->check(CLI::IsMember({"planted", "completion", "chat"}));
  add_value(verb, "--plan", flags.plan, "FILE", "Also start from this plan, of any model");
  add_default(verb, "--seed", flags.search.seed, "N",
              "Seed for the split, the needles and the start");
  add_engine(verb, flags.engine);
  add_default(
      verb, "-o,--out", flags.out, "FILE",
      "Plan file to write; the search and its proof go to a folder of that name with .tune");
  auto* json = verb.add_flag("--json", flags.json, "Print results as JSON");
  verb.add_flag("--dry-run", flags.dry_run, "Print the estimated cost, and stop")->excludes(json);
  verb.footer(
      "Examples:\n"
      "  mrrope tune model.gguf --ctx 128k --text docs/ -o plan.json\n"
      "  mrrope tune model.gguf --ctx 32k --method elastic:power --prefer retrieval -o "
      "ladder.json\n"
      "Exit code 6: the plan found is not better than every published method on held-out text.\n"
      "An interrupted search resumes when you run the same command again.");
}

}  // namespace mrrope::cli
