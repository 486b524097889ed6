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
  std::string text;  // the same as text; may be empty
};

struct WholeAnswer {
  Generation said;
  // Not empty: why this prompt got no answer. Others may succeed.
  std::string failed;
  // How often each kind of failure occurred on the way: "status 429", "cut", "usage", ...
  std::map<std::string, int> troubles;
};

class PromptModel : public Tokenizer {
 public:
  virtual std::string name() const = 0;         // as the server names it
  virtual std::string description() const = 0;  // for run.json: server, protocol, tokenizer
  // Tokens of one request, answer included.
  virtual std::int64_t context_length() const = 0;
  // Tokens the model was trained on; the context if that is not known.
  virtual std::int64_t train_length() const = 0;

  // The most prompts to ask at the same time.
  virtual int parallel() const = 0;
  // From any thread. A wait ends early if options.on_text, called with an empty text, returns
  // false. Throws Error if every other prompt would fail too.
  virtual WholeAnswer ask(const WholePrompt& prompt, const GenerateOptions& options) = 0;
  // From any thread: ends every ask() in progress, and every later one at once.
  virtual void cancel() = 0;
};

}  // namespace mrrope
