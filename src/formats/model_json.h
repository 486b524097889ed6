// SPDX-License-Identifier: Apache-2.0
// The facts of a model as JSON, for `inspect --json` and for other languages.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "mrrope/model.h"

namespace mrrope {

// Bits of one element of the key-value cache.
inline constexpr double kBitsF16 = 16;
inline constexpr double kBitsQ8 = 8.5;  // 32 bytes and a two-byte scale per 32 elements

const char* to_string(LayerKind kind) noexcept;

// How many layers there are of each kind.
std::map<std::string, int> layer_counts(const Model& model);

// `ctx` is the context length that scale and cache sizes are given for.
nlohmann::ordered_json model_json(const Model& model, std::int64_t ctx);

}  // namespace mrrope
