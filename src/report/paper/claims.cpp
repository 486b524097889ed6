// SPDX-License-Identifier: Apache-2.0
#include "report/paper/claims.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "base/text.h"
#include "mrrope/theory.h"
#include "report/charts/axis.h"
#include "report/paper/paper.h"
#include "report/verdict_words.h"

namespace mrrope::report {

namespace {

const Geometry kLlama2{.rotary_dim = 128, .base = 10000, .train_length = 4096};
const Geometry kLlama3{.rotary_dim = 128, .base = 500000, .train_length = 8192};
const Geometry kQwen{.rotary_dim = 128, .base = 1000000, .train_length = 32768};
constexpr double kScale = 16;

Plan plan_of(const Geometry& g, const std::string& method, double scale) {
  Extension e;
  e.method = method;
  e.scale = scale;
  return make_plan(g, e);
}

Claim claim(std::string id, std::string place, std::string says, bool holds, std::string found) {
  return {std::move(id),
          std::move(place),
          std::move(says),
          std::move(found),
          holds ? ClaimState::holds : ClaimState::fails,
          ""};
}

Claim open_claim(std::string id, std::string place, std::string says, std::string how) {
  return {std::move(id),  std::move(place),        std::move(says),
          std::move(how), ClaimState::needs_model, ""};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] / b[i] - 1));
  return largest;
}

// ---- equations

std::vector<double> cumulative(const std::vector<double>& lambda) {
  std::vector<double> out = {1};
  for (const double l : lambda) out.push_back(out.back() * l);
  return out;
}

// lambda_d of the paper's general form, d from 1; borders as 0-based pairs low, high are the digits
// low+1 and high+1.
std::vector<double> printed_factors(const Plan& plan, bool progressive) {
  const auto [low, high] = plan.boundaries();
  const double n = high - low;
  std::vector<double> lambda(plan.factor().size() - 1, 1.0);
  for (int d = low + 1; d < high + 1; ++d) {
    const double k = 1.0 + d - (low + 1);
    lambda[std::size_t(d - 1)] =
        std::pow(plan.extension().scale, progressive ? 2 * k / ((1 + n) * n) : 1 / n);
  }
  return cumulative(lambda);
}

void add_equations(std::vector<Claim>& out) {
  const auto [low3, high3] = plan_of(kLlama3, "pro", kScale).boundaries();
  const auto [lowq, highq] = plan_of(kQwen, "pro", 4).boundaries();
  out.push_back(claim("boundaries", "appendix on hyperparameters",
                      "high is 35 for LLaMA3; low and high are 23 and 40 for Qwen2.5",
                      high3 == 35 && lowq == 23 && highq == 40,
                      cat("LLaMA3: ", low3, "..", high3, ", Qwen2.5: ", lowq, "..", highq,
                          ", as pairs counted from 0 (floor, ceil); the paper's own definition "
                          "counts from 1 and gives one more")));
  const Plan ntk = plan_of(kLlama2, "ntk", kScale);
  const double step = std::pow(kScale, 1.0 / 63);
  const double ntk_off = largest_difference(ntk.lambda(), std::vector<double>(63, step));
  out.push_back(claim("ntk-equation", "section 3.1", "NTK is lambda_j = S^(1/(Dr-1)) everywhere",
                      ntk_off < 1e-12, cat("largest difference ", significant(ntk_off, 2))));
  const Plan uni = plan_of(kLlama2, "uni", kScale);
  const Plan pro = plan_of(kLlama2, "pro", kScale);
  const double uni_off = largest_difference(uni.factor(), printed_factors(uni, false));
  const double pro_off = largest_difference(pro.factor(), printed_factors(pro, true));
  out.push_back(claim(
      "uni-pro-equations", "section 3.2",
      "the lambdas of Uni and Pro multiply to S over the middle",
      uni_off < 1e-12 && pro_off < 1e-12 && std::abs(pro.factor().back() / kScale - 1) < 1e-12,
      cat("printed lambdas against S^(k/n) and S^(k(k+1)/(n(n+1))): largest ", "difference ",
          significant(std::max(uni_off, pro_off), 2))));
  // YaRN's cumulative factor, printed in the appendix with r the turns in the window.
  const Plan turns = plan_of(kLlama2, "yarn-rotations", kScale);
  const std::vector<double> r = rotations_in_window(kLlama2);
  double yarn_off = 0;
  double linear_off = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (!(r[i] > 1 && r[i] < 32)) continue;
    const double printed = kScale * 31 / (32 + (kScale - 1) * r[i] - kScale);
    yarn_off = std::max(yarn_off, std::abs(turns.factor()[i] / printed - 1));
    // r_j S with r_j going straight from 1/S to 1 over the ramp.
    const double gamma = (r[i] - 1) / 31;
    const double straight = (gamma / kScale + (1 - gamma)) * kScale;
    linear_off = std::max(linear_off, std::abs(turns.factor()[i] / straight - 1));
  }
  out.push_back(claim("yarn-equation", "appendix on YaRN",
                      "YaRN's cumulative factor is s(beta-alpha)/(beta+(s-1)r-s alpha)",
                      yarn_off < 1e-12,
                      cat("that is the ramp over rotations (yarn-rotations): largest difference ",
                          significant(yarn_off, 2), "; engines ramp over pair indices (yarn)")));
  out.push_back(claim("yarn-linear", "section 3.1",
                      "YaRN's cumulative factor in the middle is r_j S with r_j linear", false,
                      cat("it is the frequency that is interpolated linearly; the factor is its "
                          "reciprocal, up to ",
                          fixed(100 * linear_off, 0), " % away from a straight r_j S")));
  const Plan pi = plan_of(kLlama2, "pi", kScale);
  const std::int64_t lost = colliding_positions(pi, 65536);
  out.push_back(claim(
      "pi-no-radix", "appendix on PI", "PI is not a radix conversion, and makes low digits collide",
      pi.factor().front() != 1 && lost > 0,
      cat("a product of lambdas starts at 1, PI's at ", number(pi.factor().front()), "; ", lost,
          " of 65536 positions have the digits of the one before, with "
          "pro ",
          colliding_positions(pro, 65536))));
  out.push_back(claim(
      "range", "section 3.1", "the range grows by the product of the lambdas, S",
      std::abs(range_growth(pro) / kScale - 1) < 1e-12,
      cat("uni ", significant(range_growth(uni), 6), ", pro ", significant(range_growth(pro), 6),
          ", yarn ", significant(range_growth(plan_of(kLlama2, "yarn", kScale)), 6), "; NTK's ",
          pair_count(kLlama2), " equal lambdas give S^(Dr/(Dr-1)) = ",
          significant(std::pow(kScale, 64.0 / 63), 6), " instead of S")));
  const auto shape = [](const char* method, double scale) {
    return std::string(to_string(plan_of(kLlama2, method, scale).shape()));
  };
  out.push_back(claim("yarn-regressive", "section 3.2 and appendix",
                      "YaRN is regressive (lambda falls) for every base and scale", false,
                      cat("ramp over rotations: ", shape("yarn-rotations", 4), " at S = 4, ",
                          shape("yarn-rotations", 16), " at 16, ", shape("yarn-rotations", 32),
                          " at 32, ", shape("yarn-rotations", 64),
                          " at 64 (the proof needs beta > s alpha); ramp over pair indices, which "
                          "engines run: ",
                          shape("yarn", 4), " at 4, ", shape("yarn", 16), " at 16")));
  std::size_t literal = 0;
  std::size_t meant = 0;
  const std::vector<double> trained = trained_theta(kLlama2);
  for (const double t : trained) {
    literal += 4096 / t < 2 * std::numbers::pi ? 1 : 0;
    meant += 4096 * t < 2 * std::numbers::pi ? 1 : 0;
  }
  out.push_back(claim("incomplete-pairs", "section 3.1",
                      "pairs with L / theta_j < 2 pi make no full turn in training", false,
                      cat("as printed that is ", literal,
                          " of 64 pairs for LLaMA2; L * theta_j < 2 "
                          "pi is meant, ",
                          meant, " pairs")));
  out.push_back(claim("letters", "appendix on YaRN and on hyperparameters",
                      "alpha = 1, beta = 32; later alpha = 32, beta = 1", false,
                      "the two letters are swapped halfway; 32 turns mark low, 1 turn marks high"));
  std::size_t settings = 0;
  std::set<std::pair<int, int>> borders;
  for (int fast = 20; fast <= 40; ++fast) {
    for (int slow = 1; slow <= 10; ++slow) {
      Extension e;
      e.method = "pro";
      e.scale = kScale;
      e.parameters.beta_fast = fast;
      e.parameters.beta_slow = slow / 5.0;
      const Boundaries b = make_plan(kLlama3, e).boundaries();
      borders.insert({b.low, b.high});
      ++settings;
    }
  }
  out.push_back(claim("one-to-one", "appendix on hyperparameters",
                      "(alpha, beta) and (low, high) correspond one to one",
                      borders.size() == settings,
                      cat("many to one: ", settings, " settings for LLaMA3 give ", borders.size(),
                          " pairs of boundaries")));
  out.push_back(claim("temperature", "appendix on YaRN", "sqrt(1/t) = 0.1 ln S + 1",
                      std::abs(pro.attention_scale() - (1 + 0.1 * std::log(kScale))) < 1e-15,
                      cat("pro at S = 16 multiplies cos and sin by ",
                          fixed(pro.attention_scale(), 5), ", scores by its square")));
}

void add_curves(std::vector<Claim>& out) {
  std::string ranges;
  bool grows = true;
  std::int64_t before = 0;
  double flat = 0;
  for (const double base : {1000.0, 10000.0, 100000.0, 1000000.0}) {
    Geometry g = kLlama2;
    g.base = base;
    const std::vector<double> theta = trained_theta(g);
    const LinearRange range = linear_range(position_estimate(theta, 65536), 0.1);
    grows = grows && range.length > before;
    before = range.length;
    ranges += cat(ranges.empty() ? "" : ", ", range.length, " at base ", number(base));
    for (int m = 0; m < 65536; m += 16) {
      double sum = 0;
      for (const double t : theta) sum += t * std::fmod(m * t, 2 * std::numbers::pi);
      flat = std::max(flat, sum);
    }
  }
  out.push_back(claim("estimate-linear", "section 2.2",
                      "the biased estimate is linear, the further the larger the base", grows,
                      cat("straight within 10 % up to ", ranges)));
  out.push_back(claim("estimate-sign", "section 2.2",
                      "the second form of the estimate has b^((1-j)/Dr) before the angle", false,
                      cat("wrong sign in the exponent: as printed the sum never passes ",
                          fixed(flat, 0), " over 65536 positions; b^((j-1)/Dr) is meant")));
  const auto root = [](const char* method, double scale) {
    const auto m = first_negative(plan_of(kLlama2, method, scale).theta(), 1 << 17);
    return m.value_or(1 << 17);
  };
  const std::int64_t pro = root("pro", kScale);
  const std::int64_t yarn = root("yarn", kScale);
  out.push_back(
      claim("bound", "section 4.4",
            "B(m) first turns negative at 1K untouched, 6K with YaRN, 28K with Pro",
            std::abs(double(pro) / 28672 - 1) < 0.1 && std::abs(double(yarn) / 6144 - 1) < 0.1,
            cat("LLaMA2's base at S = 16: untouched ", root("none", 1), ", PI ", root("pi", kScale),
                ", NTK ", root("ntk", kScale), ", YaRN ", yarn, " (over rotations ",
                root("yarn-rotations", kScale), "), Uni ", root("uni", kScale), ", Pro ", pro,
                "; Pro reaches ", root("pro", 32), " at S = 32")));
  out.push_back(claim("bound-ratio", "section 4.4", "Pro's bound is nearly five times YaRN's",
                      double(pro) / double(yarn) > 4,
                      cat(fixed(double(pro) / double(yarn), 2), " times")));
  const auto middle = [](const char* method) {
    const Plan plan = plan_of(kLlama2, method, kScale);
    const auto [low, high] = plan.boundaries();
    const std::vector<double> theta(plan.theta().begin() + low, plan.theta().begin() + high);
    return oscillation_of(cosine_sum(theta, 65536));
  };
  const Oscillation mp = middle("pro");
  const Oscillation mu = middle("uni");
  const Oscillation my = middle("yarn");
  const Oscillation mr = middle("yarn-rotations");
  const bool calmer = mp.variation < my.variation && mp.variation < mr.variation &&
                      mp.spread < my.spread && mp.spread < mr.spread;
  const auto pair = [](const Oscillation& o) {
    return cat(significant(o.variation, 4), " / ", significant(o.spread, 3));
  };
  out.push_back(claim("oscillation", "section 4.4",
                      "the middle pairs swing much less under Pro than under other methods", calmer,
                      cat("total variation / spread over 64K positions: Pro ", pair(mp), ", Uni ",
                          pair(mu), ", YaRN ", pair(my), ", over rotations ", pair(mr))));
}

// ---- tables of the paper

struct Count {
  int better = 0;
  int all = 0;
  std::string exceptions;
};

// Columns of a table in which a is below b (perplexity) in the paper.
Count below(const std::string& table, const std::string& a, const std::string& b,
            const std::vector<std::int64_t>& columns, bool as_printed = false) {
  Count count;
  for (const std::int64_t column : columns) {
    const auto x = paper_value(table, a, column, as_printed);
    const auto y = paper_value(table, b, column, as_printed);
    if (!x || !y) continue;
    ++count.all;
    if (*x < *y) {
      ++count.better;
    } else {
      count.exceptions +=
          cat(count.exceptions.empty() ? "" : ", ", length_text(column), " ", *x, " against ", *y);
    }
  }
  return count;
}

// The same of the user's own runs, method by method name.
std::string measured_below(const std::vector<RunRecord>& runs, const std::string& a,
                           const std::string& b) {
  std::string out;
  for (const RunRecord& run : runs) {
    std::map<std::int64_t, const ResultRow*> of_a;
    std::map<std::int64_t, const ResultRow*> of_b;
    for (const ResultRow& row : run.rows) {
      if (row.metric != "perplexity" || row.estimate.n == 0) continue;
      if (row.method == a) of_a[row.length] = &row;
      if (row.method == b) of_b[row.length] = &row;
    }
    int all = 0;
    int better = 0;
    std::string where;
    for (const auto& [length, row] : of_a) {
      const auto other = of_b.find(length);
      if (other == of_b.end()) continue;
      ++all;
      if (row->estimate.value < other->second->estimate.value) {
        ++better;
        where += cat(where.empty() ? "" : ", ", length_text(length));
      }
    }
    if (all == 0) continue;
    out += cat(out.empty() ? "" : "; ", run.name, " (", run.model, "): ", a, " below ", b, " at ",
               better, " of ", all, " lengths", where.empty() ? "" : cat(" (", where, ")"));
  }
  return out;
}

void add_tables(std::vector<Claim>& out, const std::vector<RunRecord>& runs) {
  const std::vector<std::int64_t> long_columns = {8192, 16384, 32768, 65536, 131072};
  const std::vector<std::int64_t> llama2_columns = {4096, 8192, 16384, 32768, 65536};
  const Count l3 = below("ppl-llama3", "pro", "yarn", long_columns);
  const Count qw = below("ppl-qwen", "pro", "yarn", long_columns);
  const Count qw_printed = below("ppl-qwen", "pro", "yarn", long_columns, true);
  const Count l2 = below("ppl-llama2", "pro", "yarn", llama2_columns);
  out.push_back(
      claim("pro-below-yarn", "section 4.2", "Pro has lower perplexity than YaRN at every length",
            l3.better == l3.all && qw.better == qw.all && l2.better == l2.all,
            cat("its own tables: LLaMA3 ", l3.better, " of ", l3.all, ", Qwen2.5 ", qw.better,
                " of ", qw.all, " (", qw_printed.better, " as printed), LLaMA2 ", l2.better, " of ",
                l2.all, l2.exceptions.empty() ? "" : cat(" (not at ", l2.exceptions, ")"))));
  out.back().measured = measured_below(runs, "pro", "yarn");
  const std::vector<std::pair<const char*, const std::vector<std::int64_t>*>> three = {
      {"ppl-llama3", &long_columns}, {"ppl-qwen", &long_columns}, {"ppl-llama2", &llama2_columns}};
  bool only_last = true;
  std::string where;
  for (const auto& [table, columns] : three) {
    for (const std::int64_t column : *columns) {
      const auto yarn = paper_value(table, "yarn", column);
      const auto uni = paper_value(table, "uni", column);
      const bool ahead = yarn && uni && *yarn < *uni;
      only_last = only_last && ahead == (column == columns->back());
      if (ahead) where += cat(where.empty() ? "" : ", ", table, " ", length_text(column));
    }
  }
  out.push_back(claim("yarn-uni-last", "section 4.2",
                      "YaRN is ahead of Uni only at the last length", only_last,
                      cat("its own tables: ahead at ", where)));
  out.back().measured = measured_below(runs, "yarn", "uni");
  out.push_back(claim("misprint", "section 4.2", "Pro on Qwen2.5 at 32K: 3.579, set as the best",
                      false,
                      "3.579 is the worst of its column but NTK; 2.579 fits its neighbours"));

  const auto fall = [](const char* table, const char* method) {
    return paper_value(table, method, 65536).value_or(0) -
           paper_value(table, method, 131072).value_or(0);
  };
  out.push_back(claim(
      "ruler-stable", "sections 1 and 4.3",
      "on RULER Pro stays stable from 64K to 128K where YaRN falls sharply",
      fall("ruler-llama3", "pro") < fall("ruler-llama3", "yarn") &&
          fall("ruler-qwen", "pro") < fall("ruler-qwen", "yarn"),
      cat("points lost from 64K to 128K: LLaMA3 Pro ", fixed(fall("ruler-llama3", "pro"), 1),
          ", YaRN ", fixed(fall("ruler-llama3", "yarn"), 1), "; Qwen2.5 Pro ",
          fixed(fall("ruler-qwen", "pro"), 1), ", YaRN ", fixed(fall("ruler-qwen", "yarn"), 1))));
  std::string ratios;
  bool doubled = true;
  for (const char* task : {"kv_retrieval", "passkey", "number_string", "longdialogue_qa_eng"}) {
    const double p = paper_value("infinitebench", "pro", task).value_or(0);
    const double y = paper_value("infinitebench", "yarn", task).value_or(1);
    doubled = doubled && p > 2 * y;
    ratios += cat(ratios.empty() ? "" : ", ", task, " ", fixed(p / y, 2));
  }
  out.push_back(claim("more-than-double", "abstract",
                      "Pro more than doubles YaRN on InfiniteBench's retrieval and dialogue parts",
                      doubled, cat("Pro over YaRN: ", ratios)));
  double largest = 0;
  for (const auto& row : paper().at("tables")) {
    if (row.at("id") != "infinitebench") continue;
    for (const auto& line : row.at("rows")) {
      double sum = 0;
      for (std::size_t i = 0; i < 6; ++i) sum += line.at("values")[i].get<double>();
      largest = std::max(largest, std::abs(sum / 6 - line.at("values")[6].get<double>()));
    }
  }
  out.push_back(claim("infinitebench-average", "section 4.3",
                      "the last column is the mean of the six tasks", largest < 0.051,
                      cat("recomputed: off by at most ", fixed(largest, 2))));
  out.push_back(claim("recall-85", "abstract and section 4.3", "over 85 % needle recall at 128K",
                      false,
                      "the abstract says 128K, the text 120K (and most depths only), the caption "
                      "nearly 96K: three lengths for one figure"));
  for (const RunRecord& run : runs) {
    if (!run.needle) continue;
    for (const eval::NeedleRow& row : run.needle->rows) {
      if (row.method != "pro" || row.all.empty() || row.all.back().rouge.n == 0) continue;
      eval::Estimate e = row.all.back().rouge;
      e.value *= 100;
      e.error *= 100;
      out.back().measured +=
          cat(out.back().measured.empty() ? "" : "; ", run.name, " (", run.model, "): pro ",
              estimate_text(e), " % at ", length_text(run.needle->lengths.back()));
    }
  }
  out.push_back(claim("longbench-model", "appendix, LongBench-v2",
                      "the first half of the table is LLaMA3-8B (caption) or LLaMA2-7B (head)",
                      false, "it cannot be both; ties (16.7, 26.8, 6.67) are set in bold for Pro"));
}

void add_open(std::vector<Claim>& out, const std::vector<RunRecord>& runs) {
  out.push_back(open_claim("sensitivity", "appendix on hyperparameters",
                           "perplexity is flat for high from 34 to 39 (LLaMA3 at 128K)",
                           "mrrope eval ppl MODEL with --plan files made with --high 34 .. 39"));
  for (const RunRecord& run : runs) {
    // Plans of pro that differ in high alone.
    std::map<int, double> by_high;
    std::int64_t longest = 0;
    for (const ResultRow& row : run.rows) longest = std::max(longest, row.length);
    for (const RecordedMethod& m : run.methods) {
      if (!m.plan || m.plan->extension().method != "pro") continue;
      for (const ResultRow& row : run.rows) {
        const bool is = row.method == m.name && row.metric == "perplexity" && row.length == longest;
        if (is && row.estimate.n > 0) by_high[m.plan->boundaries().high] = row.estimate.value;
      }
    }
    if (by_high.size() < 2) continue;
    std::string text;
    for (const auto& [high, value] : by_high) {
      text += cat(text.empty() ? "" : ", ", high, ": ", value_text(value));
    }
    out.back().measured += cat(out.back().measured.empty() ? "" : "; ", run.name, " (", run.model,
                               ") at ", length_text(longest), ": ", text);
  }
  out.push_back(open_claim("attention", "section 4.4",
                           "scores of the middle pairs fall steadily over a wider range under Pro, "
                           "and look more like those of training",
                           "mrrope theory attention MODEL"));
  out.push_back(open_claim("needle-96k", "section 4.3",
                           "Pro takes LLaMA3-8B's retrieval to 96K at least",
                           "mrrope eval needle MODEL --methods yarn,pro --ctx 128k"));
}

}  // namespace

const char* to_string(ClaimState state) noexcept {
  switch (state) {
    case ClaimState::holds:
      return "holds";
    case ClaimState::fails:
      return "does not hold";
    case ClaimState::needs_model:
      return "needs a model";
  }
  return "needs a model";
}

std::vector<Claim> claims_of(const std::vector<RunRecord>& runs) {
  std::vector<Claim> out;
  add_equations(out);
  add_curves(out);
  add_tables(out, runs);
  add_open(out, runs);
  return out;
}

DataTable table_of(const std::vector<Claim>& claims) {
  DataTable table;
  table.caption = "Claims of the paper";
  table.header = {"claim", "state", "place", "says", "found", "measured"};
  table.text_columns = table.header.size();
  for (const Claim& c : claims) {
    table.rows.push_back({c.id, to_string(c.state), c.place, c.says, c.found, c.measured});
  }
  return table;
}

}  // namespace mrrope::report
