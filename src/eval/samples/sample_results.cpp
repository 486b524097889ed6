// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/samples/sample.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

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
    if (e.n == 0) return {};
    sum += e.value;
    squares += e.error * e.error;
    n += e.n;
  }
  const auto k = double(parts.size());
  return parts.empty() ? Estimate() : Estimate{sum / k, std::sqrt(squares) / k, n};
}

class Scores {
 public:
  Scores(const ordered_json& run, ResultTable& table, const SampleRules& rules)
      : rules_(rules), table_(table) {
    const ordered_json& settings = run.at("settings");
    source_ = settings.value("source", "");
    group_ = whole<std::size_t>(settings.at("group"));
    if (group_ == 0 || run.at("sets").empty()) {
      throw Error(ErrorKind::corrupt, "run.json describes a run without samples",
                  "give another folder, or run the evaluation again");
    }
    table.tasks.clear();
    std::size_t units = 0;
    for (const ordered_json& entry : run.at("sets")) {
      Set set{entry.at("task").get<std::string>(), whole<std::int64_t>(entry.at("length")),
              entry.at("scorer").get<std::string>(), whole<std::size_t>(entry.at("samples"))};
      if (entry.contains("questions")) {
        set.questions = std::max<std::size_t>(1, whole<std::size_t>(entry["questions"]));
      }
      questions_ = std::max(questions_, set.questions);
      prompts_ += set.count;
      units += set.count / group_ + (set.count % group_ > 0 ? 1 : 0);
      if (labels_.insert(set.task).second) table.tasks.push_back(set.task);
      tasks_at_[set.length].insert(set.task);
      if (set.count > 0) sampled_.insert(set.task);
      sets_.push_back(std::move(set));
    }
    for (const auto& [length, tasks] : tasks_at_) table.lengths.push_back(length);
    table.units = questions_ > 1 ? "texts" : "samples";
    table.expected_units = units * table.methods.size();
    check_grid({table.methods.size(), table.lengths.size(), table.tasks.size() + 1, kCost});
    check_grid({table.methods.size(), table.methods.size(), table.lengths.size()});
  }

  void unit(std::size_t method, const ordered_json& unit) {
    const std::size_t s = whole<std::size_t>(unit.at("set"));
    const std::size_t group = whole<std::size_t>(unit.at("group"));
    if (s >= sets_.size() || group > sets_[s].count / group_ ||
        group * group_ + unit.at("samples").size() > sets_[s].count) {
      foreign_line(unit);
    }
    tokens_ += token_count(unit, "tokens");
    naive_tokens_ += token_count(unit, "naive_tokens");
    std::size_t at = group * group_;
    for (const ordered_json& record : unit.at("samples")) sample(method, {s, at++}, record);
  }

  void finish() {
    if (metrics_.empty()) metrics_ = {rules_.metric.empty() ? "score" : rules_.metric};
    table_.metric = metrics_.front();
    std::set<std::string> tags;
    for (const auto& [key, list] : tags_) tags.insert(list.begin(), list.end());
    check_grid({table_.methods.size(), table_.lengths.size(), tags.size() + 1, kCost});
    mean_row_ = table_.task;
    if (sampled_.size() < table_.tasks.size()) {
      mean_row_ += cat(" (mean of ", sampled_.size(), " of ", table_.tasks.size(), " tasks)");
    }
    for (std::size_t m = 0; m < table_.methods.size(); ++m) {
      std::map<std::string, Values> by_metric;
      for (const std::string& metric : metrics_) by_metric[metric] = values_of(m, metric);
      for (const std::int64_t length : table_.lengths) {
        for (const std::string& metric : metrics_) {
          add_rows(by_metric[metric], tags, table_.methods[m].method, length, metric);
        }
      }
    }
    describe(tags);
    if (rules_.summarize != nullptr) {
      rules_.summarize(table_, table_.tasks.size() > 1 ? mean_row_ : table_.tasks.front());
    }
    add_counts();
  }

 private:
  // Of one method and metric, by length and row.
  using Values = std::map<std::pair<std::int64_t, std::string>, UnitValues>;

  void sample(std::size_t method, const SampleKey& key, const ordered_json& record) {
    const std::string& scorer = sets_[key.first].scorer;
    for (const Score& score : rules_.grade(scorer, record)) {
      const std::string& metric = rules_.metric.empty() ? score.metric : rules_.metric;
      if (std::find(metrics_.begin(), metrics_.end(), metric) == metrics_.end()) {
        metrics_.push_back(metric);
      }
      scores_[{method, metric}][key] = score.value;
    }
    if (record.contains("tags")) tags_[key] = record["tags"].get<std::vector<std::string>>();
    ++answers_;
    const auto text = record.at("text").get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) ++empty_;
    if (rules_.unanswered != nullptr && rules_.unanswered(scorer, text)) ++unanswered_;
    const ordered_json& gap = record.at("gap");
    if (gap.is_number() && gap.get<double>() < kTie) ++ties_;
    if (method == 0 && record.contains("truncated") &&
        whole<std::int64_t>(record["truncated"]) > 0) {
      ++truncated_;
    }
  }

  // The mean over the questions about each text.
  Values values_of(std::size_t method, const std::string& metric) {
    std::map<SampleKey, std::pair<double, std::size_t>> sums;
    for (const auto& [key, value] : scores_[{method, metric}]) {
      auto& [sum, n] = sums[{key.first, key.second - key.second % sets_[key.first].questions}];
      sum += value, ++n;
    }
    Values values;
    for (const auto& [key, sum] : sums) {
      const double mean = sum.first / double(sum.second);
      const Set& set = sets_[key.first];
      values[{set.length, set.task}][key] = mean;
      const auto tags = tags_.find(key);
      if (tags == tags_.end()) continue;
      for (const std::string& tag : tags->second) values[{set.length, tag}][key] = mean;
    }
    return values;
  }

  void add_rows(const Values& values, const std::set<std::string>& tags, const std::string& method,
                std::int64_t length, const std::string& metric) {
    const auto add = [&](const std::string& task) {
      const auto units = values.find({length, task});
      return add_row(table_, task, method, length, metric,
                     units != values.end() ? units->second : UnitValues());
    };
    std::vector<Estimate> parts;
    for (const std::string& task : table_.tasks) {
      if (tasks_at_.at(length).count(task) == 0) continue;
      const Estimate score = add(task);
      if (sampled_.count(task) > 0) parts.push_back(score);
    }
    for (const std::string& tag : tags) add(tag);
    if (table_.tasks.size() > 1) {
      table_.rows.push_back({mean_row_, method, length, {}, metric, mean_of(parts)});
    }
  }

  void describe(const std::set<std::string>& tags) {
    labels_.insert(tags.begin(), tags.end());
    const std::string start = table_.task + "/";
    for (const std::string& task : labels_) {
      table_.labels[task] = task.starts_with(start) ? task.substr(start.size()) : task;
    }
    if (table_.tasks.size() > 1) {
      table_.labels[mean_row_] = sampled_.size() < table_.tasks.size()
                                     ? cat("mean of ", sampled_.size(), " of ", table_.tasks.size())
                                     : cat("mean of ", sampled_.size());
    }
    table_.heading =
        cat(table_.task, ", ", source_, " (window ", length_text(table_.window), ")\n");
    for (const std::int64_t length : table_.lengths) {
      for (const std::string& metric : metrics_) {
        table_.tables.push_back({cat("\nAt ", length_text(length), " (", length, " tokens), ",
                                     metric, " in percent:\n"),
                                 metric, Axis::task, Axis::method, length});
      }
    }
  }

  void add_counts() {
    ordered_json& more = table_.more;
    more["source"] = source_;
    more["prompts"] = prompts_;
    if (questions_ > 1) more["questions_per_text"] = questions_;
    more["truncated"] = truncated_;
    more["answers"] = answers_;
    more["empty"] = empty_;
    more["unanswered"] = unanswered_;
    more["ties"] = ties_;
    more["tokens"] = tokens_;
    more["naive_tokens"] = naive_tokens_;
    std::string& text = table_.remarks;
    if (truncated_ > 0) {
      text += cat("Cut in the middle to fit: ", truncated_, " of ", prompts_, " prompts.\n");
    }
    if (questions_ > 1) {
      text += cat("Questions about each text: ", questions_,
                  ". n counts texts, and errors are over texts.\n");
    }
    if (empty_ > 0) text += cat("Empty answers: ", empty_, " of ", answers_, ".\n");
    if (unanswered_ > 0) {
      text += cat("Answers that name no choice, counted as wrong: ", unanswered_, " of ", answers_,
                  ".\n");
    }
    text += tie_remark(ties_, answers_) + sharing_remark(tokens_, naive_tokens_);
  }

  const SampleRules& rules_;
  ResultTable& table_;
  std::string source_, mean_row_;
  std::size_t group_ = 1;
  std::vector<Set> sets_;
  std::set<std::string> labels_;                            // tasks, then tags as well
  std::map<std::int64_t, std::set<std::string>> tasks_at_;  // [length]
  std::set<std::string> sampled_;                           // tasks with a sample in this run
  std::vector<std::string> metrics_;
  std::map<std::pair<std::size_t, std::string>, std::map<SampleKey, double>> scores_;
  std::map<SampleKey, std::vector<std::string>> tags_;
  std::size_t answers_ = 0, empty_ = 0, unanswered_ = 0, ties_ = 0;
  std::size_t prompts_ = 0, truncated_ = 0;  // for one method
  std::size_t questions_ = 1;                // asked about one text
  std::int64_t tokens_ = 0, naive_tokens_ = 0;
};

// A unit's place: set, group, method.
PlaceOf sample_places(const ordered_json& run) {
  return [method_of = method_finder(run)](const ordered_json& unit) -> UnitPlace {
    return {whole<std::int64_t>(unit.at("set")), whole<std::int64_t>(unit.at("group")),
            std::int64_t(method_of(unit))};
  };
}

}  // namespace

void unknown_scorer(const std::string& name) {
  throw Error(ErrorKind::corrupt, cat("there is no scorer ", shown(name)),
              "this run was made by another version of mrrope");
}

ResultTable sample_results(const SampleRules& rules, const ordered_json& run,
                           const std::vector<ordered_json>& units) {
  return fill_table<Scores>(run, units, sample_places, rules);
}

Task sample_task(const std::string& name, const SampleRules& rules) {
  Task task;
  task.name = task.section = name;
  task.places = sample_places;
  task.results = [&rules](const ordered_json& run, const std::vector<ordered_json>& units) {
    return sample_results(rules, run, units);
  };
  return task;
}

}  // namespace mrrope::eval
