// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/perplexity/perplexity_results.h"

#include <cmath>
#include <limits>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "eval/run/collect.h"
#include "eval/run/method_under_test.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> finite_only(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double v : values) {
    if (std::isfinite(v)) result.push_back(v);
  }
  return result;
}

Estimate perplexity_of(const std::vector<double>& losses) {
  return exponential(mean(finite_only(losses)));
}

// What the units say, addressed by [method][length][document]; NaN where there is nothing.
class LossTable {
 public:
  LossTable(const ordered_json& run, PerplexityResults& results) : results_(results) {
    check_task(run, kPerplexity);
    results.lengths = recorded_lengths(run.at("settings").at("lengths"));
    results.stride = whole<std::int64_t>(run.at("settings").at("stride"));
    results.window = whole<std::int64_t>(run.at("model").at("train_length"));
    for (const std::int64_t n : results.lengths) {
      if (n <= results.window) results.reference_length = n;
    }
    results.too_short.resize(results.lengths.size());
    check_grid({run.at("methods").size(), results.lengths.size(), run.at("documents").size()});
    check_grid({run.at("methods").size(), run.at("methods").size(), results.lengths.size()});
    for (const ordered_json& document : run.at("documents")) {
      const auto id = document.at("id").get<std::string>();
      document_[id] = results.documents.size();
      results.documents.push_back(id);
      for (std::size_t l = 0; l < results.lengths.size(); ++l) {
        if (whole<std::int64_t>(document.at("tokens")) < results.lengths[l]) {
          results.too_short[l].push_back(id);
        }
      }
    }
    for (const ordered_json& method : run.at("methods")) {
      PerplexityRow row{read_method_row(method), {}, {}};
      const std::vector<double> none(results.documents.size(), kNan);
      row.cells.resize(results.lengths.size());
      for (PerplexityCell& cell : row.cells) cell.loss = cell.band_loss = none;
      results.rows.push_back(std::move(row));
      half_.emplace_back(results.lengths.size(), none);
      windows_.emplace_back(results.lengths.size(), none);
      divergence_.push_back(none);
      failed_.emplace_back(results.documents.size());
    }
  }

  void unit(std::size_t method, const ordered_json& unit) {
    const auto d = document_.find(unit.value("document", ""));
    if (d == document_.end()) foreign_line(unit);
    const std::size_t document = d->second;
    PerplexityRow& row = results_.rows[method];
    if (unit.contains("failed")) failed_[method][document] = unit.at("failed");
    if (unit.contains("windows")) {
      const std::size_t l = index_of(unit.at("window"));
      const double windows = unit.at("windows");
      windows_[method][l][document] = windows;
      row.cells[l].loss[document] = -unit.at("sum_of_means").get<double>() / windows;
      return;
    }
    if (!unit.contains("lengths")) return;
    const auto loss = [](const ordered_json& entry, const char* sum, const char* count) {
      return -entry.at(sum).get<double>() / entry.at(count).get<double>();
    };
    for (const ordered_json& entry : unit.at("lengths")) {
      const std::size_t l = index_of(entry.at("length"));
      row.cells[l].loss[document] = loss(entry, "sum", "count");
      row.cells[l].band_loss[document] = loss(entry, "band_sum", "band_count");
      half_[method][l][document] = loss(entry, "last_half_sum", "last_half_count");
    }
    if (unit.contains("kl")) divergence_[method][document] = -loss(unit.at("kl"), "sum", "count");
  }

  void estimate() {
    for (std::size_t m = 0; m < results_.rows.size(); ++m) {
      PerplexityRow& row = results_.rows[m];
      for (std::size_t l = 0; l < results_.lengths.size(); ++l) {
        PerplexityCell& cell = row.cells[l];
        if (results_.stride > 0) {
          cell.perplexity = sliding(cell.loss, windows_[m][l]);
        } else {
          cell.perplexity = perplexity_of(cell.loss);
          cell.last_half = perplexity_of(half_[m][l]);
          cell.band = perplexity_of(cell.band_loss);
        }
      }
      row.divergence = mean(finite_only(divergence_[m]));
      for (std::size_t d = 0; d < results_.documents.size(); ++d) {
        if (failed_[m][d].empty()) continue;
        row.failed = true;
        results_.failures.push_back(
            cat(row.method, ", ", results_.documents[d], ": ", failed_[m][d]));
      }
    }
  }

 private:
  std::size_t index_of(const ordered_json& length) const {
    for (std::size_t l = 0; l < results_.lengths.size(); ++l) {
      if (length == results_.lengths[l]) return l;
    }
    foreign_line({{"length", length}});
  }

  // Every window weighs the same, whichever document it is from.
  static Estimate sliding(const std::vector<double>& losses, const std::vector<double>& windows) {
    std::vector<double> y;
    std::vector<double> w;
    for (std::size_t d = 0; d < losses.size(); ++d) {
      if (!std::isfinite(losses[d])) continue;
      y.push_back(losses[d] * windows[d]);
      w.push_back(windows[d]);
    }
    return exponential(weighted_mean(y, w));
  }

  PerplexityResults& results_;
  std::map<std::string, std::size_t> document_;
  std::vector<std::vector<std::vector<double>>> half_;
  std::vector<std::vector<std::vector<double>>> windows_;
  std::vector<std::vector<double>> divergence_;
  std::vector<std::vector<std::string>> failed_;
};

void compare(PerplexityResults& results) {
  std::vector<std::string> methods;
  for (const PerplexityRow& row : results.rows) methods.push_back(row.method);
  results.comparisons =
      compare_methods(methods, results.lengths, [&](std::size_t a, std::size_t b, std::size_t l) {
        return paired_where_both(results.rows[a].cells[l].loss, results.rows[b].cells[l].loss);
      });
}

void give_verdicts(PerplexityResults& results) {
  if (results.stride > 0) return;
  std::size_t reference = 0;
  for (std::size_t l = 0; l < results.lengths.size(); ++l) {
    if (results.lengths[l] == results.reference_length) reference = l;
  }
  std::vector<double> untouched;
  for (const PerplexityRow& row : results.rows) {
    if (row.untouched && untouched.empty()) untouched = row.cells[reference].loss;
  }
  for (const PerplexityRow& row : results.rows) {  // the same inside the window
    if (row.grows && untouched.empty()) untouched = row.cells[reference].loss;
  }
  for (const PerplexityRow& row : results.rows) {
    VerdictInput input;
    input.method = row.method;
    input.is_untouched = row.untouched;
    input.window = results.window;
    input.lengths = results.lengths;
    for (const PerplexityCell& cell : row.cells) input.bands.push_back(cell.band_loss);
    input.reference_length = results.reference_length;
    input.untouched = untouched;
    input.own = row.cells[reference].loss;
    input.failed = row.failed;
    results.verdicts.push_back(judge(input));
  }
}

}  // namespace

PerplexityResults perplexity_results(const ordered_json& run,
                                     const std::vector<ordered_json>& units) {
  PerplexityResults results;
  read_recorded([&] {
    LossTable table(run, results);
    collect(run, units, perplexity_places,
            [&](std::size_t method, const ordered_json& unit) { table.unit(method, unit); });
    table.estimate();
  });
  compare(results);
  give_verdicts(results);
  return results;
}

ordered_json to_json(const PerplexityResults& results) {
  ordered_json json;
  ordered_json& rows = json["results"] = ordered_json::array();
  for (const PerplexityRow& row : results.rows) {
    const auto put = [&](std::int64_t length, const char* metric, const Estimate& e) {
      rows.push_back(result_row(kPerplexity, row, length, metric, e));
    };
    for (std::size_t l = 0; l < results.lengths.size(); ++l) {
      const PerplexityCell& cell = row.cells[l];
      if (results.stride > 0) {
        put(results.lengths[l], "perplexity_sliding", cell.perplexity);
        continue;
      }
      put(results.lengths[l], "perplexity", cell.perplexity);
      put(results.lengths[l], "perplexity_last_half", cell.last_half);
      put(results.lengths[l], "perplexity_band", cell.band);
    }
    if (row.divergence.n > 0) put(results.reference_length, "kl_divergence", row.divergence);
  }
  ordered_json& comparisons = json["comparisons"] = ordered_json::array();
  for (const Comparison& c : results.comparisons) {
    const Estimate percent = c.difference.percent();
    comparisons.push_back({{"length", c.length},
                           {"a", c.a},
                           {"b", c.b},
                           {"percent", json_or_null(percent.value)},
                           {"stderr", json_or_null(percent.error)},
                           {"n", percent.n},
                           {"p", json_or_null(c.difference.p)},
                           {"p_holm", json_or_null(c.corrected_p)}});
  }
  ordered_json& verdicts = json["verdicts"] = ordered_json::array();
  for (const Verdict& v : results.verdicts) {
    const Estimate cost = v.cost.percent();
    verdicts.push_back({{"method", v.method},
                        {"good_to", v.judged ? ordered_json(v.good_to) : ordered_json()},
                        {"reason", v.reason},
                        {"short_cost_percent", json_or_null(cost.value)},
                        {"short_cost_stderr", json_or_null(cost.error)},
                        {"short_cost_length", results.reference_length}});
  }
  ordered_json& too_short = json["too_short"] = ordered_json::array();
  for (std::size_t l = 0; l < results.lengths.size(); ++l) {
    if (results.too_short[l].empty()) continue;
    too_short.push_back({{"length", results.lengths[l]}, {"documents", results.too_short[l]}});
  }
  json["failures"] = results.failures;
  return json;
}

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
    return {document->second, method->second,
            unit.contains("window") ? whole<std::int64_t>(unit.at("window")) : 0};
  };
}

TaskResults task_results(const PerplexityResults& r) {
  constexpr std::size_t kFailuresNamed = 20;
  TaskResults results;
  results.json = to_json(r);
  results.text = [r](bool) { return to_text(r); };
  // Documents that are too short for every length have no unit; a sliding window has one per
  // length.
  std::size_t used = 0;
  for (std::size_t l = 0; l < (r.stride > 0 ? r.lengths.size() : 1); ++l) {
    used += r.documents.size() - r.too_short[l].size();
  }
  results.units = used * r.rows.size();
  for (std::size_t l = 0; l < r.lengths.size(); ++l) {
    if (r.too_short[l].empty()) continue;
    results.notes.push_back(cat(r.too_short[l].size(), " of ", r.documents.size(),
                                " documents are shorter than ", length_text(r.lengths[l]),
                                " and are not used there"));
  }
  for (std::size_t i = 0; i < r.failures.size() && i < kFailuresNamed; ++i) {
    results.notes.push_back("Failed: " + r.failures[i]);
  }
  if (r.failures.size() > kFailuresNamed) {
    results.notes.push_back(cat(r.failures.size() - kFailuresNamed, " more failed"));
  }
  results.details = r;
  return results;
}

Task perplexity_task() {
  const char* lower = "Lower is better. The band is one standard error over documents.";
  Task task;
  task.name = kPerplexity;
  task.section = "Perplexity against length";
  task.metrics = {
      {"perplexity", "Perplexity of the first N tokens", "perplexity", lower, false, true},
      {"perplexity_band", "Bands: only the tokens between one length and the next", "perplexity",
       "A mean over all tokens hides a collapse at the end; a band does not.", false, true},
      {"perplexity_last_half", "The last half of N tokens", "perplexity", "", false, true, false},
      {"perplexity_sliding", "Perplexity of sliding windows of N tokens", "perplexity", lower,
       false, true},
      {"kl_divergence", "Divergence from the untouched model", "KL divergence, nats",
       "Inside the window, where the untouched model is the reference.", false, true, false}};
  task.places = perplexity_places;
  task.results = [](const ordered_json& run, const std::vector<ordered_json>& units) {
    return task_results(perplexity_results(run, units));
  };
  return task;
}

}  // namespace mrrope::eval
