// SPDX-License-Identifier: Apache-2.0
// mrrope plan: the numbers of one or more extensions, as a table, JSON, CSV or a plan file.
#include <iostream>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "formats/plan_file.h"

namespace mrrope::cli {

namespace {

struct PlanFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  std::string format = "text";
  std::string out;
};

std::string region(const Plan& plan, int pair) {
  const auto [low, high] = plan.boundaries();
  return pair < low ? "fast" : pair < high ? "middle" : "slow";
}

std::string plan_line(const Candidate& c) {
  const Plan& plan = c.plan();
  const Extension& e = plan.extension();
  const auto [low, high] = plan.boundaries();
  std::string line =
      cat(c.name, ": ", find_method(e.method).title, ", scale ", significant(e.scale, 6));
  if (c.ladder.near()) {
    const NearPart& near = *c.ladder.near();
    return cat(line, " for far keys; the last ", near.length, " to ", near.length + near.step - 1,
               " tokens are near, at their true distance");
  }
  const double tokens = std::max(e.scale * double(plan.geometry().train_length), double(e.length));
  const bool by_length = method_row(e.method).reach == Reach::length;
  if (!by_length) line += cat(" (", fixed(tokens, 0), " tokens)");
  if (by_length && e.length > 0) line += cat(" at ", e.length, " tokens");
  return cat(line, ", middle ", low, "..", high, ", ", to_string(plan.shape()),
             ", attention scale ", fixed(plan.attention_scale(), 4));
}

// Pair, wavelength and turns, which belong to the model, and columns of plans.
std::vector<TextRow> pair_table(const Plan& plan, TextRow titles,
                                const std::function<TextRow(int pair)>& columns) {
  titles.insert(titles.begin(), {"pair", "wavelength", "turns"});
  std::vector<TextRow> table = {titles};
  for (int i = 0; i < pair_count(plan.geometry()); ++i) {
    const double theta = plan.theta()[i] * plan.factor()[i];
    const double turns = double(plan.geometry().train_length) * theta / (2 * std::numbers::pi);
    table.push_back(columns(i));
    table.back().insert(table.back().begin(), {cat(i), significant(2 * std::numbers::pi / theta, 6),
                                               significant(turns, 4)});
  }
  return table;
}

std::vector<TextRow> one_plan(const Plan& plan) {
  const std::vector<double> lambda = plan.lambda();
  return pair_table(plan, {"lambda", "factor", "region"}, [&](int i) -> TextRow {
    return {std::size_t(i) < lambda.size() ? fixed(lambda[i], 6) : "", fixed(plan.factor()[i], 6),
            region(plan, i)};
  });
}

std::vector<TextRow> side_by_side(const std::vector<Candidate>& candidates) {
  return pair_table(candidates.front().plan(), mapped(candidates, &Candidate::name), [&](int i) {
    return mapped(candidates, [&](const Candidate& c) { return fixed(c.plan().factor()[i], 6); });
  });
}

std::vector<TextRow> rungs_of(const Ladder& ladder) {
  std::vector<TextRow> table = {
      {"rung", "up to", "scale", "middle", "attention scale", "last factor"}};
  if (ladder.near()) table[0].insert(table[0].begin() + 2, {"border", "shift"});
  constexpr std::size_t kShown = 8;  // at either end; a border that moves makes hundreds of rungs
  const std::size_t count = ladder.rungs().size();
  for (std::size_t i = 0; i < count; ++i) {
    if (count > 2 * kShown + 4 && i == kShown) {
      table.push_back({"..."});
      table.back().resize(table[0].size());
      i = count - kShown;
    }
    const Rung& rung = ladder.rungs()[i];
    const Plan& plan = rung.plan;
    // people count from 1, files and the API from 0
    table.push_back({cat(i + 1), cat(rung.length), fixed(plan.extension().scale, 4),
                     cat(plan.boundaries().low, "..", plan.boundaries().high),
                     fixed(plan.attention_scale(), 4), fixed(plan.factor().back(), 4)});
    if (ladder.near()) {
      table.back().insert(table.back().begin() + 2, {cat(rung.border), cat(rung.shift)});
    }
  }
  return table;
}

void check_same_model(const std::vector<Candidate>& candidates,
                      const std::optional<Geometry>& model) {
  const Geometry first = model.value_or(candidates.front().plan().geometry());
  for (const Candidate& c : candidates) {
    const Geometry& g = c.plan().geometry();
    // Of one model plans for other windows may be compared.
    refuse_if(model && candidates.size() == 1 && g != first,
              cat(c.name, " was made for ", describe(g), "; this model has ", describe(first)),
              "leave out the model, or make a plan for it with --method");
    refuse_if(g.rotary_dim != first.rotary_dim,
              cat(c.name, " has rotary_dim ", g.rotary_dim, ", ",
                  model ? "the model" : candidates.front().name, " has ", first.rotary_dim),
              "compare plans of models with the same rotary_dim");
  }
}

void print_difference(const Candidate& a, const Candidate& b) {
  double largest = 1;
  int where = 0;
  int differ = 0;
  const auto table = pair_table(a.plan(), {a.name, b.name, "ratio"}, [&](int i) -> TextRow {
    // Of the angles, so that plans on top of different trained factors compare too.
    const double ratio = a.plan().theta()[i] / b.plan().theta()[i];
    if (ratio != 1) ++differ;
    if (std::abs(std::log(ratio)) > std::abs(std::log(largest))) largest = ratio, where = i;
    return {fixed(a.plan().factor()[i], 6), fixed(b.plan().factor()[i], 6), significant(ratio, 6)};
  });
  const double temperature = b.plan().attention_scale() / a.plan().attention_scale();
  std::cout << aligned(table, {}) << "\n";
  if (differ == 0) {
    std::cout << "no pair turns differently";
  } else {
    std::cout << differ << " of " << table.size() - 1 << " pairs turn differently, pair " << where
              << " the most: theta of " << a.name << " / theta of " << b.name << " = "
              << significant(largest, 6);
  }
  std::cout << "; attention scale ratio " << significant(temperature, 6) << "\n";
}

void print_csv(const std::vector<Candidate>& candidates) {
  std::vector<TextRow> table = {
      {"name", "scale", "pair", "wavelength", "turns", "theta", "lambda", "factor", "region"}};
  for (const Candidate& c : candidates) {
    const Plan& plan = c.plan();
    const std::vector<double> lambda = plan.lambda();
    for (int i = 0; i < pair_count(plan.geometry()); ++i) {
      const double theta = plan.theta()[i] * plan.factor()[i];
      table.push_back(
          {c.name, number(plan.extension().scale), cat(i), number(2 * std::numbers::pi / theta),
           number(double(plan.geometry().train_length) * theta / (2 * std::numbers::pi)),
           number(plan.theta()[i]), std::size_t(i) < lambda.size() ? number(lambda[i]) : "",
           number(plan.factor()[i]), region(plan, i)});
    }
  }
  for (const TextRow& row : table) std::cout << csv_line(row);
}

void print_tables(const std::vector<Candidate>& candidates) {
  std::cout << describe(candidates.front().plan().geometry()) << "\n";
  for (const Candidate& c : candidates) std::cout << plan_line(c) << "\n";
  std::cout << "\n";
  for (const Candidate& c : candidates) {
    if (c.ladder.growth() == Growth::none) continue;
    std::cout
        << c.name << ": " << c.ladder.rungs().size()
        << " rungs; the first is the unmodified model, the pairs below are those of the last\n"
        << aligned(rungs_of(c.ladder), {}) << "\n";
  }
  std::cout << aligned(
      candidates.size() == 1 ? one_plan(candidates.front().plan()) : side_by_side(candidates), {});
}

void run_plan(const PlanFlags& flags) {
  const ExtensionFlags& e = flags.extension;
  refuse_if(e.methods.empty() && !e.plan_files.empty() && !e.ctx.empty(),
            "--ctx does not change a plan file, which has its own numbers",
            "leave it out, or make a plan with --method and --ctx");
  check_reach(e);
  std::optional<Geometry> geometry;
  if (given(flags.subject)) geometry = resolve(flags.subject);
  std::vector<Candidate> candidates = resolve(e, geometry);
  note_auto(candidates);
  refuse_if(candidates.empty(), "no method or plan given",
            "give --method auto --ctx 128k, or --plan FILE");
  check_same_model(candidates, geometry);
  refuse_if(flags.format == "diff" && candidates.size() != 2,
            cat("--format diff compares two plans, not ", candidates.size()),
            "e.g. mrrope plan MODEL --method yarn,pro --ctx 32k --format diff");

  ordered_json json = mapped(candidates, [](const Candidate& c) { return to_json(c.ladder); });
  if (candidates.size() == 1) json = ordered_json(json.front());
  if (!flags.out.empty()) {
    refuse_if(candidates.size() != 1, cat("a plan file holds one plan, not ", candidates.size()),
              "give one --method with -o");
    write_output(flags.out, json.dump(2) + "\n");
    if (flags.out != "-") note(cat("wrote ", flags.out));
    return;
  }
  if (flags.format == "json") {
    std::cout << json.dump(2) << "\n";
  } else if (flags.format == "csv") {
    print_csv(candidates);
  } else if (flags.format == "diff") {
    print_difference(candidates[0], candidates[1]);
  } else {
    print_tables(candidates);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  const auto [verb, flags] = add_verb<PlanFlags>(app, "plan", run_plan);
  add_subject(verb, flags.subject, Takes::model_or_geometry);
  add_extension(verb, flags.extension, "only plans of --plan", "--scale says how far");
  add_format(verb, flags.format);
  add(verb, "-o,--out", flags.out)->excludes(verb.get_option("--format"));
}

}  // namespace mrrope::cli
