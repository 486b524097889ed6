// SPDX-License-Identifier: Apache-2.0
#include "cli/args/test_cut.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "cli/app.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

constexpr const char* kVariable = "MRROPE_TEST_CUT";

struct TestCut {
  std::int64_t lengths = 1;
  std::int64_t samples = 1;
  std::int64_t floor = 0;
};

TestCut read_cut() {
  const char* given = std::getenv(kVariable);
  if (given == nullptr || *given == '\0') return {};
  TestCut cut;
  const std::string text = given;
  const char* at = text.data();
  const char* end = at + text.size();
  bool good = true;
  for (std::int64_t* value : {&cut.lengths, &cut.samples, &cut.floor}) {
    const auto [stop, error] = std::from_chars(at, end, *value);
    good &= error == std::errc() && (stop == end || *stop == ',');
    at = stop;
    if (!good || at == end) break;
    ++at;
  }
  if (!good || at != end || cut.lengths < 1 || cut.samples < 1 || cut.floor < 0) {
    throw Error(ErrorKind::usage, cat(kVariable, "=", text, " cannot be read"),
                "it is only for mrrope's own tests: unset it");
  }
  note(cat(kVariable, " is set (for tests only): ", cut.floor, " + N/", cut.lengths,
           " tokens are run for N, and 1/", cut.samples, " of the samples"));
  return cut;
}

const TestCut& test_cut() {
  static const TestCut cut = read_cut();
  return cut;
}

}  // namespace

std::int64_t cut_length(std::int64_t length) {
  const std::int64_t cut = test_cut().floor + length / test_cut().lengths;
  if (cut < 1) {
    throw Error(ErrorKind::usage, cat(kVariable, " leaves nothing of ", length, " tokens"),
                "it is only for mrrope's own tests: unset it");
  }
  return cut;
}

std::size_t cut_samples(std::size_t samples) {
  if (samples == 0) return 0;
  return std::max<std::size_t>(1, samples / std::size_t(test_cut().samples));
}

}  // namespace mrrope::cli
