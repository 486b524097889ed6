// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"

namespace mrrope {

namespace {

constexpr std::int64_t kMost = std::int64_t(1) << 40;  // of any count, so that products fit

struct Dimension {
  std::int64_t stride;
  std::int64_t size;
};

std::array<Dimension, 3> dimensions(const Batch& batch, int heads, const Strides& strides) {
  return {
      {{strides.sequence, batch.sequences}, {strides.token, batch.tokens}, {strides.head, heads}}};
}

// Elements from the lowest to the highest of all heads, as offsets from the first.
struct Extent {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

Extent extent(const Batch& batch, int heads, const Strides& strides) {
  Extent e{0, batch.head_dim};
  for (const auto& [stride, size] : dimensions(batch, heads, strides)) {
    const std::int64_t reach = stride * (size - 1);
    (reach < 0 ? e.low : e.high) += reach;
  }
  return e;
}

// Every stride must reach over what the smaller strides fill.
void check_strides(const Batch& batch, int heads, const Strides& strides, const char* what,
                   bool written) {
  auto all = dimensions(batch, heads, strides);
  for (const auto& [stride, size] : all) {
    if (size > 1 && (stride > kMost / size || stride < -(kMost / size))) {
      refuse(cat("a stride of ", stride, " elements in the ", what),
             "strides count elements, not bytes");
    }
  }
  if (!written) return;
  std::sort(all.begin(), all.end(), [](const Dimension& a, const Dimension& b) {
    return std::abs(a.stride) < std::abs(b.stride);
  });
  std::int64_t filled = batch.head_dim;
  for (const auto& [stride, size] : all) {
    if (size == 1) continue;
    if (std::abs(stride) < filled) {
      refuse(cat("heads of the ", what, " overlap: a stride of ", stride, " over ", filled,
                 " elements"),
             "strides count elements; token_major() and head_major() make the usual ones");
    }
    filled += std::abs(stride) * (size - 1);
  }
}

void check_heads(const Batch& batch, const Heads& heads, const char* what) {
  if (heads.count == 0) return;
  if (heads.count < 0 || heads.count > (1 << 20)) {
    refuse(cat(heads.count, " heads of ", what), "count is the number of heads of one token");
  }
  if (!heads.from || !heads.to) {
    refuse(cat("the ", what, heads.from ? ".to" : ".from", " pointer is null"),
           "set count to 0 to leave them out; in_place() sets both pointers");
  }
  const std::size_t bytes = bytes_of(batch.element);
  if (reinterpret_cast<std::uintptr_t>(heads.from) % bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(heads.to) % bytes != 0) {
    refuse(cat("the ", what, " are not aligned to ", bytes, " bytes"),
           "elements must be aligned to their own size");
  }
  check_strides(batch, heads.count, heads.from_strides, what, false);
  check_strides(batch, heads.count, heads.to_strides, what, true);

  const bool same = heads.from == heads.to;
  if (same) {
    const auto a = dimensions(batch, heads.count, heads.from_strides);
    const auto b = dimensions(batch, heads.count, heads.to_strides);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].size > 1 && a[i].stride != b[i].stride) {
        refuse(cat("the ", what, " are rotated in place with two sets of strides"),
               "use in_place(), or another buffer for the result");
      }
    }
    return;
  }
  const auto begin = [&](const void* p, std::int64_t offset) {
    return std::intptr_t(reinterpret_cast<std::uintptr_t>(p)) + offset * std::intptr_t(bytes);
  };
  const Extent from = extent(batch, heads.count, heads.from_strides);
  const Extent to = extent(batch, heads.count, heads.to_strides);
  if (begin(heads.from, from.low) < begin(heads.to, to.high) &&
      begin(heads.to, to.low) < begin(heads.from, from.high)) {
    refuse(cat("the ", what, " and their result overlap without being the same"),
           "rotate in place, or into a buffer of its own");
  }
}

}  // namespace

void check_batch(const Batch& batch, int rotary_dim) {
  if (batch.element != Element::f32 && batch.element != Element::f16 &&
      batch.element != Element::bf16) {
    refuse(cat("element ", int(batch.element), " is not an Element"), "use f32, f16 or bf16");
  }
  if (batch.head_dim < rotary_dim) {
    refuse(cat("heads of ", batch.head_dim, " elements under a table of rotary_dim ", rotary_dim),
           "the table belongs to another model, or head_dim is wrong");
  }
  if (batch.head_dim > (1 << 20)) {
    refuse(cat("heads of ", batch.head_dim, " elements"), "head_dim is the size of one head");
  }
  if (batch.sequences < 0 || batch.tokens < 0 || batch.sequences > kMost || batch.tokens > kMost ||
      (batch.tokens > 0 && batch.sequences > kMost / batch.tokens)) {
    refuse(cat(batch.sequences, " sequences of ", batch.tokens, " tokens"),
           "counts start at 0, and 2^40 tokens are the most");
  }
  if (batch.sequences == 0 || batch.tokens == 0) return;
  check_heads(batch, batch.queries, "queries");
  check_heads(batch, batch.keys, "keys");
}

void check_range(std::int64_t first, std::int64_t count, std::int64_t table_first,
                 std::int64_t table_end) {
  if (count > 0 && (first < table_first || first > table_end - count)) {
    refuse(cat(count, " positions from ", first, " are not all in the table of ", table_first,
               " to ", table_end - 1),
           "grow() the table, or make one for these positions");
  }
}

void check_positions(const Batch& batch, std::int64_t table_first, std::int64_t table_end) {
  if (batch.sequences == 0) return;
  if (!batch.positions) {
    check_range(batch.first_position, batch.tokens, table_first, table_end);
    return;
  }
  const std::int64_t count = batch.sequences * batch.tokens;
  if (count == 0) return;
  const auto [low, high] = std::minmax_element(batch.positions, batch.positions + count);
  for (const std::int32_t position : {*low, *high}) {
    if (position < table_first || position >= table_end) {
      refuse(cat("position ", position, " is not in the table of ", table_first, " to ",
                 table_end - 1),
             "grow() the table, or make one for these positions");
    }
  }
}

}  // namespace mrrope
