// SPDX-License-Identifier: Apache-2.0
// Log-probabilities from logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

struct ggml_backend_buffer_type;
struct ggml_tensor;

namespace mrrope::engine {

// ln softmax(logits)[target]. NaN if any logit is NaN or plus infinity; minus infinity is the
// ordinary logit of an impossible token. Exponentials in float (relative error below 3e-7), sums in
// double. Throws nothing; target must be inside the span.
double log_probability(std::span<const float> logits, std::size_t target) noexcept;

struct TopTwo {
  std::size_t best = 0;  // the lowest index among equals
  float gap = 0;         // its logit less the next one; 0 for a vocabulary of one
  bool valid = false;    // false: a NaN was among the logits
};
TopTwo top_two(std::span<const float> logits) noexcept;

// Probabilities of tokens computed where the logits are, by a small ggml graph of our own: one
// number per token comes back instead of one per token and word of the vocabulary.
class DeviceScorer {
 public:
  // For logits that live in this kind of memory; null where its device lacks what is needed.
  static std::unique_ptr<DeviceScorer> make(ggml_backend_buffer_type* type);
  ~DeviceScorer();

  // softmax(row i of logits)[targets[i]] in float; NaN in a row gives NaN or 0. logits is
  // [vocabulary, rows], F32, computed; there is a target for each of the first rows. Waits for the
  // result.
  void score(ggml_tensor* logits, std::span<const std::int32_t> targets, std::span<float> result);

 private:
  struct Device;
  explicit DeviceScorer(std::unique_ptr<Device> device);

  std::unique_ptr<Device> device_;
};

}  // namespace mrrope::engine
