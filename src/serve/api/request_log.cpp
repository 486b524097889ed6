// SPDX-License-Identifier: Apache-2.0
// A line about a request, for the log. No JSON value is made for it: each needs memory.
#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "serve/api/service.h"

namespace mrrope::serve {

void add_use(Progress& use, const Progress& answer) {
  use.prompt += answer.prompt;
  use.cached += answer.cached;
  use.written += answer.written;
  use.length += answer.length;
  use.rung = std::max(use.rung, answer.rung);
}

std::string log_line(const Progress& use, const std::string& route, double milliseconds, int status,
                     bool json) {
  const std::string time = time_text(std::time(nullptr)), took = fixed(milliseconds, 1);
  const bool on_ladder = use.length > 0;  // embeddings are not
  if (!json) {
    std::string line = cat(time, " ", route, ": ", status, ", ", took, " ms");
    if (use.prompt > 0) line += cat(", ", use.prompt, " tokens in, ", use.cached, " cached");
    if (on_ladder) line += cat(", ", use.written, " out, rung ", use.rung + 1);
    return line;
  }
  const std::size_t space = route.find(' ');
  return cat(R"({"time":")", time, R"(","method":")", route.substr(0, space), R"(","route":")",
             route.substr(space + 1), R"(","in":)", use.prompt, R"(,"cached":)", use.cached,
             R"(,"out":)", use.written, R"(,"ms":)", took, R"(,"rung":)",
             on_ladder ? std::to_string(use.rung) : "null", R"(,"status":)", status, "}");
}

}  // namespace mrrope::serve
