// SPDX-License-Identifier: Apache-2.0
// How RULER's answers count, and its figures over all lengths.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "eval/tasks/ruler/ruler.h"
#include "eval/text/unicode.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

// RULER reads control characters as line ends, at both ends of an answer too.
std::u32string ruler_text(std::string_view text) {
  std::u32string characters = to_characters(text);
  for (char32_t& c : characters) {
    if (c < 0x20) c = '\n';
  }
  return lower(std::u32string(stripped(characters)));
}

constexpr const char* kAll = "string_match_all";
constexpr const char* kPart = "string_match_part";

// The share of expected strings that occur, ignoring case; or whether one of them does.
double string_match(const std::string& scorer, const std::vector<std::string>& expected,
                    std::string_view text) {
  const std::u32string said = ruler_text(text);
  const auto found = std::count_if(expected.begin(), expected.end(), [&](const std::string& e) {
    return said.find(lower(to_characters(e))) != said.npos;
  });
  if (scorer == kPart) return found > 0 ? 1 : 0;
  return expected.empty() ? 0 : double(found) / double(expected.size());
}

std::vector<Score> grade(const std::string& scorer, const ordered_json& record) {
  if (scorer != kAll && scorer != kPart) unknown_scorer(scorer);
  return {{scorer, string_match(scorer, record.at("expected").get<std::vector<std::string>>(),
                                record.at("text").get<std::string>())}};
}

bool decided(const std::string& scorer, const std::vector<std::string>& expected,
             std::string_view text) {
  return string_match(scorer, expected, text) == 1;
}

void summarize(ResultTable& results, const std::string& row) {
  ordered_json list = ordered_json::array();
  std::vector<TextRow> table = {{"method"}};
  for (const std::int64_t n : results.lengths) table[0].push_back(length_text(n));
  table[0].insert(table[0].end(), {"avg", "wavg inc", "wavg dec", "effective"});
  for (const MethodRow& method : results.methods) {
    std::int64_t effective = 0;  // the longest length at or above the threshold
    double sum = 0;
    double up = 0;  // longer lengths count more: weights 1, 2, ...
    double down = 0;
    const std::size_t k = results.lengths.size();
    TextRow line = {method.method};
    for (std::size_t i = 0; i < k; ++i) {
      const ResultRow* score =
          results.find(method.method, results.lengths[i], results.metric, {}, row);
      const double v =
          score != nullptr ? score->estimate.value : std::numeric_limits<double>::quiet_NaN();
      if (v >= kRulerThreshold) effective = results.lengths[i];
      sum += v;
      up += v * double(i + 1);
      down += v * double(k - i);
      line.push_back(score != nullptr ? percent_score(score->estimate) : "-");
    }
    const double weights = double(k) * double(k + 1) / 2;
    const double averages[] = {sum / double(k), up / weights, down / weights};
    for (const double v : averages) line.push_back(std::isfinite(v) ? fixed(100 * v, 1) : "-");
    line.push_back(effective > 0 ? length_text(effective) : "none");
    table.push_back(std::move(line));
    list.push_back({{"method", method.method},
                    {"effective_length", effective},
                    {"threshold", kRulerThreshold},
                    {"average", json_or_null(averages[0])},
                    {"weighted_increasing", json_or_null(averages[1])},
                    {"weighted_decreasing", json_or_null(averages[2])}});
  }
  results.more["ruler"] = list;
  results.summary = cat("\nMean over tasks by length (effective: the longest at ",
                        fixed(100 * kRulerThreshold, 1), " or above):\n", aligned(table));
}

}  // namespace

const SampleRules& ruler_rules() {
  static const SampleRules rules{
      .grade = grade, .decided = decided, .metric = "string_match", .summarize = summarize};
  return rules;
}

}  // namespace mrrope::eval
