// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/ruler/ruler.h"

#include "base/sha256.h"
#include "base/text.h"
#include "base/words.h"
#include "eval/samples/sample.h"
#include "models/reading_model.h"
#include "support/result_rows.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

ScriptedOptions roomy(std::int64_t context = 1 << 15) { return {.context = context}; }

// Finds every line "The magic ... for KEY is VALUE." whose key the question names.
std::string find_needles(const std::string& prompt) {
  const std::size_t question = prompt.rfind("Question:");
  const std::string asked = prompt.substr(question);
  std::string said;
  const std::string start = "The magic ";
  for (std::size_t at = prompt.find(start); at < question; at = prompt.find(start, at + 1)) {
    const std::size_t key = prompt.find(" for ", at) + 5;
    const std::size_t is = prompt.find(" is ", key);
    const std::size_t end = prompt.find('.', is);
    if (asked.find(prompt.substr(key, is - key) + "?") != std::string::npos ||
        asked.find(prompt.substr(key, is - key) + ",") != std::string::npos) {
      said += " " + prompt.substr(is + 4, end - is - 4);
    }
  }
  return said;
}

RulerOptions some(std::vector<std::string> tasks, std::vector<std::int64_t> lengths,
                  std::size_t samples = 12) {
  RulerOptions options;
  options.tasks = std::move(tasks);
  options.lengths = std::move(lengths);
  options.samples = samples;
  return options;
}

struct Bench {
  explicit Bench(TimelineModel& m, FrameOptions options = {"off"})
      : model(m), frame(m, options), counter(m) {}
  SampleSuite suite(const RulerOptions& options) { return make_ruler(frame, counter, options); }
  TimelineModel& model;
  PromptFrame frame;
  TokenCounter counter;
};

TEST(Ruler, FillsEveryLengthWithoutExceedingIt) {
  ScriptedModel model(roomy());
  Bench bench(model);
  const SampleSuite suite = bench.suite(some({}, {16384}, 4));
  ASSERT_EQ(suite.sets.size(), 13u);
  for (const SampleSet& set : suite.sets) {
    std::set<std::string> texts;
    for (std::size_t i = 0; i < set.count; ++i) {
      const Sample sample = set.make(i);
      const auto tokens = std::int64_t(sample.prompt.size()) + set.answer_tokens;
      EXPECT_LE(tokens, set.length) << set.task;
      // A unit of qa is a document, one of fwe a 32nd of the length.
      const double unit = set.task == "ruler/fwe" ? 0.2 : 0.05;
      EXPECT_GE(double(tokens), (1 - unit) * double(set.length)) << set.task;
      EXPECT_EQ(sample.prompt, model.tokenize(sample.text, true, false));
      EXPECT_EQ(std::count(sample.prompt.begin(), sample.prompt.end(), ScriptedModel::kBos), 1);
      EXPECT_EQ(set.make(i).text, sample.text) << "not a pure function";
      texts.insert(sample.text);
      // The answer is in the text and not in the question.
      const std::size_t question = sample.text.rfind("Question:");
      for (const std::string& e : sample.expected) {
        EXPECT_LT(sample.text.find(e), question) << set.task << " " << e;
        EXPECT_EQ(sample.text.find(e, question), std::string::npos) << set.task << " " << e;
      }
    }
    EXPECT_EQ(texts.size(), set.count) << set.task;
  }
}

TEST(Ruler, CommonAndFrequentWordsHaveTheRightCounts) {
  ScriptedModel model(roomy());
  Bench bench(model);
  const SampleSuite suite = bench.suite(some({"cwe", "fwe"}, {24000}, 3));
  for (const SampleSet& set : suite.sets) {
    for (std::size_t i = 0; i < set.count; ++i) {
      const Sample sample = set.make(i);
      // The example of cwe comes first; the real list is the last one.
      const std::size_t begin = sample.text.rfind("Here is a numbered list");
      const std::string text = sample.text.substr(begin == std::string::npos ? 0 : begin);
      std::map<std::string, int> counts;
      std::string word;
      for (const char c : text) {
        if (c != ' ' && c != '\n') {
          word.push_back(c);
          continue;
        }
        ++counts[word];
        word.clear();
      }
      for (const std::string& e : sample.expected) {
        for (const auto& [other, times] : counts) {
          const bool wanted = std::find(sample.expected.begin(), sample.expected.end(), other) !=
                              sample.expected.end();
          const bool coded = set.task == "ruler/fwe" ? other.size() == 6 : other.size() > 5;
          if (!wanted && coded && other != "...") {
            EXPECT_GT(counts[e], times) << e << " " << other;
          }
        }
        if (set.task == "ruler/cwe") {
          EXPECT_EQ(counts[e], 30) << e;
        }
      }
    }
  }
}

TEST(Ruler, ChainOfNamesLeadsToTheValue) {
  ScriptedModel model(roomy());
  Bench bench(model);
  const Sample sample = bench.suite(some({"vt"}, {8192}, 1)).sets[0].make(0);
  ASSERT_EQ(sample.expected.size(), 5u);
  std::size_t at = sample.text.find(cat("let ", sample.expected[0], " = "));
  ASSERT_NE(at, std::string::npos);
  for (std::size_t i = 1; i < 5; ++i) {
    const std::size_t next =
        sample.text.find(cat("let ", sample.expected[i], " = ", sample.expected[i - 1]));
    ASSERT_NE(next, std::string::npos);
    EXPECT_GT(next, at);
    at = next;
  }
}

TEST(Ruler, RefusesTooShortLengthsAndNamesOneThatIsEnough) {
  ScriptedModel model(roomy());
  Bench bench(model);
  for (const RulerTask& task : ruler_tasks()) {
    const Error e = test::error_of([&] { bench.suite(some({task.name}, {200}, 3)); });
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    const std::string start = "give --lengths of ";
    ASSERT_EQ(e.hint().substr(0, start.size()), start);
    const std::int64_t enough = std::stoll(e.hint().substr(start.size()));
    const SampleSuite suite = bench.suite(some({task.name}, {enough}, 3));
    for (std::size_t i = 0; i < 3; ++i) suite.sets[0].make(i);
  }
  EXPECT_ERROR(bench.suite(some({"haiku"}, {4096})), usage, "no task 'haiku'");
}

TEST(SampleRun, ReaderFindsAllNeedlesAndPrefixesAreShared) {
  ReadingModel model(roomy(), find_needles);
  Bench bench(model);
  const SampleSuite suite = bench.suite(some({"niah"}, {4096, 6000}, 12));
  const std::vector<MethodUnderTest> methods = {method(model, "none"), method(model, "pro", 4)};
  const auto [results, units] = run_in_memory(model, methods, suite);
  for (const ResultRow& s : results.rows) {
    EXPECT_TRUE(s.metric == kAnswerLoss || s.estimate.value == 1) << s.task;
    EXPECT_EQ(s.estimate.n, s.task == "ruler" ? 8u * 12 : 12u);
  }
  const ordered_json& summary = results.more.at("ruler");
  ASSERT_EQ(summary.size(), 2u);
  EXPECT_EQ(summary[0].at("effective_length"), 6000);
  EXPECT_EQ(summary[0].at("weighted_increasing"), 1);
  EXPECT_LT(results.more["tokens"], results.more["naive_tokens"]);
  // This reader's answers are not computed, the right ones are: a token per letter.
  std::size_t answers = 0;
  for (const ordered_json& unit : units) {
    for (const ordered_json& sample : unit["samples"]) {
      const auto expected = sample["expected"].get<std::vector<std::string>>();
      answers += (" " + joined(expected, ", ")).size();
    }
  }
  EXPECT_EQ(results.more["tokens"].get<std::int64_t>() + std::int64_t(answers), model.computed());
  // Half of what a single needle in one text takes is shared.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> cost;
  for (const ordered_json& unit : units) {
    auto& [tokens, naive] = cost[suite.sets[unit["set"]].task];
    tokens += unit["tokens"].get<std::int64_t>();
    naive += unit["naive_tokens"].get<std::int64_t>();
  }
  const auto [tokens, naive] = cost["ruler/niah_single_2"];
  EXPECT_LT(double(tokens), 0.75 * double(naive));

  // Alone, every prompt is the same and so is every answer.
  ReadingModel alone(roomy(), find_needles);
  SampleRunOptions options;
  options.share = false;
  const ResultTable one_by_one = run_in_memory(alone, methods, suite, options).table;
  EXPECT_EQ(one_by_one.more["tokens"], one_by_one.more["naive_tokens"]);
  std::sort(model.prompts.begin(), model.prompts.end());
  std::sort(alone.prompts.begin(), alone.prompts.end());
  EXPECT_EQ(model.prompts, alone.prompts);
  EXPECT_EQ(std::count(alone.prompts[0].begin(), alone.prompts[0].end(), '^'), 1);
}

// One text, several keys: the text is read once, also under a ladder, and errors are over texts.
TEST(SampleRun, QuestionsAboutOneTextShareIt) {
  ReadingModel model(roomy(), [](const std::string& prompt) {
    // Only every other key is found, so that a text scores a half and never 0 or 1.
    const std::string said = find_needles(prompt);
    return !said.empty() && (said.back() - '0') % 2 == 0 ? said : std::string("no");
  });
  Bench bench(model);
  RulerOptions options = some({"niah_multikey_1", "niah_multikey_2"}, {6000}, 3);
  options.questions = 8;
  const SampleSuite suite = bench.suite(options);
  ASSERT_EQ(suite.sets.size(), 2u);
  for (const SampleSet& set : suite.sets) {
    ASSERT_EQ(set.count, 24u);
    std::set<std::string> answers;
    std::set<std::string> texts;
    for (std::size_t i = 0; i < 8; ++i) {
      const Sample sample = set.make(i);
      ASSERT_EQ(sample.expected.size(), 1u);
      EXPECT_TRUE(answers.insert(sample.expected[0]).second) << set.task;
      EXPECT_TRUE(contains(sample.text, sample.expected[0]));
      texts.insert(sample.text.substr(0, sample.text.rfind("Question:")));
    }
    EXPECT_EQ(texts.size(), 1u);
    EXPECT_NE(set.make(8).text.substr(0, 3000), set.make(0).text.substr(0, 3000));
  }

  // One ladder has a rung between the text and the end of the answers, the other one has not.
  const Geometry& geometry = model.facts().geometry;
  ASSERT_LT(geometry.train_length, 6000);
  const Ladder one_rung =
      make_ladder(geometry, parse_method("elastic:pro(rung_step=1024)"), 1 << 15);
  const MethodSpec far = parse_method("far:pi(rung_step=1024,headroom=1,near=L/4,near_step=16)");
  const std::vector<MethodUnderTest> methods = {method(model, "pro", 4),
                                                {"elastic:pro", one_rung},
                                                {"far:pi", make_ladder(geometry, far, 1 << 15)}};
  const auto [results, units] = run_in_memory(model, methods, suite);
  EXPECT_EQ(results.more["questions_per_text"], 8u);
  EXPECT_EQ(results.more["answers"], 3u * 2 * 24);
  for (const ordered_json& unit : units) {
    const auto tokens = unit["tokens"].get<double>();
    const auto naive = unit["naive_tokens"].get<double>();
    if (unit["method"] == "far:pi") {
      EXPECT_EQ(tokens, naive);
    } else {
      EXPECT_LT(tokens, 0.2 * naive) << unit["method"];
    }
  }
  for (const ResultRow& s : results.rows) {
    EXPECT_EQ(s.estimate.n, s.task == "ruler" ? 6u : 3u);
    EXPECT_GT(s.estimate.value, 0);
    EXPECT_TRUE(s.metric == kAnswerLoss || s.estimate.value < 1) << s.task;
  }
  // Journals are graded by text as well: three means of eight answers.
  std::vector<double> means(3);
  for (const ordered_json& unit : units) {
    if (unit["set"] != 0 || unit["method"] != "far:pi") continue;
    std::size_t at = unit["group"].get<std::size_t>() * 8;
    for (const ordered_json& record : unit["samples"]) {
      const bool right = record["text"].get<std::string>().find(
                             record["expected"][0].get<std::string>()) != std::string::npos;
      means[at++ / 8] += right ? 1.0 / 8 : 0;
    }
  }
  const Estimate expected = mean(means);
  const ResultRow* found =
      results.find("far:pi", 6000, "string_match", {}, "ruler/niah_multikey_1");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(found->estimate.value, expected.value);
  EXPECT_DOUBLE_EQ(found->estimate.error, expected.error);

  options.tasks = {"niah_multikey_1", "vt"};
  EXPECT_ERROR(bench.suite(options), usage, "not for vt");
}

TEST(SampleRun, ResumesAfterAKillByteForByte) {
  const auto run = [](const std::filesystem::path& out, std::optional<std::int64_t> fail_at) {
    ScriptedOptions scripted = roomy();
    scripted.fail_at = fail_at;
    ScriptedModel model(scripted);
    Bench bench(model);
    const SampleSuite suite = bench.suite(some({"niah_single_1", "fwe"}, {3000}, 13));
    RunFolder folder(out, {"mrrope eval ruler", "digest", 1});
    Progress silent;
    SampleRunOptions options;
    options.batch = 64;
    const ResultTable results = run_samples(model, {method(model, "none"), method(model, "uni", 4)},
                                            suite, options, folder, silent);
    EXPECT_FALSE(contains(to_json(results).dump(), "null"));
    return model.computed();
  };
  test::expect_survives(run, 7, 3000 + 10 * 64 + 128);  // one prompt, in its batches, and its loss
}

TEST(Ruler, NamesMissingFilesAndRefusesLongLines) {
  const TempFolder folder;
  ScriptedModel model(roomy());
  const Bench bench(model);
  std::vector<std::string> notes;
  EXPECT_ERROR(read_ruler(bench.frame, folder / "absent", some({"vt"}, {4096}), notes), failed,
               "is not a folder");
  EXPECT_ERROR(read_ruler(bench.frame, folder.path(), some({"vt"}, {8192}), notes), failed,
               "vt at 8192");
  // A line of ten megabytes is read, and refused when it is used.
  write_file(folder / "4096/vt/validation.jsonl",
             cat(R"({"input": ")", std::string(10 << 20, 'x'), R"(", "outputs": ["b"]})"));
  const SampleSuite suite = read_ruler(bench.frame, folder.path(), some({"vt"}, {4096}), notes);
  EXPECT_ERROR(suite.sets[0].make(0), usage, "leaves no room");
}

TEST(PromptFrame, PutsThePrefixAfterTheTemplateWithOneBos) {
  ScriptedModel model(roomy());
  const PromptFrame chat(model, {"auto"});
  EXPECT_EQ(chat.text("Q", " P"), "user: Q\nassistant:  P");
  EXPECT_EQ(PromptFrame(model, {"auto", false}).text("Q", " P"), "user: Q\nassistant: ");
  EXPECT_EQ(PromptFrame(model, {"off"}).text("Q", " P"), "Q P");
  EXPECT_EQ(PromptFrame(model, {"off"}).tokens("Q").front(), ScriptedModel::kBos);
  EXPECT_EQ(PromptFrame(model, {"off", true, false}).tokens("Q").size(), 1u);
}

TEST(Prompts, AreFilledOnceAndReadFromFiles) {
  EXPECT_EQ(fill("{a}{b}{c}", {{"a", "{b}"}, {"b", "x"}}), "{b}x{c}");
  EXPECT_EQ(fill("{ {} {a", {{"a", "x"}}), "{ {} {a");
  const TempFolder folder;
  const std::string file = folder.file("p.json");
  write_file(file, R"({"ruler/vt": {"text": "T {context} {value}", "prefix": " {count}"}})");
  std::string digest;
  EXPECT_EQ(read_prompts(file, &digest).at("ruler/cwe").text,
            builtin_prompts().at("ruler/cwe").text);
  EXPECT_EQ(digest, sha256(test::read_file(file)));
}

}  // namespace
}  // namespace mrrope::eval
