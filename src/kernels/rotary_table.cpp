// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.h"
#include "kernels/half.h"
#include "kernels/rotary_simd.h"
#include "mrrope/rotary.h"

namespace mrrope {

namespace {

constexpr std::int64_t kMostPositions = std::int64_t(1) << 31;
constexpr std::int64_t kBlock = 256;  // rows between two positions with sines of their own
constexpr std::align_val_t kAlignment{64};

// The cosines of every pair at one position, then the sines. Angles of position * theta + phase are
// kept exact: what the double loses is turned after it.
void turns_at(std::int64_t position, const std::vector<double>& theta,
              const std::vector<double>& phase, double scale, double* turns) {
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const double product = double(position) * theta[i];
    const double angle = product + phase[i];
    const double rest =
        std::fma(double(position), theta[i], -product) + (phase[i] - (angle - product));
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    turns[i] = scale * (c - rest * s);
    turns[theta.size() + i] = scale * (s + rest * c);
  }
}

void store(const double* values, std::size_t count, Element element, std::byte* to) {
  if (element == Element::f32) {
    auto* out = reinterpret_cast<float*>(to);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(values[i]);
    return;
  }
  auto* out = reinterpret_cast<std::uint16_t*>(to);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = float(values[i]);
    out[i] = element == Element::f16 ? f16_from(value) : bf16_from(value);
  }
}

// The turn by a followed by the turn by b; each holds the cosines of all pairs, then the sines.
void add_turns(const double* a, const double* b, std::size_t pairs, double* out) {
  const double* as = a + pairs;
  const double* bs = b + pairs;
  for (std::size_t i = 0; i < pairs; ++i) {
    out[i] = a[i] * b[i] - as[i] * bs[i];
    out[i + pairs] = as[i] * b[i] + a[i] * bs[i];
  }
}

void check_element(Element element) {
  if (element == Element::f32 || element == Element::f16 || element == Element::bf16) return;
  refuse(cat("element ", int(element), " is not an Element"), "use f32, f16 or bf16");
}

double scale_of(const Plan& plan) {
  return plan.attention_scale() * plan.geometry().trained_attention_scale;
}

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
  std::ranges::sort(all, [](const Dimension& a, const Dimension& b) {
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

  if (heads.from == heads.to) {
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

const char* to_string(Element element) noexcept {
  constexpr const char* kNames[] = {"f32", "f16", "bf16"};
  return kNames[std::size_t(element)];
}

std::size_t bytes_of(Element element) noexcept { return element == Element::f32 ? 4 : 2; }

void RotaryTable::Free::operator()(std::byte* rows) const noexcept {
  ::operator delete(rows, kAlignment);
}

RotaryTable::RotaryTable(const Plan& plan, std::int64_t first, std::int64_t end, Element element)
    : RotaryTable({plan.theta(), {}, scale_of(plan), plan.geometry().pairing}, first, end,
                  element) {}

RotaryTable RotaryTable::turning(const Plan& from, const Plan& to, std::int64_t first,
                                 std::int64_t end, Element element) {
  const Geometry& a = from.geometry();
  const Geometry& b = to.geometry();
  refuse_if(a.rotary_dim != b.rotary_dim || a.pairing != b.pairing,
            cat("cannot turn keys of rotary_dim ", a.rotary_dim, ", ", to_string(a.pairing),
                " into rotary_dim ", b.rotary_dim, ", ", to_string(b.pairing)),
            "both plans must belong to one model");
  RotaryAngles angles{{}, {}, scale_of(to) / scale_of(from), a.pairing};
  for (std::size_t i = 0; i < from.theta().size(); ++i) {
    angles.theta.push_back(to.theta()[i] - from.theta()[i]);
  }
  return {std::move(angles), first, end, element};
}

RotaryTable::RotaryTable(RotaryAngles angles, std::int64_t first, std::int64_t end, Element element)
    : angles_(std::move(angles)), element_(element), first_(first), end_(first) {
  angles_.phase.resize(angles_.theta.size(), 0);
  refuse_if(first < 0 || end < first || end > kMostPositions,
            cat("a table of the positions ", first, " to ", end), "give 0 <= first <= end <= 2^31");
  check_element(element);
  row_bytes_ = 2 * angles_.theta.size() * bytes_of(element);
  grow(end);
}

void RotaryTable::grow(std::int64_t end) {
  if (end <= end_) return;
  refuse_if(end > kMostPositions, cat("a table up to position ", end), "2^31 is the most");
  const std::size_t pairs = angles_.theta.size();
  if (end - first_ > capacity_) {
    // Half as much again where a table grows step by step.
    const std::int64_t wanted =
        std::max(end - first_, std::min(capacity_ + capacity_ / 2, kMostPositions - first_));
    const std::size_t bytes = std::size_t(wanted) * row_bytes_;
    decltype(rows_) rows(static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)));
    if (!rows) {
      throw Error(
          ErrorKind::out_of_memory,
          cat("no memory for a table of ", wanted, " positions, ", bytes_text(double(bytes))),
          "make it for fewer positions, or in f16");
    }
    if (end_ > first_)
      std::memcpy(rows.get(), rows_.get(), std::size_t(end_ - first_) * row_bytes_);
    rows_ = std::move(rows);
    capacity_ = wanted;
  }

  // cos(a + b) and sin(a + b), a a multiple of kBlock and b the step from there: two calls of libm
  // for 256 rows. In double, so that the only rounding that shows is the last one; and by position
  // alone, so that a table that grew equals one made at once.
  const std::int64_t steps =
      end_ / kBlock == (end - 1) / kBlock ? end - 1 - end_ / kBlock * kBlock : kBlock - 1;
  const std::vector<double> no_phase(pairs);
  std::vector<double> step(std::size_t(steps + 1) * 2 * pairs);
  for (std::int64_t b = 0; b <= steps; ++b) {
    turns_at(b, angles_.theta, no_phase, 1, step.data() + std::size_t(b) * 2 * pairs);
  }
  std::vector<double> base(2 * pairs);
  std::vector<double> row(2 * pairs);
  for (std::int64_t position = end_; position < end; ++position) {
    const std::int64_t b = position % kBlock;
    if (b == 0 || position == end_) {
      turns_at(position - b, angles_.theta, angles_.phase, angles_.scale, base.data());
    }
    add_turns(base.data(), step.data() + std::size_t(b) * 2 * pairs, pairs, row.data());
    store(row.data(), 2 * pairs, element_,
          rows_.get() + std::size_t(position - first_) * row_bytes_);
  }
  end_ = end;
}

void check_batch(const Batch& batch, int rotary_dim) {
  check_element(batch.element);
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
