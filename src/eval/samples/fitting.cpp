// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/fitting.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "base/text.h"
#include "eval/text/words.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

// Drafts that are never asked, to find the fit.
constexpr std::size_t kTrial = SIZE_MAX / 2;

class Fitter {
 public:
  Fitter(const SampleSet& set, std::uint64_t seed, Drafter drafter, const PromptFrame& frame,
         TokenCounter& counter)
      : task_(set.task),
        length_(set.length),
        room_(set.length - set.answer_tokens),
        seed_(seed),
        drafter_(std::move(drafter)),
        frame_(frame),
        counter_(counter) {
    const std::int64_t smallest = least_tokens(set.count) + set.answer_tokens;
    if (length_ < smallest) {
      // Other lengths draw other words, which may take a few tokens more.
      const std::int64_t enough = (smallest + smallest / 8 + 63) / 64 * 64;
      throw Error(ErrorKind::usage,
                  cat(task_, " cannot be made at ", length_,
                      " tokens: with this model's tokenizer and prompt it takes about ", smallest),
                  cat("give --lengths of ", enough, " or more, or choose other --tasks"));
    }
  }

  Sample make(std::size_t index) {
    // All questions about a text have the same one: the largest that leaves room for each.
    const std::size_t text = index / drafter_.questions;
    if (text != fitted_text_) {
      fitted_units_ = this->units();
      if (drafter_.questions > 1) {
        for (std::size_t q = 0; q < drafter_.questions; ++q) {
          fit(text * drafter_.questions + q, fitted_units_);
        }
      }
      fitted_text_ = text;
    }
    return fit(index, fitted_units_);
  }

 private:
  Draft draft(std::int64_t units, std::size_t index) const {
    Random random = random_for(seed_, task_.substr(task_.find('/') + 1), std::uint64_t(length_),
                               index / drafter_.questions);
    return drafter_.draft(units, index, random);
  }

  // Lowers `units` until the sample fits.
  Sample fit(std::size_t index, std::int64_t& units) {
    for (;;) {
      Draft draft = this->draft(units, index);
      Sample sample;
      sample.text = frame_.text(draft.body, draft.prefix);
      sample.prompt = tokens_of(sample.text);
      const auto tokens = std::int64_t(sample.prompt.size());
      if (tokens <= room_) {
        sample.id = cat(index);
        sample.expected = std::move(draft.expected);
        sample.more = std::move(draft.more);
        return sample;
      }
      if (units == drafter_.min) {
        throw Error(ErrorKind::usage,
                    cat("sample ", index, " of ", task_, " takes ", tokens,
                        " tokens at its smallest, and ", length_, " leave room for ", room_),
                    "give longer --lengths");
      }
      const double per_unit = double(tokens) / double(units);
      const auto over = std::int64_t(std::ceil(double(tokens - room_) / per_unit));
      const std::int64_t steps = (over + drafter_.grain - 1) / drafter_.grain;
      units = std::max(drafter_.min, units - steps * drafter_.grain);
    }
  }

  std::string whole(std::int64_t units, std::size_t index) const {
    const Draft draft = this->draft(units, index);
    return frame_.text(draft.body, draft.prefix);
  }

  // The tokens of the whole text. Counted word by word if that gave the same for the first text.
  std::vector<Token> tokens_of(const std::string& text) {
    if (!word_by_word_) {
      std::vector<Token> tokens = frame_.tokens(text);
      word_by_word_ = tokens == frame_.with_bos(counter_.tokens(text));
      return tokens;
    }
    return *word_by_word_ ? frame_.with_bos(counter_.tokens(text)) : frame_.tokens(text);
  }

  // What the longest of all samples takes at its smallest; where the first one leaves room for four
  // of its kind, that one.
  std::int64_t least_tokens(std::size_t count) {
    const auto tokens = [&](std::size_t i) {
      return std::int64_t(frame_.tokens(whole(drafter_.min, i)).size());
    };
    const std::int64_t first = tokens(0);
    if (4 * first < room_) return first;
    std::int64_t max = 0;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t counted = counter_.count(whole(drafter_.min, i));
      if (counted > max) max = counted, longest = i;
    }
    return std::max(first, tokens(longest));
  }

  std::int64_t units() {
    if (units_) return *units_;
    double ratio = 1;  // of tokens to those counted word by word
    std::int64_t best = 0;
    for (int round = 0; round < 4; ++round) {
      const auto fits = [&](std::int64_t steps) {
        return ratio * double(counter_.count(whole(at(steps), kTrial))) <= double(room_);
      };
      std::int64_t low = 0;  // fits, or is the least there is
      std::int64_t high = 1;
      const std::int64_t last =
          (std::min(drafter_.max, drafter_.min + length_) - drafter_.min) / drafter_.grain;
      while (high <= last && fits(high)) low = high, high *= 2;
      high = std::min(high, last + 1);
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
      }
      best = low;
      const std::string text = whole(at(best), kTrial);
      const double before = ratio;
      ratio = double(frame_.tokens(text).size()) / double(counter_.count(text));
      if (std::abs(ratio - before) < 2e-4) break;
    }
    return *(units_ = at(best));
  }

  std::int64_t at(std::int64_t steps) const { return drafter_.min + steps * drafter_.grain; }

  std::string task_;
  std::int64_t length_;
  std::int64_t room_;
  std::uint64_t seed_;
  Drafter drafter_;
  const PromptFrame& frame_;
  TokenCounter& counter_;
  std::optional<std::int64_t> units_;
  std::optional<std::size_t> fitted_text_;
  std::int64_t fitted_units_ = 0;
  std::optional<bool> word_by_word_;
};

// A sample of at most `room` tokens.
Sample cut_sample(const Draft& draft, const PromptFrame& frame, std::int64_t room) {
  Sample sample{draft.id, frame.text(draft.body, draft.prefix), {}, draft.expected, draft.more};
  sample.prompt = frame.tokens(sample.text);
  const auto whole = std::int64_t(sample.prompt.size());
  if (whole <= room) return sample;
  const std::vector<Token> all = frame.model().tokenize(draft.body, false, false);
  // Where the two halves meet, tokenizing again may give a few more tokens.
  for (std::int64_t keep = room - whole + std::int64_t(all.size()); keep >= 2; keep -= 8) {
    const auto half = std::size_t(keep / 2);
    const std::span<const Token> tokens(all);
    sample.text = frame.text(
        frame.model().detokenize(tokens.first(half)) + frame.model().detokenize(tokens.last(half)),
        draft.prefix);
    sample.prompt = frame.tokens(sample.text);
    const auto kept = std::int64_t(sample.prompt.size());
    if (kept > room) continue;
    sample.more["truncated"] = whole - kept;
    return sample;
  }
  throw Error(ErrorKind::usage, cat(room, " tokens are too few for any prompt"),
              "give a longer --ctx");
}

}  // namespace

SampleSet fitted_set(SampleSet set, std::uint64_t seed, Drafter drafter, const PromptFrame& frame,
                     TokenCounter& counter) {
  set.questions = drafter.questions;
  const auto fitter = std::make_shared<Fitter>(set, seed, std::move(drafter), frame, counter);
  set.make = [fitter](std::size_t index) { return fitter->make(index); };
  return set;
}

SampleSet cut_set(SampleSet set, std::vector<Draft> drafts, std::size_t count, Random random,
                  const PromptFrame& frame, ordered_json& ids) {
  const auto chosen = std::make_shared<std::vector<Draft>>();
  if (count == 0 || count > drafts.size()) {
    *chosen = std::move(drafts);
  } else {
    for (const std::size_t i : choose(drafts.size(), count, random)) {
      chosen->push_back(std::move(drafts[i]));
    }
  }
  ids = ordered_json::array();
  for (const Draft& draft : *chosen) ids.push_back(draft.id);
  set.count = chosen->size();
  set.make = [chosen, &frame, room = set.length - set.answer_tokens](std::size_t i) {
    return cut_sample((*chosen)[i], frame, room);
  };
  return set;
}

}  // namespace mrrope::eval
