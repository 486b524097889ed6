// SPDX-License-Identifier: Apache-2.0
#include "support/scripted.h"
#include "support/test.h"
#include "tune/search.h"
#include "tune/space.h"

namespace mrrope::tune {
namespace {

// Three texts with two bands and two answers: texts differ much, plans on one text by `noise`.
Proved plan(const std::string& name, double loss, double answers, double noise = 0.001) {
  Proved out{name, {}};
  for (int i = 0; i < 3; ++i) {
    const double own = 0.2 * i + noise * (i - 1);
    out.measured.push_back({{loss + own, loss + 0.1 + own}, {answers + own, answers + own}, {}});
  }
  return out;
}

Proof judge(const std::vector<Proved>& others, const Proved& tuned = plan("tuned", 1.5, 1, 0)) {
  return judge_proof(tuned, others, {1024, 4096}, 0.05);
}

TEST(Proof, PairedDifferencesDecide) {
  const Proof proof = judge({plan("auto", 1.52, 1.3)});
  EXPECT_TRUE(proof.better);
  EXPECT_EQ(proof.texts, 3u);
  EXPECT_EQ(proof.questions, 2u);
  ASSERT_EQ(proof.rows.size(), 1u);
  EXPECT_NEAR(proof.rows[0].difference[1].value, 100 * (std::exp(-0.02) - 1), 1e-9);
  EXPECT_NEAR(proof.rows[0].loss_difference.value, -0.3, 1e-9);
  EXPECT_LT(proof.rows[0].loss_difference.error, 0.01) << "texts differ, plans on a text do not";
  const std::string text = to_text(proof);
  EXPECT_TRUE(contains(text, "tuned compared with"));
  EXPECT_TRUE(contains(text, "-0.300 +-0.001"));
}

TEST(Proof, ALeadWithinTwoErrorsIsNone) {
  const Proof proof = judge({plan("auto", 1.502, 1, 0.01), plan("pro", 1.7, 1.5)});
  EXPECT_FALSE(proof.better);
  EXPECT_EQ(proof.recommended, "auto");
  EXPECT_TRUE(contains(proof.rows[0].against, "two errors"));
  EXPECT_TRUE(proof.rows[1].against.empty());
}

TEST(Proof, ABetterObjectiveDoesNotPayForMuchOfEither) {
  EXPECT_TRUE(contains(judge({plan("auto", 1.48, 2)}).rows[0].against, "perplexity"));
  EXPECT_TRUE(contains(judge({plan("auto", 1.6, 0.9)}).rows[0].against, "answer loss"));
  EXPECT_TRUE(judge({plan("auto", 1.495, 2)}).better) << "half a percent is allowed";
}

TEST(Proof, PlansWithoutNumbersAreNoRivalsAndNeverBetter) {
  Proved broken = plan("auto", 1, 1);
  broken.measured[1] = {{}, {}, "a logit is NaN"};
  const Proof won = judge({broken});
  EXPECT_TRUE(won.better);
  EXPECT_EQ(to_json(won)["published"][0]["answer_loss"]["value"], nullptr);
  EXPECT_FALSE(judge({plan("auto", 9, 9)}, broken).better);
}

// Throws when it is put under a ladder.
class Throwing : public ScriptedModel {
 public:
  explicit Throwing(std::function<void()> action) : ScriptedModel({}), action_(std::move(action)) {}
  void use(const Ladder&) override { action_(); }

 private:
  std::function<void()> action_;
};

Measured measured_with(std::function<void()> action) {
  Throwing model(std::move(action));
  const Ladder ladder = make_ladder(make_plan(model.facts().geometry, Extension{}), 128);
  return measure(model, ladder, SearchText{}, 64, [](std::int64_t) {});
}

TEST(Measure, NanLogitsAreDataWhateverTheMessage) {
  const Measured m = measured_with([] { throw NanLogits("overflow in layer 3"); });
  EXPECT_EQ(m.failed, "overflow in layer 3");
}

TEST(Measure, AnyOtherFailureIsAnErrorWhateverTheMessage) {
  EXPECT_THROW(
      measured_with([] { throw Error(ErrorKind::failed, "cannot read /models/NaN.gguf"); }), Error);
}

const std::vector<SearchAxis> kAxes = {{-2, 2, 0.4}, {0, 20, 3}, {0, 1, 0.1}};

// A valley whose second axis is a staircase, as boundaries are.
double valley(const std::vector<double>& x) {
  const double stair = std::round(x[1]);
  return std::pow(x[0] - 0.7, 2) + 0.01 * std::pow(stair - 13, 2) + 4 * std::pow(x[2] - 0.3, 2) +
         0.02 * x[0] * (stair - 13);
}

TEST(Refine, FindsTheBottomOfAStaircaseInFewCalls) {
  int calls = 0;
  double best = 1e9;
  refine(kAxes, {-0.5, 8, 0.6}, [&](const std::vector<double>& x) -> std::optional<double> {
    ++calls;
    best = std::min(best, valley(x));
    return valley(x);
  });
  EXPECT_LT(best, 0.03);
  EXPECT_LT(calls, 60);
}

TEST(Refine, StaysInsideTheBoundsAndStopsOnRequest) {
  int calls = 0;
  refine(kAxes, {9, 8, 0.6}, [&](const std::vector<double>& x) -> std::optional<double> {
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_GE(x[i], kAxes[i].lower);
      EXPECT_LE(x[i], kAxes[i].upper);
    }
    if (++calls > 5) return std::nullopt;
    return valley(x);
  });
  EXPECT_EQ(calls, 6);
}

TEST(Refine, PropagatesExceptions) {
  EXPECT_THROW(refine(kAxes, {0, 8, 0.6},
                      [](const std::vector<double>&) -> std::optional<double> {
                        throw std::runtime_error("no");
                      }),
               std::runtime_error);
}

}  // namespace
}  // namespace mrrope::tune
