// SPDX-License-Identifier: Apache-2.0
// A GGUF file with a tokenizer and no weights.
#pragma once

#include "models/gguf_writer.h"

namespace mrrope::test {

inline std::string utf8(unsigned code) {
  if (code < 0x80) return {char(code)};
  return {char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))};
}

// One token per byte, in GPT-2's alphabet: token n is byte n. pre: the name of its pre-tokenizer.
inline GgufWriter byte_vocabulary(const std::string& pre) {
  std::vector<std::string> tokens;
  unsigned next = 256;
  for (unsigned b = 0; b < 256; ++b) {
    const bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    tokens.push_back(utf8(visible ? b : next++));
  }
  GgufWriter file;
  file.text("general.architecture", "llama")
      .u32("llama.context_length", 4096)
      .u32("llama.embedding_length", 64)
      .u32("llama.block_count", 1)
      .u32("llama.feed_forward_length", 64)
      .u32("llama.attention.head_count", 4)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", pre)
      .strings("tokenizer.ggml.tokens", tokens)
      .array("tokenizer.ggml.token_type", 5, std::vector<std::int32_t>(tokens.size(), 1))
      .strings("tokenizer.ggml.merges", {"a a"});
  return file;
}

}  // namespace mrrope::test
