// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle_results.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "eval/run/method_under_test.h"
#include "eval/score/rouge.h"
#include "eval/stats/verdict.h"
#include "mrrope/error.h"

namespace mrrope {

using nlohmann::ordered_json;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Scores of one method at one length, [depth * samples + sample]; NaN where there is none.
struct Scores {
  std::vector<double> rouge;
  std::vector<double> contains;
};

NeedleScore estimate(const Scores& scores, std::size_t begin, std::size_t end) {
  std::vector<double> rouge;
  std::vector<double> contains;
  for (std::size_t i = begin; i < end; ++i) {
    if (std::isnan(scores.rouge[i])) continue;
    rouge.push_back(scores.rouge[i]);
    contains.push_back(scores.contains[i]);
  }
  return {mean(rouge), mean(contains)};
}

class Collector {
 public:
  Collector(const ordered_json& run, NeedleResults& results) : results_(results) {
    if (run.at("task") != "needle") {
      throw Error(ErrorKind::corrupt, cat("this is no needle run but ", run.at("task").dump()),
                  "give the folder of mrrope eval needle");
    }
    const ordered_json& settings = run.at("settings");
    results.lengths = settings.at("lengths").get<std::vector<std::int64_t>>();
    results.depths = settings.at("depths").get<std::vector<double>>();
    results.samples = settings.at("samples").get<std::size_t>();
    results.form = settings.at("form").at("name").get<std::string>();
    results.window = run.at("model").at("train_length").get<std::int64_t>();
    results.haystacks = run.at("haystacks").size();
    const std::vector<double> none(results.depths.size() * results.samples, kNan);
    for (const ordered_json& method : run.at("methods")) {
      NeedleRow row;
      row.method = method.at("method").get<std::string>();
      row.plan = method.at("plan").get<std::string>();
      row.scale = scale_of(method);
      row.ties.resize(results.lengths.size());
      method_[row.method] = results.rows.size();
      results.rows.push_back(std::move(row));
      scores_.emplace_back(results.lengths.size(), Scores{none, none});
    }
  }

  void unit(const ordered_json& unit) {
    const auto m = method_.find(unit.value("method", ""));
    const std::size_t sample = unit.value("sample", results_.samples);
    if (unit.value("task", "") != "needle" || m == method_.end() || sample >= results_.samples) {
      throw Error(ErrorKind::corrupt, cat("a journal line is not of this run: ", unit.dump()),
                  "delete the line, or the folder");
    }
    // Asked for again by the next run: then the later line counts.
    if (unit.contains("no_answer")) {
      failed_.insert(cell_key(m->first, sample, unit));
      return;
    }
    results_.tokens += unit.at("tokens").get<std::int64_t>();
    results_.naive_tokens += unit.at("naive_tokens").get<std::int64_t>();
    for (const ordered_json& cell : unit.at("cells")) {
      failed_.erase(cell_key(m->first, sample, cell));
      const std::size_t l = index_of(results_.lengths, cell.at("length"), "length");
      const std::size_t d = index_of(results_.depths, cell.at("depth"), "depth");
      const auto answer = cell.at("answer").get<std::string>();
      const auto text = cell.at("text").get<std::string>();
      Scores& scores = scores_[m->second][l];
      const std::size_t at = d * results_.samples + sample;
      scores.rouge[at] = rouge1_recall(answer, text);
      scores.contains[at] = contains_answer(answer, text) ? 1 : 0;
      const ordered_json& gap = cell.at("gap");
      if (gap.is_number() && gap.get<double>() < kTie) ++results_.rows[m->second].ties[l];
      if (m->second == 0 && !cell.at("snapped").get<bool>()) ++results_.unsnapped;
    }
  }

  void finish() {
    results_.failed = failed_.size();
    for (std::size_t m = 0; m < results_.rows.size(); ++m) {
      NeedleRow& row = results_.rows[m];
      for (const Scores& scores : scores_[m]) {
        row.all.push_back(estimate(scores, 0, scores.rouge.size()));
        row.cells.emplace_back();
        for (std::size_t d = 0; d < results_.depths.size(); ++d) {
          const std::size_t begin = d * results_.samples;
          row.cells.back().push_back(estimate(scores, begin, begin + results_.samples));
        }
      }
    }
    for (std::size_t l = 0; l < results_.lengths.size(); ++l) compare(l);
  }

 private:
  static std::string cell_key(const std::string& method, std::size_t sample,
                              const ordered_json& cell) {
    return cat(method, "\n", sample, "\n", cell.at("length").dump(), "\n", cell.at("depth").dump());
  }

  template <typename T>
  static std::size_t index_of(const std::vector<T>& list, const ordered_json& value,
                              const char* what) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (value == list[i]) return i;
    }
    throw Error(
        ErrorKind::corrupt,
        cat("the journal speaks of ", what, " ", value.dump(), ", which is not one of this run"),
        "delete the line, or the folder");
  }

  void compare(std::size_t l) {
    const std::size_t first = results_.comparisons.size();
    std::vector<double> p;
    for (std::size_t a = 0; a < results_.rows.size(); ++a) {
      for (std::size_t b = a + 1; b < results_.rows.size(); ++b) {
        const PairedDifference difference =
            paired_where_both(scores_[a][l].contains, scores_[b][l].contains);
        p.push_back(difference.p);
        results_.comparisons.push_back({results_.lengths[l], results_.rows[a].method,
                                        results_.rows[b].method, difference.log_ratio, kNan});
      }
    }
    const std::vector<double> corrected = holm(p);
    for (std::size_t i = 0; i < corrected.size(); ++i) {
      results_.comparisons[first + i].corrected_p = corrected[i];
    }
  }

  NeedleResults& results_;
  std::map<std::string, std::size_t> method_;
  std::vector<std::vector<Scores>> scores_;  // [method][length]
  std::set<std::string> failed_;
};

}  // namespace

NeedleResults needle_results(const ordered_json& run, const std::vector<ordered_json>& units) {
  NeedleResults results;
  try {
    Collector collector(run, results);
    for (const ordered_json& unit : units) collector.unit(unit);
    collector.finish();
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::corrupt, cat("run.json or the journal lacks something: ", e.what()),
                "give another folder, or run the evaluation again");
  }
  return results;
}

ordered_json to_json(const NeedleResults& results) {
  ordered_json json;
  ordered_json& rows = json["results"] = ordered_json::array();
  ordered_json ties = ordered_json::array();
  for (const NeedleRow& row : results.rows) {
    for (std::size_t l = 0; l < results.lengths.size(); ++l) {
      const auto put = [&](const double* depth, const char* metric, const Estimate& e) {
        ordered_json entry = {{"task", "needle"},
                              {"method", row.method},
                              {"plan", row.plan},
                              {"scale", or_null(row.scale)},
                              {"length", results.lengths[l]}};
        if (depth != nullptr) entry["depth"] = *depth;
        entry["metric"] = metric;
        entry["value"] = or_null(e.value);
        entry["stderr"] = or_null(e.error);
        entry["n"] = e.n;
        rows.push_back(std::move(entry));
      };
      put(nullptr, "rouge1_recall", row.all[l].rouge);
      put(nullptr, "contains", row.all[l].contains);
      for (std::size_t d = 0; d < results.depths.size(); ++d) {
        put(&results.depths[d], "rouge1_recall", row.cells[l][d].rouge);
        put(&results.depths[d], "contains", row.cells[l][d].contains);
      }
      ties.push_back({{"method", row.method},
                      {"length", results.lengths[l]},
                      {"ties", row.ties[l]},
                      {"n", row.all[l].rouge.n}});
    }
  }
  ordered_json& comparisons = json["comparisons"] = ordered_json::array();
  for (const NeedleComparison& c : results.comparisons) {
    comparisons.push_back({{"length", c.length},
                           {"a", c.a},
                           {"b", c.b},
                           {"metric", "contains"},
                           {"difference", or_null(c.difference.value)},
                           {"stderr", or_null(c.difference.error)},
                           {"n", c.difference.n},
                           {"p_holm", or_null(c.corrected_p)}});
  }
  json["ties"] = ties;
  json["unsnapped"] = results.unsnapped;
  json["tokens"] = results.tokens;
  json["naive_tokens"] = results.naive_tokens;
  if (results.failed > 0) json["failed"] = results.failed;
  return json;
}

}  // namespace mrrope
