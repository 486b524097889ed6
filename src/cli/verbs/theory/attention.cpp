// SPDX-License-Identifier: Apache-2.0
// mrrope theory attention: runs a model to capture its queries and keys.
#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/eval_options.h"
#include "cli/verbs/theory/output.h"
#include "engine/llama/graph/capture.h"
#include "eval/text/documents.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct AttentionFlags : TheoryFlags {
  engine::LocalOptions engine;
  std::vector<std::string> text;
  std::vector<int> layers;
  std::int64_t tokens = 0;
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

void run_attention(const AttentionFlags& flags) {
  const Subject subject = theory_subject(flags.subject);
  if (!subject.model) {
    throw Error(ErrorKind::usage, "this figure needs a model", "give a GGUF file");
  }
  if (flags.pairs < 2) {
    throw Error(ErrorKind::usage, cat(flags.pairs, " pairs give no spread"), "give --pairs 50");
  }
  const Geometry& g = subject.geometry;
  const std::vector<theory::NamedPlan> plans = theory_plans(flags, g, 4);
  const std::int64_t tokens =
      flags.tokens > 0 ? flags.tokens : std::min<std::int64_t>(1024, g.train_length);
  if (tokens > g.train_length) {
    throw Error(ErrorKind::usage,
                cat(tokens, " tokens are more than the window of ", g.train_length),
                cat("give --tokens ", g.train_length, " or fewer"));
  }
  Model model = *subject.model;
  model.geometry = g;
  const Capture capture =
      capture_attention(model, flags.engine, joined_texts(flags.text), tokens, flags.layers);
  print_theory(flags, attention_figure(g, plans, capture, {model.name, flags.pairs, flags.seed}));
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
  a->add_option("--tokens", flags->tokens, "Tokens to read, at most the window (default: 1024)")
      ->type_name("N");
  a->add_option("--pairs", flags->pairs, "Token pairs per distance")
      ->type_name("N")
      ->capture_default_str();
  a->add_option("--seed", flags->seed, "Seed for drawing the pairs")
      ->type_name("N")
      ->capture_default_str();
  add_engine(*a, flags->engine);
  add_theory_output(*a, *flags);
  a->footer(
      "Examples:\n  mrrope theory attention model.gguf --scale 4\n"
      "  mrrope theory attention model.gguf --methods none,yarn,pro --ctx 32k --layers 5 "
      "--html attention.html");
  a->callback([flags] { run_attention(*flags); });
}

}  // namespace mrrope::cli
