// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "eval/text/word_list.h"
#include "tune/search.h"

namespace mrrope::tune {

namespace {

constexpr std::int64_t kReach = 64;  // tokens: how far a needle moves back to the end of a sentence

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
// itself, which then forgets the question. Nats per token, as eval::answer_loss().
double ask(Timeline& timeline, const PlantedAnswer& asked, bool same_rung) {
  std::vector<double> scores;
  if (same_rung) {
    scores = timeline.fork()->append_scored(asked.question);
  } else {
    const std::int64_t end = timeline.length();
    scores = timeline.append_scored(asked.question);
    timeline.truncate(end);
  }
  return -std::accumulate(scores.end() - std::ptrdiff_t(asked.answer), scores.end(), 0.0) /
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

}  // namespace

std::vector<std::int64_t> band_ends(std::int64_t window, std::int64_t length) {
  return eval::doubling(std::max<std::int64_t>(2, window / 2), length);
}

SearchText plant(const Tokenizer& model, const eval::NeedleForm& form, const std::string& id,
                 const std::vector<Token>& document, std::int64_t length, std::size_t questions,
                 std::uint64_t seed, std::size_t number) {
  std::vector<std::vector<Token>> needles;
  std::set<std::vector<Token>> words;  // no two needles about the same word
  SearchText text;
  text.id = id;
  text.length = length;
  std::int64_t room = 0;
  std::int64_t taken = 0;
  // A form without words of its own has one needle only.
  for (std::int64_t draw = 0; draw < 1000 && needles.size() < questions; ++draw) {
    eval::Needle needle = draw_needle(model, form, seed, number, draw);
    if (!words.insert(needle.question).second) continue;
    PlantedAnswer& asked = text.asked.emplace_back();
    asked.answer = needle.right.size();
    asked.question = std::move(needle.question);
    extend(asked.question, needle.right);
    room = std::max(room, std::int64_t(asked.question.size()));
    taken += std::int64_t(needle.needle.size());
    needles.push_back(std::move(needle.needle));
  }
  text.tokens = head_of(model, form);
  const std::int64_t size = length - room - taken - std::int64_t(text.tokens.size());
  refuse_if(size < taken || document.empty(),
            cat(length, " tokens have no room for ", questions, " questions"),
            "give fewer --questions, or a longer --ctx");
  std::vector<Token> haystack = document;
  while (std::int64_t(haystack.size()) < size) extend(haystack, document);
  haystack.resize(std::size_t(size));
  text.planted.assign(text.tokens.size(), 1);
  std::size_t from = 0;
  const auto add_text = [&](std::size_t to) {
    for (; from < to; ++from) {
      text.tokens.push_back(haystack[from]);
      text.planted.push_back(from >= document.size());  // a second time it is easy to predict
    }
  };
  for (std::size_t k = 0; k < needles.size(); ++k) {
    const std::int64_t at = size * std::int64_t(2 * k + 1) / std::int64_t(2 * needles.size());
    add_text(std::size_t(eval::snap_back(model, haystack, at, kReach).value_or(at)));
    extend(text.tokens, needles[k]);
    text.planted.resize(text.tokens.size(), 1);
  }
  add_text(haystack.size());
  text.cost = std::int64_t(text.tokens.size());
  for (const PlantedAnswer& one : text.asked) text.cost += std::int64_t(one.question.size());
  return text;
}

Split split_documents(const Tokenizer& model, const std::vector<eval::Document>& documents,
                      std::int64_t tokens, std::size_t most, std::size_t most_held_out,
                      std::uint64_t seed) {
  std::vector<eval::Document> all = long_documents(model, documents, tokens);
  const std::size_t n = all.size();
  refuse_if(n < 3,
            cat("not enough text: it makes ", n, n == 1 ? " document of " : " documents of ",
                tokens, " tokens, but the search needs one and the proof two"),
            "give more files with --text, or a shorter --ctx");
  Random random(seed);
  eval::shuffle(all, random);
  Split split;
  const std::size_t search = std::clamp<std::size_t>(n / 2, 1, most);
  const std::size_t held_out = most_held_out > 0 ? std::min(most_held_out, n - search) : n - search;
  split.search.assign(all.begin(), all.begin() + std::ptrdiff_t(search));
  split.held_out.assign(all.begin() + std::ptrdiff_t(search),
                        all.begin() + std::ptrdiff_t(search + held_out));
  return split;
}

Split split_halves(std::vector<eval::Document> documents, std::size_t search, std::size_t held_out,
                   std::uint64_t seed) {
  Random random(seed);
  eval::shuffle(documents, random);
  const auto texts = [&](std::size_t begin, std::size_t end, std::size_t most) {
    std::vector<eval::Document> out;
    const std::size_t count = end - begin;
    for (std::size_t k = 0; k < std::min(count, most); ++k) {
      eval::Document& text = out.emplace_back();
      text.id = cat(documents[begin + k].id, " + ", count - 1, " more");
      for (std::size_t i = 0; i < count; ++i) {
        text.text += cat(i > 0 ? "\n\n" : "", documents[begin + (k + i) % count].text);
      }
    }
    return out;
  };
  const std::size_t half = documents.size() / 2;
  return {texts(0, half, search), texts(half, documents.size(), held_out > 0 ? held_out : half)};
}

double Measured::log_perplexity() const {
  return failed.empty() ? eval::mean(bands).value : std::numeric_limits<double>::infinity();
}

double Measured::answer_loss() const {
  if (!failed.empty()) return std::numeric_limits<double>::infinity();
  return answers.empty() ? 0 : eval::mean(answers).value;
}

double Measured::objective(double weight) const {
  return failed.empty() ? log_perplexity() + weight * answer_loss()
                        : std::numeric_limits<double>::infinity();
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
      extend(scores, part);
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
      measured.failed = "the loss of an answer is not a finite number";
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
