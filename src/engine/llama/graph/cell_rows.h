// SPDX-License-Identifier: Apache-2.0
// Some rows of one cache, kept here while numbers take their place there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/llama/llama_api.h"

namespace mrrope::engine {

class CellRows {
 public:
  // Reads the rows of these cells.
  CellRows(ggml_tensor* cache, std::span<const std::int32_t> cells);

  // Writes a number into each of the cells.
  void mark();
  // Writes the rows into cells, in their order.
  void put(std::span<const std::int32_t> cells) const;

  // The cells that hold the numbers, in their order; nothing unless each is in one cell.
  std::optional<std::vector<std::int32_t>> find() const;
  // Whether they hold the numbers in their order.
  bool marked_at(std::span<const std::int32_t> cells) const;

 private:
  std::vector<std::uint8_t> marks() const;

  ggml_tensor* cache_;
  std::vector<std::int32_t> cells_;
  std::size_t row_;
  std::vector<std::uint8_t> rows_;
};

}  // namespace mrrope::engine
