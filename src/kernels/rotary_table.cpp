// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.h"
#include "kernels/half.h"
#include "mrrope/error.h"
#include "mrrope/rotary.h"

namespace mrrope {

namespace {

constexpr std::int64_t kMostPositions = std::int64_t(1) << 31;
constexpr std::int64_t kBlock = 256;  // rows between two positions with sines of their own
constexpr std::align_val_t kAlignment{64};

struct Turn {
  double cos;
  double sin;
};

// Of position * theta + phase, kept exact: what the double loses is turned after it.
Turn turn_at(std::int64_t position, double theta, double phase) {
  const double product = double(position) * theta;
  const double angle = product + phase;
  const double rest = std::fma(double(position), theta, -product) + (phase - (angle - product));
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  return {c - rest * s, s + rest * c};
}

// The cosines of every pair at one position, then the sines.
void turns_at(std::int64_t position, const std::vector<double>& theta,
              const std::vector<double>& phase, double scale, double* turns) {
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const Turn turn = turn_at(position, theta[i], phase[i]);
    turns[i] = scale * turn.cos;
    turns[theta.size() + i] = scale * turn.sin;
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
  const double* ac = a;
  const double* as = a + pairs;
  const double* bc = b;
  const double* bs = b + pairs;
  for (std::size_t i = 0; i < pairs; ++i) {
    out[i] = ac[i] * bc[i] - as[i] * bs[i];
    out[i + pairs] = as[i] * bc[i] + ac[i] * bs[i];
  }
}

double scale_of(const Plan& plan) {
  return plan.attention_scale() * plan.geometry().trained_attention_scale;
}

}  // namespace

const char* to_string(Element element) noexcept {
  switch (element) {
    case Element::f32:
      return "f32";
    case Element::f16:
      return "f16";
    case Element::bf16:
      return "bf16";
  }
  return "?";
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
  if (a.rotary_dim != b.rotary_dim || a.pairing != b.pairing) {
    refuse(cat("cannot turn keys of rotary_dim ", a.rotary_dim, ", ", to_string(a.pairing),
               " into rotary_dim ", b.rotary_dim, ", ", to_string(b.pairing)),
           "both plans must belong to one model");
  }
  RotaryAngles angles{{}, {}, scale_of(to) / scale_of(from), a.pairing};
  for (std::size_t i = 0; i < from.theta().size(); ++i) {
    angles.theta.push_back(to.theta()[i] - from.theta()[i]);
  }
  return {std::move(angles), first, end, element};
}

RotaryTable::RotaryTable(RotaryAngles angles, std::int64_t first, std::int64_t end, Element element)
    : angles_(std::move(angles)), element_(element), first_(first), end_(first) {
  angles_.phase.resize(angles_.theta.size(), 0);
  if (first < 0 || end < first || end > kMostPositions) {
    refuse(cat("a table of the positions ", first, " to ", end), "give 0 <= first <= end <= 2^31");
  }
  if (element != Element::f32 && element != Element::f16 && element != Element::bf16) {
    refuse(cat("element ", int(element), " is not an Element"), "use f32, f16 or bf16");
  }
  row_bytes_ = 2 * angles_.theta.size() * bytes_of(element);
  grow(end);
}

void RotaryTable::grow(std::int64_t end) {
  if (end <= end_) return;
  if (end > kMostPositions) {
    refuse(cat("a table up to position ", end), "2^31 is the most");
  }
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
  std::vector<double> step(std::size_t(steps + 1) * 2 * pairs);
  for (std::int64_t b = 0; b <= steps; ++b) {
    turns_at(b, angles_.theta, std::vector<double>(pairs), 1,
             step.data() + std::size_t(b) * 2 * pairs);
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

}  // namespace mrrope
