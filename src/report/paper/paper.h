// SPDX-License-Identifier: Apache-2.0
// The numbers that the MrRoPE paper prints (data/paper.json), and how a user's own compare. Only
// numbers of the same model, window, method, scale, length, tasks and sample count are compared;
// others are shown with what differs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/charts/data_table.h"
#include "report/record.h"

namespace mrrope::report {

const nlohmann::ordered_json& paper();

// One of its tables, or one of its figures without printed numbers; nullptr if there is none with
// this id.
const nlohmann::ordered_json* paper_table(const std::string& id,
                                          const nlohmann::ordered_json& of = paper());

// What it prints in one column of a method's row, with a misprint marked.
std::string paper_cell(const nlohmann::ordered_json& table, const nlohmann::ordered_json& row,
                       std::size_t column);

// The task of a result that belongs in this column ("ruler", "infinitebench/passkey"); a column
// that is a number is a length.
std::string paper_task(const nlohmann::ordered_json& table, const nlohmann::ordered_json& column);

// One printed number. Absent if the paper prints a bound such as ">10". A misprint is corrected
// unless `as_printed`.
std::optional<double> paper_value(const nlohmann::ordered_json& table, const std::string& method,
                                  const nlohmann::ordered_json& column, bool as_printed = false);

// The paper's name of this model, by its name and window; empty for a model it does not have.
std::string paper_model(const RunRecord& record);

// In what a method of a run differs from a table or figure: model, window, base, scale, parameters,
// form of the needle; "scale 32 (paper: 16)". Empty: in nothing.
std::vector<std::string> setting_differences(const RunRecord& record,
                                             const nlohmann::ordered_json& table,
                                             const std::string& method);

// A run's number for a column of the paper, in the unit of results.json.
struct OwnCell {
  eval::Estimate value;
  std::vector<std::string> differences;  // of the setting, the length and the set of tasks
  std::string samples;                   // not empty: another number of them
};
std::optional<OwnCell> own_cell(const RunRecord& record, const nlohmann::ordered_json& table,
                                const std::string& method, const nlohmann::ordered_json& column);

// One table of the paper with what the runs measured under it: "yours" where everything is alike,
// otherwise "not alike" with the differences in the last column.
DataTable compared_with_table(const nlohmann::ordered_json& table,
                              const std::vector<const RunRecord*>& records);

// All tables of the models of these runs. Empty if the paper has none of these models.
std::vector<DataTable> compared_with_paper(const std::vector<RunRecord>& records);

}  // namespace mrrope::report
