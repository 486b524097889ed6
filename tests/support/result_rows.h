// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "eval/results/result_table.h"
#include "eval/run/runner.h"

namespace mrrope::test {

// The row of methods[m] at lengths[l]; an empty one if there is none.
inline eval::ResultRow row_at(const eval::ResultTable& table, std::size_t m, std::size_t l,
                              const std::string& metric, std::optional<double> depth = {}) {
  const eval::ResultRow* row =
      table.find(table.methods.at(m).method, table.lengths.at(l), metric, depth);
  return row != nullptr ? *row : eval::ResultRow{};
}

// A static plan of this method for a model.
inline eval::MethodUnderTest method(const TimelineModel& model, const char* name, double scale = 1,
                                    std::int64_t longest = 1 << 15) {
  Extension e{.method = name, .scale = scale};
  return {name, make_ladder(make_plan(model.facts().geometry, e), longest)};
}

}  // namespace mrrope::test
