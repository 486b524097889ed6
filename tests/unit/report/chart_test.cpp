// SPDX-License-Identifier: Apache-2.0
#include "report/charts/chart.h"

#include "support/test.h"

namespace mrrope::report {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();

LineChart chart_of(std::vector<ChartPoint> points) {
  LineChart chart;
  chart.title = "a title";
  chart.x = {"length", Spacing::log, true};
  chart.y = {"perplexity", Spacing::log, false};
  chart.series = {{"pro", 1, false, std::move(points)}};
  return chart;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

// Every tag is closed, and no coordinate is nan or inf.
void expect_sound(const std::string& svg) {
  std::vector<std::string> open;
  static const std::regex tag("<(/?)([a-z]+)[^>]*?(/?)>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    if ((*it)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*it)[2].str());
      open.pop_back();
    } else if ((*it)[3].length() == 0) {
      open.push_back((*it)[2].str());
    }
  }
  EXPECT_TRUE(open.empty());
  static const std::regex odd("(x|y|x1|x2|y1|y2|cx|cy|width|height|d)=\"[^\"]*(nan|inf)");
  EXPECT_FALSE(std::regex_search(svg, odd)) << svg;
}

TEST(Chart, ContainsItsNumbersInFull) {
  const std::string svg =
      to_svg(chart_of({{1024, 4.3241987654321, 4.1, 4.5}, {2048, 4.4, kNothing, kNothing}}));
  expect_sound(svg);
  EXPECT_TRUE(contains(svg, "data-values=\"1024,4.3241987654321,4.1,4.5;2048,4.4,,\""));
  EXPECT_TRUE(contains(svg, "class=\"end c1\""));
  EXPECT_EQ(count(svg, "class=\"dot\""), 2u);
}

TEST(Chart, EmptyCharts) {
  for (const bool standalone : {false, true}) {
    const std::string svg = to_svg(LineChart{}, {.width = 368, .standalone = standalone});
    expect_sound(svg);
    EXPECT_TRUE(contains(svg, "nothing measured yet"));
  }
  expect_sound(to_svg(HeatMap{}));
}

TEST(Chart, SinglePoint) {
  const std::string svg = to_svg(chart_of({{1024, 4, 3, 5}}));
  expect_sound(svg);
  EXPECT_EQ(count(svg, "class=\"dot\""), 1u);
  EXPECT_EQ(count(svg, "class=\"line\""), 0u);
  EXPECT_EQ(count(svg, "class=\"whisker\""), 1u);
}

TEST(Chart, MissingValueLeavesAGap) {
  const std::string svg = to_svg(
      chart_of({{512, 4}, {1024, 5}, {2048, kNothing}, {4096, 6}, {8192, 7}, {16384, kInfinite}}));
  expect_sound(svg);
  EXPECT_EQ(count(svg, "class=\"line\""), 2u);
  EXPECT_EQ(count(svg, "class=\"dot\""), 4u);
  expect_sound(to_svg(chart_of({{kNothing, 4}, {1024, kNothing}})));
}

TEST(Chart, EnormousValues) {
  LineChart chart = chart_of({{-kLargest, kLargest}, {0, -kLargest}, {kLargest, 0}});
  for (const Spacing spacing : {Spacing::linear, Spacing::log}) {
    chart.x.spacing = chart.y.spacing = spacing;
    expect_sound(to_svg(chart));
  }
}

TEST(Chart, MillionPointsStaySmallAndKeepTheirPeaks) {
  std::vector<ChartPoint> points(1000000);
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = {double(i + 1), 1 + double(i % 7)};
  points[123456].y = 1000;
  const std::string svg = to_svg(chart_of(points));
  EXPECT_LT(svg.size(), 200000u);
  EXPECT_TRUE(contains(svg, "123457,1000,,"));
}

TEST(Chart, NamesAreEscapedAndDoNotOverlap) {
  LineChart chart = chart_of({});
  chart.title = "<b>&";
  chart.series.clear();
  for (int i = 0; i < 12; ++i) {
    chart.series.push_back({"<script>" + std::to_string(i),
                            i % kColours,
                            false,
                            {{512, 4 + i * 0.001}, {1024, 4 + i * 0.001}}});
  }
  const std::string svg = to_svg(chart, {.width = 760, .standalone = true});
  expect_sound(svg);
  EXPECT_FALSE(contains(svg, "<script>"));
  EXPECT_FALSE(contains(svg, "<b>"));
  static const std::regex label("class=\"end c[0-9]+\" x=\"[^\"]*\" y=\"([^\"]*)\"");
  double before = -1000;
  int labels = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), label), end; it != end; ++it, ++labels) {
    const double y = std::stod((*it)[1]);
    EXPECT_GE(y - before, 14.9);
    before = y;
  }
  EXPECT_EQ(labels, 12);
}

// A tick at each measured length and at the window, whatever the round values are.
TEST(Chart, TicksAreAtMeasuredLengths) {
  LineChart chart = chart_of({{700, 4}, {3000, 5}, {9000, 6}});
  chart.marks = {window_mark(2000)};
  const std::string svg = to_svg(chart);
  expect_sound(svg);
  for (const char* text : {"700", "2000", "3000", "9000"}) {
    EXPECT_TRUE(contains(svg, std::string(">") + text + "</text>")) << text;
  }
  EXPECT_FALSE(contains(svg, ">1k</text>"));
}

TEST(Chart, TicksWithoutRoomHaveNoText) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 20; ++i) points.push_back({1000.0 + 10 * i, 4.0 + i});
  const std::string svg = to_svg(chart_of(points), {.width = 368});
  EXPECT_TRUE(contains(svg, ">1000</text>"));
  EXPECT_TRUE(contains(svg, ">1190</text>"));
  EXPECT_LT(count(svg, "class=\"tick\""), 17u);
}

TEST(Chart, GivenTicksComeBeforeRoundOnes) {
  LineChart chart = pair_chart("factors", "factor", Spacing::log);
  chart.series = {{"pi", 6, false, {{0, 1}, {63, 24.8}}}};
  chart.y.ticks = {24.8};
  const std::string svg = to_svg(chart);
  EXPECT_TRUE(contains(svg, ">24.8</text>"));
  EXPECT_FALSE(contains(svg, ">25</text>"));
}

// One line would hide the other.
TEST(Chart, EqualLinesShareAName) {
  LineChart chart = chart_of({{512, 4}, {1024, 5}});
  chart.series.push_back(chart.series.front());
  chart.series.back().name = "auto";
  chart.series.push_back({"none", 0, false, {{512, 4}, {1024, 9}}});
  const std::string svg = to_svg(chart);
  EXPECT_TRUE(contains(svg, ">pro = auto</text>"));
  EXPECT_EQ(count(svg, "class=\"line\""), 2u);
  EXPECT_EQ(count(svg, "class=\"series "), 3u) << "its values stay";
  for (const char* name : {"elastic:pro", "elastic:yarn", "elastic:uni"}) {
    chart.series.push_back(chart.series.front());
    chart.series.back().name = name;
  }
  EXPECT_TRUE(contains(to_svg(chart), ">pro = 4 others</text>"));
  // A name with parameters has a sign of its own and hides nothing.
  chart.series = {chart.series[2], chart.series[0]};
  chart.series[0].name = "far:pi(near=256,near_step=256)";
  EXPECT_FALSE(contains(to_svg(chart, {.width = 400}), "other"));
}

// Colour is not the only sign: neighbouring colours have other shapes.
TEST(Chart, DotsHaveShapes) {
  std::set<std::string> shapes;
  for (int colour = 0; colour < 4; ++colour) {
    LineChart chart = chart_of({{512, 4}, {1024, 5}});
    chart.series.front().colour = colour;
    const std::string svg = to_svg(chart);
    const std::size_t at = svg.find(" d=\"", svg.find("class=\"dot\""));
    shapes.insert(svg.substr(at, svg.find("/>", at) - at));
  }
  EXPECT_EQ(shapes.size(), 4u);
}

TEST(Chart, SpreadNamesDoNotOverlap) {
  LineChart chart = pair_chart("factors", "factor", Spacing::log);
  for (int i = 0; i < 8; ++i) {  // all end at 16
    std::vector<ChartPoint> points;
    for (int x = 0; x <= 60; ++x) points.push_back({double(x), 1 + 15 * std::pow(x / 60.0, i + 1)});
    chart.series.push_back({"method" + std::to_string(i), i, false, points});
  }
  for (const double width : {368.0, 1112.0}) {
    const std::string svg = to_svg(chart, {.width = width});
    expect_sound(svg);
    static const std::regex label("class=\"end c[0-9]+\" x=\"([^\"]*)\" y=\"([^\"]*)\"");
    std::vector<std::pair<double, double>> at;
    for (std::sregex_iterator it(svg.begin(), svg.end(), label), end; it != end; ++it) {
      at.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
    }
    ASSERT_EQ(at.size(), 8u);
    for (std::size_t a = 0; a < at.size(); ++a) {
      EXPECT_GE(at[a].first, 0);
      EXPECT_LE(at[a].first + 7 * 6.9, width);
      for (std::size_t b = 0; b < a; ++b) {
        const bool apart = std::abs(at[a].first - at[b].first) > 7 * 6.9 ||
                           std::abs(at[a].second - at[b].second) > 12;
        EXPECT_TRUE(apart) << width << ": " << a << " and " << b;
      }
    }
  }
}

TEST(Chart, OneFileHasAllFigures) {
  const Figure lines{"", "a", "lines", "", chart_of({{512, 4}, {1024, 5}})};
  HeatMap map;
  map.title = "shades";
  map.rows = {"r"};
  map.columns = {"c"};
  map.values = {{0.5}};
  map.key = "share";
  const std::string svg = svg_file({lines, {"", "b", "maps", "", std::vector<HeatMap>{map}}});
  expect_sound(svg);
  EXPECT_EQ(count(svg, "<style>"), 1u);
  EXPECT_EQ(count(svg, "<svg "), 3u);
  EXPECT_EQ(count(svg, "class=\"key\""), 1u);
  EXPECT_TRUE(contains(svg, "maps, shades"));
}

TEST(Chart, FlatAndEmptyChartsSayNothing) {
  EXPECT_FALSE(has_content(LineChart{}));
  EXPECT_FALSE(has_content(chart_of({{512, 4}, {1024, 4}, {2048, kNothing}})));
  EXPECT_TRUE(has_content(chart_of({{512, 4}, {1024, 4.1}})));
}

// The untouched model is compared inside its window only; a label at the right edge would suggest
// that it continues at this height.
TEST(Chart, LineThatEndsEarlyIsLabelledAtItsEnd) {
  LineChart chart = chart_of({{512, 4}, {1024, 4}, {2048, 4}, {4096, 4}});
  chart.series.push_back({"none", 0, false, {{512, 5}, {1024, 5}, {2048, kNothing}}});
  const std::string svg = to_svg(chart);
  expect_sound(svg);
  const auto label_x = [&](int colour) {
    std::smatch match;
    const std::regex label("class=\"end c" + std::to_string(colour) + "\" x=\"([^\"]*)\"");
    return std::regex_search(svg, match, label) ? std::stod(match[1]) : -1;
  };
  std::smatch places;
  ASSERT_TRUE(std::regex_search(
      svg, places, std::regex("data-name=\"none\"[^>]*data-places=\"[^;]*;([0-9.]+),")));
  const double last = std::stod(places[1]);
  EXPECT_GT(label_x(0), last);
  EXPECT_LT(label_x(0), last + 20);
  EXPECT_GT(label_x(1), label_x(0) + 100);
  EXPECT_EQ(count(svg, "class=\"leader c0\""), 0u);
}

HeatMap map_of(std::size_t rows, std::size_t columns) {
  HeatMap map;
  map.title = "pro";
  map.percent = true;
  for (std::size_t c = 0; c < columns; ++c) map.columns.push_back(std::to_string(c + 1) + "k");
  for (std::size_t r = 0; r < rows; ++r) {
    map.rows.push_back(std::to_string(r * 10) + " %");
    map.values.emplace_back();
    for (std::size_t c = 0; c < columns; ++c) {
      map.values.back().push_back(double(r * columns + c) / double(rows * columns));
    }
  }
  return map;
}

// Without a width a page would stretch a map of one column to that of four.
TEST(Chart, HeatMapStatesItsOwnWidth) {
  const auto width = [](const std::string& svg) {
    std::smatch match;
    return std::regex_search(svg, match, std::regex("<svg[^>]* width=\"([0-9.]+)\""))
               ? std::stod(match[1])
               : 0;
  };
  const double one = width(to_svg(map_of(3, 1), {.width = 320}));
  const double four = width(to_svg(map_of(3, 4), {.width = 320}));
  EXPECT_GT(one, 50);
  EXPECT_LT(one, 0.6 * four);
}

TEST(Chart, HeatMapShowsEveryCell) {
  HeatMap map = map_of(3, 4);
  map.values[1][2] = kNothing;
  map.values[0][0] = -5;  // below and above the scale
  map.values[2][3] = 7;
  const std::string svg = to_svg(map);
  expect_sound(svg);
  EXPECT_EQ(count(svg, "<rect"), 12u);
  EXPECT_EQ(count(svg, "class=\"cell none\""), 1u);
  EXPECT_EQ(count(svg, "class=\"cell h0\""), 1u);
  EXPECT_EQ(count(svg, "class=\"cell h10\""), 1u);
}

TEST(Chart, HeatMapsWithManyCellsOrShortLists) {
  expect_sound(to_svg(map_of(1, 1)));
  expect_sound(to_svg(map_of(40, 128)));
  HeatMap map = map_of(3, 4);
  map.values.pop_back();
  map.values[0].pop_back();
  expect_sound(to_svg(map));
}

TEST(Chart, ColoursAreFixedByName) {
  Palette palette;
  EXPECT_EQ(palette.colour_of("none"), 0);
  EXPECT_EQ(palette.colour_of("pro"), 1);
  const int mine = palette.colour_of("mine.json");
  EXPECT_NE(palette.colour_of("other.json"), mine);
  EXPECT_EQ(palette.colour_of("mine.json"), mine);
  EXPECT_NE(palette.series("elastic:pro").colour, palette.colour_of("pro"));
  EXPECT_TRUE(palette.series("elastic:pro").dashed);
  for (int i = 0; i < 30; ++i) {
    const int colour = palette.colour_of("plan" + std::to_string(i));
    EXPECT_GT(colour, 0);
    EXPECT_LT(colour, kColours);
  }
}

}  // namespace
}  // namespace mrrope::report
