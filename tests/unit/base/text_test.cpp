// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "base/utf8.h"
#include "base/words.h"
#include "support/test.h"

namespace mrrope {
namespace {

template <typename Value>
std::string if_any(const Value& value) {
  return value ? cat(*value) : "none";
}

TEST(Text, FunctionsOfTexts) {
  const std::vector<std::string> verbs = {"inspect", "plan", "export", "report"};
  test::expect_functions(
      "text",
      {{"duration", [](auto& a) { return duration_text(std::stod(a[0])); }},
       {"number", [](auto& a) { return if_any(parse_double(a[0])); }},
       {"shell", [](auto& a) { return shell_word(a[0]); }},
       {"csv", [](auto& a) { return csv_line(a); }},
       {"edits", [](auto& a) { return cat(edit_distance(a[0], a[1])); }},
       {"closest", [&](auto& a) { return closest(a[0], verbs) + did_you_mean(a[0], verbs); }},
       {"size", [](auto& a) { return cat(first_character(a[0]).size); }},
       {"whole", [](auto& a) { return cat(whole_characters(a[0])); }},
       {"loopback", [](auto& a) { return cat(is_loopback_host(a[0])); }},
       {"host", [](auto& a) { return host_of_authority(a[0]); }}});
}

TEST(Words, ListsAreMappedAndSearched) {
  struct Named {
    std::string name;
    int size;
  };
  const std::vector<Named> list = {{"a", 1}, {"b", 2}, {"c", 2}};
  EXPECT_EQ(joined(mapped(list, &Named::name), ", "), "a, b, c");
  EXPECT_EQ(mapped(list, [](const Named& n) { return 2 * n.size; }), (std::vector<int>{2, 4, 4}));
  EXPECT_EQ(find_by(list, &Named::size, 2), &list[1]);
  EXPECT_EQ(find_by(list, [](const Named& n) { return n.size > 2; }), nullptr);
  EXPECT_TRUE(has(std::vector<int>{3, 4}, 4));
  EXPECT_FALSE(has(std::vector<int>{3, 4}, 5));
  std::vector<int> longer = {1};
  extend(longer, std::vector<int>{3, 4});
  EXPECT_EQ(longer, (std::vector<int>{1, 3, 4}));
}

TEST(Words, ReplacesEveryOccurrenceOnce) {
  EXPECT_EQ(replaced("a-a", "a", "aa"), "aa-aa");
  EXPECT_EQ(replaced("+-+-", "+-", ""), "");
  EXPECT_EQ(time_text(1769860800), "2026-01-31T12:00:00Z");
}

TEST(TextTable, AlignsColumnsWithoutTrailingBlanks) {
  EXPECT_EQ(aligned({{"name", "n"}, {"x", "100"}, {"long name", ""}}),
            "name         n\nx          100\nlong name\n");
  EXPECT_EQ(aligned({{"a", "bb"}, {"ccc", "d"}}, {1}), "  a  bb\nccc  d\n");
  EXPECT_EQ(aligned({{"a", "bb"}, {"ccc", "d"}}, {}), "  a  bb\nccc   d\n");
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
}  // namespace mrrope
