// SPDX-License-Identifier: Apache-2.0
// A task of mrrope eval as one row: what a merged run, a report and other tools need to know about
// it, made from run.json and journal lines alone. How a task makes its units of work is in its
// folder under eval/tasks (runner.h runs them); eval/tasks/registry.cpp lists the rows. Nothing
// outside a task's folder compares its name.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mrrope::eval {

// Where a unit belongs among all units of its run: no two have the same place, and a run on a local
// engine writes its units in ascending order.
using UnitPlace = std::vector<std::int64_t>;

// The place of a journal line. May throw Error (corrupt) or an exception of the JSON library.
using PlaceOf = std::function<UnitPlace(const nlohmann::ordered_json& unit)>;
// Made once for a run from its run.json.
using MakePlaceOf = std::function<PlaceOf(const nlohmann::ordered_json& run)>;

// How a metric is shown.
struct MetricInfo {
  std::string name;
  std::string title;
  std::string axis;
  std::string note{};
  bool higher_is_better = true;
  bool logarithmic = false;  // its axis; such a chart is drawn for a single length, too
  bool charted = true;       // false: in tables only
};

struct ResultTable;  // eval/results/result_table.h

struct Task {
  std::string name;     // in run.json; rows of results.json name it, or a part of it: "ruler/vt"
  std::string section;  // heading of its part of a report
  std::vector<MetricInfo> metrics;
  MakePlaceOf places;
  // Throws Error (corrupt).
  std::function<ResultTable(const nlohmann::ordered_json& run,
                            const std::vector<nlohmann::ordered_json>& units)>
      results;
};

// The table, in the order of reports. Defined in eval/tasks/registry.cpp.
const std::vector<Task>& tasks();
// For tests and for programs with tasks of their own. Not while another thread uses the table.
void add_task(Task task);

// The task of a row or a run: "ruler" for "ruler/vt". Null where the table has none.
const Task* find_task(std::string_view name);
// The task of a run. Throws Error (corrupt).
const Task& task_of(const nlohmann::ordered_json& run);

// The places of journal lines. Throws Error (corrupt) on a line that is not of this run or lacks
// something, with the number of the line.
std::vector<UnitPlace> unit_places(const MakePlaceOf& places, const nlohmann::ordered_json& run,
                                   const std::vector<nlohmann::ordered_json>& units);

// Refuses a run whose results would not fit into memory: the counts in run.json are only a claim.
// Throws Error (corrupt) where the product is above 2 million.
void check_grid(std::initializer_list<std::size_t> counts);

// Lengths in run.json. Throws Error (corrupt) where they are not positive and ascending, or none.
std::vector<std::int64_t> recorded_lengths(const nlohmann::ordered_json& list);

// Throws Error (corrupt): a journal line that does not belong to its run.
[[noreturn]] void foreign_line(const nlohmann::ordered_json& line);

// A number of tokens in a unit of a journal. Throws as foreign_line() if it is negative or so large
// that sums could overflow.
std::int64_t token_count(const nlohmann::ordered_json& unit, const char* key);

// Calls action, and turns an exception of the JSON library into Error (corrupt).
void read_recorded(const std::function<void()>& action);

}  // namespace mrrope::eval
