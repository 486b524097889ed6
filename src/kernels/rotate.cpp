// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "kernels/batch.h"
#include "kernels/rotary_simd.h"
#include "mrrope/rotary.h"

namespace mrrope {

namespace {

RotaryWork checked(const RotaryTable& table, const Batch& batch) {
  check_batch(batch, 2 * table.pairs());
  check_positions(batch, table.first(), table.end());
  // The rows hold the scale; the inverse divides by it, and once more for the rotation it undoes.
  const double gain = batch.inverse ? 1 / (table.scale() * table.scale()) : 1;
  return {&table, &batch, float(gain), float(batch.inverse ? -gain : gain)};
}

std::int64_t head_count(const Batch& batch) {
  return batch.sequences * batch.tokens * (batch.queries.count + batch.keys.count);
}

struct Share {
  const RotaryWork* work;
  std::int64_t heads;
  int parts;
};

void rotate_share(const RotaryWork& work, std::int64_t heads, int part, int parts) {
  // Products of 2^60 heads and 2^20 parts would not fit.
  const std::int64_t each = heads / parts;
  const std::int64_t rest = heads % parts;
  const std::int64_t begin = part * each + std::min<std::int64_t>(part, rest);
  rotate_heads(work, begin, begin + each + (part < rest ? 1 : 0));
}

constexpr std::int64_t kLeastBytes = 1 << 16;  // less work is done before another thread wakes up
constexpr int kPartsPerThread = 4;             // so that a thread that was held up does less

}  // namespace

void rotate(const RotaryTable& table, const Batch& batch) {
  const RotaryWork work = checked(table, batch);
  rotate_heads(work, 0, head_count(batch));
}

void rotate(const RotaryTable& table, const Batch& batch, Workers& workers) {
  const RotaryWork work = checked(table, batch);
  const std::int64_t heads = head_count(batch);
  const std::int64_t head_bytes = batch.head_dim * std::int64_t(bytes_of(batch.element));
  const std::int64_t most = std::int64_t(workers.threads()) * kPartsPerThread;
  const std::int64_t worth = heads / std::max<std::int64_t>(1, kLeastBytes / head_bytes);
  const int parts = workers.threads() == 1 ? 1 : int(std::clamp<std::int64_t>(worth, 1, most));
  Share share{&work, heads, parts};
  workers.run(
      [](void* context, int part) {
        const auto& s = *static_cast<const Share*>(context);
        rotate_share(*s.work, s.heads, part, s.parts);
      },
      &share, parts);
}

void rotate_part(const RotaryTable& table, const Batch& batch, int part, int parts) {
  if (parts < 1 || part < 0 || part >= parts) {
    refuse(cat("part ", part, " of ", parts), "parts count from 0 to parts - 1");
  }
  const RotaryWork work = checked(table, batch);
  rotate_share(work, head_count(batch), part, parts);
}

}  // namespace mrrope
