// SPDX-License-Identifier: Apache-2.0
// Queries and keys that an engine reads from a model, for figures of its attention.
#pragma once

#include <cstdint>
#include <vector>

namespace mrrope {

// Queries and keys of a model before they are rotated.
struct CapturedLayer {
  int layer = 0;
  int heads = 0;
  int kv_heads = 0;
  int row = 0;                 // numbers per head vector; the first rotary_dim are rotated
  std::vector<float> queries;  // [token][head][row]
  std::vector<float> keys;     // [token][kv_head][row]
};

struct Capture {
  std::int64_t tokens = 0;
  std::vector<CapturedLayer> layers;
};

// A query and an earlier key of one layer, by their positions; head is the query's.
struct PairPlace {
  int layer = 0;
  int head = 0;
  std::int64_t query = 0;
  std::int64_t key = 0;
};
// Their head vectors after rotation, as the model computes them.
struct RotatedPair {
  std::vector<float> query, key;
};
struct LayerHeads {
  int layer = 0;
  int heads = 0;  // of queries
};

}  // namespace mrrope
