// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/text.h"
#include "mrrope/rotary.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

namespace {

using Cosines = std::vector<double>;  // and then as many sines

// To a few 2^-53: what the product loses is added back.
Cosines exact_row(const std::vector<double>& theta, std::int64_t position) {
  Cosines row(2 * theta.size());
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const double angle = theta[i] * double(position);
    const double lost = std::fma(theta[i], double(position), -angle);
    row[i] = std::cos(angle) - lost * std::sin(angle);
    row[theta.size() + i] = std::sin(angle) + lost * std::cos(angle);
  }
  return row;
}

// The usual way: a float position times a float frequency.
Cosines product_row(const std::vector<double>& theta, std::int64_t position) {
  Cosines row(2 * theta.size());
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const float angle = float(theta[i]) * float(position);
    row[i] = std::cos(double(angle));
    row[theta.size() + i] = std::sin(double(angle));
  }
  return row;
}

Cosines table_row(const std::vector<double>& theta, std::int64_t position) {
  RotaryAngles angles;
  angles.theta = theta;
  const RotaryTable table(angles, position, position + 1);
  std::vector<float> row(2 * theta.size());
  std::memcpy(row.data(), table.row(position), row.size() * sizeof(float));
  return {row.begin(), row.end()};
}

// The largest error of a cosine or sine at some positions up to `last`, from three quarters of it.
double worst_error(const std::vector<double>& theta, std::int64_t last,
                   Cosines (*row_of)(const std::vector<double>&, std::int64_t)) {
  double worst = 0;
  const std::int64_t step = std::max<std::int64_t>(1, last / 4 / 16);
  for (std::int64_t position = last; position > last * 3 / 4; position -= step) {
    const Cosines wanted = exact_row(theta, position), got = row_of(theta, position);
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(got[i] - wanted[i]));
    }
  }
  return worst;
}

}  // namespace

TheoryFigure rounding_figure(const Geometry& g) {
  constexpr int kOctaves = 24;
  const std::vector<double> theta = trained_theta(g);
  TheoryFigure result;
  result.title = "How exact cosines and sines are at each position";
  result.words =
      cat(geometry_text(g),
          "\nThe largest error of a cosine or sine near each position, over all pairs. Float "
          "product: a float position times a float frequency.\n");
  report::DataTable table = new_table("Errors", {"position", "float product", "mrrope, f32"});
  report::LineChart chart = curve_chart(g, "Error of a cosine or sine",
                                        {"position", report::Spacing::log, true}, "error");
  chart.y.spacing = report::Spacing::log;
  report::Palette palette;
  report::Series product = palette.series("float product");
  report::Series ours = palette.series("mrrope, f32");
  ordered_json& list = result.json["positions"] = ordered_json::array();
  for (int octave = 4; octave <= kOctaves; ++octave) {
    const std::int64_t position = (std::int64_t(1) << octave) - 1;
    const double theirs = worst_error(theta, position, product_row);
    const double mine = worst_error(theta, position, table_row);
    product.points.push_back({double(position), theirs});
    ours.points.push_back({double(position), mine});
    table.rows.push_back({cat(position), significant(theirs, 3), significant(mine, 3)});
    list.push_back({{"position", position}, {"float_product", theirs}, {"mrrope_f32", mine}});
  }
  chart.series = {std::move(product), std::move(ours)};
  for (const auto& [name, bits] : {std::pair{"rounding of bf16", 8}, {"rounding of f16", 11}}) {
    report::Series line = palette.series(name);
    line.dashed = true;
    line.points = {{15, std::exp2(-bits)}, {std::exp2(kOctaves), std::exp2(-bits)}};
    chart.series.push_back(std::move(line));
  }
  result.json["geometry"] = geometry_fields(g);
  set_table(result, std::move(table));
  add_chart(result, "rounding", std::move(chart),
            "Where the upper line passes a dashed one, the angle is less exact than the numbers "
            "that it rotates.");
  return result;
}

}  // namespace mrrope::theory
