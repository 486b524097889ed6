// SPDX-License-Identifier: Apache-2.0
// Plans from files.
#include <algorithm>
#include <variant>

#include "capi/guard.h"
#include "core/methods.h"
#include "formats/plan_file.h"
#include "mrrope/model.h"

using mrrope::Error;
using mrrope::ErrorKind;
using mrrope::capi::checked;
using mrrope::capi::guarded;

int mrrope_plan_create_for_model(const char* path, const char* method, int64_t ctx,
                                 mrrope_plan** out) {
  return guarded(out, [&] {
    const mrrope::Model model = mrrope::read_model(checked(path, "path"));
    mrrope::Extension e;
    e.method = checked(method, "method");
    if (ctx < 1)
      throw Error(ErrorKind::usage, mrrope::cat("a context of ", ctx, " tokens is not possible"),
                  "give at least 1 token");
    e.length = ctx;
    if (mrrope::method_row(e.method).reach != mrrope::Reach::length) {
      e.scale = std::max(1.0, double(ctx) / double(model.geometry.train_length));
    }
    return make_plan(model.geometry, e);
  });
}

int mrrope_plan_load(const char* path, mrrope_plan** out) {
  return guarded(out, [&] {
    const mrrope::Ladder ladder = mrrope::read_plan_file(checked(path, "path"));
    if (ladder.growth() == mrrope::Growth::none) return ladder.rungs().front().plan;
    throw Error(ErrorKind::usage, mrrope::cat(path, " holds a ladder, which is more than one plan"),
                "make a static plan: mrrope plan --method pro ... -o FILE");
  });
}
