// SPDX-License-Identifier: Apache-2.0
#include "cli/eval_options.h"

#include <algorithm>
#include <iostream>

#include "cli/app.h"
#include "cli/engine_options.h"
#include "cli/report_file.h"
#include "core/text.h"
#include "eval/result_formats.h"
#include "formats/digest.h"
#include "mrrope/error.h"

namespace mrrope::cli {

void add_eval_subject(CLI::App& task, EvalFlags& flags) {
  add_subject(task, flags.subject);
  add_extension(task, flags.extension);
  task.add_option("--lengths", flags.lengths, "Lengths to report, e.g. 512,1k,2k,4k,8k")
      ->type_name("N,...")
      ->delimiter(',');
}

void add_eval_output(CLI::App& task, EvalFlags& flags) {
  add_engine(task, flags.engine);
  task.add_option("-o,--out", flags.out, "Folder for run.json, journal.jsonl and results.json")
      ->type_name("DIR");
  CLI::Option* json = task.add_flag("--json", flags.json, "Print results as JSON");
  task.add_option("--format", flags.format,
                  "What is printed: text, json, csv or lm-eval (as lm-evaluation-harness writes "
                  "it); the last two also become files in --out")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json", "csv", "lm-eval"}))
      ->capture_default_str()
      ->excludes(json);
  task.add_flag("--dry-run", flags.dry_run, "Say what it would take, and stop");
}

EvalJob prepare_eval(
    const EvalFlags& flags,
    const std::function<std::vector<std::int64_t>(std::int64_t, std::int64_t)>& usual_lengths) {
  Subject subject = resolve(flags.subject);
  if (!subject.model) {
    throw Error(ErrorKind::usage, "an evaluation runs a model", "give a GGUF file");
  }
  EvalJob job;
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
    throw Error(ErrorKind::usage, "how long?", "give --ctx 8k, or --lengths 512,1k,2k,4k,8k");
  }
  job.engine = flags.engine;
  job.engine.context = job.ctx;
  if (job.lengths.empty()) job.lengths = usual_lengths(subject.geometry.train_length, job.ctx);
  job.longest = *std::max_element(job.lengths.begin(), job.lengths.end());
  if (job.longest > job.ctx) {
    throw Error(ErrorKind::usage, cat("a length lies past --ctx ", job.ctx),
                "give a larger --ctx, or shorter --lengths");
  }
  if (extension.methods.empty() && extension.plan_files.empty()) {
    extension.methods = {"none", "yarn", "uni", "pro"};
  }
  std::vector<Candidate> candidates = resolve(extension, job.model.geometry);
  if (auto vendor = vendor_plan(job.model, flags.subject.replace_scaling, job.ctx)) {
    candidates.push_back(*vendor);
  }
  for (const Candidate& c : candidates) {
    const auto* plan = std::get_if<Plan>(&c.content);
    job.methods.push_back(
        {c.name, plan ? make_ladder(*plan, job.ctx) : std::get<Ladder>(c.content)});
  }
  return job;
}

RunFolder open_folder(const EvalFlags& flags, const EvalJob& job, std::uint64_t seed) {
  if (flags.out.empty()) return {};
  return {flags.out, {command_line(), model_digest(job.model.files), seed}};
}

void print_results(const EvalFlags& flags, const RunFolder& folder, const std::string& json,
                   const std::string& text) {
  for (const std::string& line : folder.notes()) note(line);
  if (!flags.out.empty()) note(cat("wrote ", flags.out, "/results.json"));
  std::string printed = flags.json || flags.format == "json" ? json : text;
  std::string file;
  if (flags.format == "csv") {
    file = "results.csv";
    printed = results_csv(nlohmann::ordered_json::parse(json));
  } else if (flags.format == "lm-eval") {
    file = "results_lm-eval.json";
    printed = results_text(lm_eval_results(folder.run(), nlohmann::ordered_json::parse(json)));
  }
  if (!file.empty() && !flags.out.empty()) {
    write_atomically(folder.folder() / file, printed);
    note(cat("wrote ", flags.out, "/", file));
  }
  std::cout << printed;
  if (!flags.out.empty()) write_report({flags.out}, flags.out + "/report.html");
}

std::vector<std::string> default_texts() {
  note("no texts given: using those that come with mrrope, formal mathematics in data/texts");
  return {(project_files() / "data" / "texts").string()};
}

DocumentSet read_texts(const std::vector<std::string>& given, const DocumentOptions& options) {
  const std::vector<std::string> texts = given.empty() ? default_texts() : given;
  DocumentSet set = read_documents({texts.begin(), texts.end()}, options);
  for (const std::string& line : set.notes()) note(line);
  return set;
}

}  // namespace mrrope::cli
