// SPDX-License-Identifier: Apache-2.0
// One fuzzer. MRROPE_FUZZ_TARGET: the function of targets.h that it feeds.
#include <cstdint>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mrrope::fuzz::MRROPE_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
