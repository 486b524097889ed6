// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "base/words.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

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
  throw Error(ErrorKind::unsupported,
              "this run used sliding windows (--stride), which this version does not have",
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
  for (const auto which : {&MethodRow::untouched, &MethodRow::grows}) {
    for (const MethodRow& method : table.methods) {
      if (method.*which) return &method;
    }
  }
  return nullptr;
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
    check_grid({table.methods.size(), table.methods.size(), table.lengths.size()});
    for (const ordered_json& document : run.at("documents")) {
      ids_.push_back(document.at("id").get<std::string>());
      index_[ids_.back()] = ids_.size() - 1;
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
      if (std::find(table_.lengths.begin(), table_.lengths.end(), length) == table_.lengths.end()) {
        foreign_line({{"length", length}});
      }
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
      const bool failed = std::any_of(failed_.begin(), failed_.end(),
                                      [&](const auto& entry) { return entry.first.first == i; });
      const MethodRow& method = table_.methods[i];
      table_.verdicts.push_back(judge(table_, method, failed));
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

Verdict judge(const ResultTable& table, const MethodRow& method, bool failed) {
  Verdict verdict;
  verdict.method = method.method;
  const MethodRow* base = baseline(table);
  if (base == nullptr) {
    verdict.reason =
        "the untouched model was not measured (add none to --method, or a method that grows, such "
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
                           " above the untouched model at ", length_text(reference));
    }
  }
  verdict.to_the_end = verdict.good_to == table.lengths.back();
  return verdict;
}

ResultTable perplexity_results(const ordered_json& run, const std::vector<ordered_json>& units) {
  return fill_table<Losses>(run, units, perplexity_places);
}

Task perplexity_task() {
  std::vector<MetricInfo> metrics = {
      {kPerplexityMetric, "Perplexity of the first N tokens", "perplexity",
       "Lower is better. The band is one standard error over documents.", false, true},
      {kPerplexityBand, "Bands: only the tokens between one length and the next", "perplexity",
       "A mean over all tokens hides a collapse at the end; a band does not.", false, true},
      {"perplexity_last_half", "The last half of N tokens", "perplexity", "", false, true, false},
      {kDivergence, "Divergence from the untouched model", "KL divergence, nats",
       "Inside the window, where the untouched model is the reference.", false, true, false}};
  return {kPerplexity, "Perplexity against length", std::move(metrics), perplexity_places,
          perplexity_results};
}

}  // namespace mrrope::eval
