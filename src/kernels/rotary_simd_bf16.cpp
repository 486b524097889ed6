// SPDX-License-Identifier: Apache-2.0
// The rotation of bf16 once more, with the instruction by which newer Arm processors round to it.
// Highway 1.0 has no target for them; CMake gives this file the compiler's flag.
#define HWY_COMPILE_ONLY_STATIC
#define MRROPE_ROUNDS_BF16 1
#include "kernels/rotary_simd.cpp"
