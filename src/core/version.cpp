// SPDX-License-Identifier: Apache-2.0
#include "mrrope/version.h"

namespace mrrope {

const char* version() noexcept { return MRROPE_VERSION; }

}  // namespace mrrope
