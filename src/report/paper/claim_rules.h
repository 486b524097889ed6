// SPDX-License-Identifier: Apache-2.0
// The rules by which numbers decide a claim. A rule makes one margin per part of the claim: the
// part holds if its margin is above 0 by two standard errors, and does not hold if it is below 0 by
// two; between them it is not decided. Numbers that the paper prints have no error: their sign
// decides.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "report/paper/claims.h"

namespace mrrope::report {

enum class Rule {
  lower,         // perplexity of a below that of every method of b, at every length
  last_only,     // perplexity of a below that of b at the last length, above it at every other
  falls_less,    // score of a loses less from the last length but one to the last than that of b
  times,         // score of a above `number` times that of b, in every task
  beats,         // score of a above the paper's of b in `number` tasks, and on average
  near,          // score of a at most `number` points below the paper's of b, in every task
  reaches,       // longest length with a score of RULER's threshold: of a `number` times that of b
  not_below,     // score of a not below that of b in any task
  recall,        // needle recall of a above `number` percent, over all depths at each length
  recall_range,  // the same over all lengths and depths of the range
  most_depths,   // needle recall of a above `number` percent at more than half of the depths
  higher,        // needle recall of a above that of b, over the lengths and depths of the range
  flat,          // perplexity of a within `number` percent of that at its own boundary
  lower_at,      // perplexity of a below that of b, at every boundary swept
  best,          // no boundaries with a lower perplexity of a than its own
  falls_to,      // attention scores of a fall over a longer distance than those of b
  like_trained,  // attention scores of a past the window closer to those of training than of b
};

// Throws Error (corrupt) for a name that is none of them.
Rule rule_named(const std::string& name);

// A row of "claims" in data/paper.json.
struct ResultClaim {
  std::string id, place, says;
  std::vector<std::string> tables;   // tables and figures of paper.json that it is about
  std::vector<std::string> presets;  // whose runs decide it
  Rule rule = Rule::lower;
  std::string a = "pro";
  std::vector<std::string> b = {"yarn"};
  double number = 0;
  std::vector<std::string> tasks;  // columns of the table; empty: all but the average
  // Inclusive: lengths of needles, or boundaries of a sweep.
  std::int64_t from = 0, to = std::numeric_limits<std::int64_t>::max();
  double depth_from = 0, depth_to = 100;
  bool low = false;  // a sweep: of low, not of high
  std::string note;  // what else to know of what the paper says
};

// Where numbers come from: the paper, or a run.
struct Source {
  const RunRecord* run = nullptr;  // null: what the paper prints
  // A run of another model, scale or length: lengths are those it has.
  bool other_setting = false;
};

// The parts of a claim about one table or figure; those without numbers are missing.
std::vector<ClaimPart> parts_of(const ResultClaim& claim, const nlohmann::ordered_json& table,
                                const Source& source, const nlohmann::ordered_json& printed);

// The rule in words.
std::string rule_text(const ResultClaim& claim);

}  // namespace mrrope::report
