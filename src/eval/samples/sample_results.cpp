// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/sample_results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "eval/run/collect.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::size_t kCost = 20;  // a row here costs more than a number

struct Set {
  std::string task;
  std::int64_t length = 0;
  std::string scorer;
  std::size_t count = 0;
  std::size_t questions = 1;
};

// The set and the number of a sample in it. Only samples of the journal take memory: the counts in
// run.json are only a claim.
using SampleKey = std::pair<std::size_t, std::size_t>;

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

class ScoreTable {
 public:
  ScoreTable(const SampleRules& rules, const ordered_json& run, SampleResults& results)
      : rules_(rules), results_(results) {
    results.task = run.at("task").get<std::string>();
    const ordered_json& settings = run.at("settings");
    results.source = settings.value("source", "");
    group_ = whole<std::size_t>(settings.at("group"));
    results.window = whole<std::int64_t>(run.at("model").at("train_length"));
    if (group_ == 0 || run.at("sets").empty()) {
      throw Error(ErrorKind::corrupt, "run.json describes a run without samples",
                  "give another folder, or run the evaluation again");
    }
    std::set<std::string> seen;
    for (const ordered_json& entry : run.at("sets")) {
      Set set{entry.at("task").get<std::string>(), whole<std::int64_t>(entry.at("length")),
              entry.at("scorer").get<std::string>(), whole<std::size_t>(entry.at("samples"))};
      if (entry.contains("questions")) {
        set.questions = std::max<std::size_t>(1, whole<std::size_t>(entry["questions"]));
      }
      results.questions = std::max(results.questions, set.questions);
      results.prompts += set.count;
      results.units += set.count / group_ + (set.count % group_ > 0 ? 1 : 0);
      if (seen.insert(set.task).second) results.tasks.push_back(set.task);
      tasks_at_[set.length].insert(set.task);
      if (set.count > 0) sampled_.insert(set.task);
      sets_.push_back(std::move(set));
    }
    results.own_tasks = results.tasks.size();
    results.mean_of = sampled_.size();
    results.mean_row = results.task;
    if (results.mean_of < results.own_tasks) {
      results.mean_row += cat(" (mean of ", results.mean_of, " of ", results.own_tasks, " tasks)");
    }
    for (const auto& [length, tasks] : tasks_at_) results.lengths.push_back(length);
    for (const ordered_json& entry : run.at("methods")) {
      results.rows.push_back(read_method_row(entry));
    }
    scores_.resize(results.rows.size());
    results.units *= results.rows.size();
    check_grid({results.rows.size(), results.lengths.size(), results.tasks.size() + 1, kCost});
    check_grid({results.rows.size(), results.rows.size(), results.lengths.size()});
  }

  void unit(std::size_t method, const ordered_json& unit) {
    const std::size_t s = whole<std::size_t>(unit.at("set"));
    const std::size_t group = whole<std::size_t>(unit.at("group"));
    if (s >= sets_.size() || group > sets_[s].count / group_ ||
        group * group_ + unit.at("samples").size() > sets_[s].count) {
      foreign_line(unit);
    }
    results_.tokens += token_count(unit, "tokens");
    results_.naive_tokens += token_count(unit, "naive_tokens");
    std::size_t at = group * group_;
    for (const ordered_json& record : unit.at("samples")) sample(method, {s, at++}, record);
  }

  void finish() {
    find_metrics();
    std::set<std::string> tags;
    for (const auto& [key, list] : tags_) tags.insert(list.begin(), list.end());
    check_grid({results_.rows.size(), results_.lengths.size(), tags.size() + 1, kCost});
    for (std::size_t m = 0; m < results_.rows.size(); ++m) {
      std::map<std::string, Values> by_metric;
      for (const std::string& metric : results_.metrics) {
        by_metric[metric] = values_of(m, metric);
      }
      for (const std::int64_t length : results_.lengths) {
        for (const std::string& metric : results_.metrics) {
          method_scores(by_metric[metric], tags, results_.rows[m].method, length, metric);
        }
      }
    }
    results_.tasks.insert(results_.tasks.end(), tags.begin(), tags.end());
    if (results_.own_tasks > 1) results_.tasks.push_back(results_.mean_row);
    compare();
    if (rules_.summarize != nullptr) rules_.summarize(results_);
  }

 private:
  // Of one method and metric, by length and row.
  using Values = std::map<std::pair<std::int64_t, std::string>, std::vector<double>>;

  void sample(std::size_t method, const SampleKey& key, const ordered_json& record) {
    const std::string& scorer = sets_[key.first].scorer;
    scores_[method][key] = rules_.grade(scorer, record);
    if (record.contains("tags")) tags_[key] = record["tags"].get<std::vector<std::string>>();
    ++results_.answers;
    const auto text = record.at("text").get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) ++results_.empty;
    if (rules_.unanswered != nullptr && rules_.unanswered(scorer, text)) ++results_.unanswered;
    const ordered_json& gap = record.at("gap");
    if (gap.is_number() && gap.get<double>() < kTie) ++results_.ties;
    if (method == 0 && record.contains("truncated") &&
        whole<std::int64_t>(record["truncated"]) > 0) {
      ++results_.truncated;
    }
  }

  // Two scorers of one benchmark may name their main score differently; one name is used for all.
  void find_metrics() {
    if (!rules_.metric.empty()) {
      results_.metrics = {rules_.metric};
      return;
    }
    for (const auto& samples : scores_) {
      for (const auto& [key, scores] : samples) {
        for (const Score& score : scores) {
          auto& all = results_.metrics;
          if (std::find(all.begin(), all.end(), score.metric) == all.end()) {
            all.push_back(score.metric);
          }
        }
      }
    }
    if (results_.metrics.empty()) results_.metrics = {"score"};
  }

  double value(const std::vector<Score>& scores, const std::string& metric) const {
    if (scores.empty()) return kNan;
    if (metric == rules_.metric) return scores.front().value;
    for (const Score& score : scores) {
      if (score.metric == metric) return score.value;
    }
    return kNan;
  }

  // The mean over the questions about each text.
  std::map<SampleKey, double> by_text(std::size_t method, const std::string& metric) const {
    std::map<SampleKey, std::pair<double, std::size_t>> sums;
    for (const auto& [key, scores] : scores_[method]) {
      const double v = value(scores, metric);
      if (std::isnan(v)) continue;
      auto& [sum, n] = sums[{key.first, first_question(key)}];
      sum += v, ++n;
    }
    std::map<SampleKey, double> means;
    for (const auto& [key, sum] : sums) means[key] = sum.first / double(sum.second);
    return means;
  }

  std::size_t first_question(const SampleKey& key) const {
    return key.second - key.second % sets_[key.first].questions;
  }

  Values values_of(std::size_t method, const std::string& metric) const {
    Values values;
    for (const auto& [key, v] : by_text(method, metric)) {
      const Set& set = sets_[key.first];
      values[{set.length, set.task}].push_back(v);
      const auto tags = tags_.find(key);
      if (tags == tags_.end()) continue;
      const std::set<std::string> once(tags->second.begin(), tags->second.end());
      for (const std::string& tag : once) values[{set.length, tag}].push_back(v);
    }
    return values;
  }

  void method_scores(const Values& values, const std::set<std::string>& tags,
                     const std::string& method, std::int64_t length, const std::string& metric) {
    const auto score_of = [&](const std::string& row) {
      const auto list = values.find({length, row});
      return list != values.end() ? mean(list->second) : Estimate();
    };
    std::vector<Estimate> parts;
    for (std::size_t t = 0; t < results_.own_tasks; ++t) {
      const std::string& task = results_.tasks[t];
      if (tasks_at_.at(length).count(task) == 0) continue;
      const Estimate score = score_of(task);
      if (sampled_.count(task) > 0) parts.push_back(score);
      results_.scores.push_back({task, method, length, metric, score});
    }
    for (const std::string& tag : tags) {
      results_.scores.push_back({tag, method, length, metric, score_of(tag)});
    }
    if (results_.own_tasks > 1) {
      const bool whole = !parts.empty() && std::none_of(parts.begin(), parts.end(),
                                                        [](const Estimate& e) { return e.n == 0; });
      results_.scores.push_back(
          {results_.mean_row, method, length, metric, whole ? mean_of(parts) : Estimate()});
    }
  }

  void compare() {
    std::vector<std::string> methods;
    for (const MethodRow& row : results_.rows) methods.push_back(row.method);
    const auto column = [&](std::size_t m, std::size_t l) {
      std::map<SampleKey, double> values = by_text(m, results_.metrics.front());
      std::erase_if(values, [&](const auto& entry) {
        return sets_[entry.first.first].length != results_.lengths[l];
      });
      return values;
    };
    results_.comparisons = compare_methods(methods, results_.lengths,
                                           [&](std::size_t a, std::size_t b, std::size_t l) {
                                             return paired_where_both(column(a, l), column(b, l));
                                           });
  }

  const SampleRules& rules_;
  SampleResults& results_;
  std::size_t group_ = 1;
  std::vector<Set> sets_;
  std::map<std::int64_t, std::set<std::string>> tasks_at_;       // [length]
  std::set<std::string> sampled_;                                // tasks with a sample in this run
  std::vector<std::map<SampleKey, std::vector<Score>>> scores_;  // [method]
  std::map<SampleKey, std::vector<std::string>> tags_;
};

}  // namespace

const SampleScore* SampleResults::find(const std::string& row, const std::string& method,
                                       std::int64_t length, const std::string& metric) const {
  for (const SampleScore& s : scores) {
    if (s.task == row && s.method == method && s.length == length && s.metric == metric) return &s;
  }
  return nullptr;
}

SampleResults sample_results(const SampleRules& rules, const ordered_json& run,
                             const std::vector<ordered_json>& units) {
  SampleResults results;
  read_recorded([&] {
    ScoreTable table(rules, run, results);
    results.failed = collect(run, units, sample_places, [&](std::size_t method, const auto& unit) {
      table.unit(method, unit);
    });
    table.finish();
  });
  return results;
}

ordered_json to_json(const SampleResults& results) {
  ordered_json json;
  ordered_json& rows = json["results"] = ordered_json::array();
  for (const SampleScore& s : results.scores) {
    const auto row = std::find_if(results.rows.begin(), results.rows.end(),
                                  [&](const MethodRow& r) { return r.method == s.method; });
    rows.push_back(result_row(s.task, *row, s.length, s.metric, s.score));
  }
  json["comparisons"] = comparisons_json(results.comparisons, results.metrics.front());
  json.update(results.summary);
  json["source"] = results.source;
  json["prompts"] = results.prompts;
  if (results.questions > 1) json["questions_per_text"] = results.questions;
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

PlaceOf sample_places(const ordered_json& run) {
  const std::map<std::string, std::size_t> methods = method_indices(run);
  return [methods](const ordered_json& unit) -> UnitPlace {
    const auto method = methods.find(unit.at("method").get<std::string>());
    if (method == methods.end()) foreign_line(unit);
    return {whole<std::int64_t>(unit.at("set")), whole<std::int64_t>(unit.at("group")),
            std::int64_t(method->second)};
  };
}

TaskResults task_results(const SampleResults& r) {
  TaskResults results;
  results.json = to_json(r);
  results.text = [r](bool) { return to_text(r); };
  results.units = r.units;
  if (const std::string text = hopeless_text(r); !text.empty()) results.notes.push_back(text);
  results.details = r;
  return results;
}

Task sample_task(const std::string& name, const SampleRules& rules) {
  Task task;
  task.name = task.section = name;
  task.places = sample_places;
  task.results = [&rules](const ordered_json& run, const std::vector<ordered_json>& units) {
    return task_results(sample_results(rules, run, units));
  };
  return task;
}

}  // namespace mrrope::eval
