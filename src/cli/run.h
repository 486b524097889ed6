// SPDX-License-Identifier: Apache-2.0
// The command as one function, without the parser behind it: main.cpp needs no more.
#pragma once

namespace mrrope::cli {

// Parses, runs, and turns every failure into a message on stderr and an exit code.
int run(int argc, char** argv);

}  // namespace mrrope::cli
