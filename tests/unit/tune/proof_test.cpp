// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "support/scripted.h"
#include "support/test.h"
#include "tune/search.h"
#include "tune/space.h"

namespace mrrope::tune {
namespace {

// {"name", "loss", "answers", "noise", "failed"}: three texts with two bands and two answers; texts
// differ much, plans on one text by the noise.
Proved plan_from(const json& given) {
  Proved out{given.value("name", "auto"), {}};
  const double loss = given["loss"], answers = given["answers"];
  for (int i = 0; i < 3; ++i) {
    const double own = 0.2 * i + given.value("noise", 0.001) * (i - 1);
    out.measured.push_back({{loss + own, loss + 0.1 + own}, {answers + own, answers + own}, {}});
  }
  if (given.contains("failed")) out.measured[1] = {{}, {}, given["failed"]};
  return out;
}

// The first plan against the others.
TEST(Proof, PairedDifferencesDecide) {
  test::expect_functions(
      "proof", {{"judge", [](auto& a) {
                   const std::vector<json> given = json::parse(a[0]);
                   const std::vector<Proved> plans = mapped(given, plan_from);
                   const Proof proof =
                       judge_proof(plans[0], {plans.begin() + 1, plans.end()}, {1024, 4096}, 0.05);
                   const json loss = to_json(proof)["published"][0]["answer_loss"]["value"];
                   return cat(to_text(proof), proof.better ? "better" : "not better",
                              ", recommended ", proof.recommended,
                              loss.is_null() ? ", without an answer loss" : "");
                 }}});
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
