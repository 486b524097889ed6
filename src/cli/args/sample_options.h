// SPDX-License-Identifier: Apache-2.0
// The flags that the benchmarks of samples share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/args/eval_options.h"
#include "eval/samples/prompts.h"
#include "eval/samples/sample.h"

namespace mrrope::cli {

struct SampleFlags {
  EvalFlags eval;
  eval::FrameOptions frame;
  std::string prefix = "on";
  std::string bos = "on";
  std::string prompts;
  std::string prompts_digest{};  // set by chosen_prompts()
  bool show_prompt = false;
  std::uint64_t seed = 1;
};

// --chat, --answer-prefix, --bos, --prompts, --show-prompt.
void add_sample_flags(CLI::App& task, SampleFlags& flags);

eval::FrameOptions frame_options(const SampleFlags& flags);
// Those of --prompts, or the built-in ones. used: how the names of the prompts begin that the run
// reads. Throws Error (usage) if the file changes none of these.
eval::Prompts chosen_prompts(SampleFlags& flags, const std::string& used);

// The default of --lengths: only --ctx.
inline std::vector<std::int64_t> only_ctx(std::int64_t /*window*/, std::int64_t ctx) {
  return {ctx};
}

// The engine for this job: one timeline is enough. reads: the files that the task was given; names
// may be empty.
OpenModel open_for_samples(EvalJob& job, const std::vector<std::string>& reads);

// Shows prompts, prints the cost, or runs the suite and prints the results.
void run_suite(const SampleFlags& flags, const EvalJob& job, const eval::Target& target,
               const eval::SampleSuite& suite);

}  // namespace mrrope::cli
