// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle.h"

#include "base/random.h"
#include "base/text.h"
#include "core/methods.h"
#include "eval/score/answer_text.h"
#include "models/reading_model.h"
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

// A run as a transcript has it, on 2,000 bytes of sentences or on "text": its table.
std::string run_answer(const json& given) {
  ScriptedOptions scripted = roomy();
  const auto take = [&](const char* key, auto& value) {
    if (given.contains(key)) value = given[key].get<std::decay_t<decltype(value)>>();
  };
  take("window", scripted.train_length);
  take("asked", scripted.question);
  take("says", scripted.answer);
  if (given.contains("fail_at")) scripted.fail_at = given["fail_at"].get<std::int64_t>();
  std::size_t sight = 1 << 20;
  take("sight", sight);
  ReadingModel reader(scripted, sight);
  ScriptedModel writer(scripted);
  const bool scripts = given.contains("asked") || given.contains("fail_at");
  TimelineModel& model = scripts ? static_cast<TimelineModel&>(writer) : reader;
  NeedleOptions options = planted(model, {500, 1000}, {0, 50});
  take("lengths", options.lengths);
  take("depths", options.depths);
  take("samples", options.samples);
  std::string form = "planted", text = sentences(2000, 1);
  take("form", form);
  take("text", text);
  int tokens = 0;
  take("tokens", tokens);
  std::optional<NeedleTexts> texts;
  if (given.contains("needle")) {
    texts = NeedleTexts{given["needle"][0], given["needle"][1], given["needle"][2]};
  }
  options.form = make_form(model, form, texts, tokens);
  std::vector<MethodUnderTest> methods;
  for (const std::string& name : given.value("methods", std::vector<std::string>{"none"})) {
    const MethodSpec spec = parse_method(name);
    methods.push_back(spec.growth == Growth::none
                          ? method(model, name.c_str(), name == "none" ? 1 : 4)
                          : MethodUnderTest{name, make_ladder(model.facts().geometry, spec, 8192)});
  }
  RunFolder folder;
  Progress progress;
  const ResultTable r = run_needle(model, methods, {{"a#1", text}}, options, folder, progress);
  ordered_json rows = to_json(r);
  std::string out = cat("form ", options.form.name, ", answers of ", options.form.answer_tokens,
                        " tokens, rows ", rows["results"].size(), " of ");
  for (const auto& [key, value] : rows["results"][0].items()) out += key + " ";
  out += cat("and ", rows["comparisons"].size(), " comparisons, of ",
             rows["comparisons"].empty() ? "" : rows["comparisons"][0].value("metric", ""), "\n",
             to_text(r, given.value("colour", false)));
  if (!given.value("served", false)) return out;
  RecordedRun recorded = folder.recorded();
  recorded.run["methods"][0]["scale"] = nullptr;  // behind an endpoint
  return to_text(results_of(recorded));
}

// TOKENS | COUNT | TEXT ...
std::string haystacks_answer(const test::Arguments& a, bool repeat) {
  const ScriptedModel model({});
  std::vector<Document> documents;
  for (std::size_t i = 2; i < a.size(); ++i) {
    documents.push_back({std::string(1, char('a' + i - 2)), a[i]});
  }
  std::string out;
  for (const Haystack& h :
       make_haystacks(model, documents, std::stol(a[0]), std::stoul(a[1]), repeat)) {
    out += h.id + ": " + model.detokenize(h.tokens) + "\n";
  }
  return out;
}

TEST(Needle, RunsAreMadeOrRefused) {
  const ScriptedModel model({});
  const auto tokens = [&](const std::string& text) { return model.tokenize(text, false, false); };
  test::expect_functions(
      "needles",
      {{"run", [](auto& a) { return run_answer(json::parse(a[0])); }},
       {"ends", [&](auto& a) { return cat(ends_sentence(model, tokens(a[0]), std::stoul(a[1]))); }},
       {"snap",
        [&](auto& a) {
          const auto at = snap_back(model, tokens(a[0]), std::stol(a[1]), std::stol(a[2]));
          return at ? cat(*at) : "nowhere";
        }},
       {"words", [](auto& a) { return cat(has_words(a[0])); }},
       {"haystacks", [](auto& a) { return haystacks_answer(a, false); }},
       {"repeated", [](auto& a) { return haystacks_answer(a, true); }}});
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

TEST(Needle, EngineKilledAnywhereGivesTheSameBytes) {
  const auto run = [](const std::filesystem::path& out, std::optional<std::int64_t> fail_at) {
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
    return model.computed();
  };
  test::expect_survives(run, 17, 900 + 20);  // one prompt and its answer
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
