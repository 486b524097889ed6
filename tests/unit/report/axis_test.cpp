// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "report/charts/chart.h"
#include "report/page/html_page.h"
#include "support/test.h"

namespace mrrope::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();

Range range(double low, double high, Spacing spacing = Spacing::linear) {
  return {low, high, spacing};
}

TEST(Axis, TicksAndValues) {
  const auto ticks = [](const Arguments& a, const Axis& axis) {
    const Range along = range(std::stod(a[0]), std::stod(a[1]), axis.spacing);
    const auto text = [&](double value) { return tick_text(axis, value); };
    return joined(mapped(ticks_of(along, axis.tokens, std::stoi(a[2])), text), " ");
  };
  test::expect_functions(
      "axis", {{"linear", [&](auto& a) { return ticks(a, {}); }},
               {"log",
                [&](auto& a) {
                  return ticks(a, {"", Spacing::log, false});
                }},
               {"lengths",
                [&](auto& a) {
                  return ticks(a, {"", Spacing::log, true});
                }},
               {"value", [](auto& a) { return value_text(std::stod(a[0])); }},
               {"escaped", [](auto& a) { return escaped(a[0]); }},
               {"characters", [](auto& a) { return std::to_string(character_count(a[0])); }},
               {"shortened", [](auto& a) { return shortened(a[0], 2); }},
               {"percent", [](auto& a) { return percent_encoded(a[0]); }}});
}

TEST(Axis, NeverMoreTicksThanRequested) {
  for (const int most : {2, 3, 5, 9}) {
    for (const auto& r : {range(0, 1), range(-1e9, 3), range(-kLargest, kLargest), range(7, 7.5),
                          range(1e-300, 1e300, Spacing::log), range(1, 1.5, Spacing::log)}) {
      for (const bool tokens : {false, true}) {
        const auto ticks = ticks_of(r, tokens, most);
        EXPECT_LE(ticks.size(), std::size_t(most));
        for (const double tick : ticks) {
          EXPECT_GE(r.place(tick), -1e-6);
          EXPECT_LE(r.place(tick), 1 + 1e-6);
        }
      }
    }
  }
}

TEST(Axis, RangesOfUnusualData) {
  EXPECT_EQ(range_of({}, Spacing::linear).high, 1);
  EXPECT_EQ(range_of({}, Spacing::log).low, 1);
  const std::vector<double> odd = {kNan, kInfinite, -kInfinite};
  EXPECT_EQ(range_of(odd, Spacing::linear).low, 0);
  const std::vector<double> one = {5};
  EXPECT_LT(range_of(one, Spacing::linear).low, 5);
  EXPECT_GT(range_of(one, Spacing::log).high, 5);
  const std::vector<double> below = {-4, 0, 3};
  EXPECT_LT(range_of(below, Spacing::log).low, 3);
  EXPECT_GT(range_of(below, Spacing::log).low, 0);
  const std::vector<double> enormous = {-kLargest, kLargest};
  const Range r = range_of(enormous, Spacing::linear);
  EXPECT_DOUBLE_EQ(r.place(0), 0.5);
  EXPECT_DOUBLE_EQ(r.place(kLargest), 1);
  const std::vector<double> top = {kLargest};
  EXPECT_TRUE(std::isfinite(range_of(top, Spacing::linear).high));
  EXPECT_TRUE(std::isfinite(range_of(top, Spacing::log).high));
  EXPECT_LT(range_of(top, Spacing::log).low, range_of(top, Spacing::log).high);
}

TEST(Axis, PlaceIsNanOutsideTheDomain) {
  EXPECT_TRUE(std::isnan(range(0, 1).place(kNan)));
  EXPECT_TRUE(std::isnan(range(1, 2, Spacing::log).place(0)));
  EXPECT_TRUE(std::isnan(range(1, 2, Spacing::log).place(-1)));
  EXPECT_DOUBLE_EQ(range(1, 100, Spacing::log).place(10), 0.5);
}

TEST(Markup, TablesAsCsv) {
  DataTable table{
      "t", {"name", "value"}, {{"a,b", "1"}, {"=1+1", "-2.5"}, {"say \"x\"", "-"}}, 1, false};
  EXPECT_EQ(to_csv(table), "name,value\n\"a,b\",1\n'=1+1,-2.5\n\"say \"\"x\"\"\",-\n");
}

TEST(Markup, TablesAsHtml) {
  const std::string html = to_html({"<caption>", {"<b>"}, {{"<i>"}}, 1, false});
  EXPECT_FALSE(contains(html, "<b>"));
  EXPECT_FALSE(contains(html, "<i>"));
  EXPECT_TRUE(contains(html, "&lt;i&gt;"));
}

}  // namespace
}  // namespace mrrope::report
