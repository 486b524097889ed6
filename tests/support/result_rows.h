// SPDX-License-Identifier: Apache-2.0
// Evaluations in tests: of a static plan, without a folder, killed anywhere; and rows of results.
#pragma once

#include "eval/samples/sample.h"
#include "support/test.h"

namespace mrrope::test {

// The row of methods[m] at lengths[l]; an empty one if there is none.
inline eval::ResultRow row_at(const eval::ResultTable& table, std::size_t m, std::size_t l,
                              const std::string& metric, std::optional<double> depth = {}) {
  const eval::ResultRow* row =
      table.find(table.methods.at(m).method, table.lengths.at(l), metric, depth);
  return row != nullptr ? *row : eval::ResultRow{};
}

// A static plan of this method for a model.
inline eval::MethodUnderTest method(const TimelineModel& model, const char* name, double scale = 1,
                                    std::int64_t longest = 1 << 15) {
  Extension e{.method = name, .scale = scale};
  return {name, make_ladder(make_plan(model.facts().geometry, e), longest)};
}

// A run of samples without a folder: its table, and its journal.
struct RunInMemory {
  eval::ResultTable table;
  std::vector<ordered_json> units;
};
inline RunInMemory run_in_memory(TimelineModel& model,
                                 const std::vector<eval::MethodUnderTest>& methods,
                                 const eval::SampleSuite& suite,
                                 const eval::SampleRunOptions& options = {}) {
  eval::RunFolder memory;
  eval::Progress silent;
  return {eval::run_samples(model, methods, suite, options, memory, silent), memory.units()};
}

// A run into a folder by a model that fails at this token. Returns the tokens computed.
using RunInto = std::function<std::int64_t(const std::filesystem::path& out,
                                           std::optional<std::int64_t> fail_at)>;

// A run is killed at so many places and resumed each time: the files are those of an undisturbed
// one, and at most `lost` tokens are computed twice. One that is done computes nothing, and lines
// in any order give the same results.
inline void expect_survives(const RunInto& run, std::int64_t kills, std::int64_t lost) {
  const TempFolder dir(fast_place());
  const std::int64_t computed = run(dir / "whole", {});
  ASSERT_GT(computed, kills);
  const std::string results = read_file(dir / "whole/results.json");
  const std::string run_json = read_file(dir / "whole/run.json");
  for (std::int64_t token = 1; token < computed; token += computed / kills) {
    std::filesystem::remove_all(dir / "cut");
    EXPECT_ERROR(run(dir / "cut", token), failed, " (method ");  // the unit is named
    EXPECT_LE(token + run(dir / "cut", {}), computed + lost) << token;
    for (const char* file : {"results.json", "journal.jsonl"}) {
      EXPECT_EQ(read_file(dir / "cut" / file), read_file(dir / "whole" / file)) << token;
    }
    EXPECT_FALSE(std::filesystem::exists(dir / "cut/parts.jsonl"));
  }
  EXPECT_EQ(run(dir / "whole", {}), 0);
  EXPECT_EQ(read_file(dir / "whole/results.json"), results);
  EXPECT_EQ(read_file(dir / "whole/run.json"), run_json);
  eval::RecordedRun recorded = eval::read_run(dir / "whole");
  std::reverse(recorded.units.begin(), recorded.units.end());
  EXPECT_EQ(eval::results_text(to_json(eval::results_of(recorded))), results);
}

// Shards of a run, joined in any order, are the whole run.
using RunShard = std::function<void(const std::filesystem::path& out, const eval::Shard& shard)>;
inline void expect_shards_join(const RunShard& run) {
  const TempFolder dir(fast_place());
  run(dir / "whole", {});
  for (std::size_t i = 1; i <= 3; ++i) run(dir / ("part" + std::to_string(i)), {i, 3});
  const eval::JoinedRun joined = eval::join_shards({dir / "part2", dir / "part3", dir / "part1"});
  EXPECT_TRUE(joined.missing.empty());
  eval::write_recorded(dir / "merged", joined.recorded);
  EXPECT_EQ(read_file(dir / "merged/journal.jsonl"), read_file(dir / "whole/journal.jsonl"));
  EXPECT_EQ(eval::results_text(to_json(eval::results_of(joined.recorded))),
            read_file(dir / "whole/results.json"));
}

}  // namespace mrrope::test
