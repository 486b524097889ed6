// SPDX-License-Identifier: Apache-2.0
#include "theory/theory_figure.h"

#include <algorithm>

#include "base/text.h"
#include "report/charts/markup.h"
#include "report/page/html_page.h"

namespace mrrope::theory {

std::string page_of(const TheoryFigure& result) {
  std::string body =
      cat("<section class=\"verdict\"><h1>", report::escaped(result.title), "</h1>\n");
  std::string line;
  for (const char c : result.words + "\n") {
    if (c != '\n') {
      line += c;
    } else if (!line.empty()) {
      body += cat("<p>", report::escaped(line), "</p>\n");
      line.clear();
    }
  }
  body += "</section>\n";
  std::string lines;
  std::string maps;
  for (const report::Figure& f : result.figures) {
    if (const auto* chart = std::get_if<report::LineChart>(&f.content)) {
      lines += figure(*chart, report::escaped(f.note), table_of(*chart), f.file);
    } else {
      const auto& content = std::get<std::vector<report::HeatMap>>(f.content);
      report::DataTable table = table_of(content);
      table.caption = f.title;
      maps += figure(content, f.title, report::escaped(f.note), table, f.file);
    }
  }
  if (!lines.empty()) body += cat("<div class=\"grid\">\n", lines, "</div>\n");
  body += maps;
  for (const report::DataTable& t : result.page) body += to_html(t);
  return report::to_page({cat("mrrope theory: ", result.title), "theory", body});
}

double reach_of(const Geometry& g, const std::vector<NamedPlan>& plans) {
  double reach = double(g.train_length);
  for (const NamedPlan& c : plans) {
    const Extension& e = c.plan.extension();
    reach = std::max({reach, e.scale * double(g.train_length), double(e.length)});
  }
  return reach;
}

std::string geometry_text(const Geometry& g) {
  return cat("rotary_dim ", g.rotary_dim, ", base ", g.base, ", window ", g.train_length);
}

nlohmann::ordered_json geometry_fields(const Geometry& g) {
  return {{"rotary_dim", g.rotary_dim}, {"base", g.base}, {"train_length", g.train_length}};
}

report::LineChart curve_chart(const Geometry& g, std::string title, report::Axis x,
                              std::string y_label) {
  report::LineChart chart;
  chart.title = std::move(title);
  chart.x = std::move(x);
  chart.y = {std::move(y_label), report::Spacing::linear, false};
  chart.dots = false;
  chart.marks = {{double(g.train_length), cat("window ", length_text(g.train_length))}};
  return chart;
}

void set_table(TheoryFigure& figure, report::DataTable table) {
  figure.data = table;
  figure.page = figure.terminal = {std::move(table)};
}

}  // namespace mrrope::theory
