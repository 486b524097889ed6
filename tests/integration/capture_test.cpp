// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"

#include "support/test.h"

namespace mrrope::engine {
namespace {

const float* vector_at(const std::vector<float>& all, std::size_t token, int heads, int row) {
  return all.data() + token * std::size_t(heads) * std::size_t(row);
}

// In layer 0 a vector before rotation depends on its token alone: the same at every place.
TEST(Capture, CapturesVectorsBeforeTheRotation) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  LocalOptions options;
  options.threads = 2;
  std::string text;
  for (int i = 0; i < 40; ++i) text += " theorem theorem theorem";
  const Capture capture = capture_attention(model, options, text, 64, {0, 1});
  ASSERT_EQ(capture.layers.size(), 2u);
  const CapturedLayer& layer = capture.layers[0];
  EXPECT_EQ(layer.layer, 0);
  EXPECT_GE(layer.row, model.geometry.rotary_dim);
  // Three words repeat, whatever tokens they are: look 3 periods of up to 8 tokens further on.
  int same = 0;
  double largest = 0;
  for (std::size_t period = 1; period <= 8 && same == 0; ++period) {
    double worst = 0;
    for (std::size_t t = 20; t + period < 60; ++t) {
      const float* a = vector_at(layer.queries, t, layer.heads, layer.row);
      const float* b = vector_at(layer.queries, t + period, layer.heads, layer.row);
      for (int i = 0; i < layer.row; ++i) {
        worst = std::max(worst, double(std::abs(a[i] - b[i])));
        largest = std::max(largest, double(std::abs(a[i])));
      }
    }
    if (worst < 1e-4 * largest) ++same;
  }
  EXPECT_EQ(same, 1);
  EXPECT_GT(largest, 0);
}

TEST(Capture, RefusesMissingLayersAndTooFewTokens) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  LocalOptions options;
  options.threads = 2;
  EXPECT_ERROR(capture_attention(model, options, "too short", 512, {}), usage, "512");
  EXPECT_ERROR(capture_attention(model, options, std::string(5000, 'a'), 64, {99}), usage,
               "layer 99");
  EXPECT_ERROR(capture_attention(model, options, "a b c", 1, {}), usage, "1 tokens");
}

}  // namespace
}  // namespace mrrope::engine
