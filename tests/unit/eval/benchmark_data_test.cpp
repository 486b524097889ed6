// SPDX-License-Identifier: Apache-2.0
// Files of benchmarks, good and bad: what is read of them, and the place that is named.

#include "base/text.h"
#include "base/words.h"
#include "eval/samples/sample.h"
#include "eval/tasks/infinitebench/infinitebench.h"
#include "eval/tasks/longbench/longbench.h"
#include "eval/tasks/ruler/ruler.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

// Each sample as its id, what is expected, and its text.
std::string samples_of(const SampleSuite& suite, const std::vector<std::string>& notes) {
  std::string out;
  for (const SampleSet& set : suite.sets) {
    out += cat(set.task, ": ", set.count, " of up to ", set.answer_tokens, " tokens");
    for (std::size_t i = 0; i < set.count; ++i) {
      const Sample sample = set.make(i);
      const std::string text = std::regex_replace(sample.text, std::regex("\n"), " / ");
      out += cat("\n  ", sample.id, " [", joined(sample.expected, "] ["), "] ", sample.more.dump(),
                 " ", text);
    }
  }
  for (const std::string& note : notes) out += "\n  note: " + note;
  return out;
}

std::string described(const PromptFrame& frame, TokenCounter& counter, const TempFolder& folder,
                      const std::string& input) {
  std::istringstream words(input);
  std::string kind, task, content;
  words >> kind;
  if (kind == "infinitebench") words >> task;
  std::getline(words >> std::ws, content);
  content = std::regex_replace(content, std::regex(" // "), "\n");
  std::vector<std::string> notes;
  RulerOptions ruler;
  ruler.lengths = {kind == "ruler" ? 4096 : 1500};
  ruler.samples = 2;
  if (kind == "ruler") {
    ruler.tasks = {"vt"};
    ruler.samples = 5;
    write_file(folder / "4096/vt/validation.jsonl", content);
    return samples_of(read_ruler(frame, folder.path(), ruler, notes), notes);
  }
  if (kind == "made") {  // TASK LENGTH: the answers of its first sample
    std::istringstream(content) >> task >> ruler.lengths[0];
    ruler.tasks = {task};
    const SampleSet set = make_ruler(frame, counter, ruler).sets[0];
    return cat(set.task, " of up to ", set.answer_tokens,
               " tokens: ", joined(set.make(0).expected, ", "));
  }
  if (kind == "infinitebench") {
    write_file(folder / (task + ".jsonl"), content);
    const InfiniteOptions options{.tasks = {task}, .length = task == "math_calc" ? 40000 : 2000};
    return samples_of(read_infinitebench(frame, folder.path(), options, notes), notes);
  }
  if (kind == "longbench") {
    write_file(folder / "data.json", content);
    return samples_of(
        read_longbench(frame, folder / "data.json", LongbenchOptions{.length = 2000}, notes),
        notes);
  }
  if (kind == "prompts") {
    write_file(folder / "p.json", content);
    const auto prompts = read_prompts(folder.file("p.json"));
    return cat(prompts.at("ruler/vt").text, " |", prompts.at("ruler/vt").prefix);
  }
  ruler.tasks = {kind == "squad" ? "qa_1" : "qa_2"};
  (kind == "squad" ? ruler.squad : ruler.hotpot) = folder.file("qa.json");
  write_file(folder / "qa.json", content);
  return samples_of(make_ruler(frame, counter, ruler), notes);
}

TEST(BenchmarkData, IsReadOrNamed) {
  ScriptedModel model({.context = 1 << 15});
  const PromptFrame frame(model, {"off"});
  TokenCounter counter(model);
  test::expect_transcript("benchmark_data", [&](const std::string& input) {
    const TempFolder folder;
    const std::string said =
        test::or_error([&] { return described(frame, counter, folder, input); });
    const std::string place = folder.path().string();
    return std::regex_replace(said, std::regex(place + "/?"), "");
  });
}

}  // namespace
}  // namespace mrrope::eval
