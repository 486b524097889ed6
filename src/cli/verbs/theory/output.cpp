// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/theory/output.h"

#include <filesystem>
#include <iostream>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/app.h"
#include "cli/args/terminal_output.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"
#include "report/charts/svg.h"

namespace mrrope::cli {

namespace {

struct Example {
  const char* name;
  Geometry geometry;
};

const std::vector<Example>& examples() {
  static const std::vector<Example> list = {
      {"llama2", {.rotary_dim = 128, .base = 10000, .train_length = 4096}},
      {"llama3", {.rotary_dim = 128, .base = 500000, .train_length = 8192}},
      {"qwen2.5", {.rotary_dim = 128, .base = 1000000, .train_length = 32768}}};
  return list;
}

void write_svgs(const TheoryFlags& flags, const theory::TheoryFigure& result) {
  const std::filesystem::path first = flags.svg;
  std::size_t index = 0;
  const auto write = [&](const std::string& content) {
    std::filesystem::path path = first;
    if (++index > 1) {
      path.replace_filename(cat(first.stem().string(), "-", index, first.extension().string()));
    }
    if (flags.svg == "-" && index > 1) return;
    write_output(path.string(), content);
    if (flags.svg != "-") note(cat("wrote ", path.string()));
  };
  for (const report::Figure& f : result.figures) {
    if (const auto* chart = std::get_if<report::LineChart>(&f.content)) {
      write(to_svg(*chart, {.width = 760, .standalone = true}));
      continue;
    }
    for (const report::HeatMap& map : std::get<std::vector<report::HeatMap>>(f.content)) {
      write(to_svg(map, {.width = 760, .standalone = true}));
    }
  }
  if (index == 0) {
    throw Error(ErrorKind::usage, "this figure has no chart", "give --html, --csv or --json");
  }
}

// A plan file may be of another model.
void check_geometry(const Candidate& c, const Geometry& geometry) {
  Geometry own = c.plan().geometry();
  own.pairing = geometry.pairing;  // no figure depends on it
  if (own == geometry) return;
  throw Error(
      ErrorKind::usage,
      cat(c.name, " was made for ", describe(own), "; this figure is of ", describe(geometry)),
      "give plans of one model (with --replace-scaling on all or on none)");
}

}  // namespace

void add_theory_subject(CLI::App& figure, TheoryFlags& flags) {
  add_subject(figure, flags.subject, Takes::model_or_geometry);
  add_extension(figure, flags.extension);
}

void add_theory_output(CLI::App& figure, TheoryFlags& flags) {
  figure
      .add_option("--svg", flags.svg,
                  "Write the chart as SVG; more charts get -2, -3 in their names")
      ->type_name("FILE");
  figure.add_option("--html", flags.html, "Write a page with charts and tables")->type_name("FILE");
  figure.add_option("--csv", flags.csv, "Write the table as CSV; - is stdout")->type_name("FILE");
  figure.add_flag("--json", flags.json, "Print the numbers as JSON");
}

Subject theory_subject(const SubjectFlags& flags) {
  std::error_code error;
  if (!flags.model.empty() && !std::filesystem::exists(flags.model, error)) {
    for (const Example& e : examples()) {
      if (flags.model != e.name) continue;
      SubjectFlags others = flags;
      others.model.clear();
      if (given(others)) {
        throw Error(ErrorKind::usage, cat(e.name, " is an example with a geometry of its own"),
                    "give --rotary-dim, --rope-freq-base and --train-ctx without it");
      }
      return {std::nullopt, e.geometry};
    }
  }
  if (!given(flags)) {
    note("no model given: using LLaMA2 (rotary_dim 128, base 10000, window 4096)");
    return {std::nullopt, examples().front().geometry};
  }
  return resolve(flags);
}

Geometry theory_geometry(const TheoryFlags& flags) {
  const std::vector<std::string>& files = flags.extension.plan_files;
  if (!given(flags.subject) && !files.empty()) {
    return read_plan_file(files.front()).rungs().front().plan.geometry();
  }
  return theory_subject(flags.subject).geometry;
}

std::vector<Candidate> theory_candidates(ExtensionFlags& extension, const Geometry& geometry,
                                         const char* methods, double scale) {
  if (extension.methods.empty() && extension.plan_files.empty()) {
    extension.methods = {methods};
  }
  check_reach(extension);
  if (!extension.scale && extension.ctx.empty() && !extension.methods.empty()) {
    extension.scale = scale;
  }
  std::vector<Candidate> candidates = resolve(extension, geometry);
  note_auto(candidates);
  for (const Candidate& c : candidates) check_geometry(c, geometry);
  return candidates;
}

std::vector<theory::NamedPlan> theory_plans(const TheoryFlags& flags, const Geometry& geometry,
                                            double default_scale) {
  ExtensionFlags extension = flags.extension;
  std::vector<theory::NamedPlan> plans;
  for (const Candidate& c :
       theory_candidates(extension, geometry, "none,pi,ntk,yarn,yarn-rotations,regressive,uni,pro",
                         default_scale)) {
    if (c.ladder.near()) {
      throw Error(ErrorKind::usage,
                  cat(c.name,
                      " rotates near and far keys differently, and this figure is of one "
                      "plan"),
                  "see mrrope theory distance");
    }
    plans.push_back({c.name, c.plan()});
  }
  return plans;
}

void print_theory(const TheoryFlags& flags, const theory::TheoryFigure& result) {
  if (!flags.svg.empty()) write_svgs(flags, result);
  if (!flags.html.empty()) {
    write_output(flags.html, page_of(result));
    if (flags.html != "-") note(cat("wrote ", flags.html));
  }
  if (!flags.csv.empty()) {
    write_output(flags.csv, to_csv(result.data));
    if (flags.csv != "-") note(cat("wrote ", flags.csv));
  }
  if (flags.json) {
    std::cout << result.json.dump(2) << "\n";
    return;
  }
  if (!flags.svg.empty() || !flags.html.empty() || !flags.csv.empty()) return;
  std::cout << result.title << "\n" << result.words << result.details << "\n";
  if (stdout_is_terminal()) {
    for (const report::Figure& f : result.figures) print_chart(f.content);
  }
  for (const report::DataTable& t : result.terminal) {
    std::vector<std::size_t> left(t.text_columns);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
    if (t.text_at_end) left.push_back(t.header.size() - 1);
    std::vector<TextRow> rows = {t.header};
    rows.insert(rows.end(), t.rows.begin(), t.rows.end());
    std::cout << t.caption << "\n" << aligned(rows, left) << "\n";
  }
}

}  // namespace mrrope::cli
