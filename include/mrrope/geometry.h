// SPDX-License-Identifier: Apache-2.0
// Geometry: what a model's rotary embedding was trained with. A plan comes on top of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mrrope {

// Which two elements of a head vector form pair i.
enum class Pairing {
  halves,       // i and i + rotary_dim/2 (Hugging Face, ggml's NEOX)
  interleaved,  // 2i and 2i + 1 (ggml's NORM)
};

const char* to_string(Pairing pairing) noexcept;

struct Geometry {
  int rotary_dim = 0;             // elements of a head vector that are rotated; even
  double base = 0;                // theta of pair i is base^(-2i/rotary_dim) before scaling
  std::int64_t train_length = 0;  // tokens: the window the model was trained for
  Pairing pairing = Pairing::halves;

  // The vendor's own scaling, kept by every plan (Llama 3.1, Phi, gpt-oss, ...).
  std::vector<double> trained_factor{};  // one divisor of theta per pair; empty means all 1
  double trained_attention_scale = 1;
  // LongRoPE's second list (Phi-3, Phi-4): what divides theta in texts longer than the window, and
  // the length that the vendor made it for. Empty and 0 for most models.
  std::vector<double> long_factor{};
  std::int64_t long_length = 0;

  bool operator==(const Geometry&) const = default;
};

// Throws Error (usage) unless every field is in range and the lists fit rotary_dim.
void validate(const Geometry& geometry);

// "rotary_dim 128, base 10000, window 4096, pairing halves".
std::string describe(const Geometry& geometry);

// rotary_dim / 2.
int pair_count(const Geometry& geometry) noexcept;

// Radians per position of every pair of the unmodified model.
std::vector<double> trained_theta(const Geometry& geometry);

// Full turns that pair i makes within the window: train_length * theta / 2 pi.
std::vector<double> rotations_in_window(const Geometry& geometry);

}  // namespace mrrope
