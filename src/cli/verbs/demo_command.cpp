// SPDX-License-Identifier: Apache-2.0
// mrrope demo: the bundled model beyond its trained context, untouched and extended.
#include <iostream>

#include "base/files/source.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "formats/plan_file.h"

namespace mrrope::cli {

namespace {

constexpr int kContinuation = 60;        // tokens
constexpr std::int64_t kWriting = 8;     // a token takes as long to write as so many to read
constexpr std::size_t kBatch = 512;      // tokens between two steps of the progress bar
constexpr std::size_t kTexts = 4;        // of which the perplexity is measured
constexpr std::size_t kPromptEnd = 240;  // characters of the prompt that are shown

struct DemoFlags {
  bool full = false;
  std::string out = "mrrope-demo";
  int threads = 0;
};

eval::MethodUnderTest under(const Geometry& geometry, const std::string& method, std::int64_t ctx) {
  const MethodSpec spec = resolve_auto(geometry, parse_method(method), ctx);
  return {to_string(spec), make_ladder(geometry, spec, ctx)};
}

// How far the unmodified model falls behind at the longest length.
std::string difference_text(const eval::ResultTable& r) {
  for (const eval::Comparison& c : r.comparisons) {
    const bool ends = c.a == r.methods.front().method && c.b == r.methods.back().method;
    if (c.length != r.lengths.back() || !ends) continue;
    return cat("At ", length_text(c.length), " the perplexity of ", c.a, " is ",
               significant(std::exp(c.difference.mean_difference.value), 2), " times that of ", c.b,
               " (paired over ", c.difference.mean_difference.n, " texts, p ",
               c.corrected_p < 0.001 ? "< 0.001" : "= " + significant(c.corrected_p, 2), ").\n");
  }
  return {};
}

std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += cat("    | ", printable(text.substr(begin, end - begin)), "\n");
    begin = end + 1;
  }
  return out;
}

std::string continuation(TimelineModel& model, const eval::MethodUnderTest& method,
                         std::span<const Token> prompt, eval::Progress& progress) {
  progress.label(cat(method.name, " continues a text"));
  model.use(*method.ladder);
  const auto timeline = model.timeline();
  for (std::size_t at = 0; at < prompt.size();) {
    const auto part = prompt.subspan(at, std::min(prompt.size() - at, kBatch));
    timeline->append(part);
    progress.advance(std::int64_t(part.size()));
    at += part.size();
  }
  GenerateOptions options;
  options.max_tokens = kContinuation;
  options.on_text = [&](std::string_view) {
    progress.advance(kWriting);
    return true;
  };
  return timeline->generate(options).text;
}

// The same prompt of twice the window, continued by both.
std::string side_by_side(TimelineModel& model, const eval::Document& document,
                         const eval::MethodUnderTest& untouched,
                         const eval::MethodUnderTest& extended, eval::Progress& progress) {
  const std::vector<Token> tokens = model.tokenize(document.text, true, false);
  const auto length = std::size_t(2 * model.facts().geometry.train_length);
  const std::string name = document.id.substr(0, document.id.find('#'));
  throw_if(tokens.size() < length, ErrorKind::failed,
           cat(name, " has ", tokens.size(), " tokens, and ", length, " are needed"),
           "install data/texts as they come with mrrope, or set MRROPE_HOME to them");
  const auto prompt = std::span(tokens).first(length);
  const auto rest = std::span(tokens).subspan(
      length, std::min<std::size_t>(kContinuation, tokens.size() - length));
  const std::string text = model.detokenize(prompt);
  progress.label("a text continued");
  progress.start(2 * (std::int64_t(length) + kContinuation * kWriting));
  const std::string without = continuation(model, untouched, prompt, progress);
  const std::string with = continuation(model, extended, prompt, progress);
  progress.finish();
  return cat("The first ", length, " tokens of ", name, ", continued by both. They end:\n",
             indented(text.substr(text.size() - std::min(text.size(), kPromptEnd))),
             "none continues:\n", indented(without), extended.name, " continues:\n", indented(with),
             "The text itself continues:\n", indented(model.detokenize(rest)));
}

void run_demo(const DemoFlags& flags) {
  const std::filesystem::path home = project_files();
  const Model facts = read_model(home / "models" / "mrrope-tiny.gguf");
  const std::int64_t window = facts.geometry.train_length;
  const std::int64_t ctx = 8 * window;
  std::vector<std::string> names = {"none", std::string(kAuto)};
  if (flags.full) names = {"none", "pi", "ntk", "yarn", "uni", "pro", std::string(kAuto)};
  const auto methods =
      mapped(names, [&](const std::string& name) { return under(facts.geometry, name, ctx); });
  engine::LocalOptions engine;
  engine.context = ctx;
  engine.threads = flags.threads;
  engine.timelines = 8;
  const std::string texts_folder = (home / "data" / "texts").string();
  std::cout << "MrRoPE Tiny was trained on texts of " << window << " tokens. It now reads up to "
            << ctx
            << ",\nas it is (none) and extended without training (auto: " << methods.back().name
            << "):\na text continued by both, perplexity by length, and needles to find again.\n"
            << std::flush;
  const auto model = load(facts, engine, {}, {{texts_folder}, {flags.out}});
  const eval::DocumentSet set = eval::read_documents({texts_folder}, {});
  // Reading 8 times the window takes four times as long as half of it.
  const std::int64_t longest = flags.full ? ctx : ctx / 2;
  const auto texts =
      std::span(set.documents)
          .first(flags.full ? set.documents.size() : std::min(kTexts, set.documents.size()));
  std::vector<eval::MethodUnderTest> seekers = {methods.front()};
  for (const char* name : {"yarn", "pro"}) seekers.push_back(under(facts.geometry, name, ctx));
  seekers.push_back(methods.back());
  eval::NeedleOptions needles;
  needles.lengths = {window, ctx};
  needles.depths = {10, 30, 50, 70, 90};
  needles.samples = flags.full ? 4 : 1;
  needles.together = true;
  needles.form = eval::make_form(*model, "planted", std::nullopt, 0);
  std::vector<std::int64_t> passes(2, 2 * window + kContinuation * kWriting);
  passes.insert(passes.end(), methods.size() * texts.size(), longest);
  for (const std::int64_t length : needles.lengths) {
    const auto answers = std::int64_t(needles.depths.size()) * needles.form.answer_tokens;
    passes.insert(passes.end(), seekers.size() * needles.samples, length + answers * kWriting);
  }
  const engine::ReadingSpeed speed = measure_speed(*model);
  std::cout << "That takes " << engine::time_text(speed, passes, " here") << ".\n\n" << std::flush;

  catch_interrupts();
  eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
  progress.at_once();
  std::cout << side_by_side(*model, set.documents.back(), methods.front(), methods.back(), progress)
            << "\n"
            << std::flush;
  const eval::RunInfo info{command_line(), model_digest(facts.files), 1};
  eval::RunFolder folder(flags.out + "/ppl", info);
  eval::PerplexityOptions options;
  for (std::int64_t n = window / 2; n <= longest; n *= 2) options.lengths.push_back(n);
  progress.label("perplexity");
  const eval::ResultTable results =
      run_perplexity(*model, methods, {texts.begin(), texts.end()}, options, folder, progress);
  std::cout << to_text(results, results.tables.front()) << difference_text(results) << "\n"
            << std::flush;

  eval::RunFolder needle_folder(flags.out + "/needle", info);
  progress.label("needles");
  const eval::ResultTable found =
      run_needle(*model, seekers, set.documents, needles, needle_folder, progress);
  std::cout << to_text(found, {"Needles found, in percent: five sentences hidden in a text, each "
                               "asked for at its end:\n",
                               eval::kContains})
            << "\n";

  write_report(flags.out);
  const char* run = std::getenv("MRROPE_COMMAND");  // ./run sets it
  const std::string command = run && *run ? run : "mrrope";
  std::cout << "Charts and tables: " << flags.out << "/report.html (open it in a browser)\n\n"
            << "Next, what a model is and what a longer context takes (mrrope models lists those "
               "that you have):\n  "
            << command << " inspect " << shell_word(facts.path.string()) << " --ctx "
            << length_text(ctx) << "\n";
}

}  // namespace

void add_demo(CLI::App& app) {
  const auto [verb, flags] = add_verb<DemoFlags>(app, "demo", run_demo);
  add(verb, "--full", flags.full);
  add(verb, "-o,--out", flags.out);
  add(verb, "-t,--threads", flags.threads);
}

}  // namespace mrrope::cli
