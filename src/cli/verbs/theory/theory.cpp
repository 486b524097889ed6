// SPDX-License-Identifier: Apache-2.0
// mrrope theory: the flags of the figures that need no model.
#include <charconv>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/verbs/theory/output.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

constexpr double kDefaultScale = 16;  // as in the paper

struct DigitsFlags : TheoryFlags {
  std::vector<std::string> positions;
  std::string digits;
};

void run_digits(const DigitsFlags& flags) {
  const Geometry g = theory_geometry(flags);
  if (!flags.digits.empty()) {
    print_theory(flags, position_figure(g, theory_plans(flags, g, kDefaultScale),
                                        parse_list(flags.digits, "--digits")));
    return;
  }
  std::vector<std::int64_t> positions;
  for (const std::string& text : flags.positions) {
    positions.push_back(text == "0" ? 0 : parse_length(text));
  }
  print_theory(flags, digits_figure(g, theory_plans(flags, g, kDefaultScale), positions));
}

struct EstimateFlags : TheoryFlags {
  std::vector<double> bases;
  std::string length;
  double bound = 0.05;
};

void run_estimate(const EstimateFlags& flags) {
  const Geometry g = theory_geometry(flags);
  const std::int64_t length =
      flags.length.empty() ? 4 * g.train_length : parse_length(flags.length);
  print_theory(flags, theory::estimate_figure(g, flags.bases, length, flags.bound));
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

void run_distance(const TheoryFlags& flags) {
  const Geometry g = theory_geometry(flags);
  ExtensionFlags extension = flags.extension;
  std::vector<theory::NamedLadder> ladders;
  const std::vector<Candidate> candidates =
      theory_candidates(extension, g, "none,pro,elastic:pro,far:pro,far:pi", kDefaultScale);
  std::int64_t length =
      std::llround(extension.scale.value_or(kDefaultScale) * double(g.train_length));
  if (!extension.ctx.empty()) {
    length = parse_length(extension.ctx);
  } else if (extension.methods.empty()) {  // files alone are shown as far as all of them reach
    length = candidates.front().ladder.longest();
    for (const Candidate& c : candidates) {
      length = std::min(length, c.ladder.longest());
    }
  }
  for (const Candidate& c : candidates) {
    ladders.push_back({c.name, up_to(c.ladder, length)});
  }
  print_theory(flags, distance_figure(g, ladders, length));
}

struct BoundFlags : TheoryFlags {
  std::string length;
  std::string reach;
  std::string scales;
};

// "2..64": every whole number from the first to the last.
std::vector<double> parse_scales(const std::string& text) {
  constexpr int kMost = 256;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::usage, cat("--scales ", text, ": ", why),
                "write a range of whole numbers such as 2..64");
  };
  int ends[2] = {0, 0};
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) refuse("there is no .. in it");
  for (const bool last : {false, true}) {
    const std::string part = last ? text.substr(dots + 2) : text.substr(0, dots);
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), ends[last ? 1 : 0]);
    if (error != std::errc() || end != part.data() + part.size()) {
      refuse(cat("'", part, "' is not a whole number"));
    }
  }
  const auto [first, last] = ends;
  if (first < 1) refuse(cat("a scale of ", first, " is below 1"));
  if (last <= first) refuse(cat(last, " does not come after ", first));
  if (last > 65536) refuse(cat("a scale of ", last, " is above 65536"));
  if (last - first >= kMost) refuse(cat(last - first + 1, " scales are more than ", kMost));
  std::vector<double> scales;
  for (int scale = first; scale <= last; ++scale) scales.push_back(scale);
  return scales;
}

void run_roots(const BoundFlags& flags, const Geometry& g) {
  if (!flags.extension.plan_files.empty()) {
    throw Error(ErrorKind::usage, "a plan file has one scale, and --scales asks for many",
                "give --methods");
  }
  std::vector<theory::PlanGroup> groups;
  const std::vector<double> scales = parse_scales(flags.scales);
  for (const double scale : scales) groups.push_back({"", theory_plans(flags, g, scale)});
  // PI, which reaches farthest, turns negative at the scale times the untouched model's m: some
  // windows.
  const double far = std::min(4 * scales.back() * double(g.train_length), double(1 << 22));
  const std::int64_t length = flags.length.empty() ? std::int64_t(far) : parse_length(flags.length);
  print_theory(flags, roots_figure(g, scales, groups, length));
}

void run_bound(const BoundFlags& flags) {
  const Geometry g = theory_geometry(flags);
  if (!flags.scales.empty()) {
    run_roots(flags, g);
    return;
  }
  const auto length_or_0 = [](const std::string& text) {
    return text.empty() ? 0 : parse_length(text);
  };
  print_theory(flags, bound_figure(g, theory_plans(flags, g, kDefaultScale),
                                   length_or_0(flags.length), length_or_0(flags.reach)));
}

}  // namespace

void add_theory(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("theory", "Figures of the paper, for your own model");
  verb->require_subcommand(1);

  auto digits = std::make_shared<DigitsFlags>();
  CLI::App* d = verb->add_subcommand("digits", "Positions as digits of a mixed radix");
  add_theory_subject(*d, *digits);
  CLI::Option* positions = d->add_option("--positions", digits->positions, "Positions to show")
                               ->type_name("M,...")
                               ->delimiter(',');
  d->add_option("--digits", digits->digits,
                "The way back: digits of one position, the fastest first, or @FILE with a JSON "
                "list")
      ->type_name("D,...")
      ->excludes(positions);
  add_theory_output(*d, *digits);
  d->footer(
      "Examples:\n  mrrope theory digits llama2 --methods none,pi,pro --scale 16\n"
      "  mrrope theory digits model.gguf --methods pro --ctx 32k --csv digits.csv\n"
      "  mrrope theory digits --rotary-dim 8 --rope-freq-base 1e4 --train-ctx 4k --method none \\\n"
      "    --digits 4,3,2,1");
  d->callback([digits] { run_digits(*digits); });

  auto estimate = std::make_shared<EstimateFlags>();
  CLI::App* e =
      verb->add_subcommand("estimate", "The position that the angles suggest, for each base");
  add_subject(*e, estimate->subject, Takes::model_or_geometry);
  e->add_option("--bases", estimate->bases, "Bases to compare")->type_name("B,...")->delimiter(',');
  e->add_option("--length", estimate->length, "Positions from 0 to this one (default: 4 windows)")
      ->type_name("LENGTH");
  e->add_option("--bound", estimate->bound,
                "Relative error up to which the estimate counts as linear")
      ->type_name("X")
      ->capture_default_str();
  add_theory_output(*e, *estimate);
  e->footer("Examples:\n  mrrope theory estimate llama2 --bases 1e4,5e5 --svg estimate.svg");
  e->callback([estimate] { run_estimate(*estimate); });

  auto factors = std::make_shared<TheoryFlags>();
  CLI::App* f = verb->add_subcommand("factors", "Cumulative factor and lambda of every method");
  add_theory_subject(*f, *factors);
  add_theory_output(*f, *factors);
  f->footer(
      "Examples:\n  mrrope theory factors llama2 --html factors.html    # scales 16 and 4\n"
      "  mrrope theory factors model.gguf --methods yarn,pro --ctx 32k --svg factors.svg");
  f->callback([factors] { run_factors(*factors); });

  auto distance = std::make_shared<TheoryFlags>();
  CLI::App* s =
      verb->add_subcommand("distance", "The distance at which tokens are seen, by method");
  add_theory_subject(*s, *distance);
  add_theory_output(*s, *distance);
  s->footer(
      "Examples:\n  mrrope theory distance llama2 --svg distance.svg    # at scale 16\n"
      "  mrrope theory distance model.gguf --methods pro,elastic:pro,far:pi --ctx 32k");
  s->callback([distance] { run_distance(*distance); });

  auto bound = std::make_shared<BoundFlags>();
  CLI::App* b = verb->add_subcommand("bound", "The sum of cosines, and where it turns negative");
  add_theory_subject(*b, *bound);
  b->add_option("--length", bound->length,
                "Distances from 0 to this one (default: as far as the plans reach)")
      ->type_name("LENGTH");
  b->add_option("--reach", bound->reach,
                "Also find the smallest scale and base that reach this length")
      ->type_name("LENGTH");
  b->add_option("--scales", bound->scales,
                "Where it turns negative at each of these scales, and where the order of methods "
                "flips")
      ->type_name("A..B")
      ->excludes(b->get_option("--scale"))
      ->excludes(b->get_option("--ctx"))
      ->excludes(b->get_option("--reach"));
  add_theory_output(*b, *bound);
  b->footer(
      "Examples:\n  mrrope theory bound llama2 --scale 16\n"
      "  mrrope theory bound model.gguf --methods yarn,pro --ctx 64k --reach 64k\n"
      "  mrrope theory bound llama2 --methods yarn,yarn-rotations,regressive,uni,pro --scales "
      "2..64");
  b->callback([bound] { run_bound(*bound); });

  auto claims = std::make_shared<TheoryFlags>();
  CLI::App* c = verb->add_subcommand("claims", "Claims of the paper, with our verdicts");
  add_theory_output(*c, *claims);
  c->footer("Examples:\n  mrrope theory claims\n  mrrope theory claims --html claims.html");
  c->callback([claims] { print_theory(*claims, theory::claims_figure()); });

  add_theory_attention(*verb);
}

}  // namespace mrrope::cli
