// SPDX-License-Identifier: Apache-2.0
// Several needles in one text, which is read once: eval needle --questions.

#include "base/text.h"
#include "eval/score/answer_text.h"
#include "eval/tasks/needle/needle.h"
#include "models/reading_model.h"
#include "support/result_rows.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

// Finds the number of the word that the end of the prompt asks for, if the word is one it knows.
std::string number_asked_for(const std::string& prompt, char last_known) {
  std::size_t word = prompt.rfind("magic number for ");
  if (word == std::string::npos) return " nothing";
  word += 17;
  const std::string asked = prompt.substr(word, prompt.find(" is", word) - word);
  if (asked[0] > last_known) return " nothing";
  const std::size_t at = prompt.find("for " + asked + " is ");
  return " " + prompt.substr(at + 8 + asked.size(), 6);
}

struct AskedModel : test::ReadingModel {
  explicit AskedModel(char last_known = 'z')
      : test::ReadingModel({.context = 8192}, [last_known](const std::string& prompt) {
          return number_asked_for(prompt, last_known);
        }) {}
};

NeedleOptions several(const Tokenizer& model, std::vector<std::int64_t> lengths,
                      std::size_t needles, const char* form = "planted") {
  NeedleOptions options;
  options.lengths = std::move(lengths);
  options.depths = usual_depths(needles);
  options.together = true;
  options.samples = 2;
  options.batch = 100;
  options.form = make_form(model, form, {}, 0);
  return options;
}

ResultTable run_several(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                        const NeedleOptions& options, RunFolder& folder) {
  Progress silent;
  return run_needle(model, methods, made_essays(model, options.lengths.back(), options.samples),
                    options, folder, silent);
}

// It is read once, every question is asked, and every word is another one.
TEST(NeedleQuestions, AreAskedOfOneText) {
  AskedModel model;
  const NeedleOptions options = several(model, {1500, 3000}, 6);
  const Ladder elastic =
      make_ladder(model.facts().geometry, parse_method("elastic:pro(rung_step=100)"), 3000);
  const std::vector<MethodUnderTest> methods = {
      {"pro", make_ladder(elastic.rungs().back().plan, 3000)}, {"elastic:pro", elastic}};
  RunFolder folder;
  const ResultTable r = run_several(model, methods, options, folder);
  ASSERT_EQ(model.prompts.size(), 2u * 2 * 2 * 6);
  ASSERT_EQ(folder.units().size(), 2u * 2 * 2);  // a text under a method is a unit
  EXPECT_EQ(r.expected_units, folder.units().size());
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t l = 0; l < 2; ++l) {
      EXPECT_EQ(test::row_at(r, m, l, kContains).estimate.value, 1);
      EXPECT_EQ(test::row_at(r, m, l, kContains).estimate.n, 2u);
    }
  }
  std::set<std::string> all_questions;
  for (std::size_t i = 0; i < model.prompts.size(); i += 6) {
    std::set<std::string> texts, questions;
    for (std::size_t k = i; k < i + 6; ++k) {
      const std::size_t question = model.prompts[k].rfind("\nQuestion:");
      texts.insert(model.prompts[k].substr(0, question));
      questions.insert(model.prompts[k].substr(question));
      const std::size_t length = i / 12 % 2 == 0 ? 1500 : 3000;
      EXPECT_LE(model.prompts[k].size() + std::size_t(options.form.answer_tokens), length);
      EXPECT_GT(model.prompts[k].size() + std::size_t(options.form.answer_tokens) + 20, length);
    }
    EXPECT_EQ(texts.size(), 1u);
    EXPECT_EQ(questions.size(), 6u);
    all_questions.merge(questions);
  }
  EXPECT_LE(all_questions.size(), 12u);  // a sample asks the same at every length
  for (const auto& unit : folder.units()) {
    EXPECT_LT(unit["tokens"].get<double>(), 0.35 * unit["naive_tokens"].get<double>());
  }
}

// The middle of needle k lies at its depth, also where needles take most of a short text.
TEST(NeedleQuestions, KeysLieAtTheirDepths) {
  EXPECT_EQ(usual_depths(5), (std::vector<double>{10, 30, 50, 70, 90}));
  EXPECT_EQ(usual_depths(20).front(), 2.5);
  for (const std::int64_t length : {1200, 8000}) {
    AskedModel model;
    const NeedleOptions options = several(model, {length}, 20);
    RunFolder folder;
    const ResultTable r = run_several(model, {test::method(model, "none")}, options, folder);
    ASSERT_EQ(model.prompts.size(), 40u);
    EXPECT_EQ(test::row_at(r, 0, 0, kContains).estimate.value, 1);
    const std::string& prompt = model.prompts[0];
    const auto whole = double(prompt.rfind("\nQuestion:"));
    std::size_t at = 0;
    for (const double depth : options.depths) {
      at = prompt.find("\nThe magic number for ", at + 1);
      ASSERT_LT(double(at), whole) << depth;
      const double middle = double(at + prompt.find(".\n", at)) / 2;
      EXPECT_LE(middle, whole * depth / 100 + 10) << depth;
      EXPECT_GT(middle, whole * (depth - 2.5) / 100 - 10) << depth;
      EXPECT_EQ(test::row_at(r, 0, 0, kContains, depth).estimate.n, 2u) << depth;
    }
  }
}

TEST(NeedleQuestions, ErrorsAreOverTexts) {
  AskedModel model('k');
  NeedleOptions options = several(model, {3000}, 10);
  options.samples = 5;
  RunFolder folder;
  const ResultTable r = run_several(
      model, {test::method(model, "none"), test::method(model, "pro", 4)}, options, folder);
  std::vector<double> scores;
  for (const auto& unit : folder.units()) {
    if (unit["method"] != "none") continue;
    double found = 0;
    for (const auto& cell : unit["cells"]) {
      found += contains_answer(cell["answer"].get<std::string>(), cell["text"].get<std::string>())
                   ? 1
                   : 0;
    }
    scores.push_back(found / 10);
  }
  ASSERT_EQ(scores.size(), 5u);
  const Estimate expected = mean(scores);
  EXPECT_GT(expected.error, 0);
  const Estimate all = test::row_at(r, 0, 0, kContains).estimate;
  EXPECT_EQ(all.n, 5u);
  EXPECT_NEAR(all.value, expected.value, 1e-12);
  EXPECT_NEAR(all.error, expected.error, 1e-12);
  EXPECT_EQ(test::row_at(r, 0, 0, kAnswerLoss).estimate.n, 5u);
  ASSERT_EQ(r.comparisons.size(), 2u);
  for (const Comparison& c : r.comparisons) EXPECT_EQ(c.difference.mean_difference.n, 5u);
  EXPECT_EQ(r.more["questions_per_text"], 10u);
  const std::string text = to_text(r);
  EXPECT_TRUE(contains(text, "10 depths x 5 texts"));
  EXPECT_TRUE(contains(text, "Questions about each text: 10. n counts texts"));
  EXPECT_TRUE(contains(text, "t test paired over texts"));
}

// The number in the message is right: so many fit, and one more does not.
TEST(NeedleQuestions, AreRefusedWhereTheyDoNotFit) {
  AskedModel model;
  const auto run = [&](const NeedleOptions& options) {
    RunFolder folder;
    return run_several(model, {test::method(model, "none")}, options, folder);
  };
  for (const char* form : {"planted", "completion", "chat"}) {
    NeedleOptions options = several(model, {700, 900}, 100, form);
    options.samples = 3;
    std::size_t fit = 0;
    for (options.depths = usual_depths(2); fit == 0;
         options.depths = usual_depths(options.depths.size() + 1)) {
      try {
        check_together(model, options);
      } catch (const Error& error) {
        fit = options.depths.size() - 1;
      }
    }
    ASSERT_GT(fit, 2u) << form;
    for (const std::size_t asked : {fit + 1, std::size_t(100)}) {
      options.depths = usual_depths(asked);
      EXPECT_ERROR(run(options), usage, cat("700 tokens have room for only ", fit));
    }
    options.depths = usual_depths(fit);
    model.prompts.clear();
    run(options);
    EXPECT_EQ(model.prompts.size(), 3 * 2 * fit);
  }
  EXPECT_ERROR(run(several(model, {200}, 6)), usage, "200 tokens have room for only 2");
  for (const char* form : {"kamradt", "completion"}) {
    NeedleOptions same = several(model, {3000}, 2, form);
    if (form == std::string("completion")) {
      same.form = make_form(model, form, NeedleTexts{"It is {number}.", "What?", "{number}"}, 0);
    }
    EXPECT_ERROR(run(same), usage, cat("the form ", form, " has only 1"));
  }
}

TEST(NeedleQuestions, ShardsJoinToTheSameBytes) {
  test::expect_shards_join([](const std::filesystem::path& out, const Shard& shard) {
    AskedModel model('k');
    RunFolder folder(out, {"mrrope eval needle m", "sha256:1", 1, shard});
    run_several(model, {test::method(model, "none"), test::method(model, "pro", 4)},
                several(model, {800, 1600}, 4), folder);
  });
}

}  // namespace
}  // namespace mrrope::eval
