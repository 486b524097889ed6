// SPDX-License-Identifier: Apache-2.0
// mrrope tune: a better plan for a given model than what is used without it, tested on texts that
// the search never saw, and kept as a profile.
#include <iostream>

#include "base/files/output_file.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "formats/plan_file.h"
#include "tune/profile.h"
#include "tune/search.h"

namespace mrrope::cli {

namespace {

namespace fs = std::filesystem;

// The weight of a nat of answers relative to a nat of perplexity.
constexpr std::pair<const char*, double> kPreferences[] = {
    {"perplexity", 0.01}, {"balanced", 0.05}, {"retrieval", 0.25}};

// The bundled texts are not enough for more.
constexpr std::int64_t kLongestBundled = 131072;
// Documents for the search and for the proof: of likely plans, which takes some minutes on a GPU,
// and of a family.
constexpr std::size_t kFewDocuments[] = {2, 4};
constexpr std::size_t kManyDocuments[] = {8, 0};
constexpr double kUsualBudget = 40;

struct TuneFlags {
  SubjectFlags subject;
  engine::LocalOptions engine;
  std::string ctx;
  std::string method;
  std::vector<std::string> text;
  eval::DocumentOptions documents;
  std::string prefer = "balanced";
  std::optional<double> budget;
  tune::SearchOptions search;
  std::vector<std::size_t> documents_used;  // in the search, in the proof
  std::string form;
  std::string plan;
  std::string profile;
  std::string out;
  bool json = false;
  bool dry_run = false;

  bool likely() const { return method.empty(); }  // a few plans instead of a family
  std::size_t documents_for(std::size_t part) const {
    if (part < documents_used.size()) return documents_used[part];
    return likely() ? kFewDocuments[part] : kManyDocuments[part];
  }
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

Growth growth_asked_for(const std::string& method) {
  const MethodSpec spec = parse_method(method);
  if (!find_method(spec.name).own.empty() && spec.parameters == Parameters{}) return spec.growth;
  refuse(cat("tune searches the power family, not ", method),
         "give --method power, elastic:power or far:power, or leave out --method");
}

// What search and proof cost; both in readings of a whole text.
std::string cost_text(double search, std::size_t proof, const Model& facts,
                      const engine::LocalOptions& engine) {
  const std::optional<engine::ReadingSpeed> speed = engine::kept_speed(facts, engine);
  const double seconds = speed ? seconds_to_read(*speed, {engine.context}) : 0;
  return cat("the search reads ", length_text(engine.context), " tokens about ", fixed(search, 0),
             " times, the proof ", proof, " times: ",
             speed ? cat("about ", duration_text((search + double(proof)) * seconds))
                   : time_text(speed, {}));
}

// The texts: the user's, or the bundled ones in two halves.
tune::Split split_texts(const TuneFlags& flags, const std::vector<std::string>& texts,
                        const Tokenizer& tokenizer, std::int64_t ctx) {
  eval::DocumentSet read = read_documents({texts.begin(), texts.end()}, flags.documents);
  for (const std::string& line : read.notes()) note(line);
  const std::size_t search = std::max<std::size_t>(1, flags.documents_for(0));
  refuse_if(flags.documents_for(1) == 1, "one text proves nothing: an error needs two",
            "give --documents N,2 or more, or N,0 for all that the search leaves");
  if (!flags.text.empty()) {
    return tune::split_documents(tokenizer, read.documents, ctx, search, flags.documents_for(1),
                                 flags.search.seed);
  }
  return tune::split_halves(std::move(read.documents), search, flags.documents_for(1),
                            flags.search.seed);
}

// The plan that was found against published ones, on the texts of the search.
tune::Proof on_search_texts(const tune::SearchResult& result, const tune::Space& space,
                            double weight) {
  std::vector<tune::Proved> others;
  for (const tune::Trial& t : result.trials) {
    const tune::Proposal& p = t.proposal;
    if (t.complete && p.origin == "published") others.push_back({p.name, t.measured});
  }
  return judge_proof({"tuned", result.trials[result.best].measured}, others,
                     tune::band_ends(space.geometry.train_length, space.ctx), weight);
}

void run_tune(const TuneFlags& flags) {
  refuse_if(flags.ctx.empty(), "no context length given", "give --ctx, e.g. --ctx 128k");
  const Model facts = model_of(flags.subject);
  tune::SearchOptions options = flags.search;
  options.weight = weight_of(flags);
  const tune::Space space =
      tune::make_space(facts.geometry, parse_length(flags.ctx),
                       flags.likely() ? Growth::far : growth_asked_for(flags.method));
  std::vector<tune::Proposal> first = flags.likely() ? likely(space) : published(space);
  if (!flags.plan.empty()) first.push_back(from_plan(space, read_plan_file(flags.plan)));
  const std::vector<tune::Proposal> rivals =
      space.growth == Growth::none ? published(space) : std::vector{unnamed(space)};
  refuse_if(flags.text.empty() && space.ctx > kLongestBundled,
            cat("the bundled texts are too short for ", space.ctx, " tokens"),
            cat("give your own with --text, or --ctx ", length_text(kLongestBundled), " or less"));

  const std::vector<std::string> texts = flags.text.empty() ? default_texts() : flags.text;
  engine::LocalOptions engine = flags.engine;
  engine.context = space.ctx;
  engine.timelines = 3;
  tune::Profile profile{model_digest(facts.files), facts.geometry.train_length, space.ctx};
  profile.method.growth = space.growth;
  refuse_if(is_no_profile(flags.profile), "tune writes a profile: none is not the name of a file",
            "give --profile FILE, or leave it out");
  profile.file = flags.profile.empty() ? profile_place(facts, profile) : fs::path(flags.profile);
  refuse_if(profile.file.empty(), "there is no folder to keep a profile in: HOME is not set",
            "give --profile FILE");
  const fs::path home =
      fs::path(flags.out.empty() ? profile.file : fs::path(flags.out)).replace_extension(".tune");
  for (const fs::path& path : {fs::path(flags.out), profile.file, home / "found.json"}) {
    if (!path.empty()) refuse_input(path);
  }
  // The search's folder may make the parents of the files.
  const engine::Places places{texts, {home.string(), folder_of(profile.file).string()}};
  std::unique_ptr<TimelineModel> model;
  std::unique_ptr<Tokenizer> vocabulary;  // its cost needs no weights
  if (flags.dry_run) {
    engine::check_before_loading(facts, {}, places);
    vocabulary = engine::open_vocabulary(facts);
  } else {
    model = load(facts, engine, {}, places);
  }
  const Tokenizer& tokenizer = model ? *model : *vocabulary;
  const tune::Split split = split_texts(flags, texts, tokenizer, space.ctx);
  options.form = eval::make_form(tokenizer, flags.form, std::nullopt, 0);
  const tune::SearchSet set = make_search_set(tokenizer, space, split.search, options);
  options.budget =
      flags.budget.value_or(flags.likely() ? least_budget(set, first.size()) : kUsualBudget);
  check_budget(set, first.size(), options.budget);  // before there is a folder
  const std::string cost = cost_text(options.budget * double(set.texts.size()),
                                     (rivals.size() + 1) * split.held_out.size(), facts, engine);
  if (flags.dry_run) {
    print_memory(facts, engine);
    std::cout << cost << "\nfor less, give a smaller --budget, or fewer "
              << "--documents\n";
    return;
  }
  note(cost);

  catch_interrupts();
  eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
  eval::RunFolder folder(home / "search", {command_line(), profile.model, options.seed});
  if (!flags.out.empty()) check_writable(flags.out);  // the folder may have made its parents
  const tune::SearchResult result =
      run_search(*model, space, set, first, options, folder, progress);
  for (const std::string& line : folder.notes()) note(line);
  ordered_json results = to_json(result, options.weight);
  tune::Proposal found = result.trials[result.best].proposal;
  const std::string what = std::exchange(found.name, "tuned");
  folder.finish(eval::results_text(results), {progress.seconds(), progress.computed()});
  write_output((home / "found.json").string(), to_json(found.ladder).dump(2) + "\n");
  if (!flags.json) std::cout << to_text(result) << "\nFound: " << what << "\n\n" << std::flush;
  if (const auto* rival = find_by(rivals, &tune::Proposal::numbers, found.numbers)) {
    if (flags.json) std::cout << eval::results_text(results);
    throw Error(ErrorKind::goal_not_met,
                cat("none of ", result.trials.size(), " plans is better than ", rival->name,
                    " on the texts of the search: nothing changes"),
                "give a larger --budget, more --documents or your own --text");
  }

  const tune::Proof proof =
      prove(*model, found, rivals, make_proof_texts(tokenizer, space.ctx, split.held_out, options),
            options, folder, progress);
  results["proof"] = to_json(proof);
  folder.finish(eval::results_text(results), {0, 0});
  std::cout << (flags.json ? eval::results_text(results) : to_text(proof));
  throw_if(!proof.better, ErrorKind::goal_not_met,
           cat("the plan found is not better than ", proof.recommended,
               " on held-out text: ", "nothing changes"),
           cat("the plan found is in ", (home / "found.json").string(),
               "; more --documents or your own --text may help"));
  if (!flags.out.empty()) write_output(flags.out, to_json(found.ladder).dump(2) + "\n");
  profile.method = parse_method(found.notation);
  profile.measured = {{"search", to_json(on_search_texts(result, space, options.weight))},
                      {"proof", results["proof"]}};
  fs::create_directories(folder_of(profile.file));
  write_output(profile.file.string(), profile_text(profile));
  note(cat("wrote ", profile.file.string(), ": ",
           space.growth == Growth::none ? "export uses" : "generate, chat, serve and eval use",
           " it for this model up to ", length_text(space.ctx), " tokens"));
}

}  // namespace

void add_tune(CLI::App& app) {
  const auto [verb, flags] = add_verb<TuneFlags>(app, "tune", run_tune);
  add_subject(verb, flags.subject);
  add(verb, "-c,--ctx", flags.ctx);
  add(verb, "--method", flags.method);
  add(verb, "--text", flags.text);
  add(verb, "--field", flags.documents.field);
  add(verb, "--budget", flags.budget);
  add(verb, "--prefer", flags.prefer);
  add(verb, "--documents", flags.documents_used)->expected(1, 2);
  add(verb, "--questions", flags.search.questions)->check(in_range(1, 100));
  add(verb, "--form", flags.form);
  add(verb, "--plan", flags.plan);
  add(verb, "--seed", flags.search.seed);
  add_engine(verb, flags.engine);
  add(verb, "--profile", flags.profile);
  add(verb, "-o,--out", flags.out);
  auto* json = add(verb, "--json", flags.json);
  add(verb, "--dry-run", flags.dry_run)->excludes(json);
}

}  // namespace mrrope::cli
