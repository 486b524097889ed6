// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/sample_results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/text.h"
#include "eval/run/method_under_test.h"
#include "eval/score/scorers.h"
#include "eval/stats/verdict.h"
#include "eval/tasks/needle/needle_results.h"
#include "eval/tasks/ruler/ruler.h"
#include "mrrope/error.h"

namespace mrrope {

using nlohmann::ordered_json;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Set {
  std::string task;
  std::int64_t length = 0;
  std::string scorer;
  std::size_t first = 0;  // of its samples among all
  std::size_t count = 0;
};

// The mean of the tasks' scores, each counted the same, with the error that follows from theirs.
Estimate mean_of(const std::vector<Estimate>& parts) {
  double sum = 0;
  double squares = 0;
  std::size_t n = 0;
  for (const Estimate& e : parts) {
    sum += e.value;
    squares += e.error * e.error;
    n += e.n;
  }
  const auto k = double(parts.size());
  return {sum / k, std::sqrt(squares) / k, n};
}

class Collector {
 public:
  Collector(const ordered_json& run, SampleResults& results) : results_(results) {
    results.task = run.at("task").get<std::string>();
    const ordered_json& settings = run.at("settings");
    results.source = settings.value("source", "");
    group_ = settings.at("group").get<std::size_t>();
    results.window = run.at("model").at("train_length").get<std::int64_t>();
    std::size_t samples = 0;
    for (const ordered_json& entry : run.at("sets")) {
      Set set{entry.at("task").get<std::string>(), entry.at("length").get<std::int64_t>(),
              entry.at("scorer").get<std::string>(), samples,
              entry.at("samples").get<std::size_t>()};
      samples += set.count;
      add_once(results.tasks, set.task);
      add_once(results.lengths, set.length);
      sets_.push_back(std::move(set));
    }
    std::sort(results.lengths.begin(), results.lengths.end());
    results.prompts = samples;
    for (const ordered_json& method : run.at("methods")) {
      const auto name = method.at("method").get<std::string>();
      results.methods.push_back(name);
      results.plans[name] = {method.at("plan").get<std::string>(), scale_of(method)};
      scores_[name].resize(samples);
    }
    tags_.resize(samples);
  }

  void unit(const ordered_json& unit) {
    const auto method = scores_.find(unit.value("method", ""));
    const std::size_t s = unit.value("set", sets_.size());
    const std::size_t group = unit.value("group", std::size_t(0));
    if (unit.value("task", "") != results_.task || method == scores_.end() || s >= sets_.size() ||
        group * group_ + (unit.contains("no_answer") ? 1 : unit.at("samples").size()) >
            sets_[s].count) {
      throw Error(ErrorKind::corrupt,
                  cat("a journal line is not of this run: ", unit.dump().substr(0, 200)),
                  "delete the line, or the folder");
    }
    // Asked for again by the next run: then the later line counts.
    const std::string key = cat(method->first, "\n", s, "\n", group);
    if (unit.contains("no_answer")) {
      failed_.insert(key);
      return;
    }
    failed_.erase(key);
    results_.tokens += unit.at("tokens").get<std::int64_t>();
    results_.naive_tokens += unit.at("naive_tokens").get<std::int64_t>();
    std::size_t at = sets_[s].first + group * group_;
    for (const ordered_json& record : unit.at("samples")) {
      method->second[at] = grade(sets_[s].scorer, record);
      if (record.contains("tags")) tags_[at] = record["tags"].get<std::vector<std::string>>();
      ++results_.answers;
      const auto text = record.at("text").get<std::string>();
      if (text.find_first_not_of(" \t\r\n") == std::string::npos) ++results_.empty;
      if (sets_[s].scorer == "longbench-v2" && longbench_letter(text) == 0) ++results_.unanswered;
      const ordered_json& gap = record.at("gap");
      if (gap.is_number() && gap.get<double>() < kTie) ++results_.ties;
      if (method->first == results_.methods.front() && record.value("truncated", 0) > 0) {
        ++results_.truncated;
      }
      ++at;
    }
  }

  void finish() {
    results_.failed = failed_.size();
    find_metrics();
    const std::vector<std::string> tasks = results_.tasks;
    for (const std::string& tag : all_tags()) results_.tasks.push_back(tag);
    for (const std::string& method : results_.methods) {
      for (const std::int64_t length : results_.lengths) {
        for (const std::string& metric : results_.metrics)
          method_scores(tasks, method, length, metric);
      }
    }
    if (tasks.size() > 1) results_.tasks.push_back(results_.task);
    for (const std::int64_t length : results_.lengths) compare(length);
    if (results_.task == "ruler") ruler_summary();
  }

 private:
  template <typename T>
  static void add_once(std::vector<T>& list, const T& value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  }

  // Two scorers of one benchmark may name their score differently; the first metric stands for
  // each sample's own first.
  void find_metrics() {
    for (const auto& [method, list] : scores_) {
      for (const std::vector<Score>& scores : list) {
        for (std::size_t i = 0; i < scores.size(); ++i) {
          if (i == 0 && results_.task == "ruler") continue;
          add_once(results_.metrics, scores[i].metric);
        }
      }
    }
    if (results_.task == "ruler") results_.metrics = {"string_match"};
    if (results_.metrics.empty()) results_.metrics = {"score"};
  }

  double value(const std::vector<Score>& scores, const std::string& metric) const {
    if (scores.empty()) return kNan;
    if (metric == "string_match") return scores.front().value;
    for (const Score& score : scores) {
      if (score.metric == metric) return score.value;
    }
    return kNan;
  }

  std::vector<std::string> all_tags() const {
    std::set<std::string> found;
    for (const auto& tags : tags_) found.insert(tags.begin(), tags.end());
    return {found.begin(), found.end()};
  }

  template <typename Keep>
  std::vector<double> values(const std::string& method, const std::string& metric,
                             const Keep& keep) const {
    std::vector<double> list;
    const auto& scores = scores_.at(method);
    for (const Set& set : sets_) {
      for (std::size_t i = set.first; i < set.first + set.count; ++i) {
        const double v = value(scores[i], metric);
        if (!std::isnan(v) && keep(set, i)) list.push_back(v);
      }
    }
    return list;
  }

  void method_scores(const std::vector<std::string>& tasks, const std::string& method,
                     std::int64_t length, const std::string& metric) {
    std::vector<Estimate> parts;
    for (const std::string& task : tasks) {
      if (std::none_of(sets_.begin(), sets_.end(),
                       [&](const Set& s) { return s.task == task && s.length == length; })) {
        continue;
      }
      const std::vector<double> list = values(method, metric, [&](const Set& s, std::size_t) {
        return s.task == task && s.length == length;
      });
      const Estimate score = mean(list);
      results_.scores.push_back({task, method, length, metric, score});
      parts.push_back(score);
    }
    for (const std::string& tag : all_tags()) {
      const std::vector<double> list = values(method, metric, [&](const Set& s, std::size_t i) {
        return s.length == length &&
               std::find(tags_[i].begin(), tags_[i].end(), tag) != tags_[i].end();
      });
      results_.scores.push_back({tag, method, length, metric, mean(list)});
    }
    if (tasks.size() > 1) {
      const bool whole =
          std::none_of(parts.begin(), parts.end(), [](const Estimate& e) { return e.n == 0; });
      results_.scores.push_back(
          {results_.task, method, length, metric, whole ? mean_of(parts) : Estimate()});
    }
  }

  void compare(std::int64_t length) {
    const std::size_t first = results_.comparisons.size();
    std::vector<double> p;
    const auto column = [&](const std::string& method) {
      std::vector<double> list;
      for (const Set& set : sets_) {
        for (std::size_t i = set.first; set.length == length && i < set.first + set.count; ++i) {
          list.push_back(value(scores_.at(method)[i], results_.metrics.front()));
        }
      }
      return list;
    };
    for (std::size_t a = 0; a < results_.methods.size(); ++a) {
      for (std::size_t b = a + 1; b < results_.methods.size(); ++b) {
        const PairedDifference difference =
            paired_where_both(column(results_.methods[a]), column(results_.methods[b]));
        p.push_back(difference.p);
        results_.comparisons.push_back(
            {length, results_.methods[a], results_.methods[b], difference.log_ratio, kNan});
      }
    }
    const std::vector<double> corrected = holm(p);
    for (std::size_t i = 0; i < corrected.size(); ++i) {
      results_.comparisons[first + i].corrected_p = corrected[i];
    }
  }

  void ruler_summary() {
    const std::string& row = results_.tasks.back();
    for (const std::string& method : results_.methods) {
      RulerSummary summary;
      summary.method = method;
      double sum = 0;
      double up = 0;
      double down = 0;
      const std::size_t k = results_.lengths.size();
      for (std::size_t i = 0; i < k; ++i) {
        const SampleScore* score =
            results_.find(row, method, results_.lengths[i], results_.metrics.front());
        const double v = score != nullptr ? score->score.value : kNan;
        if (v >= kRulerThreshold) summary.effective = results_.lengths[i];
        sum += v;
        up += v * double(i + 1);
        down += v * double(k - i);
      }
      const double weights = double(k) * double(k + 1) / 2;
      summary.average = sum / double(k);
      summary.weighted_increasing = up / weights;
      summary.weighted_decreasing = down / weights;
      results_.ruler.push_back(summary);
    }
  }

  SampleResults& results_;
  std::size_t group_ = 1;
  std::vector<Set> sets_;
  std::map<std::string, std::vector<std::vector<Score>>> scores_;  // [method][sample]
  std::vector<std::vector<std::string>> tags_;                     // [sample]
  std::set<std::string> failed_;
};

}  // namespace

const SampleScore* SampleResults::find(const std::string& row, const std::string& method,
                                       std::int64_t length, const std::string& metric) const {
  for (const SampleScore& s : scores) {
    if (s.task == row && s.method == method && s.length == length && s.metric == metric) return &s;
  }
  return nullptr;
}

SampleResults sample_results(const ordered_json& run, const std::vector<ordered_json>& units) {
  SampleResults results;
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

ordered_json to_json(const SampleResults& results) {
  ordered_json json;
  ordered_json& rows = json["results"] = ordered_json::array();
  for (const SampleScore& s : results.scores) {
    const auto& [plan, scale] = results.plans.at(s.method);
    rows.push_back({{"task", s.task},
                    {"method", s.method},
                    {"plan", plan},
                    {"scale", or_null(scale)},
                    {"length", s.length},
                    {"metric", s.metric},
                    {"value", or_null(s.score.value)},
                    {"stderr", or_null(s.score.error)},
                    {"n", s.score.n}});
  }
  ordered_json& comparisons = json["comparisons"] = ordered_json::array();
  for (const SampleComparison& c : results.comparisons) {
    comparisons.push_back({{"length", c.length},
                           {"a", c.a},
                           {"b", c.b},
                           {"metric", results.metrics.front()},
                           {"difference", or_null(c.difference.value)},
                           {"stderr", or_null(c.difference.error)},
                           {"n", c.difference.n},
                           {"p_holm", or_null(c.corrected_p)}});
  }
  if (!results.ruler.empty()) {
    ordered_json& list = json["ruler"] = ordered_json::array();
    for (const RulerSummary& r : results.ruler) {
      list.push_back({{"method", r.method},
                      {"effective_length", r.effective},
                      {"threshold", kRulerThreshold},
                      {"average", or_null(r.average)},
                      {"weighted_increasing", or_null(r.weighted_increasing)},
                      {"weighted_decreasing", or_null(r.weighted_decreasing)}});
    }
  }
  json["source"] = results.source;
  json["prompts"] = results.prompts;
  json["truncated"] = results.truncated;
  json["answers"] = results.answers;
  json["empty"] = results.empty;
  json["unanswered"] = results.unanswered;
  json["ties"] = results.ties;
  json["tokens"] = results.tokens;
  json["naive_tokens"] = results.naive_tokens;
  if (results.failed > 0) json["failed"] = results.failed;
  return json;
}

}  // namespace mrrope
