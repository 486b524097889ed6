// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/charts/chart.h"
#include "report/page/html_page.h"

namespace mrrope::report {

namespace {

constexpr double kEm = 12;           // size of text
constexpr double kCharacter = 6.9;   // approximate width of one, at that size
constexpr double kLine = 15;         // from one label to the next
constexpr std::size_t kLabel = 18;   // characters of a label at the end of a line
constexpr std::size_t kDense = 160;  // more points than this are a curve: no dots

std::string px(double value) {
  std::string text = fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

double width_of(const std::string& text) { return double(character_count(text)) * kCharacter; }

std::string open_svg(const std::string& kind, const std::string& title, double width, double height,
                     const SvgOptions& options, const std::string& more = {}) {
  std::string out = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart ", kind,
                        "\" viewBox=\"0 0 ", px(width), " ", px(height), "\"");
  // A page stretches lines to its columns, and shows maps at their own size.
  if (options.standalone || kind != "lines") out += cat(" width=\"", px(width), "\"");
  if (options.standalone) out += cat(" height=\"", px(height), "\"");
  out += cat(" role=\"img\" aria-label=\"", escaped(title), "\"");
  if (!options.standalone) out += " tabindex=\"0\"";
  out += more + ">\n";
  if (options.standalone) {
    out += cat("<style>", chart_style(), "</style>\n<rect class=\"paper\" width=\"100%\" ",
               "height=\"100%\"/>\n<text class=\"title\" x=\"12\" y=\"22\">", escaped(title),
               "</text>\n");
  }
  return out;
}

// anchor: start, middle or end.
std::string svg_text(const std::string& kind, double x, double y, const char* anchor,
                     const std::string& text) {
  return cat("<text class=\"", kind, "\" x=\"", px(x), "\" y=\"", px(y), "\" text-anchor=\"",
             anchor, "\">", escaped(text), "</text>\n");
}

std::string svg_line(const std::string& kind, double x1, double y1, double x2, double y2) {
  return cat("<line class=\"", kind, "\" x1=\"", px(x1), "\" y1=\"", px(y1), "\" x2=\"", px(x2),
             "\" y2=\"", px(y2), "\"/>\n");
}

struct Frame {
  double left, top, right, bottom;
  double middle() const { return (left + right) / 2; }
};

// A curve with more points than pixels keeps, for every pixel, its lowest and its highest.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, const Range& x,
                                double pixels) {
  if (double(points.size()) <= 2 * pixels) return points;
  std::vector<ChartPoint> out;
  std::size_t i = 0;
  while (i < points.size()) {
    const double column = std::floor(x.place(points[i].x) * pixels);
    std::size_t low = i;
    std::size_t high = i;
    std::size_t end = i + 1;
    while (end < points.size() && std::floor(x.place(points[end].x) * pixels) == column) {
      if (!(points[end].y >= points[low].y)) low = end;
      if (!(points[end].y <= points[high].y)) high = end;
      ++end;
    }
    out.push_back(points[std::min(low, high)]);
    if (low != high) out.push_back(points[std::max(low, high)]);
    i = end;
  }
  return out;
}

class LineDrawing {
 public:
  LineDrawing(const LineChart& chart, const SvgOptions& options)
      : chart_(chart), options_(options) {
    std::vector<double> xs;
    std::vector<double> ys;
    for (const Series& s : chart.series) {
      for (const ChartPoint& p : s.points) {
        if (!std::isfinite(p.y)) continue;
        xs.push_back(p.x);
        ys.insert(ys.end(), {p.y, p.low, p.high});
      }
    }
    for (const Mark& m : chart.marks) xs.push_back(m.x);
    nothing_ = ys.empty();
    ys.insert(ys.end(), chart.y.include.begin(), chart.y.include.end());
    x_ = range_of(xs, chart.x.spacing);
    y_ = range_of(ys, chart.y.spacing);
    widen(y_);
    const bool narrow = options.width < 500;
    height_ = narrow ? 300 : 350;
    y_ticks_ = ticks_of(y_, chart.y, 7);
    x_ticks_ = ticks_of(x_, chart.x, narrow ? 6 : 9);
    double label = 0;
    for (const Tick& t : y_ticks_) label = std::max(label, width_of(t.text));
    double end = 0;
    for (const Series& s : chart.series) end = std::max(end, width_of(shortened(s.name, kLabel)));
    frame_ = {label + 14, options.standalone ? 56.0 : 30.0, options.width - end - 16, height_ - 44};
    if (options.standalone) height_ += 26, frame_.bottom += 26;
  }

  std::string draw() {
    std::string out = open_svg("lines", chart_.title, options_.width, height_, options_,
                               cat(" data-x-label=\"", escaped(chart_.x.label), "\"",
                                   chart_.x.tokens ? " data-tokens=\"1\"" : ""));
    axes(out);
    for (const Mark& m : chart_.marks) mark(out, m);
    if (nothing_) {
      out += svg_text("empty", frame_.middle(), (frame_.top + frame_.bottom) / 2, "middle",
                      "nothing measured yet");
    }
    for (const Series& s : chart_.series) series(out, s);
    labels(out);
    out += cat("<g class=\"cursor\" data-frame=\"", px(frame_.left), ",", px(frame_.top), ",",
               px(frame_.right), ",", px(frame_.bottom), "\"></g>\n</svg>\n");
    return out;
  }

 private:
  // Some room above and below, so that lines do not run along the border.
  static void widen(Range& r) {
    if (r.spacing == Spacing::log) {
      const double room = std::pow(r.high / r.low, 0.05);
      if (std::isfinite(r.high * room) && r.low / room > 0) r.high *= room, r.low /= room;
      return;
    }
    const double room = (r.high / 2 - r.low / 2) * 0.1;
    const bool from_zero = r.low == 0;
    if (std::isfinite(r.high + room)) r.high += room;
    if (!from_zero && std::isfinite(r.low - room)) r.low -= room;
  }

  double x(double value) const {
    return frame_.left + x_.place(value) * (frame_.right - frame_.left);
  }
  double y(double value) const {
    const double place = std::clamp(y_.place(value), 0.0, 1.0);
    return frame_.bottom - place * (frame_.bottom - frame_.top);
  }

  void axes(std::string& out) const {
    out += "<g class=\"axes\" aria-hidden=\"true\">\n";
    for (const Tick& t : y_ticks_) {
      out += svg_line("grid", frame_.left, y(t.value), frame_.right, y(t.value));
      out += svg_text("tick", frame_.left - 7, y(t.value) + 4, "end", t.text);
    }
    out += svg_line("base", frame_.left, frame_.bottom, frame_.right, frame_.bottom);
    for (const Tick& t : x_ticks_) {
      out += svg_line("base", x(t.value), frame_.bottom, x(t.value), frame_.bottom + 4);
      out += svg_text("tick", x(t.value), frame_.bottom + 17, "middle", t.text);
    }
    out += svg_text("axis", frame_.middle(), frame_.bottom + 36, "middle", chart_.x.label);
    out += svg_text("axis", options_.standalone ? 12 : 0, frame_.top - 17, "start", chart_.y.label);
    out += "</g>\n";
  }

  void mark(std::string& out, const Mark& m) const {
    const double at = x(m.x);
    if (!std::isfinite(at)) return;
    const bool left = at > frame_.middle();
    out += cat(
        "<g class=\"mark\" data-x=\"", number(m.x), "\">",
        svg_line("at", at, frame_.top, at, frame_.bottom),
        svg_text("name", at + (left ? -5 : 5), frame_.top + 10, left ? "end" : "start", m.label),
        "</g>\n");
  }

  // In full; of a curve, what a reader of its points could use.
  static std::string field(double value, bool dense) {
    if (!std::isfinite(value)) return "";
    return dense ? significant(value, 6) : number(value);
  }

  void series(std::string& out, const Series& s) {
    const std::vector<ChartPoint> points = thinned(s.points, x_, frame_.right - frame_.left);
    const bool dense = points.size() > kDense;
    std::string values;
    std::string places;
    for (const ChartPoint& p : points) {
      if (!std::isfinite(p.x)) continue;
      values += cat(values.empty() ? "" : ";", number(p.x), ",", field(p.y, dense), ",",
                    field(p.low, dense), ",", field(p.high, dense));
      const bool shown = std::isfinite(p.y) && std::isfinite(x(p.x)) && std::isfinite(y(p.y));
      places += cat(places.empty() ? "" : ";", std::isfinite(x(p.x)) ? px(x(p.x)) : "", ",",
                    shown ? px(y(p.y)) : "");
    }
    out += cat("<g class=\"series c", s.colour, s.dashed ? " dashed" : "", dense ? " dense" : "",
               "\" data-name=\"", escaped(s.name), "\" data-values=\"", values, "\" data-places=\"",
               places, "\">\n");
    // Runs of points without a gap.
    std::vector<ChartPoint> run;
    for (const ChartPoint& p : points) {
      if (std::isfinite(x(p.x)) && std::isfinite(y_.place(p.y))) {
        run.push_back(p);
      } else {
        stroke(out, run);
        run.clear();
      }
    }
    stroke(out, run);
    out += "</g>\n";
    for (auto p = s.points.rbegin(); p != s.points.rend(); ++p) {
      if (!std::isfinite(x(p->x)) || !std::isfinite(y_.place(p->y))) continue;
      ends_.push_back({shortened(s.name, kLabel), s.colour, x(p->x), y(p->y), y(p->y)});
      break;
    }
  }

  void stroke(std::string& out, const std::vector<ChartPoint>& run) const {
    if (run.empty()) return;
    std::string upper;
    std::string lower;
    for (const ChartPoint& p : run) {
      if (!std::isfinite(p.low) || !std::isfinite(p.high)) continue;
      const double low = y_.spacing == Spacing::log ? std::max(p.low, y_.low) : p.low;
      upper += cat(upper.empty() ? "M" : "L", px(x(p.x)), " ", px(y(p.high)));
      lower = cat("L", px(x(p.x)), " ", px(y(low)), lower);
    }
    if (!upper.empty() && run.size() > 1) {
      out += cat("<path class=\"band\" d=\"", upper, lower, "Z\"/>\n");
    }
    if (run.size() > 1) {
      std::string line;
      for (const ChartPoint& p : run) {
        line += cat(line.empty() ? "M" : "L", px(x(p.x)), " ", px(y(p.y)));
      }
      out += cat("<path class=\"line\" d=\"", line, "\"/>\n");
    }
    if (run.size() > 1 && (!chart_.dots || run.size() > kDense)) return;
    for (const ChartPoint& p : run) {
      if (run.size() == 1 && std::isfinite(p.low) && std::isfinite(p.high)) {
        out += svg_line("whisker", x(p.x), y(std::max(p.low, y_.low)), x(p.x), y(p.high));
      }
      out += cat("<circle cx=\"", px(x(p.x)), "\" cy=\"", px(y(p.y)), "\" r=\"3\"/>\n");
    }
  }

  struct End {
    std::string name;  // shortened
    int colour;
    double x, y;
    double at;  // where the label goes
  };

  // A line over lengths that ends early has its name next to its last point: at the right edge it
  // would seem to go on.
  bool ends_early(const End& e) const {
    return chart_.x.tokens && e.x + width_of(e.name) + 12 < frame_.right;
  }

  // Other names are at the right edge, pushed apart where they would overlap.
  void labels(std::string& out) {
    out += "<g class=\"ends\" aria-hidden=\"true\">\n";
    const auto name = [&](const End& e, double x, double y) {
      out += svg_text(cat("end c", e.colour), x, y, "start", e.name);
    };
    std::erase_if(ends_, [&](const End& e) {
      if (ends_early(e)) name(e, e.x + 7, e.y - 6);
      return ends_early(e);
    });
    std::stable_sort(ends_.begin(), ends_.end(),
                     [](const End& a, const End& b) { return a.y < b.y; });
    const double gap = std::min(kLine, (frame_.bottom - frame_.top + kLine) /
                                           double(std::max<std::size_t>(1, ends_.size())));
    for (std::size_t i = 1; i < ends_.size(); ++i) {
      ends_[i].at = std::max(ends_[i].at, ends_[i - 1].at + gap);
    }
    double limit = frame_.bottom;
    for (auto e = ends_.rbegin(); e != ends_.rend(); ++e) {
      e->at = std::min(e->at, limit);
      limit = e->at - gap;
    }
    for (const End& e : ends_) {
      if (std::abs(e.at - e.y) > 2 || e.x < frame_.right - 2) {
        out += svg_line(cat("leader c", e.colour), e.x + 4, e.y, frame_.right + 8, e.at);
      }
      name(e, frame_.right + 10, e.at + 4);
    }
    out += "</g>\n";
  }

  const LineChart& chart_;
  SvgOptions options_;
  Range x_, y_;
  std::vector<Tick> x_ticks_, y_ticks_;
  Frame frame_{};
  double height_ = 0;
  bool nothing_ = false;
  std::vector<End> ends_;
};

}  // namespace

std::string to_svg(const LineChart& chart, const SvgOptions& options) {
  return LineDrawing(chart, options).draw();
}

std::string to_svg(const HeatMap& map, const SvgOptions& options) {
  const auto widest_of = [](const std::vector<std::string>& texts) {
    double widest = 0;
    for (const std::string& text : texts) widest = std::max(widest, width_of(text));
    return widest;
  };
  const auto cell_value = [&](std::size_t r, std::size_t c) {
    return r < map.values.size() && c < map.values[r].size() ? map.values[r][c] : kNothing;
  };
  const auto cell_text = [&](double value) {
    if (!std::isfinite(value)) return std::string("-");
    return map.percent ? fixed(100 * value, 0) : value_text(value);
  };
  const Range range{map.low, map.high > map.low ? map.high : map.low + 1, Spacing::linear};
  const double left = widest_of(map.rows) + 12;
  const double top = options.standalone ? 62 : 22;
  const double cells = double(std::max<std::size_t>(1, map.columns.size()));
  const double cell = std::clamp((options.width - left - 8) / cells, 2.0, 64.0);
  const double row = std::clamp(cell * 0.62, kLine, 26.0);
  const double width = std::max(left + cell * cells + 8,
                                options.standalone ? width_of(map.title) * 1.3 + 24 : 140.0);
  const double below = top + row * double(map.rows.size());
  double widest_text = 0;  // all cells show numbers, or none does
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      widest_text = std::max(widest_text, width_of(cell_text(cell_value(r, c))));
    }
  }
  std::string out = open_svg(map.shades == Shades::verdict ? "heat" : "heat amount", map.title,
                             width, below + 42, options);
  out += svg_text("axis", options.standalone ? 12 : 0, top - 9, "start", map.y_label);
  // Labels of rows and columns are left out where they would overlap.
  const std::size_t row_step = std::size_t(std::ceil(kLine / row));
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + row * double(r);
    if (r % row_step == 0) out += svg_text("tick", left - 6, y + row / 2 + 4, "end", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = cell_value(r, c);
      const double place = std::clamp(range.place(value), 0.0, 1.0);
      const std::string text = cell_text(value);
      const std::string detail = r < map.details.size() && c < map.details[r].size()
                                     ? map.details[r][c]
                                     : cat(map.rows[r], ", ", map.columns[c], ": ", text);
      out +=
          cat("<g class=\"cell ", map.best == std::pair(r, c) ? "best " : "",
              std::isfinite(place) ? cat("h", std::lround(place * 10)) : "none", "\" data-row=\"",
              escaped(map.rows[r]), "\" data-column=\"", escaped(map.columns[c]),
              "\" data-value=\"", std::isfinite(value) ? number(value) : "", "\" data-detail=\"",
              escaped(detail), "\"><rect x=\"", px(left + cell * double(c)), "\" y=\"", px(y),
              "\" width=\"", px(cell - 1), "\" height=\"", px(row - 1), "\"/>");
      if (widest_text + 4 <= cell && row >= kEm + 2) {
        out += svg_text("value", left + cell * (double(c) + 0.5) - 0.5, y + row / 2 + 3.5, "middle",
                        text);
      }
      out += "</g>\n";
    }
  }
  const double widest = map.columns.empty() ? 0 : widest_of(map.columns) + 6;
  const std::size_t column_step = std::size_t(std::max(1.0, std::ceil(widest / cell)));
  for (std::size_t c = 0; c < map.columns.size(); c += column_step) {
    out += svg_text("tick", left + cell * (double(c) + 0.5), below + 15, "middle", map.columns[c]);
  }
  out += svg_text("axis", left + cell * cells / 2, below + 33, "middle", map.x_label);
  return out + "</svg>\n";
}

std::vector<std::string> svg_files(const Figure& figure) {
  constexpr SvgOptions kFile{.width = 760, .standalone = true};
  if (!figure.is_map()) return {to_svg(std::get<LineChart>(figure.content), kFile)};
  std::vector<std::string> out;
  for (HeatMap map : std::get<std::vector<HeatMap>>(figure.content)) {
    if (map.title != figure.title) map.title = cat(figure.title, ", ", map.title);
    out.push_back(to_svg(map, kFile));
  }
  return out;
}

std::string chart_style() { return embedded::chart_css; }

}  // namespace mrrope::report
