// SPDX-License-Identifier: Apache-2.0
// Rotation on the GPU; part of libmrrope_cuda.
#include "capi/guard.h"
#include "mrrope/rotary_cuda.h"

using mrrope::CudaRotaryTable;
using mrrope::capi::batch_of;
using mrrope::capi::checked;
using mrrope::capi::guarded;

struct mrrope_cuda_table {
  CudaRotaryTable table;
};

int mrrope_cuda_table_create(const mrrope_table* table, int32_t stored, mrrope_cuda_table** out) {
  return guarded(out, [&] {
    return CudaRotaryTable(checked(table, "table").table, stored
                                                              ? CudaRotaryTable::Angles::stored
                                                              : CudaRotaryTable::Angles::computed);
  });
}

void mrrope_cuda_table_free(mrrope_cuda_table* table) { delete table; }

int mrrope_cuda_rotate(const mrrope_cuda_table* table, const mrrope_batch* batch, void* stream) {
  return guarded([&] { rotate(checked(table, "table").table, batch_of(batch), stream); });
}

int mrrope_cuda_rotate_and_wait(const mrrope_table* table, const mrrope_batch* batch,
                                int32_t device) {
  return guarded([&] {
    const mrrope::Batch one = batch_of(batch);
    rotate_and_wait(checked(table, "table").table, {&one, 1}, device);
  });
}

int mrrope_cuda_check(const mrrope_cuda_table* table, void* stream) {
  return guarded([&] { checked(table, "table").table.check(stream); });
}
