// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace {

// How far back a needle may be moved. It depends on the place asked for and on nothing else, or
// cells of different lengths would lose the place they share.
std::int64_t reach(std::int64_t asked) { return std::max<std::int64_t>(64, asked / 10); }

constexpr std::string_view kBlank = " \t\r\n";

std::int64_t count(const std::vector<Token>& tokens) { return std::int64_t(tokens.size()); }

}  // namespace

bool ends_sentence(const Tokenizer& model, std::span<const Token> tokens, std::size_t index) {
  const std::string text = model.detokenize(tokens.subspan(index, 1));
  if (text.find("\n\n") != std::string::npos) return true;
  std::size_t end = text.find_last_not_of(kBlank);
  if (end == std::string::npos) return false;
  const bool blank_after = end + 1 < text.size();
  end = text.find_last_not_of("\"')]}", end);
  if (end == std::string::npos || std::string_view(".!?").find(text[end]) == std::string::npos) {
    return false;
  }
  if (blank_after || index + 1 == tokens.size()) return true;
  // "3.14" and "Nat.succ" end nothing: a blank must follow. The next token is read together with
  // this one, since some tokenizers drop a blank at the start of a text.
  const std::string both = model.detokenize(tokens.subspan(index, 2));
  return both.size() > text.size() && kBlank.find(both[text.size()]) != std::string::npos;
}

std::optional<std::int64_t> snap_back(const Tokenizer& model, std::span<const Token> haystack,
                                      std::int64_t position, std::int64_t max_steps) {
  for (std::int64_t at = position; at >= 0 && at >= position - max_steps; --at) {
    if (at == 0 || ends_sentence(model, haystack, std::size_t(at - 1))) return at;
  }
  return std::nullopt;
}

NeedleTree plan_tree(const Tokenizer& model, const NeedleForm& form, const NeedleGrid& grid,
                     std::span<const Token> haystack, std::uint64_t seed, std::size_t sample) {
  NeedleTree tree;
  tree.head = head_of(model, form);
  // By the place in the haystack, then by the place asked for, which the needle is drawn by.
  std::map<std::pair<std::int64_t, std::int64_t>, NeedleBranch> branches;
  for (std::size_t l = 0; l < grid.lengths.size(); ++l) {
    const std::int64_t length = grid.lengths[l];
    for (std::size_t d = 0; d < grid.depths.size(); ++d) {
      const auto asked = std::int64_t(double(length) * grid.depths[d] / 100);
      Needle needle = draw_needle(model, form, seed, sample, asked);
      const std::int64_t rest =
          count(tree.head) + count(needle.needle) + count(needle.question) + form.answer_tokens;
      const std::int64_t room = length - rest;
      if (room < 1) {
        throw Error(ErrorKind::usage,
                    cat("length ", length, " leaves no haystack: needle, question and answer take ",
                        rest, " tokens"),
                    cat("give lengths above ", rest));
      }
      std::int64_t position = std::min(asked, room);
      bool snapped = true;
      if (grid.depths[d] == 100) {
        position = room;
      } else if (const auto at = snap_back(model, haystack, position, reach(asked))) {
        position = *at;
      } else {
        snapped = false;
      }
      NeedleBranch& branch = branches[{position, asked}];
      if (branch.cells.empty()) {
        branch.position = position;
        branch.snapped = snapped;
        branch.needle = std::move(needle);
      }
      // The same length twice (two depths snapped to one place) is one prompt, asked twice.
      branch.cells.push_back({l, d, room});
      tree.naive_tokens += length - form.answer_tokens;
    }
  }
  std::int64_t trunk = 0;
  for (auto& [key, branch] : branches) {
    trunk = std::max(trunk, branch.position);
    tree.tokens += count(branch.needle.needle) + branch.cells.back().haystack - branch.position +
                   std::int64_t(branch.cells.size()) * count(branch.needle.question);
    tree.branches.push_back(std::move(branch));
  }
  tree.tokens += count(tree.head) + trunk;
  return tree;
}

NeedleText plan_together(const Tokenizer& model, const NeedleForm& form, const NeedleGrid& grid,
                         std::size_t length, std::span<const Token> haystack, std::uint64_t seed,
                         std::size_t sample) {
  constexpr std::int64_t kDraws = 1000;
  constexpr std::int64_t kOtherPlace = std::int64_t(1) << 40;  // beyond any place in a text
  const std::int64_t whole = grid.lengths[length];
  NeedleText text;
  text.tokens = head_of(model, form);
  std::int64_t rest = count(text.tokens) + form.answer_tokens;
  std::int64_t longest = 0;
  for (std::size_t d = 0; d < grid.depths.size(); ++d) {
    NeedleBranch branch;
    branch.position = std::int64_t(double(whole) * grid.depths[d] / 100);
    branch.cells = {{length, d, 0}};
    const auto taken = [&](const Needle& needle) {
      return std::any_of(text.needles.begin(), text.needles.end(), [&](const NeedleBranch& other) {
        return other.needle.question == needle.question;
      });
    };
    std::int64_t draw = 0;
    do {
      branch.needle = draw_needle(model, form, seed, sample, branch.position + kOtherPlace * draw);
    } while (taken(branch.needle) && ++draw < kDraws);
    if (draw == kDraws) {
      throw Error(ErrorKind::usage,
                  cat("the form ", form.name, " has too few different questions for ",
                      grid.depths.size(), " needles in one text"),
                  "give fewer depths, or a question with {word}");
    }
    rest += count(branch.needle.needle);
    longest = std::max(longest, count(branch.needle.question));
    text.needles.push_back(std::move(branch));
  }
  const std::int64_t room = whole - rest - longest;
  if (room < 1) {
    throw Error(ErrorKind::usage,
                cat("length ", whole, " leaves no haystack: needles, question and answer take ",
                    rest + longest, " tokens"),
                cat("give lengths above ", rest + longest));
  }
  std::int64_t at = 0;
  const auto add = [&](std::span<const Token> tokens) {
    text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
  };
  for (NeedleBranch& branch : text.needles) {
    const std::int64_t asked = std::min(branch.position, room);
    const auto snapped = snap_back(model, haystack, asked, reach(branch.position));
    branch.snapped = snapped.has_value() || asked == room;
    branch.position = std::max(at, asked == room ? room : snapped.value_or(asked));
    add(haystack.subspan(std::size_t(at), std::size_t(branch.position - at)));
    add(branch.needle.needle);
    at = branch.position;
    branch.cells[0].haystack = room;
  }
  add(haystack.subspan(std::size_t(at), std::size_t(room - at)));
  return text;
}

}  // namespace mrrope::eval
