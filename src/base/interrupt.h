// SPDX-License-Identifier: Apache-2.0
// The request to stop, set from a signal handler. Long computations check it between batches.
#pragma once

namespace mrrope {

// All three are safe in a signal handler.
void request_interrupt() noexcept;
bool interrupt_requested() noexcept;
void clear_interrupt() noexcept;

}  // namespace mrrope
