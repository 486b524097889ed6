// SPDX-License-Identifier: Apache-2.0
// Probabilities of tokens computed where the logits are, by a small ggml graph of our own: one
// number per token comes back instead of one per token and word of the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/llama/llama_api.h"

namespace mrrope::engine {

class DeviceScorer {
 public:
  // For logits that live in this kind of memory; null where its device lacks what is needed.
  static std::unique_ptr<DeviceScorer> make(ggml_backend_buffer_type_t type);
  ~DeviceScorer();

  // softmax(row i of logits)[targets[i]] in float; NaN in a row gives NaN or 0. logits is
  // [vocabulary, rows], F32, computed; there is a target for each of the first rows. Waits for the
  // result.
  void score(ggml_tensor* logits, std::span<const std::int32_t> targets, std::span<float> result);

 private:
  DeviceScorer() = default;
  bool run(ggml_tensor* logits, std::size_t first, std::span<const std::int32_t> targets,
           std::span<float> result);

  LlamaPtr<ggml_backend> backend_;
  LlamaPtr<ggml_gallocr> allocator_;
};

}  // namespace mrrope::engine
