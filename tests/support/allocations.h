// SPDX-License-Identifier: Apache-2.0
// How often this program has called operator new; allocations.cpp replaces it.
#pragma once

#include <cstdint>

namespace mrrope::test {

std::int64_t allocations() noexcept;

}  // namespace mrrope::test
