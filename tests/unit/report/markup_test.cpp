// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "report/page/html_page.h"

namespace mrrope::report {
namespace {

TEST(Markup, MarkupIsEscaped) {
  EXPECT_EQ(escaped("<script>alert('a & \"b\"')</script>"),
            "&lt;script&gt;alert(&#39;a &amp; &quot;b&quot;&#39;)&lt;/script&gt;");
}

TEST(Markup, PlainTextIsUnchanged) {
  EXPECT_EQ(escaped("a\tb\nc \xC3\xA9 \xE2\x82\xAC"), "a\tb\nc \xC3\xA9 \xE2\x82\xAC");
}

TEST(Markup, InvalidTextIsReplaced) {
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a&#65533;b");
  EXPECT_EQ(escaped("\x1b[31m"), "&#65533;[31m");
  EXPECT_EQ(escaped("\xFFx"), "&#65533;x");
  EXPECT_EQ(escaped("\xC3"), "&#65533;");              // cut off
  EXPECT_EQ(escaped("\xC0\xBC"), "&#65533;&#65533;");  // '<' in two bytes
  EXPECT_EQ(escaped("\xED\xA0\x80"), "&#65533;&#65533;&#65533;");
}

TEST(Markup, CountsAndShortensCharacters) {
  EXPECT_EQ(character_count("\xE2\x82\xAC"
                            "ab"),
            3u);
  EXPECT_EQ(shortened("\xE2\x82\xAC"
                      "abc",
                      2),
            "\xE2\x82\xAC"
            "a...");
  EXPECT_EQ(shortened("ab", 2), "ab");
}

TEST(Markup, PercentEncoding) { EXPECT_EQ(percent_encoded("a b\"\n#"), "a%20b%22%0A%23"); }

TEST(Markup, TablesAsCsv) {
  DataTable table{
      "t", {"name", "value"}, {{"a,b", "1"}, {"=1+1", "-2.5"}, {"say \"x\"", "-"}}, 1, false};
  EXPECT_EQ(to_csv(table), "name,value\n\"a,b\",1\n'=1+1,-2.5\n\"say \"\"x\"\"\",-\n");
}

TEST(Markup, TablesAsHtml) {
  const std::string html = to_html({"<caption>", {"<b>"}, {{"<i>"}}, 1, false});
  EXPECT_EQ(html.find("<b>"), std::string::npos);
  EXPECT_EQ(html.find("<i>"), std::string::npos);
  EXPECT_NE(html.find("&lt;i&gt;"), std::string::npos);
}

}  // namespace
}  // namespace mrrope::report
