// SPDX-License-Identifier: Apache-2.0
#include "tune/refine.h"

#include <nlopt.h>

#include <algorithm>
#include <exception>
#include <memory>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::tune {

namespace {

constexpr double kLastStep = 0.1;  // of the first: finer steps would chase the noise of the texts

struct Call {
  const std::function<std::optional<double>(const std::vector<double>&)>& f;
  nlopt_opt optimiser;
  std::exception_ptr thrown;  // no exception may cross the C code
  double last = 0;
};

double call(unsigned n, const double* x, double* /*gradient*/, void* data) {
  auto& c = *static_cast<Call*>(data);
  try {
    if (const auto value = c.f({x, x + n})) {
      c.last = *value;
      return *value;
    }
  } catch (...) {
    c.thrown = std::current_exception();
  }
  nlopt_force_stop(c.optimiser);
  return c.last;
}

}  // namespace

void refine(const Box& box, std::vector<double> start,
            const std::function<std::optional<double>(const std::vector<double>&)>& f) {
  const std::size_t n = start.size();
  std::vector<double> step(n);
  std::vector<double> tolerance(n);
  for (std::size_t i = 0; i < n; ++i) {
    start[i] = std::clamp(start[i], box.lower[i], box.upper[i]);
    step[i] = std::min(box.step[i], 0.45 * (box.upper[i] - box.lower[i]));  // BOBYQA needs room
    tolerance[i] = kLastStep * step[i];
  }
  const std::unique_ptr<nlopt_opt_s, void (*)(nlopt_opt)> optimiser(
      nlopt_create(NLOPT_LN_BOBYQA, unsigned(n)), nlopt_destroy);
  if (!optimiser) throw Error(ErrorKind::out_of_memory, "no memory for the local search");
  Call c{f, optimiser.get(), nullptr, 0};
  nlopt_set_lower_bounds(c.optimiser, box.lower.data());
  nlopt_set_upper_bounds(c.optimiser, box.upper.data());
  nlopt_set_initial_step(c.optimiser, step.data());
  nlopt_set_xtol_abs(c.optimiser, tolerance.data());
  nlopt_set_min_objective(c.optimiser, call, &c);
  double value = 0;
  const nlopt_result result = nlopt_optimize(c.optimiser, start.data(), &value);
  if (c.thrown) std::rethrow_exception(c.thrown);
  // On a staircase BOBYQA ends with a roundoff error, which is fine.
  if (result < 0 && result != NLOPT_FORCED_STOP && result != NLOPT_ROUNDOFF_LIMITED) {
    throw Error(ErrorKind::failed, cat("the local search failed: ", nlopt_result_to_string(result)),
                "this is a bug: please report it");
  }
}

}  // namespace mrrope::tune
