// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/cell_rows.h"

#include <algorithm>
#include <cstring>

namespace mrrope::engine {

namespace {

// No key looks like this in all of its elements, whatever its type.
constexpr std::uint8_t kFiller = 0xA5;

// Calls use(cell, index, count) for every run of neighbouring cells.
template <typename Use>
void each_run(std::span<const std::int32_t> cells, const Use& use) {
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t end = first + 1;
    while (end < cells.size() && cells[end] == cells[end - 1] + 1) ++end;
    use(static_cast<std::size_t>(cells[first]), first, end - first);
    first = end;
  }
}

void read_rows(const ggml_tensor* cache, std::size_t row, std::span<const std::int32_t> cells,
               std::uint8_t* out) {
  each_run(cells, [&](std::size_t cell, std::size_t index, std::size_t count) {
    ggml_backend_tensor_get(cache, out + index * row, cell * row, count * row);
  });
}

void write_rows(ggml_tensor* cache, std::size_t row, std::span<const std::int32_t> cells,
                const std::uint8_t* in) {
  each_run(cells, [&](std::size_t cell, std::size_t index, std::size_t count) {
    ggml_backend_tensor_set(cache, in + index * row, cell * row, count * row);
  });
}

}  // namespace

CellRows::CellRows(ggml_tensor* cache, std::span<const std::int32_t> cells)
    : cache_(cache),
      cells_(cells.begin(), cells.end()),
      row_(cache->nb[1]),
      rows_(cells.size() * cache->nb[1]) {
  read_rows(cache_, row_, cells_, rows_.data());
}

// Per row: its number, then the filler.
std::vector<std::uint8_t> CellRows::marks() const {
  std::vector<std::uint8_t> all(rows_.size(), kFiller);
  for (std::uint32_t i = 0; i < cells_.size(); ++i) {
    std::memcpy(all.data() + i * row_, &i, std::min(sizeof i, row_));
  }
  return all;
}

void CellRows::mark() { write_rows(cache_, row_, cells_, marks().data()); }

void CellRows::put(std::span<const std::int32_t> cells) const {
  write_rows(cache_, row_, cells, rows_.data());
}

std::optional<std::vector<std::int32_t>> CellRows::find() const {
  constexpr std::size_t kAtOnce = 1 << 24;  // bytes
  const std::vector<std::uint8_t> wanted = marks();
  std::vector<std::int32_t> found(cells_.size(), -1);
  const auto total = static_cast<std::size_t>(ggml_nrows(cache_));
  const std::size_t step = std::max<std::size_t>(1, kAtOnce / row_);
  std::vector<std::uint8_t> part;
  for (std::size_t first = 0; first < total; first += step) {
    const std::size_t count = std::min(step, total - first);
    part.resize(count * row_);
    ggml_backend_tensor_get(cache_, part.data(), first * row_, part.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* row = part.data() + i * row_;
      std::uint32_t number = 0;
      std::memcpy(&number, row, std::min(sizeof number, row_));
      if (number >= cells_.size() || std::memcmp(row, wanted.data() + number * row_, row_) != 0) {
        continue;
      }
      if (found[number] >= 0) return std::nullopt;
      found[number] = static_cast<std::int32_t>(first + i);
    }
  }
  if (std::find(found.begin(), found.end(), -1) != found.end()) return std::nullopt;
  return found;
}

bool CellRows::marked_at(std::span<const std::int32_t> cells) const {
  std::vector<std::uint8_t> there(cells.size() * row_);
  read_rows(cache_, row_, cells, there.data());
  return there == marks();
}

}  // namespace mrrope::engine
