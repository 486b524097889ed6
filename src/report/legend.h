// SPDX-License-Identifier: Apache-2.0
// What the terms of a report mean.
#pragma once

#include <string>
#include <vector>

#include "report/record.h"

namespace mrrope::report {

struct Term {
  std::string name;
  std::string meaning;  // one sentence, plain text
};

// Those that a report of these runs uses.
std::vector<Term> terms_of(const std::vector<RunRecord>& records);

}  // namespace mrrope::report
