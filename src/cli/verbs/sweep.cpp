// SPDX-License-Identifier: Apache-2.0
// mrrope sweep: the paper's study of the ramp boundaries, on the user's model.
#include "tune/sweep.h"

#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/eval_options.h"
#include "cli/args/options.h"
#include "cli/args/presets.h"
#include "cli/args/terminal_output.h"
#include "eval/text/documents.h"
#include "formats/digest.h"
#include "mrrope/error.h"
#include "report/charts/svg.h"
#include "report/sweep_part.h"

namespace mrrope::cli {

namespace {

struct SweepFlags {
  SubjectFlags subject;
  engine::LocalOptions engine;
  std::vector<std::string> methods = {"yarn", "uni", "pro"};
  std::string ctx;
  std::string low, high;
  int step = 1;
  double headroom = 1;
  std::vector<std::string> text;
  eval::DocumentOptions documents;
  std::string select = "first";
  std::string out;
  bool csv = false;
  bool json = false;
  bool dry_run = false;
};

void write_pictures(const std::string& folder, const report::Figure& f) {
  constexpr report::SvgOptions kAlone{.width = 760, .standalone = true};
  if (const auto* chart = std::get_if<report::LineChart>(&f.content)) {
    return write_output(folder + "/sweep.svg", to_svg(*chart, kAlone));
  }
  for (report::HeatMap map : std::get<std::vector<report::HeatMap>>(f.content)) {
    const std::string name = map.title;  // of a method, so fit for a file
    map.title = cat(f.title, ", ", name);
    write_output(cat(folder, "/sweep-", name, ".svg"), to_svg(map, kAlone));
  }
}

void run_sweep_command(const SweepFlags& flags) {
  Subject subject = resolve(flags.subject);
  if (!subject.model) throw Error(ErrorKind::usage, "no model given", "give a GGUF file");
  if (flags.ctx.empty())
    throw Error(ErrorKind::usage, "no context length given", "give --ctx, e.g. --ctx 8k");
  Model facts = *subject.model;
  facts.geometry = subject.geometry;
  tune::SweepRequest request;
  request.methods = flags.methods;
  request.low = tune::parse_pairs(flags.low, flags.step, "--low");
  request.high = tune::parse_pairs(flags.high, flags.step, "--high");
  request.ctx = parse_length(flags.ctx);
  request.headroom = flags.headroom;
  std::vector<tune::SweepPoint> points;
  sweep_methods(facts.geometry, request, points);  // refuses before the model is loaded

  const std::vector<std::string> texts = flags.text.empty() ? default_texts() : flags.text;
  engine::LocalOptions engine = flags.engine;
  engine.context = request.ctx;
  engine.timelines = 1;
  note_precision(facts, engine);
  if (flags.dry_run) note("loading the model, to count tokens and to time it");
  const auto model = open_checked(facts, engine, {}, {texts, {flags.out}});
  eval::DocumentOptions choice = flags.documents;
  choice.select = flags.select == "random" ? eval::Select::random : eval::Select::first;
  choice.min_tokens = request.ctx;
  choice.tokens = [&](const eval::Document& d) {
    return std::int64_t(model->tokenize(d.text, true, false).size());
  };
  const eval::DocumentSet set = read_documents({texts.begin(), texts.end()}, choice);
  for (const std::string& line : set.notes()) note(line);
  if (flags.dry_run) {
    const std::size_t units = points.size() * set.documents.size();
    std::cout << points.size() << " plans x " << set.documents.size() << " documents, "
              << std::int64_t(units) * request.ctx << " tokens\n";
    print_memory(facts, engine);
    std::cout << time_text(measure_speed(*model, facts, request.ctx),
                           std::vector<std::int64_t>(units, request.ctx))
              << "\nfor less, give fewer --methods or --samples, or a larger --step\n";
    return;
  }

  catch_interrupts();
  eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
  const tune::SweepResults results = run_sweep(*model, request, set.documents, flags.out,
                                               {command_line(),
                                                model_digest(facts.files),
                                                choice.seed,
                                                {},
                                                engine::precision_of(facts, engine),
                                                model_file(flags.subject)},
                                               progress);
  for (const std::string& line : results.notes) note(line);
  const report::Figure picture = report::sweep_figure(report::sweep_from_json(to_json(results)));
  if (!flags.out.empty()) {
    write_output(flags.out + "/sweep.csv", to_csv(results));
    write_pictures(flags.out, picture);
    write_report(flags.out);
  }
  if (flags.json) {
    std::cout << eval::results_text(to_json(results));
  } else {
    std::cout << (flags.csv ? to_csv(results) : to_text(results));
    if (!flags.csv && stdout_is_terminal()) {
      std::cout << "\n";
      print_chart(picture.content);
    }
  }
  if (!flags.out.empty()) {
    note(cat("wrote results.json, sweep.csv and charts (.svg) to ", flags.out));
  }
}

}  // namespace

void add_sweep(CLI::App& app) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* verb = app.add_subcommand("sweep", "Perplexity for different ramp boundaries");
  add_subject(*verb, flags->subject);
  verb->add_option("-c,--ctx", flags->ctx, "Context length in tokens, e.g. 8192 or 8k")
      ->type_name("LENGTH");
  verb->add_option("--method,--methods", flags->methods,
                   "One or more of: yarn, regressive, uni, pro, power")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--low", flags->low, "Values of low, the first pair of the ramp, e.g. 5..15")
      ->type_name("A..B");
  verb->add_option("--high", flags->high,
                   "Values of high, the first pair scaled in full, e.g. 30..45")
      ->type_name("C..D");
  verb->add_option("--step", flags->step, "Step between pairs")
      ->type_name("N")
      ->check(CLI::Range(1, kMostCounted))
      ->capture_default_str();
  verb->add_option("--headroom", flags->headroom, "Extra scale factor, at least 1")
      ->type_name("H")
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str();
  verb->add_option("--text", flags->text, "Texts: plain, .jsonl, also .gz .xz .zst, or folders")
      ->type_name("FILE")
      ->take_all();
  verb->add_option("--field", flags->documents.field, "Field of a .jsonl line that holds the text")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--samples", flags->documents.samples,
                   "Documents to use, of those that are long enough; 0: all")
      ->type_name("N")
      ->check(CLI::Range(0, kMostCounted))
      ->capture_default_str();
  verb->add_option("--select", flags->select, "Which of them to use: first or random")
      ->type_name("HOW")
      ->check(CLI::IsMember({"first", "random"}))
      ->capture_default_str();
  verb->add_option("--seed", flags->documents.seed, "Seed of the random choice")
      ->type_name("N")
      ->capture_default_str();
  add_engine(*verb, flags->engine);
  verb->add_option("-o,--out", flags->out, "Folder for the results, the report and the charts")
      ->type_name("DIR");
  auto* csv = verb->add_flag("--csv", flags->csv, "Print CSV");
  auto* json = verb->add_flag("--json", flags->json, "Print results as JSON")->excludes(csv);
  verb->add_flag("--dry-run", flags->dry_run, "Print the estimated cost, and stop")->excludes(json);
  verb->footer(
      "Examples:\n"
      "  mrrope sweep model.gguf --ctx 8k --methods yarn,uni,pro --low 5..15 -o lows\n"
      "  mrrope sweep model.gguf --ctx 8k --methods pro --low 5..15 --high 30..45 --step 5\n"
      "An interrupted run with -o resumes when you run the same command again.");
  verb->callback([flags] { run_sweep_command(*flags); });
}

}  // namespace mrrope::cli
