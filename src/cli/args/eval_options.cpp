// SPDX-License-Identifier: Apache-2.0
#include "cli/args/eval_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/files/output_file.h"
#include "base/text.h"
#include "cli/app.h"
#include "core/methods.h"
#include "cli/args/engine_options.h"
#include "cli/args/precision.h"
#include "cli/args/presets.h"
#include "cli/args/report_file.h"
#include "engine/remote/http.h"
#include "eval/run/result_formats.h"
#include "eval/run/shard.h"
#include "formats/digest.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

using UsualLengths = std::function<std::vector<std::int64_t>(std::int64_t, std::int64_t)>;

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
  if (flags.out.empty()) {
    throw Error(ErrorKind::usage, "a shard must be kept, to be merged with the others",
                "give it a folder: -o DIR");
  }
  return eval::parse_shard(flags.shard);
}

void check_answers(const EvalFlags& flags, const nlohmann::ordered_json& results) {
  const std::size_t lost = results.value("failed", std::size_t(0));
  if (lost == 0) return;
  throw Error(ErrorKind::failed,
              cat(lost, " prompts got no answer and are excluded from the results"),
              flags.out.empty() ? "with -o DIR the same command asks them again"
                                : "give the same command to ask them again");
}

EvalJob prepare_served(const EvalFlags& flags, const UsualLengths& usual_lengths) {
  const auto refuse = [](const std::string& message, const std::string& hint) {
    throw Error(ErrorKind::usage, message, hint);
  };
  const ExtensionFlags& extension = flags.extension;
  if (!extension.methods.empty() || !extension.plan_files.empty() || extension.scale) {
    refuse("the server of an endpoint sets the scaling of its model",
           "remove --methods, --plan and --scale; mrrope export writes a plan into files that "
           "servers run");
  }
  const SubjectFlags& subject = flags.subject;
  if (subject.rotary_dim || subject.base || !subject.train_ctx.empty() ||
      !subject.pairing.empty() || subject.replace_scaling) {
    refuse("the server of an endpoint sets the geometry of its model",
           "remove --rotary-dim, --rope-freq-base, --train-ctx, --pairing and --replace-scaling");
  }
  std::error_code error;
  if (std::filesystem::exists(subject.model, error)) {
    refuse(cat(subject.model, " is a file, and --endpoint has its own model"),
           "to use only its vocabulary, give --vocab " + subject.model);
  }
  EvalJob job;
  job.places.folders = {flags.out};
  job.places.reads = {flags.remote.vocabulary};
  job.remote = flags.remote;
  job.remote.model = subject.model;
  job.remote.key = key_from_environment(flags.remote.url);
  for (const std::string& text : flags.lengths) job.lengths.push_back(parse_length(text));
  if (!extension.ctx.empty()) {
    job.ctx = parse_length(extension.ctx);
  } else if (!job.lengths.empty()) {
    job.ctx = *std::max_element(job.lengths.begin(), job.lengths.end());
  } else {
    refuse("no context length given", "give --ctx 8k, or --lengths 512,1k,2k,4k,8k");
  }
  if (job.lengths.empty()) job.lengths = usual_lengths(job.ctx, job.ctx);
  job.longest = *std::max_element(job.lengths.begin(), job.lengths.end());
  if (job.longest > job.ctx)
    refuse(cat("a length is longer than --ctx ", job.ctx), "give a larger --ctx");
  job.remote.context = job.ctx;
  job.methods = {eval::served_method()};
  return job;
}

eval::RunFolder open_folder(const EvalFlags& flags, const EvalJob& job, const eval::Target& target,
                            std::uint64_t seed) {
  if (flags.out.empty()) return {};
  const eval::Shard shard = chosen_shard(flags);
  const std::string digest =
      job.served() ? cat("served:", target.prompts()->name()) : model_digest(job.model.files);
  nlohmann::ordered_json precision;
  if (!job.served()) precision = precision_of(job.model, job.engine);
  return {flags.out, {command_line(), digest, seed, shard, precision}};
}

// Whether stdout is a terminal that shows 256 colours.
bool shaded_output() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
         term != nullptr && std::string(term) != "dumb";
}

// The paper's table under the results, if a preset is in use.
std::string paper_text(const EvalJob& job, nlohmann::ordered_json run,
                       const nlohmann::ordered_json& results) {
  if (chosen_preset() == nullptr) return {};
  if (!job.served()) run["precision"] = precision_of(job.model, job.engine);
  return preset_table(run, results);
}

void print_results(const EvalFlags& flags, const EvalJob& job, const eval::RunFolder& folder,
                   const eval::TaskResults& results) {
  for (const std::string& line : folder.notes()) note(line);
  if (const eval::Shard& shard = folder.info().shard; shard.part()) {
    if (flags.json || flags.format == "json") {
      std::cout << nlohmann::ordered_json{{"shard", folder.run().at("shard")}}.dump() << "\n";
    } else {
      std::ostream& out = flags.format == "text" ? std::cout : std::cerr;
      out << "shard " << to_text(shard) << ": " << folder.run().at("shard").at("units")
          << " units in " << flags.out << "; when all " << shard.count
          << " are done, run: mrrope merge DIR... -o WHOLE\n";
    }
    return check_answers(flags, results.json);
  }
  if (!flags.out.empty()) note(cat("wrote ", flags.out, "/results.json"));
  std::string printed =
      flags.json || flags.format == "json"
          ? eval::results_text(results.json)
          : results.text(shaded_output()) + paper_text(job, folder.run(), results.json);
  std::string file;
  if (flags.format == "csv") {
    file = "results.csv";
    printed = eval::results_csv(results.json);
  } else if (flags.format == "lm-eval") {
    file = "results_lm-eval.json";
    printed = eval::results_text(eval::lm_eval_results(folder.run(), results.json));
  }
  if (!file.empty() && !flags.out.empty()) {
    write_atomically(folder.folder() / file, printed);
    note(cat("wrote ", flags.out, "/", file));
  }
  std::cout << printed;
  if (!flags.out.empty()) write_report({flags.out}, flags.out + "/report.html");
  check_answers(flags, results.json);
}

void add_endpoint(CLI::App& task, engine::RemoteOptions& flags) {
  CLI::Option* url =
      task.add_option("--endpoint", flags.url,
                      "An OpenAI-compatible server instead of a file: http://host:port/v1; the API "
                      "key is read from MRROPE_API_KEY or OPENAI_API_KEY")
          ->type_name("URL");
  for (const char* local : {"--gpu-layers", "--rpc", "--threads", "--ubatch-size", "--cache-type-k",
                            "--cache-type-v", "--flash-attn"}) {
    url->excludes(task.get_option(local));  // the server decides
  }
  task.add_option_function<std::string>(
          "--api", [&flags](const std::string& api) { flags.chat = api == "chat"; },
          "completions (sends token ids, counted exactly) or chat (sends text; the server "
          "applies its template)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"completions", "chat"}))
      ->default_str("completions")
      ->needs(url);
  task.add_option("--parallel", flags.parallel, "Requests in flight at once")
      ->type_name("N")
      ->capture_default_str()
      ->needs(url);
  task.add_option("--timeout", flags.seconds, "Seconds to wait for a reply before retrying")
      ->type_name("S")
      ->capture_default_str()
      ->needs(url);
  task.add_option("--vocab", flags.vocabulary,
                  "A GGUF file to count tokens with, if the server has no /tokenize")
      ->type_name("FILE")
      ->needs(url);
}

}  // namespace

void add_eval_subject(CLI::App& task, EvalFlags& flags) {
  add_subject(task, flags.subject);
  add_extension(task, flags.extension);
  task.add_option("--lengths", flags.lengths, "Lengths to report, e.g. 512,1k,2k,4k,8k")
      ->type_name("N,...")
      ->delimiter(',');
}

void add_eval_output(CLI::App& task, EvalFlags& flags) {
  add_engine(task, flags.engine);
  add_endpoint(task, flags.remote);
  task.add_option("-o,--out", flags.out, "Folder for run.json, journal.jsonl and results.json")
      ->type_name("DIR");
  task.add_option("--shard", flags.shard,
                  "Run only part I of N, in its own folder; mrrope merge joins the parts")
      ->type_name("I/N");
  CLI::Option* json = task.add_flag("--json", flags.json, "Print results as JSON");
  task.add_option("--format", flags.format,
                  "Output format: text, json, csv or lm-eval (as lm-evaluation-harness writes "
                  "it); the last two are also written to --out")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json", "csv", "lm-eval"}))
      ->capture_default_str()
      ->excludes(json);
  task.add_flag("--dry-run", flags.dry_run, "Print what the run would cost, and stop")
      ->excludes(json);
}

OpenModel open_model(EvalJob& job) {
  std::vector<const Ladder*> ladders;
  for (const eval::MethodUnderTest& m : job.methods) {
    if (m.ladder) ladders.push_back(&*m.ladder);
  }
  if (!job.served()) {
    OpenModel model{open_checked(job.model, job.engine, ladders, job.places), nullptr};
    if (job.automatic) {
      use(*model.local, *job.automatic);
      for (eval::MethodUnderTest& m : job.methods) {
        if (is_auto(m.name)) m.ladder = job.automatic->ladder;
      }
    }
    return model;
  }
  check_before_loading(job.model, {}, job.places);
  auto model = open_remote(job.remote);
  if (job.longest > model->context_length()) {
    throw Error(ErrorKind::usage,
                cat("the server accepts ", model->context_length(), " tokens per request, and ",
                    job.longest, " are needed"),
                "start the server with more (llama-server -c, vllm serve --max-model-len), or give "
                "shorter --lengths");
  }
  return {nullptr, std::move(model)};
}

EvalJob prepare_eval(
    const EvalFlags& flags,
    const std::function<std::vector<std::int64_t>(std::int64_t, std::int64_t)>& usual_lengths) {
  const eval::Shard shard = chosen_shard(flags);  // refuses a bad one before anything is loaded
  if (flags.dry_run && shard.part()) note(cat("the cost is that of all ", shard.count, " shards"));
  std::error_code none;
  if (flags.dry_run && !flags.out.empty() &&
      std::filesystem::exists(std::filesystem::path(flags.out) / "journal.jsonl", none)) {
    note(cat("the cost is that of a new run: what ", flags.out, " has already is not run again"));
  }
  if (!flags.remote.url.empty()) return prepare_served(flags, usual_lengths);
  Subject subject = resolve(flags.subject);
  if (!subject.model) {
    throw Error(ErrorKind::usage, "no model given", "give a GGUF file");
  }
  EvalJob job;
  job.places.folders = {flags.out};
  job.model = *subject.model;
  job.model.geometry = subject.geometry;
  for (const std::string& text : flags.lengths) job.lengths.push_back(parse_length(text));
  ExtensionFlags extension = flags.extension;
  if (!extension.ctx.empty()) {
    job.ctx = parse_length(extension.ctx);
  } else if (!job.lengths.empty()) {
    job.ctx = *std::max_element(job.lengths.begin(), job.lengths.end());
    if (!extension.scale) extension.ctx = cat(job.ctx);
  } else {
    throw Error(ErrorKind::usage, "no context length given",
                "give --ctx 8k, or --lengths 512,1k,2k,4k,8k");
  }
  for (const std::int64_t length : job.lengths) {
    if (length < 2) {
      throw Error(ErrorKind::usage, cat("length ", length, " leaves no token to score"),
                  "give --lengths of 2 tokens or more");
    }
  }
  job.engine = flags.engine;
  job.engine.context = job.ctx;
  if (job.lengths.empty()) job.lengths = usual_lengths(subject.geometry.train_length, job.ctx);
  job.longest = *std::max_element(job.lengths.begin(), job.lengths.end());
  if (job.longest > job.ctx) {
    throw Error(ErrorKind::usage, cat("a length is longer than --ctx ", job.ctx),
                "give a larger --ctx, or shorter --lengths");
  }
  if (extension.methods.empty() && extension.plan_files.empty()) {
    extension.methods = {"none,yarn,pro,auto"};
  }
  std::vector<Candidate> candidates = resolve(extension, job.model.geometry);
  if (auto vendor = vendor_plan(job.model, flags.subject.replace_scaling, job.ctx)) {
    candidates.push_back(*vendor);
  }
  for (const Candidate& c : candidates) {
    job.methods.push_back({c.name, up_to(c.ladder, job.ctx)});
    if (!is_auto(c.method.name)) continue;
    job.automatic = {c.meaning(), *job.methods.back().ladder, true, job.ctx, c.method};
  }
  eval::check_names(job.methods);
  if (flags.dry_run) note("loading the model, to count tokens and to time it");
  return job;
}

void print_local_cost(const EvalJob& job, const eval::Target& target,
                      const std::vector<std::int64_t>& passes, const char* ending) {
  if (target.timelines() == nullptr) return;
  print_memory(job.model, job.engine);
  target.timelines()->use(*job.methods.front().ladder);
  const ReadingSpeed speed =
      measure_speed(*target.timelines(), job.model, job.methods.front().ladder->longest());
  std::cout << time_text(speed, passes, ending)
            << "\nfor less, give fewer --methods, --lengths or --samples\n";
}

void run_eval(const EvalFlags& flags, const EvalJob& job, const eval::Target& target,
              std::uint64_t seed, const RunTask& run) {
  catch_interrupts();
  eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
  eval::RunFolder folder = open_folder(flags, job, target, seed);
  const eval::TaskResults results = run(folder, progress);
  print_results(flags, job, folder, results);
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
