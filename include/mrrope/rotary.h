// SPDX-License-Identifier: Apache-2.0
// The plain rotation of one head vector: slow, obvious, and the judge of every fast kernel.
// Angles are formed and reduced in long double, so the only error left is the rounding of the
// elements themselves.
#pragma once

#include <span>

#include "mrrope/plan.h"

namespace mrrope {

// x holds at least rotary_dim elements; those past rotary_dim are left alone. The vector is turned
// by position * theta and multiplied by the plan's and the model's attention scale.
void rotate_reference(const Plan& plan, double position, std::span<double> x);
void rotate_reference(const Plan& plan, double position, std::span<long double> x);

// Takes rotate_reference back.
void unrotate_reference(const Plan& plan, double position, std::span<double> x);
void unrotate_reference(const Plan& plan, double position, std::span<long double> x);

// From a vector rotated under `from` to the same vector rotated under `to`, in one turn by
// position * (theta_to - theta_from). Throws Error (usage) if the two plans differ in rotary_dim
// or pairing.
void turn_reference(const Plan& from, const Plan& to, double position, std::span<double> x);
void turn_reference(const Plan& from, const Plan& to, double position, std::span<long double> x);

}  // namespace mrrope
