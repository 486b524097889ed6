// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "eval/results/result_table.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

std::vector<double> numbers(const std::string& text) {
  if (text.empty()) return {};
  return mapped(split_list(text), [](const std::string& number) { return std::stod(number); });
}

std::string digits(double value) { return std::isnan(value) ? "nan" : significant(value, 10); }

std::string estimate_text(const Estimate& e) {
  return cat(digits(e.value), " +- ", digits(e.error), " of ", e.n);
}

TEST(Statistics, AreThoseOfTheTranscript) {
  test::expect_functions(
      "statistics",
      {{"mean", [](auto& a) { return estimate_text(mean(numbers(a[0]))); }},
       {"exponential",
        [](auto& a) {
          return estimate_text(exponential({numbers(a[0])[0], numbers(a[1])[0], 7}));
        }},
       {"paired",
        [](auto& a) {
          const PairedDifference d = paired(numbers(a[0]), numbers(a[1]));
          return cat(estimate_text(d.mean_difference), ", p ", digits(d.p), ", ",
                     digits(d.percent().value), " %");
        }},
       {"student",
        [](auto& a) {
          return significant(student_two_sided(numbers(a[0])[0], numbers(a[1])[0]), 6);
        }},
       {"holm", [](auto& a) { return joined(mapped(holm(numbers(a[0])), digits), ", "); }}});
}

// With one degree of freedom it is the Cauchy distribution; with two there is a formula as well.
TEST(Student, ClosedForms) {
  for (const double t : {0.1, 1.0, 3.0, 100.0}) {
    EXPECT_NEAR(student_two_sided(t, 1), 1 - 2 * std::atan(t) / M_PI, 1e-12);
    EXPECT_NEAR(student_two_sided(-t, 2), 1 - t / std::sqrt(2 + t * t), 1e-12);
  }
}

}  // namespace
}  // namespace mrrope::eval
