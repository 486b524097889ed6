// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <cctype>
#include <ctime>
#include <set>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "eval/results/result_table.h"

namespace mrrope::eval {

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
  const MetricInfo* known =
      task != nullptr ? find_by(task->metrics, &MetricInfo::name, row.metric) : nullptr;
  return known == nullptr || known->higher_is_better;
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
  const std::string name = model.at("name");
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

// Three digits after the point where they mean something.
std::string short_number(double value) {
  if (value >= 10000) return significant(value, 3);
  return fixed(value, value < 10 ? 3 : value < 100 ? 2 : 1);
}

// A value with its error, where that is known.
template <typename Text>
std::string plus_minus(const Estimate& e, Text text) {
  if (e.n == 0) return "-";
  return text(e.value) + (std::isfinite(e.error) ? " +-" + text(e.error) : "");
}

std::string estimate_cell(const ResultTable& table, const std::string& metric, const Estimate& e) {
  const bool score = !table.logarithmic && metric != kAnswerLoss;
  return score ? percent_score(e) : plus_minus(e, short_number);
}

// A difference with its sign: of logarithms in percent, of losses in nats, of scores in points.
std::string difference_text(const ResultTable& table, const PairedDifference& difference,
                            const std::string& metric = {}) {
  const bool loss = metric == kAnswerLoss;
  const bool percent = table.logarithmic && !loss;
  const Estimate e = percent ? difference.percent() : difference.mean_difference;
  const int digits = loss ? 3 : std::abs(e.value) < 100 ? 1 : 0;
  const auto text = [&](double value) { return fixed(value, digits); };
  return cat(e.value < 0 ? "" : "+", loss || percent ? plus_minus(e, text) : percent_score(e),
             loss      ? " nats"
             : percent ? " %"
                       : " points");
}

// A row along an axis: a key that no other value has, and its label.
using Labelled = std::pair<std::string, std::string>;
Labelled along(const ResultTable& table, const ResultRow& row, Axis axis) {
  if (axis == Axis::method) return {row.method, row.method};
  if (axis == Axis::length) return {cat(row.length), length_text(row.length)};
  if (axis == Axis::depth) return {significant(*row.depth, 17), significant(*row.depth, 3) + " %"};
  return {row.task, table.label(row.task)};
}

constexpr const char* name_of(Axis axis) {
  constexpr const char* kNames[] = {"task", "method", "length", "depth"};
  return kNames[int(axis)];
}

// From red (0) through yellow to green (1), in the 6 x 6 x 6 cube of the 256 colours; black on it.
std::string shade(double share, const std::string& text) {
  const int step = int(std::lround(10 * share));  // 0 .. 10
  const int red = std::min(5, 10 - step);
  const int green = std::min(5, step);
  return cat("\x1b[30;48;5;", 16 + 36 * red + 6 * green, "m", text, "\x1b[0m");
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

struct Grid {
  std::vector<Labelled> down, across;  // in the order of the rows
  std::map<std::pair<std::string, std::string>, Estimate> cells;
};

Grid grid_of(const ResultTable& table, const TextTable& part) {
  const bool by_depth = part.down == Axis::depth || part.across == Axis::depth;
  Grid grid;
  std::set<std::string> seen_down, seen_across;
  for (const ResultRow& row : table.rows) {
    if (row.metric != part.metric || row.depth.has_value() != by_depth) continue;
    if (part.length && row.length != *part.length) continue;
    if (!part.method.empty() && row.method != part.method) continue;
    if (part.down != Axis::task && row.task != table.task) continue;
    const Labelled down = along(table, row, part.down);
    const Labelled across = along(table, row, part.across);
    if (seen_down.insert(down.first).second) grid.down.push_back(down);
    if (seen_across.insert(across.first).second) grid.across.push_back(across);
    grid.cells[{down.first, across.first}] = row.estimate;
  }
  return grid;
}

// Percent, a cell per length and depth.
std::string heat_map(const Grid& grid, bool shaded) {
  constexpr std::size_t kFirst = 7;
  std::size_t width = 5;
  for (const auto& [key, label] : grid.across) width = std::max(width, label.size() + 2);
  std::string text = right("depth", kFirst);
  for (const auto& [key, label] : grid.across) text += right(label, width);
  text += "\n";
  for (const auto& [down, label] : grid.down) {
    text += right(label, kFirst);
    for (const auto& [across, unused] : grid.across) {
      const Estimate& e = grid.cells.at({down, across});
      const std::string cell = right(e.n == 0 ? "-" : fixed(100 * e.value, 0), width);
      text += shaded && e.n > 0 ? shade(e.value, cell) : cell;
    }
    text += "\n";
  }
  return text;
}

std::string comparison_text(const ResultTable& table) {
  std::vector<TextRow> rows;
  for (const Comparison& c : table.comparisons) {
    if (c.length != table.lengths.back() || c.difference.mean_difference.n < 2) continue;
    rows.push_back({cat("  ", c.a, " against ", c.b),
                    difference_text(table, c.difference, c.metric),
                    cat("p ", c.corrected_p < 0.0001 ? "< 0.0001" : fixed(c.corrected_p, 4)),
                    c.corrected_p < kSignificant ? "significant" : "not significant"});
  }
  if (rows.empty()) return {};
  return cat("\nDifferences at ", length_text(table.lengths.back()), " (t test paired over ",
             table.units, ", p corrected by Holm):\n", aligned(rows));
}

std::string verdict_line(const ResultTable& table, const MethodRow& method, const Verdict& v) {
  std::string line = "  " + v.method + ": ";
  if (!v.judged) {
    line += "no verdict, " + v.reason;
  } else if (v.good_to == 0) {
    line += cat("not good beyond the window: ", v.reason);
  } else if (v.to_the_end) {
    line += cat("good to ", length_text(v.good_to), ", the longest measured");
  } else {
    line += cat("good to ", length_text(v.good_to), "; ", v.reason);
  }
  if (v.cost.mean_difference.n > 0 && !method.untouched) {
    line += cat("; costs ", difference_text(table, v.cost), " at ",
                length_text(table.reference_length()));
    if (v.divergence.n > 0) line += cat(", KL ", significant(v.divergence.value, 3));
  }
  return line + "\n";
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
    if (!table.logarithmic) entry["metric"] = c.metric;
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
  throw_if(list == results.end() || !list->is_array(), ErrorKind::corrupt,
           "results.json has no list of results", "run the evaluation again");
  ResultTable table;
  for (const ordered_json& entry : *list) {
    throw_if(!entry.is_object(), ErrorKind::corrupt, "a row of results.json is not an object",
             "run the evaluation again");
    ResultRow row{.task = text_at(entry, "task"),
                  .method = text_at(entry, "method"),
                  .length = count_at(entry, "length"),
                  .metric = text_at(entry, "metric")};
    if (entry.contains("depth")) row.depth = value_at(entry, "depth");
    row.estimate = {value_at(entry, "value"), value_at(entry, "stderr"),
                    std::size_t(count_at(entry, "n"))};
    if (table.find_method(row.method) == nullptr) {
      table.methods.push_back({row.method, text_at(entry, "plan"), value_at(entry, "scale")});
    }
    if (!has(table.tasks, row.task)) table.tasks.push_back(row.task);
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

std::string percent_score(const Estimate& score) {
  return plus_minus(score, [](double value) { return fixed(100 * value, 1); });
}

std::string to_text(const ResultTable& table, const TextTable& part, bool shaded) {
  Grid grid = grid_of(table, part);
  if (part.down == Axis::depth) return part.heading + heat_map(grid, shaded);
  const bool counted = part.down == Axis::task;
  std::vector<TextRow> rows = {{name_of(part.down)}};
  for (const auto& [key, label] : grid.across) rows[0].push_back(label);
  if (counted) rows[0].push_back("n");
  for (const auto& [down, label] : grid.down) {
    TextRow line = {label};
    std::size_t n = 0;
    for (const auto& [across, unused] : grid.across) {
      const Estimate& e = grid.cells[{down, across}];
      line.push_back(estimate_cell(table, part.metric, e));
      n = std::max(n, e.n);
    }
    if (counted && n == 0) continue;
    if (counted) line.push_back(cat(n));
    rows.push_back(std::move(line));
  }
  return part.heading + aligned(rows);
}

std::string to_text(const ResultTable& table, bool shaded) {
  std::string text = table.heading;
  for (const TextTable& part : table.tables) text += to_text(table, part, shaded);
  text += table.summary + comparison_text(table);
  if (const std::string reason = table.reason_without_verdicts(); !reason.empty()) {
    text += cat("\nNo verdict: ", reason, "\n");
  } else if (!table.verdicts.empty()) {
    text += "\nVerdict:\n";
    for (std::size_t i = 0; i < table.verdicts.size(); ++i) {
      text += verdict_line(table, table.methods[i], table.verdicts[i]);
    }
  }
  if (const std::string note = zero_baseline_note(table); !note.empty()) {
    text += cat("\n", note, "\n");
  }
  return text + (table.remarks.empty() ? "" : "\n" + table.remarks);
}

}  // namespace mrrope::eval
