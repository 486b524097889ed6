// SPDX-License-Identifier: Apache-2.0
#include "eval/run/target.h"

namespace mrrope::eval {

const Tokenizer& Target::tokenizer() const noexcept {
  if (prompts_ != nullptr) return *prompts_;
  return *timelines_;
}

std::string Target::description() const {
  return prompts_ != nullptr ? prompts_->description() : timelines_->description();
}

std::int64_t Target::context_length() const {
  return prompts_ != nullptr ? prompts_->context_length() : timelines_->context_length();
}

nlohmann::ordered_json Target::identity() const {
  if (prompts_ != nullptr) {
    return {{"name", prompts_->name()},
            {"architecture", "served"},
            {"train_length", prompts_->train_length()}};
  }
  const Model& facts = timelines_->facts();
  return {{"name", facts.name},
          {"architecture", facts.architecture},
          {"train_length", facts.geometry.train_length}};
}

}  // namespace mrrope::eval
