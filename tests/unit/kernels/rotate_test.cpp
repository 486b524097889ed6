// SPDX-License-Identifier: Apache-2.0
#include "kernels/rotary_simd.h"
#include "models/rotary_trial.h"
#include "mrrope/rotary.h"
#include "support/allocations.h"
#include "support/test.h"

namespace mrrope {
namespace {

struct Kernel {
  std::string target;
  Pairing pairing;
};

class Rotate : public testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override { use_simd_target(GetParam().target); }
  void TearDown() override { use_simd_target(""); }
  Pairing pairing() const { return GetParam().pairing; }
  // NEON_ROUNDS_BF16 differs from NEON in bf16 alone.
  std::vector<Element> elements() const {
    if (GetParam().target == "NEON_ROUNDS_BF16") return {Element::bf16};
    return {Element::f32, Element::f16, Element::bf16};
  }
};

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (const std::string& target : simd_targets()) {
    for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
      all.push_back({target, pairing});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Targets, Rotate, testing::ValuesIn(kernels()), [](const auto& param) {
  return param.param.target + "_" + to_string(param.param.pairing);
});

// Every type, table, layout and size, at near and far positions.
TEST_P(Rotate, AgreesWithTheReference) {
  for (const int rotary_dim : {128, 64, 80, 6, 4}) {
    const Plan plan = trial_plan(rotary_dim, pairing());
    std::map<std::pair<bool, std::int64_t>, std::vector<double>> known;
    for (const Element rows : {Element::f32, Element::f16, Element::bf16}) {
      if (rows != Element::f32 && rotary_dim != 80) continue;
      const RotaryTable near(plan, 0, 131072, rows);
      const RotaryTable far(plan, kFar - 8, kFar + 1, rows);
      for (const Element element : elements()) {
        unsigned seed = 0;
        for (const TrialSetup& setup : trial_setups(element, rotary_dim, 17)) {
          const auto unit = [&](std::int64_t position) {
            auto& x = known[{setup.inverse, position}];
            if (x.empty()) x = rotated_unit(plan, setup.inverse)(position);
            return x;
          };
          Trial here(setup, seed), there(far_away(setup), seed);
          rotate(near, here.batch);
          EXPECT_EQ(here.judge(pairing(), rotary_dim, rounding(rows), unit), "");
          rotate(far, there.batch);
          EXPECT_EQ(there.judge(pairing(), rotary_dim, rounding(rows), unit), "");
          ++seed;
        }
      }
    }
  }
}

// A step takes up to 1024 tokens; with the inverse the rows pass through a tile that holds fewer.
TEST_P(Rotate, MoreTokensThanAStep) {
  const Plan plan = trial_plan(16, pairing());
  const RotaryTable table(plan, 0, 1200);
  for (const Element element : elements()) {
    TrialSetup setup{.element = element,
                     .head_dim = 16,
                     .queries = 1,
                     .keys = 1,
                     .tokens = 1100,
                     .first_position = 77};
    for (const bool inverse : {false, true}) {
      setup.inverse = inverse;
      Trial trial(setup);
      rotate(table, trial.batch);
      EXPECT_EQ(trial.judge(pairing(), 16, rounding(Element::f32), rotated_unit(plan, inverse)),
                "");
    }
  }
}

TEST_P(Rotate, HeadsLongerThanATile) {
  const Plan plan = trial_plan(2 * 1301, pairing());
  const RotaryTable table(plan, 0, 100);
  TrialSetup setup{.head_dim = 2 * 1301 + 5, .tokens = 2, .in_place = false, .first_position = 40};
  Trial trial(setup);
  rotate(table, trial.batch);
  EXPECT_EQ(trial.judge(pairing(), 2 * 1301, rounding(Element::f32), rotated_unit(plan)), "");
}

TEST_P(Rotate, AnyNumberOfThreadsGivesTheSameBits) {
  const Plan plan = trial_plan(64, pairing());
  const RotaryTable table(plan, 0, 512);
  for (const std::int64_t tokens : {0, 1, 5, 401}) {
    TrialSetup setup{
        .element = Element::bf16, .head_dim = 64, .queries = 9, .keys = 3, .tokens = tokens};
    Trial alone(setup), together(setup), shared(setup);
    rotate(table, alone.batch);
    Workers workers(3);
    EXPECT_EQ(workers.threads(), 3);
    rotate(table, together.batch, workers);
    std::vector<std::thread> threads;
    for (int part = 0; part < 7; ++part) {
      threads.emplace_back([&, part] { rotate_part(table, shared.batch, part, 7); });
    }
    for (std::thread& thread : threads) thread.join();
    for (int side = 0; side < 2; ++side) {
      const std::size_t bytes = alone.to[side].bytes();
      EXPECT_EQ(std::memcmp(alone.to[side].data(), together.to[side].data(), bytes), 0);
      EXPECT_EQ(std::memcmp(alone.to[side].data(), shared.to[side].data(), bytes), 0);
    }
  }
}

TEST_P(Rotate, TurnsACacheFromOnePlanToAnother) {
  const Plan a = trial_plan(128, pairing(), "yarn", 4);
  const Plan b = trial_plan(128, pairing(), "pro", 16);
  TrialSetup setup{
      .queries = 0, .keys = 4, .tokens = 8, .head_major = true, .positions = kPositions};
  Trial trial(setup);
  rotate(RotaryTable::turning(a, b, 0, 131072), trial.batch);
  EXPECT_EQ(trial.judge(pairing(), 128, rounding(Element::f32) + 1e-10, test::turned_unit(a, b)),
            "");
  // And back.
  trial.batch.inverse = true;
  rotate(RotaryTable::turning(a, b, 0, 131072), trial.batch);
  for (std::size_t i = 0; i < trial.to[1].size(); ++i) {
    EXPECT_NEAR(trial.to[1].at(i), trial.from[1].at(i), 4e-6);
  }
}

TEST_P(Rotate, PreservesNormsAndDistancesAndCanBeUndone) {
  const Plan plan = trial_plan(128, pairing());
  const RotaryTable table(plan, 0, 131600);
  const auto rotation = [&](Trial& trial, const TrialSetup&) { rotate(table, trial.batch); };
  EXPECT_EQ(judge_properties(plan, rotation, 2e-6), "");
}

TEST_P(Rotate, SpecialValuesArePreserved) {
  const Plan plan = trial_plan(32, pairing(), "none", 1);
  const RotaryTable table(plan, 0, 4);
  for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
    TrialSetup setup{.element = element, .head_dim = 32, .queries = 1, .keys = 1, .tokens = 1};
    Trial trial(setup);
    trial.to[0].set(0, NAN);
    trial.to[0].set(1, INFINITY);
    rotate(table, trial.batch);  // position 0: the identity, but 0 * inf is not a number
    EXPECT_TRUE(std::isnan(trial.to[0].at(0))) << to_string(element);
    EXPECT_FALSE(std::isfinite(trial.to[0].at(1))) << to_string(element);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(trial.to[1].at(i), trial.from[1].at(i));
  }
}

TEST_P(Rotate, AllocatesNothing) {
  const Plan plan = trial_plan(128, pairing());
  const RotaryTable table(plan, 0, 600, Element::f16);
  TrialSetup setup{.tokens = 600};
  Trial trial(setup);
  Workers workers(2);
  const std::int64_t before = test::allocations();
  rotate(table, trial.batch);
  rotate(table, trial.batch, workers);
  rotate_part(table, trial.batch, 1, 2);
  EXPECT_EQ(test::allocations(), before);
}

// Every misuse is an error, and not one byte was written.
TEST_P(Rotate, RefusesMisuseBeforeAnyWrite) {
  const Plan plan = trial_plan(128, pairing());
  const RotaryTable table(plan, 10, 100);
  TrialSetup setup{.tokens = 8, .in_place = false, .first_position = 20};
  Trial trial(setup);
  const Batch good = trial.batch;
  Workers workers(2);
  const auto refused = [&](const std::string& word, const Batch& batch) {
    EXPECT_ERROR(rotate(table, batch), usage, word);
    EXPECT_ERROR(rotate(table, batch, workers), usage, word);
    EXPECT_ERROR(rotate_part(table, batch, 0, 2), usage, word);
    EXPECT_TRUE(trial.untouched()) << word;
  };
  const auto with = [&](const auto& change) {
    Batch batch = good;
    change(batch);
    return batch;
  };
  refused("queries.from", with([](Batch& b) { b.queries.from = nullptr; }));
  refused("keys.to", with([](Batch& b) { b.keys.to = nullptr; }));
  refused("rotary_dim 128", with([](Batch& b) { b.head_dim = 127; }));
  refused("element 9", with([](Batch& b) { b.element = Element(9); }));
  refused("-1 tokens", with([](Batch& b) { b.tokens = -1; }));
  refused("-2 sequences", with([](Batch& b) { b.sequences = -2; }));
  refused("-3 heads", with([](Batch& b) { b.queries.count = -3; }));
  refused("table of 10 to 99", with([](Batch& b) { b.first_position = 9; }));
  refused("table of 10 to 99", with([](Batch& b) { b.first_position = 93; }));
  refused("table of 10 to 99", with([](Batch& b) { b.first_position = INT64_MAX; }));
  refused("table of 10 to 99", with([](Batch& b) { b.first_position = INT64_MIN; }));
  refused("overlap", with([](Batch& b) { b.queries.to_strides.head = 64; }));
  refused("overlap", with([](Batch& b) { b.keys.to_strides.token = 0; }));
  refused("stride of", with([](Batch& b) { b.keys.from_strides.token = INT64_MIN; }));
  refused("overlap", with([](Batch& b) {
            b.queries.from = static_cast<const std::byte*>(b.queries.to) + 64;
          }));
  refused("two sets of strides", with([](Batch& b) {
            b.queries.from = b.queries.to;
            b.queries.from_strides = head_major(8, 3, 128);
          }));
  refused("aligned to 4 bytes", with([](Batch& b) {
            b.queries.from = static_cast<const std::byte*>(b.queries.from) + 1;
          }));
  std::vector<std::int32_t> positions = {20, 21, 22, 23, 24, 25, 26, 100};
  refused("position 100", with([&](Batch& b) { b.positions = positions.data(); }));
  positions.back() = -1;
  refused("position -1", with([&](Batch& b) { b.positions = positions.data(); }));
  EXPECT_ERROR(rotate_part(table, good, 2, 2), usage, "part 2 of 2");
  EXPECT_ERROR(Workers(0), usage, "0 threads");
  EXPECT_TRUE(trial.untouched());

  // Having nothing to do is not misuse.
  rotate(table, with([](Batch& b) { b.tokens = 0; }));
  rotate(table, with([](Batch& b) { b.sequences = 0; }));
  rotate(table, with([](Batch& b) { b.queries.count = b.keys.count = 0; }));
  EXPECT_TRUE(trial.untouched());
}

TEST(Workers, CallEveryPartOnce) {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    for (const int parts : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(parts));
      workers.run(parts, [&](int index) { ++calls[std::size_t(index)]; });
      for (const auto& count : calls) EXPECT_EQ(count, 1);
    }
  }
}

}  // namespace
}  // namespace mrrope
