// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"
#include "mrrope/rotary.h"
#include "support/rotary_reference.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr std::int64_t kTokens = 150;

std::string some_text() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += " lemma " + std::to_string(i * i) + " holds by induction.";
  return text;
}

LocalOptions small_steps() {
  LocalOptions options;
  options.threads = 2;
  options.ubatch = 64;  // 150 tokens are two whole ubatches and a rest of 22
  return options;
}

Plan plan_of(const Model& model, const std::string& method, double scale) {
  return make_plan(model.geometry, {.method = method, .scale = scale});
}

double dot(const std::vector<double>& a, const std::vector<double>& b, int size) {
  return std::inner_product(a.begin(), a.begin() + size, b.begin(), 0.0);
}

// The score of all pairs of one place, from vectors before rotation.
double turned_score(const Capture& capture, const PairPlace& p, const Plan& plan,
                    std::size_t layer) {
  const CapturedLayer& l = capture.layers[layer];
  const auto rotated = [&](const std::vector<float>& all, int heads, std::int64_t position,
                           int head) {
    const float* first = all.data() + (position * heads + head) * l.row;
    std::vector<double> x(first, first + l.row);
    rotate_reference(plan, double(position), std::span<double>(x));
    return x;
  };
  return dot(rotated(l.queries, l.heads, p.query, p.head),
             rotated(l.keys, l.kv_heads, p.key, p.head / (l.heads / l.kv_heads)),
             plan.geometry().rotary_dim);
}

double rotated_score(const RotatedPair& pair, const Geometry& g) {
  return dot({pair.query.begin(), pair.query.end()}, {pair.key.begin(), pair.key.end()},
             g.rotary_dim);
}

std::vector<PairPlace> places_in(int layer, int heads, std::int64_t tokens) {
  std::vector<PairPlace> places;
  for (std::int64_t q = tokens - 1; q > 0; q = q * 5 / 7) {
    for (const std::int64_t k : {std::int64_t{0}, q / 3, q / 2, q - 1}) {
      places.push_back({layer, int((q + k) % heads), q, k});
    }
  }
  return places;
}

// Layer 0 sees the same vectors under every plan, so only the rotation may differ.
TEST(PairReader, RotatesAsThePlanSays) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  const LocalOptions options = small_steps();
  const std::string text = some_text();
  const Capture capture = capture_attention(model, options, text, kTokens, {0, 1});
  PairReader reader(model, options, text, kTokens, {0, 1});
  ASSERT_EQ(reader.layers().size(), 2u);
  EXPECT_EQ(reader.layers()[0].heads, capture.layers[0].heads);
  for (const char* method : {"none", "yarn", "regressive", "pro"}) {
    const Plan plan = plan_of(model, method, std::string(method) == "none" ? 1 : 8);
    const auto places = places_in(0, reader.layers()[0].heads, kTokens);
    const std::vector<RotatedPair> read = reader.read(plan, places, kTokens);
    ASSERT_EQ(read.size(), places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double expected = turned_score(capture, places[i], plan, 0);
      EXPECT_NEAR(rotated_score(read[i], model.geometry), expected, 1e-3 * (1 + std::abs(expected)))
          << method << " " << places[i].query << " " << places[i].key;
    }
  }
}

// In later layers the plan has changed what the model computes before them: turning the queries
// and keys of the model as shipped is not the same.
TEST(PairReader, IsOfTheModelAsItRuns) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  LocalOptions options = small_steps();
  options.ubatch = int(kTokens);  // as capture_attention() reads: the same sums in the same order
  const std::string text = some_text();
  const Capture capture = capture_attention(model, options, text, kTokens, {1});
  PairReader reader(model, options, text, kTokens, {1});
  const auto places = places_in(1, reader.layers()[0].heads, kTokens);
  const auto largest_gap = [&](const Plan& plan) {
    const std::vector<RotatedPair> read = reader.read(plan, places, kTokens);
    double gap = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double turned = turned_score(capture, places[i], plan, 0);
      gap = std::max(
          gap, std::abs(rotated_score(read[i], model.geometry) - turned) / (1 + std::abs(turned)));
    }
    return gap;
  };
  EXPECT_LT(largest_gap(plan_of(model, "none", 1)), 1e-3);
  EXPECT_GT(largest_gap(plan_of(model, "pi", 8)), 0.1);
}

TEST(PairReader, ReadsPastTheWindow) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  LocalOptions options;
  options.threads = 2;
  const std::int64_t tokens = model.geometry.train_length + 64;
  PairReader reader(model, options, some_text(), tokens, {});
  std::vector<PairPlace> places;
  for (const LayerHeads& l : reader.layers()) {
    places.push_back({l.layer, l.heads - 1, tokens - 1, 0});
    places.push_back({l.layer, 0, tokens - 1, tokens - 2});
  }
  for (const RotatedPair& pair : reader.read(plan_of(model, "pro", 2), places, tokens)) {
    ASSERT_GE(pair.query.size(), std::size_t(model.geometry.rotary_dim));
    ASSERT_EQ(pair.key.size(), pair.query.size());
    EXPECT_TRUE(std::isfinite(rotated_score(pair, model.geometry)));
    EXPECT_NE(rotated_score(pair, model.geometry), 0);
  }
}

TEST(PairReader, RefusesWhatCannotBe) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  LocalOptions options = small_steps();
  EXPECT_ERROR(PairReader(model, options, "too short", 512, {}), usage, "512");
  EXPECT_ERROR(PairReader(model, options, some_text(), 64, {99}), usage, "layer 99");
  PairReader reader(model, options, some_text(), 64, {0});
  const Plan other = make_plan({.rotary_dim = 128, .base = 10000, .train_length = 4096}, {});
  EXPECT_ERROR(reader.read(other, {}, 64), usage, "was made for");
  options.ubatch = 0;
  EXPECT_ERROR(PairReader(model, options, some_text(), 64, {0}), usage, "-ub 0");
}

}  // namespace
}  // namespace mrrope::engine
