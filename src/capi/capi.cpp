// SPDX-License-Identifier: Apache-2.0
// Plans of a geometry, and their tables.
#include <cmath>

#include "capi/guard.h"
#include "core/methods.h"
#include "mrrope/version.h"

using mrrope::cat;
using mrrope::refuse;
using mrrope::refuse_if;
using mrrope::capi::batch_of;
using mrrope::capi::checked;
using mrrope::capi::guarded;
using mrrope::capi::static_plan;

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
      refuse(cat("element ", element, " is not 0, 1 or 2"),
             "use MRROPE_F32, MRROPE_F16 or MRROPE_BF16");
  }
}

mrrope::Strides strides_of(const mrrope_strides& s) { return {s.sequence, s.token, s.head}; }

mrrope::Heads heads_of(const mrrope_heads& h) {
  return {h.count, h.from, strides_of(h.from_strides), h.to, strides_of(h.to_strides)};
}

}  // namespace

mrrope::capi::Failure& mrrope::capi::last_failure() noexcept {
  thread_local Failure failure;
  return failure;
}

const char* mrrope_version(void) { return mrrope::version(); }

const char* mrrope_last_error(void) { return mrrope::capi::last_failure().text.c_str(); }
const char* mrrope_last_message(void) { return mrrope::capi::last_failure().message.c_str(); }
const char* mrrope_last_hint(void) { return mrrope::capi::last_failure().hint.c_str(); }

int mrrope_plan_create(const mrrope_geometry* geometry, const char* method, double scale,
                       mrrope_plan** out) {
  return guarded(out, [&] {
    const mrrope_geometry& in = checked(geometry, "geometry");
    refuse_if(in.pairing != MRROPE_HALVES && in.pairing != MRROPE_INTERLEAVED,
              cat("pairing ", in.pairing, " is neither 0 nor 1"),
              "use MRROPE_HALVES or MRROPE_INTERLEAVED");
    const mrrope::Geometry g{
        in.rotary_dim, in.base, in.train_length,
        in.pairing == MRROPE_HALVES ? mrrope::Pairing::halves : mrrope::Pairing::interleaved};
    const std::string name = checked(method, "method");
    if (mrrope::method_row(mrrope::bare_name(name)).reach != mrrope::Reach::length) {
      return static_plan(g, name, 0, scale);
    }
    refuse_if(!(scale >= 1 && scale * double(g.train_length) < 1e15),
              cat("scale ", scale, " is not possible"), "give 1 or more");
    return static_plan(g, name, std::llround(scale * double(g.train_length)), std::nullopt);
  });
}

void mrrope_plan_free(mrrope_plan* plan) { delete plan; }

size_t mrrope_plan_pairs(const mrrope_plan* plan) { return plan->plan.factor().size(); }
const double* mrrope_plan_theta(const mrrope_plan* plan) { return plan->plan.theta().data(); }
const double* mrrope_plan_factor(const mrrope_plan* plan) { return plan->plan.factor().data(); }
double mrrope_plan_attention_scale(const mrrope_plan* plan) { return plan->plan.attention_scale(); }
int32_t mrrope_plan_low(const mrrope_plan* plan) { return plan->plan.boundaries().low; }
int32_t mrrope_plan_high(const mrrope_plan* plan) { return plan->plan.boundaries().high; }

mrrope::Plan mrrope::capi::static_plan(const Geometry& geometry, const std::string& method,
                                       std::int64_t ctx, std::optional<double> scale) {
  const MethodSpec spec = parse_method(method);
  refuse_if(spec.growth != Growth::none || is_auto(spec.name),
            cat(method, " is more than one plan"), "give a static method, e.g. pro");
  return make_ladder(geometry, spec, ctx, scale).rungs().front().plan;
}

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
