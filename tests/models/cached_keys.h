// SPDX-License-Identifier: Apache-2.0
// The keys in the cache of a local model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "engine/llama/graph/inject.h"
#include "engine/llama/graph/keys.h"
#include "engine/llama/local_model.h"
#include "models/rotary_reference.h"
#include "mrrope/rotary.h"

namespace mrrope::test {

// One cached key as the rotation left it: read as float, the mixing for quantised keys undone.
inline std::vector<double> read_key(const engine::KeyCache& cache, std::int64_t cell) {
  const std::size_t width = std::size_t(cache.tensor->ne[0]);
  std::vector<std::uint8_t> raw(ggml_row_size(cache.tensor->type, cache.tensor->ne[0]));
  ggml_backend_tensor_get(cache.tensor, raw.data(), std::size_t(cell) * cache.tensor->nb[1],
                          raw.size());
  std::vector<float> row(width);
  if (cache.tensor->type == GGML_TYPE_F32) {
    std::memcpy(row.data(), raw.data(), raw.size());
  } else {
    ggml_get_type_traits(cache.tensor->type)->to_float(raw.data(), row.data(), cache.tensor->ne[0]);
  }
  std::vector<double> key(row.begin(), row.end());
  if (cache.mix.empty()) return key;
  const auto side = std::size_t(std::lround(std::sqrt(double(cache.mix.size()))));
  for (std::size_t block = 0; block < width; block += side) {
    for (std::size_t i = 0; i < side; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < side; ++j) {
        sum += double(cache.mix[i * side + j]) * double(row[block + j]);
      }
      key[block + i] = sum;
    }
  }
  return key;
}

using Keys = std::vector<std::vector<std::vector<double>>>;  // by cache, by position

inline Keys read_keys(const engine::LocalModel& model, std::size_t count) {
  Keys keys;
  for (const engine::KeyCache& cache : model.injector().key_caches()) {
    keys.emplace_back();
    // A single timeline fills cells in order.
    for (std::size_t cell = 0; cell < count; ++cell) {
      keys.back().push_back(read_key(cache, std::int64_t(cell)));
    }
  }
  return keys;
}

// The largest error of a key element over the largest element, of keys that must be `before` turned
// from plan to plan. position: at which a key is turned; its own unless given.
inline double turn_error(
    const engine::LocalModel& model, const Keys& before, const Keys& after, const Plan& from,
    const Plan& to,
    const std::function<double(std::size_t)>& position = [](std::size_t p) { return double(p); }) {
  double worst = 0;
  double largest = 0;
  const engine::Rotation& first =
      model.injector().rotations()[model.injector().key_caches()[0].rotation];
  const auto row = std::size_t(first.row);
  for (std::size_t c = 0; c < before.size(); ++c) {
    for (std::size_t p = 0; p < before[c].size(); ++p) {
      std::vector<double> expected = before[c][p];
      for (std::size_t head = 0; head + row <= expected.size(); head += row) {
        turn_reference(from, to, position(p), std::span(expected).subspan(head, row));
      }
      // turn_reference multiplies by the ratio of temperatures, which stay with the queries here.
      const double ratio = to.attention_scale() / from.attention_scale();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const bool rotated = i % row < std::size_t(first.rotary_dim);
        double e = rotated ? expected[i] / ratio : expected[i];
        // M-RoPE pairs halves.
        if (rotated && !first.fixed_pairs.empty() &&
            first.fixed_pairs[i % row % first.fixed_pairs.size()]) {
          e = before[c][p][i];
        }
        worst = std::max(worst, std::abs(after[c][p][i] - e));
        largest = std::max(largest, std::abs(e));
      }
    }
  }
  return worst / largest;
}

}  // namespace mrrope::test
