// SPDX-License-Identifier: Apache-2.0
#include "report/charts/chart.h"

#include "base/text.h"
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

// How often each class of element occurs, what is written where, and the values of each line.
std::string described(const std::string& svg) {
  expect_sound(svg);
  std::map<std::string, int> classes;
  static const std::regex with_class("<[a-z]+ [^>]*?class=\"([^\"]*)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), with_class), end; it != end; ++it) {
    ++classes[(*it)[1]];
  }
  std::smatch size;
  std::string out = "size";
  if (std::regex_search(svg, size, std::regex("<svg[^>]* width=\"([0-9.]+)\"")))
    out += " " + size.str(1);
  out += cat(", ", count(svg, "<svg "), " svg, ", count(svg, "<rect"), " rect, ",
             count(svg, "<style>"), " style\n ");
  for (const auto& [name, n] : classes) out += cat(" ", name, "=", n);
  std::set<std::string> shapes;  // of dots: colour is not the only sign
  static const std::regex dot("class=\"dot\"[^>]* d=\"([^\"]*)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), dot), end; it != end; ++it) {
    shapes.insert((*it)[1]);
  }
  if (!shapes.empty()) out += cat(", shapes ", shapes.size());
  static const std::regex text("<text[^>]*?x=\"([0-9.-]+)\" y=\"([0-9.-]+)\"[^>]*>([^<]*)</text>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) {
    out += cat("\n  ", (*it)[3].str(), " at ", std::lround(std::stod((*it)[1])), ",",
               std::lround(std::stod((*it)[2])));
  }
  static const std::regex values("data-name=\"([^\"]*)\"[^>]*data-values=\"([^\"]*)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), values), end; it != end; ++it) {
    out += cat("\n  ", (*it)[1].str(), ": ", (*it)[2].str());
  }
  return out;
}

double number_of(const json& value) {
  return value == "inf" ? kInfinite : value.is_null() ? kNothing : value.get<double>();
}

// {"series": [[name, [[x, y, low, high], ...]], ...], "window": a mark, "ticks": of y, "pairs":
// over pairs, "title"}
LineChart chart_from(const json& given) {
  LineChart chart =
      given.contains("pairs") ? pair_chart("factors", "factor", Spacing::log) : chart_of({});
  chart.series.clear();
  for (const json& one : given.value("series", json::array())) {
    std::vector<ChartPoint> points;
    for (const json& p : one[1]) {
      points.push_back({number_of(p[0]), number_of(p[1])});
      if (p.size() > 2) points.back().low = number_of(p[2]), points.back().high = number_of(p[3]);
    }
    chart.series.push_back({one[0], int(chart.series.size() + 1) % kColours, false, points});
  }
  chart.title = given.value("title", chart.title);
  if (given.contains("window")) chart.marks = {window_mark(given["window"].get<std::int64_t>())};
  if (given.contains("ticks")) chart.y.ticks = given["ticks"].get<std::vector<double>>();
  return chart;
}

HeatMap map_from(const json& given) {
  HeatMap map = map_of(given.value("rows", 0), given.value("columns", 0));
  for (const json& cell : given.value("cells", json::array())) {
    map.values[cell[0].get<std::size_t>()][cell[1].get<std::size_t>()] = number_of(cell[2]);
  }
  if (given.value("short", false)) map.values.pop_back(), map.values[0].pop_back();
  map.key = given.value("key", "");
  return map;
}

TEST(Chart, HasItsLinesAndTexts) {
  const auto options = [](const json& given) {
    return SvgOptions{.width = given.value("width", 760.0),
                      .standalone = given.value("alone", false)};
  };
  test::expect_functions(
      "charts", {{"lines",
                  [&](auto& a) {
                    const json given = json::parse(a[0]);
                    const LineChart chart = chart_from(given);
                    return described(to_svg(chart, options(given))) +
                           (has_content(chart) ? "" : "\n  flat or empty");
                  }},
                 {"map",
                  [&](auto& a) {
                    const json given = json::parse(a[0]);
                    return described(to_svg(map_from(given), options(given)));
                  }},
                 {"file",
                  [&](auto& a) {
                    const Figure lines{"", "a", "lines", "", chart_from(json::parse(a[0]))};
                    const std::vector<HeatMap> maps{map_from(json::parse(a[1]))};
                    return described(svg_file({lines, {"", "b", "maps", "", maps}}));
                  }},
                 {"colours", [](auto& a) {
                    Palette palette;
                    std::string out;
                    for (const std::string& name : a) {
                      const Series series = palette.series(name);
                      EXPECT_EQ(series.colour, palette.series(name).colour);
                      EXPECT_LT(series.colour, kColours);
                      out += cat(name, " ", series.colour, series.dashed ? " dashed, " : ", ");
                    }
                    return out;
                  }}});
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

}  // namespace
}  // namespace mrrope::report
