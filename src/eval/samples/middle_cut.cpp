// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/middle_cut.h"

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

CutPrompt cut_in_the_middle(const Tokenizer& model, const PromptFrame& frame,
                            const std::string& body, const std::string& prefix, std::int64_t room) {
  CutPrompt prompt;
  prompt.text = frame.text(body, prefix);
  prompt.tokens = frame.tokens(prompt.text);
  prompt.whole = std::int64_t(prompt.tokens.size());
  if (prompt.whole <= room) return prompt;
  prompt.cut = true;
  const std::vector<Token> all = model.tokenize(body, false, false);
  const std::int64_t around = prompt.whole - std::int64_t(all.size());
  // Where the two halves meet, tokenizing again may give a few more tokens.
  for (std::int64_t keep = room - around; keep >= 2; keep -= 8) {
    const auto half = std::size_t(keep / 2);
    const std::span<const Token> tokens(all);
    const std::string shorter =
        model.detokenize(tokens.first(half)) + model.detokenize(tokens.last(half));
    prompt.text = frame.text(shorter, prefix);
    prompt.tokens = frame.tokens(prompt.text);
    if (std::int64_t(prompt.tokens.size()) <= room) return prompt;
  }
  throw Error(ErrorKind::usage, cat(room, " tokens are too few for any prompt"),
              "give a longer --ctx");
}

}  // namespace mrrope::eval
