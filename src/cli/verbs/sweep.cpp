// SPDX-License-Identifier: Apache-2.0
// mrrope sweep: the paper's study of the borders, on the user's model.
#include "tune/sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/eval_options.h"
#include "cli/args/options.h"
#include "cli/args/terminal_output.h"
#include "eval/text/documents.h"
#include "formats/digest.h"
#include "mrrope/error.h"
#include "report/charts/markup.h"
#include "report/charts/svg.h"
#include "report/figures.h"
#include "report/page/page.h"

namespace mrrope::cli {

namespace {

struct SweepFlags {
  SubjectFlags subject;
  LocalOptions engine;
  std::vector<std::string> methods = {"yarn", "uni", "pro"};
  std::string ctx;
  std::string low, high;
  int step = 1;
  double headroom = 1;
  std::vector<std::string> text;
  DocumentOptions documents;
  std::string out;
  bool csv = false;
  bool json = false;
  bool dry_run = false;
};

// "5..15", or one number.
std::vector<int> parse_range(const std::string& text, int step, const char* flag) {
  std::vector<int> out;
  if (text.empty()) return out;
  const auto refuse = [&] {
    throw Error(ErrorKind::usage, cat("'", text, "' is not a range of pairs"),
                cat("write ", flag, " 5..15, or one number"));
  };
  const auto number_at = [&](std::size_t begin, std::size_t end) {
    int value = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end || value < 0) refuse();
    return value;
  };
  const std::size_t dots = text.find("..");
  const int first = number_at(0, std::min(dots, text.size()));
  const int last = dots == std::string::npos ? first : number_at(dots + 2, text.size());
  if (last < first || last > 1 << 20) refuse();
  for (int pair = first; pair <= last; pair += step) out.push_back(pair);
  return out;
}

std::string point_text(const SweepResults& results, const SweepPoint& p) {
  const Estimate& e = p.perplexity;
  return cat(p.method, ", low ", p.low, ", high ", p.high, "\nbeta_fast ",
             beta_fast_text(results.geometry, p.low), ", beta_slow ",
             beta_slow_text(results.geometry, p.high), "\nperplexity ", fixed(e.value, 4),
             std::isfinite(e.error) ? cat(" +- ", fixed(e.error, 4)) : std::string(),
             ", n = ", e.n);
}

// One border: all methods in one picture.
LineChart line_chart(const SweepResults& results) {
  const bool lows = !results.request.low.empty();
  LineChart chart;
  chart.title = cat("Perplexity at ", length_text(results.request.ctx), " over ",
                    lows ? "low" : "high", ", ", results.documents, " documents");
  chart.x = {lows ? "low: first pair of the middle" : "high: first pair scaled in full",
             Spacing::linear, false};
  chart.y = {"perplexity", Spacing::log, false};
  Palette palette;
  for (const std::string& method : results.request.methods) {
    Series s = palette.series(method);
    for (const SweepPoint& p : results.points) {
      if (p.method != method) continue;
      const Estimate& e = p.perplexity;
      ChartPoint point{double(lows ? p.low : p.high), e.n > 0 ? e.value : kNothing};
      if (std::isfinite(e.error)) point.low = e.value - e.error, point.high = e.value + e.error;
      s.points.push_back(point);
    }
    chart.series.push_back(std::move(s));
  }
  return chart;
}

// Both: a map per method, all with the same shades.
std::vector<HeatMap> heat_maps(const SweepResults& results) {
  const SweepRequest& r = results.request;
  double least = INFINITY;
  double most = -INFINITY;
  for (const SweepPoint& p : results.points) {
    if (p.perplexity.n == 0 || !std::isfinite(p.perplexity.value)) continue;
    least = std::min(least, p.perplexity.value);
    most = std::max(most, p.perplexity.value);
  }
  std::vector<HeatMap> maps;
  for (const std::string& method : r.methods) {
    HeatMap map;
    map.title = method;
    map.x_label = "high";
    map.y_label = "low";
    map.shades = Shades::amount;
    if (least <= most) map.low = least, map.high = most;
    for (const int high : r.high) map.columns.push_back(cat(high));
    for (const int low : r.low) {
      map.rows.push_back(cat(low));
      map.values.emplace_back();
      map.details.emplace_back();
      for (const int high : r.high) {
        const SweepPoint* p = results.at(method, low, high);
        map.values.back().push_back(p && p->perplexity.n > 0 ? p->perplexity.value : kNothing);
        map.details.back().push_back(p ? point_text(results, *p) : "low is not below high");
      }
    }
    maps.push_back(std::move(map));
  }
  return maps;
}

Figure figure_of(const SweepResults& results) {
  if (results.request.low.empty() || results.request.high.empty()) {
    LineChart chart = line_chart(results);
    return {"Sweep", "sweep", chart.title,
            "Lower is better. The band is one standard error over documents.", std::move(chart)};
  }
  return {"Sweep", "sweep",
          cat("Perplexity at ", length_text(results.request.ctx), " over low and high, ",
              results.documents, " documents"),
          "Lower is better; darker is higher.", heat_maps(results)};
}

std::string page_of(const SweepResults& results, const Figure& f) {
  std::string body = cat("<section class=\"verdict\"><h1>", escaped(f.title), "</h1></section>\n");
  if (const auto* chart = std::get_if<LineChart>(&f.content)) {
    body += cat("<div class=\"grid\">\n", figure(*chart, escaped(f.note), table_of(*chart), f.file),
                "</div>\n");
  } else {
    const auto& maps = std::get<std::vector<HeatMap>>(f.content);
    DataTable table = table_of(maps);
    table.caption = f.title;
    body += figure(maps, f.title, escaped(f.note), table, f.file);
  }
  DataTable points;
  points.caption = "The turns behind each border";
  points.header = {"method", "low", "high", "beta_fast", "beta_slow", "perplexity", "+-", "n"};
  for (const SweepPoint& p : results.points) {
    points.rows.push_back({p.method, cat(p.low), cat(p.high),
                           beta_fast_text(results.geometry, p.low),
                           beta_slow_text(results.geometry, p.high), fixed(p.perplexity.value, 4),
                           fixed(p.perplexity.error, 4), cat(p.perplexity.n)});
  }
  return to_page({"mrrope sweep", "sweep of the borders", body + to_html(points)});
}

void write_pictures(const std::string& folder, const SweepResults& results, const Figure& f) {
  constexpr SvgOptions kAlone{.width = 760, .standalone = true};
  write_output(folder + "/report.html", page_of(results, f));
  if (const auto* chart = std::get_if<LineChart>(&f.content)) {
    return write_output(folder + "/sweep.svg", to_svg(*chart, kAlone));
  }
  for (HeatMap map : std::get<std::vector<HeatMap>>(f.content)) {
    const std::string name = map.title;  // of a method, so fit for a file
    map.title = cat(f.title, ", ", name);
    write_output(cat(folder, "/sweep-", name, ".svg"), to_svg(map, kAlone));
  }
}

void run_sweep_command(const SweepFlags& flags) {
  Subject subject = resolve(flags.subject);
  if (!subject.model) throw Error(ErrorKind::usage, "sweep runs a model", "give a GGUF file");
  if (flags.ctx.empty()) throw Error(ErrorKind::usage, "how long?", "give --ctx, e.g. --ctx 8k");
  Model facts = *subject.model;
  facts.geometry = subject.geometry;
  check_headroom(flags.headroom);
  SweepRequest request;
  request.methods = flags.methods;
  request.low = parse_range(flags.low, flags.step, "--low");
  request.high = parse_range(flags.high, flags.step, "--high");
  request.ctx = parse_length(flags.ctx);
  request.headroom = flags.headroom;
  std::vector<SweepPoint> points;
  sweep_methods(facts.geometry, request, points);  // refuses before the model is loaded

  const std::vector<std::string> texts = flags.text.empty() ? default_texts() : flags.text;
  LocalOptions engine = flags.engine;
  engine.context = request.ctx;
  engine.timelines = 1;
  const auto model = open_local(facts, engine);
  DocumentOptions choice = flags.documents;
  choice.keep = [&](const Document& d) {
    return std::int64_t(model->tokenize(d.text, true, false).size()) >= request.ctx;
  };
  const DocumentSet set = read_documents({texts.begin(), texts.end()}, choice);
  for (const std::string& line : set.notes()) note(line);
  if (flags.dry_run) {
    const std::size_t units = points.size() * set.documents.size();
    std::cout << points.size() << " plans x " << set.documents.size() << " documents, "
              << std::int64_t(units) * request.ctx << " tokens\n"
              << memory_text(facts, engine) << "\nabout "
              << duration_text(
                     estimate_seconds(*model, std::vector<std::int64_t>(units, request.ctx)))
              << "\n";
    return;
  }

  catch_interrupts();
  Progress progress(stderr_writer(), stderr_is_terminal());
  RunFolder folder = flags.out.empty()
                         ? RunFolder()
                         : RunFolder(flags.out, {command_line(), model_digest(facts.files), 1});
  const SweepResults results = run_sweep(*model, request, set.documents, folder, progress);
  for (const std::string& line : folder.notes()) note(line);
  const Figure picture = figure_of(results);
  if (!flags.out.empty()) {
    write_output(flags.out + "/sweep.csv", to_csv(results));
    write_pictures(flags.out, results, picture);
  }
  if (flags.json) {
    std::cout << results_text(to_json(results));
  } else {
    std::cout << (flags.csv ? to_csv(results) : to_text(results));
    if (!flags.csv && stdout_is_terminal()) {
      std::cout << "\n";
      print_chart(picture.content);
    }
  }
  if (!flags.out.empty()) {
    note(cat("wrote ", flags.out, "/report.html, results.json, sweep.csv and pictures (.svg)"));
  }
}

}  // namespace

void add_sweep(CLI::App& app) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* verb = app.add_subcommand("sweep", "Perplexity over the borders of the middle");
  add_subject(*verb, flags->subject);
  verb->add_option("-c,--ctx", flags->ctx, "Wanted length in tokens, e.g. 8192 or 8k")
      ->type_name("LENGTH");
  verb->add_option("--method,--methods", flags->methods, "One or more of: yarn, uni, pro, power")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--low", flags->low, "First pairs of the middle, e.g. 5..15")->type_name("A..B");
  verb->add_option("--high", flags->high, "First pairs scaled in full, e.g. 30..45")
      ->type_name("C..D");
  verb->add_option("--step", flags->step, "Every so many pairs")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--headroom", flags->headroom, "Scale over what the length needs; from 1")
      ->type_name("H")
      ->capture_default_str();
  verb->add_option("--text", flags->text, "Texts: plain, .jsonl, also .gz .xz .zst, or folders")
      ->type_name("FILE")
      ->take_all();
  verb->add_option("--field", flags->documents.field, "Field of a .jsonl line that holds the text")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--samples", flags->documents.samples,
                   "Documents to use, of those that reach the length; 0: all")
      ->type_name("N")
      ->capture_default_str();
  add_engine(*verb, flags->engine);
  verb->add_option("-o,--out", flags->out, "Folder for the run, its page, pictures and sweep.csv")
      ->type_name("DIR");
  verb->add_flag("--csv", flags->csv, "Print comma-separated values");
  verb->add_flag("--json", flags->json, "Print results as JSON");
  verb->add_flag("--dry-run", flags->dry_run, "Say what it would take, and stop");
  verb->footer(
      "Examples:\n"
      "  mrrope sweep model.gguf --ctx 8k --methods yarn,uni,pro --low 5..15 -o lows\n"
      "  mrrope sweep model.gguf --ctx 8k --methods pro --low 5..15 --high 30..45 --step 5\n"
      "A run with -o that was interrupted goes on when the same command is given again.");
  verb->callback([flags] { run_sweep_command(*flags); });
}

}  // namespace mrrope::cli
