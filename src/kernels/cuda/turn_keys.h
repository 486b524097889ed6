// SPDX-License-Identifier: Apache-2.0
// How the engine turns cached keys on an NVIDIA GPU. The add-on for CUDA brings this function with
// the backend, so that the command finds it by its name.
#pragma once

#include <span>

#include "mrrope/rotary.h"

namespace mrrope {

using TurnKeys = void(const RotaryAngles& angles, std::span<const Batch> batches, int device);

}  // namespace mrrope

// rotate_and_wait() under these angles.
extern "C" mrrope::TurnKeys mrrope_turn_keys;
