// SPDX-License-Identifier: Apache-2.0
// The numbers that the MrRoPE paper prints (data/paper.json), with a user's own beside them.
// Nothing is judged: every difference of setting that a run records is named, and so is what it
// does not record.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/page/html_page.h"
#include "report/record.h"

namespace mrrope::report {

const nlohmann::ordered_json& paper();

// One of its tables; nullptr if there is none with this id.
const nlohmann::ordered_json* paper_table(const std::string& id);

// One table of the paper with what the runs measured under it. The last column says in what a run
// differs: model, window, base, scale, parameters, data, precision, length, tasks, samples.
DataTable compared_with_table(const nlohmann::ordered_json& table,
                              const std::vector<const RunRecord*>& records);

// All tables of the models of these runs. Empty if the paper has none of these models.
std::vector<DataTable> compared_with_paper(const std::vector<RunRecord>& records);

}  // namespace mrrope::report
