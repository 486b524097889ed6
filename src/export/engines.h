// SPDX-License-Identifier: Apache-2.0
// What each engine can do with a plan on a model, and what to type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"

namespace mrrope::exporting {

enum class Advice {
  as_is,       // with the existing files and the given command
  needs_file,  // after mrrope export
  cannot,
};
const char* to_string(Advice advice) noexcept;

struct EngineAdvice {
  std::string engine;
  Advice verdict = Advice::cannot;
  std::string why = {};                    // for needs_file and cannot
  std::vector<std::string> commands = {};  // one per line, ready for a shell
};

struct EngineQuestion {
  const Model& model;
  const Gguf* gguf = nullptr;  // null unless the model is a GGUF file
  const Plan& plan;
  std::int64_t length = 0;
  std::string how;  // the flags that produce the plan: "--method pro --ctx 128k"
};

// llama.cpp, ollama, transformers, vLLM, SGLang, in this order. Commands name files as `export`
// would write them; those for transformers, vLLM and SGLang contain all numbers and need no export.
std::vector<EngineAdvice> engine_advice(const EngineQuestion& question);
nlohmann::ordered_json to_json(const std::vector<EngineAdvice>& advice);

}  // namespace mrrope::exporting
