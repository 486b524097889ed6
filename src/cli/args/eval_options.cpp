// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "base/files/source.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "cli/args/presets.h"
#include "core/methods.h"
#include "formats/plan_file.h"

namespace mrrope::cli {

namespace {

// OPENAI_API_KEY is sent only over TLS or to this machine.
std::string key_from_environment(const std::string& url) {
  const engine::Url where = engine::parse_url(url);
  if (const char* own = std::getenv("MRROPE_API_KEY"); own != nullptr && *own != '\0') {
    if (!where.tls && !where.loopback())
      note("the API key is sent to " + where.host + " without encryption");
    return own;
  }
  const char* usual = std::getenv("OPENAI_API_KEY");
  return usual != nullptr && (where.tls || where.loopback()) ? usual : "";
}

eval::Shard chosen_shard(const EvalFlags& flags) {
  if (flags.shard.empty()) return {};
  refuse_if(flags.out.empty(), "a shard must be kept, to be joined with the others",
            "give it a folder: -o DIR");
  return eval::parse_shard(flags.shard);
}

// What the server of an endpoint decides.
void check_served(const EvalFlags& flags) {
  const ExtensionFlags& extension = flags.extension;
  refuse_if(
      !extension.methods.empty() || !extension.plan_files.empty() || extension.scale ||
          (!extension.profile.empty() && !is_no_profile(extension.profile)),
      "the server of an endpoint sets the scaling of its model",
      "remove --method, --plan, --profile and --scale; mrrope export writes a plan into files that "
      "servers run");
  const SubjectFlags& subject = flags.subject;
  refuse_if(!subject.train_ctx.empty() || subject.replace_scaling,
            "the server of an endpoint sets the geometry of its model",
            "remove --train-ctx and --replace-scaling");
  refuse_if(path_exists(subject.model),
            cat(subject.model, " is a file, and --endpoint has its own model"),
            "to use only its vocabulary, give --vocab " + subject.model);
}

// window: of the model; 0 where only a server knows it.
void set_lengths(EvalJob& job, const EvalFlags& flags, std::int64_t window,
                 const DefaultLengths& default_lengths) {
  job.lengths = mapped(flags.lengths, [](const std::string& text) { return parse_length(text); });
  if (!flags.extension.ctx.empty()) {
    job.ctx = parse_length(flags.extension.ctx);
  } else if (!job.lengths.empty()) {
    job.ctx = *std::max_element(job.lengths.begin(), job.lengths.end());
  } else {
    refuse("no context length given", "give --ctx 8k, or --lengths 512,1k,2k,4k,8k");
  }
  for (const std::int64_t length : job.lengths) {
    refuse_if(length < 2, cat("length ", length, " leaves no token to score"),
              "give --lengths of 2 tokens or more");
  }
  if (job.lengths.empty()) job.lengths = default_lengths(window > 0 ? window : job.ctx, job.ctx);
  job.longest = *std::max_element(job.lengths.begin(), job.lengths.end());
  refuse_if(job.longest > job.ctx, cat("a length is longer than --ctx ", job.ctx),
            "give a larger --ctx, or shorter --lengths");
}

// What run.json says of the model file, so that a report can name it in commands.
ordered_json model_file(const SubjectFlags& flags) {
  ordered_json file = {{"path", flags.model}};
  if (!flags.train_ctx.empty()) file["train_ctx"] = flags.train_ctx;
  if (flags.replace_scaling) file["replace_scaling"] = true;
  return file;
}

eval::EvaluationOptions evaluation_options(const EvalFlags& flags, const EvalJob& job,
                                           const eval::Target& target, std::uint64_t seed) {
  eval::EvaluationOptions options{flags.out, {}, flags.format};
  options.shaded = stdout_takes_colour();
  options.info = {command_line(), "", seed, chosen_shard(flags)};
  if (job.served()) {
    options.info.model_digest = cat("served:", target.prompts()->name());
  } else {
    const bool kept = !flags.out.empty();
    if (kept) options.info.model_digest = model_digest(job.model.files);
    if (kept || chosen_preset() != nullptr) {
      options.info.precision = engine::precision_of(job.model, job.engine);
    }
    options.info.model_file = model_file(flags.subject);
  }
  return options;
}

void add_endpoint(CLI::App& task, engine::RemoteOptions& flags) {
  CLI::Option* url = add(task, "--endpoint", flags.url);
  for (const char* local : {"--hf-repo", "--gpu-layers", "--rpc", "--device", "--threads",
                            "--ubatch-size", "--cache-type-k", "--cache-type-v", "--flash-attn"}) {
    url->excludes(task.get_option(local));  // the server decides
  }
  task.add_option_function<std::string>(
          "--api",
          [&flags](const std::string& api) {
            note("--api chat is now the end of --endpoint: URL/chat/completions");
            flags.chat = api == "chat";
          })
      ->check(among({"completions", "chat"}))
      ->group("")
      ->needs(url);
  add(task, "--parallel", flags.parallel)->needs(url);
  add(task, "--timeout", flags.seconds)->needs(url);
  add(task, "--vocab", flags.vocabulary)->needs(url);
}

}  // namespace

void add_eval_subject(CLI::App& task, EvalFlags& flags) {
  add_subject(task, flags.subject);
  add_extension(task, flags.extension, "none, yarn, pro, auto (far:pi beyond the window)",
                "the longest of --lengths");
  add(task, "--profile", flags.extension.profile);
  add(task, "--lengths", flags.lengths);
}

void add_eval_output(CLI::App& task, EvalFlags& flags, Runs runs) {
  add_engine(task, flags.engine);
  if (runs == Runs::anywhere) add_endpoint(task, flags.remote);
  add(task, "-o,--out", flags.out);
  add(task, "--shard", flags.shard);
  add_format(task, flags.format);
  add(task, "--dry-run", flags.dry_run)->excludes(task.get_option("--json"));
}

OpenModel open_model(EvalJob& job) {
  std::vector<const Ladder*> ladders;
  for (const eval::MethodUnderTest& m : job.methods) {
    if (m.ladder) ladders.push_back(&*m.ladder);
  }
  if (!job.served() && job.dry_run) {
    engine::check_before_loading(job.model, ladders, job.places);
    return {nullptr, nullptr, engine::open_vocabulary(job.model), job.ctx};
  }
  if (!job.served()) {
    OpenModel model{load(job.model, job.engine, ladders, job.places), nullptr};
    for (auto& [index, choice] : job.automatic) {
      use(*model.local, choice);
      job.methods[index].ladder = choice.ladder;
    }
    return model;
  }
  engine::check_before_loading(job.model, {}, job.places);
  auto model = open_remote(job.remote);
  refuse_if(job.longest > model->context_length(),
            cat("the server accepts ", model->context_length(), " tokens per request, and ",
                job.longest, " are needed"),
            "start the server with more (llama-server -c, vllm serve --max-model-len), or give "
            "shorter --lengths");
  return {nullptr, std::move(model)};
}

EvalJob prepare_eval(const EvalFlags& flags, const DefaultLengths& default_lengths) {
  const eval::Shard shard = chosen_shard(flags);  // refuses a bad one before anything is loaded
  if (flags.dry_run && shard.part()) note(cat("the cost is that of all ", shard.count, " shards"));
  if (flags.dry_run && !flags.out.empty() &&
      path_exists(std::filesystem::path(flags.out) / "journal.jsonl")) {
    note(cat("the cost is that of a new run: what ", flags.out, " has already is not run again"));
  }
  EvalJob job;
  job.dry_run = flags.dry_run;
  job.places.folders = {flags.out};
  if (!flags.remote.url.empty()) {
    check_served(flags);
    set_lengths(job, flags, 0, default_lengths);
    job.places.reads = {flags.remote.vocabulary};
    job.remote = flags.remote;
    constexpr std::string_view kChats = "/chat/completions";
    if (job.remote.url.ends_with(kChats)) {
      job.remote.chat = true;
      job.remote.url.resize(job.remote.url.size() - kChats.size());
    }
    job.remote.model = flags.subject.model;
    job.remote.key = key_from_environment(flags.remote.url);
    job.remote.context = job.ctx;
    job.methods = {eval::served_method()};
    return job;
  }
  job.model = model_of(flags.subject);
  set_lengths(job, flags, job.model.geometry.train_length, default_lengths);
  job.engine = flags.engine;
  job.engine.context = job.ctx;
  ExtensionFlags extension = flags.extension;
  if (extension.ctx.empty() && !extension.scale) extension.ctx = cat(job.ctx);
  if (extension.methods.empty() && extension.plan_files.empty()) {
    extension.methods = {"none,yarn,pro,auto"};
  }
  // A preset repeats published runs, which know no profile.
  if (chosen_preset() == nullptr || !extension.profile.empty()) {
    take_profile(extension, job.model, job.ctx, true);
  }
  std::vector<Candidate> candidates = resolve(extension, job.model.geometry);
  const auto vendor = vendor_plan(job.model, flags.subject.replace_scaling, job.ctx);
  if (vendor && !find_by(candidates, &Candidate::name, "vendor")) candidates.push_back(*vendor);
  for (const Candidate& c : candidates) {
    const Ladder ladder = up_to(c.ladder, job.ctx);
    if (is_auto(c.method.name)) {
      job.automatic[job.methods.size()] = {c.meaning(), ladder, true, job.ctx, c.method};
    }
    job.methods.push_back({c.name, ladder});
  }
  eval::check_names(job.methods);
  return job;
}

void print_local_cost(const EvalJob& job, const eval::Target& target,
                      const std::vector<std::int64_t>& passes, const char* ending) {
  if (target.prompts() != nullptr) return;
  print_memory(job.model, job.engine);
  std::cout << engine::time_text(engine::kept_speed(job.model, job.engine), passes, ending)
            << "\nfor less, give fewer --method, --lengths, --documents or --samples\n";
}

void run_eval(const EvalFlags& flags, const EvalJob& job, const eval::Target& target,
              std::uint64_t seed, const eval::RunTask& run) {
  catch_interrupts();
  eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
  const eval::EvaluationOptions options = evaluation_options(flags, job, target, seed);
  const eval::Evaluation done = run_evaluation(options, progress, run);
  for (const std::string& line : done.notes) note(line);
  const bool whole = !options.info.shard.part();
  const bool other_tool = options.format == "csv" || options.format == "lm-eval";
  (whole || !other_tool ? std::cout : std::cerr) << done.printed;
  if (whole && options.format == "text") {
    ordered_json facts = done.run;
    facts["precision"] = options.info.precision;  // in memory run.json has no such facts
    std::cout << preset_table(facts, done.table);
  }
  if (whole && !flags.out.empty()) write_report(flags.out);
  if (done.table.failed == 0) return;
  throw Error(ErrorKind::failed,
              cat(done.table.failed, " prompts got no answer and are excluded from the results"),
              flags.out.empty() ? "with -o DIR the same command asks them again"
                                : "give the same command to ask them again");
}

std::vector<std::string> default_texts() {
  const std::string folder = (project_files() / "data" / "texts").string();
  note(cat("no texts given: using the bundled ones (formal mathematics) in ", folder));
  return {folder};
}

eval::DocumentSet read_texts(const std::vector<std::string>& given,
                             const eval::DocumentOptions& options) {
  const std::vector<std::string> texts = given.empty() ? default_texts() : given;
  eval::DocumentSet set = read_documents({texts.begin(), texts.end()}, options);
  for (const std::string& line : set.notes()) note(line);
  return set;
}

}  // namespace mrrope::cli
