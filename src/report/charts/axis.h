// SPDX-License-Identifier: Apache-2.0
// Axes: from values to places on a chart, and their ticks.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mrrope::report {

enum class Spacing { linear, log };

struct Axis {
  std::string label;
  Spacing spacing = Spacing::linear;
  bool tokens = false;               // a length of text: ticks at powers of two, written 4k
  std::vector<double> include = {};  // values that the axis always shows
};

// The range of values. Never empty: low < high, both finite, both positive on a log axis.
struct Range {
  double low = 0;
  double high = 1;
  Spacing spacing = Spacing::linear;

  // 0 at low, 1 at high; not clamped. NaN where the value has no place.
  double place(double value) const;
};

// Of the finite values (on a log axis: the positive ones). No value at all gives 0..1 or 1..10, a
// single one gets room on both sides.
Range range_of(std::span<const double> values, Spacing spacing);

struct Tick {
  double value;
  std::string text;
};

// Round values inside the range, ascending, at most `max` (2 or more).
std::vector<Tick> ticks_of(const Range& range, const Axis& axis, int max);

// For people: 4 significant digits, without an exponent from 0.0001 to 10 million; "-" for NaN.
std::string value_text(double value);

// A value on this axis, for people.
std::string axis_text(const Axis& axis, double value);

}  // namespace mrrope::report
