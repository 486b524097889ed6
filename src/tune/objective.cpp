// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "eval/tasks/needle/needle.h"
#include "mrrope/error.h"
#include "tune/search.h"

namespace mrrope::tune {

using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kReach = 64;  // tokens: how far a needle moves back to the end of a sentence

// The tokens that continue a question with the answer, as the model itself would write it. Some
// tokenizers put a blank in front by themselves.
std::vector<Token> answer_tokens(const Tokenizer& model, const eval::NeedleForm& form,
                                 const eval::Needle& needle) {
  const std::string blank = form.name == "chat" ? "" : " ";
  const std::string before = model.detokenize(needle.question);
  for (const std::string& text : {blank + needle.answer, needle.answer}) {
    std::vector<Token> tokens = model.tokenize(text, false, false);
    std::vector<Token> both = needle.question;
    both.insert(both.end(), tokens.begin(), tokens.end());
    if (model.detokenize(both) == before + blank + needle.answer) return tokens;
  }
  return model.tokenize(blank + needle.answer, false, false);
}

void extend(std::vector<Token>& to, std::span<const Token> more) {
  to.insert(to.end(), more.begin(), more.end());
}

double average(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

std::vector<double> band_losses(const SearchText& text, const std::vector<double>& scores,
                                const std::vector<std::int64_t>& ends) {
  std::vector<double> losses;
  std::int64_t begin = 1;  // the first token is predicted by nothing
  for (const std::int64_t band_end : ends) {
    const std::int64_t end = std::min(band_end, std::int64_t(scores.size()));
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      if (text.planted[std::size_t(i)]) continue;
      sum -= scores[std::size_t(i)];
      ++count;
    }
    if (count > 0) losses.push_back(sum / double(count));
    begin = std::max(begin, end);
  }
  return losses;
}

// On a fork where that is free; under a ladder whose last rung begins only now, on the timeline
// itself, which then forgets the question.
double ask(Timeline& timeline, const PlantedAnswer& asked, bool same_rung) {
  std::vector<double> scores;
  if (same_rung) {
    scores = timeline.fork()->append_scored(asked.question);
  } else {
    const std::int64_t end = timeline.length();
    scores = timeline.append_scored(asked.question);
    timeline.truncate(end);
  }
  return std::accumulate(scores.end() - std::ptrdiff_t(asked.answer), scores.end(), 0.0) /
         double(asked.answer);
}

// Documents of at least `tokens` tokens, the whole ones first; those that are too short are joined
// with each other, in order. What is left over at the end is dropped.
std::vector<eval::Document> long_documents(const Tokenizer& model,
                                           const std::vector<eval::Document>& documents,
                                           std::int64_t tokens) {
  std::vector<eval::Document> whole;
  std::vector<eval::Document> joined;
  eval::Document next;
  std::int64_t have = 0;
  for (const eval::Document& document : documents) {
    const auto count = std::int64_t(model.tokenize(document.text, false, false).size());
    if (count >= tokens) {
      whole.push_back(document);
      continue;
    }
    next.id += cat(next.id.empty() ? "" : " + ", document.id);
    next.text += cat(next.text.empty() ? "" : "\n\n", document.text);
    have += count;
    // Joining may merge a few tokens at the seams, so the sum alone is not enough.
    if (have < tokens || std::int64_t(model.tokenize(next.text, false, false).size()) < tokens) {
      continue;
    }
    joined.push_back(std::move(next));
    next = {};
    have = 0;
  }
  std::move(joined.begin(), joined.end(), std::back_inserter(whole));
  return whole;
}

// Ends of the bands: half the window, the window, and twice as much each time up to `length`.
std::vector<std::int64_t> band_ends(std::int64_t window, std::int64_t length) {
  std::vector<std::int64_t> ends;
  for (std::int64_t n = std::max<std::int64_t>(2, window / 2); n < length; n *= 2) {
    ends.push_back(n);
  }
  ends.push_back(length);
  return ends;
}

}  // namespace

SearchText plant(const Tokenizer& model, const eval::NeedleForm& form, const std::string& id,
                 const std::vector<Token>& document, std::int64_t length, const Planting& planting,
                 std::uint64_t seed, std::size_t number) {
  const std::size_t answers = planting.answers;
  std::vector<eval::Needle> needles;   // those asked for first
  std::set<std::vector<Token>> words;  // no two needles about the same word
  SearchText text;
  text.id = id;
  text.length = length;
  std::int64_t room = 0;
  std::int64_t taken = 0;
  // A form without words of its own has one needle only.
  for (std::int64_t draw = 0; draw < 1000; ++draw) {
    const bool decoy = needles.size() >= answers;
    if (decoy && (needles.size() == answers * (1 + planting.decoys) || taken > length / 8)) break;
    eval::Needle needle = draw_needle(model, form, seed, number, draw);
    if (!words.insert(needle.question).second) continue;
    if (!decoy) {
      PlantedAnswer& asked = text.asked.emplace_back();
      const std::vector<Token> answer = answer_tokens(model, form, needle);
      asked.answer = answer.size();
      asked.question = needle.question;
      extend(asked.question, answer);
      room = std::max(room, std::int64_t(asked.question.size()));
    }
    taken += std::int64_t(needle.needle.size());
    needles.push_back(std::move(needle));
  }
  text.tokens = head_of(model, form);
  const std::int64_t haystack = length - room - taken - std::int64_t(text.tokens.size());
  if (haystack < taken || std::int64_t(document.size()) < haystack) {
    throw Error(ErrorKind::usage,
                cat(length, " tokens have no room for ", text.asked.size(), " planted answers"),
                "give fewer --answers, or a longer --ctx");
  }
  text.planted.assign(text.tokens.size(), 1);
  std::int64_t from = 0;
  const auto own = [&](std::int64_t to) {
    extend(text.tokens, std::span(document).subspan(std::size_t(from), std::size_t(to - from)));
    text.planted.resize(text.tokens.size(), 0);
    from = to;
  };
  // Evenly spread over the text, and the answers evenly over those places.
  const std::size_t places = std::max(answers, needles.size());
  std::size_t asked = 0;
  std::size_t decoy = text.asked.size();
  for (std::size_t k = 0; k < places && asked + decoy < needles.size() + text.asked.size(); ++k) {
    const bool answer = asked < text.asked.size() && k == (2 * asked + 1) * places / (2 * answers);
    if (!answer && decoy == needles.size()) continue;
    const std::int64_t at = haystack * std::int64_t(2 * k + 1) / std::int64_t(2 * places);
    own(std::max(from, eval::snap_back(model, document, at, kReach).value_or(at)));
    if (answer) text.asked[asked].depth = double(text.tokens.size()) / double(length);
    extend(text.tokens, needles[answer ? asked : decoy].needle);
    text.planted.resize(text.tokens.size(), 1);
    ++(answer ? asked : decoy);
  }
  own(haystack);
  text.cost = std::int64_t(text.tokens.size());
  for (const PlantedAnswer& one : text.asked) text.cost += std::int64_t(one.question.size());
  return text;
}

Split split_documents(const Tokenizer& model, const std::vector<eval::Document>& documents,
                      std::int64_t tokens, std::size_t most, std::size_t most_held_out,
                      std::uint64_t seed) {
  std::vector<eval::Document> all = long_documents(model, documents, tokens);
  const std::size_t n = all.size();
  if (n < 3) {
    throw Error(ErrorKind::usage,
                cat("not enough text: it makes ", n, n == 1 ? " document of " : " documents of ",
                    tokens, " tokens, but the search needs one and the proof two"),
                "give more files with --text, or a shorter --ctx");
  }
  Random random(seed);
  for (std::size_t i = n; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  Split split;
  const std::size_t search = std::clamp<std::size_t>(n / 2, 1, most);
  const std::size_t held_out = most_held_out > 0 ? std::min(most_held_out, n - search) : n - search;
  split.search.assign(all.begin(), all.begin() + std::ptrdiff_t(search));
  split.held_out.assign(all.begin() + std::ptrdiff_t(search),
                        all.begin() + std::ptrdiff_t(search + held_out));
  return split;
}

double Measured::log_perplexity() const {
  return failed.empty() ? average(bands) : std::numeric_limits<double>::infinity();
}

double Measured::retrieval() const {
  if (!failed.empty()) return -std::numeric_limits<double>::infinity();
  return answers.empty() ? 0 : average(answers);
}

double Measured::objective(double weight) const {
  if (!failed.empty()) return std::numeric_limits<double>::infinity();
  return log_perplexity() - weight * retrieval();
}

Measured measure(TimelineModel& model, const Ladder& ladder, const SearchText& text,
                 std::int64_t batch, const std::function<void(std::int64_t)>& between) {
  Measured measured;
  const auto finite = [](double s) { return std::isfinite(s); };
  try {
    model.use(ladder);
    const auto timeline = model.timeline();
    std::vector<double> scores;
    while (scores.size() < text.tokens.size()) {
      const auto rest = std::span(text.tokens).subspan(scores.size());
      const auto part =
          timeline->append_scored(rest.first(std::min(rest.size(), std::size_t(batch))));
      scores.insert(scores.end(), part.begin(), part.end());
      between(std::int64_t(part.size()));
    }
    if (!std::all_of(scores.begin() + 1, scores.end(), finite)) {
      measured.failed = "a log-probability is not a finite number";
      return measured;
    }
    const std::int64_t window = model.facts().geometry.train_length;
    measured.bands = band_losses(text, scores, band_ends(window, text.length));
    const bool same_rung =
        ladder.rung_at(std::int64_t(text.tokens.size())) == ladder.rung_at(text.length);
    for (const PlantedAnswer& asked : text.asked) {
      measured.answers.push_back(ask(*timeline, asked, same_rung));
      between(std::int64_t(asked.question.size()));
    }
    if (!std::all_of(measured.answers.begin(), measured.answers.end(), finite)) {
      measured.failed = "the log-probability of an answer is not a finite number";
    }
  } catch (const NanLogits& e) {  // data about the plan, unlike a device that fails
    measured.failed = e.what();
  }
  return measured;
}

ordered_json to_json(const Measured& m) {
  if (!m.failed.empty()) return {{"failed", m.failed}};
  return {{"bands", m.bands}, {"answers", m.answers}};
}

Measured measured_from_json(const ordered_json& line) {
  if (line.contains("failed")) return {{}, {}, line["failed"].get<std::string>()};
  Measured m{line.at("bands").get<std::vector<double>>(),
             line.at("answers").get<std::vector<double>>(),
             {}};
  if (!m.bands.empty()) return m;
  throw Error(ErrorKind::corrupt, "a line of the journal holds no bands",
              "delete this line, or the folder");
}

}  // namespace mrrope::tune
