// SPDX-License-Identifier: Apache-2.0
// mrrope demo: the embedded model taken past its window, with no question asked.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/report_file.h"
#include "core/methods.h"
#include "engine/llama/local.h"
#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "eval/text/documents.h"
#include "formats/digest.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct DemoFlags {
  bool full = false;
  std::string out = "mrrope-demo";
  int threads = 0;
};

MethodUnderTest under(const Geometry& g, const std::string& method, std::int64_t ctx) {
  const MethodName name = split_method_name(method);
  Extension e;
  e.method = name.method;
  if (name.elastic) {
    LadderRequest request;
    request.extension = e;
    request.longest = ctx;
    return {method, make_ladder(g, request)};
  }
  if (method_row(e.method).reach != Reach::unchanged)
    e.scale = double(ctx) / double(g.train_length);
  return {method, make_ladder(make_plan(g, e), ctx)};
}

// The best of those that hold to the end, by perplexity at the longest length.
const PerplexityRow* best_row(const PerplexityResults& results) {
  const PerplexityRow* best = nullptr;
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    const PerplexityRow& row = results.rows[i];
    if (!results.verdicts[i].to_the_end || row.untouched) continue;
    if (!best || row.cells.back().perplexity.value < best->cells.back().perplexity.value) {
      best = &row;
    }
  }
  return best;
}

void run_demo(const DemoFlags& flags) {
  const std::filesystem::path home = project_files();
  const Model facts = read_model(home / "models" / "mrrope-tiny.gguf");
  const std::int64_t window = facts.geometry.train_length;
  const std::int64_t ctx = flags.full ? 8 * window : 4 * window;
  std::vector<std::string> names = {"none", "yarn", "uni", "pro", "elastic:pro"};
  if (flags.full)
    names = {"none", "pi", "ntk", "yarn", "yarn-rotations", "uni", "pro", "elastic:pro"};

  std::cout << "MrRoPE Tiny was trained on " << window
            << " tokens. How far does it hold under each "
            << "method, up to " << ctx << "?\n\n"
            << std::flush;
  LocalOptions engine;
  engine.context = ctx;
  engine.threads = flags.threads;
  engine.timelines = 8;
  const auto model = open_local(facts, engine);
  DocumentOptions choice;
  choice.samples = 3;
  const DocumentSet set = read_documents({home / "data" / "texts"}, choice);
  std::vector<MethodUnderTest> methods;
  for (const std::string& name : names) methods.push_back(under(facts.geometry, name, ctx));

  catch_interrupts();
  Progress progress(stderr_writer(), stderr_is_terminal());
  RunFolder folder(flags.out + "/ppl", {command_line(), model_digest(facts.files), 1});
  PerplexityOptions options;
  for (std::int64_t n = window / 2; n <= ctx; n *= 2) options.lengths.push_back(n);
  const PerplexityResults results =
      run_perplexity(*model, methods, set.documents, options, folder, progress);
  std::cout << to_text(results) << "\n" << std::flush;

  // Needles at the longest length: one haystack, one needle at each of five depths.
  NeedleOptions needles;
  needles.lengths = {ctx};
  needles.depths = {0, 25, 50, 75, 100};
  needles.form = make_form(*model, "planted", std::nullopt, 0);
  RunFolder needle_folder(flags.out + "/needle", {command_line(), model_digest(facts.files), 1});
  const NeedleResults found =
      run_needle(*model, methods, set.documents, needles, needle_folder, progress);
  std::cout << to_text(found, false) << "\n";

  if (const PerplexityRow* best = best_row(results)) {
    std::cout << "In words: past " << window << " tokens the untouched model falls apart ("
              << fixed(results.rows.front().cells.back().perplexity.value, 1) << " at " << ctx
              << "); " << best->method << " reads " << ctx << " tokens at "
              << fixed(best->cells.back().perplexity.value, 2) << ", without training.\n";
  }
  write_report({flags.out}, flags.out + "/report.html");
  std::cout << "Results: " << flags.out << "\nReport: " << flags.out
            << "/report.html (open it in a browser)\n\nNext, with your own model:\n"
            << "  ./run inspect YOUR-MODEL.gguf --ctx 32k\n"
            << "  ./run eval ppl YOUR-MODEL.gguf --ctx 32k --text YOUR-TEXTS -o run1\n";
}

}  // namespace

void add_demo(CLI::App& app) {
  auto flags = std::make_shared<DemoFlags>();
  CLI::App* verb = app.add_subcommand("demo", "Take the embedded model past its window");
  verb->add_flag("--full", flags->full, "To 8 times the window, with all methods");
  verb->add_option("-o,--out", flags->out, "Folder for the results")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("-t,--threads", flags->threads, "Threads on the CPU; 0: all cores")
      ->type_name("N")
      ->capture_default_str();
  verb->footer("Examples:\n  mrrope demo\n  mrrope demo --full -o demo-8k");
  verb->callback([flags] { run_demo(*flags); });
}

}  // namespace mrrope::cli
