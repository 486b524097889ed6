// SPDX-License-Identifier: Apache-2.0
// A run folder as report reads it: the first line is run.json, the rest the journal.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/json.h"
#include "eval/results/result_table.h"
#include "eval/run/run_folder.h"
#include "fuzz/targets.h"
#include "mrrope/error.h"

namespace mrrope::fuzz {

void run(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t end = std::min(text.find('\n'), text.size());
  try {
    eval::RecordedRun recorded;
    recorded.run = parse_ordered_json(text.substr(0, end), "run.json");
    if (!recorded.run.is_object()) return;
    recorded.units =
        eval::parse_journal(text.substr(std::min(end + 1, text.size())), "journal").lines;
    eval::unit_places(recorded);
    const eval::ResultTable results = results_of(recorded);
    eval::results_text(to_json(results));
    to_text(results);
    eval::results_csv(results);
  } catch (const Error& error) {
    for (const char c : std::string(error.what())) {
      if (static_cast<unsigned char>(c) >= 0x20) continue;
      std::fprintf(stderr, "a control character in a message\n");
      std::abort();
    }
  }
}

}  // namespace mrrope::fuzz
