// SPDX-License-Identifier: Apache-2.0
// RULER's vt (names that pass a value on), cwe (common words) and fwe (frequent code words).
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/text.h"
#include "eval/tasks/ruler/ruler.h"
#include "eval/text/words.h"

namespace mrrope::eval {

namespace {

constexpr std::size_t kHops = 4;

std::vector<std::string> distinct_letters(Random& random, std::size_t count, std::size_t letters) {
  std::vector<std::string> names;
  while (names.size() < count) {
    std::string name = random_letters(random, letters, 'A');
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

struct Chain {
  std::vector<std::string> names;
  std::string text;  // the whole question
  std::string prefix;
};

Chain draft_chain(const Prompts& prompts, Random& random, std::int64_t lines, std::size_t letters) {
  Chain chain;
  chain.names = distinct_letters(random, kHops + 1, letters);
  const std::string value = cat(10000 + random.below(89999));
  const std::string& noise = prompts.at("ruler/noise").text;
  const std::vector<std::size_t> places = choose(std::size_t(lines), kHops + 1, random);
  std::string context;
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::size_t(lines); ++i) {
    if (next < places.size() && places[next] == i) {
      context += next == 0 ? fill(prompts.at("ruler/vt.start").text,
                                  {{"name", chain.names[0]}, {"value", value}})
                           : fill(prompts.at("ruler/vt.hop").text,
                                  {{"name", chain.names[next]}, {"from", chain.names[next - 1]}});
      context += "\n";
      ++next;
    }
    context += noise;
    if (i + 1 < std::size_t(lines)) context += "\n";
  }
  const Prompt& prompt = prompts.at("ruler/vt");
  chain.text = fill(prompt.text, {{"context", context}, {"value", value}});
  chain.prefix = fill(prompt.prefix, {{"count", cat(kHops + 1)}, {"value", value}});
  return chain;
}

std::string numbered(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += cat(i > 0 ? " " : "", i + 1, ". ", words[i]);
  }
  return text;
}

struct WordList {
  std::vector<std::string> common;
  std::vector<std::string> all;
};

// Below this length plain words suffice, at four tokens or more for a word with its number; beyond
// it compounds, which take more tokens each.
constexpr std::int64_t kPlainBelow = 5120;

// `words` distinct ones, the first ten of them common. No uncommon one holds a common one: answers
// are looked for as parts of the text.
WordList draw_words(Random& random, bool plain, std::size_t words, int common_times,
                    int other_times) {
  constexpr std::size_t kCommon = 10;
  // Pairs of nouns while they last.
  const std::uint64_t pool =
      plain ? plain_words() : std::min(compound_words(), std::max<std::uint64_t>(20000, 2 * words));
  std::set<std::string> seen;
  WordList list;
  while (seen.size() < words) {
    const std::uint64_t index = random.below(pool);
    const std::string word = plain ? plain_word(index) : compound_word(index);
    const bool common = list.common.size() < kCommon;
    const bool clash = std::any_of(list.common.begin(), list.common.end(), [&](const auto& c) {
      return word.find(c) != std::string::npos || c.find(word) != std::string::npos;
    });
    if (clash || !seen.insert(word).second) continue;
    if (common) list.common.push_back(word);
    list.all.insert(list.all.end(), std::size_t(common ? common_times : other_times), word);
  }
  shuffle(list.all, random);
  return list;
}

}  // namespace

Drafter vt_drafter(const RulerOptions& options, std::int64_t length) {
  Drafter drafter;
  drafter.min = std::int64_t(kHops) + 1;
  const std::uint64_t seed = options.seed;
  drafter.draft = [prompts = options.prompts, seed, length](std::int64_t units, std::size_t index) {
    Random random = random_for(seed, "vt", std::uint64_t(length), index);
    // One worked example comes first, smaller than 500 tokens, with names of three letters.
    const Chain example = draft_chain(prompts, random, 10, 3);
    const Chain chain = draft_chain(prompts, random, units, 5);
    Draft draft;
    draft.body = example.text + example.prefix;
    for (const std::string& name : example.names) {
      draft.body += cat(&name == &example.names.front() ? "" : " ", name);
    }
    draft.body += "\n\n" + chain.text;
    draft.prefix = chain.prefix;
    draft.expected = chain.names;
    return draft;
  };
  return drafter;
}

Drafter cwe_drafter(const RulerOptions& options, std::int64_t length) {
  Drafter drafter;
  drafter.min = 20;
  const bool plain = length < kPlainBelow;
  // Some words are lost to those that hold a common one.
  drafter.max = std::int64_t(plain ? plain_words() * 9 / 10 : compound_words() / 2);
  const std::uint64_t seed = options.seed;
  const bool small = length < 4096;
  drafter.draft = [prompt = options.prompts.at("ruler/cwe"), seed, length, small, plain](
                      std::int64_t units, std::size_t index) {
    Random random = random_for(seed, "cwe", std::uint64_t(length), index);
    const WordList example =
        small ? draw_words(random, plain, 20, 3, 1) : draw_words(random, plain, 40, 10, 3);
    const WordList list = small ? draw_words(random, plain, std::size_t(units), 6, 1)
                                : draw_words(random, plain, std::size_t(units), 30, 3);
    Draft draft;
    draft.body = fill(prompt.text, {{"context", numbered(example.all)}}) + prompt.prefix + " " +
                 numbered(example.common) + "\n" +
                 fill(prompt.text, {{"context", numbered(list.all)}});
    draft.prefix = prompt.prefix;
    draft.expected = list.common;
    return draft;
  };
  return drafter;
}

Drafter fwe_drafter(const RulerOptions& options, std::int64_t length) {
  constexpr int kAnswerTokens = 50;
  constexpr std::int64_t kMinWords = 120;  // below, the fourth word is no longer ahead of the fifth
  constexpr double kZeta2 = std::numbers::pi * std::numbers::pi / 6;
  const std::int64_t room = std::max<std::int64_t>(length - kAnswerTokens, 1);
  Drafter drafter;
  drafter.grain = std::max<std::int64_t>(room / 32, 1);  // as RULER counts
  drafter.min = kMinWords;
  const auto vocabulary = std::size_t(std::max<std::int64_t>(room / 50, 6));
  const std::uint64_t seed = options.seed;
  drafter.draft = [prompt = options.prompts.at("ruler/fwe"), seed, length, vocabulary](
                      std::int64_t units, std::size_t index) {
    Random random = random_for(seed, "fwe", std::uint64_t(length), index);
    std::set<std::string> seen;
    std::vector<std::string> words;
    while (words.size() < vocabulary) {
      std::string word = random_letters(random, 6, 'a');
      if (seen.insert(word).second) words.push_back(std::move(word));
    }
    words[0] = "...";
    std::vector<std::size_t> ranks;
    for (std::size_t k = 1; k <= words.size(); ++k) {
      const auto times = std::size_t(double(units) / double(k) / double(k) / kZeta2);
      ranks.insert(ranks.end(), times, k - 1);
    }
    shuffle(ranks, random);
    std::string context;
    for (const std::size_t rank : ranks) {
      if (!context.empty()) context.push_back(' ');
      context += words[rank];
    }
    Draft draft;
    draft.body = fill(prompt.text, {{"context", context}});
    draft.prefix = prompt.prefix;
    draft.expected = {words[1], words[2], words[3]};
    return draft;
  };
  return drafter;
}

}  // namespace mrrope::eval
