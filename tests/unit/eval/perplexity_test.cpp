// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/perplexity/perplexity.h"

#include "base/interrupt.h"
#include "base/random.h"
#include "base/text.h"
#include "eval/results/result_table.h"
#include "support/result_rows.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

std::vector<MethodUnderTest> three_methods(const TimelineModel& model) {
  return {method(model, "pro", 8, 512),
          method(model, "none", 1, 512),
          {"elastic:pro", make_ladder(model.facts().geometry, parse_method("elastic:pro"), 512)}};
}

std::string noise(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text.push_back(char('a' + random.below(26)));
  return text;
}

std::vector<Document> four_documents() {
  return {
      {"a#1", noise(400, 1)}, {"b#2", noise(300, 2)}, {"c#3", noise(100, 3)}, {"d#4", noise(7, 4)}};
}

PerplexityOptions small_options() {
  PerplexityOptions options;
  options.lengths = {256, 32, 64, 128};  // any order
  options.batch = 50;
  options.kl_positions = 5;
  return options;
}

ResultTable run_in_memory(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                          const std::vector<Document>& documents,
                          const PerplexityOptions& options) {
  RunFolder folder;
  Progress progress;
  return run_perplexity(model, methods, documents, options, folder, progress);
}

// Mean loss of tokens begin .. length-1 of a pass over exactly `length` tokens.
double naive_loss(TimelineModel& model, const Ladder& under, const Document& document,
                  std::int64_t begin, std::int64_t length) {
  std::vector<Token> tokens = model.tokenize(document.text, true, false);
  tokens.resize(std::size_t(length));
  model.use(under);
  const std::vector<double> scores = model.timeline()->append_scored(tokens);
  double sum = 0;
  int count = 0;
  for (std::int64_t i = std::max<std::int64_t>(1, begin); i < length; ++i, ++count) {
    sum -= scores[std::size_t(i)];
  }
  return sum / count;
}

// A run as a transcript has it, on four documents: its table, and what failed.
std::string run_answer(const json& given) {
  ScriptedOptions scripted;
  const auto at = [&](const char* key) -> std::optional<std::int64_t> {
    if (!given.contains(key)) return {};
    return given[key].get<std::int64_t>();
  };
  scripted.certain_at = at("certain_at");
  scripted.certain_method = given.value("under", "");
  scripted.fail_at = at("fail_at");
  ScriptedModel model(scripted);
  PerplexityOptions options = small_options();
  options.lengths = given.value("lengths", options.lengths);
  options.kl_positions = given.value("kl", options.kl_positions);
  std::vector<MethodUnderTest> methods;
  for (const std::string& name :
       given.value("methods", std::vector<std::string>{"pro", "none", "elastic:pro"})) {
    for (const MethodUnderTest& one : three_methods(model)) {
      if (one.name == name) methods.push_back(one);
    }
  }
  const ResultTable r = run_in_memory(model, methods, four_documents(), options);
  const ordered_json results = to_json(r);
  const ordered_json& rows = results.at("results");
  std::size_t empty = 0;
  for (const ordered_json& row : rows) empty += row.at("value").is_null() ? 1 : 0;
  std::string keys;
  for (const auto& [key, value] : rows.at(0).items()) keys += key + " ";
  return cat(rows.size(), " rows of ", keys, "(", empty, " without a value), ",
             results.at("comparisons").size(), " comparisons, ",
             results.value("verdicts", json::array()).size(), " verdicts\n", to_text(r));
}

TEST(Perplexity, RunsAreMadeOrRefused) {
  test::expect_functions("perplexity",
                         {{"run", [](auto& a) { return run_answer(json::parse(a[0])); }},
                          {"recorded", [](auto& a) {
                             ordered_json run = {
                                 {"task", "ppl"},
                                 {"model", {{"train_length", 64}}},
                                 {"methods", ordered_json::array()},
                                 {"documents", ordered_json::array()},
                                 {"settings", {{"lengths", {64}}, {"stride", std::stoi(a[0])}}}};
                             return cat(results_of({run, {}}).rows.size(), " rows");
                           }}});
}

TEST(Perplexity, OnePassEqualsOnePassPerLength) {
  for (const bool bos : {true, false}) {
    ScriptedModel model({.has_bos = bos});
    const auto methods = three_methods(model);
    const auto documents = four_documents();
    const ResultTable r = run_in_memory(model, methods, documents, small_options());
    ASSERT_EQ(r.lengths, (std::vector<std::int64_t>{32, 64, 128, 256}));
    ASSERT_EQ(r.methods.size(), 3u);
    const std::vector<std::size_t> reach = {3, 3, 2, 2};  // documents that are long enough
    for (std::size_t m = 0; m < methods.size(); ++m) {
      EXPECT_EQ(r.methods[m].method, methods[m].name);
      for (std::size_t l = 0; l < r.lengths.size(); ++l) {
        const std::int64_t n = r.lengths[l];
        double full = 0;
        double half = 0;
        double band = 0;
        for (std::size_t d = 0; d < reach[l]; ++d) {
          const double loss = naive_loss(model, *methods[m].ladder, documents[d], 0, n);
          EXPECT_NEAR((row_at(r, m, l, "perplexity").units[{d, 0}]), loss, 1e-12);
          full += loss;
          half += naive_loss(model, *methods[m].ladder, documents[d], n / 2, n);
          band +=
              naive_loss(model, *methods[m].ladder, documents[d], l == 0 ? 0 : r.lengths[l - 1], n);
        }
        const double k = double(reach[l]);
        EXPECT_EQ(row_at(r, m, l, "perplexity").estimate.n, reach[l]);
        EXPECT_NEAR(row_at(r, m, l, "perplexity").estimate.value, std::exp(full / k), 1e-9);
        EXPECT_NEAR(row_at(r, m, l, "perplexity_last_half").estimate.value, std::exp(half / k),
                    1e-9);
        EXPECT_NEAR(row_at(r, m, l, "perplexity_band").estimate.value, std::exp(band / k), 1e-9);
      }
    }
  }
}

TEST(Perplexity, ComputesOnlyTokensThatALengthNeeds) {
  ScriptedModel model({});
  PerplexityOptions options = small_options();
  options.kl_positions = 0;
  run_in_memory(model, {method(model, "none", 1, 512)}, four_documents(), options);
  EXPECT_EQ(model.computed(), 256 + 256 + 64);  // documents of 401, 301, 101 and 8 tokens
}

TEST(Perplexity, DivergenceMatchesFullLogits) {
  ScriptedModel model({});
  const auto methods = three_methods(model);
  const auto documents = four_documents();
  const ResultTable r = run_in_memory(model, methods, documents, small_options());
  EXPECT_EQ(r.reference_length(), 64);
  // Positions (2k + 1) * 64 / 10: 6 19 32 44 57.
  const std::vector<std::size_t> wanted = {6, 19, 32, 44, 57};
  double sum = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<std::vector<double>> p;  // none, then pro
    for (const std::size_t m : {1u, 0u}) {
      model.use(*methods[m].ladder);
      model.timeline()->append(model.tokenize(documents[d].text, true, false), wanted,
                               [&](std::size_t, std::span<const float> logits) {
                                 double total = 0;
                                 for (const float x : logits) total += std::exp(x);
                                 p.emplace_back();
                                 for (const float x : logits) {
                                   p.back().push_back(std::exp(x) / total);
                                 }
                               });
    }
    for (std::size_t k = 0; k < 5; ++k) {
      for (std::size_t v = 0; v < p[k].size(); ++v) {
        sum += p[k][v] * std::log(p[k][v] / p[5 + k][v]);
      }
    }
  }
  EXPECT_NEAR(r.verdicts[0].divergence.value, sum / 15, 1e-5);
  EXPECT_EQ(r.verdicts[0].divergence.n, 3u);
  EXPECT_EQ(r.verdicts[1].divergence.n, 0u);     // the untouched model itself
  EXPECT_EQ(r.verdicts[2].divergence.value, 0);  // elastic: untouched inside the window
  EXPECT_EQ(row_at(r, 2, 1, "perplexity").estimate.value,
            row_at(r, 1, 1, "perplexity").estimate.value);
}

class Survival : public ::testing::Test {
 protected:
  std::string run(const std::filesystem::path& out, std::int64_t* computed = nullptr,
                  ScriptedOptions scripted = {}) {
    ScriptedModel model(scripted);
    RunFolder folder(out, {"mrrope eval ppl m --out out", "sha256:1", 1});
    Progress progress;
    run_perplexity(model, three_methods(model), four_documents(), options_, folder, progress);
    if (computed != nullptr) *computed = model.computed();
    return read_file(out / "results.json");
  }
  PerplexityOptions options_ = small_options();
  TempFolder dir_{test::fast_place()};
};

TEST_F(Survival, JournalCutAnywhereGivesTheSameBytes) {
  const std::string whole = run(dir_ / "whole");
  const std::string journal = read_file(dir_ / "whole/journal.jsonl");
  const std::string run_json = read_file(dir_ / "whole/run.json");
  std::vector<std::size_t> cuts = {0, journal.size(), journal.size() - 1};
  for (std::size_t at = journal.find('\n'); at != std::string::npos;
       at = journal.find('\n', at + 1)) {
    cuts.push_back(at);      // the line without its line feed
    cuts.push_back(at + 1);  // between two units
  }
  Random random(7);
  for (int i = 0; i < 20; ++i) cuts.push_back(random.below(journal.size()));
  for (const std::size_t cut : cuts) {
    std::filesystem::remove_all(dir_ / "cut");
    write_file(dir_ / "cut/journal.jsonl", journal.substr(0, cut));
    if (cut % 2 == 0) write_file(dir_ / "cut/run.json", run_json);
    EXPECT_EQ(run(dir_ / "cut"), whole) << cut;
    EXPECT_EQ(read_file(dir_ / "cut/journal.jsonl"), journal) << cut;
  }
}

TEST_F(Survival, EngineKilledAnywhereGivesTheSameBytes) {
  const auto run_into = [&](const std::filesystem::path& out, std::optional<std::int64_t> fail_at) {
    std::int64_t computed = 0;
    run(out, &computed, {.fail_at = fail_at});
    return computed;
  };
  test::expect_survives(run_into, 15, 2 * 256);  // a unit, and the untouched model's logits
}

TEST_F(Survival, NanEndsTheRunAndKeepsTheJournal) {
  const std::string whole = run(dir_ / "whole");
  ScriptedOptions broken{.nan_at = 70, .nan_method = "pro"};
  EXPECT_ERROR(run(dir_ / "cut", nullptr, broken), failed, "NaN");
  EXPECT_ERROR(run(dir_ / "cut", nullptr, broken), failed, "(method pro, document a#1)");
  EXPECT_EQ(read_run(dir_ / "cut").units.size(), 1u);  // none came first
  EXPECT_EQ(run(dir_ / "cut"), whole);                 // by an engine that works
}

TEST_F(Survival, InterruptKeepsFinishedUnitsAndSaysHowToResume) {
  const std::string whole = run(dir_ / "whole");
  ScriptedModel model({});
  {
    RunFolder folder(dir_ / "cut", {"mrrope eval ppl m --out out", "sha256:1", 1});
    // The clock is read in every batch: Ctrl-C comes in the middle of the third unit.
    int ticks = 0;
    Progress progress([](const std::string&) {}, false,
                      [&] {
                        if (++ticks == 30) request_interrupt();
                        return Progress::Clock::time_point();
                      });
    const Error e = test::error_of([&] {
      run_perplexity(model, three_methods(model), four_documents(), small_options(), folder,
                     progress);
    });
    EXPECT_EQ(e.kind(), ErrorKind::interrupted);
    EXPECT_EQ(e.hint(), "resume with: mrrope eval ppl m --out out");
    clear_interrupt();
    EXPECT_GT(folder.units().size(), 0u);
  }
  EXPECT_EQ(run(dir_ / "cut"), whole);
}

TEST_F(Survival, DifferentSettingsAreADifferentRun) {
  run(dir_ / "whole");
  options_.batch = 51;
  EXPECT_ERROR(run(dir_ / "whole"), usage, "settings/batch is 50 there and 51 now");
}

}  // namespace
}  // namespace mrrope::eval
