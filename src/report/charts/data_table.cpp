// SPDX-License-Identifier: Apache-2.0
#include "report/charts/data_table.h"

#include <cstdlib>

#include "base/text.h"
#include "base/text_table.h"
#include "report/charts/markup.h"

namespace mrrope::report {

namespace {

bool is_formula(const std::string& cell) {
  if (cell.find_first_of("=+-@") != 0 || cell.size() == 1) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  return end == cell.c_str();
}

std::string safe_cell(const std::string& cell) { return is_formula(cell) ? "'" + cell : cell; }

}  // namespace

std::string to_html(const DataTable& table) {
  std::string out = cat("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                        escaped(table.caption), "\"><table><caption>", escaped(table.caption),
                        "</caption>\n<thead><tr>");
  const auto side = [&](std::size_t i) {
    if (table.text_at_end && i + 1 == table.header.size()) return " class=\"last\"";
    return i < table.text_columns ? "" : " class=\"n\"";
  };
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    out += cat("<th scope=\"col\"", side(i), ">", escaped(table.header[i]), "</th>");
  }
  out += "</tr></thead>\n<tbody>";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += i == 0 ? cat("<th scope=\"row\"", side(i), ">", escaped(row[i]), "</th>")
                    : cat("<td", side(i), ">", escaped(row[i]), "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string to_csv(const DataTable& table) {
  std::string out;
  const auto put = [&](std::vector<std::string> row) {
    for (std::string& cell : row) cell = safe_cell(cell);
    out += csv_line(row);
  };
  put(table.header);
  for (const auto& row : table.rows) put(row);
  return out;
}

}  // namespace mrrope::report
