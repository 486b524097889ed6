// SPDX-License-Identifier: Apache-2.0
// mrrope eval needle: what a model finds, by length and depth.
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/eval_options.h"
#include "cli/args/options.h"
#include "eval/tasks/needle/needle.h"
#include "eval/text/documents.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct NeedleFlags {
  EvalFlags eval;
  std::vector<double> depths = eval::usual_depths();
  std::vector<std::string> haystack;
  eval::DocumentOptions documents;
  std::string form;
  std::optional<std::string> needle, question, answer;
  int answer_tokens = 0;
  std::size_t samples = 1;
  std::uint64_t seed = 1;
};

// Eight equal steps: half of 4k is a quarter of 8k, so the two share a prefix.
std::vector<std::int64_t> equal_steps(std::int64_t /*window*/, std::int64_t ctx) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t k = 1; k <= 8; ++k) lengths.push_back(ctx * k / 8);
  return lengths;
}

void print_dry_run(const EvalJob& job, const eval::Target& target,
                   const std::vector<eval::Document>& documents,
                   const eval::NeedleOptions& options) {
  check_needle(target, job.methods, options);
  const auto haystacks = make_haystacks(target.tokenizer(), documents, job.longest, options.samples,
                                        options.form.name == eval::kKamradt);
  const eval::NeedleGrid grid{options.lengths, options.depths};
  std::int64_t tokens = 0;
  std::int64_t naive = 0;
  for (std::size_t s = 0; s < options.samples; ++s) {
    const eval::NeedleTree tree =
        plan_tree(target.tokenizer(), options.form, grid, haystacks[s % haystacks.size()].tokens,
                  options.seed, s);
    for (const eval::MethodUnderTest& method : job.methods) {
      tokens += shares(options, method) ? tree.tokens : tree.naive_tokens;
      naive += tree.naive_tokens;
    }
  }
  const std::size_t methods = job.methods.size();
  const std::size_t needles = options.samples * options.depths.size() * grid.lengths.size();
  std::cout << needles << " needles x " << methods << " methods, " << tokens << " of " << naive
            << " tokens (prefixes are shared), form " << options.form.name << "\n";
  const std::vector<std::int64_t> passes(std::size_t(tokens / job.longest + 1), job.longest);
  print_local_cost(job, target, passes);
}

std::vector<eval::Document> haystack_of(const NeedleFlags& flags, const EvalJob& job,
                                        const eval::Target& target,
                                        const eval::NeedleOptions& options) {
  if (options.form.name == eval::kKamradt && flags.haystack.empty()) {
    note("no --text given: the needle is hidden in generated prose");
    return eval::made_essays(target.tokenizer(), job.longest, options.samples);
  }
  std::vector<eval::Document> documents = read_texts(flags.haystack, flags.documents).documents;
  if (options.form.name == eval::kKamradt) {
    const auto made = make_haystacks(target.tokenizer(), documents, job.longest, 1, true);
    if (const std::string& id = made.front().id; id.find(" x ") != std::string::npos) {
      note(cat("the haystack is too short for ", job.longest, " tokens and is repeated"));
    }
  }
  return documents;
}

void run_needle_command(const NeedleFlags& flags) {
  std::optional<eval::NeedleTexts> own;
  if (flags.needle || flags.question || flags.answer) {
    own = eval::NeedleTexts{flags.needle.value_or(""), flags.question.value_or(""),
                            flags.answer.value_or("")};
    check_texts(*own);
  }
  EvalJob job = prepare_eval(flags.eval, equal_steps);
  job.engine.timelines = 3;  // trunk, branch, question
  job.places.reads.insert(job.places.reads.end(), flags.haystack.begin(), flags.haystack.end());
  const OpenModel model = open_model(job);
  const eval::Target target = model.target();

  eval::NeedleOptions options;
  options.lengths = eval::sorted_lengths(job.lengths);
  options.depths = flags.depths;
  options.samples = flags.samples;
  options.seed = flags.seed;
  options.form = make_form(target.tokenizer(), flags.form, own, flags.answer_tokens);

  const std::vector<eval::Document> haystack = haystack_of(flags, job, target, options);
  if (flags.eval.dry_run) return print_dry_run(job, target, haystack, options);

  run_eval(flags.eval, job, target, options.seed,
           [&](eval::RunFolder& folder, eval::Progress& progress) {
             return run_needle(target, job.methods, haystack, options, folder, progress);
           });
}

}  // namespace

void add_eval_needle(CLI::App& eval) {
  const auto [verb, flags] = add_verb<NeedleFlags>(
      eval, "needle", "Needle in a haystack, by length and depth", run_needle_command);
  add_eval_subject(verb, flags.eval);
  add_value(verb, "--depths", flags.depths, "P,...",
            "Depths in the haystack, in percent; default 0,10,...,100");
  add_value(verb, "--text", flags.haystack, "FILE",
            "Texts: plain or .jsonl, also as .gz .xz .zst, or folders; short ones are joined");
  add_default(verb, "--field", flags.documents.field, "NAME",
              "Field of a .jsonl line that holds the text");
  add_value(verb, "--form", flags.form, "FORM",
            "planted, completion, chat or kamradt (one sentence in essays, scored by recall, as in "
            "the paper); default: chat if the model has a template")
      ->check(CLI::IsMember({"planted", "completion", "chat", eval::kKamradt}));
  add_value(verb, "--needle", flags.needle, "TEXT",
            "A sentence to hide; {word} and {number} are drawn");
  add_value(verb, "--question", flags.question, "TEXT", "The question that asks for the needle");
  add_value(verb, "--answer", flags.answer, "TEXT",
            "The expected answer: scored by the share of its words that are found, and by whether "
            "it is contained exactly");
  add_value(verb, "-n,--predict", flags.answer_tokens, "N",
            "Maximum tokens of an answer; default 16, for chat and kamradt 50")
      ->check(CLI::Range(1, kMostCounted));
  add_count(verb, "--samples", flags.samples, 1, "Needles per length and depth");
  add_default(verb, "--seed", flags.seed, "N", "Seed of the words and numbers");
  add_eval_output(verb, flags.eval);
  verb.footer(
      "Examples:\n"
      "  mrrope eval needle model.gguf --method none,yarn,pro --ctx 8k --text docs/ -o run2\n"
      "  mrrope eval needle model.gguf --lengths 4k,8k --depths 0,50,100 --samples 20 \\\n"
      "    --text a.txt --needle 'The key lies under the blue stone.' \\\n"
      "    --question 'Where is the key?' --answer 'under the blue stone'\n"
      "  mrrope eval needle model.gguf --form kamradt --method yarn,pro --ctx 128k --text essays/\n"
      "  mrrope eval needle --endpoint http://127.0.0.1:8080/v1 --ctx 8k -o run3\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
}

}  // namespace mrrope::cli
