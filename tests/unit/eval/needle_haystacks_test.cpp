// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "eval/tasks/needle/needle.h"
#include "support/expect_error.h"
#include "support/scripted.h"

namespace mrrope::eval {
namespace {

using test::expect_error;

// 300 tokens of the scripted model, which reads bytes.
std::string text_of(const std::string& sentence) {
  std::string text;
  while (text.size() < 300) text += sentence;
  return text;
}

TEST(NeedleHaystacks, HaystacksThatAreTooShortAreRepeatedOnlyForKamradt) {
  const ScriptedModel model(ScriptedOptions{});
  const std::vector<Document> documents = {{"a", text_of("One. ")}, {"b", text_of("Two. ")}};
  expect_error(ErrorKind::usage, "fewer than the longest length",
               [&] { make_haystacks(model, documents, 2000, 1); });
  const std::vector<Haystack> made = make_haystacks(model, documents, 2000, 1, true);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].id, "a + b x 4");
  ASSERT_EQ(made[0].tokens.size(), 2000u);
  const std::size_t once = documents[0].text.size() + documents[1].text.size() + 4;
  EXPECT_TRUE(std::equal(made[0].tokens.begin() + std::ptrdiff_t(once), made[0].tokens.end(),
                         made[0].tokens.begin()));
  EXPECT_EQ(make_haystacks(model, documents, 200, 2, true)[1].id, "b");
}

TEST(NeedleHaystacks, EssaysAreLongEnoughAndDiffer) {
  const ScriptedModel model(ScriptedOptions{});
  const std::vector<Document> essays = made_essays(model, 30000, 2);
  const std::vector<Haystack> made = make_haystacks(model, essays, 30000, 2);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_NE(made[0].tokens, made[1].tokens);
  EXPECT_EQ(made_essays(model, 30000, 2)[1].text, essays[1].text);
}

}  // namespace
}  // namespace mrrope::eval
