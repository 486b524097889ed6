// SPDX-License-Identifier: Apache-2.0
// The checks that the CPU and the GPU share, which throw Error (usage) and write nothing; and the
// rotation of some heads, compiled once for every instruction set and chosen at run time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mrrope/rotary.h"

namespace mrrope {

// Everything but positions: counts, pointers, strides, rotary_dim against head_dim.
void check_batch(const Batch& batch, int rotary_dim);

// Positions [first, first + count) against the rows [table_first, table_end).
void check_range(std::int64_t first, std::int64_t count, std::int64_t table_first,
                 std::int64_t table_end);

// batch.positions or the range, against the rows; positions must be readable here.
void check_positions(const Batch& batch, std::int64_t table_first, std::int64_t table_end);

// What the checks have passed. Heads count through tokens and then heads: queries, then keys.
struct RotaryWork {
  const RotaryTable* table;
  const Batch* batch;
  float cos_gain;  // 1, or what makes the inverse
  float sin_gain;
};

// Heads [begin, end) of all tokens' heads. Writes, allocates and throws nothing else.
void rotate_heads(const RotaryWork& work, std::int64_t begin, std::int64_t end) noexcept;

// The same for bf16 on Arm processors that round to it; the caller makes sure of that. Linked only
// where the compiler knows the instruction.
void rotate_heads_bf16(const RotaryWork& work, std::int64_t begin, std::int64_t end) noexcept;

// For tests: the instruction sets that this machine has, and using one of them alone ("" again the
// best).
std::vector<std::string> simd_targets();
void use_simd_target(const std::string& name);

}  // namespace mrrope
