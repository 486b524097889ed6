// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>
#include <string>
#include <variant>

#include "core/text.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"
#include "mrrope/model.h"
#include "mrrope/mrrope.h"
#include "mrrope/plan.h"
#include "mrrope/version.h"

struct mrrope_plan {
  mrrope::Plan plan;
};

namespace {

thread_local std::string last_error;

using mrrope::Error;
using mrrope::ErrorKind;

// Runs `make`, hands its plan out, and turns every exception into a status.
template <typename Make>
int guarded(mrrope_plan** out, Make make) noexcept {
  try {
    last_error.clear();
    if (!out) throw Error(ErrorKind::usage, "the out pointer is null");
    *out = nullptr;
    *out = new mrrope_plan{make()};
    return 0;
  } catch (const Error& e) {
    last_error = e.hint().empty() ? e.what() : mrrope::cat(e.what(), " (", e.hint(), ")");
    return e.exit_code();
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
    return static_cast<int>(ErrorKind::out_of_memory);
  } catch (const std::exception& e) {
    last_error = e.what();
    return static_cast<int>(ErrorKind::failed);
  }
}

std::string checked(const char* text, const char* what) {
  if (!text) throw Error(ErrorKind::usage, mrrope::cat(what, " is null"));
  return text;
}

}  // namespace

const char* mrrope_version(void) { return mrrope::version(); }

const char* mrrope_last_error(void) { return last_error.c_str(); }

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
    return make_plan(g, e);
  });
}

int mrrope_plan_create_for_model(const char* path, const char* method, int64_t ctx,
                                 mrrope_plan** out) {
  return guarded(out, [&] {
    const mrrope::Model model = mrrope::read_model(checked(path, "path"));
    mrrope::Extension e;
    e.method = checked(method, "method");
    if (ctx < 1) throw Error(ErrorKind::usage, mrrope::cat("a context of ", ctx, " tokens"));
    e.length = ctx;
    if (e.method != "dynamic-ntk") {
      e.scale = std::max(1.0, double(ctx) / double(model.geometry.train_length));
    }
    return make_plan(model.geometry, e);
  });
}

int mrrope_plan_load(const char* path, mrrope_plan** out) {
  return guarded(out, [&] {
    auto content = mrrope::read_plan_file(checked(path, "path"));
    if (auto* plan = std::get_if<mrrope::Plan>(&content)) return std::move(*plan);
    throw Error(ErrorKind::usage, mrrope::cat(path, " holds a ladder, which is many plans"),
                "make a static plan: mrrope plan --method pro ... -o FILE");
  });
}

void mrrope_plan_free(mrrope_plan* plan) { delete plan; }

size_t mrrope_plan_pairs(const mrrope_plan* plan) { return plan->plan.factor().size(); }
const double* mrrope_plan_theta(const mrrope_plan* plan) { return plan->plan.theta().data(); }
const double* mrrope_plan_factor(const mrrope_plan* plan) { return plan->plan.factor().data(); }
double mrrope_plan_attention_scale(const mrrope_plan* plan) { return plan->plan.attention_scale(); }
int32_t mrrope_plan_low(const mrrope_plan* plan) { return plan->plan.boundaries().low; }
int32_t mrrope_plan_high(const mrrope_plan* plan) { return plan->plan.boundaries().high; }
