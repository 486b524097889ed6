// SPDX-License-Identifier: Apache-2.0
// Run folders that are JSON of the wrong types or sizes: resuming, merging and reports refuse them
// with Error (corrupt or usage). No exception of the JSON library, and no memory allocated because
// of a claimed size.

#include "base/text.h"
#include "eval/results/result_table.h"
#include "eval/run/run_folder.h"
#include "eval/samples/sample.h"
#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "eval/tasks/ruler/ruler.h"
#include "support/result_rows.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

// One small run of a task into a folder.
void run_task(const std::string& task, const std::filesystem::path& out) {
  ScriptedModel model({});
  const std::vector<MethodUnderTest> methods = {method(model, "none"), method(model, "pro", 4)};
  RunFolder folder(out, {"mrrope eval", "sha256:1", 1});
  Progress silent;
  const std::vector<Document> documents = {{"a", lemmas(1, 8)}, {"b", lemmas(9, 7)}};
  if (task == "ppl") {
    PerplexityOptions options;
    options.lengths = {32, 64};
    options.kl_positions = 2;
    run_perplexity(model, methods, documents, options, folder, silent);
  } else if (task == "needle") {
    NeedleOptions options;
    options.lengths = {400, 600};
    options.depths = {0, 50};
    options.samples = 2;
    options.form = make_form(model, "planted", {}, 0);
    run_needle(model, methods, documents, options, folder, silent);
  } else {
    const PromptFrame frame(model, {"off"});
    TokenCounter counter(model, frame.chat());
    RulerOptions options;
    options.tasks = {"niah_single_1"};
    options.lengths = {2000};
    options.samples = 2;
    run_samples(model, methods, make_ruler(frame, counter, options), {}, folder, silent);
  }
}

// Every value of a JSON document, as pointers.
void pointers(const ordered_json& value, const ordered_json::json_pointer& at,
              std::vector<ordered_json::json_pointer>& all) {
  all.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) pointers(member, at / key, all);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size() && i < 2; ++i) pointers(value[i], at / i, all);
  }
}

// Returns whether it was refused. Anything but an Error fails the test.
template <typename Action>
bool refused(const std::string& what, const Action& action) {
  try {
    action();
    return false;
  } catch (const Error& e) {
    EXPECT_TRUE(e.kind() == ErrorKind::corrupt || e.kind() == ErrorKind::usage)
        << what << ": " << e.what();
    EXPECT_FALSE(e.hint().empty()) << what;
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << ": " << e.what();
  }
  return true;
}

// How many documents are refused of those with a wrong value at one of these places.
template <typename Action>
std::size_t refusals(const ordered_json& good,
                     const std::vector<ordered_json::json_pointer>& places, const Action& action) {
  std::size_t count = 0;
  for (const auto& at : places) {
    for (const ordered_json& wrong :
         {ordered_json(), ordered_json(-1), ordered_json(1e300), ordered_json("text"),
          ordered_json::array({{}}), ordered_json::object(), ordered_json(true)}) {
      ordered_json changed = good;
      changed[at] = wrong;
      count += refused(cat(at.to_string(), " ", wrong), [&] { action(changed); });
    }
  }
  return count;
}

class Damaged : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    run_task(GetParam(), dir_ / "run");
    recorded_ = read_run(dir_ / "run");
  }
  TempFolder dir_{test::fast_place()};
  RecordedRun recorded_;
};

TEST_P(Damaged, ResumingRefusesLinesWithWrongTypes) {
  const std::string journal = read_file(dir_ / "run/journal.jsonl");
  const std::size_t first = journal.find('\n') + 1;
  const std::size_t end = journal.find('\n', first);
  const ordered_json& unit = recorded_.units[0];
  std::vector<ordered_json::json_pointer> keys;
  for (const char* key : {"task", "document", "method", "sample", "set", "group", "window"}) {
    if (unit.contains(key)) keys.push_back(ordered_json::json_pointer() / key);
  }
  const auto resume = [&](const ordered_json& changed) {
    write_file(dir_ / "run/journal.jsonl",
               journal.substr(0, first) + changed.dump() + journal.substr(end));
    run_task(GetParam(), dir_ / "run");
  };
  EXPECT_GE(refusals(unit, keys, resume), 14u);
}

TEST_P(Damaged, ResultsRefuseLinesWithWrongTypes) {
  std::vector<ordered_json::json_pointer> all;
  pointers(recorded_.units[0], ordered_json::json_pointer(), all);
  const auto results = [&](const ordered_json& changed) {
    recorded_.units[0] = changed;
    refused("places", [&] { unit_places(recorded_); });
    to_text(results_of(recorded_));
  };
  EXPECT_GT(refusals(ordered_json(recorded_.units[0]), all, results), all.size());
}

TEST_P(Damaged, ResultsRefuseRunsWithWrongTypes) {
  std::vector<ordered_json::json_pointer> all;
  ordered_json plain = recorded_.run;
  for (ordered_json& method : plain["methods"]) method["numbers"] = nullptr;
  pointers(plain, ordered_json::json_pointer(), all);
  const auto results = [&](const ordered_json& changed) {
    // read_run() refuses what is no object.
    if (changed.is_object()) to_text(results_of({changed, recorded_.units}));
  };
  EXPECT_GT(refusals(recorded_.run, all, results), 20u);
}

// 100 million samples are claimed, four are there.
TEST_P(Damaged, ClaimedSizesDoNotAllocateMemory) {
  RecordedRun& recorded = recorded_;
  const std::uint64_t before = peak_memory();
  if (recorded.run["settings"].contains("samples")) recorded.run["settings"]["samples"] = 100000000;
  if (recorded.run.contains("sets")) recorded.run["sets"][0]["samples"] = 100000000;
  EXPECT_GT(results_of(recorded).rows.size(), 0u);
  EXPECT_LT(peak_memory() - before, std::uint64_t(64) << 20);

  std::vector<std::int64_t> many;
  for (std::int64_t n = 1; n <= 3000000; ++n) many.push_back(n);
  if (recorded.run["settings"].contains("lengths")) {
    recorded.run["settings"]["lengths"] = many;
    refused("lengths", [&] { results_of(recorded); });
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, Damaged, testing::Values("ppl", "needle", "ruler"),
                         [](const auto& task) { return std::string(task.param); });

}  // namespace
}  // namespace mrrope::eval
