// SPDX-License-Identifier: Apache-2.0
// mrrope theory attention: runs a model to capture its queries and keys.
#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/eval_options.h"
#include "cli/verbs/theory/output.h"
#include "core/methods.h"
#include "engine/llama/graph/capture.h"
#include "engine/llama/graph/pair_reader.h"
#include "eval/text/documents.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct AttentionFlags : TheoryFlags {
  engine::LocalOptions engine;
  std::vector<std::string> text;
  std::vector<int> layers;
  std::string tokens;
  int pairs = 50;
  std::uint64_t seed = 1;
};

std::string joined_texts(const std::vector<std::string>& given) {
  const std::vector<std::string> paths = given.empty() ? default_texts() : given;
  std::string text;
  for (const eval::Document& d : eval::read_documents({paths.begin(), paths.end()}, {}).documents) {
    text += d.text + "\n\n";
  }
  return text;
}

// How far the plans are meant to reach, by the flags; 0: as far as the text.
std::int64_t wanted_reach(const ExtensionFlags& flags, const Geometry& g) {
  if (!flags.ctx.empty()) return parse_length(flags.ctx);
  return flags.scale ? std::int64_t(*flags.scale * double(g.train_length)) : 0;
}

// Past the window the model has to run under each plan.
theory::TheoryFigure as_it_runs(const AttentionFlags& flags, const Model& model,
                                std::int64_t tokens, const theory::AttentionRequest& request) {
  const Geometry& g = model.geometry;
  const std::int64_t reach = wanted_reach(flags.extension, g);
  if (reach > 0 && tokens > reach) {
    throw Error(ErrorKind::usage,
                cat("--tokens ", flags.tokens, " is more than the ", reach,
                    " tokens that the plans are made for"),
                cat("give --tokens ", reach, " or fewer, or a larger --ctx"));
  }
  for (const MethodSpec& method : method_specs(flags.extension)) {
    if (method.growth == Growth::none && !is_auto(method.name)) continue;
    throw Error(
        ErrorKind::usage,
        cat(to_string(method), " changes its plan while it reads, and this figure is of one plan"),
        cat("give --methods ", is_auto(method.name) ? "pro" : method.name));
  }
  const std::vector<theory::NamedPlan> plans =
      theory_plans(flags, g, double(tokens) / double(g.train_length));
  engine::PairReader reader(model, flags.engine, joined_texts(flags.text), tokens, flags.layers);
  const theory::AttentionPlaces drawn = draw_places(g, reader.layers(), tokens, request);
  note(cat("reading ", g.train_length, " tokens with the unmodified model"));
  const std::vector<RotatedPair> inside =
      reader.read(make_plan(g, Extension{}), drawn.inside, g.train_length);
  std::vector<std::vector<RotatedPair>> rotated;
  for (const theory::NamedPlan& c : plans) {
    note(cat("reading ", tokens, " tokens under ", c.name));
    rotated.push_back(reader.read(c.plan, drawn.places, tokens));
  }
  return attention_run_figure(g, plans, drawn, rotated, inside, request);
}

void run_attention(const AttentionFlags& flags) {
  const Subject subject = theory_subject(flags.subject);
  if (!subject.model) {
    throw Error(ErrorKind::usage, "this figure needs a model", "give a GGUF file");
  }
  const Geometry& g = subject.geometry;
  const std::int64_t tokens = flags.tokens.empty() ? std::min<std::int64_t>(1024, g.train_length)
                                                   : parse_length(flags.tokens);
  Model model = *subject.model;
  model.geometry = g;
  const theory::AttentionRequest request{model.name, flags.pairs, flags.seed};
  check_before_loading(model, {}, {flags.text, {}, {flags.svg, flags.html, flags.csv}});
  if (tokens > g.train_length) {
    print_theory(flags, as_it_runs(flags, model, tokens, request));
    return;
  }
  const std::vector<theory::NamedPlan> plans = theory_plans(flags, g, 4);
  const Capture capture =
      capture_attention(model, flags.engine, joined_texts(flags.text), tokens, flags.layers);
  print_theory(flags, attention_figure(g, plans, capture, request));
}

}  // namespace

void add_theory_attention(CLI::App& theory) {
  auto flags = std::make_shared<AttentionFlags>();
  CLI::App* a =
      theory.add_subcommand("attention", "Attention scores against distance, from a real model");
  add_theory_subject(*a, *flags);
  a->add_option("--text", flags->text, "Texts to read (default: those that come with mrrope)")
      ->type_name("FILE")
      ->take_all();
  a->add_option("--layers", flags->layers, "Layers to capture (default: four, evenly spread)")
      ->type_name("N,...")
      ->delimiter(',');
  a->add_option("--tokens", flags->tokens,
                "Tokens to read (default: 1024). Up to the window the model reads them once, as "
                "shipped, and its queries and keys are turned to every distance; past it the model "
                "runs under each plan")
      ->type_name("LENGTH");
  a->add_option("--pairs", flags->pairs, "Token pairs per distance")
      ->type_name("N")
      ->check(CLI::Range(2, kMostCounted))
      ->capture_default_str();
  a->add_option("--seed", flags->seed, "Seed for drawing the pairs")
      ->type_name("N")
      ->capture_default_str();
  add_engine(*a, flags->engine);
  add_theory_output(*a, *flags);
  a->footer(
      "Examples:\n  mrrope theory attention model.gguf --scale 4\n"
      "  mrrope theory attention model.gguf --methods none,yarn,pro --ctx 32k --layers 5 \\\n"
      "    --html attention.html\n"
      "  mrrope theory attention model.gguf --tokens 16k --method pro    # the model as it runs");
  a->callback([flags] { run_attention(*flags); });
}

}  // namespace mrrope::cli
