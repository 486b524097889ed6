// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace mrrope::engine {
namespace {

TEST(WholeCharacters, WaitsForTheRestOfACharacter) {
  EXPECT_EQ(whole_characters(""), 0U);
  EXPECT_EQ(whole_characters("abc"), 3U);
  EXPECT_EQ(whole_characters("ab\xC3"), 2U);
  EXPECT_EQ(whole_characters("ab\xC3\xA9"), 4U);
  EXPECT_EQ(whole_characters("\xE2\x82"), 0U);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98"), 0U);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98\x80"), 4U);
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80"), 4U);  // nothing to wait for
  EXPECT_EQ(whole_characters("\xFF"), 1U);
}

std::string feed(TextStream& stream, std::string_view text) {
  std::string out;
  for (const char c : text) out += stream.add(std::string_view(&c, 1));
  return out;
}

TEST(TextStream, EmitsWholeCharactersOnly) {
  TextStream stream({});
  EXPECT_EQ(stream.add("\xE2"), "");
  EXPECT_EQ(stream.add("\x82"), "");
  EXPECT_EQ(stream.add("\xAC!"), "\xE2\x82\xAC!");
  EXPECT_EQ(stream.add("\xF0\x9F"), "");
  EXPECT_EQ(stream.finish(), "\xF0\x9F");
}

TEST(TextStream, EndsBeforeTheFirstStopString) {
  TextStream stream({"STOP", "\n\n"});
  EXPECT_EQ(feed(stream, "one\nSTO two S"), "one\nSTO two ");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.add("TOPPED"), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.add("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, FindsAStopStringInsideOnePiece) {
  TextStream stream({"b", "ab"});
  EXPECT_EQ(stream.add("xxabyy"), "xx");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, EmitsHeldTextThatIsNotAStopString) {
  TextStream stream({"<|end|>", ""});
  EXPECT_EQ(feed(stream, "a <|en"), "a ");
  EXPECT_EQ(stream.add("try"), "<|entry");
  EXPECT_EQ(feed(stream, "<|"), "");
  EXPECT_EQ(stream.finish(), "<|");
}

}  // namespace
}  // namespace mrrope::engine
