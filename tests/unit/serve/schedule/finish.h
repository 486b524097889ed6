// SPDX-License-Identifier: Apache-2.0
// What the tests of the server share: a model with a cache for each conversation, a context that
// grows, a scheduler at work, and an answer read to its end.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "engine/llama/local.h"
#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"
#include "support/architecture_cases.h"
#include "support/observe.h"

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

// The same in single precision, where answers agree to 1e-4 however they are computed.
inline engine::LocalOptions exact_caches_apart(int slots, std::int64_t context) {
  engine::LocalOptions options = caches_apart(slots, context);
  options.type_k = options.type_v = "f32";
  options.flash_attention = "off";  // it rounds queries to f16
  return options;
}

inline Metadata metadata_of(const std::string& architecture) {
  for (const ArchitectureCase& sample : architecture_cases()) {
    if (sample.architecture == architecture) return sample.metadata();
  }
  throw std::runtime_error("no case for " + architecture);
}

// Of the vocabulary of small random models.
inline std::vector<Token> random_words(std::size_t count) { return test::words(count, 64); }

inline Ladder growing(const Geometry& geometry, std::int64_t longest) {
  return make_ladder(geometry, parse_method("elastic:pro"), longest);
}

// A scheduler and the thread that it computes on.
class Working : public Scheduler {
 public:
  Working(TimelineModel& model, const Ladder& ladder, const SchedulerLimits& limits)
      : Scheduler(model, ladder, limits), thread_([this] { work(); }) {}
  ~Working() {
    stop();
    thread_.join();
  }

 private:
  std::thread thread_;
};

// Of the refusal, or 200.
inline int status_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ApiError& error) {
    return error.status;
  }
  return 200;
}

// With the log-probabilities of its tokens.
inline Job greedy(const std::vector<Token>& prompt, std::int64_t length) {
  Job job;
  job.prompt = prompt;
  job.length = length;
  job.sampling.temperature = 0;
  job.logprobs = 1;
  return job;
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
