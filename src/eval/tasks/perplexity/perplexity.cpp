// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/perplexity/perplexity.h"

#include <numeric>
#include <tuple>

#include "base/json.h"
#include "base/text.h"

namespace mrrope::eval {

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
    p.tokens.resize(std::size_t(longest_within(options.lengths, p.total)));
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
    if (!methods_.front().untouched()) return;
    const std::int64_t length =
        longest_within(options.lengths, model.facts().geometry.train_length);
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
    const Prepared& document = documents_[d];
    const bool kl = measures_kl(document);
    const std::size_t vocabulary = std::size_t(model_.vocabulary());
    const PositionObserver keep = [&](std::size_t k, std::span<const float> logits) {
      log_softmax(logits, std::span(reference_).subspan(k * vocabulary, vocabulary));
    };
    if (std::exchange(reference_of_, d) != d) reference_.clear();
    if (kl && reference_.empty()) {
      reference_.assign(kl_positions_.size() * vocabulary, std::numeric_limits<float>::quiet_NaN());
      if (m > 0) {  // the untouched model's unit was done by an earlier run
        model_.use(*methods_[0].ladder);
        score(document.tokens, keep, progress, kl_positions_.back(), false);
      }
    }
    double kl_sum = 0;
    std::size_t kl_count = 0;
    std::vector<float> own(vocabulary);
    const PositionObserver compare = [&](std::size_t k, std::span<const float> logits) {
      log_softmax(logits, own);
      kl_sum += divergence(std::span(reference_).subspan(k * vocabulary, vocabulary), own);
      ++kl_count;
    };
    model_.use(*methods_[m].ladder);
    PositionObserver observer;
    if (kl) observer = m > 0 ? compare : keep;
    const std::vector<double> scores = score(document.tokens, observer, progress);
    ordered_json line = {
        {"task", kPerplexity}, {"document", document.id}, {"method", methods_[m].name}};
    put_lengths(scores, line);
    if (kl_count > 0 && kl_count == kl_positions_.size() && std::isfinite(kl_sum)) {
      line["kl"] = {{"length", kl_length_}, {"sum", kl_sum}, {"count", kl_count}};
    }
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
      const std::vector<double> part = timeline->append_scored(
          batch, wanted,
          [&](std::size_t, std::span<const float> logits) { observer(seen++, logits); });
      extend(scores, part);
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

  void put_lengths(const std::vector<double>& scores, ordered_json& line) const {
    line["lengths"] = ordered_json::array();
    std::int64_t finite = 1;  // the first token is never scored
    while (finite < std::int64_t(scores.size()) && std::isfinite(scores[std::size_t(finite)])) {
      ++finite;
    }
    const auto put = [&](ordered_json& entry, const std::string& part, std::int64_t begin) {
      begin = std::max<std::int64_t>(1, begin);
      const auto end = entry.at("length").get<std::int64_t>();
      entry[part + "sum"] = std::accumulate(scores.begin() + begin, scores.begin() + end, 0.0);
      entry[part + "count"] = end - begin;
    };
    std::int64_t previous = 0;
    for (const std::int64_t n : options_.lengths) {
      if (n > finite) break;
      ordered_json entry = {{"length", n}};
      put(entry, "", 0);
      put(entry, "last_half_", n / 2);
      put(entry, "band_", previous);
      line["lengths"].push_back(std::move(entry));
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

constexpr const char* kDivergence = "kl_divergence";

struct Metric {
  const char* name;
  const char *sum, *count;  // in the journal
};
constexpr Metric kMetrics[] = {{kPerplexityMetric, "sum", "count"},
                               {"perplexity_last_half", "last_half_sum", "last_half_count"},
                               {kPerplexityBand, "band_sum", "band_count"}};

void refuse_sliding(const ordered_json& settings) {
  const auto stride = settings.find("stride");
  if (stride == settings.end() || *stride == 0) return;
  unsupported("this run used sliding windows (--stride), which this version does not have",
              "read it with the version of mrrope that run.json names, or run it again without "
              "--stride");
}

// How far a method can be trusted, by one rule.
//
// The rule looks at bands: the tokens between one measured length and the next. A method is good to
// length N (beyond the window) if
//   level: the band that ends at N has a perplexity at most 25 % above that of the untouched model
//          over its window (the longest measured length inside it), on the same documents; and
//   hold:  no band beyond the window up to N is above the lowest band before it by more than 10 %
//          and by more than two standard errors of the paired difference (with one document, which
//          gives no error, 10 % decides), unless it is within 10 % of the untouched model's own: an
//          elastic ladder is so good in its first bands that later ones are above them.
// Why bands: the mean over the first N tokens hides a collapse in its tail. Why two conditions:
// interpolation is steady but may be bad everywhere (level catches it); extrapolation is excellent
// until it breaks (hold catches it). The cost on short texts is not part of the rule. It is
// reported separately: the perplexity inside the window against the untouched model, paired. The
// untouched model is always good to its window.
//
// No verdict without data: the band after the window must have been measured, or have failed.
constexpr double kLevelTolerance = 0.25;
constexpr double kHoldTolerance = 0.10;

bool rises(const PairedDifference& step) {
  const Estimate& d = step.mean_difference;
  if (!(d.value > std::log1p(kHoldTolerance))) return false;
  return d.n < 2 || d.value > 2 * d.error;
}

std::string band_text(const ResultTable& table, std::size_t i) {
  return cat("tokens ", i == 0 ? "0" : length_text(table.lengths[i - 1]), " to ",
             length_text(table.lengths[i]));
}

std::string percent(const PairedDifference& d) { return fixed(d.percent().value, 0) + " %"; }

// Losses are natural logarithms per token, by document.
const UnitValues& losses(const ResultTable& table, const std::string& method, std::int64_t length,
                         const char* metric) {
  static const UnitValues none;
  const ResultRow* row = table.find(method, length, metric);
  return row != nullptr ? row->units : none;
}

// The untouched model, or one that grows, which is the same inside the window.
const MethodRow* baseline(const ResultTable& table) {
  const MethodRow* untouched = find_by(table.methods, &MethodRow::untouched);
  return untouched != nullptr ? untouched : find_by(table.methods, &MethodRow::grows);
}

// Losses are natural logarithms per token.
class Losses {
 public:
  Losses(const ordered_json& run, ResultTable& table) : table_(table) {
    const ordered_json& settings = run.at("settings");
    refuse_sliding(settings);
    table.lengths = recorded_lengths(settings.at("lengths"));
    table.metric = kPerplexityMetric;
    table.units = "documents";
    table.logarithmic = true;
    check_grid({table.methods.size(), table.lengths.size(), run.at("documents").size()});
    for (const ordered_json& document : run.at("documents")) {
      index_[document.at("id")] = ids_.size();
      ids_.push_back(document.at("id"));
      tokens_.push_back(whole<std::int64_t>(document.at("tokens")));
    }
  }

  void unit(std::size_t method, const ordered_json& unit) {
    const auto document = index_.find(unit.value("document", ""));
    if (document == index_.end()) foreign_line(unit);
    const std::pair<std::size_t, std::size_t> id = {document->second, 0};
    if (unit.contains("failed")) failed_[{method, id.first}] = unit.at("failed");
    if (!unit.contains("lengths")) return;
    for (const ordered_json& entry : unit.at("lengths")) {
      const auto length = whole<std::int64_t>(entry.at("length"));
      if (!has(table_.lengths, length)) foreign_line({{"length", length}});
      for (const Metric& m : kMetrics) {
        const double loss = -entry.at(m.sum).get<double>() / entry.at(m.count).get<double>();
        if (std::isfinite(loss)) values_[{method, length, m.name}][id] = loss;
      }
    }
    if (!unit.contains("kl")) return;
    const double kl =
        unit.at("kl").at("sum").get<double>() / unit.at("kl").at("count").get<double>();
    if (std::isfinite(kl)) values_[{method, 0, kDivergence}][id] = kl;
  }

  void finish() {
    for (std::size_t m = 0; m < table_.methods.size(); ++m) {
      const std::string& name = table_.methods[m].method;
      for (const std::int64_t length : table_.lengths) {
        for (const Metric& metric : kMetrics) {
          add_row(table_, kPerplexity, name, length, metric.name,
                  values_[{m, length, metric.name}]);
        }
      }
      const UnitValues& kl = values_[{m, 0, kDivergence}];
      if (!kl.empty()) {
        table_.rows.push_back(
            {kPerplexity, name, table_.reference_length(), {}, kDivergence, mean_of_units(kl), kl});
      }
    }
    for (std::size_t i = 0; i < table_.methods.size(); ++i) {
      const auto of_this = [&](const auto& entry) { return entry.first.first == i; };
      const MethodRow& method = table_.methods[i];
      table_.verdicts.push_back(judge(table_, method, find_by(failed_, of_this) != nullptr));
      const ResultRow* kl = table_.find(method.method, table_.reference_length(), kDivergence);
      if (kl != nullptr) table_.verdicts.back().divergence = kl->estimate;
    }
    describe();
  }

 private:
  // What was not used, or failed; and the tables of a terminal.
  void describe() {
    const std::string documents = ids_.size() == 1 ? "1 document" : cat(ids_.size(), " documents");
    table_.tables.push_back({cat("Perplexity of the first N tokens, ", documents, " (window ",
                                 length_text(table_.window), "):\n"),
                             kPerplexityMetric});
    if (table_.lengths.size() > 1) {
      table_.tables.push_back({"\nBands, from the length before to N:\n", kPerplexityBand});
    }
    table_.more["too_short"] = ordered_json::array();
    std::size_t used = 0;  // documents that are too short for every length have no unit
    for (const std::int64_t length : table_.lengths) {
      std::vector<std::string> short_ones;
      for (std::size_t d = 0; d < ids_.size(); ++d) {
        if (tokens_[d] < length) short_ones.push_back(ids_[d]);
      }
      if (length == table_.lengths.front()) used = ids_.size() - short_ones.size();
      if (short_ones.empty()) continue;
      table_.more["too_short"].push_back({{"length", length}, {"documents", short_ones}});
      table_.remarks +=
          cat("Too short for ", length_text(length), ": ", joined(short_ones, ", "), "\n");
      table_.notes.push_back(cat(short_ones.size(), " of ", ids_.size(),
                                 " documents are shorter than ", length_text(length),
                                 " and are not used there"));
    }
    table_.expected_units = used * table_.methods.size();
    constexpr std::size_t kFailuresNamed = 20;
    ordered_json& failures = table_.more["failures"] = ordered_json::array();
    for (const auto& [at, why] : failed_) {
      const std::string text =
          cat(table_.methods[at.first].method, ", ", ids_[at.second], ": ", why);
      failures.push_back(text);
      table_.remarks += cat("Failed: ", text, "\n");
      if (failures.size() <= kFailuresNamed) table_.notes.push_back("Failed: " + text);
    }
    if (failures.size() > kFailuresNamed) {
      table_.notes.push_back(cat(failures.size() - kFailuresNamed, " more failed"));
    }
  }

  ResultTable& table_;
  std::vector<std::string> ids_;
  std::vector<std::int64_t> tokens_;
  std::map<std::string, std::size_t> index_;
  std::map<std::tuple<std::size_t, std::int64_t, std::string>, UnitValues> values_;
  std::map<std::pair<std::size_t, std::size_t>, std::string> failed_;  // method, document
};

// A unit's place: document, method (the unmodified model first), and 0, as journals have it.
PlaceOf perplexity_places(const ordered_json& run) {
  std::map<std::string, std::int64_t> documents;
  for (const ordered_json& document : run.at("documents")) {
    documents.emplace(document.at("id").get<std::string>(), std::int64_t(documents.size()));
  }
  std::map<std::string, std::int64_t> methods;
  for (const bool untouched : {true, false}) {
    for (const ordered_json& entry : run.at("methods")) {
      const MethodRow row = read_method_row(entry);
      if (row.untouched == untouched) methods.emplace(row.method, std::int64_t(methods.size()));
    }
  }
  return [documents, methods](const ordered_json& unit) -> UnitPlace {
    const auto document = documents.find(unit.at("document").get<std::string>());
    const auto method = methods.find(unit.at("method").get<std::string>());
    if (document == documents.end() || method == methods.end()) foreign_line(unit);
    return {document->second, method->second, 0};
  };
}

}  // namespace

void check_reach(std::int64_t tokens, const std::vector<std::int64_t>& lengths) {
  const std::int64_t shortest = *std::min_element(lengths.begin(), lengths.end());
  if (tokens >= shortest) return;
  refuse(cat("no text reaches the shortest length: the longest has ", tokens, " tokens, and ",
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

Verdict judge(const ResultTable& table, const MethodRow& method, bool failed) {
  Verdict verdict;
  verdict.method = method.method;
  const MethodRow* base = baseline(table);
  if (base == nullptr) {
    verdict.reason =
        "the unmodified model was not measured (add none to --method, or a method that grows, such "
        "as auto)";
    return verdict;
  }
  const std::int64_t reference = table.reference_length();
  if (reference == 0) {
    verdict.reason = cat("no length inside the window was measured (add ",
                         length_text(table.window), " to --lengths)");
    return verdict;
  }
  const UnitValues& untouched = losses(table, base->method, reference, kPerplexityMetric);
  verdict.cost =
      paired_where_both(losses(table, method.method, reference, kPerplexityMetric), untouched);
  if (table.lengths.back() <= table.window) {
    verdict.reason =
        cat("no length beyond the window of ", length_text(table.window), " was measured");
    return verdict;
  }
  verdict.judged = failed;
  verdict.good_to = method.untouched ? reference : 0;
  std::vector<UnitValues> bands;
  for (const std::int64_t length : table.lengths) {
    bands.push_back(losses(table, method.method, length, kPerplexityBand));
  }
  for (std::size_t i = 0; i < table.lengths.size(); ++i) {
    if (table.lengths[i] <= table.window) continue;
    const PairedDifference level = paired_where_both(bands[i], untouched);
    if (level.mean_difference.n == 0) {
      verdict.reason = cat("no document was measured to ", length_text(table.lengths[i]));
      return verdict;
    }
    verdict.judged = true;
    PairedDifference step;  // above the lowest band before this one
    std::size_t lowest = i;
    for (std::size_t j = 0; j < i; ++j) {
      const PairedDifference candidate = paired_where_both(bands[i], bands[j]);
      if (lowest == i || candidate.mean_difference.value > step.mean_difference.value) {
        step = candidate;
        lowest = j;
      }
    }
    if (rises(step) && level.mean_difference.value > std::log1p(kHoldTolerance)) {
      verdict.reason =
          cat(band_text(table, i), " are ", percent(step), " above ", band_text(table, lowest));
      return verdict;
    }
    if (level.mean_difference.value <= std::log1p(kLevelTolerance)) {
      verdict.good_to = table.lengths[i];
      verdict.reason.clear();
    } else {
      verdict.reason = cat(band_text(table, i), " are ", percent(level),
                           " above the unmodified model at ", length_text(reference));
    }
  }
  verdict.to_the_end = verdict.good_to == table.lengths.back();
  return verdict;
}

Task perplexity_task() {
  std::vector<MetricInfo> metrics = {
      {kPerplexityMetric, "Perplexity of the first N tokens", "perplexity",
       "Lower is better. The band is one standard error over documents.", false, true},
      {kPerplexityBand, "Bands: only the tokens between one length and the next", "perplexity",
       "A mean over all tokens hides a collapse at the end; a band does not.", false, true},
      {"perplexity_last_half", "The last half of N tokens", "perplexity", "", false, true, false},
      {kDivergence, "Divergence from the unmodified model", "KL divergence, nats",
       "Inside the window, where the unmodified model is the reference.", false, true, false}};
  return {kPerplexity, "Perplexity against length", std::move(metrics), perplexity_places,
          [](const RecordedRun& recorded) { return fill_table<Losses>(recorded); }};
}

}  // namespace mrrope::eval
