// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"

#include "models/rotary_reference.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

TEST(Capture, KnowsQueriesAndKeysByTheirNames) {
  EXPECT_EQ(operand_of("Qcur-3").layer, 3);
  EXPECT_TRUE(operand_of("Qcur-3").query);
  EXPECT_EQ(operand_of("k_pe-12").layer, 12);
  EXPECT_FALSE(operand_of("k_pe-12").query);
  for (const char* other : {"", "Qcur", "Vcur-3", "ffn_out-1"}) {
    EXPECT_EQ(operand_of(other).layer, -1) << other;
  }
}

// In layer 0 a vector before rotation depends on its token alone: turned back it is the same at
// every place.
TEST(Capture, ReadsVectorsAfterTheRotation) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  LocalOptions options;
  options.threads = 2;
  std::string text;
  for (int i = 0; i < 40; ++i) text += " theorem theorem theorem";
  PairReader reader(model, options, first_tokens(*open_vocabulary(model), text, 64), {0});
  const Plan none = make_plan(model.geometry, {});
  std::vector<PairPlace> places;
  for (std::int64_t t = 20; t < 60; ++t) places.push_back({0, 0, t, t - 1});
  std::vector<std::vector<double>> before;
  double largest = 0;
  for (const RotatedPair& pair : reader.read(none, places, 64)) {
    std::vector<double>& x = before.emplace_back(pair.query.begin(), pair.query.end());
    rotate_reference(none, -double(20 + before.size() - 1), std::span<double>(x));
    for (const double value : x) largest = std::max(largest, std::abs(value));
  }
  EXPECT_GT(largest, 0);
  // Three words repeat, whatever tokens they are: look 3 periods of up to 8 tokens further on.
  int same = 0;
  for (std::size_t period = 1; period <= 8 && same == 0; ++period) {
    double worst = 0;
    for (std::size_t t = 0; t + period < before.size(); ++t) {
      for (std::size_t i = 0; i < before[t].size(); ++i) {
        worst = std::max(worst, std::abs(before[t][i] - before[t + period][i]));
      }
    }
    if (worst < 1e-4 * largest) ++same;
  }
  EXPECT_EQ(same, 1);
}

// The tiny model has four heads of queries, and two of keys: each is read with the key that it
// sees.
TEST(Capture, HeadsShareKeys) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  PairReader reader(model, {}, first_tokens(*open_vocabulary(model), "One two three four", 4), {1});
  ASSERT_EQ(reader.layers().front().heads, 4);
  const std::vector<RotatedPair> pairs = reader.read(
      make_plan(model.geometry, {}),
      std::vector<PairPlace>{{1, 0, 3, 2}, {1, 1, 3, 2}, {1, 2, 3, 2}, {1, 3, 3, 2}}, 4);
  EXPECT_EQ(pairs[0].key, pairs[1].key);
  EXPECT_NE(pairs[1].key, pairs[2].key);
  EXPECT_EQ(pairs[2].key, pairs[3].key);
  EXPECT_NE(pairs[0].query, pairs[1].query);
}

}  // namespace
}  // namespace mrrope::engine
