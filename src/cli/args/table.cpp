// SPDX-License-Identifier: Apache-2.0
#include "cli/args/table.h"

#include <algorithm>

namespace mrrope::cli {

std::string to_text(const Table& table, const std::vector<std::size_t>& left) {
  std::vector<std::size_t> width;
  const auto widen = [&](const std::vector<std::string>& row) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);

  std::string out;
  const auto put = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string pad(width[i] - row[i].size(), ' ');
      const bool to_left = std::find(left.begin(), left.end(), i) != left.end();
      line += to_left ? row[i] + pad : pad + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  put(table.header);
  for (const auto& row : table.rows) put(row);
  return out;
}

std::string to_csv(const Table& table) {
  std::string out;
  const auto put = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out += ',';
      if (row[i].find_first_of(",\"\n") == std::string::npos) {
        out += row[i];
        continue;
      }
      out += '"';
      for (const char c : row[i]) out += c == '"' ? "\"\"" : std::string(1, c);
      out += '"';
    }
    out += '\n';
  };
  put(table.header);
  for (const auto& row : table.rows) put(row);
  return out;
}

}  // namespace mrrope::cli
