// SPDX-License-Identifier: Apache-2.0
// What the tests of the scheduler share: a model with a cache for each conversation, a context that
// grows, and an answer read to its end.
#pragma once

#include <chrono>
#include <vector>

#include "engine/llama/local.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

// As serve opens a model, on the CPU.
inline engine::LocalOptions caches_apart(int slots, std::int64_t context) {
  engine::LocalOptions options;
  options.context = slots * context;
  options.timelines = slots;
  options.unified = false;
  options.threads = 2;
  options.gpu_layers = 0;
  return options;
}

inline Ladder growing(const Geometry& geometry, std::int64_t longest) {
  return make_ladder(geometry, parse_method("elastic:pro"), longest);
}

struct Said {
  std::vector<Token> tokens;
  std::vector<double> logprobs;
  Outcome outcome;
};

inline Said finish(Answer& answer) {
  Said said;
  for (bool complete = false; !complete;) {
    Answer::Part part;
    complete = answer.take(part, std::chrono::milliseconds(100));
    for (const ChosenToken& chosen : part.tokens) {
      said.tokens.push_back(chosen.token);
      said.logprobs.push_back(chosen.logprob);
    }
  }
  said.outcome = answer.outcome();
  return said;
}

}  // namespace mrrope::serve
