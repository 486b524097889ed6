// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "base/words.h"

namespace mrrope {
namespace {

TEST(Text, DurationInWords) {
  EXPECT_EQ(duration_text(0.2), "1 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7620), "2 h 07 min");
  EXPECT_EQ(duration_text(1.3e9), "41 years");
  EXPECT_EQ(duration_text(1e300), "over 1000 years");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "unknown");
}

TEST(Text, NumberIsAllOfAText) {
  EXPECT_EQ(parse_double("1.5"), 1.5);
  EXPECT_EQ(parse_double("-2e3"), -2000);
  EXPECT_EQ(parse_double(".5"), 0.5);
  for (const char* text :
       {"", " 1", "1 ", "1x", "x", "0x10", "nan", "inf", "1e999", "--1", "e", "."}) {
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_double(std::string("1\0", 2)), std::nullopt);
}

TEST(Text, ShellWordIsQuotedOnlyWhereNeeded) {
  EXPECT_EQ(shell_word("models/a-1.gguf"), "models/a-1.gguf");
  EXPECT_EQ(shell_word("a b's"), "'a b'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Csv, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_line({"a", "1.5", ""}), "a,1.5,\n");
  EXPECT_EQ(csv_line({"a,b", "say \"hi\"", "two\nlines", "\r"}),
            "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"\r\"\n");
  EXPECT_EQ(csv_line({}), "\n");
}

TEST(TextTable, AlignsColumnsWithoutTrailingBlanks) {
  EXPECT_EQ(aligned({{"name", "n"}, {"x", "100"}, {"long name", ""}}),
            "name         n\nx          100\nlong name\n");
  EXPECT_EQ(aligned({{"a", "bb"}, {"ccc", "d"}}, {1}), "  a  bb\nccc  d\n");
  EXPECT_EQ(aligned({{"a", "bb"}, {"ccc", "d"}}, {}), "  a  bb\nccc   d\n");
}

TEST(Spelling, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("plan", ""), 4u);
  EXPECT_EQ(edit_distance("plan", "plan"), 0u);
  EXPECT_EQ(edit_distance("plan", "plane"), 1u);
  EXPECT_EQ(edit_distance("plan", "pan"), 1u);
  EXPECT_EQ(edit_distance("plan", "plen"), 1u);
  EXPECT_EQ(edit_distance("plan", "paln"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Spelling, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string> words = {"inspect", "plan", "export", "report"};
  EXPECT_EQ(closest("inspct", words), "inspect");
  EXPECT_EQ(closest("PLNA", words), "plan");
  EXPECT_EQ(closest("reprot", words), "report");
  EXPECT_EQ(closest("fly", words), "");
  EXPECT_EQ(closest("", words), "");
  EXPECT_EQ(closest(std::string(1 << 20, 'a'), words), "");
  EXPECT_EQ(did_you_mean("pla", words), "did you mean plan? ");
  EXPECT_EQ(did_you_mean("fly", words), "");
}

TEST(Utf8, RoundTripsEveryCharacter) {
  for (char32_t code = 0; code <= 0x110010; ++code) {
    if (code > 0x3000 && code < 0x10ffe0 && code % 97 != 0 && (code < 0xd7f0 || code > 0xe010)) {
      continue;
    }
    std::string text;
    append_character(text, code);
    const bool is_character = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    const Utf8Character back = first_character(text + "x");
    ASSERT_EQ(back.size, is_character ? text.size() : 0U) << std::uint32_t(code);
    if (is_character) {
      ASSERT_EQ(back.code, code);
      ASSERT_EQ(character_size(text[0]), text.size());
    }
  }
}

TEST(Utf8, InvalidCharactersHaveNoSize) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, "\x80"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xc3"sv, "\xc3x"sv, "\xe0\x9f\xbf"sv,
        "\xe2\x82"sv, "\xed\xa0\x80"sv, "\xf0\x8f\xbf\xbf"sv, "\xf4\x90\x80\x80"sv,
        "\xf5\x80\x80\x80"sv, "\xff"sv}) {
    EXPECT_EQ(first_character(text).size, 0U) << testing::PrintToString(std::string(text));
  }
}

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

TEST(Net, LoopbackIsExact) {
  for (const char* host :
       {"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "127.255.255.255", "::1", "[::1]"}) {
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  // clang-format off
  for (const char* host :
       {"", "127.", "127.0.0", "127.0.0.1.", "127.0.0.1.evil.example", "127.evil.example", "127.1",
        "127.0.0.256", "127.0.0.01", "0127.0.0.1", "127.0.0.1 ", "127.0.0.+1", "127.0.0.0.1", "128.0.0.1",
        "10.0.0.1", "localhost.", "localhost.evil.example", "localhos", "[::1", "::1%lo", "[::ffff:127.0.0.1]", "127.0.0.x", "127..0.1"}) {
    // clang-format on
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

TEST(Net, StripsThePortOfAnAuthority) {
  EXPECT_EQ(host_of_authority("localhost:8080"), "localhost");
  EXPECT_EQ(host_of_authority("localhost"), "localhost");
  EXPECT_EQ(host_of_authority("[::1]:8080"), "[::1]");
  EXPECT_EQ(host_of_authority("[::1]"), "[::1]");
  EXPECT_EQ(host_of_authority("127.0.0.1:80:90"), "127.0.0.1");
  EXPECT_EQ(host_of_authority(""), "");
}

}  // namespace
}  // namespace mrrope
