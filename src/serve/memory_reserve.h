// SPDX-License-Identifier: Apache-2.0
// Address space set aside for the ends of requests. nlohmann's destructors allocate, and where that
// fails the process ends: a request that runs out of memory needs some to be given up.
#pragma once

namespace mrrope::serve {

// From now on `new` takes from the reserve where nothing else is left: all of it while an exception
// unwinds, half of it otherwise.
void install_memory_reserve();

// Fills it again; true if it is full. Without install_memory_reserve() it stays as it is.
bool fill_memory_reserve();

}  // namespace mrrope::serve
