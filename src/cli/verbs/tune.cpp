// SPDX-License-Identifier: Apache-2.0
// mrrope tune: a better plan than any published one for a given model, tested on texts that the
// search never saw.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/files/output_file.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/eval_options.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "eval/text/documents.h"
#include "formats/digest.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"
#include "tune/proof.h"
#include "tune/results.h"
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
  std::optional<double> weight;
  tune::SearchOptions search;
  std::size_t search_documents = 8;
  std::size_t proof_documents = 0;
  std::size_t proof_needles = tune::ProofOptions{}.needles;
  std::string form;
  std::string start_plan;
  std::string out = "tuned.json";
  std::string folder;
  bool no_knots = false;
  bool no_proof = false;
  bool json = false;
  bool dry_run = false;
};

double weight_of(const TuneFlags& flags) {
  if (flags.weight) {
    if (!(*flags.weight >= 0) || !std::isfinite(*flags.weight)) {
      throw Error(ErrorKind::usage,
                  cat("--weight ", *flags.weight, " is not a number of 0 or more"),
                  "0 counts perplexity only, 0.05 is balanced");
    }
    return *flags.weight;
  }
  for (const auto& [name, weight] : kPreferences) {
    if (flags.prefer == name) return weight;
  }
  throw Error(ErrorKind::usage, cat("'", flags.prefer, "' is not a preference"),
              "give --prefer perplexity, balanced or retrieval");
}

Growth growth_asked_for(const std::string& method) {
  const MethodSpec spec = parse_method(method);
  if (!find_method(spec.name).own.empty() && spec.parameters == Parameters{}) return spec.growth;
  throw Error(ErrorKind::usage, cat("tune searches the power family, not ", method),
              "give --method power, elastic:power or far:power");
}

void print_dry_run(const TuneFlags& flags, const Model& facts, const engine::LocalOptions& engine,
                   TimelineModel& model, const tune::Split& split, const tune::SearchSet& set,
                   std::size_t rows) {
  const std::int64_t ctx = set.texts.front().length;
  // A needle's unit: the trunk once, and from each of ten depths on average half of it again.
  const std::int64_t needles = std::int64_t(rows * flags.proof_needles) * 6 * ctx;
  const std::int64_t proof = std::int64_t((rows + 1) * split.held_out.size()) * ctx + needles;
  const double search = flags.search.budget * double(set.pass);
  std::cout << "search: " << split.search.size() << " documents of " << length_text(ctx) << " with "
            << flags.search.planting.answers << " planted answers each, at most "
            << flags.search.budget << " passes of " << set.pass << " tokens\n";
  if (!flags.no_proof) {
    std::cout << "proof: " << split.held_out.size() << " documents, " << rows << " plans, "
              << 10 * flags.proof_needles << " needles each: about " << proof << " tokens\n";
  }
  print_memory(facts, engine);
  const ReadingSpeed speed = measure_speed(model, facts, ctx);
  const auto minutes = [&](double tokens) {
    return duration_text(tokens / double(ctx) * seconds_to_read(speed, {ctx}));
  };
  std::cout << "a pass over one text takes " << time_text(speed, {ctx}) << "\nabout "
            << minutes(search) << " to search";
  if (!flags.no_proof) std::cout << ", " << minutes(double(proof)) << " to prove";
  std::cout << "\nfor less, give a smaller --budget or --search-documents"
            << (flags.no_proof ? "\n" : ", or fewer --proof-needles\n");
}

void run_tune(const TuneFlags& flags) {
  Subject subject = resolve(flags.subject);
  if (!subject.model) throw Error(ErrorKind::usage, "no model given", "give a GGUF file");
  if (flags.ctx.empty())
    throw Error(ErrorKind::usage, "no context length given", "give --ctx, e.g. --ctx 128k");
  Model facts = *subject.model;
  facts.geometry = subject.geometry;
  const double weight = weight_of(flags);
  const tune::Space space =
      tune::make_space(facts.geometry, parse_length(flags.ctx), growth_asked_for(flags.method));
  const tune::Space fixed_space = tune::make_space(facts.geometry, space.ctx, Growth::none);
  std::vector<tune::Proposal> first = published(space);
  if (!flags.start_plan.empty()) {
    first.push_back(from_plan(space, read_plan_file(flags.start_plan)));
  }

  const std::vector<std::string> texts = flags.text.empty() ? default_texts() : flags.text;
  engine::LocalOptions engine = flags.engine;
  engine.context = space.ctx;
  engine.timelines = 3;
  const fs::path home = flags.folder.empty() ? fs::path(flags.out).replace_extension(".tune")
                                             : fs::path(flags.folder);
  if (flags.dry_run) note("loading the model, to count tokens and to time it");
  for (const fs::path& path : {fs::path(flags.out), home / "found.json"}) refuse_input(path);
  // The search's folder may make the parents of the plan file.
  const auto model =
      open_checked(facts, engine, {}, {texts, {home.string(), folder_of(flags.out).string()}});
  const eval::DocumentSet read = read_documents({texts.begin(), texts.end()}, flags.documents);
  for (const std::string& line : read.notes()) note(line);
  const tune::Split split =
      tune::split_documents(*model, read.documents, space.ctx, flags.search_documents,
                            flags.proof_documents, flags.search.seed);
  tune::SearchOptions options = flags.search;
  options.weight = weight;
  options.knots = !flags.no_knots;
  options.form = eval::make_form(*model, flags.form, std::nullopt, 0);
  const tune::SearchSet set = make_search_set(*model, space, split.search, options);
  check_budget(set, first.size(), options.budget);  // before there is a folder
  const std::vector<tune::Proposal> rivals = published(fixed_space);
  if (flags.dry_run) {
    model->use(first.front().ladder);
    return print_dry_run(flags, facts, engine, *model, split, set, rivals.size() + 1);
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
  if (flags.no_proof) {
    write_output(flags.out, to_json(found.ladder).dump(2) + "\n");
    std::cout << (flags.json ? eval::results_text(results) : text);
    note(cat("wrote ", flags.out, ", not tested on held-out text"));
    return;
  }
  if (!flags.json) std::cout << text << "\n" << std::flush;

  tune::ProofOptions proving;
  proving.needles = flags.proof_needles;
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
    throw Error(
        ErrorKind::goal_not_met,
        cat("the plan found is not better than every published one on held-out text; the best "
            "published one is ",
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
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* verb = app.add_subcommand("tune", "Search for a better plan than any published one");
  add_subject(*verb, flags->subject);
  verb->add_option("-c,--ctx", flags->ctx, "Context length in tokens, e.g. 32768 or 128k")
      ->type_name("LENGTH");
  verb->add_option("--method", flags->method,
                   "power for a static plan, elastic:power for a context that grows, far:power for "
                   "one with a near part")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--text", flags->text, "Texts: plain, .jsonl, also .gz .xz .zst, or folders")
      ->type_name("FILE")
      ->take_all();
  verb->add_option("--field", flags->documents.field, "Field of a .jsonl line that holds the text")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--budget", flags->search.budget, "Maximum passes over the search set")
      ->type_name("PASSES")
      ->capture_default_str();
  verb->add_option("--prefer", flags->prefer, "perplexity, balanced or retrieval")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"perplexity", "balanced", "retrieval"}))
      ->capture_default_str();
  verb->add_option("--weight", flags->weight,
                   "Weight of the answers' log-probability; overrides --prefer")
      ->type_name("W");
  verb->add_option("--search-documents", flags->search_documents,
                   "Documents for the search, at most half of all")
      ->type_name("N")
      ->check(CLI::Range(1, kMostCounted))
      ->capture_default_str();
  verb->add_option("--proof-documents", flags->proof_documents,
                   "Documents for the proof; 0: all remaining ones")
      ->type_name("N")
      ->check(CLI::Range(0, kMostCounted))
      ->capture_default_str();
  verb->add_option("--answers", flags->search.planting.answers,
                   "Answers planted in each document of the search")
      ->type_name("N")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  verb->add_option("--decoys", flags->search.planting.decoys,
                   "Needles beside each answer that are never asked for, so that keys compete")
      ->type_name("N")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  verb->add_option("--proof-needles", flags->proof_needles,
                   "Needles per depth in the proof, at ten depths; 0: perplexity alone decides")
      ->type_name("N")
      ->check(CLI::Range(0, kMostCounted))
      ->capture_default_str();
  verb->add_option("--form", flags->form,
                   "planted, completion or chat (default: chat if the model has a template)")
      ->type_name("FORM")
      ->check(CLI::IsMember({"planted", "completion", "chat"}));
  verb->add_option("--start-plan", flags->start_plan, "Also start from this plan, of any model")
      ->type_name("FILE");
  verb->add_option("--seed", flags->search.seed, "Seed for the split, the needles and the start")
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--no-knots", flags->no_knots, "Stay in the power family");
  verb->add_flag("--no-proof", flags->no_proof, "Stop after the search");
  add_engine(*verb, flags->engine);
  verb->add_option("-o,--out", flags->out, "Plan file to write")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_option("--folder", flags->folder,
                   "Folder for the search and its proof (default: FILE with .tune)")
      ->type_name("DIR");
  auto* json = verb->add_flag("--json", flags->json, "Print results as JSON");
  verb->add_flag("--dry-run", flags->dry_run, "Print the estimated cost, and stop")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  mrrope tune model.gguf --ctx 128k --text docs/ -o plan.json\n"
      "  mrrope tune model.gguf --ctx 32k --method elastic:power --prefer retrieval -o "
      "ladder.json\n"
      "Exit code 6: the plan found is not better than every published method on held-out text.\n"
      "An interrupted search resumes when you run the same command again.");
  verb->callback([flags] { run_tune(*flags); });
}

}  // namespace mrrope::cli
