// SPDX-License-Identifier: Apache-2.0
// Tables, and the batch that the CPU and the GPU share.
#include "capi/guard.h"

using mrrope::Error;
using mrrope::ErrorKind;
using mrrope::capi::checked;
using mrrope::capi::guarded;

namespace {

mrrope::Element element_of(std::int32_t element) {
  switch (element) {
    case MRROPE_F32:
      return mrrope::Element::f32;
    case MRROPE_F16:
      return mrrope::Element::f16;
    case MRROPE_BF16:
      return mrrope::Element::bf16;
    default:
      throw Error(ErrorKind::usage, mrrope::cat("element ", element, " is not 0, 1 or 2"),
                  "use MRROPE_F32, MRROPE_F16 or MRROPE_BF16");
  }
}

mrrope::Strides strides_of(const mrrope_strides& s) { return {s.sequence, s.token, s.head}; }

mrrope::Heads heads_of(const mrrope_heads& h) {
  return {h.count, h.from, strides_of(h.from_strides), h.to, strides_of(h.to_strides)};
}

}  // namespace

mrrope::Batch mrrope::capi::batch_of(const mrrope_batch* batch) {
  const mrrope_batch& b = checked(batch, "batch");
  return {element_of(b.element), b.head_dim,  b.sequences,      b.tokens,      heads_of(b.queries),
          heads_of(b.keys),      b.positions, b.first_position, b.inverse != 0};
}

int mrrope_table_create(const mrrope_plan* plan, int64_t first, int64_t end, int32_t element,
                        mrrope_table** out) {
  return guarded(out, [&] {
    return mrrope::RotaryTable(checked(plan, "plan").plan, first, end, element_of(element));
  });
}

int mrrope_table_create_turning(const mrrope_plan* from, const mrrope_plan* to, int64_t first,
                                int64_t end, int32_t element, mrrope_table** out) {
  return guarded(out, [&] {
    return mrrope::RotaryTable::turning(checked(from, "from").plan, checked(to, "to").plan, first,
                                        end, element_of(element));
  });
}

int mrrope_table_grow(mrrope_table* table, int64_t end) {
  return guarded([&] {
    checked(table, "table");
    table->table.grow(end);
  });
}

void mrrope_table_free(mrrope_table* table) { delete table; }
