// SPDX-License-Identifier: Apache-2.0
// Prompts are data: a text with places to fill, and the beginning of the answer. The built-in ones
// are in the project's own words; a JSON file replaces any of them (docs/benchmarks.md lists all):
//   {"ruler/vt": {"text": "... {context} ... {value} ...", "prefix": " ..."}, ...}
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mrrope {

struct Prompt {
  std::string text;
  std::string prefix;  // stands where the answer begins; may be left away (--answer-prefix off)
};

using Prompts = std::map<std::string, Prompt>;

const Prompts& builtin_prompts();

// The built-in ones with those of the file in their place. A built-in prompt's places are those a
// replacement may name, and {context} may not be left out. Throws Error: failed, corrupt.
Prompts read_prompts(const std::filesystem::path& path);

// What a run's identity holds of the prompts whose names begin so.
nlohmann::ordered_json prompts_identity(const Prompts& prompts, std::string_view beginning);

using Fill = std::vector<std::pair<std::string_view, std::string_view>>;

// Every {name} replaced, in one pass: what is filled in is never looked at again.
std::string fill(std::string_view text, const Fill& values);

}  // namespace mrrope
