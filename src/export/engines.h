// SPDX-License-Identifier: Apache-2.0
// What each engine can do with a plan on a model, and what to type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"

namespace mrrope {

enum class Advice {
  as_is,       // with the files there are, and the command given
  needs_file,  // after mrrope export
  cannot,
};
const char* to_string(Advice advice) noexcept;

struct EngineAdvice {
  std::string engine;
  Advice verdict = Advice::cannot;
  std::string why;                    // of needs_file and cannot
  std::vector<std::string> commands;  // one per line, ready for a shell
};

struct EngineQuestion {
  const Model& model;
  const Gguf* gguf = nullptr;  // where the model is one
  const Plan& plan;
  std::int64_t length = 0;
  std::string how;  // the flags that make the plan: "--method pro --ctx 128k"
};

// llama.cpp, ollama, transformers, vLLM, SGLang, in this order. Commands name files as `export`
// would write them; those of transformers, vLLM and SGLang need no export and carry all numbers.
std::vector<EngineAdvice> engine_advice(const EngineQuestion& question);

// A word for a shell, in quotes where it needs them.
std::string shell_word(const std::string& text);

}  // namespace mrrope
