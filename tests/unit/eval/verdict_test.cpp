// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

constexpr std::int64_t kWindow = 1024;

std::vector<double> numbers(std::istream& words) {
  return {std::istream_iterator<double>(words), {}};
}

// Losses of three documents, the same but for a small spread around a perplexity, or of these.
UnitValues losses(const std::vector<double>& perplexities) {
  constexpr double kSpread = 0.01;
  const double x = std::log(perplexities[0]);
  if (perplexities.size() == 1) return {{{0, 0}, x - kSpread}, {{1, 0}, x}, {{2, 0}, x + kSpread}};
  UnitValues values;
  for (const double p : perplexities) values[{values.size(), 0}] = std::log(p);
  return values;
}

// The verdict on a method with these perplexities of bands, up to 512, 1024, 2048 ..., which has 4
// inside the window as the untouched model has, but for what the other arguments say.
std::string judged(const test::Arguments& arguments) {
  std::istringstream words(arguments[0]);
  const std::vector<double> bands = numbers(words);
  ResultTable table;
  table.task = kPerplexity;
  table.window = kWindow;
  table.methods = {{"m", ""}, {"none", "", 1, true}};
  const auto add = [&](const char* method, std::int64_t length, const char* metric, double value) {
    table.rows.push_back({kPerplexity, method, length, {}, metric, {}, losses({value})});
  };
  for (const double band : bands) {
    table.lengths.push_back(512 << table.lengths.size());
    add("m", table.lengths.back(), kPerplexityBand, band);
  }
  add("m", kWindow, kPerplexityMetric, 4);
  add("none", kWindow, kPerplexityMetric, 4);
  bool failed = false;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    std::istringstream rest(arguments[i]);
    std::string word;
    rest >> word;
    std::size_t number = 0;
    if (word == "band" || word == "empty" || word == "window") rest >> number;
    if (word == "own") table.rows[bands.size()].units = losses(numbers(rest));
    if (word == "band") table.rows[number].units = losses(numbers(rest));
    if (word == "empty") table.rows[number].units.clear();
    if (word == "window") table.window = std::int64_t(number);
    if (word == "failed") failed = true;
    if (word == "untouched") table.methods[0].untouched = true;
    if (word == "grows") table.methods[0].grows = true;
    if (word == "alone") table.methods.pop_back();
    if (word == "one-document") {
      for (ResultRow& row : table.rows) row.units.erase(++row.units.begin(), row.units.end());
    }
  }
  const Verdict v = judge(table, table.methods[0], failed);
  return cat(v.judged ? "good to " : "no verdict, ", v.good_to, v.to_the_end ? ", the end" : "",
             "; costs ", std::round(1e6 * v.cost.percent().value) / 1e6, " %; ", v.reason);
}

TEST(Verdict, IsThatOfTheTranscript) { test::expect_functions("verdicts", {{"judge", judged}}); }

}  // namespace
}  // namespace mrrope::eval
