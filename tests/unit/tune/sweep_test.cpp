// SPDX-License-Identifier: Apache-2.0
#include "tune/sweep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "mrrope/error.h"
#include "support/expect_error.h"
#include "support/scripted.h"
#include "support/temp_folder.h"

namespace mrrope::tune {
namespace {

using test::expect_error;
using test::read_file;
using test::TempFolder;

const Geometry kLlama2{.rotary_dim = 128, .base = 10000, .train_length = 4096};

std::vector<SweepPoint> points_of(const Geometry& geometry, const SweepRequest& request) {
  std::vector<SweepPoint> points;
  sweep_methods(geometry, request, points);
  return points;
}

// The default boundary of a method for which beta_fast and beta_slow are these.
Boundaries boundaries_with(const std::string& method, double fast, double slow) {
  Extension e;
  e.method = method;
  e.scale = 4;
  e.parameters.beta_fast = fast;
  e.parameters.beta_slow = slow;
  return make_plan(kLlama2, e).boundaries();
}

TEST(SweepPoints, BetaIntervalsGiveTheBoundary) {
  for (const std::string method : {"yarn", "uni", "pro"}) {
    const auto points = points_of(kLlama2, {{method}, {0, 5, 20}, {40, 50, 62, 63}, 4 * 4096, 1});
    ASSERT_EQ(points.size(), 12u);
    for (const SweepPoint& p : points) {
      // Just inside of both ends.
      const double fast = std::isfinite(p.beta_fast.to) ? p.beta_fast.to : 2 * p.beta_fast.from;
      EXPECT_EQ(boundaries_with(method, fast * (1 - 1e-9), 1e-3).low, p.low) << method;
      EXPECT_EQ(boundaries_with(method, p.beta_fast.from * (1 + 1e-9), 1e-3).low, p.low) << method;
      const double least = p.beta_slow.from > 0 ? p.beta_slow.from * (1 + 1e-9) : 1e-9;
      EXPECT_EQ(boundaries_with(method, 1e3, least).high, p.high) << method;
      EXPECT_EQ(boundaries_with(method, 1e3, p.beta_slow.to * (1 - 1e-9)).high, p.high) << method;
      // And just outside.
      if (p.beta_slow.from > 0) {
        EXPECT_EQ(boundaries_with(method, 1e3, p.beta_slow.from * (1 - 1e-6)).high, p.high + 1);
      }
    }
  }
}

// The ramp of YaRN may end past the last pair.
TEST(SweepPoints, RampThatEndsPastTheLastPairHasAnInterval) {
  SweepRequest request{{"yarn"}, {}, {}, 4 * 4096, 1};
  for (int high = 60; high <= 80; ++high) request.high.push_back(high);
  const auto points = points_of(kLlama2, request);
  ASSERT_EQ(points.size(), 21u);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const BetaInterval& b = points[i].beta_slow;
    EXPECT_GT(b.from, 0) << points[i].high;
    EXPECT_LT(b.from, b.to) << points[i].high;
    if (i > 0) {
      EXPECT_EQ(b.to, points[i - 1].beta_slow.from) << "no gap between the intervals";
    }
  }
  const auto last = points_of(kLlama2, {{"yarn"}, {70}, {127}, 4 * 4096, 1});
  EXPECT_EQ(last.front().beta_slow.from, 0) << "127 is the last";
  EXPECT_GT(last.front().beta_fast.from, 0);
  EXPECT_LT(last.front().beta_fast.from, last.front().beta_fast.to);
  EXPECT_EQ(text_of_beta_slow(last.front()).front(), '(');
}

TEST(SweepPoints, HighAtPairZeroHasNoUpperEnd) {
  Geometry small = kLlama2;
  small.train_length = 64;  // the fastest pair makes about 10 turns, so the default low is 0
  const auto points = points_of(small, {{"yarn"}, {}, {0}, 256, 1});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_TRUE(std::isinf(points.front().beta_slow.to));
}

TEST(SweepPoints, LowMustBeBelowHigh) {
  const auto points = points_of(kLlama2, {{"pro"}, {10, 20, 30}, {20, 40}, 4 * 4096, 1});
  ASSERT_EQ(points.size(), 4u);
  for (const SweepPoint& p : points) EXPECT_LT(p.low, p.high);
  expect_error(ErrorKind::usage, "low", [] {
    points_of(kLlama2, {{"pro"}, {40}, {20}, 4 * 4096, 1});
  });
}

TEST(SweepPoints, RefusesWhatCannotBeSwept) {
  expect_error(ErrorKind::usage, "boundary", [] {
    points_of(kLlama2, {{"pro"}, {}, {}, 8192, 1});
  });
  expect_error(ErrorKind::usage, "method", [] { points_of(kLlama2, {{}, {1}, {}, 8192, 1}); });
  expect_error(ErrorKind::usage, "ntk", [] { points_of(kLlama2, {{"ntk"}, {1}, {}, 8192, 1}); });
  expect_error(ErrorKind::usage, "4096", [] { points_of(kLlama2, {{"pro"}, {1}, {}, 4096, 1}); });
  expect_error(ErrorKind::usage, "64", [] { points_of(kLlama2, {{"pro"}, {}, {64}, 8192, 1}); });
}

class SweepRun : public testing::Test {
 protected:
  SweepRun() {
    for (int i = 0; i < 2; ++i) {
      std::string text;
      for (int k = 0; text.size() < 400; ++k) text += "line " + std::to_string(37 * k % (50 + i));
      documents_.push_back({"d" + std::to_string(i), text});
    }
  }
  SweepResults run(const std::string& folder) {
    eval::Progress progress;
    return run_sweep(model_, {{"uni", "pro"}, {1, 2}, {}, 256, 1}, documents_, folder,
                     {"mrrope sweep", "digest", 1}, progress);
  }
  ScriptedModel model_{{}};
  std::vector<eval::Document> documents_;
  TempFolder folder_;
};

TEST_F(SweepRun, KeepsSweepAndPerplexityRunsSeparate) {
  const std::string out = folder_.file("sweep");
  const SweepResults results = run(out);
  ASSERT_EQ(results.points.size(), 4u);
  for (const SweepPoint& p : results.points) {
    EXPECT_EQ(p.perplexity.n, 2u);
    EXPECT_GT(p.perplexity.value, 1);
  }
  const auto task_in = [&](const std::string& name) {
    return nlohmann::json::parse(read_file(out + "/" + name)).value("task", "");
  };
  EXPECT_EQ(task_in("run.json"), "sweep");
  EXPECT_EQ(task_in("results.json"), "sweep");
  EXPECT_EQ(task_in("ppl/run.json"), "ppl");
  EXPECT_TRUE(nlohmann::json::parse(read_file(out + "/ppl/results.json")).contains("results"));
}

TEST_F(SweepRun, ResumesFromItsJournalAndGivesTheSameResults) {
  const std::string out = folder_.file("sweep");
  run(out);
  const std::string before = read_file(out + "/results.json");
  const std::int64_t computed = model_.computed();
  run(out);
  EXPECT_EQ(read_file(out + "/results.json"), before);
  EXPECT_EQ(model_.computed(), computed);
}

TEST_F(SweepRun, GivesTheSameResultsWithoutAFolder) {
  const std::string out = folder_.file("sweep");
  run(out);
  EXPECT_EQ(eval::results_text(to_json(run(""))), read_file(out + "/results.json"));
}

TEST_F(SweepRun, CsvHasALinePerPoint) {
  const std::string csv = to_csv(run(""));
  EXPECT_EQ(csv.rfind("method,low,high,beta_fast_above,", 0), 0u) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
}

TEST_F(SweepRun, TextNamesEveryMethodAndBoundary) {
  const std::string text = to_text(run(""));
  for (const char* part : {"uni", "pro", "beta_fast", "2 documents"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(ParsePairs, StepsWithoutOverflow) {
  EXPECT_EQ(parse_pairs("5..15", 5, "--low"), (std::vector<int>{5, 10, 15}));
  EXPECT_EQ(parse_pairs("7", 1, "--low"), (std::vector<int>{7}));
  EXPECT_EQ(parse_pairs("5..15", 2147483647, "--low"), (std::vector<int>{5}));
  EXPECT_TRUE(parse_pairs("", 1, "--low").empty());
  for (const char* bad : {"15..5", "a..b", "5..", "..5", "-1..5", "5...7", "0..99999999999"}) {
    expect_error(ErrorKind::usage, bad, [&] { parse_pairs(bad, 1, "--low"); });
  }
}

}  // namespace
}  // namespace mrrope::tune
