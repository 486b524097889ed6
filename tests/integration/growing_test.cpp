// SPDX-License-Identifier: Apache-2.0
// Every architecture either grows, its keys turned as the reference says, or is refused with a
// reason: under elastic ladders, and under ladders with a near part where the border first moves.

#include "base/text.h"
#include "engine/llama/local.h"
#include "engine/llama/local_model.h"
#include "models/architecture_cases.h"
#include "models/cached_keys.h"
#include "models/random_model.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr std::size_t kWindow = 24;
constexpr double kNoise = 1e-4;  // angles of some dozen radians in float

class Growing : public testing::TestWithParam<ArchitectureCase> {
 protected:
  std::unique_ptr<TimelineModel> open() {
    // On a GPU, flash attention has no kernels for odd random heads.
    const LocalOptions options = exact_options(512, 128, 1, "auto");
    Model facts = read_model(file_.path());
    facts.geometry.train_length = std::int64_t(kWindow);
    return open_local(facts, options);
  }

  const RandomModel file_{GetParam().metadata(), 11};
};

Ladder ladder_of(const Geometry& geometry, const char* method, bool near) {
  return make_ladder(
      geometry,
      parse_method(near ? cat("far:", method, "(rung_step=1.5,headroom=1.6,near=6,near_step=6)")
                        : cat("elastic:", method, "(rung_step=1.5)")),
      200);
}

// Where turning from the first plan of a rung to its second does what a shift back does: one factor
// s turns by m * (1/s - 1).
double as_position(const Rung& rung) {
  return double(rung.shift) / (1 - 1 / rung.plan.factor().front());
}

// Keys of the window before and after the next token, and of all tokens.
struct Crossing {
  test::Keys before, after;
};

Crossing cross(TimelineModel& model, const std::vector<Token>& tokens) {
  const auto& local = dynamic_cast<LocalModel&>(model);
  const auto timeline = model.timeline();
  Crossing keys;
  timeline->append(std::span(tokens).first(kWindow));
  keys.before = test::read_keys(local, kWindow);
  timeline->append(std::span(tokens).subspan(kWindow));
  EXPECT_EQ(timeline->rung(), 1U);
  keys.after = test::read_keys(local, kWindow + 1);
  return keys;
}

TEST_P(Growing, ClimbsOrIsRefusedWithTheReason) {
  std::unique_ptr<TimelineModel> model;
  try {
    model = open();
  } catch (const Error& error) {
    GTEST_SKIP() << "runs under no plan: " << error.what();
  }
  const auto& local = dynamic_cast<LocalModel&>(*model);
  const Geometry& geometry = model->facts().geometry;
  // Whether it grows.
  const auto use = [&](const Ladder& ladder, const char* reason) {
    try {
      model->use(ladder);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_TRUE(contains(error.what(), reason));
      std::printf("  refused: %s\n", error.what());
      return false;
    }
  };
  const std::vector<Token> tokens = test::words(kWindow + 1, model->vocabulary());
  const Ladder elastic = ladder_of(geometry, "pro", false);
  if (!use(elastic, "cannot grow")) return;
  const Plan& plain = elastic.rungs()[0].plan;
  const Crossing grown = cross(*model, tokens);
  ASSERT_FALSE(grown.before.empty());
  EXPECT_LE(test::turn_error(local, grown.before, grown.after, plain, elastic.rungs()[1].plan),
            kNoise);

  test::Keys untouched;
  {
    model->use(make_ladder(plain, 512));
    const auto timeline = model->timeline();
    timeline->append(tokens);
    untouched = test::read_keys(local, kWindow + 1);
  }
  for (const char* method : {"pi", "pro"}) {
    const Ladder ladder = ladder_of(geometry, method, true);
    if (!use(ladder, "sliding window")) return;
    const Crossing keys = cross(*model, tokens);
    const Rung& rung = ladder.rungs()[1];
    ASSERT_EQ(rung.border, 18);
    EXPECT_LE(test::turn_error(local, keys.before, keys.after, plain, rung.plan,
                               [&](std::size_t p) {
                                 const bool far = std::int64_t(p) < rung.border;
                                 if (ladder.has_single_factor())
                                   return far ? double(p) : as_position(rung);
                                 return far ? double(p) - double(rung.border) : 0;
                               }),
              kNoise)
        << method;
    // The new key: in the first layer it depends on nothing but its token and its position.
    EXPECT_LE(test::turn_error(
                  local, {{untouched[0].back()}}, {{keys.after[0].back()}}, plain, rung.plan,
                  [&](std::size_t) { return ladder.has_single_factor() ? as_position(rung) : 0; }),
              kNoise)
        << method;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Growing, testing::ValuesIn(architecture_cases()),
                         [](const auto& sample) { return sample.param.name(); });

}  // namespace
}  // namespace mrrope::engine
