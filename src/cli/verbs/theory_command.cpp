// SPDX-License-Identifier: Apache-2.0
// mrrope theory: figures of the paper, for a model or a geometry.
#include <iostream>
#include <numeric>

#include "base/files/source.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "engine/llama/graph/capture.h"
#include "formats/plan_file.h"
#include "theory/theory_figure.h"

namespace mrrope::cli {

namespace {

struct TheoryFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  std::vector<std::string> out;
  std::string format = "text";
  // Of some figures alone.
  std::vector<std::string> positions, text;
  std::string digits, length, scales;
  std::vector<double> bases;
  std::vector<int> layers;
  engine::LocalOptions engine;
  int pairs = 50;
  std::uint64_t seed = 1;
};

const std::pair<std::string, Geometry> kExamples[] = {
    {"llama2", {.rotary_dim = 128, .base = 10000, .train_length = 4096}},
    {"llama3", {.rotary_dim = 128, .base = 500000, .train_length = 8192}},
    {"qwen2.5", {.rotary_dim = 128, .base = 1000000, .train_length = 32768}}};

void write_file(const std::string& path, const std::string& content) {
  write_output(path, content);
  note(cat("wrote ", path));
}

// Of a file, the geometry flags, one of the named examples, or, if nothing is given, the first plan
// file or llama2 with a note.
Geometry theory_geometry(const TheoryFlags& theory) {
  const SubjectFlags& flags = theory.subject;
  const std::vector<std::string>& files = theory.extension.plan_files;
  if (!given(flags)) {
    if (!files.empty()) return read_plan_file(files.front()).rungs().front().plan.geometry();
    note("no model given: using LLaMA2 (rotary_dim 128, base 10000, window 4096)");
    return kExamples[0].second;
  }
  if (!flags.model.empty() && !path_exists(flags.model)) {
    for (const auto& [name, geometry] : kExamples) {
      if (flags.model != name) continue;
      SubjectFlags others = flags;
      others.model.clear();
      refuse_if(given(others), cat(name, " is an example with a geometry of its own"),
                "give --rotary-dim, --rope-freq-base and --train-ctx without it");
      return geometry;
    }
  }
  return resolve(flags);
}

// What --method and --plan give at --scale or --ctx; where those are not given, of these methods
// and at this scale, which `extension` then has. Throws Error (usage) if a plan file is of another
// model.
std::vector<Candidate> theory_candidates(ExtensionFlags& extension, const Geometry& geometry,
                                         const char* methods, double scale) {
  if (extension.methods.empty() && extension.plan_files.empty()) extension.methods = {methods};
  check_reach(extension);
  if (!extension.scale && extension.ctx.empty() && !extension.methods.empty()) {
    extension.scale = scale;
  }
  std::vector<Candidate> candidates = resolve(extension, geometry);
  note_auto(candidates);
  for (const Candidate& c : candidates) {
    Geometry own = c.plan().geometry();
    own.pairing = geometry.pairing;  // no figure depends on it
    if (own == geometry) continue;
    refuse(cat(c.name, " was made for ", describe(own), "; this figure is of ", describe(geometry)),
           "give plans of one model (with --replace-scaling on all or on none)");
  }
  return candidates;
}

// The same as plans, by default those of the paper. Of a ladder, its last rung.
std::vector<theory::NamedPlan> theory_plans(
    const TheoryFlags& flags, const Geometry& geometry, double default_scale,
    const char* methods = "none,pi,ntk,yarn,yarn-rotations,regressive,uni,pro") {
  ExtensionFlags extension = flags.extension;
  std::vector<theory::NamedPlan> plans;
  for (const Candidate& c : theory_candidates(extension, geometry, methods, default_scale)) {
    refuse_if(c.ladder.near().has_value(),
              cat(c.name, " rotates near and far keys differently, and this figure is of one plan"),
              "see mrrope theory distance");
    plans.push_back({c.name, c.plan()});
  }
  return plans;
}

void print_theory(const TheoryFlags& flags, const theory::TheoryFigure& result) {
  for (const std::string& file : flags.out) {
    const std::string ending = std::filesystem::path(file).extension().string();
    if (ending == ".svg") {
      refuse_if(result.figures.empty(), "this figure has no chart",
                "give -o FILE.html or FILE.csv");
      write_file(file, report::svg_file(result.figures));
    } else if (ending == ".html" || ending == ".htm") {
      write_file(file, page_of(result));
    } else if (ending == ".csv") {
      write_file(file, to_csv(result.data));
    } else {
      refuse(cat("-o ", file, " does not say what to write"),
             "give a name that ends in .svg, .html or .csv");
    }
  }
  if (flags.format == "json") std::cout << result.json.dump(2) << "\n";
  if (flags.format == "csv") std::cout << to_csv(result.data);
  if (flags.format != "text" || !flags.out.empty()) return;
  std::cout << result.title << "\n" << result.words << result.details << "\n";
  for (const report::DataTable& t : result.terminal) {
    std::vector<std::size_t> left(t.text_columns);
    std::iota(left.begin(), left.end(), 0);
    if (t.text_at_end) left.push_back(t.header.size() - 1);
    std::vector<TextRow> rows = {t.header};
    extend(rows, t.rows);
    std::cout << t.caption << "\n" << aligned(rows, left) << "\n";
  }
}

// ---- attention: runs a model under each plan to see its queries and keys.

std::string joined_texts(const std::vector<std::string>& given) {
  std::string text;
  for (const eval::Document& d : read_texts(given, {}).documents) text += d.text + "\n\n";
  return text;
}

void run_attention(const TheoryFlags& flags) {
  const Model model = model_of(flags.subject);
  const Geometry& g = model.geometry;
  const double scale = flags.extension.scale.value_or(0);  // 0: not given
  const bool by_scale = flags.extension.ctx.empty();
  const std::int64_t reach =
      by_scale ? std::int64_t(scale * double(g.train_length)) : parse_length(flags.extension.ctx);
  const std::string more = by_scale ? "a larger --scale" : "a larger --ctx";
  const std::int64_t tokens = !flags.length.empty() ? parse_length(flags.length)
                              : reach > 0           ? reach
                                                    : 2 * g.train_length;
  engine::check_before_loading(model, {}, {flags.text, {}, flags.out});
  refuse_if(reach > 0 && tokens > reach,
            cat("--length ", flags.length, " is more than the ", reach,
                " tokens that the plans are made for"),
            cat("give --length ", reach, " or fewer, or ", more));
  refuse_if(tokens <= g.train_length,
            cat(tokens, " tokens are inside the window of ", g.train_length,
                "; this figure compares distances past it"),
            reach == 0               ? cat("give --length ", 2 * g.train_length)
            : reach > g.train_length ? cat("give --length ", reach)
                                     : "give " + more);
  for (const MethodSpec& method : method_specs(flags.extension)) {
    if (method.growth == Growth::none && !is_auto(method.name)) continue;
    refuse(
        cat(to_string(method), " changes its plan while it reads, and this figure is of one plan"),
        cat("give --method ", is_auto(method.name) ? "pro" : method.name));
  }
  for (const std::string& file : flags.extension.plan_files) {
    refuse_if(read_plan_file(file).rungs().size() > 1,
              cat(file, " changes its plan while a text is read, and this figure is of one plan"),
              "give a file that holds one plan");
  }
  const theory::AttentionRequest request{model.name, flags.pairs, flags.seed};
  const std::vector<theory::NamedPlan> plans =
      theory_plans(flags, g, double(tokens) / double(g.train_length), "none,yarn,pro");
  engine::PairReader reader(
      model, flags.engine,
      engine::first_tokens(*engine::open_vocabulary(model), joined_texts(flags.text), tokens),
      flags.layers);
  const theory::AttentionPlaces drawn = draw_places(g, reader.layers(), tokens, request);
  note(cat("reading ", g.train_length, " tokens with the unmodified model"));
  const std::vector<RotatedPair> inside =
      reader.read(make_plan(g, Extension{}), drawn.inside, g.train_length);
  std::vector<std::vector<RotatedPair>> rotated;
  for (const theory::NamedPlan& c : plans) {
    note(cat("reading ", tokens, " tokens under ", c.name));
    rotated.push_back(reader.read(c.plan, drawn.places, tokens));
  }
  print_theory(flags, attention_figure(g, plans, drawn, rotated, inside, request));
}

// ---- Figures that need no model.

constexpr double kDefaultScale = 16;  // as in the paper

void run_digits(const TheoryFlags& flags) {
  const Geometry g = theory_geometry(flags);
  if (!flags.digits.empty()) {
    return print_theory(flags, position_figure(g, theory_plans(flags, g, kDefaultScale),
                                               parse_list(flags.digits, "--digits")));
  }
  const auto positions = mapped(flags.positions, [](const std::string& text) {
    return text == "0" ? 0 : parse_length(text);
  });
  print_theory(flags, digits_figure(g, theory_plans(flags, g, kDefaultScale), positions));
}

void run_estimate(const TheoryFlags& flags) {
  const Geometry g = theory_geometry(flags);
  const std::int64_t length =
      flags.length.empty() ? 4 * g.train_length : parse_length(flags.length);
  print_theory(flags, theory::estimate_figure(g, flags.bases, length));
}

void run_factors(const TheoryFlags& flags) {
  const Geometry g = theory_geometry(flags);
  std::vector<theory::PlanGroup> groups;
  const bool files = flags.extension.methods.empty() && !flags.extension.plan_files.empty();
  if (flags.extension.scale || !flags.extension.ctx.empty() || files) {
    groups.push_back({"", theory_plans(flags, g, 0)});
  } else {
    for (const double scale : {16.0, 4.0}) {
      groups.push_back({cat(" at scale ", scale), theory_plans(flags, g, scale)});
    }
  }
  print_theory(flags, factors_figure(g, groups));
}

// What --method and --plan give as ladders, all up to one length.
std::vector<theory::NamedLadder> theory_ladders(const TheoryFlags& flags, const Geometry& g,
                                                const char* methods, std::int64_t& length) {
  ExtensionFlags extension = flags.extension;
  const std::vector<Candidate> candidates = theory_candidates(extension, g, methods, kDefaultScale);
  length = std::llround(extension.scale.value_or(kDefaultScale) * double(g.train_length));
  if (!extension.ctx.empty()) {
    length = parse_length(extension.ctx);
  } else if (extension.methods.empty()) {  // files alone are shown as far as all of them reach
    length = candidates.front().ladder.longest();
    for (const Candidate& c : candidates) length = std::min(length, c.ladder.longest());
  }
  return mapped(candidates, [&](const Candidate& c) {
    return theory::NamedLadder{c.name, up_to(c.ladder, length)};
  });
}

void run_distance(const TheoryFlags& flags) {
  const Geometry g = theory_geometry(flags);
  std::int64_t length = 0;
  const auto ladders = theory_ladders(flags, g, "none,pro,elastic:pro,far:pro,far:pi", length);
  print_theory(flags, distance_figure(g, ladders, length));
}

// A figure of ladders, by default of these methods.
using LadderFigure = theory::TheoryFigure(const Geometry&, const std::vector<theory::NamedLadder>&);
void run_ladders(const TheoryFlags& flags, const char* methods, LadderFigure& figure) {
  const Geometry g = theory_geometry(flags);
  std::int64_t length = 0;
  print_theory(flags, figure(g, theory_ladders(flags, g, methods, length)));
}

// "2..64": every whole number from the first to the last.
std::vector<double> parse_scales(const std::string& text) {
  const std::size_t dots = text.find("..");
  const double first = parse_double(text.substr(0, dots)).value_or(0);
  const double last = parse_double(text.substr(dots + 2)).value_or(0);
  const bool whole = first == std::floor(first) && last == std::floor(last);
  refuse_if(!whole || first < 1 || last <= first || last - first >= 256 || last > 65536,
            cat("--scale ", text, " is not a range of 2 to 256 whole numbers from 1 to 65536"),
            "write a range such as 2..64");
  std::vector<double> scales;
  for (int scale = int(first); scale <= int(last); ++scale) scales.push_back(scale);
  return scales;
}

void run_roots(const TheoryFlags& flags, const Geometry& g) {
  refuse_if(!flags.extension.plan_files.empty(),
            cat("a plan file has one scale, and --scale ", flags.scales, " asks for many"),
            "give --method");
  const std::vector<double> scales = parse_scales(flags.scales);
  const auto groups = mapped(scales, [&](double scale) {
    return theory::PlanGroup{"", theory_plans(flags, g, scale)};
  });
  // PI, which reaches farthest, turns negative at the scale times the untouched model's m: some
  // windows.
  const double far = std::min(4 * scales.back() * double(g.train_length), double(1 << 22));
  const std::int64_t length = flags.length.empty() ? std::int64_t(far) : parse_length(flags.length);
  print_theory(flags, roots_figure(g, scales, groups, length));
}

void run_bound(const TheoryFlags& flags) {
  const Geometry g = theory_geometry(flags);
  if (!flags.scales.empty()) {
    refuse_if(!flags.extension.ctx.empty(), cat("--scale ", flags.scales, " is many scales"),
              "leave out --ctx");
    return run_roots(flags, g);
  }
  print_theory(flags, bound_figure(g, theory_plans(flags, g, kDefaultScale),
                                   flags.length.empty() ? 0 : parse_length(flags.length)));
}

// A figure with what it writes.
Verb<TheoryFlags> add_figure(CLI::App& theory, const char* name,
                             void (*run)(const TheoryFlags& flags)) {
  const auto [figure, flags] = add_verb<TheoryFlags>(theory, name, run);
  add(figure, "-o,--out", flags.out);
  add_format(figure, flags.format);
  return {figure, flags};
}

// The same with a model and methods.
Verb<TheoryFlags> add_plan_figure(CLI::App& theory, const char* name,
                                  void (*run)(const TheoryFlags& flags)) {
  const Verb<TheoryFlags> added = add_figure(theory, name, run);
  add_subject(added.app, added.flags.subject, Takes::model_or_geometry);
  add_extension(added.app, added.flags.extension, "those of the paper",
                "--scale, or that of the paper");
  return added;
}

void add_digits(CLI::App& theory) {
  const auto [verb, flags] = add_plan_figure(theory, "digits", run_digits);
  CLI::Option* positions = add(verb, "--positions", flags.positions);
  add(verb, "--digits", flags.digits)->excludes(positions);
}

void add_estimate(CLI::App& theory) {
  const auto [verb, flags] = add_figure(theory, "estimate", run_estimate);
  add_subject(verb, flags.subject, Takes::model_or_geometry);
  add(verb, "--bases", flags.bases);
  add(verb, "-c,--ctx,--length", flags.length);
}

void add_bound(CLI::App& theory) {
  const auto [verb, flags] = add_plan_figure(theory, "bound", run_bound);
  add(verb, "--length", flags.length);
  verb.remove_option(verb.get_option("--scale"));
  CLI::Option* scale =
      verb.add_option_function<std::string>("--scale", [&bound = flags](const std::string& text) {
        if (text.find("..") != std::string::npos) {
          bound.scales = text;
        } else {
          bound.extension.scale = parse_list(text, "--scale").front();
        }
      });
  with_words(verb, scale);
}

void add_attention(CLI::App& theory) {
  const auto [verb, flags] = add_figure(theory, "attention", run_attention);
  add_subject(verb, flags.subject);
  add_extension(verb, flags.extension, "none, yarn and pro", "--scale, or two windows");
  add(verb, "--text", flags.text);
  add(verb, "--layers", flags.layers);
  add(verb, "--length", flags.length);
  add(verb, "--samples", flags.pairs);
  add(verb, "--seed", flags.seed);
  add_engine(verb, flags.engine);
}

}  // namespace

void add_theory(CLI::App& app) {
  CLI::App& verb = add_named(app, "theory");
  verb.require_subcommand(1);
  add_digits(verb);
  add_estimate(verb);
  add_plan_figure(verb, "factors", run_factors);
  add_plan_figure(verb, "distance", run_distance);
  add_plan_figure(verb, "ladder", [](const TheoryFlags& given) {
    run_ladders(given, "pro,elastic:pro,far:pi", theory::ladder_figure);
  });
  add_plan_figure(verb, "sharpness", [](const TheoryFlags& given) {
    run_ladders(given, "far:pi,far:pi(sharpen=0.1)", theory::sharpness_figure);
  });
  const auto [rounding, flags] = add_figure(verb, "rounding", [](const TheoryFlags& given) {
    print_theory(given, theory::rounding_figure(theory_geometry(given)));
  });
  add_subject(rounding, flags.subject, Takes::model_or_geometry);
  add_bound(verb);
  add_figure(verb, "claims",
             [](const TheoryFlags& given) { print_theory(given, theory::claims_figure()); });
  add_attention(verb);
}

}  // namespace mrrope::cli
