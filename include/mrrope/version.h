// SPDX-License-Identifier: Apache-2.0
// The version, defined once; CMake reads it from here.
#pragma once

#define MRROPE_VERSION "0.1.0"

namespace mrrope {

// The version of the library that is linked, which may differ from the header's.
const char* version() noexcept;

}  // namespace mrrope
