// SPDX-License-Identifier: Apache-2.0
#include "eval/results/result_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

constexpr double kFailed = 0.05;  // a score below this says nothing

}  // namespace

MethodRow read_method_row(const ordered_json& entry) {
  const ordered_json& scale = entry.at("scale");
  return {entry.at("method").get<std::string>(), entry.at("plan").get<std::string>(),
          scale.is_null() ? std::nan("") : scale.get<double>(), entry.value("untouched", false),
          entry.contains("numbers") && entry["numbers"].contains("rungs")};
}

const MethodRow* ResultTable::find_method(const std::string& method) const {
  const auto row = std::find_if(methods.begin(), methods.end(),
                                [&](const MethodRow& m) { return m.method == method; });
  return row != methods.end() ? &*row : nullptr;
}

const ResultRow* ResultTable::find(const std::string& method, std::int64_t length,
                                   const std::string& of_metric, std::optional<double> depth,
                                   const std::string& of_task) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ResultRow& r) {
    return r.method == method && r.length == length && r.metric == of_metric && r.depth == depth &&
           r.task == (of_task.empty() ? task : of_task);
  });
  return row != rows.end() ? &*row : nullptr;
}

std::int64_t ResultTable::reference_length() const {
  std::int64_t longest = 0;
  for (const std::int64_t n : lengths) {
    if (n <= window) longest = n;
  }
  return longest;
}

ResultTable begin_table(const ordered_json& run, std::string_view task) {
  ResultTable table;
  table.task = run.at("task").get<std::string>();
  if (!task.empty() && table.task != task) {
    throw Error(ErrorKind::corrupt, cat("run.json is not of a run of ", task),
                cat("give the folder of mrrope eval ", task));
  }
  table.tasks = {table.task};
  table.window = whole<std::int64_t>(run.at("model").at("train_length"));
  for (const ordered_json& entry : run.at("methods")) {
    table.methods.push_back(read_method_row(entry));
  }
  return table;
}

std::map<std::string, std::size_t> method_indices(const ordered_json& run) {
  std::map<std::string, std::size_t> methods;
  std::size_t index = 0;
  for (const ordered_json& entry : run.at("methods")) {
    methods.emplace(entry.at("method").get<std::string>(), index++);
  }
  return methods;
}

std::size_t collect(const ordered_json& run, const std::vector<ordered_json>& units,
                    const MakePlaceOf& places,
                    const std::function<void(std::size_t, const ordered_json&)>& use) {
  const std::map<std::string, std::size_t> methods = method_indices(run);
  const PlaceOf place_of = places(run);
  const auto task = run.at("task").get<std::string>();
  std::set<UnitPlace> unanswered;
  for (const ordered_json& unit : units) {
    const auto method = methods.find(unit.value("method", ""));
    if (unit.value("task", "") != task || method == methods.end()) foreign_line(unit);
    if (unit.contains("no_answer")) {
      unanswered.insert(place_of(unit));
      continue;
    }
    if (!unanswered.empty()) unanswered.erase(place_of(unit));
    use(method->second, unit);
  }
  return unanswered.size();
}

Estimate mean_of_units(const UnitValues& units) {
  std::vector<double> values;
  for (const auto& [unit, value] : units) values.push_back(value);
  return mean(values);
}

void add_row(ResultTable& table, ResultRow row) {
  row.estimate = mean_of_units(row.units);
  if (table.logarithmic) row.estimate = exponential(row.estimate);
  table.rows.push_back(std::move(row));
}

std::vector<Comparison> compare_methods(const ResultTable& table) {
  std::map<std::pair<std::int64_t, std::string>, UnitValues> measured;
  for (const ResultRow& row : table.rows) {
    if (row.metric != table.metric || row.depth) continue;
    measured[{row.length, row.method}].insert(row.units.begin(), row.units.end());
  }
  std::vector<Comparison> all;
  for (const std::int64_t length : table.lengths) {
    std::vector<UnitValues> units;
    for (const MethodRow& m : table.methods) units.push_back(measured[{length, m.method}]);
    const std::size_t first = all.size();
    std::vector<double> p;
    for (std::size_t a = 0; a < units.size(); ++a) {
      for (std::size_t b = a + 1; b < units.size(); ++b) {
        all.push_back({length, table.methods[a].method, table.methods[b].method,
                       paired_where_both(units[a], units[b]),
                       std::numeric_limits<double>::quiet_NaN()});
        p.push_back(all.back().difference.p);
      }
    }
    const std::vector<double> corrected = holm(p);
    for (std::size_t i = 0; i < corrected.size(); ++i) all[first + i].corrected_p = corrected[i];
  }
  return all;
}

std::string zero_baseline_note(const ResultTable& table) {
  if (table.logarithmic) return {};
  const auto baseline = std::find_if(table.methods.begin(), table.methods.end(),
                                     [](const MethodRow& m) { return m.untouched || m.grows; });
  if (baseline == table.methods.end()) return {};
  std::string names;
  for (const std::string& task : table.tasks) {
    double best = -1;
    for (const ResultRow& row : table.rows) {
      if (row.task == task && row.method == baseline->method && row.metric == table.metric &&
          !row.depth && row.length <= table.window && row.estimate.n > 0) {
        best = std::max(best, row.estimate.value);
      }
    }
    if (best < 0 || best >= kFailed) continue;
    const auto label = table.labels.find(task);
    names += cat(names.empty() ? "" : ", ", label != table.labels.end() ? label->second : task,
                 " (", fixed(100 * best, 0), " %)");
  }
  if (names.empty()) return {};
  return cat("Inside its window of ", length_text(table.window),
             " the unmodified model fails: ", names,
             ". Nothing can be learned beyond it from these tasks.");
}

std::string tie_remark(std::size_t ties, std::size_t answers) {
  if (ties == 0) return {};
  return cat("Near ties: in ", ties, " of ", answers, " answers the top two logits came within ",
             kTie, " of each other; other hardware may give another answer.\n");
}

std::string sharing_remark(std::int64_t tokens, std::int64_t naive_tokens) {
  if (naive_tokens == 0) return {};
  return cat("Shared prefixes: ", tokens, " tokens computed of ", naive_tokens, ", ",
             fixed(100 * double(naive_tokens - tokens) / double(naive_tokens), 0), " % saved.\n");
}

}  // namespace mrrope::eval
