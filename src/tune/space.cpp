// SPDX-License-Identifier: Apache-2.0
#include "tune/space.h"

#include <nlopt.h>

#include <exception>
#include <memory>

#include "base/random.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/plan_file.h"

namespace mrrope::tune {

namespace {

std::string numbers_digest(const Ladder& ladder) {
  std::string text;
  for (const Rung& rung : ladder.rungs()) {
    text += cat(rung.length, ":", rung.plan.attention_scale(), "*", rung.sharpness);
    for (const double f : rung.plan.factor()) text += cat(",", f);
    if (ladder.near()) text += cat(";", rung.border, ",", rung.shift);
  }
  return sha256(text).substr(0, 16);
}

// Defaults become explicit, so that they are the same at another length.
Proposal propose(const Space& space, const std::string& name, const std::string& origin,
                 MethodSpec method) {
  method.growth = space.growth;
  Parameters& own = method.parameters;
  const double scale =
      own.headroom.value_or(1) * double(space.ctx) / double(space.geometry.train_length);
  Proposal c{name, origin, {}};
  c.notation = to_string(method);
  if (space.growth != Growth::none) {
    c.ladder = make_ladder(space.geometry, method, space.ctx, scale);
    own.headroom = c.ladder.headroom();
    own.rung_step = c.ladder.rung_step();
    own.sharpen = c.ladder.sharpen();
    if (const auto& near = c.ladder.near()) {
      own.near = double(near->length);
      own.near_step = double(near->step);
    }
  } else {
    // With the length, so that the headroom can be read from the plan.
    Extension e{method.name, scale, space.ctx, own};
    e.parameters.headroom.reset();
    c.ladder = make_ladder(make_plan(space.geometry, e), space.ctx);
    own.headroom = own.headroom.value_or(1);
  }
  c.method = std::move(method);
  c.plan = ladder_digest(c.ladder);
  c.numbers = numbers_digest(c.ladder);
  return c;
}

// Six digits are more than any search can tell apart, and keep plan files readable.
double rounded(double value) { return std::stod(significant(value, 6)); }

Boundaries boundaries_at(const Space& space, const Point& point) {
  const int last = pair_count(space.geometry) - 1;
  const int low = std::clamp(int(std::lround(point[kLow])), 0, last - 1);
  return {low, std::clamp(int(std::lround(point[kHigh])), low + 1, last)};
}

// Turns in the window of a pair index, which may be fractional.
double turns_at(const Geometry& geometry, double pair) {
  const std::vector<double> turns = rotations_in_window(geometry);
  const double last = double(turns.size() - 1);
  const auto below = std::size_t(std::clamp(std::floor(pair), 0.0, last - 1));
  const double slope = std::log(turns[below + 1] / turns[below]);
  return turns[below] * std::exp(slope * (pair - double(below)));
}

// Where none is given.
double default_attn_coef(Growth growth) { return growth == Growth::far ? 0 : 0.1; }

// "power -0.31, middle 9..38 (beta_fast 36.2, beta_slow 0.71), attn_coef 0.064, headroom 1.08".
std::string describe(const Proposal& c) {
  const Parameters& p = c.method.parameters;
  const Boundaries b = c.ladder.rungs().back().plan.boundaries();
  if (find_method(c.method.name).own.empty()) return c.name;
  std::string text = cat(method_name(c.method.name, c.ladder.growth()), " ",
                         significant(p.power.value_or(1), 3), ", middle ", b.low, "..", b.high);
  if (p.beta_fast && p.beta_slow) {
    text += cat(" (beta_fast ", significant(*p.beta_fast, 3), ", beta_slow ",
                significant(*p.beta_slow, 3), ")");
  }
  const double coefficient = p.attn_coef.value_or(default_attn_coef(c.ladder.growth()));
  text +=
      cat(", attn_coef ", significant(coefficient, 3), ", headroom ", significant(c.headroom(), 3));
  if (c.ladder.elastic()) text += cat(", rung step ", significant(c.ladder.rung_step(), 3));
  if (c.ladder.sharpen() > 0) text += cat(", sharpen ", significant(c.ladder.sharpen(), 3));
  if (c.ladder.near()) text += cat(", near ", c.ladder.near()->length);
  return text;
}

// Nothing outside the family.
std::optional<Point> point_of(const Space& space, const Proposal& c) {
  const std::optional<double> own = method_row(c.method.name).power;
  if (!own) return std::nullopt;
  const Parameters& p = c.method.parameters;
  const Boundaries b = c.ladder.rungs().back().plan.boundaries();
  Point point = {std::isnan(*own) ? p.power.value_or(1) : *own, double(b.low), double(b.high),
                 p.attn_coef.value_or(default_attn_coef(space.growth)), c.headroom()};
  if (space.growth != Growth::none) {
    point.push_back(c.ladder.rung_step());
    point.push_back(c.ladder.sharpen());
  }
  if (const auto& near = c.ladder.near()) {
    point.push_back(double(near->length) / double(space.geometry.train_length));
  }
  return point;
}

constexpr double kLastStep = 0.1;  // of the first: finer steps would chase the noise of the texts

struct Call {
  const std::function<std::optional<double>(const std::vector<double>&)>& f;
  nlopt_opt optimiser;
  std::exception_ptr thrown;  // no exception may cross the C code
  double last = 0;
};

double call(unsigned n, const double* x, double* /*gradient*/, void* data) {
  auto& c = *static_cast<Call*>(data);
  try {
    if (const auto value = c.f({x, x + n})) {
      c.last = *value;
      return *value;
    }
  } catch (...) {
    c.thrown = std::current_exception();
  }
  nlopt_force_stop(c.optimiser);
  return c.last;
}

}  // namespace

Space make_space(const Geometry& geometry, std::int64_t ctx, Growth growth) {
  refuse_if(ctx <= geometry.train_length,
            cat(ctx, " tokens fit in the trained window of ", geometry.train_length,
                ": there is nothing to tune"),
            cat("give --ctx above ", geometry.train_length));
  Extension pro;
  pro.method = "pro";
  pro.scale = double(ctx) / double(geometry.train_length);
  const Boundaries defaults = make_plan(geometry, pro).boundaries();
  const double last = pair_count(geometry) - 1;
  const double width = defaults.high - defaults.low;
  const double pairs = std::max(1.0, std::round(last / 16));  // a step along a boundary

  Space space{geometry, ctx, growth};
  if (growth == Growth::far) {
    // Far keys can do without their fast pairs: down to a middle at the first pair, which is nearly
    // position interpolation.
    space.axes = {{-1.5, 2.5, 0.4, -1, 1.25},
                  {0, defaults.low + width / 2, 2 * pairs, 0, defaults.low + width / 8},
                  {1, std::min(last, defaults.high + 0.6 * width), 2 * pairs, defaults.high / 4.0,
                   defaults.high + width / 8},
                  {0, 0.15, 0.02, 0, 0.05},
                  {1, 3, 0.2, 1, 2},
                  {1.05, 2.1, 0.08, 1.1, 1.5},
                  {0, 1, 0.25},
                  {1.0 / 32, 0.5, 1.0 / 16, 1.0 / 32, 0.375}};
  } else {
    space.axes = {{-1.5, 2.5, 0.4, -1, 1.25},
                  {std::max(0.0, defaults.low - width / 2), defaults.low + width / 2, pairs,
                   defaults.low - width / 8, defaults.low + width / 8},
                  {defaults.high - 0.4 * width, std::min(last, defaults.high + 0.6 * width), pairs,
                   defaults.high - width / 8, defaults.high + width / 8},
                  {0, 0.15, 0.02, 0.03, 0.09},
                  {1, 2, 0.1, 1, 1.35}};
    if (growth == Growth::elastic) {
      space.axes.push_back({1.05, 1.6, 0.08, 1.1, 1.4});
      space.axes.push_back({0, 1, 0.25});
    }
  }
  for (SearchAxis& axis : space.axes) {
    axis.start_lower = std::max(axis.lower, axis.start_lower);
    axis.start_upper = std::min(axis.upper, axis.start_upper);
  }
  return space;
}

Proposal proposal_at(const Space& space, Point point, const std::string& origin) {
  for (std::size_t i = 0; i < point.size(); ++i) {
    point[i] = std::clamp(point[i], space.axes[i].lower, space.axes[i].upper);
  }
  const Boundaries b = boundaries_at(space, point);
  MethodSpec method{.name = "power"};
  Parameters& p = method.parameters;
  p.power = rounded(point[kPower]);
  // A quarter of a pair inside, so that rounding never moves a boundary. Betas, not pairs: they
  // carry over to other models.
  p.beta_fast = rounded(turns_at(space.geometry, b.low + 0.25));
  p.beta_slow = rounded(turns_at(space.geometry, b.high - 0.25));
  p.attn_coef = rounded(point[kAttnCoef]);
  p.headroom = rounded(point[kHeadroom]);
  if (space.growth != Growth::none) {
    p.rung_step = rounded(point[kRungStep]);
    p.sharpen = rounded(point[kSharpen]);
  }
  if (space.growth == Growth::far) {
    const double window = double(space.geometry.train_length);
    p.near = std::max(1.0, std::round(point[kNear] * window));
    p.near_step = std::min(*p.near, std::max(1.0, std::floor(window / 4)));
  }
  Proposal c = propose(space, "", origin, method);
  c.point = std::move(point);
  c.name = describe(c);
  return c;
}

Proposal at_length(const Space& space, const Proposal& proposal, std::int64_t ctx) {
  Space other = space;
  other.ctx = ctx;
  return propose(other, proposal.name, proposal.origin, proposal.method);
}

std::vector<Proposal> published(const Space& space) {
  const bool far = space.growth == Growth::far;
  const double usual = far ? kFarHeadroom : 1;
  std::vector<Proposal> out;
  for (const char* name : {far ? "pi" : "yarn", far ? "yarn" : "yarn-rotations", "uni", "pro"}) {
    for (const double headroom : {far ? kFarHeadroom : 1, far ? 1.6 : 1.25}) {
      MethodSpec method{name, space.growth};
      if (headroom != usual) method.parameters.headroom = headroom;
      try {
        out.push_back(propose(space, to_string(method), "published", method));
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::usage) throw;
        continue;
      }
      out.back().point = point_of(space, out.back());
    }
  }
  if (!far || resolve_auto(space.geometry, {std::string(kAuto)}, space.ctx).growth != Growth::far) {
    return out;
  }
  Proposal usual_one = unnamed(space);
  if (!find_by(out, &Proposal::numbers, usual_one.numbers)) out.push_back(std::move(usual_one));
  return out;
}

Proposal unnamed(const Space& space) {
  const MethodSpec method = resolve_auto(space.geometry, {std::string(kAuto)}, space.ctx);
  Space own = space;
  own.growth = method.growth;
  return propose(own, std::string(kAuto), "published", method);
}

std::vector<Proposal> likely(const Space& space) {
  // Less than 256 tokens near was never measured.
  const double window = double(space.geometry.train_length);
  const double least = std::max(1.0 / 32, std::min(256 / window, 0.25));
  const struct {
    double near, headroom, sharpen;
  } plans[] = {{least, 1.25, 0.2}, {least, 1.6, 0.3}, {least, 2, 0.2},
               {least, 3, 0.2},    {0.125, 3, 0.2},   {0.25, 5, 0.6}};
  std::vector<Proposal> out = {unnamed(space)};
  for (const auto& [near, headroom, sharpen] : plans) {
    MethodSpec method{"pi", space.growth};
    method.parameters.near = std::max(near, least);
    if (near > least) method.parameters.near_step = least;
    method.parameters.headroom = headroom;
    method.parameters.sharpen = sharpen;
    Proposal next = propose(space, to_string(method), "likely", method);
    if (!find_by(out, &Proposal::numbers, next.numbers)) out.push_back(std::move(next));
  }
  return out;
}

Proposal from_plan(const Space& space, const Ladder& ladder) {
  const Plan& plan = ladder.rungs().back().plan;
  const Geometry& g = plan.geometry();
  const Extension& e = plan.extension();
  MethodSpec method{e.method, space.growth, e.parameters};
  Parameters& own = method.parameters;
  const bool list = !own.factors.empty() || !own.lambdas.empty();
  refuse_if(list && (g.rotary_dim != space.geometry.rotary_dim || g.base != space.geometry.base),
            "the given plan is a list of factors for another geometry",
            "give a plan of method power, uni, pro or yarn");
  refuse_if(list && space.growth != Growth::none, "a list of factors cannot become a ladder",
            "give a plan of method power, uni, pro or yarn");
  refuse_if(method_row(e.method).reach == Reach::unchanged, "the given plan changes nothing",
            "remove --plan");
  if (space.growth != Growth::none && ladder.elastic()) own.sharpen = ladder.sharpen();
  const bool far = space.growth == Growth::far;
  if (far && ladder.near() && g.train_length == space.geometry.train_length) {
    own.near = double(ladder.near()->length);
    own.near_step = double(ladder.near()->step);
  }
  if (far != ladder.near().has_value()) {
    // Headroom and temperature of all keys are not those of far keys.
    own.attn_coef.reset();
  } else if (ladder.elastic()) {
    own.headroom = ladder.headroom();
    if (space.growth != Growth::none) own.rung_step = ladder.rung_step();
  } else if (e.length > g.train_length) {
    own.headroom = std::max(1.0, e.scale * double(g.train_length) / double(e.length));
  }
  Proposal c = propose(space, "given", "given", method);
  c.point = point_of(space, c);
  return c;
}

std::vector<Point> spread(const Space& space, std::size_t count, std::uint64_t seed) {
  // Powers of the positive root of x^(d+1) = x + 1: the generalised golden ratio.
  const std::size_t d = space.axes.size();
  double root = 2;
  for (int i = 0; i < 100; ++i) root = std::pow(1 + root, 1 / double(d + 1));
  Random random(seed);
  std::vector<double> at(d);
  for (double& value : at) value = double(random.next() >> 11) / double(std::uint64_t(1) << 53);
  std::vector<Point> points;
  for (std::size_t k = 0; k < count; ++k) {
    Point point(d);
    for (std::size_t i = 0; i < d; ++i) {
      at[i] += std::pow(root, -double(i + 1));
      at[i] -= std::floor(at[i]);
      const SearchAxis& axis = space.axes[i];
      point[i] = axis.start_lower + at[i] * (axis.start_upper - axis.start_lower);
    }
    points.push_back(std::move(point));
  }
  return points;
}

void refine(const std::vector<SearchAxis>& axes, std::vector<double> start,
            const std::function<std::optional<double>(const std::vector<double>&)>& f) {
  const std::size_t n = start.size();
  std::vector<double> lower, upper, step, tolerance;
  for (std::size_t i = 0; i < n; ++i) {
    const SearchAxis& axis = axes[i];
    start[i] = std::clamp(start[i], axis.lower, axis.upper);
    lower.push_back(axis.lower);
    upper.push_back(axis.upper);
    step.push_back(std::min(axis.step, 0.45 * (axis.upper - axis.lower)));  // BOBYQA needs room
    tolerance.push_back(kLastStep * step[i]);
  }
  const std::unique_ptr<nlopt_opt_s, void (*)(nlopt_opt)> optimiser(
      nlopt_create(NLOPT_LN_BOBYQA, unsigned(n)), nlopt_destroy);
  if (!optimiser) throw Error(ErrorKind::out_of_memory, "no memory for the local search");
  Call c{f, optimiser.get(), nullptr, 0};
  nlopt_set_lower_bounds(c.optimiser, lower.data());
  nlopt_set_upper_bounds(c.optimiser, upper.data());
  nlopt_set_initial_step(c.optimiser, step.data());
  nlopt_set_xtol_abs(c.optimiser, tolerance.data());
  nlopt_set_min_objective(c.optimiser, call, &c);
  double value = 0;
  const nlopt_result result = nlopt_optimize(c.optimiser, start.data(), &value);
  if (c.thrown) std::rethrow_exception(c.thrown);
  // On a staircase BOBYQA ends with a roundoff error, which is fine.
  throw_if(result < 0 && result != NLOPT_FORCED_STOP && result != NLOPT_ROUNDOFF_LIMITED,
           ErrorKind::failed, cat("the local search failed: ", nlopt_result_to_string(result)),
           "this is a bug: please report it");
}

}  // namespace mrrope::tune
