// SPDX-License-Identifier: Apache-2.0
// The geometry behind a figure, for its text and its JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "mrrope/geometry.h"

namespace mrrope::theory {

inline std::string geometry_text(const Geometry& g) {
  return cat("rotary_dim ", g.rotary_dim, ", base ", g.base, ", window ", g.train_length);
}

inline nlohmann::ordered_json geometry_fields(const Geometry& g) {
  return {{"rotary_dim", g.rotary_dim}, {"base", g.base}, {"train_length", g.train_length}};
}

}  // namespace mrrope::theory
