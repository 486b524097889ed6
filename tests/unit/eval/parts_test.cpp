// SPDX-License-Identifier: Apache-2.0
// What a stop costs inside a unit of work, and methods that are the same model.

#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "support/result_rows.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

MethodUnderTest none(const Geometry& geometry) {
  return {"none", make_ladder(make_plan(geometry, {}), 4096)};
}

MethodUnderTest elastic(const Geometry& geometry, const char* name, double step = 1.19) {
  MethodSpec spec = parse_method("elastic:pro");
  spec.parameters.rung_step = step;
  return {name, make_ladder(geometry, spec, 4096)};
}

class Parts : public ::testing::Test {
 protected:
  // Returns the tokens computed.
  std::int64_t needle(const std::filesystem::path& out, std::optional<std::int64_t> fail_at = {}) {
    ScriptedModel model({.fail_at = fail_at});
    NeedleOptions options;
    options.lengths = {300, 600};
    options.depths = {0, 50, 100};
    options.form = make_form(model, "planted", {}, 0);
    options.together = together_;
    const Geometry& geometry = model.facts().geometry;
    RunFolder folder(out, {"mrrope eval needle m", "sha256:1", 1});
    Progress progress;
    run_needle(model, {elastic(geometry, "elastic:pro"), elastic(geometry, "one step", 100)},
               made_essays(model, 600, 1), options, folder, progress);
    return model.computed();
  }

  bool together_ = false;
  TempFolder dir_{test::fast_place()};
};

TEST_F(Parts, NeedlesReadOneByOneLoseOneAtMost) {
  test::expect_survives([&](auto& out, auto fail_at) { return needle(out, fail_at); }, 13, 600);
}

TEST_F(Parts, NeedlesInOneTextLoseOneReadingAtMost) {
  together_ = true;
  // The text, and an answer with its loss.
  test::expect_survives([&](auto& out, auto fail_at) { return needle(out, fail_at); }, 13, 616);
}

TEST_F(Parts, OfAnotherUnitOrRunAreNotUsed) {
  const std::int64_t computed = needle(dir_ / "whole");
  EXPECT_THROW(needle(dir_ / "cut", computed / 4), Error);
  const std::string parts = read_file(dir_ / "cut/parts.jsonl");
  ASSERT_TRUE(contains(parts, "\"cell\""));
  // Killed between the unit's line and the removal of its parts.
  std::filesystem::copy(dir_ / "whole", dir_ / "done");
  write_file(dir_ / "done/parts.jsonl", parts);
  EXPECT_EQ(needle(dir_ / "done"), 0);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "done/parts.jsonl"));

  RecordedRun recorded = read_run(dir_ / "whole");
  recorded.units[0]["sample"] = 3;
  EXPECT_ERROR(results_of(recorded), corrupt, "not of this run");
  std::string other = parts;
  other.replace(other.find("\"run\":\"") + 7, 1, "x");
  write_file(dir_ / "cut/parts.jsonl", other);
  EXPECT_ERROR(needle(dir_ / "cut"), usage, "parts.jsonl is not of this run");
  other = parts;
  other.replace(other.find("\"index\":0"), 9, "\"index\":6");
  write_file(dir_ / "cut/parts.jsonl", other);
  EXPECT_ERROR(needle(dir_ / "cut"), corrupt, "not of this run");
  write_file(dir_ / "cut/parts.jsonl", parts.substr(0, parts.size() - 5));  // half a line
  needle(dir_ / "cut");
  EXPECT_EQ(read_file(dir_ / "cut/results.json"), read_file(dir_ / "whole/results.json"));
}

TEST(SameModel, IsTheSameNumbersUpToTheLength) {
  const Geometry geometry = ScriptedModel({}).facts().geometry;  // window 64
  const MethodUnderTest plain = none(geometry);
  const MethodUnderTest grows = elastic(geometry, "elastic:pro");
  const MethodUnderTest steps = elastic(geometry, "other steps", 1.3);
  EXPECT_TRUE(same_model(plain, grows, 64));
  EXPECT_FALSE(same_model(plain, grows, 65));
  EXPECT_TRUE(same_model(grows, steps, 64));
  EXPECT_FALSE(same_model(grows, steps, 4096));
  EXPECT_TRUE(same_model(grows, elastic(geometry, "again"), 4096));
  EXPECT_FALSE(same_model(plain, served_method(), 64));
  RunFolder folder;
  note_same_models(folder, {plain, grows, steps}, {64, 65});
  EXPECT_EQ(folder.notes(),
            (std::vector<std::string>{
                "the same model as none up to 64, so measured once: elastic:pro, other steps"}));
}

TEST(SameModel, IsMeasuredOnce) {
  ScriptedModel model({});
  const Geometry& geometry = model.facts().geometry;
  const std::vector<MethodUnderTest> methods = {elastic(geometry, "elastic:pro"), none(geometry)};
  const std::vector<Document> documents = made_essays(model, 64, 1);
  PerplexityOptions options;
  options.lengths = {32, 64};
  options.kl_positions = 0;
  Progress progress;
  RunFolder plain;
  run_perplexity(model, methods, documents, options, plain, progress);
  EXPECT_EQ(model.computed(), 64);
  options.kl_positions = 4;
  RunFolder folder;
  const ResultTable r = run_perplexity(model, methods, documents, options, folder, progress);
  EXPECT_EQ(row_at(r, 0, 1, "perplexity").estimate.value,
            row_at(r, 1, 1, "perplexity").estimate.value);
  EXPECT_EQ(row_at(r, 0, 1, "perplexity").estimate.n, 1u);
  EXPECT_EQ(r.verdicts[0].divergence.value, 0);  // as if it had been measured
  EXPECT_EQ(r.verdicts[0].divergence.n, 1u);
  EXPECT_EQ(folder.units()[1].at("same_as"), "none");
  ASSERT_EQ(folder.notes().size(), 1u);
  EXPECT_EQ(folder.notes()[0], "the same model as elastic:pro up to 64, so measured once: none");
}

}  // namespace
}  // namespace mrrope::eval
