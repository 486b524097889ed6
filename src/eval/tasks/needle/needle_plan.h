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
#include <span>
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

// Which tokens a needle grid computes, and which it shares.
//
// A cell is a length N and a depth. Its prompt is
//   head (BOS, in a chat what the template puts first), haystack, needle somewhere in it, question
// and prompt and answer take exactly N tokens: the haystack gets what the rest leaves.
// The needle's place is depth * N haystack tokens (at most the haystack's end), moved back to just
// after the nearest end of a sentence; if there is none within 64 tokens or a tenth of the way, it
// is not moved, and the cell is marked. Depth 100 is the end of the haystack.
//
// Sharing: the bare haystack is the trunk of a tree and computed once. Cells with the same place
// (equally spaced lengths have many: half of 4k is a quarter of 8k) and so the same needle are one
// branch: forked off the trunk there, needle, then haystack up to the longest of its lengths, with
// the question of each length on a fork of its own. 8 equally spaced lengths x 11 depths take a
// third of what they would one by one.
//
// This works under a static plan, where the numbers of a prefix do not depend on what follows. The
// keys of an elastic ladder are turned for the rung of one length, so its cells are read one by
// one.
struct NeedleGrid {
  std::vector<std::int64_t> lengths;  // ascending
  std::vector<double> depths;         // percent, ascending
};

struct NeedleCell {
  std::size_t length = 0;     // index into the grid's
  std::size_t depth = 0;      // likewise
  std::int64_t haystack = 0;  // tokens of haystack in its prompt
};

struct NeedleBranch {
  std::int64_t position = 0;  // haystack tokens before the needle
  bool snapped = false;       // a sentence ends there, or the haystack begins or ends
  Needle needle;
  std::vector<NeedleCell> cells;  // ascending lengths
};

struct NeedleTree {
  std::vector<Token> head;
  std::vector<NeedleBranch> branches;  // ascending positions
  std::int64_t tokens = 0;             // to compute, answers not counted
  std::int64_t naive_tokens = 0;       // one by one
};

// Whether a sentence (or a paragraph) ends with tokens[index], by the text of it and of the next.
bool ends_sentence(const Tokenizer& model, std::span<const Token> tokens, std::size_t index);

// The place after the nearest end of a sentence at or before `position`; the start counts as one.
// Absent where none is at most `max_steps` tokens back.
std::optional<std::int64_t> snap_back(const Tokenizer& model, std::span<const Token> haystack,
                                      std::int64_t position, std::int64_t max_steps);

// haystack: at least as many tokens as the longest length. Throws Error (usage) where a length has
// no room for head, needle, question, answer and one token of haystack.
NeedleTree plan_tree(const Tokenizer& model, const NeedleForm& form, const NeedleGrid& grid,
                     std::span<const Token> haystack, std::uint64_t seed, std::size_t sample);

// All needles of one length in one text.
struct NeedleText {
  std::vector<Token> tokens;          // head, haystack and needles
  std::vector<NeedleBranch> needles;  // by depth, each with its one cell
};

// The text and the longest question leave room for the answer. Every needle has a word of its own.
// Throws Error (usage) where a length has no room, or the form has too few different questions.
NeedleText plan_together(const Tokenizer& model, const NeedleForm& form, const NeedleGrid& grid,
                         std::size_t length, std::span<const Token> haystack, std::uint64_t seed,
                         std::size_t sample);

}  // namespace mrrope::eval
