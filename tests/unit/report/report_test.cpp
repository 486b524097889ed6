// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "eval/results/result_table.h"
#include "eval/run/run_folder.h"
#include "eval/run/runner.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "support/test.h"

namespace mrrope::report {
namespace {

struct FakeRun {
  std::string model = "Some Model";
  std::string digest = "sha256:00";
  std::vector<std::string> methods = {"none", "pro"};
  std::size_t units = 100;  // written; fewer than there are: a run that was cut off
  std::int64_t window = 1024;
  std::vector<std::int64_t> lengths = {};  // empty: half of the window to twice of it
  double step = 0;                         // by which each method is worse than the one before
};

eval::MethodUnderTest under(const std::string& name, std::int64_t window) {
  Extension e{.method = name == "none" ? "none" : "pro", .scale = name == "none" ? 1.0 : 4.0};
  const Geometry g{.rotary_dim = 128, .base = 10000, .train_length = window};
  return {name, make_ladder(make_plan(g, e), 4 * window)};
}

// Three documents; the untouched model breaks past its window, the others hold.
void write_run(const std::filesystem::path& folder, const FakeRun& fake) {
  std::vector<eval::MethodUnderTest> methods;
  for (const std::string& name : fake.methods) methods.push_back(under(name, fake.window));
  std::vector<std::int64_t> lengths = fake.lengths;
  if (lengths.empty()) lengths = {fake.window / 2, fake.window, 2 * fake.window};
  ordered_json identity = {
      {"task", "ppl"},
      {"model", {{"name", fake.model}, {"architecture", "llama"}, {"train_length", fake.window}}},
      {"engine", "none"},
      {"settings", {{"lengths", lengths}, {"batch", 512}, {"kl_positions", 0}}},
      {"methods", methods_identity(methods)},
      {"documents", ordered_json::array()}};
  for (int d = 0; d < 3; ++d) {
    identity["documents"].push_back({{"id", "text" + std::to_string(d)}, {"tokens", 100000}});
  }
  eval::RunFolder run(folder, {"mrrope eval ppl <model>", fake.digest, 1});
  run.begin(identity);
  std::size_t written = 0;
  for (int d = 0; d < 3; ++d) {
    for (int at = 0; at < int(fake.methods.size()); ++at) {
      const std::string& name = fake.methods[std::size_t(at)];
      ordered_json unit = {
          {"task", "ppl"}, {"document", "text" + std::to_string(d)}, {"method", name}};
      unit["lengths"] = ordered_json::array();
      for (const std::int64_t n : lengths) {
        const bool broken = name == "none" && n > fake.window;
        const double loss =
            (broken ? 4 : 1.5) + 0.01 * d + (name == "none" ? 0 : 0.02) + fake.step * at;
        const double count = double(n) - 1;
        unit["lengths"].push_back({{"length", n},
                                   {"sum", -loss * count},
                                   {"count", count},
                                   {"last_half_sum", -loss},
                                   {"last_half_count", 1},
                                   {"band_sum", -loss},
                                   {"band_count", 1}});
      }
      if (written++ < fake.units) run.append(unit);
    }
  }
  if (written <= fake.units) {
    run.finish(eval::results_text(eval::to_json(eval::perplexity_results(run.run(), run.units()))),
               {2, 1000});
  }
}

TEST(Report, SaysHowFarEachMethodIsGood) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  const auto records = read_records({(temp / "run").string()});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_TRUE(records[0].finished);
  const auto verdicts = verdicts_of(records);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].headline, "pro holds to 2k tokens, 2 times the window of 1k.");
  EXPECT_EQ(verdicts[0].method, "pro");
  EXPECT_EQ(verdicts[0].good_to, 2048);
  const std::string page = report_page(records);
  EXPECT_TRUE(contains(page, "costs +2.0 &#177; 0.0 % perplexity"));
  EXPECT_TRUE(contains(page, "window 1k"));
  EXPECT_LT(page.size(), 1000000u);
  const ordered_json json = report_json(records);
  EXPECT_EQ(json["runs"][0]["state"], "finished");
  EXPECT_EQ(json["verdicts"][0]["good_to"], 2048);
  EXPECT_EQ(json["results"].size(), records[0].table.rows.size());
}

// Nothing is said of the inside of a window that was not measured; methods may be of several runs.
TEST(Report, SaysWhichMethodIsBestWhereNoLengthIsInsideTheWindow) {
  const test::TempFolder temp;
  FakeRun fake{.methods = {"none", "pro"}, .lengths = {2048, 4096}, .step = 0.05};
  write_run(temp / "one", fake);
  fake.methods = {"uni"};
  write_run(temp / "two", fake);
  const auto records = read_records({(temp / "one").string(), (temp / "two").string()});
  const auto verdicts = verdicts_of(records);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].headline,
            "At 4k tokens uni has the lowest perplexity, 4.618; next: pro, 4.855 (+5.1 +- 0.0 %, "
            "paired).");
  EXPECT_EQ(verdicts[0].method, "uni");
  EXPECT_EQ(verdicts[0].good_to, 0);
  ASSERT_EQ(verdicts[0].sentences.size(), 3u);
  EXPECT_EQ(verdicts[0].sentences[0],
            "Not known: how far it holds, and what it costs inside the window; no length inside "
            "the window was measured (add 1k to --lengths).");
  EXPECT_TRUE(verdicts[0].sentences[2].starts_with("At 2k tokens uni has the lowest perplexity"));
}

TEST(Report, UnfinishedRunsAreMarked) {
  const test::TempFolder temp;
  FakeRun fake;
  fake.units = 3;
  write_run(temp / "run", fake);
  const auto records = read_records({(temp / "run").string()});
  EXPECT_FALSE(records[0].finished);
  EXPECT_EQ(records[0].units, 3u);
  EXPECT_EQ(records[0].table.expected_units, 6u);
  const std::string page = report_page(records);
  EXPECT_TRUE(contains(page, "not finished: 3 of 6 units"));
  EXPECT_TRUE(contains(page, "Resume with: <code>mrrope eval ppl &lt;model&gt;"));
  EXPECT_EQ(verdicts_of(records)[0].headline.rfind("So far: ", 0), 0u);
  // Nothing measured at all.
  fake.units = 0;
  write_run(temp / "empty", fake);
  const auto empty = read_records({(temp / "empty").string()});
  EXPECT_TRUE(contains(report_page(empty), "not finished: 0 of 6 units"));
  EXPECT_FALSE(contains(report_page(empty), "nothing measured yet")) << "no empty chart";
}

TEST(Report, NamesAreEscaped) {
  const test::TempFolder temp;
  FakeRun fake;
  fake.model = "</title><script>alert(1)</script>";
  fake.methods = {"none", "<img src=x>", "\"quoted\" & 'so'"};
  write_run(temp / "<b>run<!--", fake);
  const std::string page = report_page(read_records({(temp / "<b>run<!--").string()}));
  EXPECT_FALSE(contains(page, "<script>alert"));
  EXPECT_FALSE(contains(page, "<img"));
  EXPECT_FALSE(contains(page, "<b>run"));
  EXPECT_TRUE(contains(page, "&lt;img src=x&gt;"));
}

TEST(Report, WritesMarkdownWithPicturesBesideIt) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  const auto records = read_records({(temp / "run").string()});
  const MarkdownPage page = report_markdown(records, "tiny", "mrrope report runs -o tiny.md");
  ASSERT_EQ(page.figures.size(), 1u);
  EXPECT_EQ(page.figures[0].file, "tiny-perplexity");
  for (const char* part :
       {"**pro holds to 2k tokens", "](tiny-perplexity.svg)", "Drawn by `mrrope report runs -o ",
        "| method | 512 | 1k | 2k | n |\n|---|---:|---:|---:|---:|\n| none | 4.527 \u00b1 0.026 |",
        "- run: `mrrope eval ppl <model>`"}) {
    EXPECT_TRUE(contains(page.text, part)) << part << "\n" << page.text;
  }
  EXPECT_FALSE(contains(page.text, "Bands")) << "only what methods are compared by";
}

// A commit is added where runs are kept; the journal is still that of the run.
TEST(Report, MarkdownNamesTheCommit) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  ordered_json run = ordered_json::parse(test::read_file(temp / "run" / "run.json"));
  run["commit"] = "0123abcd";
  test::write_file(temp / "run" / "run.json", run.dump());
  const MarkdownPage page = report_markdown(read_records({(temp / "run").string()}), "x", "y");
  EXPECT_TRUE(contains(page.text, ", commit 0123abcd | none | 1000 |"));
}

TEST(Report, MarkdownEscapesNames) {
  const test::TempFolder temp;
  FakeRun fake;
  fake.model = "a|b\n# <script>[x](y)`";
  fake.methods = {"none", "<img src=x>"};
  write_run(temp / "run", fake);
  const std::string page =
      report_markdown(read_records({(temp / "run").string()}), "x", "y`z").text;
  EXPECT_EQ(page.rfind("# a\\|b # &lt;script>\\[x\\](y)\\`\n", 0), 0u) << page;
  EXPECT_FALSE(contains(page, "| <img"));
  EXPECT_TRUE(contains(page, "Made by `y z`"));
}

TEST(Report, FoldersIncludeTheRunsInThem) {
  const test::TempFolder temp;
  write_run(temp / "all/a", {});
  write_run(temp / "all/b", {});
  const auto records = read_records({(temp / "all").string()});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].name, "a");
  EXPECT_EQ(records[1].name, "b");
  // Same model, texts and settings: one chart, the second run's methods with its name.
  ASSERT_EQ(grouped(records).size(), 1u);
  const auto figures = figures_of(records);
  const auto& chart = std::get<LineChart>(figures[0].content);
  ASSERT_EQ(chart.series.size(), 4u);
  EXPECT_EQ(chart.series[1].name, "pro");
  EXPECT_EQ(chart.series[3].name, "pro (b)");
}

// The headline has its picture, with what to see in it.
TEST(Report, PictureComesAfterTheHeadline) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  const auto records = read_records({(temp / "run").string()});
  const auto figures = figures_of(records);
  EXPECT_EQ(figures[0].verdict, std::optional<std::size_t>(0));
  EXPECT_EQ(figures[0].note.rfind("At 2k pro is best (", 0), 0u) << figures[0].note;
  const std::string page = report_page(records);
  EXPECT_LT(page.find("</h1>"), page.find("<figure class=\"full\">"));
  EXPECT_LT(page.find("<figure class=\"full\">"), page.find("What to do next"));
  for (const Figure& f : figures) {
    EXPECT_FALSE(f.note.empty()) << f.title;
    EXPECT_TRUE(f.is_map() || has_content(std::get<LineChart>(f.content))) << f.title;
  }
}

TEST(Report, ExplainsAScaleThatIsMoreThanAsked) {
  RecordedMethod m;
  m.method = "far:pi";
  m.scale = 24.8;
  m.scale_reason = "headroom 1.6";
  EXPECT_EQ(scale_text(m, 1024, 8192),
            " far:pi has a scale of 24.8, more than the 8 windows of 8k tokens: headroom 1.6.");
  m.scale_reason.clear();
  m.scale = 16;
  EXPECT_TRUE(contains(scale_text(m, 1024, 8192), "it is made for 16k."));
  EXPECT_EQ(scale_text(m, 1024, 16384), "");
  m.untouched = true;
  EXPECT_EQ(scale_text(m, 1024, 8192), "");
}

TEST(Report, ModelsAreShownSeparately) {
  const test::TempFolder temp;
  FakeRun other;
  other.model = "Other Model";
  other.digest = "sha256:11";
  write_run(temp / "a", {});
  write_run(temp / "b", other);
  const auto records = read_records({(temp / "a").string(), (temp / "b").string()});
  EXPECT_EQ(grouped(records).size(), 2u);
  EXPECT_EQ(verdicts_of(records).size(), 2u);
  EXPECT_EQ(figures_of(records)[0].title.rfind("Some Model: ", 0), 0u);
}

TEST(Report, UnreadableRunsAreNamed) {
  const test::TempFolder temp;
  write_run(temp / "good", {});
  test::write_file(temp / "bad/run.json", "{");
  test::write_file(temp / "odd/run.json", "{\"task\": \"ppl\"}");
  test::write_file(temp / "odd/journal.jsonl", "");
  const auto records = read_records({(temp / "good").string(), (temp / "bad").string(),
                                     (temp / "odd").string(), (temp / "none").string()});
  ASSERT_EQ(records.size(), 4u);
  EXPECT_TRUE(records[0].problem.empty());
  for (std::size_t i = 1; i < 4; ++i) EXPECT_FALSE(records[i].problem.empty()) << i;
  const std::string page = report_page(records);
  EXPECT_TRUE(contains(page, "could not be read"));
  EXPECT_ERROR(read_records({(temp / "none").string()}), failed, "none");
  EXPECT_ERROR(read_records({}), failed, "no folder");
}

// A task that this build does not know, with unexpected values.
TEST(Report, JournalWithWrongTypesIsCorrupt) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  std::string journal = test::read_file(temp / "run/journal.jsonl");
  const std::size_t at = journal.rfind("\"method\":\"");
  journal.replace(at, journal.find(',', at) - at, "\"method\":5");
  test::write_file(temp / "run/journal.jsonl", journal);
  EXPECT_ERROR(read_records({(temp / "run").string()}), corrupt, "journal");
}

TEST(Report, UnknownTasksGetTablesAndCharts) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  ordered_json run = ordered_json::parse(std::ifstream(temp / "run/run.json"));
  eval::RunFolder folder(temp / "other", {"mrrope eval other", "sha256:00", 1});
  run["task"] = "other";
  for (const char* key : {"mrrope", "command", "model_digest", "seed", "measured"}) run.erase(key);
  folder.begin(run);
  folder.append({{"task", "other"}});
  ordered_json results;
  for (const char* task : {"other/one", "other/two"}) {
    for (const std::int64_t length : {1024, 2048}) {
      results["results"].push_back({{"task", task},
                                    {"method", "pro"},
                                    {"plan", "x"},
                                    {"scale", 4},
                                    {"length", length},
                                    {"metric", "score"},
                                    {"value", length == 1024 ? 80.5 : 70.5},
                                    {"stderr", 3},
                                    {"n", 50}});
    }
  }
  results["results"].push_back({{"task", "other/two"},
                                {"method", "yarn"},
                                {"length", -3},
                                {"metric", "score"},
                                {"value", nullptr},
                                {"n", 1e300}});
  folder.finish(results.dump(), {1, 1});
  const auto records = read_records({(temp / "other").string()});
  ASSERT_TRUE(records[0].problem.empty()) << records[0].problem;
  EXPECT_TRUE(records[0].finished);
  const auto figures = figures_of(records);
  const auto& chart = std::get<LineChart>(figures[0].content);
  EXPECT_EQ(figures[0].section, "other");
  EXPECT_DOUBLE_EQ(chart.series[0].points[0].y, 80.5);
  const std::string page = report_page(records);
  EXPECT_TRUE(contains(page, "other/one"));
  EXPECT_TRUE(contains(page, "80.5 &#177; 3"));
}

TEST(Report, SaysWhatToDoNextWithTheCommand) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  auto records = read_records({(temp / "run").string()});
  EXPECT_EQ(verdicts_of(records)[0].next[0].command,
            "mrrope export MODEL.gguf --method pro --ctx 2k -o extended-2k.gguf");
  records[0].run["model_file"] = {{"path", "my models/a.gguf"}, {"train_ctx", "512"}};
  const auto next = verdicts_of(records)[0].next;
  ASSERT_EQ(next.size(), 2u) << "it holds to the longest length";
  EXPECT_EQ(
      next[0].command,
      "mrrope export 'my models/a.gguf' --train-ctx 512 --method pro --ctx 2k -o extended-2k.gguf");
  EXPECT_EQ(next[1].command,
            "mrrope eval ppl 'my models/a.gguf' --train-ctx 512 --method pro --ctx 4k -o ppl-4k");
  EXPECT_TRUE(contains(report_page(records), "What to do next"));
  EXPECT_TRUE(contains(report_text(records), next[0].command));
}

TEST(Report, ExplainsTheTermsItUses) {
  const test::TempFolder temp;
  write_run(temp / "run", {});
  const std::string page = report_page(read_records({(temp / "run").string()}));
  for (const char* term : {"<dt>window</dt>", "<dt>perplexity</dt>", "Holm", "<dt>band</dt>"}) {
    EXPECT_TRUE(contains(page, term)) << term;
  }
  EXPECT_FALSE(contains(page, "<dt>front</dt>")) << "no search here";
}

TEST(Report, PointsOutTasksThatTheUntouchedModelFailsInsideItsWindow) {
  for (const double inside : {0.0, 60.0}) {
    const test::TempFolder temp;
    eval::RunFolder folder(temp / "other", {"mrrope eval other m.gguf", "sha256:00", 1});
    // Of an unknown task report reads results.json as it is.
    folder.begin(
        {{"task", "other"},
         {"model", {{"name", "Some Model"}, {"architecture", "x"}, {"train_length", 1024}}},
         {"methods", eval::methods_identity({under("none", 1024), under("pro", 1024)})}});
    ordered_json results = {{"results", ordered_json::array()}};
    const auto add = [&](const char* method, int length, double value) {
      results["results"].push_back({{"task", "other/vt"},
                                    {"method", method},
                                    {"length", length},
                                    {"metric", "score"},
                                    {"value", value},
                                    {"stderr", 0},
                                    {"n", 20}});
    };
    add("none", 1024, inside);
    add("none", 2048, 0);
    add("pro", 1024, 0);
    add("pro", 2048, 35);
    folder.finish(results.dump(), {1, 1});
    const std::string text = report_text(read_records({(temp / "other").string()}));
    const bool said = text.find("Nothing can be learned beyond it") != std::string::npos;
    EXPECT_EQ(said, inside == 0) << text;
  }
}

// Forms of one method with different parameters: a line for one of them, a map for two.
TEST(Report, ShowsPerplexityByTheParametersOfAMethod) {
  const test::TempFolder temp;
  FakeRun fake;
  fake.lengths = {4096};
  fake.step = 0.1;
  fake.methods = {"pro(low=4)", "uni(low=4)", "pro(low=2)", "uni(low=2)"};
  write_run(temp / "line", fake);
  const std::vector<RunRecord> line = {read_record(temp / "line")};
  const std::vector<Figure> lines = figures_of(line);
  ASSERT_EQ(lines.size(), 2u) << "and the plans";
  EXPECT_EQ(lines[0].title, "Perplexity at 4k by low");
  const auto& chart = std::get<LineChart>(lines[0].content);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[1].name, "uni");
  EXPECT_EQ(chart.series[1].points[0].x, 2);
  EXPECT_GT(chart.series[1].points[0].y, chart.series[1].points[1].y);
  const std::string text = report_text(line);
  EXPECT_TRUE(contains(text, "At 4k tokens pro(low=4) has the lowest perplexity, 4.6"));

  fake.methods = {"pro(low=5,high=30,headroom=2)", "pro(low=4,high=30,headroom=2)",
                  "pro(low=4,high=35,headroom=2)"};
  write_run(temp / "map", fake);
  const std::vector<Figure> figures = figures_of({read_record(temp / "map")});
  EXPECT_EQ(figures[0].title, "Perplexity at 4k by low and high");
  const HeatMap map = std::get<std::vector<HeatMap>>(figures[0].content).at(0);
  EXPECT_EQ(map.title, "pro(headroom=2)");
  EXPECT_EQ(map.rows, (std::vector<std::string>{"4", "5"}));
  EXPECT_EQ(map.columns, (std::vector<std::string>{"30", "35"}));
  EXPECT_TRUE(std::isnan(map.values[1][1]));
  EXPECT_EQ(map.best, std::pair(std::size_t(1), std::size_t(0)));
  EXPECT_TRUE(contains(report_page({read_record(temp / "map")}), "class=\"cell best h0\""));
}

TEST(Report, RunOfAnEarlierSweepIsRefused) {
  const test::TempFolder folder;
  eval::RunFolder run(folder / "sweep", {"mrrope sweep m.gguf", "sha256:00", 1});
  run.begin({{"task", "sweep"}});
  run.finish("{}", {1, 1});
  EXPECT_EQ(read_record(folder / "sweep").problem,
            "it is a run of mrrope sweep, which this version does not read");
}

ordered_json fake_search() {
  const auto estimate = [](double value) {
    return ordered_json{{"value", value}, {"stderr", 0.01}, {"n", 3}};
  };
  const auto plan = [&](const char* name, const char* origin, double loss, double answers) {
    return ordered_json{{"name", name},
                        {"origin", origin},
                        {"complete", true},
                        {"objective", estimate(loss + 0.05 * answers)},
                        {"log_perplexity", estimate(loss)},
                        {"answer_loss", estimate(answers)}};
  };
  const auto line = [](const char* method, double perplexity, const char* against) {
    return ordered_json{{"method", method},
                        {"perplexity",
                         {{{"length", 4096},
                           {"value", perplexity},
                           {"stderr", 0.1},
                           {"tuned_above_percent", -2.5},
                           {"paired_stderr", 0.5}}}},
                        {"answer_loss", {{"value", 0.5}, {"stderr", 0.1}}},
                        {"against", against}};
  };
  return {
      {"weight", 0.05},
      {"passes", 12.5},
      {"chosen", 1},
      {"front", {1}},
      {"path",
       {{{"passes", 4}, {"trial", 0}, {"objective", 1.6}},
        {{"passes", 9}, {"trial", 1}, {"objective", 1.5}}}},
      {"trials", {plan("pro", "published", 1.55, 1), plan("power <b>0.5", "refined", 1.5, 0.5)}},
      {"factors", {{"chosen", {1, 2}}, {"pro", {1, 3}}, {"yarn", {1, 4}}}},
      {"proof",
       {{"documents", 3},
        {"better", false},
        {"recommended", "pro"},
        {"tuned", line("tuned", 4, "")},
        {"published", {line("pro", 4.1, "is not worse by two errors")}}}}};
}

RunRecord search_record(const ordered_json& results) {
  const test::TempFolder folder;
  eval::RunFolder run(folder / "search", {"mrrope tune <model>", "sha256:00", 1});
  run.begin({{"task", "tune"},
             {"model", {{"name", "Some Model"}, {"architecture", "x"}, {"train_length", 1024}}}});
  run.append({{"unit", 1}});
  run.finish(results.dump(), {1, 1});
  return read_record(folder / "search");
}

TEST(Report, ShowsTheSearchOfATunedPlan) {
  const RunRecord record = search_record(fake_search());
  ASSERT_EQ(record.problem, "");
  const std::vector<Figure> figures = figures_of({record});
  ASSERT_EQ(figures.size(), 3u);
  const auto& front = std::get<LineChart>(figures[0].content);
  std::vector<std::string> names;
  for (const Series& s : front.series) names.push_back(s.name);
  EXPECT_EQ(names, (std::vector<std::string>{"tried", "front", "pro", "chosen"}));
  EXPECT_NEAR(front.series.back().points.front().x, std::exp(1.5), 1e-12);
  // From each step of the best to the next, and on to the end.
  const auto& path = std::get<LineChart>(figures[1].content);
  ASSERT_EQ(path.series.front().points.size(), 4u);
  EXPECT_EQ(path.series.front().points.back().x, 12.5);
  EXPECT_EQ(std::get<LineChart>(figures[2].content).series.size(), 3u);

  const std::string page = report_page({record});
  EXPECT_TRUE(contains(page, "power &lt;b&gt;0.5"));
  EXPECT_FALSE(contains(page, "<b>0.5"));
  EXPECT_TRUE(contains(page, "Not better than pro on 3 texts"));
  EXPECT_TRUE(contains(report_text({record}), "pro is not worse by two errors"));
}

TEST(Report, DamagedSearchIsNamed) {
  for (const char* change :
       {R"({"chosen": 2})", R"({"front": [7]})", R"({"trials": 3})", R"({"passes": "many"})",
        R"({"factors": {"chosen": ["a"]}})", R"({"path": [1]})", R"({"proof": {"tuned": 1}})",
        R"({"trials": []})", R"({"chosen": -1})"}) {
    ordered_json results = fake_search();
    results.update(ordered_json::parse(change));
    EXPECT_TRUE(contains(search_record(results).problem, "results.json is damaged")) << change;
  }
}

TEST(Report, ComparesOnlyTheSameModelWithThePaper) {
  const test::TempFolder temp;
  FakeRun fake;
  fake.model = "Meta Llama 3 8B Instruct";
  fake.window = 8192;
  write_run(temp / "run", fake);
  const auto records = read_records({(temp / "run").string()});
  EXPECT_TRUE(contains(report_page(records), "Compared with the paper"));
  fake.model = "Meta Llama 3.1 8B Instruct";
  fake.window = 131072;
  write_run(temp / "other", fake);
  EXPECT_FALSE(
      contains(report_page(read_records({(temp / "other").string()})), "Compared with the paper"));
}

}  // namespace
}  // namespace mrrope::report
