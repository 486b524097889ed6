// SPDX-License-Identifier: Apache-2.0
// What the handles of mrrope.h point to, and the guard that turns exceptions into error codes.
#pragma once

#include <new>
#include <string>

#include "base/text.h"
#include "mrrope/ladder.h"
#include "mrrope/mrrope.h"
#include "mrrope/rotary.h"

struct mrrope_plan {
  mrrope::Plan plan;
};
struct mrrope_table {
  mrrope::RotaryTable table;
};
struct mrrope_workers {
  mrrope::Workers workers;
};

namespace mrrope::capi {

// The last failure of the calling thread, behind mrrope_last_error() and its parts.
struct Failure {
  std::string text, message, hint;

  void set(std::string what, std::string how = {}) {
    text = how.empty() ? what : cat(what, " (", how, ")");
    message = std::move(what);
    hint = std::move(how);
  }
};
Failure& last_failure() noexcept;

// Runs `action` and turns every exception into a status.
template <typename Action>
int guarded(Action action) noexcept {
  try {
    last_failure() = {};
    action();
    return 0;
  } catch (const Error& e) {
    last_failure().set(e.what(), e.hint());
    return e.exit_code();
  } catch (const std::bad_alloc&) {
    last_failure().set("out of memory");
    return int(ErrorKind::out_of_memory);
  } catch (const std::exception& e) {
    last_failure().set(e.what());
    return int(ErrorKind::failed);
  }
}

// The same for a call that hands out what `make` returns.
template <typename Handle, typename Make>
int guarded(Handle** out, Make make) noexcept {
  return guarded([&] {
    if (!out) refuse("the out pointer is null");
    *out = nullptr;
    *out = new Handle{make()};
  });
}

template <typename T>
const T& checked(const T* pointer, const char* what) {
  if (!pointer) refuse(cat(what, " is null"));
  return *pointer;
}

inline std::string checked(const char* text, const char* what) {
  if (!text) refuse(cat(what, " is null"));
  return text;
}

// The one plan of a static method in its notation. Throws Error (usage) for a method that grows.
Plan static_plan(const Geometry& geometry, const std::string& method, std::int64_t ctx,
                 std::optional<double> scale);

// Throws Error (usage) on an invalid element.
Batch batch_of(const mrrope_batch* batch);

}  // namespace mrrope::capi
