// SPDX-License-Identifier: Apache-2.0
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
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eval/tasks/needle/needle_forms.h"
#include "model/tokenizer.h"

namespace mrrope::eval {

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
