// SPDX-License-Identifier: Apache-2.0
// Rotation on the CPU.
#include "capi/guard.h"

using mrrope::capi::batch_of;
using mrrope::capi::checked;
using mrrope::capi::guarded;

int mrrope_workers_create(int32_t threads, mrrope_workers** out) {
  return guarded([&] {
    if (!out) throw mrrope::Error(mrrope::ErrorKind::usage, "the out pointer is null");
    *out = nullptr;
    *out = new mrrope_workers{mrrope::Workers(threads)};
  });
}

void mrrope_workers_free(mrrope_workers* workers) { delete workers; }

int mrrope_rotate(const mrrope_table* table, const mrrope_batch* batch, mrrope_workers* workers) {
  return guarded([&] {
    if (workers) {
      rotate(checked(table, "table").table, batch_of(batch), workers->workers);
    } else {
      rotate(checked(table, "table").table, batch_of(batch));
    }
  });
}

int mrrope_rotate_part(const mrrope_table* table, const mrrope_batch* batch, int32_t part,
                       int32_t parts) {
  return guarded([&] { rotate_part(checked(table, "table").table, batch_of(batch), part, parts); });
}
