// SPDX-License-Identifier: Apache-2.0
// What RULER's built-in samples cost to make, the fit apart from the rest, and how fast the model's
// tokenizer reads a whole text.
//   samples_bench MODEL [--length 128k] [--samples 500] [--tasks NAME,...]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "engine/llama/local.h"
#include "eval/tasks/ruler/ruler.h"
#include "mrrope/error.h"

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What benchmark samples cost to make");
  std::string model_path;
  mrrope::eval::RulerOptions options;
  std::int64_t length = 131072;
  options.samples = 500;
  app.add_option("model", model_path, "GGUF file")->required();
  app.add_option("--length", length, "Tokens per sample");
  app.add_option("--samples", options.samples, "Samples per task");
  app.add_option("--tasks", options.tasks, "Tasks")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  options.lengths = {length};
  try {
    mrrope::engine::LocalOptions engine;
    engine.context = 512;
    const auto model = mrrope::engine::open_local(mrrope::read_model(model_path), engine);
    const mrrope::eval::PromptFrame frame(*model, {});
    mrrope::eval::TokenCounter counter(*model, frame.chat());
    std::printf("%-22s %8s %10s %12s %14s\n", "task", "fit s", "samples s", "tokens",
                "whole text MB/s");
    for (const mrrope::eval::SampleSet& set :
         mrrope::eval::make_ruler(frame, counter, options).sets) {
      const double fit = seconds_of([&] { set.make(0); });
      std::int64_t tokens = 0;
      const double all = seconds_of([&] {
        for (std::size_t i = 0; i < set.count; ++i) {
          tokens += std::int64_t(set.make(i).prompt.size());
        }
      });
      // Are they what the tokenizer makes of the whole text, and how long does that take?
      const mrrope::eval::Sample last = set.make(set.count - 1);
      bool same = false;
      const double whole = seconds_of([&] { same = frame.tokens(last.text) == last.prompt; });
      std::printf("%-22s %8.2f %10.2f %12lld %14.2f%s\n", set.task.c_str(), fit, all,
                  static_cast<long long>(tokens), double(last.text.size()) / whole / 1e6,
                  same ? "" : "  DIFFERENT");
      std::fflush(stdout);
    }
  } catch (const mrrope::Error& e) {
    std::fprintf(stderr, "samples_bench: %s\n  %s\n", e.what(), e.hint().c_str());
    return e.exit_code();
  }
  return 0;
}
