// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "eval/results/result_table.h"

namespace mrrope::test {

// The row of methods[m] at lengths[l]; an empty one if there is none.
inline eval::ResultRow row_at(const eval::ResultTable& table, std::size_t m, std::size_t l,
                              const std::string& metric, std::optional<double> depth = {}) {
  const eval::ResultRow* row =
      table.find(table.methods.at(m).method, table.lengths.at(l), metric, depth);
  return row != nullptr ? *row : eval::ResultRow{};
}

}  // namespace mrrope::test
