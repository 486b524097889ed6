// SPDX-License-Identifier: Apache-2.0
#include "support/scripted.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"

namespace mrrope::eval {
namespace {

using test::expect_error;

Ladder plan(const TimelineModel& model, const char* method, double scale) {
  Extension e;
  e.method = method;
  e.scale = scale;
  return make_ladder(make_plan(model.facts().geometry, e), 4096);
}

TEST(Scripted, IsDeterministic) {
  ScriptedModel a({});
  ScriptedModel b({});
  const auto tokens = a.tokenize("a lemma and its proof", true, false);
  EXPECT_EQ(tokens.front(), ScriptedModel::kBos);
  EXPECT_EQ(a.detokenize(tokens), "a lemma and its proof");
  const auto x = a.timeline()->append_scored(tokens);
  const auto y = b.timeline()->append_scored(tokens);
  EXPECT_TRUE(std::isnan(x[0]));
  for (std::size_t i = 1; i < x.size(); ++i) {
    EXPECT_EQ(x[i], y[i]);
    EXPECT_LT(x[i], 0);
  }
}

TEST(Scripted, ProbabilitiesSumToOneAndFollowThePlan) {
  ScriptedModel model({});
  const auto tokens = model.tokenize("abcdef", true, false);
  const std::vector<std::size_t> wanted = {3};
  const auto logits = [&] {
    std::vector<float> seen;
    model.timeline()->append_observed(tokens, wanted, [&](std::size_t, std::span<const float> x) {
      seen.assign(x.begin(), x.end());
    });
    return seen;
  };
  const auto none = logits();
  ASSERT_EQ(none.size(), 258u);
  const double score = model.timeline()->append_scored(tokens)[4];
  double sum = 0;
  for (const float x : none) sum += std::exp(double(x));
  EXPECT_NEAR(score, none[std::size_t(tokens[4])] - std::log(sum), 1e-9);
  model.use(plan(model, "pro", 4));
  EXPECT_NE(none, logits());
}

TEST(Scripted, ForksAndTruncates) {
  ScriptedModel model({});
  const auto all = model.tokenize("the quick brown fox", true, false);
  const auto whole = model.timeline()->append_scored(all);
  EXPECT_EQ(model.computed(), 20);
  const auto trunk = model.timeline();
  trunk->append(std::span(all).first(10));
  const auto branch = trunk->fork();
  EXPECT_EQ(model.computed(), 30);
  trunk->append(model.tokenize("something else", false, false));
  const auto rest = branch->append_scored(std::span(all).subspan(10));
  for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], whole[10 + i]);
  trunk->truncate(10);
  EXPECT_EQ(trunk->length(), 10);
  EXPECT_EQ(trunk->append_scored(std::span(all).subspan(10)), rest);
  expect_error(ErrorKind::usage, "truncate", [&] { trunk->truncate(100); });
}

TEST(Scripted, ScoresAndObservesInOnePass) {
  ScriptedModel model({});
  const auto tokens = model.tokenize("abcdef", true, false);
  const std::vector<std::size_t> wanted = {0, 5};
  int calls = 0;
  const auto scores = model.timeline()->append_scored_observed(
      tokens, wanted, [&](std::size_t, std::span<const float>) { ++calls; });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(scores[3], model.timeline()->append_scored(tokens)[3]);
}

TEST(Scripted, FailsOnRequest) {
  ScriptedOptions options;
  options.nan_at = 3;
  options.nan_method = "pro";
  options.fail_at = 30;
  options.context = 12;
  ScriptedModel model(options);
  const auto tokens = model.tokenize("abcdefg", true, false);
  EXPECT_FALSE(std::isnan(model.timeline()->append_scored(tokens)[7]));
  model.use(plan(model, "pro", 4));
  const auto scores = model.timeline()->append_scored(tokens);
  EXPECT_FALSE(std::isnan(scores[3]));
  EXPECT_TRUE(std::isnan(scores[4]));
  const auto full = model.timeline();
  full->append(tokens);
  expect_error(ErrorKind::usage, "12", [&] { full->append(tokens); });
  expect_error(ErrorKind::failed, "token 30", [&] { model.timeline()->append(tokens); });
}

TEST(Scripted, AnswersItsQuestion) {
  ScriptedOptions options;
  options.question = "The number is";
  options.answer = " 4711.";
  ScriptedModel model(options);
  const auto timeline = model.timeline();
  timeline->append(model.tokenize("Much ado. The number is", true, false));
  const Generation g = timeline->fork()->generate({});
  EXPECT_EQ(g.text, " 4711.");
  EXPECT_EQ(g.finish, "stop");
  GenerateOptions stop;
  stop.stop = {"11"};
  EXPECT_EQ(timeline->fork()->generate(stop).text, " 47");
  timeline->append(model.tokenize("?", false, false));
  GenerateOptions shorter;
  shorter.max_tokens = 5;
  EXPECT_NE(timeline->generate(shorter).text, " 4711");
}

}  // namespace
}  // namespace mrrope::eval
