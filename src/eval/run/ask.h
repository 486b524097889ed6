// SPDX-License-Identifier: Apache-2.0
// Prompts for a model behind an endpoint, several in flight at once. Answers arrive in any order;
// each is handed over in the calling thread, so that one thread writes the journal.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "eval/run/runner.h"

namespace mrrope::eval {

struct AskJob {
  std::size_t count = 0;
  // Prompt i, 0 .. count - 1. Called in order, in the calling thread, shortly before it is sent.
  std::function<Question(std::size_t)> make;
  // Its answer, or why there is none.
  std::function<void(std::size_t, const WholePrompt&, const WholeAnswer&)> done;
};

struct AskSummary {
  std::map<std::string, int> retry_counts;
  std::size_t failed = 0;
  std::string last_failure;
};

// "status 429 x3, cut x1"; empty where there are none.
std::string retry_counts_text(const std::map<std::string, int>& counts);

// Returns early after Ctrl-C; answers that arrived before are handed over. Throws Error if
// continuing is useless: what ask() throws, or (failed) after as many failures in a row as prompts
// are in flight, at least 8.
AskSummary ask_all(PromptModel& model, const AskJob& job, Progress& progress);

// Adds a note to the folder about what went wrong.
void note_retries(const AskSummary& summary, RunFolder& folder);

}  // namespace mrrope::eval
