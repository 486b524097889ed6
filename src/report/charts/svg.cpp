// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/text.h"
#include "report/page/html_page.h"

namespace mrrope::report {

namespace {

constexpr double kEm = 12;           // size of text
constexpr double kCharacter = 6.9;   // approximate width of one, at that size
constexpr double kLine = 15;         // from one label to the next
constexpr double kHigh = 12;         // a name
constexpr std::size_t kLabel = 18;   // characters of a label at the end of a line
constexpr std::size_t kDense = 160;  // more points than this are a curve: no dots
constexpr std::size_t kSpread = 9;   // more lines than this have their names at the edge

std::string px(double value) {
  std::string text = fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

double width_of(const std::string& text) { return double(character_count(text)) * kCharacter; }

double widest_of(const std::vector<std::string>& texts) {
  double widest = 0;
  for (const std::string& text : texts) widest = std::max(widest, width_of(text));
  return widest;
}

// A chart and its size.
struct Drawing {
  std::string svg;
  double width, height;
};

std::string open_svg(const std::string& kind, const std::string& title, double width, double height,
                     const SvgOptions& options, const std::string& more = {}) {
  std::string out = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart ", kind,
                        "\" viewBox=\"0 0 ", px(width), " ", px(height), "\"");
  // A page stretches lines to its columns, and shows maps at their own size.
  if (options.standalone || kind != "lines") out += cat(" width=\"", px(width), "\"");
  if (options.standalone) out += cat(" y=\"", px(options.y), "\" height=\"", px(height), "\"");
  out += cat(" role=\"img\" aria-label=\"", escaped(title), "\"");
  if (!options.standalone) out += " tabindex=\"0\"";
  out += more + ">\n";
  if (options.standalone) {
    out += cat("<text class=\"title\" x=\"12\" y=\"22\">", escaped(title), "</text>\n");
  }
  return out;
}

// The shapes of dots tell lines apart where colours do not.
std::string dot(int colour, double x, double y, double size) {
  static constexpr const char* kShapes[] = {"M0-1.3 1.3 0 0 1.3-1.3 0z",
                                            "M-1 0a1 1 0 1 0 2 0 1 1 0 1 0-2 0z", "M-1-1H1V1H-1z",
                                            "M0-1.3 1.2.8H-1.2z"};
  return cat("<path class=\"dot\" transform=\"translate(", px(x), " ", px(y), ") scale(", px(size),
             ")\" d=\"", kShapes[colour % 4], "\"/>\n");
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

// A curve with more points than pixels keeps, for every pixel, its lowest and its highest.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, const Range& x,
                                double pixels) {
  if (double(points.size()) <= 2 * pixels) return points;
  const auto column = [&](const ChartPoint& p) { return std::floor(x.place(p.x) * pixels); };
  std::vector<ChartPoint> out;
  for (auto at = points.begin(); at != points.end();) {
    const auto end = std::find_if(at + 1, points.end(),
                                  [&](const ChartPoint& p) { return column(p) != column(*at); });
    const auto [low, high] = std::minmax_element(
        at, end, [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; });
    out.push_back(*std::min(low, high));
    if (low != high) out.push_back(*std::max(low, high));
    at = end;
  }
  return out;
}

struct Place {
  double x, y;
};

struct Box {
  double left, top, right, bottom;

  double middle() const { return (left + right) / 2; }
  // 0 where they touch.
  double gap(const Box& b) const {
    return std::max({b.left - right, left - b.right, b.top - bottom, top - b.bottom, 0.0});
  }
  double gap(const Place& p) const { return gap(Box{p.x, p.y, p.x, p.y}); }
};

// Two lines of the same points: one would hide the other.
bool same_points(const Series& a, const Series& b) {
  const auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return std::equal(
      a.points.begin(), a.points.end(), b.points.begin(), b.points.end(),
      [&](const ChartPoint& p, const ChartPoint& q) { return equal(p.x, q.x) && equal(p.y, q.y); });
}

class LineDrawing {
 public:
  LineDrawing(const LineChart& chart, const SvgOptions& options)
      : chart_(chart),
        options_(options),
        spread_(chart.spread && chart.series.size() <= kSpread),
        height_(std::clamp(options.width * 0.38, 300.0, 420.0)) {
    std::vector<double> xs, ys;
    for (const Series& s : chart.series) {
      for (const ChartPoint& p : s.points) {
        if (!std::isfinite(p.y)) continue;
        xs.push_back(p.x);
        ys.insert(ys.end(), {p.y, p.low, p.high});
      }
    }
    std::set<double> measured;
    if (chart.x.tokens && chart.dots && xs.size() < 1000) measured = {xs.begin(), xs.end()};
    for (const Mark& m : chart.marks) xs.push_back(m.x);
    nothing_ = ys.empty();
    extend(ys, chart.y.include);
    x_ = range_of(xs, chart.x.spacing);
    y_ = range_of(ys, chart.y.spacing);
    widen(y_);
    name_lines();
    frame_ = {0, options.standalone ? 64.0 : 38.0, 0, height_ - 44};
    if (options.standalone) height_ += 26, frame_.bottom += 26;
    y_ticks_ = with_room(y_, chart.y, chart.y.ticks, 7, kLine, [&](double v) { return y(v); });
    frame_.left = widest_of(mapped(y_ticks_, &Tick::text)) + 14;
    frame_.right = options.width - (spread_ ? 0 : widest_of(names_)) - 16;
    // Of measured lengths a tick at each; the marks and the ends have their text first.
    std::vector<double> at = mapped(chart.marks, &Mark::x);
    int round = options.width < 500 ? 6 : 9;
    if (!measured.empty() && measured.size() <= 32) {
      at.insert(at.end(), {*measured.begin(), *measured.rbegin()});
      extend(at, measured);
      round = 0;
    }
    x_ticks_ = with_room(x_, chart.x, at, round, 0, [&](double v) { return x(v); });
  }

  Drawing draw() {
    std::string out = open_svg("lines", chart_.title, options_.width, height_, options_,
                               cat(" data-x-label=\"", escaped(chart_.x.label), "\"",
                                   chart_.x.tokens ? " data-tokens=\"1\"" : ""));
    axes(out);
    for (std::size_t i = 0; i < chart_.marks.size(); ++i) mark(out, i);
    if (nothing_) {
      out += svg_text("empty", frame_.middle(), (frame_.top + frame_.bottom) / 2, "middle",
                      "nothing measured yet");
    }
    if (!chart_.dots) out += "<g class=\"curves\">\n";
    for (std::size_t i = 0; i < chart_.series.size(); ++i) series(out, i);
    if (!chart_.dots) out += "</g>\n";
    names(out);
    out += cat("<g class=\"cursor\" data-frame=\"", px(frame_.left), ",", px(frame_.top), ",",
               px(frame_.right), ",", px(frame_.bottom), "\"></g>\n</svg>\n");
    return {std::move(out), options_.width, height_};
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

  // The name of a line has those of the lines that it hides: "far:pi = auto". They have none.
  void name_lines() {
    names_.resize(chart_.series.size());
    std::vector<std::size_t> hidden(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const Series& s = chart_.series[i];
      std::size_t first = 0;
      while (!same_points(chart_.series[first], s)) ++first;
      names_[first] += cat(first < i ? " = " : "", shortened(s.name, kLabel));
      hidden[first] += first < i;
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (hidden[i] == 0) continue;
      if (character_count(names_[i]) <= (options_.width < 500 ? kLabel : 30)) continue;
      names_[i] = cat(shortened(chart_.series[i].name, kLabel), " = ", hidden[i],
                      hidden[i] == 1 ? " other" : " others");
    }
  }

  struct Tick {
    double value;
    std::string text;
  };

  // Ticks at these values, those without room without their text, and the round ones with room.
  template <typename At>
  static std::vector<Tick> with_room(const Range& range, const Axis& axis,
                                     const std::vector<double>& exact, int round, double height,
                                     At at) {
    std::vector<Tick> out;
    std::vector<Box> taken;
    const auto add = [&](double value, bool keep) {
      Tick t{value, tick_text(axis, value)};
      const double half = (height > 0 ? height : width_of(t.text) + 6) / 2;
      const Box box{at(t.value) - half, 0, at(t.value) + half, 0};
      const auto overlaps = [&](const Box& b) { return box.left < b.right && b.left < box.right; };
      const bool room = find_by(taken, overlaps) == nullptr;
      if (room) taken.push_back(box);
      if (!room) t.text.clear();
      if (room || keep) out.push_back(std::move(t));
    };
    for (const double v : exact) {
      if (range.place(v) >= 0 && range.place(v) <= 1) add(v, true);
    }
    if (round == 0) return out;
    for (const double v : ticks_of(range, axis.tokens, round)) add(v, false);
    return out;
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
      if (t.text.empty()) continue;
      out += svg_line("grid", frame_.left, y(t.value), frame_.right, y(t.value));
      out += svg_text("tick", frame_.left - 7, y(t.value) + 4, "end", t.text);
    }
    if (y_.spacing == Spacing::linear && y_.low < 0 && y_.high > 0) {
      out += svg_line("base", frame_.left, y(0), frame_.right, y(0));
    }
    out += svg_line("base", frame_.left, frame_.bottom, frame_.right, frame_.bottom);
    for (const Tick& t : x_ticks_) {
      out += svg_line("base", x(t.value), frame_.bottom, x(t.value), frame_.bottom + 4);
      if (t.text.empty()) continue;
      out += svg_text("tick", x(t.value), frame_.bottom + 17, "middle", t.text);
    }
    out += svg_text("axis", frame_.middle(), frame_.bottom + 36, "middle", chart_.x.label);
    out += svg_text("axis", options_.standalone ? 12 : 0, frame_.top - 24, "start", chart_.y.label);
    out += "</g>\n";
  }

  // Its label is above the frame: of two marks the first has it to the left, the other to the
  // right.
  void mark(std::string& out, std::size_t index) const {
    const Mark& m = chart_.marks[index];
    const double at = x(m.x);
    if (!std::isfinite(at)) return;
    const double half = width_of(m.label) / 2;
    double middle = at;
    if (chart_.marks.size() > 1) middle += index == 0 ? 3 - half : half - 3;
    middle = std::clamp(middle, std::min(half, frame_.right - half), frame_.right - half);
    out += cat("<g class=\"mark\" data-x=\"", number(m.x), "\">",
               svg_line("at", at, frame_.top, at, frame_.bottom),
               svg_text("name", middle, frame_.top - 5, "middle", m.label), "</g>\n");
  }

  // In full; of a curve, what a reader of its points could use.
  static std::string field(double value, bool dense) {
    if (!std::isfinite(value)) return "";
    return dense ? significant(value, 6) : number(value);
  }

  bool is_shown(const ChartPoint& p) const {
    return std::isfinite(x(p.x)) && std::isfinite(y_.place(p.y));
  }

  void series(std::string& out, std::size_t index) {
    const Series& s = chart_.series[index];
    const std::vector<ChartPoint> points = thinned(s.points, x_, frame_.right - frame_.left);
    const bool dense = points.size() > kDense;
    std::vector<std::string> values, places;
    for (const ChartPoint& p : points) {
      if (!std::isfinite(p.x)) continue;
      values.push_back(cat(number(p.x), ",", field(p.y, dense), ",", field(p.low, dense), ",",
                           field(p.high, dense)));
      const bool shown = std::isfinite(p.y) && std::isfinite(x(p.x)) && std::isfinite(y(p.y));
      places.push_back(cat(std::isfinite(x(p.x)) ? px(x(p.x)) : "", ",", shown ? px(y(p.y)) : ""));
    }
    out += cat("<g class=\"series c", s.colour, s.dashed ? " dashed" : "", dense ? " dense" : "",
               chart_.series.size() > 3 ? " many" : "", "\" data-name=\"", escaped(s.name),
               "\" data-values=\"", joined(values, ";"), "\" data-places=\"", joined(places, ";"),
               "\">\n");
    paths_.emplace_back();
    if (!names_[index].empty()) {
      // Runs of points without a gap.
      std::vector<ChartPoint> run;
      for (const ChartPoint& p : points) {
        if (is_shown(p)) {
          run.push_back(p);
        } else {
          stroke(out, s, run);
          run.clear();
        }
      }
      stroke(out, s, run);
      if (s.root && is_shown(*s.root)) out += dot(s.colour, x(s.root->x), y(s.root->y), 5);
    }
    out += "</g>\n";
  }

  void stroke(std::string& out, const Series& s, const std::vector<ChartPoint>& run) {
    if (run.empty()) return;
    std::string upper, lower, line;
    for (const ChartPoint& p : run) {
      walk_to({x(p.x), y(p.y)}, line.empty());
      line += cat(line.empty() ? "M" : "L", px(x(p.x)), " ", px(y(p.y)));
      if (!std::isfinite(p.low) || !std::isfinite(p.high)) continue;
      const double low = y_.spacing == Spacing::log ? std::max(p.low, y_.low) : p.low;
      upper += cat(upper.empty() ? "M" : "L", px(x(p.x)), " ", px(y(p.high)));
      lower = cat("L", px(x(p.x)), " ", px(y(low)), lower);
    }
    if (!upper.empty() && run.size() > 1) {
      out += cat("<path class=\"band\" d=\"", upper, lower, "Z\"/>\n");
    }
    if (run.size() > 1) out += cat("<path class=\"line\" d=\"", line, "\"/>\n");
    if (run.size() > 1 && (!chart_.dots || run.size() > kDense)) return;
    for (const ChartPoint& p : run) {
      if (run.size() == 1 && std::isfinite(p.low) && std::isfinite(p.high)) {
        out += svg_line("whisker", x(p.x), y(std::max(p.low, y_.low)), x(p.x), y(p.high));
      }
      out += dot(s.colour, x(p.x), y(p.y), 3.5);
    }
  }

  // The places along a line, for its name and those of others.
  void walk_to(const Place& to, bool first) {
    constexpr double kStep = 5;
    std::vector<Place>& path = paths_.back();
    const Place from = first || path.empty() ? to : path.back();
    const int steps = int(std::hypot(to.x - from.x, to.y - from.y) / kStep);
    for (int i = 1; i < steps; ++i) {
      const double part = double(i) / steps;
      path.push_back({from.x + part * (to.x - from.x), from.y + part * (to.y - from.y)});
    }
    path.push_back(to);
  }

  struct Label {
    std::size_t index;  // of the series
    Place from;         // of its line
    Box box;
  };

  // Where a name near one of these places of its line is farthest from other lines and names.
  Label best_label(std::size_t index, const std::vector<Place>& places) const {
    constexpr double kEnough = 26;  // far from others
    const double wide = width_of(names_[index]);
    std::vector<Place> corners = {{7, -5 - kHigh}, {7, 5}, {7, -kHigh / 2}};
    for (const double away : {7.0, 30.0, 60.0, 90.0}) {
      corners.insert(corners.end(), {{-away - wide, -kHigh / 2},
                                     {-away - wide, -5 - kHigh},
                                     {away, away / 2},
                                     {-away - wide, -away / 2 - kHigh}});
    }
    Label best{};
    double most = -1e9;
    for (const Place& p : places) {
      for (const Place& c : corners) {
        const Box box{p.x + c.x, p.y + c.y, p.x + c.x + wide, p.y + c.y + kHigh};
        const double away = box.gap(p);
        double score = kEnough - away / 8;
        if (box.left < frame_.left || box.right > options_.width || box.top < frame_.top - 2 ||
            box.bottom > frame_.bottom) {
          score -= 1000;
        }
        for (std::size_t i = 0; i < paths_.size() && score > most; ++i) {
          for (const Place& q : paths_[i]) {
            const double gap = box.gap(q);
            const double own = gap < 2 ? -50 : score;
            const double other = std::min(gap - away / 8, 3 * Box{p.x, p.y, p.x, p.y}.gap(q));
            score = std::min(score, i == index ? own : other);
          }
        }
        for (const Label& other : labels_) score -= box.gap(other.box) < 3 ? 500 : 0;
        if (score > most) most = score, best = {index, p, box};
      }
    }
    return best;
  }

  // Names along the lines; those of lines over lengths that end early next to their last point (at
  // the right edge they would seem to go on); others at the right edge.
  void names(std::string& out) {
    std::vector<Label> edge;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (paths_[i].empty()) continue;
      const Place last = paths_[i].back();
      const bool early = chart_.x.tokens && last.x + width_of(names_[i]) + 12 < frame_.right;
      if (!early && !spread_) {
        edge.push_back({i, last, {frame_.right + 10, 0, options_.width, 0}});
      } else {
        labels_.push_back(best_label(i, spread_ ? paths_[i] : std::vector{last}));
      }
    }
    set_apart(edge);
    extend(labels_, edge);
    out += "<g class=\"ends\" aria-hidden=\"true\">\n";
    for (const auto& [index, from, box] : labels_) {
      const int colour = chart_.series[index].colour;
      const double middle = (box.top + box.bottom) / 2;
      if (box.gap(from) > 12 || (box.gap(from) > 8 && std::abs(middle - from.y) > 2)) {
        const bool before = from.x < box.left;
        out += svg_line(cat("leader c", colour), from.x + (before ? 4 : -4), from.y,
                        before ? box.left - 2 : box.right + 2, middle);
      }
      out += svg_text(cat("end c", colour), box.left, box.bottom - 2, "start", names_[index]);
    }
    out += "</g>\n";
  }

  // Names that would overlap are pushed apart: the mean of all down and all up.
  void set_apart(std::vector<Label>& edge) const {
    std::stable_sort(edge.begin(), edge.end(),
                     [](const Label& a, const Label& b) { return a.from.y < b.from.y; });
    const double count = double(edge.size());
    const double gap = std::min(kLine, (frame_.bottom - frame_.top + kLine) / std::max(1.0, count));
    double down = -1e9;
    for (Label& l : edge) l.box.top = down = std::max(l.from.y, down + gap);
    double up = 1e9;
    for (std::size_t i = edge.size(); i-- > 0;) {
      up = std::min(edge[i].from.y, up - gap);
      const double first = frame_.top + double(i) * gap;
      const double last = frame_.bottom - (count - 1 - double(i)) * gap;
      const double middle = (edge[i].box.top + up) / 2;
      edge[i].box.top = std::min(std::max(middle, first), std::max(first, last)) - kHigh / 2;
      edge[i].box.bottom = edge[i].box.top + kHigh;
    }
  }

  const LineChart& chart_;
  SvgOptions options_;
  bool spread_;
  double height_;
  bool nothing_ = false;
  std::vector<std::string> names_;  // empty: another line has it
  Range x_, y_;
  std::vector<Tick> x_ticks_, y_ticks_;
  Box frame_{};
  std::vector<std::vector<Place>> paths_;
  std::vector<Label> labels_;
};

Drawing draw_map(const HeatMap& map, const SvgOptions& options) {
  const auto cell_value = [&](std::size_t r, std::size_t c) {
    return r < map.values.size() && c < map.values[r].size() ? map.values[r][c] : kNothing;
  };
  const auto cell_text = [&](std::size_t r, std::size_t c) {
    const double value = cell_value(r, c);
    if (!std::isfinite(value)) return std::string("-");
    if (!map.texts.empty()) return map.texts[r][c];
    return map.percent ? fixed(100 * value, 0) : value_text(value);
  };
  const Range range{map.low, map.high > map.low ? map.high : map.low + 1, Spacing::linear};
  const double left = widest_of(map.rows) + 12;
  const double top = options.standalone ? 62 : 22;
  const double cells = double(std::max<std::size_t>(1, map.columns.size()));
  const double cell = std::clamp((options.width - left - 8) / cells, 2.0, 64.0);
  const double row = std::clamp(cell * 0.62, kLine, 26.0);
  const double key = map.key.empty() ? 0 : width_of(map.key) + 11 * 16 + 60;
  const double width = std::max({left + cell * cells + 8, left + key,
                                 options.standalone ? width_of(map.title) * 1.3 + 24 : 140.0});
  const double below = top + row * double(map.rows.size());
  const double height = below + (map.key.empty() ? 42 : 78);
  double widest_text = 0;  // all cells show numbers, or none does
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      widest_text = std::max(widest_text, width_of(cell_text(r, c)));
    }
  }
  std::string out = open_svg(map.shades == Shades::verdict ? "heat" : "heat amount", map.title,
                             width, height, options);
  out += svg_text("axis", options.standalone ? 12 : 0, top - 9, "start", map.y_label);
  // Labels of rows and columns are left out where they would overlap.
  const std::size_t row_step = std::size_t(std::ceil(kLine / row));
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + row * double(r);
    if (r % row_step == 0) out += svg_text("tick", left - 6, y + row / 2 + 4, "end", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = cell_value(r, c);
      const double place = std::clamp(range.place(value), 0.0, 1.0);
      const std::string text = cell_text(r, c);
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
  if (!map.key.empty()) {
    out += cat("<g class=\"key\">", svg_text("axis", left, below + 60, "start", map.key));
    double x = left + width_of(map.key) + 8;
    out += svg_text("tick", x, below + 60, "start", value_text(map.low));
    x += width_of(value_text(map.low)) + 4;
    for (int shade = 0; shade <= 10; ++shade, x += 16) {
      out += cat("<g class=\"h", shade, "\"><rect x=\"", px(x), "\" y=\"", px(below + 50),
                 "\" width=\"16\" height=\"12\"/></g>");
    }
    out += cat(svg_text("tick", x + 6, below + 60, "start", value_text(map.high)), "</g>\n");
  }
  return {out + "</svg>\n", width, height};
}

}  // namespace

std::string to_svg(const LineChart& chart, const SvgOptions& options) {
  return LineDrawing(chart, options).draw().svg;
}

std::string to_svg(const HeatMap& map, const SvgOptions& options) {
  return draw_map(map, options).svg;
}

std::string svg_file(const std::vector<Figure>& figures) {
  SvgOptions options{.width = 760, .standalone = true};
  std::string charts;
  double width = 0;
  const auto add = [&](const Drawing& drawing) {
    charts += drawing.svg;
    width = std::max(width, drawing.width);
    options.y += drawing.height;
  };
  for (const Figure& f : figures) {
    if (!f.is_map()) {
      add(LineDrawing(std::get<LineChart>(f.content), options).draw());
      continue;
    }
    for (HeatMap map : std::get<std::vector<HeatMap>>(f.content)) {
      if (map.title != f.title) map.title = cat(f.title, ", ", map.title);
      add(draw_map(map, options));
    }
  }
  return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", px(width), " ",
             px(options.y), "\" width=\"", px(width), "\" height=\"", px(options.y), "\"><style>",
             chart_style(), "</style>\n<g class=\"chart\"><rect class=\"paper\" ",
             "width=\"100%\" height=\"100%\"/></g>\n", charts, "</svg>\n");
}

std::string chart_style() { return embedded::chart_css; }

}  // namespace mrrope::report
