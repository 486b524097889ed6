// SPDX-License-Identifier: Apache-2.0
// The proof of a found plan, on documents that the search never saw: perplexity at every length
// from the window on, and needles by the pinned protocol, compared with every published method at
// headroom 1 and 1.25.
//
// The rule. A published method rivals the found plan if it finds as many needles (not fewer by more
// than two standard errors of the paired difference) and the found plan's perplexity is not lower
// by more than two standard errors at every length; or if its perplexity at the wanted length is
// lower or equal and the found plan does not find more needles. The found plan is better if it has
// no rival.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "tune/space.h"

namespace mrrope::tune {

constexpr std::size_t kProofNeedles = 20;  // per depth, if nothing else is asked for

// One published method compared with the found plan.
struct ProofRow {
  std::string method{};
  std::vector<eval::Estimate> perplexity{};  // one per length
  // The found plan's above this one's, in percent, paired; one per length.
  std::vector<eval::Estimate> difference{};
  eval::Estimate found{};              // share of needles
  eval::Estimate needle_difference{};  // the found plan's share minus this one's, paired
  bool lower_perplexity = false;       // the found plan's is, at every length from the window on
  bool as_many_needles = false;        // as the found plan
  std::string against{};               // why it rivals the found plan; empty: it does not
};

struct Proof {
  std::vector<std::int64_t> lengths;  // from the window on
  std::size_t documents = 0;
  ProofRow tuned;  // its own numbers
  std::vector<ProofRow> rows;
  std::vector<eval::Estimate> untouched;  // perplexity of the unmodified model
  bool better = false;
  std::string recommended;  // a row, if it is not
};

// Runs what the folders `ppl` and `needle` do not have yet. tuned.name is its row. needles: their
// form, and samples per depth (0: none, and perplexity alone decides); lengths and depths are those
// of the proof. weight: of needles against log-perplexity, for recommending a published method.
Proof prove(TimelineModel& model, const Proposal& tuned, const std::vector<Proposal>& others,
            const std::vector<eval::Document>& held_out, eval::NeedleOptions needles, double weight,
            eval::RunFolder& ppl, eval::RunFolder& needle, eval::Progress& progress);

// From results alone.
Proof judge_proof(const eval::ResultTable& ppl, const eval::ResultTable& needle,
                  const std::string& tuned, double weight);

nlohmann::ordered_json to_json(const Proof& proof);
std::string to_text(const Proof& proof);

}  // namespace mrrope::tune
