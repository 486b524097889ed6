// SPDX-License-Identifier: Apache-2.0
// The numbers that the MrRoPE paper prints (data/paper.json), and how a user's own compare.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/charts/data_table.h"
#include "report/record.h"

namespace mrrope::report {

const nlohmann::ordered_json& paper();

// One of its tables; nullptr if there is none with this id.
const nlohmann::ordered_json* paper_table(const std::string& id);

// What it prints in one column of a method's row, with a misprint marked.
std::string paper_cell(const nlohmann::ordered_json& table, const nlohmann::ordered_json& row,
                       std::size_t column);

// The task of a result that belongs in this column ("ruler", "infinitebench/passkey"); a column
// that is a number is a length.
std::string paper_task(const nlohmann::ordered_json& table, const nlohmann::ordered_json& column);

// One printed number. Absent if the paper prints a bound such as ">10". A misprint is corrected
// unless `as_printed`.
std::optional<double> paper_value(const std::string& table, const std::string& method,
                                  const nlohmann::ordered_json& column, bool as_printed = false);

// The paper's name of this model, by its name and window; empty for a model it does not have.
std::string paper_model(const RunRecord& record);

// The paper's tables for the models of these runs, each with the user's row under the paper's if
// task and columns match. Empty if the paper has none of these models.
std::vector<DataTable> compared_with_paper(const std::vector<RunRecord>& records);

}  // namespace mrrope::report
