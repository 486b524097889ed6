// SPDX-License-Identifier: Apache-2.0
// What tests of timelines share: token streams without meaning, the logits after every token, and
// how far two rows are apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "model/timeline_model.h"

namespace mrrope::test {

using Rows = std::vector<std::vector<float>>;

inline std::vector<Token> words(std::size_t count, int vocabulary = 128) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<Token>((i * i * 7 + i / 3 * 11) % std::size_t(vocabulary)));
  }
  return tokens;
}

inline Rows observe(Timeline& timeline, std::span<const Token> tokens) {
  std::vector<std::size_t> wanted(tokens.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  Rows rows;
  timeline.append(tokens, wanted, [&](std::size_t index, std::span<const float> row) {
    EXPECT_EQ(index, rows.size());
    rows.emplace_back(row.begin(), row.end());
  });
  return rows;
}

template <typename A, typename B>
double largest_difference(const A& a, const B& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(double(a[i]) - double(b[i]));
    if (std::isnan(difference)) return difference;
    most = std::max(most, difference);
  }
  return most;
}

// The same of rows, with those of a whole text from this place on.
template <typename A, typename B>
double largest_difference(const std::vector<std::vector<A>>& rows,
                          const std::vector<std::vector<B>>& whole, std::size_t first = 0) {
  EXPECT_LE(first + rows.size(), whole.size());
  double most = 0;
  for (std::size_t i = 0; i < rows.size() && first + i < whole.size(); ++i) {
    const double difference = largest_difference(rows[i], whole[first + i]);
    if (std::isnan(difference)) return difference;
    most = std::max(most, difference);
  }
  return most;
}

// The largest difference of any two numbers, in standard deviations of all of `reference`.
inline double deviations_apart(const Rows& rows, const Rows& reference) {
  EXPECT_EQ(rows.size(), reference.size());
  double count = 0;
  double sum = 0;
  double squares = 0;
  double largest = 0;
  for (std::size_t r = 0; r < std::min(rows.size(), reference.size()); ++r) {
    for (std::size_t i = 0; i < reference[r].size(); ++i) {
      const double x = reference[r][i];
      ++count, sum += x, squares += x * x;
      const double difference = std::abs(rows[r].at(i) - x);
      if (std::isnan(difference)) return difference;
      largest = std::max(largest, difference);
    }
  }
  return largest / std::sqrt(squares / count - sum * sum / count / count);
}

}  // namespace mrrope::test
