// SPDX-License-Identifier: Apache-2.0
// Help texts: -h shows the daily flags, --help all of them in groups.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mrrope::cli {

enum class Detail { daily, all };

// At most 100 columns.
std::string help_text(const CLI::App& app, Detail detail);

// "mrrope eval ppl"
std::string path_of(const CLI::App& verb);

// The verb that the words name: "eval ppl" of {"eval", "ppl", "model.gguf", "-h"}.
const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace mrrope::cli
