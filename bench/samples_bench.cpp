// SPDX-License-Identifier: Apache-2.0
// What RULER's built-in samples cost to make: the fit, the texts with their lengths checked by
// cached counts, and the tokens of the final texts.
//   samples_bench MODEL [--length 128k] [--samples 500] [--tasks NAME,...]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "engine/local.h"
#include "eval/ruler.h"
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
  mrrope::RulerOptions options;
  std::int64_t length = 131072;
  options.samples = 500;
  app.add_option("model", model_path, "GGUF file")->required();
  app.add_option("--length", length, "Tokens per sample");
  app.add_option("--samples", options.samples, "Samples per task");
  app.add_option("--tasks", options.tasks, "Tasks")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  options.lengths = {length};
  try {
    mrrope::LocalOptions engine;
    engine.context = 512;
    const auto model = mrrope::open_local(mrrope::read_model(model_path), engine);
    const mrrope::PromptFrame frame(*model, {});
    mrrope::TokenCounter counter(*model);
    std::printf("%-22s %8s %8s %8s %10s %9s\n", "task", "fit s", "texts s", "tokens s", "tokens",
                "MB/s");
    for (const mrrope::SampleSet& set : mrrope::make_ruler(frame, counter, options).sets) {
      const double fit = seconds_of([&] { set.make(0); });
      std::int64_t tokens = 0;
      std::size_t bytes = 0;
      double tokenizing = 0;
      const double all = seconds_of([&] {
        for (std::size_t i = 0; i < set.count; ++i) {
          const mrrope::Sample sample = set.make(i);
          tokens += std::int64_t(sample.prompt.size());
          bytes += sample.text.size();
          // Once more, to know its share.
          tokenizing += seconds_of([&] { frame.tokens(sample.text); });
        }
      });
      std::printf("%-22s %8.2f %8.2f %8.2f %10lld %9.1f\n", set.task.c_str(), fit,
                  all - 2 * tokenizing, tokenizing, static_cast<long long>(tokens),
                  double(bytes) / tokenizing / 1e6);
      std::fflush(stdout);
    }
  } catch (const mrrope::Error& e) {
    std::fprintf(stderr, "samples_bench: %s\n  %s\n", e.what(), e.hint().c_str());
    return e.exit_code();
  }
  return 0;
}
