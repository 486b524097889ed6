// SPDX-License-Identifier: Apache-2.0
#include "eval/run/result_formats.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/run/task.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

constexpr std::array kColumns = {"task",  "method", "plan",  "scale",  "length",
                                 "depth", "metric", "value", "stderr", "n"};

// Names may come from file names, which need not be UTF-8.
std::string csv_field(const ordered_json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

bool higher_is_better(const std::string& task_name, const std::string& metric) {
  const Task* task = find_task(task_name);
  if (task == nullptr) return true;
  const auto known = std::find_if(task->metrics.begin(), task->metrics.end(),
                                  [&](const MetricInfo& m) { return m.name == metric; });
  return known == task->metrics.end() || known->higher_is_better;
}

// Seconds since 1970 of a time that run.json holds.
std::int64_t seconds_of(const std::string& utc) {
  std::tm parts{};
  return strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) != nullptr ? timegm(&parts) : 0;
}

std::string sanitized(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  }
  return name;
}

class Harness {
 public:
  Harness(const ordered_json& run, const ordered_json& results) {
    for (const char* part : {"results", "group_subtasks", "configs", "versions", "n-shot",
                             "higher_is_better", "n-samples"}) {
      json_[part] = ordered_json::object();
    }
    for (const ordered_json& row : results.at("results")) {
      std::size_t& most = most_[kind_of(row)];
      most = std::max(most, whole<std::size_t>(row.at("n")));
    }
    for (const ordered_json& row : results.at("results")) add(row);
    describe(run);
  }

  const ordered_json& json() const { return json_; }

 private:
  // Rows of one kind ask for the same number of samples; a text too short for a length lowers n.
  static std::string kind_of(const ordered_json& row) {
    return cat(row.at("task").get<std::string>(), row.contains("depth") ? "/depth" : "", "\n",
               row.at("metric").get<std::string>());
  }

  void add(const ordered_json& row) {
    const std::string group =
        cat(row.at("task").get<std::string>(), "/", row.at("method").get<std::string>());
    std::string name = cat(group, "/", json_text(row.at("length")));
    if (row.contains("depth")) name += cat("/depth_", json_text(row.at("depth")));
    const auto metric = row.at("metric").get<std::string>();
    const auto n = whole<std::size_t>(row.at("n"));

    ordered_json& task = json_["results"][name];
    if (task.is_null()) {
      task = {{"name", name},
              {"alias", name},
              {"sample_len", n},
              {"sample_count", ordered_json::object()}};
      json_["group_subtasks"][group].push_back(name);
      json_["configs"][name] = {{"task", name},
                                {"output_type", "mrrope"},
                                {"num_fewshot", 0},
                                {"metadata", metadata(row)},
                                {"metric_list", ordered_json::array()}};
      json_["versions"][name] = 1;
      json_["n-shot"][name] = 0;
      json_["n-samples"][name] = {{"original", most_.at(kind_of(row))}, {"effective", n}};
    }
    task[metric + ",none"] = row.at("value");
    task[metric + "_stderr,none"] = row.at("stderr").is_null() ? "N/A" : row.at("stderr");
    task["sample_count"][metric + ",none"] = n;
    const bool higher = higher_is_better(row.at("task").get<std::string>(), metric);
    json_["higher_is_better"][name][metric] = higher;
    json_["configs"][name]["metric_list"].push_back(
        {{"metric", metric}, {"higher_is_better", higher}});
  }

  static ordered_json metadata(const ordered_json& row) {
    ordered_json what = {{"version", 1}};
    for (const char* key : {"task", "method", "plan", "scale", "length", "depth"}) {
      if (row.contains(key)) what[key] = row[key];
    }
    return what;
  }

  void describe(const ordered_json& run) {
    const ordered_json& model = run.at("model");
    const auto name = model.at("name").get<std::string>();
    json_["config"] = {{"model", "mrrope"},
                       {"model_args",
                        {{"name", name},
                         {"architecture", model.at("architecture")},
                         {"train_length", model.at("train_length")},
                         {"engine", run.at("engine")},
                         {"mrrope", run.at("mrrope")}}},
                       {"model_sha", run.at("model_digest")},
                       {"batch_size", run.at("settings").value("batch", ordered_json())},
                       {"device", nullptr},
                       {"limit", nullptr},
                       {"bootstrap_iters", 0},  // errors are computed, not drawn
                       {"gen_kwargs", nullptr},
                       {"random_seed", run.at("seed")}};
    json_["model_source"] = "mrrope";
    json_["model_name"] = name;
    json_["model_name_sanitized"] = sanitized(name);
    if (!run.contains("measured")) return;
    json_["date"] = seconds_of(run["measured"].value("started", ""));
    json_["total_evaluation_time_seconds"] = json_text(run["measured"].at("seconds"));
  }

  ordered_json json_;
  std::map<std::string, std::size_t> most_;  // of n, by kind
};

}  // namespace

std::string results_csv(const ordered_json& results) {
  std::string text = csv_line({kColumns.begin(), kColumns.end()});
  try {
    for (const ordered_json& row : results.at("results")) {
      std::vector<std::string> cells;
      for (const char* column : kColumns) {
        const bool may_lack = std::string_view(column) == "depth" && !row.contains("depth");
        cells.push_back(may_lack ? "" : csv_field(row.at(column)));
      }
      text += csv_line(cells);
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::corrupt, cat("results lack something: ", e.what()),
                "run the evaluation again");
  }
  return text;
}

ordered_json lm_eval_results(const ordered_json& run, const ordered_json& results) {
  try {
    return Harness(run, results).json();
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::corrupt, cat("run.json or the results lack something: ", e.what()),
                "run the evaluation again");
  }
}

}  // namespace mrrope::eval
