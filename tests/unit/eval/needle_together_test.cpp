// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "eval/tasks/needle/needle.h"
#include "support/expect_error.h"
#include "support/reading_model.h"
#include "support/result_rows.h"

namespace mrrope::eval {
namespace {

using test::expect_error;
using test::ReadingModel;
using test::row_at;

// All needles in one text: it is read once, every question is asked, and every word is another one.
TEST(Needle, HidesAllNeedlesInOneText) {
  // Finds the number of the word that the last line asks for.
  ScriptedOptions scripted;
  scripted.context = 8192;
  ReadingModel model(scripted, [](const std::string& prompt) {
    const std::size_t word = prompt.rfind("magic number for ") + 17;
    const std::string asked = prompt.substr(word, prompt.find(" is", word) - word);
    const std::size_t at = prompt.find("for " + asked + " is ");
    return " " + prompt.substr(at + 8 + asked.size(), 6);
  });
  NeedleOptions options;
  options.lengths = {1500, 3000};
  options.depths = {0, 10, 25, 50, 90, 100};
  options.form = make_form(model, "planted", {}, 0);
  options.samples = 2;
  options.together = true;
  const Ladder elastic =
      make_ladder(model.facts().geometry, parse_method("elastic:pro(rung_step=100)"), 3000);
  const std::vector<MethodUnderTest> methods = {
      {"pro", make_ladder(elastic.rungs().back().plan, 3000)}, {"elastic:pro", elastic}};
  const std::vector<Document> documents = made_essays(model, 3000, 2);
  RunFolder folder;
  Progress progress;
  const ResultTable r = run_needle(model, methods, documents, options, folder, progress);
  ASSERT_EQ(model.prompts.size(), 2u * 2 * 2 * 6);
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t l = 0; l < 2; ++l) {
      EXPECT_EQ(row_at(r, m, l, "contains").estimate.value, 1);
      EXPECT_EQ(row_at(r, m, l, "contains").estimate.n, 12u);
    }
  }
  for (std::size_t i = 0; i < model.prompts.size(); i += 6) {
    std::set<std::string> texts, questions;
    for (std::size_t k = i; k < i + 6; ++k) {
      const std::size_t question = model.prompts[k].rfind("\nQuestion:");
      texts.insert(model.prompts[k].substr(0, question));
      questions.insert(model.prompts[k].substr(question));
      const std::size_t length = i / 6 % 2 == 0 ? 1500 : 3000;
      EXPECT_LE(model.prompts[k].size() + std::size_t(options.form.answer_tokens), length);
      EXPECT_GT(model.prompts[k].size() + std::size_t(options.form.answer_tokens) + 20, length);
    }
    EXPECT_EQ(texts.size(), 1u);
    EXPECT_EQ(questions.size(), 6u);
  }
  for (const auto& unit : folder.units()) {
    EXPECT_LT(unit["tokens"].get<double>(), 0.35 * unit["naive_tokens"].get<double>());
  }

  const auto run = [&] {
    RunFolder other;
    run_needle(model, methods, documents, options, other, progress);
  };
  options.lengths = {200};
  expect_error(ErrorKind::usage, "length 200 leaves no haystack", run);
  options.lengths = {3000};
  options.form = make_form(model, "completion",
                           NeedleTexts{"The key is {number}.", "What is the key?", "{number}"}, 0);
  expect_error(ErrorKind::usage, "too few different questions", run);
}

}  // namespace
}  // namespace mrrope::eval
