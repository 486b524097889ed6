// SPDX-License-Identifier: Apache-2.0
// A model that only answers whole prompts: one behind an endpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/generation.h"
#include "model/tokenizer.h"

namespace mrrope {

struct WholePrompt {
  std::vector<Token> tokens;
  std::string text;  // the same for people; may be empty
};

struct WholeAnswer {
  Generation said;
  // Not empty: no answer could be had for this prompt, and why. Others may do better.
  std::string failed;
  // What went wrong on the way, by kind, and how often: "status 429", "cut", "usage", ...
  std::map<std::string, int> troubles;
};

class PromptModel : public Tokenizer {
 public:
  virtual std::string name() const = 0;         // as the server calls it
  virtual std::string description() const = 0;  // for run.json: server, protocol, tokenizer
  // Tokens of one request, answer included.
  virtual std::int64_t context_length() const = 0;
  // Tokens the model was trained on; the context where nobody says.
  virtual std::int64_t train_length() const = 0;

  // Prompts to ask about at the same time, at most.
  virtual int parallel() const = 0;
  // From any thread. A wait ends early where options.on_text, called with nothing new, returns
  // false. Throws Error where no other prompt would fare better.
  virtual WholeAnswer ask(const WholePrompt& prompt, const GenerateOptions& options) = 0;
  // From any thread: ends every ask() that is under way, and every later one at once.
  virtual void cancel() = 0;
};

}  // namespace mrrope
