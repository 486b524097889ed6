// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle.h"

#include "base/random.h"
#include "eval/score/answer_text.h"
#include "support/reading_model.h"
#include "support/result_rows.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

// What was planted, where it is not further from the end than one can see.
std::string planted_number(const std::string& prompt, std::size_t sight = 1 << 20) {
  const std::size_t at = prompt.find("The magic number for ");
  if (at == std::string::npos || prompt.size() - at > sight) return " nothing\n";
  return " " + prompt.substr(prompt.find(" is ", at) + 4, 6) + ".\n";
}

struct ReadingModel : test::ReadingModel {
  explicit ReadingModel(const ScriptedOptions& options, std::size_t sight = 1 << 20)
      : test::ReadingModel(
            options, [sight](const std::string& prompt) { return planted_number(prompt, sight); }) {
  }
};

ScriptedOptions roomy(std::int64_t context = 8192) { return {.context = context}; }

std::string sentences(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::string text;
  while (text.size() < size) {
    const std::size_t words = 3 + random.below(9);
    for (std::size_t w = 0; w < words; ++w) {
      if (w > 0) text += ' ';
      const std::size_t letters = 1 + random.below(9);
      for (std::size_t i = 0; i < letters; ++i) text.push_back(char('a' + random.below(26)));
      if (random.below(20) == 0) text += ".x";  // ends nothing
    }
    text += random.below(4) == 0 ? ".\n" : ". ";
  }
  return text;
}

NeedleOptions planted(const TimelineModel& model, std::vector<std::int64_t> lengths,
                      std::vector<double> depths = usual_depths()) {
  NeedleOptions options;
  options.lengths = std::move(lengths);
  options.depths = std::move(depths);
  options.form = make_form(model, "planted", {}, 0);
  options.batch = 100;
  return options;
}

ResultTable run_in_memory(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                          const std::vector<Document>& documents, const NeedleOptions& options) {
  RunFolder folder;
  Progress progress;
  return run_needle(model, methods, documents, options, folder, progress);
}

TEST(Needle, SharingPrefixesKeepsThePrompts) {
  const std::vector<Document> documents = {{"a#1", sentences(9000, 1)}};
  std::vector<std::int64_t> lengths;
  for (std::int64_t k = 1; k <= 8; ++k) lengths.push_back(1024 * k);
  ReadingModel shared(roomy(), 3000);
  NeedleOptions options = planted(shared, lengths);
  const ResultTable r = run_in_memory(shared, {method(shared, "pro", 8)}, documents, options);
  ReadingModel alone(roomy(), 3000);
  options.share = false;
  const ResultTable n = run_in_memory(alone, {method(alone, "pro", 8)}, documents, options);

  const double share = double(shared.computed()) / double(alone.computed());
  RecordProperty("share_percent", int(std::lround(1000 * share)));
  std::cout << "tokens computed: " << shared.computed() << " of " << alone.computed() << ", "
            << 100 * share << " %\n";
  EXPECT_LE(share, 0.36);
  EXPECT_LE(r.more["tokens"].get<double>(), 0.36 * r.more["naive_tokens"].get<double>());
  EXPECT_EQ(n.more["tokens"], n.more["naive_tokens"]);

  ASSERT_EQ(shared.prompts.size(), 88u);
  EXPECT_EQ(shared.prompts, alone.prompts);
  // The same scores, and the engine's range of sight shows in them.
  for (std::size_t l = 0; l < lengths.size(); ++l) {
    EXPECT_EQ(row_at(r, 0, l, "rouge1_recall").estimate.value,
              row_at(n, 0, l, "rouge1_recall").estimate.value);
    EXPECT_EQ(row_at(r, 0, l, "rouge1_recall").estimate.n, 11u);
    for (std::size_t d = 0; d < options.depths.size(); ++d) {
      EXPECT_EQ(row_at(r, 0, l, "contains", options.depths[d]).estimate.value,
                row_at(n, 0, l, "contains", options.depths[d]).estimate.value);
    }
  }
  EXPECT_EQ(row_at(r, 0, 0, "rouge1_recall").estimate.value, 1);
  EXPECT_EQ(row_at(r, 0, 7, "rouge1_recall", options.depths[0]).estimate.value, 0);
  EXPECT_EQ(row_at(r, 0, 7, "rouge1_recall", options.depths[10]).estimate.value, 1);
}

TEST(Needle, CountsExactlyWhatItPlanned) {
  const std::vector<Document> documents = {{"a#1", sentences(3000, 1)}};
  ScriptedOptions silent = roomy();
  silent.question = " is";
  silent.answer = "!";
  for (const bool share : {true, false}) {
    ScriptedModel model(silent);
    NeedleOptions options = planted(model, {500, 1000, 1500, 2000});
    options.share = share;
    const ResultTable r = run_in_memory(model, {method(model, "none")}, documents, options);
    // One token per answer, and seven of the right one.
    EXPECT_EQ(model.computed(), r.more["tokens"].get<std::int64_t>() + 44 * (1 + 7));
  }
}

TEST(Needle, LengthsAreExactAndBosOccursOnce) {
  for (const char* form : {"planted", "completion", "chat"}) {
    for (const bool bos : {true, false}) {
      ScriptedOptions scripted = roomy();
      scripted.has_bos = bos;
      ReadingModel model(scripted);
      NeedleOptions options = planted(model, {600, 700, 1001}, {0, 33.3, 90, 100});
      options.form = make_form(model, form, {}, 20);
      options.samples = 3;
      run_in_memory(model, {method(model, "none")}, {{"a#1", sentences(2000, 1)}}, options);
      ASSERT_EQ(model.prompts.size(), 36u);
      std::map<std::size_t, int> sizes;
      for (const std::string& prompt : model.prompts) {
        ++sizes[prompt.size() + 20];
        EXPECT_EQ(prompt.front() == '^', bos);
        EXPECT_EQ(prompt.find('^', 1), std::string::npos);
      }
      EXPECT_EQ(sizes, (std::map<std::size_t, int>{{600, 12}, {700, 12}, {1001, 12}}));
    }
  }
}

TEST(Needle, IsInsertedAfterASentence) {
  ReadingModel model(roomy());
  NeedleOptions options = planted(model, {2000}, {0, 20, 50, 90, 100});
  const std::string text = sentences(3000, 5);
  const ResultTable r = run_in_memory(model, {method(model, "none")}, {{"a#1", text}}, options);
  EXPECT_EQ(r.more["unsnapped"], 0u);
  ASSERT_EQ(model.prompts.size(), 5u);  // by position
  for (std::size_t i = 0; i < 5; ++i) {
    const std::string& prompt = model.prompts[i];
    const std::size_t at = prompt.find("\nThe magic number for ") - 1;  // without BOS
    EXPECT_EQ(prompt.substr(1, at), text.substr(0, at));
    if (i == 0) {
      EXPECT_EQ(at, 0u);
    }
    if (i == 0 || i == 4) continue;
    const auto asked = std::size_t(20 * options.depths[i]);
    EXPECT_LE(at, asked);
    EXPECT_GT(at + 200, asked);
    EXPECT_EQ(text[at - 1] == '\n' ? text[at - 2] : text[at - 1], '.') << text.substr(at - 5, 9);
    // No other end between there and the place asked for.
    const std::size_t end = text.find(". ", at);
    EXPECT_GE(std::min(end, text.find(".\n", at)) + 1, std::min<std::size_t>(asked, 1840));
  }
  const std::size_t last = model.prompts[4].find("\nThe magic number for ");
  EXPECT_EQ(model.prompts[4].find("\nQuestion"), model.prompts[4].find(".\n", last) + 2);
}

TEST(Needle, MidSentenceNeedlesAreCounted) {
  ReadingModel model(roomy());
  const NeedleOptions options = planted(model, {2000}, {0, 20, 50, 100});
  const std::string text(3000, 'x');
  const ResultTable r = run_in_memory(model, {method(model, "none")}, {{"a#1", text}}, options);
  EXPECT_EQ(r.more["unsnapped"], 2u);
  EXPECT_EQ(model.prompts[1].find("\nThe magic"), 401u);
  EXPECT_TRUE(contains(to_text(r), "2 needles were inserted mid-sentence"));
}

TEST(Needle, FindsEndsOfSentences) {
  const ScriptedModel model({});
  const auto ends = [&](const std::string& text, std::size_t index) {
    return ends_sentence(model, model.tokenize(text, false, false), index);
  };
  EXPECT_TRUE(ends("a. b", 1));
  EXPECT_TRUE(ends("a.\nb", 1));
  EXPECT_TRUE(ends("a! b", 1));
  EXPECT_TRUE(ends("a.", 1));
  EXPECT_FALSE(ends("a.b", 1));
  EXPECT_FALSE(ends("3.14", 1));
  EXPECT_FALSE(ends("a, b", 1));
  EXPECT_FALSE(ends("a. b", 2));
  EXPECT_EQ(snap_back(model, model.tokenize("ab. cd", false, false), 6, 3), 3);
  EXPECT_EQ(snap_back(model, model.tokenize("ab. cd", false, false), 6, 2), std::nullopt);
  EXPECT_EQ(snap_back(model, model.tokenize("abcdef", false, false), 5, 5), 0);
}

TEST(Needle, ShortTextsAreJoinedAndNeverRepeated) {
  const ScriptedModel model({});
  const std::vector<Document> documents = {
      {"a", "aaaa"}, {"b", "bbbbbbbbbbbb"}, {"c", "cc"}, {"d", "dddd"}, {"e", "eeee"}};
  const auto haystacks = make_haystacks(model, documents, 10, 5);
  ASSERT_EQ(haystacks.size(), 2u);
  EXPECT_EQ(haystacks[0].id, "a + b");
  EXPECT_EQ(model.detokenize(haystacks[0].tokens), "aaaa\n\nbbbb");
  EXPECT_EQ(model.detokenize(haystacks[1].tokens), "cc\n\ndddd\n\n");
  EXPECT_EQ(make_haystacks(model, documents, 10, 1).size(), 1u);
  EXPECT_ERROR(make_haystacks(model, documents, 50, 1), usage,
               "the haystack has 34 tokens, fewer than the longest length, 50");
}

TEST(Needle, NeedlesDependOnSampleAndPlaceButNotOnMethod) {
  ReadingModel model(roomy());
  NeedleOptions options = planted(model, {1000}, {20, 80});
  options.samples = 4;
  const std::vector<Document> documents = {{"a#1", sentences(2000, 1)},
                                           {"b#2", sentences(2000, 2)}};
  run_in_memory(model, {method(model, "none"), method(model, "pro", 4)}, documents, options);
  ASSERT_EQ(model.prompts.size(), 16u);  // sample, method, depth
  std::map<std::string, int> numbers;
  for (std::size_t s = 0; s < 4; ++s) {
    const auto begin = model.prompts.begin() + std::ptrdiff_t(4 * s);
    EXPECT_TRUE(std::equal(begin, begin + 2, begin + 2));
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string& prompt = model.prompts[4 * s + i];
      ++numbers[planted_number(prompt)];
      EXPECT_EQ(prompt.substr(1, 50), documents[s % 2].text.substr(0, 50));
    }
  }
  EXPECT_EQ(numbers.size(), 8u);
  ReadingModel other(roomy());
  options.seed = 2;
  run_in_memory(other, {method(other, "none")}, documents, options);
  EXPECT_NE(other.prompts[0], model.prompts[0]);
}

TEST(Needle, CustomTextsAndChatTemplate) {
  ScriptedOptions scripted = roomy();
  scripted.question = "Where is the key?\nassistant: ";
  scripted.answer = "Under a Blue stone, I think.";
  ReadingModel reader(scripted);
  ScriptedModel model(scripted);
  NeedleOptions options = planted(model, {700, 900}, {0, 50});
  const NeedleTexts own{"The key lies under the blue stone.", "Where is the key?",
                        "under the blue stone"};
  options.form = make_form(model, "", own, 0);
  EXPECT_EQ(options.form.name, "chat");
  EXPECT_EQ(options.form.answer_tokens, 50);
  const std::vector<Document> documents = {{"a#1", sentences(2000, 1)}};
  const ResultTable r = run_in_memory(model, {method(model, "none")}, documents, options);
  EXPECT_EQ(row_at(r, 0, 0, "rouge1_recall").estimate.value, 0.75);
  EXPECT_EQ(row_at(r, 0, 0, "contains").estimate.value, 0);
  EXPECT_TRUE(contains(to_text(r), "Answer contained, in percent:"));
  run_in_memory(reader, {method(reader, "none")}, documents, options);
  EXPECT_EQ(reader.prompts[0].substr(0, 12), "^user: Read ");
  EXPECT_TRUE(contains(reader.prompts[0], "\nThe key lies under the blue stone.\n"));
}

// One sentence, a question and a clause of several words, scored by recall with and without stems.
TEST(Needle, TheFormOfKamradt) {
  ScriptedOptions scripted = roomy();
  scripted.question = "Harrowmere?\nassistant: ";
  scripted.answer = "You row across lakes and drink hot ciders.";
  ScriptedModel model(scripted);
  NeedleOptions options = planted(model, {700, 900}, {0, 50});
  options.form = make_form(model, "kamradt", {}, 0);
  EXPECT_EQ(options.form.name, "kamradt");
  EXPECT_EQ(options.form.answer_tokens, 50);
  EXPECT_TRUE(contains(options.form.needle, options.form.answer));
  EXPECT_EQ(rouge_words(options.form.answer).size(), 12u);
  const std::vector<Document> documents = {{"a#1", sentences(400, 1)}};
  const ResultTable r =
      run_in_memory(model, {method(model, "none"), method(model, "pro", 8)}, documents, options);
  // row, across, and, drink, hot of twelve words; by stems also lake and cider.
  EXPECT_DOUBLE_EQ(row_at(r, 0, 0, "rouge1_recall").estimate.value, 5.0 / 12);
  EXPECT_DOUBLE_EQ(row_at(r, 0, 0, "rouge1_recall_stemmed").estimate.value, 7.0 / 12);
  EXPECT_EQ(row_at(r, 0, 0, "contains").estimate.value, 0);
  EXPECT_EQ(zero_baseline_note(r), "");
  const ordered_json json = to_json(r);
  EXPECT_EQ(json["comparisons"][0]["metric"], "rouge1_recall");
  int stemmed = 0;
  for (const ordered_json& row : json["results"]) {
    stemmed += row["metric"] == "rouge1_recall_stemmed" ? 1 : 0;
  }
  EXPECT_EQ(stemmed, 2 * 2 * 3);  // methods, lengths, two depths and all
  EXPECT_TRUE(contains(to_text(r), "recall by stems"));
  // The user's own, under the same form.
  const NeedleTexts own{"The key lies under the blue stone.", "Where is it?", "under the stone"};
  EXPECT_EQ(make_form(model, "kamradt", own, 0).answer, "under the stone");
  EXPECT_EQ(make_form(model, "kamradt", own, 0).name, "kamradt");
}

TEST(Needle, AnswersOfDigitsHaveNoStems) {
  EXPECT_TRUE(has_words("under the stone"));
  EXPECT_FALSE(has_words("{number}"));
  EXPECT_FALSE(has_words("{word} 12"));
  ScriptedModel model(roomy());
  const ResultTable r = run_in_memory(model, {method(model, "none")}, {{"a#1", sentences(2000, 1)}},
                                      planted(model, {700}, {50}));
  for (const ordered_json& row : to_json(r)["results"].get<std::vector<ordered_json>>()) {
    EXPECT_NE(row["metric"], "rouge1_recall_stemmed");
  }
}

TEST(Needle, RefusesInvalidForms) {
  const ScriptedModel model({});
  EXPECT_ERROR(make_form(model, "haiku", {}, 0), usage, "no needle form 'haiku'");
  for (const auto& [flag, texts] : {std::pair("--needle is missing", NeedleTexts{"", "b", "c"}),
                                    {"--needle is missing", {" \n", "b", "c"}},
                                    {"--question is missing", {"a", "", "c"}},
                                    {"--answer is missing", {"a", "b", ""}}}) {
    expect_error(ErrorKind::usage, flag,
                 [&, &texts = texts] { make_form(model, "chat", texts, 0); });
    expect_error(ErrorKind::usage, flag,
                 [&, &texts = texts] { make_form(model, "kamradt", texts, 0); });
  }
  EXPECT_ERROR(make_form(model, "planted", NeedleTexts{"a", "b", "c"}, 0), usage, "its own needle");
  EXPECT_ERROR(make_form(model, "chat", NeedleTexts{"a", "b", "?"}, 0), usage, "no letter");
  EXPECT_EQ(make_form(model, "completion", {}, 0).answer_tokens, 16);
  EXPECT_EQ(make_form(model, "completion", {}, 7).answer_tokens, 7);
}

TEST(Needle, RefusesInvalidOptions) {
  ScriptedModel model(roomy());
  const auto attempt = [&](auto change, const std::string& part,
                           ErrorKind kind = ErrorKind::usage) {
    NeedleOptions options = planted(model, {500, 1000}, {0, 50});
    std::vector<MethodUnderTest> methods = {method(model, "none")};
    change(options, methods);
    expect_error(kind, part, [&] {
      run_in_memory(model, methods, {{"a#1", sentences(2000, 1)}}, options);
    });
  };
  attempt([](auto& o, auto&) { o.depths = {0, 101}; }, "depth 101");
  attempt([](auto& o, auto&) { o.depths = {-1}; }, "depth -1");
  attempt([](auto& o, auto&) { o.depths = {NAN}; }, "depth nan");
  attempt([](auto& o, auto&) { o.depths.clear(); }, "no depth");
  attempt([](auto& o, auto&) { o.lengths = {100}; }, "length 100 leaves no haystack");
  attempt([](auto& o, auto&) { o.lengths = {9000}; }, "context of 8192");
  attempt([](auto& o, auto&) { o.lengths = {4000}; }, "the haystack has 2");
  attempt([](auto&, auto& m) { m.push_back(m[0]); }, "given twice");
}

// Keys are on the rung of one length, so nothing can be shared, and all tokens are counted.
TEST(Needle, ReadsTheCellsOfALadderOneByOne) {
  ScriptedModel model(roomy());
  const NeedleOptions options = planted(model, {500, 1000}, {0, 50});
  const std::vector<MethodUnderTest> methods = {
      method(model, "none"),
      {"elastic:pro", make_ladder(model.facts().geometry, parse_method("elastic:pro"), 1000)}};
  EXPECT_TRUE(shares(options, methods[0]));
  EXPECT_FALSE(shares(options, methods[1]));
  RunFolder folder;
  Progress progress([](const std::string&) {}, false);
  run_needle(model, methods, {{"a#1", sentences(2000, 1)}}, options, folder, progress);
  ASSERT_EQ(folder.units().size(), 2U);
  for (const auto& unit : folder.units()) {
    const bool grows = unit["method"] == "elastic:pro";
    EXPECT_EQ(unit["tokens"] == unit["naive_tokens"], grows);
  }
}

// It does not stand at 100 % while answers are written.
TEST(Needle, ProgressCountsTheAnswers) {
  for (const bool together : {false, true}) {
    ReadingModel model(roomy(), 3000);
    NeedleOptions options = planted(model, {512, 1024}, {0, 50, 100});
    options.together = together;
    RunFolder folder;
    int full = 0;
    Progress::Clock::time_point now;
    Progress progress([&](const std::string& line) { full += line.starts_with("100%") ? 1 : 0; },
                      false, [&] { return now += std::chrono::seconds(20); });
    run_needle(model, {method(model, "pro", 8)}, {{"a#1", sentences(2000, 1)}}, options, folder,
               progress);
    std::int64_t tokens = 6 * options.form.answer_tokens;
    for (const auto& unit : folder.units()) tokens += unit["tokens"].get<std::int64_t>();
    EXPECT_EQ(progress.computed(), tokens);
    EXPECT_LE(full, 2);  // the last answer, and the end
  }
}

TEST(Needle, EngineFailureNamesTheUnit) {
  ScriptedOptions scripted = roomy();
  scripted.fail_at = 300;
  ScriptedModel model(scripted);
  EXPECT_ERROR(run_in_memory(model, {method(model, "none")}, {{"a#1", sentences(2000, 1)}},
                             planted(model, {500})),
               failed, "(method none, sample 1, haystack a#1)");
}

TEST(Needle, ResultsHaveAllKeysAndErrors) {
  ReadingModel model(roomy(), 600);
  NeedleOptions options = planted(model, {500, 1000}, {0, 50, 100});
  options.samples = 4;
  const ResultTable r = run_in_memory(model, {method(model, "none"), method(model, "pro", 4)},
                                      {{"a#1", sentences(2000, 1)}}, options);
  const ordered_json json = to_json(r);
  EXPECT_EQ(json.at("results").size(), 2u * 2 * (3 + 3 * 3));
  std::string keys;
  for (const auto& [key, value] : json.at("results").at(3).items()) keys += key + " ";
  EXPECT_EQ(keys, "task method plan scale length depth metric value stderr n ");
  EXPECT_EQ(json.at("comparisons").size(), 4u);
  EXPECT_EQ(json.at("ties").size(), 4u);
  // 4 of 12 are out of sight at 1000: the sample's binomial error.
  const Estimate all = row_at(r, 0, 1, "contains").estimate;
  EXPECT_EQ(all.n, 12u);
  EXPECT_NEAR(all.value, 8.0 / 12, 1e-12);
  EXPECT_NEAR(all.error, std::sqrt(8.0 / 12 * 4 / 12 / 11), 1e-12);
}

TEST(NeedleText, HeatMap) {
  ReadingModel model(roomy(), 600);
  RunFolder folder;
  Progress progress;
  const ResultTable r = run_needle(model, {method(model, "pro", 4)}, {{"a#1", sentences(2000, 1)}},
                                   planted(model, {512, 1024}, {0, 50, 100}), folder, progress);
  const std::string text = to_text(r);
  EXPECT_TRUE(contains(text,
                       "pro, scale 4: ROUGE-1 recall in percent\n"
                       "  depth  512   1k\n"
                       "    0 %  100    0\n"
                       "   50 %  100  100\n"
                       "  100 %  100  100\n"));
  EXPECT_TRUE(contains(text, "66.7 +-33.3"));
  EXPECT_FALSE(contains(text, "\x1b"));
  EXPECT_TRUE(contains(to_text(r, true), "\x1b[30;48;5;196m    0\x1b[0m"));
  ordered_json run = folder.run();
  run["methods"][0]["scale"] = nullptr;  // behind an endpoint
  const std::string served = to_text(needle_results(run, folder.units()));
  EXPECT_TRUE(contains(served, "pro: ROUGE-1 recall in percent\n"));
}

TEST(NeedleText, SaysWhereNothingCanBeLearned) {
  const std::vector<Document> documents = {{"a#1", sentences(2000, 1)}};
  ScriptedOptions wide = roomy();
  wide.train_length = 600;
  for (const std::size_t sight : {std::size_t(0), std::size_t(600)}) {
    ReadingModel model(wide, sight);
    const ResultTable r = run_in_memory(model, {method(model, "none"), method(model, "pro", 4)},
                                        documents, planted(model, {512, 1024}, {50, 100}));
    const bool blind = sight == 0;
    EXPECT_EQ(to_text(r).find("Nothing can be learned beyond it") != std::string::npos, blind);
    EXPECT_EQ(!zero_baseline_note(r).empty(), blind);
  }
  // A plan that grows is the untouched model inside its window.
  ReadingModel blind(wide, 0);
  const MethodUnderTest grows{
      "elastic:pro", make_ladder(blind.facts().geometry, parse_method("elastic:pro"), 8192)};
  EXPECT_NE(
      zero_baseline_note(run_in_memory(blind, {grows}, documents, planted(blind, {512}, {50}))),
      "");
  // Without a length inside the window nothing is said.
  ReadingModel model(roomy(), 0);
  const ResultTable r =
      run_in_memory(model, {method(model, "none")}, documents, planted(model, {512}, {50}));
  EXPECT_EQ(zero_baseline_note(r), "");
}

class NeedleSurvival : public ::testing::Test {
 protected:
  std::string run(const std::filesystem::path& out, std::int64_t* computed = nullptr,
                  std::optional<std::int64_t> fail_at = {}) {
    ScriptedOptions scripted = roomy();
    scripted.fail_at = fail_at;
    ScriptedModel model(scripted);
    RunFolder folder(out, {"mrrope eval needle m --out out", "sha256:1", 1});
    Progress progress;
    NeedleOptions options = planted(model, {300, 600, 900}, {0, 50, 100});
    options.samples = 3;
    run_needle(model, {method(model, "none"), method(model, "pro", 4)},
               {{"a#1", sentences(2000, 1)}, {"b#2", sentences(2000, 2)}}, options, folder,
               progress);
    if (computed != nullptr) *computed = model.computed();
    return read_file(out / "results.json");
  }
  TempFolder dir_{test::fast_place()};
};

TEST_F(NeedleSurvival, EngineKilledAnywhereGivesTheSameBytes) {
  std::int64_t computed = 0;
  const std::string whole = run(dir_ / "whole", &computed);
  for (std::int64_t token = 1; token < computed; token += computed / 17) {
    std::filesystem::remove_all(dir_ / "cut");
    EXPECT_THROW(run(dir_ / "cut", nullptr, token), Error);
    std::int64_t again = 0;
    EXPECT_EQ(run(dir_ / "cut", &again), whole) << token;
    EXPECT_LE(token + again, computed + 900) << "more than one prompt was read twice";
  }
  EXPECT_EQ(run(dir_ / "whole", &computed), whole);
  EXPECT_EQ(computed, 0);
}

TEST_F(NeedleSurvival, ResultsComeFromTheFolderAloneInAnyOrder) {
  const std::string whole = run(dir_ / "whole");
  RecordedRun recorded = read_run(dir_ / "whole");
  std::reverse(recorded.units.begin(), recorded.units.end());
  EXPECT_EQ(results_text(to_json(needle_results(recorded.run, recorded.units))), whole);
  recorded.units[0]["sample"] = 3;
  EXPECT_ERROR(needle_results(recorded.run, recorded.units), corrupt, "not of this run");
}

TEST(Needle, HaystacksThatAreTooShortAreRepeatedOnlyForKamradt) {
  const ScriptedModel model(ScriptedOptions{});
  const std::vector<Document> documents = {{"a", sentences(300, 1)}, {"b", sentences(300, 2)}};
  EXPECT_ERROR(make_haystacks(model, documents, 2000, 1), usage, "fewer than the longest length");
  const std::vector<Haystack> made = make_haystacks(model, documents, 2000, 1, true);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].id, "a + b x 3");
  ASSERT_EQ(made[0].tokens.size(), 2000u);
  const std::size_t once = documents[0].text.size() + documents[1].text.size() + 4;
  EXPECT_TRUE(std::equal(made[0].tokens.begin() + std::ptrdiff_t(once), made[0].tokens.end(),
                         made[0].tokens.begin()));
  EXPECT_EQ(make_haystacks(model, documents, 200, 2, true)[1].id, "b");
}

TEST(Needle, EssaysAreLongEnoughAndDiffer) {
  const ScriptedModel model(ScriptedOptions{});
  const std::vector<Document> essays = made_essays(model, 30000, 2);
  const std::vector<Haystack> made = make_haystacks(model, essays, 30000, 2);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_NE(made[0].tokens, made[1].tokens);
  EXPECT_EQ(made_essays(model, 30000, 2)[1].text, essays[1].text);
}

}  // namespace
}  // namespace mrrope::eval
