// SPDX-License-Identifier: Apache-2.0
// One small model, or several, for every row of the table of architectures.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "formats/architectures.h"
#include "models/random_model.h"

namespace mrrope {

// One model to build: the keys that decide about its layers, and a word that distinguishes it from
// others of the same architecture.
struct ArchitectureCase {
  static constexpr int kContextLength = 1024;

  std::string architecture;
  std::string variant;
  LayerKeys keys;
  bool mrope_sections = true;

  std::string name() const;  // letters and digits
  int rotary_dim() const;    // rope.dimension_count
  Metadata metadata() const;
};

void PrintTo(const ArchitectureCase& sample, std::ostream* out);

// Every row as its default, and again with each key that its rule reads.
std::vector<ArchitectureCase> architecture_cases();

// Of these, the default of every row that is supported.
std::vector<ArchitectureCase> supported_cases();
// Of those, the ones with a rotating layer that sees more than the last tokens: the others need no
// plan, and get none.
std::vector<ArchitectureCase> cases_with_plans();

// A part of tests/models/small_models.json, and keys of it, by the types of their values.
const nlohmann::json& small_models(const char* part);
void set_keys(Metadata& model, const nlohmann::json& keys);

// Rows without a case.
bool has_no_case(std::string_view architecture);

}  // namespace mrrope
