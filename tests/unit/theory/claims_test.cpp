// SPDX-License-Identifier: Apache-2.0
// The verdicts of data/paper.json are written by hand. Here every one of them, but for those that
// only a run can tell, is computed again: from plans, or from the numbers that the paper prints.
// The numbers of its reason are computed too.

#include "base/text.h"
#include "report/report.h"
#include "support/test.h"
#include "theory/curves.h"

namespace mrrope::theory {
namespace {

using report::paper;
using report::paper_table;

const Geometry kLlama2{.rotary_dim = 128, .base = 10000, .train_length = 4096};
const Geometry kLlama3{.rotary_dim = 128, .base = 500000, .train_length = 8192};
const Geometry kQwen{.rotary_dim = 128, .base = 1000000, .train_length = 32768};
const std::vector<std::pair<Geometry, double>> kSettings = {
    {kLlama2, 16}, {kLlama3, 16}, {kQwen, 4}};
constexpr double kExact = 1e-12;
constexpr std::int64_t kSpan = 65536;  // LLaMA2's window times 16

// Which claims were computed, and what comes out of them.
class Claims {
 public:
  // Parts that make a verdict: all hold, some do, or none. `numbers` occur in the reason.
  void parts(const std::string& id, const std::vector<bool>& parts,
             const std::vector<std::string>& numbers = {}) {
    const auto holding = std::count(parts.begin(), parts.end(), true);
    expect(id,
           holding == 0                              ? "does not hold"
           : holding == std::ptrdiff_t(parts.size()) ? "holds"
                                                     : "holds in part",
           numbers);
  }
  void misprint(const std::string& id, bool as_printed, bool as_meant,
                const std::vector<std::string>& numbers) {
    EXPECT_FALSE(as_printed) << id;
    EXPECT_TRUE(as_meant) << id;
    expect(id, "misprint", numbers);
  }
  const std::set<std::string>& computed() const { return computed_; }

 private:
  void expect(const std::string& id, const std::string& verdict,
              const std::vector<std::string>& numbers) {
    EXPECT_TRUE(computed_.insert(id).second) << id;
    for (const ordered_json& claim : paper().at("claims")) {
      if (claim.at("id") != id) continue;
      EXPECT_EQ(claim.at("verdict"), verdict) << id;
      const auto reason = claim.at("reason").get<std::string>();
      for (const std::string& n : numbers) {
        EXPECT_TRUE(contains(reason, n)) << id << ": " << n << " in " << reason;
      }
      return;
    }
    ADD_FAILURE() << "no claim " << id;
  }
  std::set<std::string> computed_;
};

Plan plan_of(const Geometry& geometry, const std::string& method, double scale) {
  Extension e{.method = method, .scale = scale};
  return make_plan(geometry, e);
}

// ---- sections 2 and 3, and the appendix

void estimates(Claims& claims) {
  std::vector<std::string> lengths;
  std::int64_t before = 0;
  bool grows = true;
  for (const double base : {1e3, 1e4, 1e5, 1e6}) {
    Geometry g = kLlama2;
    g.base = base;
    // 5 % is the default of mrrope theory estimate.
    const std::int64_t length =
        linear_range(position_estimate(trained_theta(g), kSpan), 0.05).length;
    grows = grows && length > before;
    before = length;
    lengths.push_back(cat(length, " "));
  }
  claims.parts("estimate-linear", {grows}, lengths);
  const std::vector<double> theta = trained_theta(kLlama2);
  double largest = 0;
  for (std::int64_t m = 0; m < kSpan; ++m) {
    double sum = 0;
    for (const double t : theta) sum += t * std::fmod(double(m) * t, 2 * std::numbers::pi);
    largest = std::max(largest, sum);
  }
  const double meant = position_estimate(theta, kSpan).back();
  claims.misprint("estimate-sign", largest > kSpan, meant > kSpan, {cat(std::ceil(largest))});
}

void boundaries_of_pairs(Claims& claims) {
  const std::vector<double> theta = trained_theta(kLlama2);
  const auto L = double(kLlama2.train_length);
  const auto printed = std::count_if(theta.begin(), theta.end(),
                                     [&](double t) { return L / t < 2 * std::numbers::pi; });
  const auto meant = std::count_if(theta.begin(), theta.end(),
                                   [&](double t) { return L * t < 2 * std::numbers::pi; });
  claims.misprint("incomplete-pairs", printed == meant, meant > 0, {cat(meant, " of")});
  const Boundaries l3 = plan_of(kLlama3, "pro", 16).boundaries();
  const Boundaries q = plan_of(kQwen, "pro", 4).boundaries();
  claims.parts("boundaries", {l3.high == 35, q.low == 23 && q.high == 40}, {"35", "23 and 40"});
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
  const Boundaries swapped = defined(32, 1);
  claims.misprint("letters", swapped == q, defined(1, 32) == q,
                  {cat(swapped.low, " and ", swapped.high)});
  std::set<std::pair<int, int>> pairs;
  std::size_t settings = 0;
  for (int fast = 20; fast <= 40; ++fast) {
    for (int slow = 1; slow <= 10; ++slow, ++settings) {
      Extension e{.method = "pro", .scale = 16};
      e.parameters.beta_fast = fast;
      e.parameters.beta_slow = slow / 5.0;
      const Boundaries b = make_plan(kLlama3, e).boundaries();
      pairs.insert({b.low, b.high});
    }
  }
  claims.parts("one-to-one", {pairs.size() == settings},
               {cat(settings, " settings"), cat("give ", pairs.size())});
}

// The product of the printed lambdas, whose digits count from 1.
double off_printed(const Plan& plan, bool progressive) {
  const auto [low, high] = plan.boundaries();
  const double n = high - low;
  double factor = 1;
  double largest = 0;
  for (int d = 1; d < int(plan.factor().size()); ++d) {
    const double e = progressive ? 2 * (d - low) / ((1 + n) * n) : 1 / n;
    if (d > low && d <= high) factor *= std::pow(16, e);
    largest = std::max(largest, std::abs(plan.factor()[std::size_t(d)] / factor - 1));
  }
  return largest;
}

// YaRN's factors inside the ramp against a form of them; r: turns in the window.
double off_yarn(double (*form)(double r)) {
  const Plan plan = plan_of(kLlama2, "yarn-rotations", 16);
  const std::vector<double> r = rotations_in_window(kLlama2);
  double largest = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (r[i] <= 1 || r[i] >= 32) continue;
    largest = std::max(largest, std::abs(plan.factor()[i] / form(r[i]) - 1));
  }
  return largest;
}

void equations(Claims& claims) {
  std::vector<bool> grows;
  std::vector<bool> temperatures;
  for (const char* method : {"yarn", "uni", "pro"}) {
    const Plan plan = plan_of(kLlama2, method, 16);
    grows.push_back(std::abs(range_growth(plan) / 16 - 1) < kExact);
    temperatures.push_back(std::abs(plan.attention_scale() - (1 + 0.1 * std::log(16))) < kExact);
  }
  claims.parts("range", grows, {fixed(std::pow(16, 64.0 / 63), 2)});
  claims.parts("temperature", temperatures, {fixed(1 + 0.1 * std::log(16), 5)});
  const std::vector<double> ntk = plan_of(kLlama2, "ntk", 16).lambda();
  claims.parts("ntk-equation", {std::all_of(ntk.begin(), ntk.end(), [](double lambda) {
                 return std::abs(lambda / std::pow(16, 1.0 / 63) - 1) < kExact;
               })});
  claims.parts("uni-pro-equations", {off_printed(plan_of(kLlama2, "uni", 16), false) < kExact,
                                     off_printed(plan_of(kLlama2, "pro", 16), true) < kExact});
  claims.parts("yarn-equation",
               {off_yarn([](double r) { return 16 * 31 / (32 + 15 * r - 16); }) < kExact});
  const double linear = off_yarn([](double r) { return 16 - 15 * (r - 1) / 31; });
  claims.parts("yarn-linear", {linear < 0.01}, {cat(fixed(100 * linear, 0), " % off")});
  const Plan pi = plan_of(kLlama2, "pi", 16);
  const std::int64_t collide = colliding_positions(pi, kSpan);
  claims.parts("pi-no-radix",
               {pi.factor().front() != 1,
                collide > 0 && colliding_positions(plan_of(kLlama2, "pro", 16), kSpan) == 0},
               {cat("PI at ", pi.factor().front()), cat(collide)});
}

void shapes(Claims& claims) {
  std::vector<bool> inside;
  std::vector<bool> with_first;
  std::vector<bool> index;
  std::vector<std::string> first_two;
  for (const auto& [g, scale] : kSettings) {
    const Plan plan = plan_of(g, "yarn-rotations", scale);
    inside.push_back(plan.shape() == Shape::regressive);
    const std::vector<double> lambda = plan.lambda();
    const auto first = std::find_if(lambda.begin(), lambda.end(), [](double l) { return l != 1; });
    with_first.push_back(first[0] > first[1]);
    if (first_two.empty()) first_two = {cat(fixed(first[0], 4), " and ", fixed(first[1], 4))};
    index.push_back(plan_of(g, "yarn", scale).shape() == Shape::regressive);
  }
  EXPECT_EQ(with_first, std::vector<bool>(3, false));
  std::vector<bool> all = inside;
  all.insert(all.end(), with_first.begin(), with_first.end());
  claims.parts("yarn-regressive", all, first_two);
  claims.parts("yarn-regressive-index", index);
  std::vector<bool> scales;
  for (const double s : {4, 16, 32, 64}) {
    scales.push_back(plan_of(kLlama2, "yarn-rotations", s).shape() == Shape::regressive);
  }
  EXPECT_EQ(scales, (std::vector<bool>{true, true, false, false}));
  claims.parts("yarn-regressive-any-scale", scales);
}

// ---- section 4.4

// Where B(m) first turns negative, for LLaMA2's base.
std::int64_t root(const char* method, double scale) {
  constexpr std::int64_t kLimit = 1 << 18;
  return first_negative(plan_of(kLlama2, method, scale).theta(), kLimit).value_or(kLimit);
}

bool near(std::int64_t found, double said) { return std::abs(double(found) / said - 1) < 0.1; }

void bounds(Claims& claims) {
  const std::int64_t none = root("none", 1);
  const std::int64_t yarn = root("yarn", 16);
  const std::int64_t printed_yarn = root("yarn-rotations", 16);
  const std::int64_t pro = root("pro", 16);
  claims.parts("bound-raised", {pro > none}, {cat(none), cat(pro)});
  claims.parts("bound-yarn", {near(yarn, 6144)}, {cat(yarn), cat(printed_yarn)});
  claims.parts("bound-pro", {near(none, 1024), near(pro, 28672)},
               {cat(none), cat(pro), cat(root("pro", 32))});
  claims.parts("bound-ratio", {double(pro) / double(yarn) > 4},
               {fixed(double(pro) / double(yarn), 2), cat(printed_yarn, " and ", pro)});
  EXPECT_GT(printed_yarn, pro);
  std::vector<int> yarn_at_6k;
  int first_at_28k = 0;
  bool ever_largest = false;
  for (int s = 2; s <= 64; ++s) {
    const std::int64_t own = root("pro", s);
    const std::int64_t other = root("yarn", s);
    EXPECT_LT(double(own) / double(other), 2) << s;
    if (near(other, 6144)) yarn_at_6k.push_back(s);
    if (near(own, 28672) && first_at_28k == 0) first_at_28k = s;
    EXPECT_FALSE(near(own, 28672) && (near(other, 6144) || near(root("yarn-rotations", s), 6144)));
    ever_largest = ever_largest || own >= root("pi", s);
  }
  EXPECT_EQ(yarn_at_6k, (std::vector<int>{5, 6}));
  EXPECT_EQ(first_at_28k, 27);
  const std::int64_t pi = root("pi", 16);
  const std::int64_t regressive = root("regressive", 16);
  claims.parts("bound-maximum", {ever_largest, pro > pi, pro > regressive, pro > printed_yarn},
               {cat(pi), cat(regressive), cat(printed_yarn), cat(pro)});
}

void oscillations(Claims& claims) {
  std::vector<Oscillation> found;
  std::vector<std::string> numbers;
  for (const char* method : {"pro", "yarn", "yarn-rotations", "uni"}) {
    const Plan plan = plan_of(kLlama2, method, 16);
    const auto [low, high] = plan.boundaries();
    const std::vector<double> theta(plan.theta().begin() + low, plan.theta().begin() + high);
    found.push_back(oscillation_of(cosine_sum(theta, kSpan)));
    numbers.push_back(significant(found.back().spread, 4));
    numbers.push_back(significant(found.back().variation, 4));
  }
  std::vector<bool> parts;
  for (std::size_t i = 1; i < found.size(); ++i) {
    parts.push_back(found[0].spread < found[i].spread);
    parts.push_back(found[0].variation < found[i].variation);
  }
  claims.parts("oscillation", parts, numbers);
}

// ---- the paper's tables

// A number as printed, or with `meant` what a misprint stands for; ">10" is 10.
double cell(const char* id, const std::string& method, const ordered_json& column,
            bool meant = true) {
  const ordered_json& table = *paper_table(id);
  if (meant && table.contains("misprints")) {
    for (const ordered_json& m : table.at("misprints")) {
      if (m.value("method", "") == method && m.at("column") == column) return m.at("meant");
    }
  }
  const ordered_json& columns = table.at("columns");
  const auto at = std::size_t(std::find(columns.begin(), columns.end(), column) - columns.begin());
  for (const ordered_json& row : table.at("rows")) {
    if (row.at("method") != method) continue;
    const ordered_json& value = row.at("values").at(at);
    return value.is_number() ? value.get<double>() : std::stod(value.get<std::string>().substr(1));
  }
  ADD_FAILURE() << id << " " << method << " " << column;
  return 0;
}

std::string both(double a, double b) { return cat(number(a), " and ", number(b)); }

void perplexities(Claims& claims) {
  std::vector<bool> last_only;
  std::vector<std::string> at_last;
  for (const char* model : {"llama3", "qwen", "llama2"}) {
    const std::string id = cat("ppl-", model);
    const ordered_json& columns = paper_table(id)->at("columns");
    std::vector<bool> below;
    std::vector<bool> lowest;
    for (const ordered_json& length : columns) {
      const auto of = [&](const char* method) { return cell(id.c_str(), method, length); };
      below.push_back(of("pro") < of("yarn"));
      lowest.push_back(of("pro") < std::min({of("ntk"), of("yarn"), of("uni")}));
      last_only.push_back((of("yarn") < of("uni")) == (length == columns.back()));
      if (length == columns.back()) at_last.push_back(both(of("yarn"), of("uni")));
    }
    const std::string numbers =
        model == std::string("llama2")
            ? "Pro has 4.11 and YaRN 4.07"
            : both(cell(id.c_str(), "pro", 131072), cell(id.c_str(), "yarn", 131072));
    claims.parts(cat("pro-below-yarn-", model), below, {numbers});
    if (model != std::string("llama2")) claims.parts(cat("lowest-", model), lowest);
  }
  claims.parts("yarn-uni-last", last_only, at_last);
  const auto best = [](bool meant) {
    const double pro = cell("ppl-qwen", "pro", 32768, meant);
    return pro < cell("ppl-qwen", "yarn", 32768) && pro < cell("ppl-qwen", "uni", 32768);
  };
  claims.misprint("qwen-32k", best(false), best(true), {"2.579", "2.589", "2.581"});
}

void rulers(Claims& claims) {
  std::vector<bool> stable;
  std::vector<std::string> fell;
  std::vector<bool> reaches;
  for (const char* id : {"ruler-llama3", "ruler-qwen"}) {
    const auto fall = [&](const char* method) {
      return cell(id, method, 65536) - cell(id, method, 131072);
    };
    // The longest length with RULER's own threshold.
    const auto reach = [&](const char* method) {
      std::int64_t longest = 0;
      for (const ordered_json& length : paper_table(id)->at("columns")) {
        if (cell(id, method, length) >= 85.6) longest = length;
      }
      return longest;
    };
    stable.push_back(fall("pro") < fall("yarn"));
    fell.push_back(fixed(fall("pro"), 1));
    fell.push_back(fixed(fall("yarn"), 1));
    reaches.push_back(reach("pro") > 0 && reach("pro") == 2 * reach("yarn"));
  }
  claims.parts("ruler-stable-llama3", {stable[0]}, {fell[0], fell[1]});
  claims.parts("ruler-stable", stable, {fell[2], fell[3]});
  claims.parts("window-doubled", reaches, {"85.6"});
}

void infinitebench(Claims& claims) {
  const auto of = [](const char* method, const std::string& task) {
    return cell("infinitebench", method, task);
  };
  for (const auto& [name, task] : {std::pair{"kv", "kv_retrieval"},
                                   {"dialogue", "longdialogue_qa_eng"},
                                   {"passkey", "passkey"},
                                   {"number", "number_string"}}) {
    claims.parts(cat("more-than-double-", name), {of("pro", task) > 2 * of("yarn", task)},
                 {both(of("pro", task), of("yarn", task))});
  }
  const ordered_json& table = *paper_table("infinitebench");
  for (const auto& [id, rival] :
       {std::pair{"beats-yi", "Yi-34B-200K"}, {"beats-kimi", "Kimi-Chat"}}) {
    int ahead = 0;
    for (const ordered_json& task : table.at("tasks")) ahead += of("pro", task) > of(rival, task);
    claims.parts(id, {ahead > 1, of("pro", "average") > of(rival, "average")},
                 {cat(ahead, " of 6"), both(of("pro", "average"), of(rival, "average"))});
  }
  claims.parts("near-gpt4",
               {of("pro", "math_find") > of("GPT-4", "math_find") - 5,
                of("pro", "longdialogue_qa_eng") > of("GPT-4", "longdialogue_qa_eng") - 5},
               {both(of("pro", "math_find"), of("pro", "longdialogue_qa_eng")),
                both(of("GPT-4", "math_find"), of("GPT-4", "longdialogue_qa_eng"))});
  std::vector<bool> means;
  std::vector<std::string> numbers;
  for (const ordered_json& row : table.at("rows")) {
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += row.at("values")[i].get<double>();
    means.push_back(std::abs(sum / 6 - row.at("values")[6].get<double>()) < 0.051);
    numbers.push_back(fixed(sum / 6, 2));
  }
  claims.parts("infinitebench-average", means, numbers);
}

void longbench(Claims& claims) {
  std::vector<bool> ahead;
  for (const char* id : {"longbench-llama3", "longbench-qwen"}) {
    for (const ordered_json& task : paper_table(id)->at("columns")) {
      EXPECT_GE(cell(id, "pro", task), cell(id, "yarn", task)) << id << task;
      ahead.push_back(cell(id, "pro", task) > cell(id, "yarn", task));
    }
  }
  const auto n = std::count(ahead.begin(), ahead.end(), true);
  claims.parts("longbench-outperforms", ahead,
               {cat(n, " of ", ahead.size()), cat("the other ", std::ptrdiff_t(ahead.size()) - n)});
  // Of how many items a printed share can be: LongBench-v2 has 39 dialogues.
  const auto possible = [](double percent, int items) {
    const double right = std::round(percent / 100 * items);
    return fixed(100 * right / items, 1) == fixed(percent, 1);
  };
  for (int items = 1; items <= 39; ++items) {
    const bool fits = possible(cell("longbench-llama3", "yarn", "LD"), items) &&
                      possible(cell("longbench-llama3", "pro", "LD"), items);
    EXPECT_EQ(fits, items == 39) << items;
  }
  const auto reaches_128k = [](const Geometry& g) { return 16 * g.train_length == 131072; };
  claims.misprint("longbench-model", reaches_128k(kLlama2), reaches_128k(kLlama3), {"of 39"});
  EXPECT_EQ(paper_table("longbench-llama2")->at("rows"),
            paper_table("longbench-llama3")->at("rows"));
}

TEST(Claims, EveryVerdictIsWhatTheNumbersSay) {
  Claims claims;
  estimates(claims);
  boundaries_of_pairs(claims);
  equations(claims);
  shapes(claims);
  bounds(claims);
  oscillations(claims);
  perplexities(claims);
  rulers(claims);
  infinitebench(claims);
  longbench(claims);
  std::set<std::string> ids;
  for (const ordered_json& claim : paper().at("claims")) {
    const auto id = claim.at("id").get<std::string>();
    EXPECT_TRUE(ids.insert(id).second) << id;
    EXPECT_EQ(claim.at("verdict") == "open", claims.computed().count(id) == 0) << id;
    for (const char* key : {"place", "says", "reason", "command"}) {
      EXPECT_FALSE(claim.at(key).get<std::string>().empty()) << id << " " << key;
    }
  }
  EXPECT_EQ(ids.size(), 55u);
}

}  // namespace
}  // namespace mrrope::theory
