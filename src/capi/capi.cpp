// SPDX-License-Identifier: Apache-2.0
// Plans from a geometry.
#include <cmath>

#include "capi/guard.h"
#include "core/methods.h"
#include "mrrope/version.h"

using mrrope::Error;
using mrrope::ErrorKind;
using mrrope::capi::checked;
using mrrope::capi::guarded;

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
    if (!geometry) throw Error(ErrorKind::usage, "geometry is null");
    if (geometry->pairing != MRROPE_HALVES && geometry->pairing != MRROPE_INTERLEAVED) {
      throw Error(ErrorKind::usage,
                  mrrope::cat("pairing ", geometry->pairing, " is neither 0 nor 1"),
                  "use MRROPE_HALVES or MRROPE_INTERLEAVED");
    }
    mrrope::Geometry g;
    g.rotary_dim = geometry->rotary_dim;
    g.base = geometry->base;
    g.train_length = geometry->train_length;
    g.pairing =
        geometry->pairing == MRROPE_HALVES ? mrrope::Pairing::halves : mrrope::Pairing::interleaved;
    mrrope::Extension e;
    e.method = checked(method, "method");
    e.scale = scale;
    if (mrrope::method_row(e.method).reach == mrrope::Reach::length) {
      if (!(scale >= 1 && scale * double(g.train_length) < 1e15)) {
        throw Error(ErrorKind::usage, mrrope::cat("scale ", scale, " is not possible"),
                    "give 1 or more");
      }
      e.scale = 1;
      e.length = std::llround(scale * double(g.train_length));
    }
    return make_plan(g, e);
  });
}

void mrrope_plan_free(mrrope_plan* plan) { delete plan; }

size_t mrrope_plan_pairs(const mrrope_plan* plan) { return plan->plan.factor().size(); }
const double* mrrope_plan_theta(const mrrope_plan* plan) { return plan->plan.theta().data(); }
const double* mrrope_plan_factor(const mrrope_plan* plan) { return plan->plan.factor().data(); }
double mrrope_plan_attention_scale(const mrrope_plan* plan) { return plan->plan.attention_scale(); }
int32_t mrrope_plan_low(const mrrope_plan* plan) { return plan->plan.boundaries().low; }
int32_t mrrope_plan_high(const mrrope_plan* plan) { return plan->plan.boundaries().high; }
