// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace mrrope {
namespace {

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

}  // namespace
}  // namespace mrrope
