// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "base/text.h"
#include "eval/results/result_table.h"
#include "eval/run/run_folder.h"
#include "eval/run/runner.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "support/test.h"

namespace mrrope::report {
namespace {

eval::MethodUnderTest under(const std::string& name, std::int64_t window) {
  Extension e{.method = name == "none" ? "none" : "pro", .scale = name == "none" ? 1.0 : 4.0};
  const Geometry g{.rotary_dim = 16, .base = 10000, .train_length = window};
  return {name, make_ladder(make_plan(g, e), 4 * window)};
}

// Three documents; the untouched model breaks past its window, the others hold, each worse by
// "step" than the one before. Of a run that was cut off so many "units" are written.
void write_run(const std::filesystem::path& folder, const ordered_json& given) {
  const std::int64_t window = given.value("window", 1024);
  const auto lengths = given.value("lengths", std::vector{window / 2, window, 2 * window});
  const auto names = given.value("methods", std::vector<std::string>{"none", "pro"});
  const std::size_t units = given.value("units", std::size_t{100});
  const auto tested = [&](const std::string& name) { return under(name, window); };
  ordered_json identity = {
      {"task", "ppl"},
      {"model",
       {{"name", given.value("model", "Some Model")},
        {"architecture", "llama"},
        {"train_length", window}}},
      {"engine", "none"},
      {"settings", {{"lengths", lengths}, {"batch", 512}, {"kl_positions", 0}}},
      {"methods", methods_identity(mapped(names, tested))},
      {"documents", ordered_json::array()}};
  for (int d = 0; d < 3; ++d) {
    identity["documents"].push_back({{"id", "text" + std::to_string(d)}, {"tokens", 100000}});
  }
  const std::string digest = given.value("digest", "sha256:00");
  eval::RunFolder run(folder, {"mrrope eval ppl <model>", digest, 1});
  run.begin(identity);
  std::size_t written = 0;
  for (int d = 0; d < 3; ++d) {
    for (std::size_t at = 0; at < names.size(); ++at) {
      const std::string& name = names[at];
      ordered_json unit = {
          {"task", "ppl"}, {"document", "text" + std::to_string(d)}, {"method", name}};
      unit["lengths"] = ordered_json::array();
      for (const std::int64_t n : lengths) {
        const bool broken = name == "none" && n > window;
        const double loss = (broken ? 4 : 1.5) + 0.01 * d + (name == "none" ? 0 : 0.02) +
                            given.value("step", 0.0) * double(at);
        const double count = double(n) - 1;
        unit["lengths"].push_back({{"length", n},
                                   {"sum", -loss * count},
                                   {"count", count},
                                   {"last_half_sum", -loss},
                                   {"last_half_count", 1},
                                   {"band_sum", -loss},
                                   {"band_count", 1}});
      }
      if (written++ < units) run.append(unit);
    }
  }
  if (written <= units) {
    run.finish(eval::results_text(eval::to_json(eval::results_of(run.recorded()))), {2, 1000});
  }
}

// A run of a task that this build does not know, of which a report reads results.json as it is:
// rows of task, method, length, value and error.
void write_other(const std::filesystem::path& folder, const ordered_json& rows) {
  eval::RunFolder run(folder, {"mrrope eval other m.gguf", "sha256:00", 1});
  run.begin({{"task", "other"},
             {"model", {{"name", "Some Model"}, {"architecture", "x"}, {"train_length", 1024}}},
             {"methods", eval::methods_identity({under("none", 1024), under("pro", 1024)})}});
  run.append({{"task", "other"}});
  ordered_json results = {{"results", ordered_json::array()}};
  for (const ordered_json& row : rows) {
    results["results"].push_back({{"task", row[0]},
                                  {"method", row[1]},
                                  {"length", row[2]},
                                  {"metric", "score"},
                                  {"value", row[3]},
                                  {"stderr", row[4]},
                                  {"n", row[3].is_null() ? 1e300 : 50}});
  }
  run.finish(results.dump(), {1, 1});
}

void write_search(const std::filesystem::path& folder, const ordered_json& changes) {
  ordered_json results =
      ordered_json::parse(read_file(MRROPE_GOLDEN_DIR "/../support/search.json"));
  results.update(changes);
  eval::RunFolder run(folder, {"mrrope tune <model>", "sha256:00", 1});
  run.begin({{"task", "tune"},
             {"model", {{"name", "Some Model"}, {"architecture", "x"}, {"train_length", 1024}}}});
  run.append({{"unit", 1}});
  run.finish(results.dump(), {1, 1});
}

// A run as a transcript has it: {"name": folder, "rows": of another task, "search": changes of a
// search, "task": without results, "run.json" and "journal.jsonl": as they are, "add": to run.json,
// "replace": a text of the journal and what stands there instead}; or what write_run() reads.
void write_any(const TempFolder& temp, const ordered_json& given) {
  const std::string name = given.value("name", "run");
  const std::filesystem::path folder = temp / name;
  if (given.contains("rows")) return write_other(folder, given["rows"]);
  if (given.contains("search")) return write_search(folder, given["search"]);
  if (given.contains("task")) {
    eval::RunFolder run(folder, {"mrrope " + given["task"].get<std::string>(), "sha256:00", 1});
    run.begin({{"task", given["task"]}});
    run.finish("{}", {1, 1});
    return;
  }
  if (given.contains("run.json")) {
    for (const char* file : {"run.json", "journal.jsonl"}) {
      if (given.contains(file)) write_file(folder / file, given[file].get<std::string>());
    }
    return;
  }
  write_run(folder, given);
  if (given.contains("add")) {
    ordered_json run = ordered_json::parse(read_file(folder / "run.json"));
    run.update(given["add"]);
    write_file(folder / "run.json", run.dump());
  }
  if (given.contains("replace")) {
    std::string journal = read_file(folder / "journal.jsonl");
    const auto from = given["replace"][0].get<std::string>();
    journal.replace(journal.rfind(from), from.size(), given["replace"][1].get<std::string>());
    write_file(folder / "journal.jsonl", journal);
  }
}

// What stands on a page, a line per element; markup that was not escaped would be gone.
std::string visible(const std::string& page) {
  std::string text = page;
  for (const char* start : {"<style", "<script", "<svg"}) {
    const std::string end = "</" + std::string(start + 1) + ">";
    for (std::size_t at; (at = text.find(start)) != std::string::npos;) {
      text.replace(at, text.find(end, at) + end.size() - at,
                   start == std::string("<svg") ? "[chart]" : "");
    }
  }
  // Cells, terms and words of a line stay together.
  text = std::regex_replace(text, std::regex("</t[dh]>\\s*<t[dh][^>]*>"), " | ");
  text = std::regex_replace(text, std::regex("</dt>\\s*<dd>"), ": ");
  text = std::regex_replace(text, std::regex("</?(code|a|span|b|strong|em|button)( [^>]*)?>"), "");
  text = std::regex_replace(text, std::regex("<[^>]*>"), "\n");
  return std::regex_replace(text, std::regex("\\s*\n\\s*"), "\n");
}

std::string described(const std::vector<Figure>& figures) {
  std::string out;
  for (const Figure& f : figures) {
    out += f.section + ": " + f.title + " (" + f.file + ")" +
           (f.verdict ? " of verdict " + std::to_string(*f.verdict) : "") + "\n  " + f.note + "\n";
    if (!f.is_map()) {
      const auto& chart = std::get<LineChart>(f.content);
      EXPECT_TRUE(has_content(chart)) << f.title;
      for (const Series& s : chart.series) {
        out += "  " + s.name + ":";
        for (const ChartPoint& p : s.points) {
          if (s.points.size() < 9) out += " " + value_text(p.x) + "/" + value_text(p.y);
        }
        out += "\n";
      }
      continue;
    }
    for (const HeatMap& map : std::get<std::vector<HeatMap>>(f.content)) {
      out += "  " + map.title + " by " + ordered_json(map.columns).dump() + "\n";
      for (std::size_t r = 0; r < map.rows.size(); ++r) {
        out += "  " + map.rows[r] + ": " + joined(mapped(map.values[r], value_text), " ") +
               (map.best && map.best->first == r ? ", best " + map.columns[map.best->second] + "\n"
                                                 : "\n");
      }
    }
  }
  return out;
}

// "VERB [RUN, ...]", or "VERB all [RUN, ...]" of the folder that they are in.
std::string reported(const std::string& input) {
  const TempFolder temp;
  const std::size_t list = input.find('[');
  const std::string verb = input.substr(0, list);
  std::vector<std::string> folders;
  for (const ordered_json& run : ordered_json::parse(input.substr(list))) {
    write_any(temp, run);
    folders.push_back(temp.file(run.value("name", "run")));
  }
  if (contains(verb, "all")) folders = {temp.path().string()};
  const std::string said = test::or_error([&] {
    const auto records = read_records(folders);
    std::string problems;
    for (const RunRecord& record : records) {
      if (!record.problem.empty()) problems += record.name + ": " + record.problem + "\n";
    }
    if (verb.starts_with("page")) return visible(report_page(records));
    if (verb.starts_with("text")) return report_text(records);
    if (verb.starts_with("figures")) return described(figures_of(records));
    if (verb.starts_with("groups")) return std::to_string(grouped(records).size());
    if (verb.starts_with("problems")) return problems;
    if (verb.starts_with("json")) return report_json(records).dump();
    const std::string text =
        report_markdown(records, "tiny", "mrrope report runs -o tiny.md `x`").text;
    return " " +
           std::regex_replace(text, std::regex("\n"), "\n ");  // headings are no comments here
  });
  // What depends on the day and the machine.
  static const std::pair<std::regex, const char*> varying[] = {
      {std::regex("20\\d\\d-\\d\\d-\\d\\d(T[0-9:]*Z)?"), "DATE"},
      {std::regex("[0-9.]+ [KMG]iB"), "N MiB"},
      {std::regex("\"peak_memory_bytes\":\\d+"), "\"peak_memory_bytes\":0"},
      {std::regex("\\n+$"), ""}};
  std::string out = std::regex_replace(said, std::regex(temp.path().string() + "/?"), "");
  for (const auto& [pattern, instead] : varying) out = std::regex_replace(out, pattern, instead);
  return out;
}

TEST(Report, SaysWhatRunsMeasured) { test::expect_transcript("reports", reported); }

TEST(Report, PicturesComeAfterTheHeadline) {
  const TempFolder temp;
  write_any(temp, ordered_json::object());
  const std::string page = report_page(read_records({temp.file("run")}));
  EXPECT_LT(page.find("</h1>"), page.find("<figure class=\"full\">"));
  EXPECT_LT(page.find("<figure class=\"full\">"), page.find("What to do next"));
  EXPECT_LT(page.size(), 1000000u);
}

}  // namespace
}  // namespace mrrope::report
