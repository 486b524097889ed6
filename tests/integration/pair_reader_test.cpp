// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"
#include "models/rotary_reference.h"
#include "mrrope/rotary.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr std::int64_t kTokens = 150;

std::string some_text() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += " lemma " + std::to_string(i * i) + " holds by induction.";
  return text;
}

std::vector<Token> some_tokens(const Model& model, std::int64_t count) {
  return first_tokens(*open_vocabulary(model), some_text(), count);
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

// The score under a plan, from what the unmodified model rotated.
double turned_score(const RotatedPair& pair, const PairPlace& place, const Plan& plan) {
  const auto turned = [&](const std::vector<float>& rotated, std::int64_t position) {
    std::vector<double> x(rotated.begin(), rotated.end());
    rotate_reference(make_plan(plan.geometry(), {}), -double(position), std::span<double>(x));
    rotate_reference(plan, double(position), std::span<double>(x));
    return x;
  };
  return dot(turned(pair.query, place.query), turned(pair.key, place.key),
             plan.geometry().rotary_dim);
}

// How far the scores of a layer are from those of the unmodified model, turned.
double largest_gap(const Model& model, int layer, const Plan& plan) {
  PairReader reader(model, small_steps(), some_tokens(model, kTokens), {layer});
  const auto places = places_in(layer, reader.layers()[0].heads, kTokens);
  const auto before = reader.read(make_plan(model.geometry, {}), places, kTokens);
  const std::vector<RotatedPair> read = reader.read(plan, places, kTokens);
  EXPECT_EQ(read.size(), places.size());
  double gap = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double turned = turned_score(before[i], places[i], plan);
    const double score = rotated_score(read[i], model.geometry);
    gap = std::max(gap, std::abs(score - turned) / (1 + std::abs(turned)));
  }
  return gap;
}

// Layer 0 sees the same vectors under every plan, so only the rotation may differ.
TEST(PairReader, RotatesAsThePlanSays) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  for (const char* method : {"yarn", "regressive", "pro"}) {
    EXPECT_LT(largest_gap(model, 0, plan_of(model, method, 8)), 1e-3) << method;
  }
}

// In later layers the plan has changed what the model computes before them: turning the queries
// and keys of the unmodified model is not the same.
TEST(PairReader, IsOfTheModelAsItRuns) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  EXPECT_GT(largest_gap(model, 1, plan_of(model, "pi", 8)), 0.1);
}

TEST(PairReader, ReadsPastTheWindow) {
  const Model model = read_model(MRROPE_TINY_MODEL);
  LocalOptions options;
  options.threads = 2;
  const std::int64_t tokens = model.geometry.train_length + 64;
  PairReader reader(model, options, some_tokens(model, tokens), {});
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
  EXPECT_ERROR(first_tokens(*open_vocabulary(model), "too short", 512), usage, "512");
  const std::vector<Token> tokens = some_tokens(model, 64);
  EXPECT_ERROR(PairReader(model, options, tokens, {99}), usage, "layer 99");
  PairReader reader(model, options, tokens, {0});
  const Plan other = make_plan({.rotary_dim = 128, .base = 10000, .train_length = 4096}, {});
  EXPECT_ERROR(reader.read(other, {}, 64), usage, "was made for");
  options.ubatch = 0;
  EXPECT_ERROR(PairReader(model, options, tokens, {0}), usage, "-ub 0");
}

}  // namespace
}  // namespace mrrope::engine
