// SPDX-License-Identifier: Apache-2.0
// The checks that the CPU and the GPU share. They throw Error (usage) and write nothing.
#pragma once

#include "mrrope/rotary.h"

namespace mrrope {

// Everything but positions: counts, pointers, strides, rotary_dim against head_dim.
void check_batch(const Batch& batch, int rotary_dim);

// Positions [first, first + count) against the rows [table_first, table_end).
void check_range(std::int64_t first, std::int64_t count, std::int64_t table_first,
                 std::int64_t table_end);

// batch.positions or the range, against the rows; positions must be readable here.
void check_positions(const Batch& batch, std::int64_t table_first, std::int64_t table_end);

}  // namespace mrrope
