// SPDX-License-Identifier: Apache-2.0
// What every task is asked about: a model under several methods at several lengths.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/run/target.h"
#include "mrrope/ladder.h"

namespace mrrope {

struct MethodUnderTest {
  std::string name;  // the row: "pro", "elastic:pro", "vendor", ...
  Ladder ladder;
  // Behind an endpoint: the scaling is the server's own, and the ladder only says how far we go.
  bool served = false;
};

// The one row of a run against an endpoint that serves up to `longest` tokens.
MethodUnderTest served_method(std::int64_t longest);

// Whether this is the model as shipped.
bool untouched(const Ladder& ladder);

// Ascending, each once.
std::vector<std::int64_t> sorted_lengths(std::vector<std::int64_t> lengths);

// Throws Error (usage): no method, one named twice, no length, a batch below 1, or the longest
// length past the context or the last rung of a ladder. Lengths are sorted.
void check_methods(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const std::vector<std::int64_t>& lengths, std::int64_t batch);

// Their share of run.json: all that results depend on.
nlohmann::ordered_json methods_identity(const std::vector<MethodUnderTest>& methods);
// The scale of an entry of run.json's methods; NaN where only the server knows.
double scale_of(const nlohmann::ordered_json& method);

// null where nothing was measured.
nlohmann::ordered_json or_null(double value);

}  // namespace mrrope
