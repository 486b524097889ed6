// SPDX-License-Identifier: Apache-2.0
#include "report/charts/markup.h"

#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "base/text_table.h"

namespace mrrope::report {

namespace {

// Bytes of the UTF-8 character at the start; 0 where there is none.
std::size_t character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  unsigned code = first & (0xFF >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3F);
  }
  const bool too_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool no_character = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF;
  return too_long || no_character ? 0 : size;
}

bool is_formula(const std::string& cell) {
  if (cell.find_first_of("=+-@") != 0 || cell.size() == 1) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  return end == cell.c_str();
}

std::string safe_cell(const std::string& cell) { return is_formula(cell) ? "'" + cell : cell; }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_bytes(text);
    const unsigned char c = static_cast<unsigned char>(text.front());
    if (size == 0 || (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F) {
      out += "&#65533;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_' || c == ',';
    if (plain) {
      out += c;
      continue;
    }
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += code;
  }
  return out;
}

std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) {
    const std::size_t size = character_bytes(text);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return count;
}

std::string shortened(const std::string& text, std::size_t max) {
  std::string_view rest = text;
  for (std::size_t i = 0; i < max && !rest.empty(); ++i) {
    const std::size_t size = character_bytes(rest);
    rest.remove_prefix(size == 0 ? 1 : size);
  }
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
    for (std::string& cell : row) cell = safe_cell(cell);
    out += csv_line(row);
  };
  put(table.header);
  for (const auto& row : table.rows) put(row);
  return out;
}

}  // namespace mrrope::report
