// SPDX-License-Identifier: Apache-2.0
// RULER's needles: values of keys hidden in noise, in prose, or among other such lines.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "eval/tasks/ruler/ruler.h"
#include "eval/text/words.h"

namespace mrrope::eval {

namespace {

// Prose as far as it was needed, sentence by sentence.
class Prose {
 public:
  explicit Prose(std::uint64_t seed) : random_(random_for(seed, "prose")) {}

  // The sentences of the first `words` words; the last may be cut.
  std::vector<std::string_view> first(std::int64_t words) {
    while (ends_.empty() || ends_.back() < words) {
      sentences_.push_back(prose_sentence(random_));
      const std::string& s = sentences_.back();
      const auto blanks = std::count(s.begin(), s.end(), ' ');
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + blanks + 1);
    }
    const auto whole =
        std::size_t(std::upper_bound(ends_.begin(), ends_.end(), words) - ends_.begin());
    std::vector<std::string_view> out(sentences_.begin(),
                                      sentences_.begin() + std::ptrdiff_t(whole));
    const std::int64_t rest = words - (whole == 0 ? 0 : ends_[whole - 1]);
    if (rest > 0) {
      std::size_t end = 0;
      for (std::int64_t w = 0; w < rest; ++w) end = sentences_[whole].find(' ', end + 1);
      out.push_back(std::string_view(sentences_[whole]).substr(0, end));
    }
    return out;
  }

 private:
  Random random_;
  std::vector<std::string> sentences_;
  std::vector<std::int64_t> ends_;  // words up to the end of each
};

std::string draw(const std::string& type, Random& random) {
  if (type == "words") return random_key(random);
  if (type == "number") return random_digits(random, 7);
  return random_uuid(random);
}

// The depths of needles, as a share of the text: 40 depths from 0 to 100 percent, none twice.
std::vector<std::size_t> essay_places(std::size_t sentences, std::size_t needles, Random& random) {
  std::vector<std::size_t> places;
  for (const std::size_t d : choose(40, needles, random)) {
    const double depth = std::round(double(d) * 100 / 39) / 100;
    places.push_back(std::size_t(double(sentences) * depth));
  }
  return places;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : ", and ";
    text += names[i];
  }
  return text;
}

}  // namespace

Drafter niah_drafter(const RulerTask& task, const RulerOptions& options, std::int64_t length) {
  const auto prose = std::make_shared<Prose>(options.seed);
  const std::string noise = options.prompts.at("ruler/noise").text;
  const std::string needle_form = options.prompts.at("ruler/needle").text;
  const bool one = task.queries * task.values == 1;
  const Prompt prompt = options.prompts.at(one ? "ruler/niah.one" : "ruler/niah.many");
  const std::uint64_t seed = options.seed;
  const std::size_t questions = options.questions;
  const std::size_t key_count = std::max(std::size_t(task.keys), questions);
  const std::size_t needles_of = key_count * std::size_t(task.values);
  Drafter drafter;
  drafter.min = task.haystack == "essay" ? 50 : std::int64_t(needles_of);
  drafter.questions = questions;
  drafter.draft = [=](std::int64_t units, std::size_t index) {
    Random random = random_for(seed, task.name, std::uint64_t(length), index / questions);
    const auto line = [&](const std::string& key, const std::string& value) {
      return fill(needle_form, {{"type", task.value}, {"key", key}, {"value", value}});
    };
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> values;
    std::vector<std::string> needles;
    while (keys.size() < key_count) {
      const std::string key = draw(task.key, random);
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      keys.push_back(key);
      values.emplace_back();
      while (values.back().size() < std::size_t(task.values)) {
        values.back().push_back(draw(task.value, random));
        needles.push_back(line(key, values.back().back()));
      }
    }
    shuffle(needles, random);
    std::vector<std::size_t> asked(keys.size());
    for (std::size_t i = 0; i < asked.size(); ++i) asked[i] = i;
    shuffle(asked, random);
    std::rotate(asked.begin(), asked.begin() + std::ptrdiff_t(index % questions), asked.end());
    asked.resize(std::size_t(task.queries));

    std::string context;
    const auto add = [&](std::string_view text, char between) {
      if (!context.empty()) context.push_back(between);
      context += text;
    };
    if (task.haystack == "essay") {
      const std::vector<std::string_view> sentences = prose->first(units);
      const std::vector<std::size_t> places =
          essay_places(sentences.size(), needles.size(), random);
      std::size_t next = 0;
      for (std::size_t i = 0; i <= sentences.size(); ++i) {
        while (next < places.size() && places[next] == i) add(needles[next++], ' ');
        if (i < sentences.size()) add(sentences[i], ' ');
      }
    } else {
      const std::vector<std::size_t> places = choose(std::size_t(units), needles.size(), random);
      std::size_t next = 0;
      for (std::size_t i = 0; i < std::size_t(units); ++i) {
        if (next < places.size() && places[next] == i) add(needles[next++], '\n');
        if (task.haystack == "noise") {
          add(noise, '\n');
          continue;
        }
        std::string key = draw(task.key, random);
        while (std::find(keys.begin(), keys.end(), key) != keys.end()) key = draw(task.key, random);
        add(line(key, draw(task.value, random)), '\n');
      }
    }

    std::vector<std::string> queries;
    Draft draft;
    for (const std::size_t i : asked) {
      queries.push_back(keys[i]);
      draft.expected.insert(draft.expected.end(), values[i].begin(), values[i].end());
    }
    const std::string query = listed(queries);
    draft.body = fill(prompt.text, {{"type", task.value}, {"context", context}, {"query", query}});
    draft.prefix = fill(prompt.prefix, {{"type", task.value}, {"query", query}});
    return draft;
  };
  return drafter;
}

}  // namespace mrrope::eval
