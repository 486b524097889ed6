// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a GGUF file alone: its weights are not read.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "model/tokenizer.h"

namespace mrrope::engine {

class NamedTokenizer : public Tokenizer {
 public:
  virtual std::string name() const = 0;  // for run.json
};

// Throws Error: unsupported, failed, corrupt.
std::unique_ptr<NamedTokenizer> open_vocabulary(const std::filesystem::path& file);

}  // namespace mrrope::engine
