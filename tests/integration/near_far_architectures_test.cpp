// SPDX-License-Identifier: Apache-2.0
// The keys of every architecture under a ladder with a near part, where its border first moves.
#include <gtest/gtest.h>

#include "engine/llama/local.h"
#include "engine/llama/local_model.h"
#include "mrrope/error.h"
#include "support/architecture_cases.h"
#include "support/cached_keys.h"
#include "support/observe.h"
#include "support/random_model.h"

namespace mrrope::engine {
namespace {

constexpr std::size_t kWindow = 24;
constexpr double kNoise = 1e-4;  // angles of some dozen radians in float

class NearFarOf : public testing::TestWithParam<ArchitectureCase> {
 protected:
  std::unique_ptr<TimelineModel> open() {
    LocalOptions options;
    options.context = 512;
    options.ubatch = 128;
    options.threads = 2;
    options.gpu_layers = 0;
    options.type_k = options.type_v = "f32";
    options.timelines = 1;
    Model facts = read_model(file_.path());
    facts.geometry.train_length = std::int64_t(kWindow);
    return open_local(facts, options);
  }

  const RandomModel file_{GetParam().metadata(), 11};
};

// A turn by -shift of the positions of a plan: from one factor to another it is m * (1/s - 1).
double as_position(const Rung& rung) {
  return double(rung.shift) / (1 - 1 / rung.plan.factor().front());
}

TEST_P(NearFarOf, TurnsKeysAsDefinedOrIsRefusedWithTheReason) {
  std::unique_ptr<TimelineModel> model;
  try {
    model = open();
  } catch (const Error& error) {
    GTEST_SKIP() << "runs under no plan: " << error.what();
  }
  for (const char* method : {"pi", "pro"}) {
    LadderRequest request;
    request.extension.method = method;
    request.rung_step = 1.5;
    request.headroom = kFarHeadroom;
    request.longest = 40;
    request.near = NearPart{6, 6};
    const Ladder ladder = make_ladder(model->facts().geometry, request);
    try {
      model->use(ladder);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      const std::string what = error.what();
      EXPECT_TRUE(what.find("cannot grow") != std::string::npos ||
                  what.find("sliding window") != std::string::npos)
          << what;
      GTEST_SKIP() << "refused: " << what;
    }
    auto& local = dynamic_cast<LocalModel&>(*model);
    const std::vector<Token> tokens = test::words(kWindow + 1, model->vocabulary());
    auto timeline = model->timeline();
    timeline->append(std::span(tokens).first(kWindow));
    const test::Keys before = test::read_keys(local, kWindow);
    ASSERT_FALSE(before.empty());
    timeline->append(std::span(tokens).subspan(kWindow));
    ASSERT_EQ(timeline->rung(), 1U);
    const test::Keys after = test::read_keys(local, kWindow + 1);
    const Plan& plain = ladder.rungs()[0].plan;
    const Rung& rung = ladder.rungs()[1];
    ASSERT_EQ(rung.border, 18);
    EXPECT_LE(test::turn_error(local, before, after, plain, rung.plan,
                               [&](std::size_t p) {
                                 const bool far = std::int64_t(p) < rung.border;
                                 if (ladder.shifts()) return far ? double(p) : as_position(rung);
                                 return far ? double(p) - double(rung.border) : 0;
                               }),
              kNoise)
        << method;

    // The new key: in the first layer it depends on nothing but its token and its position.
    timeline.reset();
    model->use(make_ladder(plain, 512));
    timeline = model->timeline();
    timeline->append(tokens);
    const test::Keys plain_keys = test::read_keys(local, kWindow + 1);
    EXPECT_LE(
        test::turn_error(local, {{plain_keys[0].back()}}, {{after[0].back()}}, plain, rung.plan,
                         [&](std::size_t) { return ladder.shifts() ? as_position(rung) : 0; }),
        kNoise)
        << method;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NearFarOf, testing::ValuesIn(architecture_cases()),
                         [](const auto& sample) { return sample.param.name(); });

}  // namespace
}  // namespace mrrope::engine
