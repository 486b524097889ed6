// SPDX-License-Identifier: Apache-2.0
// The sentence hidden in a haystack, the question that asks for it, and what counts as the answer.
//
// Four forms:
//   planted     the bundled model's own: the only retrieval it was trained on
//   completion  for base models: a sentence that the model has to finish
//   chat        for instruct models: a question through the model's own chat template
//   kamradt     the usual test in the manner of G. Kamradt, which the paper runs: one sentence of
//               several words about what to do in some place, in words of this project; asked
//               through the chat template if the model has one; the answer is a clause of it
// Texts hold {word} and {number}: a word drawn from a list, and six digits without a leading zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/tokenizer.h"

namespace mrrope::eval {

// The user's own needle instead of a built-in one.
struct NeedleTexts {
  std::string needle;
  std::string question;
  std::string answer;
};

struct NeedleForm {
  std::string name;
  std::string before;    // comes before the haystack, after BOS
  std::string needle;    // planted into it
  std::string question;  // comes after it; the answer follows
  std::string answer;    // what is looked for
  bool special = false;  // before and question hold the text of control tokens (chat templates do)
  std::vector<std::string> stop;
  int answer_tokens = 16;  // room for the answer
};

// The form whose haystack is repeated if it is too short, and whose main score is the recall.
constexpr const char* kKamradt = "kamradt";

// name: "planted", "completion", "chat", "kamradt", or empty for chat where the model has a chat
// template and completion where not. answer_tokens 0: 16, for chat and kamradt 50. Throws Error:
// usage (unknown name, incomplete texts, custom texts with planted), unsupported (chat
// without a template).
NeedleForm make_form(const Tokenizer& model, const std::string& name,
                     const std::optional<NeedleTexts>& own, int answer_tokens);

// Throws Error (usage) that names what is missing or empty.
void check_texts(const NeedleTexts& own);

// Whether an answer has words to stem: more than placeholders and digits.
bool has_words(const std::string& answer);

// One needle, drawn and tokenised; no piece carries a BOS.
struct Needle {
  std::string answer;
  std::vector<Token> needle;
  std::vector<Token> question;
};

// A pure function of its arguments: equal numbers, equal needle.
Needle draw_needle(const Tokenizer& model, const NeedleForm& form, std::uint64_t seed,
                   std::size_t sample, std::int64_t where);

// The text before the haystack, with the BOS of the whole prompt if the model has one.
std::vector<Token> head_of(const Tokenizer& model, const NeedleForm& form);

}  // namespace mrrope::eval
