// SPDX-License-Identifier: Apache-2.0
// What a task runs on: a model with timelines, or one that answers whole prompts. Does not own it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/prompt_model.h"
#include "model/timeline_model.h"

namespace mrrope::eval {

class Target {
 public:
  Target(TimelineModel& model) : timelines_(&model) {}  // NOLINT: implicit on purpose
  Target(PromptModel& model) : prompts_(&model) {}      // NOLINT

  // Exactly one of the two is not null.
  TimelineModel* timelines() const noexcept { return timelines_; }
  PromptModel* prompts() const noexcept { return prompts_; }

  const Tokenizer& tokenizer() const noexcept;
  std::string description() const;
  std::int64_t context_length() const;

  // For run.json: {name, architecture, train_length}.
  nlohmann::ordered_json identity() const;

 private:
  TimelineModel* timelines_ = nullptr;
  PromptModel* prompts_ = nullptr;
};

}  // namespace mrrope::eval
