// SPDX-License-Identifier: Apache-2.0
#include "report/page/html_page.h"

#include <set>

#include "base/sha256.h"
#include "base/text.h"
#include "base/utf8.h"
#include "mrrope/version.h"

namespace mrrope::report {

namespace {

constexpr std::size_t kManyColumns = 16;  // maps with more columns go below each other

// What a policy calls a digest: the bytes of the SHA-256 in base 64.
std::string policy_digest(const std::string& content) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256(content) + "00";  // three hexadecimal digits are two of base 64
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 3) {
    const auto bits = std::stoul(hex.substr(i, 3), nullptr, 16);
    out += {kDigits[bits >> 6], kDigits[bits & 63]};
  }
  out.back() = '=';  // not part of the digest
  return "'sha256-" + out + "'";
}

std::string data_part(const DataTable& table, const std::string& file) {
  return cat("<details><summary>Data</summary>\n", to_html(table), "<a download=\"", escaped(file),
             ".csv\" href=\"data:text/csv;charset=utf-8,", percent_encoded(to_csv(table)),
             "\">Download as CSV</a></details>\n");
}

// For wide pages and for narrow ones with the same text size; across a whole page also for those in
// between.
std::string all_widths(const LineChart& chart, bool full) {
  const auto one = [&](const char* name, double width) {
    return cat("<div class=\"", name, "\">", to_svg(chart, {.width = width}), "</div>\n");
  };
  return cat(one("wide", full ? 1112 : 600), full ? one("middle", 740) : "", one("narrow", 368));
}

DataTable table_of(const LineChart& chart) {
  DataTable table;
  table.caption = chart.title;
  table.header = {chart.x.label};
  table.text_columns = 0;
  std::set<double> xs;
  for (const Series& s : chart.series) {
    table.header.push_back(s.name);
    const auto has_error = [](const ChartPoint& p) { return std::isfinite(p.high - p.low); };
    if (find_by(s.points, has_error)) table.header.push_back(s.name + " +-");
    for (const ChartPoint& p : s.points) {
      if (std::isfinite(p.x)) xs.insert(p.x);
    }
  }
  // A curve is its own table: some hundred rows of it are enough to read.
  constexpr std::size_t kMaxRows = 256;
  const std::size_t step = (xs.size() + kMaxRows - 1) / kMaxRows;
  std::size_t index = 0;
  for (const double x : xs) {
    if (step > 1 && index++ % step != 0) continue;
    std::vector<std::string> row = {x == std::floor(x) && std::abs(x) < 1e15 ? fixed(x, 0)
                                                                             : number(x)};
    for (const Series& s : chart.series) {
      const ChartPoint* at = find_by(s.points, &ChartPoint::x, x);
      const ChartPoint p = at != nullptr ? *at : ChartPoint();
      row.push_back(std::isfinite(p.y) ? significant(p.y, 6) : "");
      if (table.header.size() > row.size() && table.header[row.size()] == s.name + " +-") {
        const double half = (p.high - p.low) / 2;
        row.push_back(std::isfinite(half) ? significant(half, 3) : "");
      }
    }
    table.rows.push_back(std::move(row));
  }
  if (step > 1) table.caption += cat(" (every ", step, "th of ", xs.size(), " values)");
  return table;
}

DataTable table_of(const std::vector<HeatMap>& maps) {
  DataTable table;
  if (maps.empty()) return table;
  table.header = {"map", maps.front().y_label};
  for (const std::string& c : maps.front().columns) table.header.push_back(c);
  table.text_columns = 1;
  for (const HeatMap& map : maps) {
    for (std::size_t r = 0; r < map.rows.size(); ++r) {
      std::vector<std::string> row = {map.title, map.rows[r]};
      for (const double v : map.values[r]) {
        row.push_back(std::isfinite(v) ? significant(v, 6) : "");
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

bool is_formula(const std::string& cell) {
  if (cell.find_first_of("=+-@") != 0 || cell.size() == 1) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  return end == cell.c_str();
}

// Takes the first character off a text: one byte where it is not UTF-8.
std::string_view taken(std::string_view& text) {
  const std::string_view first =
      text.substr(0, std::max<std::size_t>(1, first_character(text).size));
  text.remove_prefix(first.size());
  return first;
}

}  // namespace

std::string to_page(const std::string& title, const std::string& lead, const std::string& body) {
  const std::string style = cat(chart_style(), embedded::page_css);
  const std::string script = embedded::page_js;
  return cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ",
      policy_digest(style), "; script-src ", policy_digest(script),
      "; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n",
      kPageMark, "\n<title>", escaped(title), "</title>\n<style>", style,
      "</style>\n</head>\n<body>\n", "<div class=\"page\">\n<header><p><b>mrrope</b> ", lead,
      "</p><button id=\"theme\" type=\"button\" hidden>Theme: auto</button></header>\n<main>\n",
      body, "</main>\n<footer>Made by mrrope ", escaped(version()),
      ". This file is complete: it loads nothing.</footer>\n</div>\n"
      "<div id=\"tip\" role=\"status\" aria-live=\"polite\"></div>\n<script>",
      script, "</script>\n</body>\n</html>\n");
}

std::string to_html(const Figure& figure, bool full) {
  std::string charts;
  DataTable table;
  if (!figure.is_map()) {
    const auto& chart = std::get<LineChart>(figure.content);
    table = table_of(chart);
    charts = all_widths(chart, full);
  } else {
    const auto& maps = std::get<std::vector<HeatMap>>(figure.content);
    table = table_of(maps);
    table.caption = figure.title;
    const bool many = !maps.empty() && maps.front().columns.size() > kManyColumns;
    for (const HeatMap& map : maps) {
      const std::string head =
          map.title == figure.title ? "" : cat("<h3>", escaped(map.title), "</h3>");
      charts += cat("<div class=\"map\">", head,
                    to_svg(map, {.width = many ? full ? 1112.0 : 900.0 : 320.0}), "</div>\n");
    }
    charts = cat(many ? "<div>\n" : "<div class=\"maps\">\n", charts, "</div>\n");
  }
  return cat(full ? "<figure class=\"full\">" : "<figure>", "\n<figcaption><h3>",
             escaped(figure.title), "</h3></figcaption>\n", charts,
             figure.note.empty() ? "" : cat("<p class=\"see\">", escaped(figure.note), "</p>\n"),
             data_part(table, figure.file), "</figure>\n");
}

std::string escaped(std::string_view text) {
  static constexpr std::pair<char, const char*> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const bool valid = first_character(text).size > 0;
    const std::string_view character = taken(text);
    const char c = character.front();
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7F;
    const auto* entity = find_by(kEntities, [&](const auto& known) { return known.first == c; });
    out += !valid || control ? "&#65533;" : entity != nullptr ? entity->second : character;
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_' || c == ',';
    out += plain ? std::string(1, c) : std::string{'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) taken(text);
  return count;
}

std::string shortened(const std::string& text, std::size_t max) {
  std::string_view rest = text;
  for (std::size_t i = 0; i < max && !rest.empty(); ++i) taken(rest);
  return rest.empty() ? text : text.substr(0, text.size() - rest.size()) + "...";
}

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
    for (std::string& cell : row) {
      if (is_formula(cell)) cell.insert(0, "'");
    }
    out += csv_line(row);
  };
  put(table.header);
  for (const auto& row : table.rows) put(row);
  return out;
}

}  // namespace mrrope::report
