// SPDX-License-Identifier: Apache-2.0
// The scripted model with answers from the test: a function of the test gets the whole prompt as
// text and returns the answer. Keeps every prompt.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/scripted.h"

namespace mrrope::test {

class ReadingModel : public ScriptedModel {
 public:
  using Reader = std::function<std::string(const std::string& prompt)>;
  ReadingModel(const ScriptedOptions& options, Reader reader)
      : ScriptedModel(with_reader(options, [this, reader](const std::string& prompt) {
          prompts.push_back(prompt);
          return reader(prompt);
        })) {}

  std::vector<std::string> prompts;  // BOS shown as ^

 private:
  static ScriptedOptions with_reader(ScriptedOptions options, Reader reader) {
    options.reader = std::move(reader);
    return options;
  }
};

}  // namespace mrrope::test
