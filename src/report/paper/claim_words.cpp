// SPDX-License-Identifier: Apache-2.0
// The rules of claim_rules.h by name and in words.
#include <map>

#include "base/text.h"
#include "mrrope/error.h"
#include "report/paper/claim_rules.h"

namespace mrrope::report {

namespace {

std::string list_text(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string range_text(const ResultClaim& c) {
  const bool last = c.to != std::numeric_limits<std::int64_t>::max();
  const bool past = c.from > 1 && c.from % 1024 == 1;
  std::string out = c.from == c.to ? cat(" at ", length_text(c.from))
                    : past         ? cat(" past ", length_text(c.from - 1))
                    : c.from > 0   ? cat(" from ", length_text(c.from))
                                   : "";
  if (last && c.from != c.to) out += cat(" to ", length_text(c.to));
  if (c.depth_from > 0 || c.depth_to < 100) {
    out += cat(", depths ", c.depth_from, " to ", c.depth_to, " %");
  }
  return out;
}

}  // namespace

Rule rule_named(const std::string& name) {
  static const std::map<std::string, Rule> rules = {{"lower", Rule::lower},
                                                    {"last_only", Rule::last_only},
                                                    {"falls_less", Rule::falls_less},
                                                    {"times", Rule::times},
                                                    {"beats", Rule::beats},
                                                    {"near", Rule::near},
                                                    {"reaches", Rule::reaches},
                                                    {"not_below", Rule::not_below},
                                                    {"recall", Rule::recall},
                                                    {"recall_range", Rule::recall_range},
                                                    {"most_depths", Rule::most_depths},
                                                    {"higher", Rule::higher},
                                                    {"flat", Rule::flat},
                                                    {"lower_at", Rule::lower_at},
                                                    {"best", Rule::best},
                                                    {"falls_to", Rule::falls_to},
                                                    {"like_trained", Rule::like_trained}};
  const auto it = rules.find(name);
  if (it == rules.end()) throw Error(ErrorKind::corrupt, cat("paper.json: no rule ", name));
  return it->second;
}

std::string rule_text(const ResultClaim& c) {
  const std::string& b = c.b.front();
  const char* paired = "paired difference of log perplexity over documents, ";
  switch (c.rule) {
    case Rule::lower:
      return cat(paired, c.a, " minus ", list_text(c.b), c.b.size() > 1 ? " (each)" : "",
                 ", below 0 by two standard errors at every length");
    case Rule::last_only:
      return cat(paired, c.a, " minus ", b,
                 ", below 0 by two standard errors at the last length "
                 "and above 0 by two at every other");
    case Rule::falls_less:
      return cat("score lost from the last length but one to the last, ", c.a, " minus ", b,
                 ", below 0 by two standard errors");
    case Rule::times:
      return cat("score of ", c.a, " minus ", c.number, " times that of ", b,
                 ", above 0 by two standard errors");
    case Rule::beats:
      return cat("score of ", c.a, " minus the one printed for ", b,
                 ", above 0 by two standard errors in at least ", c.number,
                 " tasks and on average");
    case Rule::near:
      return cat("score of ", c.a, " minus the one printed for ", b, " plus ", c.number,
                 " points, above 0 by two standard errors in every task (how near is near is our "
                 "number)");
    case Rule::reaches:
      return cat("longest length with a score of 85.6, RULER's own threshold: of ", c.a,
                 " at least ", c.number, " times that of ", b,
                 ", also with every score two standard errors off");
    case Rule::not_below:
      return cat("score of ", c.a, " minus that of ", b,
                 ", not below 0 by two standard errors in any task");
    case Rule::recall:
      return cat("ROUGE-1 recall of ", c.a, " over all depths above ", c.number,
                 " % by two standard errors (over depths)",
                 c.from == c.to ? "" : " at every length", range_text(c));
    case Rule::recall_range:
      return cat("ROUGE-1 recall of ", c.a, " above ", c.number,
                 " % by two standard errors over all cells", range_text(c));
    case Rule::most_depths:
      return cat("share of depths with a ROUGE-1 recall of ", c.a, " above ", c.number, " %",
                 range_text(c), ", above one half by two standard errors");
    case Rule::higher:
      return cat("paired difference of ROUGE-1 recall over cells of length and depth, ", c.a,
                 " minus ", b, ", above 0 by two standard errors", range_text(c));
    case Rule::flat:
      return cat(paired, "at each ", c.low ? "low" : "high", " minus at the model's own, below ",
                 c.number, " % by two standard errors (how flat is flat is our number)");
    case Rule::lower_at:
      return cat(paired, c.a, " minus ", b, ", below 0 by two standard errors at every ",
                 c.low ? "low" : "high", " swept");
    case Rule::best:
      return cat("perplexity of ", c.a,
                 " at its own boundaries, the lowest of all that were swept; "
                 "another decides against it if lower by two standard errors, paired");
    case Rule::falls_to:
      return cat(
          "the distance up to which scores of the middle pairs fall (two standard errors), "
          "longer under ",
          c.a, " than under ", b);
    case Rule::like_trained:
      return cat(
          "Kolmogorov-Smirnov distance of scores past the window from those of training, "
          "smaller under ",
          c.a, " than under ", b, " by more than chance (5 %)");
  }
  return {};
}

}  // namespace mrrope::report
