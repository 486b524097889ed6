// SPDX-License-Identifier: Apache-2.0
// Prompts are data: a text with placeholders, and the beginning of the answer. The built-in ones
// are written for this project; a JSON file replaces any of them (docs/benchmarks.md lists all):
//   {"ruler/vt": {"text": "... {context} ... {value} ...", "prefix": " ..."}, ...}
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mrrope::eval {

struct Prompt {
  std::string text;
  std::string prefix;  // the beginning of the answer; --answer-prefix off removes it
};

using Prompts = std::map<std::string, Prompt>;

const Prompts& builtin_prompts();

// The built-in prompts, with those of the file in place of theirs. A replacement may use only the
// placeholders of the built-in prompt, and must use those without which it does not ask anything:
// all but {type}, {count}, {i} and one of {input} and {target}. Throws Error: failed, corrupt.
// sha256: that of the file's bytes, if asked for.
Prompts read_prompts(const std::filesystem::path& path, std::string* sha256 = nullptr);

// For a run's identity: the prompts whose names begin so.
nlohmann::ordered_json prompts_identity(const Prompts& prompts, std::string_view beginning);

using Fill = std::vector<std::pair<std::string_view, std::string_view>>;

// Replaces every {name} in one pass: inserted text is not searched again.
std::string fill(std::string_view text, const Fill& values);

}  // namespace mrrope::eval
