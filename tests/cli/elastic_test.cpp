// SPDX-License-Identifier: Apache-2.0
// A context that grows, as users see it. tests/transcripts/growing.txt has what needs no numbers.
#include <gtest/gtest.h>

#include <map>

#include "support/command.h"

namespace mrrope {
namespace {

TEST(ElasticCommand, MatchesTheUntouchedModelInsideTheWindowAndIsBetterBeyond) {
  const TempFolder folder;
  write_file(folder.file("a.txt"), lemmas(0, 32));
  const std::string out = folder.file("run");
  expect_run("eval ppl " + kModel + " --text " + folder.file("a.txt") +
             " --methods none,pro,elastic:pro,far:pi,far:pro --lengths 1k,1200 -o " + out);
  std::map<std::pair<std::string, int>, double> perplexity;
  const json results = json::parse(read_file(out + "/results.json"));
  for (const json& row : results["results"]) {
    if (row["metric"] == "perplexity") {
      perplexity[{row["method"], row["length"]}] = row["value"];
    }
  }
  EXPECT_EQ((perplexity[{"elastic:pro", 1024}]), (perplexity[{"none", 1024}]));
  EXPECT_NE((perplexity[{"pro", 1024}]), (perplexity[{"none", 1024}]));
  EXPECT_LT((perplexity[{"elastic:pro", 1200}]), (perplexity[{"none", 1200}]));
  for (const char* far : {"far:pi", "far:pro"}) {
    EXPECT_EQ((perplexity[{far, 1024}]), (perplexity[{"none", 1024}])) << far;
    EXPECT_LT((perplexity[{far, 1200}]), (perplexity[{"none", 1200}])) << far;
  }
}

}  // namespace
}  // namespace mrrope
