// SPDX-License-Identifier: Apache-2.0
// What every task measures: a model under several methods at several lengths.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/run/target.h"
#include "mrrope/ladder.h"

namespace mrrope::eval {

struct MethodUnderTest {
  std::string name;              // the row: "pro", "elastic:pro", "vendor", ...
  std::optional<Ladder> ladder;  // absent behind an endpoint: the server has its own scaling

  bool elastic() const { return ladder && ladder->elastic(); }
  bool untouched() const;  // the model as shipped
};

// Whether the two are the same model for every sequence up to this length: the same plan number by
// number, such as every growing plan inside the window and none.
bool same_model(const MethodUnderTest& a, const MethodUnderTest& b, std::int64_t longest);

// The first of the methods before methods[m], in their order, that is the same model.
std::optional<std::size_t> same_before(const std::vector<MethodUnderTest>& methods, std::size_t m,
                                       std::int64_t longest);

// "the same model as none up to 1K, so measured once: uni, pro"; empty where all differ.
std::string same_models_text(const std::vector<MethodUnderTest>& methods, std::int64_t longest);

// The only row of a run against an endpoint.
MethodUnderTest served_method();

// Ascending, each once.
std::vector<std::int64_t> sorted_lengths(std::vector<std::int64_t> lengths);

// Throws Error (usage) if two have the same name.
void check_names(const std::vector<MethodUnderTest>& methods);

// Throws Error (usage): no method, a method named twice, no length, a batch below 1, or the longest
// length beyond the context or the last rung of a ladder. Lengths are sorted.
void check_methods(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const std::vector<std::int64_t>& lengths, std::int64_t batch);

// Their entries in run.json: everything that results depend on.
nlohmann::ordered_json methods_identity(const std::vector<MethodUnderTest>& methods);

}  // namespace mrrope::eval
