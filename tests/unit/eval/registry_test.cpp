// SPDX-License-Identifier: Apache-2.0
// A task that exists only here goes through everything that tasks share: runner, journal, resuming,
// shards and merging, results, other tools' formats, and the report. No other file knows it.

#include "eval/results/result_table.h"
#include "eval/run/run_folder.h"
#include "eval/run/runner.h"
#include "report/report.h"
#include "support/result_rows.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

constexpr int kSamples = 5;

// How many tokens a text of 100 words has: the same under every method.
ResultTable toy_results(const RecordedRun& recorded) {
  ResultTable table;
  read_recorded([&] {
    table = begin_table(recorded.run);
    table.lengths = recorded_lengths(recorded.run.at("settings").at("lengths"));
    table.expected_units = std::size_t(kSamples) * table.methods.size() * table.lengths.size();
    std::map<std::pair<std::string, std::int64_t>, UnitValues> values;
    for (const ordered_json& unit : recorded.units) {
      values[{unit.at("method").get<std::string>(), unit.at("length").get<std::int64_t>()}]
            [{unit.at("sample").get<std::size_t>(), 0}] = unit.at("value").get<double>();
    }
    for (const MethodRow& m : table.methods) {
      for (const std::int64_t length : table.lengths) {
        add_row(table, "toy", m.method, length, "errors", values[{m.method, length}]);
      }
    }
  });
  return table;
}

PlaceOf toy_places(const ordered_json& run) {
  return [method_of = method_finder(run)](const ordered_json& unit) -> UnitPlace {
    return {unit.at("sample").get<std::int64_t>(), unit.at("length").get<std::int64_t>(),
            std::int64_t(method_of(unit))};
  };
}

void register_toy() {
  if (find_task("toy") != nullptr) return;
  tasks().push_back({"toy",
                     "A toy",
                     {{"errors", "Errors of a toy", "errors", "Lower is better.", false}},
                     toy_places,
                     toy_results});
}

const std::vector<std::int64_t> kLengths = {32, 64, 128};

class ToyUnits : public UnitWork {
 public:
  ToyUnits(TimelineModel& model, const std::vector<MethodUnderTest>& methods)
      : model_(model), methods_(methods) {}

  std::vector<Unit> units() override {
    std::vector<Unit> all;
    for (std::int64_t s = 0; s < kSamples; ++s) {
      for (const std::int64_t length : kLengths) {
        for (std::int64_t m = 0; m < std::int64_t(methods_.size()); ++m) {
          all.push_back({{s, length, m}, length, "toy", "method of a toy"});
        }
      }
    }
    return all;
  }

  ordered_json compute(const Unit& unit, UnitProgress& progress) override {
    const UnitPlace& place = unit.place;
    const MethodUnderTest& used = methods_[std::size_t(place[2])];
    model_.use(*used.ladder);
    const std::vector<Token> tokens(std::size_t(place[1]), Token(65 + place[0]));
    progress.check();
    const std::vector<double> scores = model_.timeline()->append_scored(tokens);
    progress.advance(place[1], place[1]);
    return {{"task", "toy"},
            {"method", used.name},
            {"length", place[1]},
            {"sample", place[0]},
            {"value", -scores.back()}};
  }

 private:
  TimelineModel& model_;
  const std::vector<MethodUnderTest>& methods_;
};

// Returns the tokens computed.
std::int64_t run_toy(const std::filesystem::path& out, const Shard& shard = {},
                     std::optional<std::int64_t> fail_at = {}) {
  ScriptedModel model({.fail_at = fail_at});
  const std::vector<MethodUnderTest> methods = {method(model, "none", 1), method(model, "pro", 4)};
  ToyUnits units(model, methods);
  RunFolder folder(out, {"mrrope eval toy", "sha256:1", 1, shard});
  Progress silent;
  run_job(model, units, run_identity("toy", model, methods, {{"lengths", kLengths}}), folder,
          silent);
  return model.computed();
}

class Registry : public testing::Test {
 protected:
  Registry() { register_toy(); }
  TempFolder dir_{test::fast_place()};
};

TEST_F(Registry, RunsResumesAndMergesToTheSameBytes) {
  test::expect_survives([](auto& out, auto fail_at) { return run_toy(out, {}, fail_at); }, 7, 128);
  test::expect_shards_join([](auto& out, const Shard& shard) { run_toy(out, shard); });
}

TEST_F(Registry, AppearsInReportsAndFormats) {
  run_toy(dir_ / "whole");
  const std::vector<report::RunRecord> records = report::read_records({(dir_ / "whole").string()});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].problem, "");
  EXPECT_TRUE(records[0].finished);
  EXPECT_EQ(records[0].table.rows.size(), 6u);
  bool charted = false;
  for (const report::Figure& figure : figures_of(records)) {
    charted |= figure.section == "A toy" && figure.title == "Errors of a toy" &&
               figure.note.ends_with("Lower is better.");
  }
  EXPECT_TRUE(charted);
  EXPECT_TRUE(contains(report_page(records), "<h2>A toy</h2>"));
  const RecordedRun recorded = read_run(dir_ / "whole");
  const ordered_json harness = lm_eval_results(recorded.run, results_of(recorded));
  EXPECT_EQ(harness.at("higher_is_better").at("toy/pro/128").at("errors"), false);
}

TEST_F(Registry, AnUnfinishedRunSaysSo) {
  EXPECT_ERROR(run_toy(dir_ / "cut", {}, 700), failed, "toy");
  const std::vector<report::RunRecord> records = report::read_records({(dir_ / "cut").string()});
  EXPECT_FALSE(records[0].finished);
  EXPECT_EQ(records[0].table.expected_units, 30u);
}

TEST_F(Registry, NamesAreUniqueAndUnknownOnesAreRefused) {
  std::set<std::string> names;
  for (const Task& task : tasks()) {
    EXPECT_TRUE(names.insert(task.name).second) << task.name;
    EXPECT_EQ(find_task(task.name + "/part"), find_task(task.name));
    EXPECT_FALSE(task.section.empty());
  }
  EXPECT_EQ(find_task("haiku"), nullptr);
  EXPECT_ERROR(task_of({{"task", "haiku"}}), corrupt, "haiku");
  EXPECT_ERROR(task_of(ordered_json::object()), corrupt, "names none");
  EXPECT_ERROR(task_of({{"task", 7}}), corrupt, "7");
}

}  // namespace
}  // namespace mrrope::eval
