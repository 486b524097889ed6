// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "eval/results/result_table.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

ordered_json row_json(const ResultTable& table, const ResultRow& row) {
  const MethodRow* method = table.find_method(row.method);
  ordered_json entry = {{"task", row.task},
                        {"method", row.method},
                        {"plan", method != nullptr ? method->plan : ""},
                        {"scale", json_or_null(method != nullptr ? method->scale : std::nan(""))},
                        {"length", row.length}};
  if (row.depth) entry["depth"] = json_or_null(*row.depth);
  entry["metric"] = row.metric;
  entry["value"] = json_or_null(row.estimate.value);
  entry["stderr"] = json_or_null(row.estimate.error);
  entry["n"] = row.estimate.n;
  return entry;
}

bool higher_is_better(const ResultRow& row) {
  const Task* task = find_task(row.task);
  if (task == nullptr) return true;
  const auto known = std::find_if(task->metrics.begin(), task->metrics.end(),
                                  [&](const MetricInfo& m) { return m.name == row.metric; });
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

void describe_run(const ordered_json& run, ordered_json& json) {
  const ordered_json& model = run.at("model");
  const auto name = model.at("name").get<std::string>();
  json["config"] = {{"model", "mrrope"},
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
  json["model_source"] = "mrrope";
  json["model_name"] = name;
  json["model_name_sanitized"] = sanitized(name);
  if (!run.contains("measured")) return;
  json["date"] = seconds_of(run["measured"].value("started", ""));
  json["total_evaluation_time_seconds"] = json_text(run["measured"].at("seconds"));
}

}  // namespace

ordered_json to_json(const ResultTable& table) {
  ordered_json json;
  ordered_json& rows = json["results"] = ordered_json::array();
  for (const ResultRow& row : table.rows) rows.push_back(row_json(table, row));
  ordered_json& comparisons = json["comparisons"] = ordered_json::array();
  for (const Comparison& c : table.comparisons) {
    ordered_json entry = {{"length", c.length}, {"a", c.a}, {"b", c.b}};
    const Estimate d = table.logarithmic ? c.difference.percent() : c.difference.mean_difference;
    if (!table.logarithmic) entry["metric"] = table.metric;
    entry[table.logarithmic ? "percent" : "difference"] = json_or_null(d.value);
    entry["stderr"] = json_or_null(d.error);
    entry["n"] = d.n;
    if (table.logarithmic) entry["p"] = json_or_null(c.difference.p);
    entry["p_holm"] = json_or_null(c.corrected_p);
    comparisons.push_back(std::move(entry));
  }
  for (const Verdict& v : table.verdicts) {
    const Estimate cost = v.cost.percent();
    json["verdicts"].push_back({{"method", v.method},
                                {"good_to", v.judged ? ordered_json(v.good_to) : ordered_json()},
                                {"reason", v.reason},
                                {"short_cost_percent", json_or_null(cost.value)},
                                {"short_cost_stderr", json_or_null(cost.error)},
                                {"short_cost_length", table.reference_length()}});
  }
  json.update(table.more);
  if (table.failed > 0) json["failed"] = table.failed;
  return json;
}

ResultTable table_from_json(const ordered_json& results) {
  const auto list = results.find("results");
  if (list == results.end() || !list->is_array()) {
    throw Error(ErrorKind::corrupt, "results.json has no list of results",
                "run the evaluation again");
  }
  ResultTable table;
  for (const ordered_json& entry : *list) {
    if (!entry.is_object()) {
      throw Error(ErrorKind::corrupt, "a row of results.json is not an object",
                  "run the evaluation again");
    }
    const auto text = [&](const char* key) {
      return entry.contains(key) && entry[key].is_string() ? entry[key].get<std::string>() : "";
    };
    const auto number = [&](const char* key) {
      return entry.contains(key) && entry[key].is_number() ? entry[key].get<double>()
                                                           : std::nan("");
    };
    const auto count = [&](const char* key) {
      const double value = number(key);
      return value > 0 && value < 9e15 ? std::int64_t(value) : 0;
    };
    ResultRow row{text("task"), text("method"), count("length"), {}, text("metric")};
    if (entry.contains("depth")) row.depth = number("depth");
    row.estimate = {number("value"), number("stderr"), std::size_t(count("n"))};
    if (table.find_method(row.method) == nullptr) {
      table.methods.push_back({row.method, text("plan"), number("scale")});
    }
    if (std::find(table.tasks.begin(), table.tasks.end(), row.task) == table.tasks.end()) {
      table.tasks.push_back(row.task);
    }
    if (table.metric.empty()) table.metric = row.metric;
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string results_csv(const ResultTable& table) {
  const std::vector<std::string> columns = {"task",  "method", "plan",  "scale",  "length",
                                            "depth", "metric", "value", "stderr", "n"};
  std::string text = csv_line(columns);
  for (const ResultRow& row : table.rows) {
    const ordered_json entry = row_json(table, row);
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      const ordered_json value = entry.value(column, ordered_json());
      // Names may come from file names, which need not be UTF-8.
      cells.push_back(value.is_null()     ? ""
                      : value.is_string() ? value.get<std::string>()
                                          : json_text(value));
    }
    text += csv_line(cells);
  }
  return text;
}

ordered_json lm_eval_results(const ordered_json& run, const ResultTable& table) {
  ordered_json json;
  for (const char* part : {"results", "group_subtasks", "configs", "versions", "n-shot",
                           "higher_is_better", "n-samples"}) {
    json[part] = ordered_json::object();
  }
  // Rows of one kind ask for the same number of samples; a text too short for a length lowers n.
  std::map<std::tuple<std::string, bool, std::string>, std::size_t> asked;
  const auto kind_of = [](const ResultRow& row) {
    return std::tuple(row.task, row.depth.has_value(), row.metric);
  };
  for (const ResultRow& row : table.rows) {
    asked[kind_of(row)] = std::max(asked[kind_of(row)], row.estimate.n);
  }
  for (const ResultRow& row : table.rows) {
    const ordered_json entry = row_json(table, row);
    const std::string group = cat(row.task, "/", row.method);
    std::string name = cat(group, "/", row.length);
    if (row.depth) name += cat("/depth_", json_text(entry["depth"]));
    ordered_json& task = json["results"][name];
    if (task.is_null()) {
      task = {{"name", name},
              {"alias", name},
              {"sample_len", row.estimate.n},
              {"sample_count", ordered_json::object()}};
      json["group_subtasks"][group].push_back(name);
      ordered_json metadata = {{"version", 1}};
      for (const char* key : {"task", "method", "plan", "scale", "length", "depth"}) {
        if (entry.contains(key)) metadata[key] = entry[key];
      }
      json["configs"][name] = {{"task", name},
                               {"output_type", "mrrope"},
                               {"num_fewshot", 0},
                               {"metadata", metadata},
                               {"metric_list", ordered_json::array()}};
      json["versions"][name] = 1;
      json["n-shot"][name] = 0;
      json["n-samples"][name] = {{"original", asked[kind_of(row)]}, {"effective", row.estimate.n}};
    }
    task[row.metric + ",none"] = entry["value"];
    task[row.metric + "_stderr,none"] = entry["stderr"].is_null() ? "N/A" : entry["stderr"];
    task["sample_count"][row.metric + ",none"] = row.estimate.n;
    const bool higher = higher_is_better(row);
    json["higher_is_better"][name][row.metric] = higher;
    json["configs"][name]["metric_list"].push_back(
        {{"metric", row.metric}, {"higher_is_better", higher}});
  }
  read_recorded([&] { describe_run(run, json); });
  return json;
}

}  // namespace mrrope::eval
