// SPDX-License-Identifier: Apache-2.0
// What every task measures: a model under several methods at several lengths.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/run/run_folder.h"
#include "model/prompt_model.h"
#include "model/timeline_model.h"
#include "mrrope/ladder.h"

namespace mrrope::eval {

// What a task runs on: a model with timelines, or one that answers whole prompts. Does not own it.
class Target {
 public:
  Target(TimelineModel& model) : timelines_(&model), tokenizer_(&model) {}  // NOLINT: implicit
  Target(PromptModel& model) : prompts_(&model), tokenizer_(&model) {}      // NOLINT: implicit

  // Exactly one of the two is not null.
  TimelineModel* timelines() const noexcept { return timelines_; }
  PromptModel* prompts() const noexcept { return prompts_; }
  const Tokenizer& tokenizer() const noexcept { return *tokenizer_; }
  std::int64_t context_length() const {
    return prompts_ != nullptr ? prompts_->context_length() : timelines_->context_length();
  }

  // For run.json: {name, architecture, train_length}.
  nlohmann::ordered_json identity() const;

 private:
  TimelineModel* timelines_ = nullptr;
  PromptModel* prompts_ = nullptr;
  const Tokenizer* tokenizer_;
};

struct MethodUnderTest {
  std::string name;              // the row: "pro", "elastic:pro", "vendor", ...
  std::optional<Ladder> ladder;  // absent behind an endpoint: the server has its own scaling

  bool elastic() const { return ladder && ladder->elastic(); }
  bool untouched() const;  // the model as shipped
};

// Whether the two are the same model for every sequence up to this length: the same plan number by
// number, such as every growing plan inside the window and none.
bool same_model(const MethodUnderTest& a, const MethodUnderTest& b, std::int64_t longest);

// The first of the methods before methods[m], in their order, that is the same model.
std::optional<std::size_t> same_before(const std::vector<MethodUnderTest>& methods, std::size_t m,
                                       std::int64_t longest);

// Adds a note such as "the same model as none up to 1K, so measured once: uni, pro" for each of the
// lengths where there are such methods.
void note_same_models(RunFolder& folder, const std::vector<MethodUnderTest>& methods,
                      const std::vector<std::int64_t>& lengths);

// The only row of a run against an endpoint.
MethodUnderTest served_method();

// Ascending, each once.
std::vector<std::int64_t> sorted_lengths(std::vector<std::int64_t> lengths);

// Throws Error (usage) if two have the same name.
void check_names(const std::vector<MethodUnderTest>& methods);

// Throws Error (usage): no method, a method named twice, no length, or the longest length beyond
// the context or the last rung of a ladder. Lengths are sorted.
void check_methods(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const std::vector<std::int64_t>& lengths);

// Their entries in run.json: everything that results depend on.
nlohmann::ordered_json methods_identity(const std::vector<MethodUnderTest>& methods);

// What every run.json has; a task adds its texts.
nlohmann::ordered_json run_identity(const std::string& task, const Target& target,
                                    const std::vector<MethodUnderTest>& methods,
                                    nlohmann::ordered_json settings);

}  // namespace mrrope::eval
