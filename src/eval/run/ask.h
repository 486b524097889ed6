// SPDX-License-Identifier: Apache-2.0
// Prompts for an engine behind a network, many under way at once. Answers arrive in any order; each
// is handed over by itself, in the calling thread, so that journals are written by one.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "eval/run/progress.h"
#include "eval/run/run_folder.h"
#include "model/prompt_model.h"

namespace mrrope {

struct AskJob {
  std::size_t count = 0;
  // Prompt i, 0 .. count - 1; asked for in order, in the calling thread, not long before it is
  // sent.
  std::function<WholePrompt(std::size_t)> make;
  // For prompt i; on_text is taken for Ctrl-C.
  std::function<GenerateOptions(std::size_t)> options;
  // What became of it. A failed one is handed over, too.
  std::function<void(std::size_t, const WholePrompt&, const WholeAnswer&)> done;
};

struct AskSummary {
  std::map<std::string, int> troubles;
  std::size_t failed = 0;
  std::string last_failure;
};

// "status 429 x3, cut x1"; empty where there were none.
std::string troubles_text(const std::map<std::string, int>& troubles);

// Returns early after Ctrl-C, with what had come by then handed over. Throws Error where nothing
// more can be had: what ask() throws, or (failed) after as many failures in a row as prompts are
// under way, 8 at least.
AskSummary ask_all(PromptModel& model, const AskJob& job, Progress& progress);

// Tells the folder's reader what went wrong on the way.
void note_troubles(const AskSummary& summary, RunFolder& folder);

}  // namespace mrrope
