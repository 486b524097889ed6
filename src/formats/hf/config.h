// SPDX-License-Identifier: Apache-2.0
// Hugging Face config.json, as transformers 4 and 5 write it, as facts about a model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "formats/facts.h"

namespace mrrope {

// Where a composite model keeps its language model.
inline constexpr const char* kTextParts[] = {"text_config", "language_config", "llm_config"};

// `where` is the file, for messages. Throws Error: corrupt (names key and value) or unsupported.
Facts config_facts(const nlohmann::json& config, const std::string& where);

}  // namespace mrrope
