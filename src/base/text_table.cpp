// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <algorithm>

namespace mrrope {

std::string aligned(const std::vector<TextRow>& rows) {
  std::vector<std::size_t> width;
  for (const TextRow& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const TextRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(width[i] - row[i].size(), ' ');
      text += i == 0 ? row[i] + blanks : "  " + blanks + row[i];
    }
    text += "\n";
  }
  return text;
}

}  // namespace mrrope
