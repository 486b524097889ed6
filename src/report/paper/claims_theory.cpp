// SPDX-License-Identifier: Apache-2.0
// Claims that computing decides: equations, curves, and what the paper's tables say of themselves.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <set>

#include "base/text.h"
#include "mrrope/theory.h"
#include "report/paper/claims.h"

namespace mrrope::report {

using nlohmann::ordered_json;

namespace {

const Geometry kLlama2{.rotary_dim = 128, .base = 10000, .train_length = 4096};
const Geometry kLlama3{.rotary_dim = 128, .base = 500000, .train_length = 8192};
const Geometry kQwen{.rotary_dim = 128, .base = 1000000, .train_length = 32768};
constexpr double kScale = 16;          // of LLaMA2 and LLaMA3; Qwen2.5 has 4
constexpr double kExact = 1e-12;       // of a factor, relative: rounding alone
constexpr std::int64_t kSpan = 65536;  // LLaMA2's window times 16

struct Inputs {
  const PlanMaker& plan_of;
  const ordered_json& printed;
};

// What a check came to. One that finds a misprint sets `as_printed` and `as_meant` alone.
struct Finding {
  std::vector<ClaimPart> parts;
  std::string found;
  bool misprint_check = false;
  bool as_printed = false;
  bool as_meant = false;
};

struct TheoryRow {
  const char* id;
  const char* place;
  const char* says;
  const char* rule;
  Finding (*check)(const Inputs& in);
};

ClaimPart part(const std::string& name, bool holds, const std::string& numbers = "") {
  return {name, holds ? ClaimPart::Outcome::yes : ClaimPart::Outcome::no, numbers};
}

Finding misprint(bool as_printed, bool as_meant, const std::string& found) {
  return {{}, found, true, as_printed, as_meant};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] / b[i] - 1));
  return largest;
}

std::string difference_text(double largest) {
  return cat("largest difference ", significant(largest, 2));
}

// ---- sections 2 and 3, and the appendix on YaRN

Finding borders(const Inputs& in) {
  const Boundaries l3 = in.plan_of(kLlama3, "pro", kScale).boundaries();
  const Boundaries q = in.plan_of(kQwen, "pro", 4).boundaries();
  return {{part("LLaMA3 high 35", l3.high == 35, cat(l3.high)),
           part("Qwen2.5 23 and 40", q.low == 23 && q.high == 40, cat(q.low, " and ", q.high))},
          "pairs counted from 0; the paper's definition counts from 1 and gives one more"};
}

Finding ntk_equation(const Inputs& in) {
  const std::vector<double> lambda = in.plan_of(kLlama2, "ntk", kScale).lambda();
  const double step = std::pow(kScale, 1.0 / double(lambda.size()));
  const double off = largest_difference(lambda, std::vector<double>(lambda.size(), step));
  return {{part("", off < kExact, difference_text(off))}, ""};
}

// The product of the lambdas of the paper's general form, whose digits count from 1.
std::vector<double> printed_factors(const Plan& plan, bool progressive) {
  const auto [low, high] = plan.boundaries();
  const double n = high - low;
  std::vector<double> factor = {1};
  for (int d = 1; d < int(plan.factor().size()); ++d) {
    const double k = d - low;
    const double e = progressive ? 2 * k / ((1 + n) * n) : 1 / n;
    factor.push_back(factor.back() * (d > low && d <= high ? std::pow(kScale, e) : 1));
  }
  return factor;
}

Finding general_form(const Inputs& in) {
  Finding f;
  for (const bool progressive : {false, true}) {
    const Plan plan = in.plan_of(kLlama2, progressive ? "pro" : "uni", kScale);
    const double off = largest_difference(plan.factor(), printed_factors(plan, progressive));
    f.parts.push_back(part(progressive ? "Pro" : "Uni", off < kExact, difference_text(off)));
  }
  f.found = "products of the printed lambdas: S^(k/n) for Uni, S^(k(k+1)/(n(n+1))) for Pro";
  return f;
}

// YaRN's cumulative factor against two forms of it, over the pairs of the ramp. r: turns in the
// window.
double off_yarn(const Inputs& in, double (*form)(double r)) {
  const Plan plan = in.plan_of(kLlama2, "yarn-rotations", kScale);
  const std::vector<double> r = rotations_in_window(kLlama2);
  double largest = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (r[i] > 1 && r[i] < 32) {
      largest = std::max(largest, std::abs(plan.factor()[i] / form(r[i]) - 1));
    }
  }
  return largest;
}

Finding yarn_equation(const Inputs& in) {
  const double off =
      off_yarn(in, [](double r) { return kScale * 31 / (32 + (kScale - 1) * r - kScale); });
  return {
      {part("", off < kExact, difference_text(off))},
      "that is the ramp over rotations (yarn-rotations); engines ramp over pair indices (yarn)"};
}

Finding yarn_linear(const Inputs& in) {
  const double off = off_yarn(in, [](double r) { return kScale - (kScale - 1) * (r - 1) / 31; });
  return {{part("", off < 0.01, cat(fixed(100 * off, 0), " % away at most"))},
          "the frequency is interpolated linearly; the factor is its reciprocal"};
}

Finding pi_no_radix(const Inputs& in) {
  const Plan pi = in.plan_of(kLlama2, "pi", kScale);
  const std::int64_t pi_lost = colliding_positions(pi, kSpan);
  const std::int64_t pro_lost = colliding_positions(in.plan_of(kLlama2, "pro", kScale), kSpan);
  return {{part("not a product of lambdas", pi.factor().front() != 1,
                cat("such a product starts at 1, PI at ", number(pi.factor().front()))),
           part("low digits collide", pi_lost > 0 && pro_lost == 0,
                cat(pi_lost, " of ", kSpan,
                    " positions have the digits of the one before, under "
                    "Pro ",
                    pro_lost))},
          ""};
}

Finding range(const Inputs& in) {
  Finding f;
  for (const char* method : {"uni", "pro", "yarn"}) {
    const double growth = range_growth(in.plan_of(kLlama2, method, kScale));
    f.parts.push_back(part(method, std::abs(growth / kScale - 1) < kExact, significant(growth, 6)));
  }
  f.found = cat("S = 16; NTK's 64 equal lambdas give S^(Dr/(Dr-1)) = ",
                significant(std::pow(kScale, 64.0 / 63), 6));
  return f;
}

Finding shapes(const Inputs& in, const char* method,
               const std::vector<std::pair<Geometry, double>>& settings) {
  Finding f;
  for (const auto& [g, scale] : settings) {
    const Shape shape = in.plan_of(g, method, scale).shape();
    f.parts.push_back(part(cat("base ", fixed(g.base, 0), ", S = ", scale),
                           shape == Shape::regressive, to_string(shape)));
  }
  return f;
}

const std::vector<std::pair<Geometry, double>> kPaperSettings = {
    {kLlama2, kScale}, {kLlama3, kScale}, {kQwen, 4.0}};

Finding yarn_regressive(const Inputs& in) { return shapes(in, "yarn-rotations", kPaperSettings); }

Finding yarn_regressive_any_scale(const Inputs& in) {
  Finding f =
      shapes(in, "yarn-rotations", {{kLlama2, 4}, {kLlama2, 16}, {kLlama2, 32}, {kLlama2, 64}});
  f.found = "the proof needs beta > s alpha, so S below 32";
  return f;
}

Finding yarn_regressive_index(const Inputs& in) { return shapes(in, "yarn", kPaperSettings); }

Finding incomplete_pairs(const Inputs& in) {
  const Plan plan = in.plan_of(kLlama2, "none", 1);
  std::size_t literal = 0;
  std::size_t meant = 0;
  std::size_t incomplete = 0;
  const std::vector<double> turns = rotations_in_window(kLlama2);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    literal += kLlama2.train_length / plan.theta()[i] < 2 * std::numbers::pi ? 1 : 0;
    meant += kLlama2.train_length * plan.theta()[i] < 2 * std::numbers::pi ? 1 : 0;
    incomplete += turns[i] < 1 ? 1 : 0;
  }
  return misprint(literal == incomplete, meant == incomplete,
                  cat("right: L theta_j < 2 pi, ", meant, " of ", turns.size(),
                      " pairs for LLaMA2; as printed ", literal));
}

Finding letters(const Inputs& in) {
  // The paper's definition, as pairs counted from 0.
  const auto defined = [](double alpha, double beta) {
    const std::vector<double> turns = rotations_in_window(kQwen);
    Boundaries b{-1, int(turns.size())};
    for (int i = 0; i < int(turns.size()); ++i) {
      if (turns[std::size_t(i)] > beta) b.low = i;
      if (turns[std::size_t(i)] < alpha) b.high = std::min(b.high, i);
    }
    return b;
  };
  const Boundaries own = in.plan_of(kQwen, "pro", 4).boundaries();
  const Boundaries swapped = defined(32, 1);
  return misprint(swapped == own, defined(1, 32) == own,
                  cat("right: alpha = 1 and beta = 32, as in the definition, which then gives ",
                      own.low, " and ", own.high, " for Qwen2.5; swapped it gives ", swapped.low,
                      " and ", swapped.high));
}

Finding one_to_one(const Inputs&) {
  std::size_t settings = 0;
  std::set<std::pair<int, int>> pairs;
  for (int fast = 20; fast <= 40; ++fast) {
    for (int slow = 1; slow <= 10; ++slow) {
      Extension e;
      e.method = "pro";
      e.scale = kScale;
      e.parameters.beta_fast = fast;
      e.parameters.beta_slow = slow / 5.0;
      const Boundaries b = make_plan(kLlama3, e).boundaries();
      pairs.insert({b.low, b.high});
      ++settings;
    }
  }
  return {{part("", pairs.size() == settings,
                cat(settings, " settings for LLaMA3 give ", pairs.size(), " pairs of boundaries"))},
          ""};
}

Finding temperature(const Inputs& in) {
  Finding f;
  for (const char* method : {"yarn", "uni", "pro"}) {
    const double t = in.plan_of(kLlama2, method, kScale).attention_scale();
    f.parts.push_back(
        part(method, std::abs(t - (1 + 0.1 * std::log(kScale))) < kExact, fixed(t, 5)));
  }
  f.found = "multiplies cos and sin, so scores by its square";
  return f;
}

// ---- curves

std::vector<double> theta_of_base(const Inputs& in, double base) {
  Geometry g = kLlama2;
  g.base = base;
  return in.plan_of(g, "none", 1).theta();
}

Finding estimate_linear(const Inputs& in) {
  std::string ranges;
  bool grows = true;
  std::int64_t before = 0;
  for (const double base : {1e3, 1e4, 1e5, 1e6}) {
    const LinearRange r = linear_range(position_estimate(theta_of_base(in, base), kSpan), 0.1);
    grows = grows && r.length > before;
    before = r.length;
    ranges += cat(ranges.empty() ? "" : ", ", r.length, " at base ", number(base));
  }
  return {{part("", grows, cat("up to ", ranges))}, ""};
}

Finding estimate_sign(const Inputs& in) {
  const std::vector<double> theta = theta_of_base(in, kLlama2.base);
  std::vector<double> printed;
  for (std::int64_t m = 0; m < kSpan; ++m) {
    double sum = 0;
    for (const double t : theta) sum += t * std::fmod(double(m) * t, 2 * std::numbers::pi);
    printed.push_back(sum);
  }
  const std::int64_t straight = linear_range(printed, 0.1).length;
  const std::int64_t meant = linear_range(position_estimate(theta, kSpan), 0.1).length;
  return misprint(straight >= kLlama2.train_length, meant >= kLlama2.train_length,
                  cat("right: b^((j-1)/Dr), straight within 10 % up to ", meant,
                      " positions at base 10000; as printed up to ", straight, ", and never above ",
                      fixed(*std::max_element(printed.begin(), printed.end()), 0)));
}

// Where B(m) first turns negative, for LLaMA2's base.
std::int64_t root(const Inputs& in, const char* method, double scale = kScale) {
  constexpr std::int64_t kLimit = 1 << 17;
  return first_negative(in.plan_of(kLlama2, method, scale).theta(), kLimit).value_or(kLimit);
}

Finding bound_raised(const Inputs& in) {
  const std::int64_t none = root(in, "none", 1);
  const std::int64_t pro = root(in, "pro");
  return {{part("", pro > none, cat("from ", none, " to ", pro))}, ""};
}

ClaimPart near_number(const char* name, std::int64_t found, std::int64_t said) {
  return part(cat(name, " ", length_text(said)), std::abs(double(found) / double(said) - 1) < 0.1,
              cat(found));
}

Finding bound_yarn(const Inputs& in) {
  return {{near_number("YaRN", root(in, "yarn"), 6144)},
          cat("over rotations ", root(in, "yarn-rotations"))};
}

Finding bound_pro(const Inputs& in) {
  return {{near_number("untouched", root(in, "none", 1), 1024),
           near_number("Pro", root(in, "pro"), 28672)},
          cat("S = 16: untouched ", root(in, "none", 1), ", PI ", root(in, "pi"), ", NTK ",
              root(in, "ntk"), ", YaRN ", root(in, "yarn"), " (over rotations ",
              root(in, "yarn-rotations"), "), Uni ", root(in, "uni"), ", Pro ", root(in, "pro"),
              "; Pro reaches ", root(in, "pro", 32), " at S = 32")};
}

Finding bound_ratio(const Inputs& in) {
  const double ratio = double(root(in, "pro")) / double(root(in, "yarn"));
  return {{part("", ratio > 4, cat(fixed(ratio, 2), " times"))}, ""};
}

Finding oscillation(const Inputs& in) {
  const auto middle = [&](const char* method) {
    const Plan plan = in.plan_of(kLlama2, method, kScale);
    const auto [low, high] = plan.boundaries();
    const std::vector<double> theta(plan.theta().begin() + low, plan.theta().begin() + high);
    return oscillation_of(cosine_sum(theta, kSpan));
  };
  const Oscillation pro = middle("pro");
  Finding f;
  for (const char* method : {"yarn", "yarn-rotations", "uni"}) {
    const Oscillation o = middle(method);
    const auto against = [](double a, double b) {
      return cat(significant(a, 4), " against ", significant(b, 4));
    };
    f.parts.push_back(part(cat("variation, ", method), pro.variation < o.variation,
                           against(pro.variation, o.variation)));
    f.parts.push_back(
        part(cat("spread, ", method), pro.spread < o.spread, against(pro.spread, o.spread)));
  }
  return f;
}

// ---- the paper's tables against themselves

Finding qwen_32k(const Inputs& in) {
  const ordered_json& table = *paper_table("ppl-qwen", in.printed);
  const auto best = [&](bool as_printed) {
    const auto pro = paper_value(table, "pro", 32768, as_printed);
    for (const char* other : {"ntk", "yarn", "uni"}) {
      const auto value = paper_value(table, other, 32768, as_printed);
      if (!pro || (value && *value <= *pro)) return false;
    }
    return true;
  };
  return misprint(best(true), best(false),
                  cat("right: ", number(paper_value(table, "pro", 32768).value_or(0)),
                      ", which fits its neighbours; as printed it is above YaRN and Uni"));
}

Finding infinitebench_average(const Inputs& in) {
  const ordered_json& table = *paper_table("infinitebench", in.printed);
  Finding f;
  for (const ordered_json& row : table.at("rows")) {
    const ordered_json& values = row.at("values");
    double sum = 0;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) sum += values[i].get<double>();
    const double mean = sum / double(values.size() - 1);
    f.parts.push_back(part(row.at("method").get<std::string>(),
                           std::abs(mean - values.back().get<double>()) < 0.051, fixed(mean, 2)));
  }
  return f;
}

Finding longbench_model(const Inputs& in) {
  const ordered_json& table = *paper_table("longbench-llama", in.printed);
  const auto has_window = [&](const char* key) {
    for (const ordered_json& model : in.printed.at("models")) {
      if (model.at("name") == table.at(key)) return model.at("window") == table.at("window");
    }
    return false;
  };
  return misprint(has_window("caption_model"), has_window("model"),
                  cat("right: ", table.at("model").get<std::string>(),
                      ", as the head of the table says: its window is the 4K printed there"));
}

const TheoryRow kRows[] = {
    {"estimate-linear", "section 2.2",
     "the position read from the angles is linear, the further the larger the base",
     "the distance up to which a straight line fits within 10 % grows over bases 1e3 to 1e6",
     estimate_linear},
    {"estimate-sign", "section 2.2",
     "the second form of the estimate weighs angle j with b^((1-j)/Dr)",
     "straight within 10 % over LLaMA2's window, as printed or with the other sign", estimate_sign},
    {"incomplete-pairs", "section 3.1",
     "pairs with L / theta_j < 2 pi make no full turn in training",
     "as many pairs as turn less than once, as printed or with L theta_j", incomplete_pairs},
    {"range", "section 3.1", "the range grows by the product of the lambdas, S",
     "product of the lambdas at S = 16, to 1e-12", range},
    {"ntk-equation", "section 3.1", "NTK is lambda_j = S^(1/(Dr-1)) everywhere",
     "every lambda to 1e-12, LLaMA2 at S = 16", ntk_equation},
    {"yarn-linear", "section 3.1",
     "YaRN's cumulative factor in the middle is r_j S with r_j linear",
     "every factor of the middle within 1 %, LLaMA2 at S = 16", yarn_linear},
    {"yarn-regressive", "section 3.2 and appendix",
     "YaRN's printed formula is regressive (lambda falls) at the paper's bases and scales",
     "lambda falls strictly over the pairs inside the ramp over rotations", yarn_regressive},
    {"yarn-regressive-any-scale", "appendix on YaRN",
     "YaRN's printed formula is regressive at every scale",
     "lambda falls strictly over the pairs inside the ramp over rotations",
     yarn_regressive_any_scale},
    {"yarn-regressive-index", "section 3.2", "YaRN as engines run it is regressive",
     "lambda falls strictly over the pairs inside the ramp over pair indices (yarn)",
     yarn_regressive_index},
    {"uni-pro-equations", "section 3.2", "Uni and Pro multiply to S over the middle as printed",
     "every factor against the product of the printed lambdas, to 1e-12", general_form},
    {"yarn-equation", "appendix on YaRN",
     "YaRN's cumulative factor is s(beta-alpha)/(beta+(s-1)r-s alpha)",
     "every factor of the middle to 1e-12, LLaMA2 at S = 16", yarn_equation},
    {"temperature", "appendix on YaRN", "sqrt(1/t) = 0.1 ln S + 1",
     "the temperature of the plans at S = 16, to 1e-12", temperature},
    {"pi-no-radix", "appendix on PI", "PI is not a radix conversion, and makes low digits collide",
     "the first factor, and the digits of 64K positions, LLaMA2 at S = 16", pi_no_radix},
    {"boundaries", "appendix on hyperparameters",
     "high is 35 for LLaMA3; low and high are 23 and 40 for Qwen2.5",
     "the boundaries of Pro's plans", borders},
    {"letters", "appendix on hyperparameters", "alpha = 32 and beta = 1 are good values",
     "the definition of the boundaries with these values, or with the two swapped", letters},
    {"one-to-one", "appendix on hyperparameters",
     "(alpha, beta) and (low, high) correspond one to one",
     "as many pairs of boundaries as settings, alpha 0.2 to 2 and beta 20 to 40", one_to_one},
    {"bound-raised", "abstract", "Pro raises the upper bound of the length that can be encoded",
     "B(m) first turns negative later than untouched, LLaMA2 at S = 16", bound_raised},
    {"bound-yarn", "section 4.4", "under YaRN B(m) first turns negative at 6K",
     "within 10 % of the number, LLaMA2's base at S = 16", bound_yarn},
    {"bound-pro", "section 4.4", "Pro moves the bound from 1K to 28K",
     "within 10 % of the numbers, LLaMA2's base at S = 16", bound_pro},
    {"bound-ratio", "section 4.4", "Pro's bound is nearly five times YaRN's",
     "above four times, LLaMA2's base at S = 16", bound_ratio},
    {"oscillation", "section 4.4",
     "the middle pairs swing much less under Pro than under other methods",
     "total variation and spread of their sum of cosines over 64K positions, below the other's",
     oscillation},
    {"qwen-32k", "section 4.2, first table (b)",
     "Pro's 3.579 on Qwen2.5 at 32K is the lowest of its column",
     "below the other methods, as printed or as 2.579", qwen_32k},
    {"infinitebench-average", "section 4.3", "the last column is the mean of the six tasks",
     "the mean, to 0.05", infinitebench_average},
    {"longbench-model", "appendix, LongBench-v2",
     "the first half of the table is LLaMA3-8B, as the caption says",
     "the model's window is the one in the table's head", longbench_model},
};

}  // namespace

Plan usual_plan(const Geometry& geometry, const std::string& method, double scale) {
  Extension e;
  e.method = method;
  e.scale = scale;
  return make_plan(geometry, e);
}

std::vector<Claim> theory_claims(const PlanMaker& plan_of, const ordered_json& printed) {
  std::vector<Claim> out;
  for (const TheoryRow& row : kRows) {
    Finding f = row.check({plan_of, printed});
    Claim c;
    c.id = row.id;
    c.place = row.place;
    c.says = row.says;
    c.rule = row.rule;
    c.state = state_of_parts(f.parts);
    if (f.misprint_check) {
      c.state = f.as_printed ? ClaimState::holds
                : f.as_meant ? ClaimState::misprint
                             : ClaimState::fails;
    }
    const bool one = f.parts.size() == 1 && f.parts.front().name.empty();
    c.found = one ? f.parts.front().numbers : parts_text(f.parts);
    if (!f.found.empty()) c.found += (c.found.empty() ? "" : "; ") + f.found;
    if (!one) c.parts = std::move(f.parts);
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace mrrope::report
