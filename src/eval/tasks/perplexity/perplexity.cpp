// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/perplexity/perplexity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

struct Prepared {
  std::string id;
  std::vector<Token> tokens;  // only those that some length needs
  std::int64_t total = 0;     // tokens of the whole document, BOS included
};

// Sees the logits after position `position` of a document.
using PositionObserver = std::function<void(std::size_t k, std::span<const float> logits)>;

std::vector<Prepared> prepare(const TimelineModel& model, const std::vector<Document>& documents,
                              const PerplexityOptions& options) {
  std::vector<Prepared> prepared;
  for (const Document& document : documents) {
    Prepared p{document.id, model.tokenize(document.text, true, false), 0};
    p.total = std::int64_t(p.tokens.size());
    std::int64_t needed = 0;
    for (const std::int64_t length : options.lengths) {
      if (length <= p.total) needed = length;
    }
    p.tokens.resize(std::size_t(needed));
    p.tokens.shrink_to_fit();
    prepared.push_back(std::move(p));
  }
  return prepared;
}

// Natural logarithms of the probabilities.
void log_softmax(std::span<const float> logits, std::span<float> result) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(double(x) - top);
  const double shift = top + std::log(sum);
  for (std::size_t i = 0; i < logits.size(); ++i) result[i] = float(double(logits[i]) - shift);
}

double divergence(std::span<const float> p, std::span<const float> q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double weight = std::exp(double(p[i]));
    if (weight > 0 || std::isnan(weight)) sum += weight * (double(p[i]) - double(q[i]));
  }
  return sum;
}

class PerplexityUnits : public UnitWork {
 public:
  PerplexityUnits(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                  std::vector<Prepared> documents, const PerplexityOptions& options)
      : model_(model), methods_(methods), documents_(std::move(documents)), options_(options) {
    std::stable_sort(methods_.begin(), methods_.end(),
                     [](const auto& a, const auto& b) { return a.untouched() > b.untouched(); });
    const std::int64_t window = model.facts().geometry.train_length;
    std::int64_t length = 0;
    for (const std::int64_t n : options.lengths) {
      if (n <= window) length = n;
    }
    if (!methods_.front().untouched()) return;
    const std::int64_t count = std::min<std::int64_t>(options.kl_positions, length);
    for (std::int64_t k = 0; k < count; ++k) {
      kl_positions_.push_back(std::size_t((2 * k + 1) * length / (2 * count)));
    }
    kl_length_ = length;
  }

  std::vector<Unit> units() override {
    std::vector<Unit> all;
    for (std::size_t d = 0; d < documents_.size(); ++d) {
      const auto tokens = std::int64_t(documents_[d].tokens.size());
      if (tokens == 0) continue;
      add_units(all, methods_, tokens, [&](std::size_t m) -> Unit {
        return {{std::int64_t(d), std::int64_t(m), 0},
                tokens,
                cat(methods_[m].name, "  document ", d + 1, " of ", documents_.size()),
                cat("method ", methods_[m].name, ", document ", documents_[d].id)};
      });
    }
    return all;
  }

  ordered_json compute(const Unit& unit, UnitProgress& progress) override {
    const auto d = std::size_t(unit.place[0]);
    const auto m = std::size_t(unit.place[1]);
    if (d != reference_of_) reference_.clear();
    reference_of_ = d;
    const Prepared& document = documents_[d];
    ordered_json line = {
        {"task", kPerplexity}, {"document", document.id}, {"method", methods_[m].name}};
    model_.use(*methods_[m].ladder);
    one_pass(document, m, line, progress);
    return line;
  }

  // The untouched model does not differ from itself.
  void same(const Unit& unit, ordered_json& line) const override {
    if (line.contains("kl") || line.contains("failed") ||
        !measures_kl(documents_[std::size_t(unit.place[0])]))
      return;
    line["kl"] = {{"length", kl_length_}, {"sum", 0.0}, {"count", kl_positions_.size()}};
  }

 private:
  // Scores of tokens[1..], index by index; the first is NaN. Ends early after a token of
  // probability 0, or after the batch that holds position `stop`.
  std::vector<double> score(std::span<const Token> tokens, const PositionObserver& observer,
                            UnitProgress& progress,
                            std::size_t stop = std::numeric_limits<std::size_t>::max(),
                            bool count = true) {
    const auto timeline = model_.timeline();
    std::vector<double> scores;
    std::size_t next = 0;  // of kl_positions_
    while (scores.size() < tokens.size()) {
      progress.check();
      const std::size_t begin = scores.size();
      if (begin > stop) break;
      std::size_t size = std::min(std::size_t(options_.batch), tokens.size() - begin);
      // A border where observation ends: an engine may pay for every token of an observed batch.
      const auto observed = std::size_t(kl_length_);
      if (observer && begin < observed) size = std::min(size, observed - begin);
      const auto batch = tokens.subspan(begin, size);
      std::vector<std::size_t> wanted;
      const std::size_t first = next;
      while (observer && next < kl_positions_.size() &&
             kl_positions_[next] < begin + batch.size()) {
        wanted.push_back(kl_positions_[next++] - begin);
      }
      std::size_t seen = first;
      const std::vector<double> part =
          wanted.empty() ? timeline->append_scored(batch)
                         : timeline->append_scored_observed(
                               batch, wanted, [&](std::size_t, std::span<const float> logits) {
                                 observer(seen++, logits);
                               });
      scores.insert(scores.end(), part.begin(), part.end());
      if (count) progress.advance(std::int64_t(batch.size()), std::int64_t(batch.size()));
      const auto scored = part.begin() + (begin == 0 ? 1 : 0);
      // A failure of the engine is not a property of the document: nothing is recorded.
      if (std::any_of(scored, part.end(), [](double s) { return std::isnan(s); })) {
        throw Error(
            ErrorKind::failed,
            cat("the engine computed NaN between tokens ", begin, " and ", begin + batch.size()),
            "try another cache type or device; finished units are kept");
      }
      if (!std::all_of(scored, part.end(), [](double s) { return std::isfinite(s); })) {
        if (count) progress.advance(std::int64_t(tokens.size() - scores.size()), 0);
        break;
      }
    }
    return scores;
  }

  bool measures_kl(const Prepared& document) const {
    return !kl_positions_.empty() && methods_.size() > 1 &&
           std::int64_t(document.tokens.size()) >= kl_length_;
  }

  void one_pass(const Prepared& document, std::size_t m, ordered_json& line,
                UnitProgress& progress) {
    const bool kl = measures_kl(document);
    const bool is_reference = m == 0;
    const std::size_t vocabulary = std::size_t(model_.vocabulary());
    if (kl && reference_.empty()) {
      reference_.assign(kl_positions_.size() * vocabulary, std::numeric_limits<float>::quiet_NaN());
      if (!is_reference) {  // the untouched model's unit was done by an earlier run
        model_.use(*methods_[0].ladder);
        score(document.tokens, reference_writer(), progress, kl_positions_.back(), false);
        model_.use(*methods_[m].ladder);
      }
    }
    double kl_sum = 0;
    std::size_t kl_count = 0;
    std::vector<float> own(vocabulary);
    PositionObserver observer;
    if (kl && is_reference) observer = reference_writer();
    if (kl && !is_reference) {
      observer = [&](std::size_t k, std::span<const float> logits) {
        log_softmax(logits, own);
        kl_sum += divergence(std::span(reference_).subspan(k * vocabulary, vocabulary), own);
        ++kl_count;
      };
    }
    const std::vector<double> scores = score(document.tokens, observer, progress);
    put_lengths(scores, line);
    if (kl_count > 0 && kl_count == kl_positions_.size() && std::isfinite(kl_sum)) {
      line["kl"] = {{"length", kl_length_}, {"sum", kl_sum}, {"count", kl_count}};
    }
  }

  PositionObserver reference_writer() {
    return [this](std::size_t k, std::span<const float> logits) {
      log_softmax(logits, std::span(reference_).subspan(k * logits.size(), logits.size()));
    };
  }

  void put_lengths(const std::vector<double>& scores, ordered_json& line) const {
    line["lengths"] = ordered_json::array();
    std::int64_t finite = 1;  // the first token is never scored
    while (finite < std::int64_t(scores.size()) && std::isfinite(scores[std::size_t(finite)])) {
      ++finite;
    }
    const auto sum = [&](std::int64_t begin, std::int64_t end) {
      double total = 0;
      for (std::int64_t i = std::max<std::int64_t>(1, begin); i < end; ++i) {
        total += scores[std::size_t(i)];
      }
      return total;
    };
    const auto count = [](std::int64_t begin, std::int64_t end) {
      return end - std::max<std::int64_t>(1, begin);
    };
    std::int64_t previous = 0;
    for (const std::int64_t n : options_.lengths) {
      if (n > finite) break;
      line["lengths"].push_back({{"length", n},
                                 {"sum", sum(0, n)},
                                 {"count", count(0, n)},
                                 {"last_half_sum", sum(n / 2, n)},
                                 {"last_half_count", count(n / 2, n)},
                                 {"band_sum", sum(previous, n)},
                                 {"band_count", count(previous, n)}});
      previous = n;
    }
    if (finite < std::int64_t(scores.size())) {
      line["failed"] = cat("the log-probability of token ", finite, " is not a finite number");
    }
  }

  TimelineModel& model_;
  std::vector<MethodUnderTest> methods_;  // the untouched model first
  const std::vector<Prepared> documents_;
  const PerplexityOptions options_;
  std::vector<std::size_t> kl_positions_;
  std::int64_t kl_length_ = 0;
  std::vector<float> reference_;  // the untouched model's log-probabilities for one document
  std::size_t reference_of_ = 0;
};

}  // namespace

void check_reach(std::int64_t tokens, const std::vector<std::int64_t>& lengths) {
  const std::int64_t shortest = *std::min_element(lengths.begin(), lengths.end());
  if (tokens >= shortest) return;
  throw Error(ErrorKind::usage,
              cat("no text reaches the shortest length: the longest has ", tokens, " tokens, and ",
                  shortest, " are needed"),
              tokens < 2 ? "give longer texts"
                         : cat("give longer texts, or shorter --lengths, such as ", tokens));
}

ResultTable run_perplexity(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                           const std::vector<Document>& documents,
                           const PerplexityOptions& requested, RunFolder& folder,
                           Progress& progress) {
  PerplexityOptions options = requested;
  options.lengths = sorted_lengths(options.lengths);
  check_methods(model, methods, options.lengths);
  std::vector<Prepared> prepared = prepare(model, documents, options);
  std::int64_t longest = 0;
  for (const Prepared& p : prepared) longest = std::max(longest, p.total);
  check_reach(longest, options.lengths);
  note_same_models(folder, methods, {options.lengths.back()});
  ordered_json settings = {{"lengths", options.lengths},
                           {"batch", options.batch},
                           {"kl_positions", options.kl_positions}};
  if (options.random) settings["select"] = "random";
  if (options.min_tokens > 0) settings["min_tokens"] = options.min_tokens;
  ordered_json run = run_identity(kPerplexity, model, methods, std::move(settings));
  run["documents"] = ordered_json::array();
  for (const Prepared& d : prepared) {
    run["documents"].push_back({{"id", d.id}, {"tokens", d.total}});
  }
  PerplexityUnits units(model, methods, std::move(prepared), options);
  return run_job(model, units, run, folder, progress);
}

}  // namespace mrrope::eval
