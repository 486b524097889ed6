// SPDX-License-Identifier: Apache-2.0
#include "report/paper/claim_rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "eval/stats/statistics.h"
#include "report/charts/axis.h"
#include "report/verdict_words.h"

namespace mrrope::report {

using eval::Estimate;
using nlohmann::ordered_json;
using Outcome = ClaimPart::Outcome;

namespace {

constexpr double kRulerThreshold = 0.856;  // of RULER: Llama-2-7B-chat at 4K

struct Context {
  const ResultClaim& claim;
  const ordered_json& table;
  const Source& source;
  const ordered_json& printed;
};

Outcome outcome_of(const Estimate& margin, bool not_below = false) {
  if (std::isnan(margin.value)) return Outcome::missing;
  if (std::isnan(margin.error)) return Outcome::undecided;  // one sample has no error
  if (margin.value < -2 * margin.error) return Outcome::no;
  if (not_below || margin.value > 2 * margin.error) return Outcome::yes;
  return margin.error > 0 ? Outcome::undecided : Outcome::no;
}

// Of a part that needs all of these.
Outcome all_of(const std::vector<Outcome>& outcomes) {
  const auto has = [&](Outcome o) {
    return std::find(outcomes.begin(), outcomes.end(), o) != outcomes.end();
  };
  for (const Outcome o : {Outcome::no, Outcome::missing, Outcome::undecided}) {
    if (has(o)) return o;
  }
  return outcomes.empty() ? Outcome::missing : Outcome::yes;
}

// ---- numbers

// ">10" where the paper prints a bound instead of a number.
std::optional<std::string> printed_bound(const ordered_json& table, const std::string& method,
                                         const ordered_json& column) {
  if (!table.contains("rows")) return std::nullopt;
  const ordered_json& columns = table.at("columns");
  const auto at = std::find(columns.begin(), columns.end(), column);
  for (const ordered_json& row : table.at("rows")) {
    if (row.at("method") != method || at == columns.end()) continue;
    const ordered_json& value = row.at("values").at(std::size_t(at - columns.begin()));
    if (value.is_string()) return value.get<std::string>();
  }
  return std::nullopt;
}

// What the paper prints, as results.json would hold it. A bound such as ">10" counts as its number,
// which is right where it only has to be above another one.
std::optional<Estimate> printed_cell(const ordered_json& table, const std::string& method,
                                     const ordered_json& column) {
  const double unit = table.value("percent", false) ? 0.01 : 1;
  if (const auto value = paper_value(table, method, column)) return Estimate(*value * unit, 0, 1);
  const std::optional<std::string> bound = printed_bound(table, method, column);
  if (!bound || bound->rfind('>', 0) != 0) return std::nullopt;
  return Estimate(std::stod(bound->substr(1)) * unit, 0, 1);
}

std::optional<Estimate> cell(const Context& in, const std::string& method,
                             const ordered_json& column) {
  if (in.source.run == nullptr) return printed_cell(in.table, method, column);
  const std::optional<OwnCell> own = own_cell(*in.source.run, in.table, method, column);
  if (!own || (!in.source.other_setting && !own->differences.empty())) return std::nullopt;
  return own->value;
}

// Where one of them is missing, the value is NaN.
Estimate sum_of(const std::vector<std::pair<double, std::optional<Estimate>>>& terms) {
  Estimate sum(0, 0, 1);
  for (const auto& [weight, term] : terms) {
    if (!term) return {};
    sum.value += weight * term->value;
    sum.error = std::hypot(sum.error, weight * term->error);
  }
  return sum;
}

Estimate log_of(const Estimate& e) { return {std::log(e.value), e.error / e.value, e.n}; }

// log b - log a: above 0 where a is lower. Paired over documents if the run has them.
Estimate log_margin(const Context& in, const std::string& a, const std::string& b,
                    const ordered_json& column) {
  const std::optional<Estimate> x = cell(in, a, column);
  const std::optional<Estimate> y = cell(in, b, column);
  if (!x || !y) return {};
  if (in.source.run == nullptr || !in.source.run->perplexity) {
    return sum_of({{1, log_of(*y)}, {-1, log_of(*x)}});
  }
  const eval::PerplexityResults& results = *in.source.run->perplexity;
  const std::vector<double>* loss[2] = {};
  for (const eval::PerplexityRow& row : results.rows) {
    for (std::size_t l = 0; l < results.lengths.size() && l < row.cells.size(); ++l) {
      if (results.lengths[l] != column.get<std::int64_t>()) continue;
      if (row.method == a) loss[0] = &row.cells[l].loss;
      if (row.method == b) loss[1] = &row.cells[l].loss;
    }
  }
  if (loss[0] == nullptr || loss[1] == nullptr) return {};
  return eval::paired_where_both(*loss[1], *loss[0]).mean_difference;
}

// The columns that are lengths: the paper's, or what another setting has measured.
std::vector<std::int64_t> lengths_of(const Context& in) {
  std::set<std::int64_t> lengths;
  if (in.source.run != nullptr && in.source.other_setting) {
    for (const ResultRow& row : in.source.run->rows) {
      if (in.table.at("task") == row.task && in.table.at("result") == row.metric && !row.depth) {
        lengths.insert(row.length);
      }
    }
  } else {
    for (const ordered_json& column : in.table.at("columns")) {
      if (column.is_number()) lengths.insert(column.get<std::int64_t>());
    }
  }
  return {lengths.begin(), lengths.end()};
}

std::vector<std::string> tasks_of(const Context& in) {
  if (!in.claim.tasks.empty()) return in.claim.tasks;
  std::vector<std::string> out;
  for (const ordered_json& column : in.table.at("columns")) {
    if (column.is_string() && column != "average") out.push_back(column.get<std::string>());
  }
  return out;
}

std::string shown(const Context& in, std::optional<Estimate> e) {
  if (!e) return "-";
  if (in.table.value("percent", false) || in.table.at("task") == "needle") {
    e->value *= 100;
    e->error *= 100;
  }
  if (!(e->error > 0)) e->error = std::numeric_limits<double>::quiet_NaN();
  return estimate_text(*e);
}

// ---- perplexity

ClaimPart lower_part(const Context& in, const std::string& name, const std::string& a,
                     const std::vector<std::string>& others, const ordered_json& column) {
  std::vector<Outcome> outcomes;
  const auto text = [&](const std::string& method) {
    const std::optional<std::string> bound =
        in.source.run == nullptr ? printed_bound(in.table, method, column) : std::nullopt;
    return bound ? *bound : shown(in, cell(in, method, column));
  };
  std::string numbers = text(a);
  for (const std::string& b : others) {
    const Estimate margin = log_margin(in, a, b, column);
    outcomes.push_back(outcome_of(margin));
    numbers +=
        cat(&b == &others.front() ? " against " : ", ", others.size() > 1 ? b + " " : "", text(b));
    if (in.source.run == nullptr || std::isnan(margin.value)) continue;
    numbers += cat(", ", significant(-100 * margin.value, 3), " +- ",
                   significant(100 * margin.error, 2), " %");
  }
  return {name, all_of(outcomes), all_of(outcomes) == Outcome::missing ? "" : numbers};
}

std::vector<ClaimPart> lower_parts(const Context& in) {
  std::vector<ClaimPart> parts;
  const std::vector<std::int64_t> lengths = lengths_of(in);
  const ResultClaim& c = in.claim;
  for (const std::int64_t length : lengths) {
    const bool behind = c.rule == Rule::last_only && length != lengths.back();
    parts.push_back(behind ? lower_part(in, length_text(length), c.b.front(), {c.a}, length)
                           : lower_part(in, length_text(length), c.a, c.b, length));
  }
  return parts;
}

// ---- scores of tasks

ClaimPart score_part(const Context& in, const std::string& name, const Estimate& margin,
                     const std::optional<Estimate>& a, const std::optional<Estimate>& b) {
  const Outcome outcome = outcome_of(margin, in.claim.rule == Rule::not_below);
  if (outcome == Outcome::missing) return {name, outcome, ""};
  return {name, outcome, cat(shown(in, a), " against ", shown(in, b))};
}

std::vector<ClaimPart> task_parts(const Context& in) {
  const ResultClaim& c = in.claim;
  std::vector<ClaimPart> parts;
  for (const std::string& task : tasks_of(in)) {
    const std::optional<Estimate> a = cell(in, c.a, task);
    const bool rival = c.rule == Rule::near;  // only the paper has its numbers
    const std::optional<Estimate> b =
        rival ? printed_cell(in.table, c.b.front(), task) : cell(in, c.b.front(), task);
    Estimate margin = sum_of({{1, a}, {c.rule == Rule::times ? -c.number : -1, b}});
    if (rival) margin.value += c.number / 100;
    parts.push_back(score_part(in, task, margin, a, b));
  }
  return parts;
}

std::vector<ClaimPart> beats_parts(const Context& in) {
  const ResultClaim& c = in.claim;
  std::string won;
  int yes = 0;
  int open = 0;
  int known = 0;
  for (const std::string& task : tasks_of(in)) {
    const Outcome o = outcome_of(
        sum_of({{1, cell(in, c.a, task)}, {-1, printed_cell(in.table, c.b.front(), task)}}));
    yes += o == Outcome::yes ? 1 : 0;
    open += o == Outcome::undecided || o == Outcome::missing ? 1 : 0;
    known += o != Outcome::missing ? 1 : 0;
    if (o == Outcome::yes) won += (won.empty() ? "" : ", ") + task;
  }
  const Outcome subsets = known == 0              ? Outcome::missing
                          : yes >= c.number       ? Outcome::yes
                          : yes + open < c.number ? Outcome::no
                                                  : Outcome::undecided;
  const std::optional<Estimate> a = cell(in, c.a, "average");
  const std::optional<Estimate> b = printed_cell(in.table, c.b.front(), "average");
  return {{"tasks", subsets, known == 0 ? "" : cat(yes, won.empty() ? "" : ": ", won)},
          score_part(in, "average", sum_of({{1, a}, {-1, b}}), a, b)};
}

std::vector<ClaimPart> fall_parts(const Context& in) {
  const std::vector<std::int64_t> lengths = lengths_of(in);
  if (lengths.size() < 2) return {};
  const std::int64_t from = lengths[lengths.size() - 2];
  const std::int64_t to = lengths.back();
  const auto fall = [&](const std::string& method) -> std::optional<Estimate> {
    const Estimate e = sum_of({{1, cell(in, method, from)}, {-1, cell(in, method, to)}});
    return std::isnan(e.value) ? std::nullopt : std::optional(e);
  };
  const std::optional<Estimate> a = fall(in.claim.a);
  const std::optional<Estimate> b = fall(in.claim.b.front());
  return {score_part(in, cat(length_text(from), " to ", length_text(to)), sum_of({{1, b}, {-1, a}}),
                     a, b)};
}

std::vector<ClaimPart> reach_parts(const Context& in) {
  const std::vector<std::int64_t> lengths = lengths_of(in);
  // errors: how many standard errors are added to each score.
  const auto reach = [&](const std::string& method, double errors) -> std::optional<double> {
    double longest = 0;
    for (const std::int64_t length : lengths) {
      const std::optional<Estimate> e = cell(in, method, length);
      if (!e) return std::nullopt;
      const double score = e->value + (errors == 0 ? 0 : errors * e->error);
      if (score >= kRulerThreshold) longest = double(length);
    }
    return longest;
  };
  const std::string& b = in.claim.b.front();
  if (lengths.empty() || !reach(in.claim.a, 0) || !reach(b, 0)) {
    return {{"length", Outcome::missing, ""}};
  }
  const auto at_least = [&](double errors) {
    return reach(in.claim.a, errors).value() >= in.claim.number * reach(b, -errors).value() &&
           reach(in.claim.a, errors).value() > 0;
  };
  const auto text = [](double length) {
    return length > 0 ? length_text(std::int64_t(length)) : "0";
  };
  return {{"length",
           at_least(-2)  ? Outcome::yes
           : at_least(2) ? Outcome::undecided
                         : Outcome::no,
           cat(text(reach(in.claim.a, 0).value()), " against ", text(reach(b, 0).value()))}};
}

// ---- needles

using Cells = std::map<std::pair<std::int64_t, double>, double>;  // by length and depth

Cells needle_cells(const Context& in, const std::string& method) {
  Cells cells;
  if (in.source.run == nullptr) return cells;
  if (!in.source.other_setting && !setting_differences(*in.source.run, in.table, method).empty()) {
    return cells;
  }
  const ResultClaim& c = in.claim;
  for (const ResultRow& row : in.source.run->rows) {
    if (in.table.at("task") == row.task && in.table.at("result") == row.metric &&
        row.method == method && row.depth && row.estimate.n > 0 && row.length >= c.from &&
        row.length <= c.to && *row.depth >= c.depth_from && *row.depth <= c.depth_to) {
      cells[{row.length, *row.depth}] = row.estimate.value;
    }
  }
  return cells;
}

Estimate mean_of(const std::vector<double>& values) { return eval::mean(values); }

std::vector<ClaimPart> recall_parts(const Context& in) {
  const ResultClaim& c = in.claim;
  const double wanted = c.number / 100;
  std::map<std::int64_t, std::vector<double>> by_length;
  for (const auto& [at, value] : needle_cells(in, c.a)) {
    by_length[c.rule == Rule::recall_range ? 0 : at.first].push_back(value);
  }
  std::vector<ClaimPart> parts;
  for (const auto& [length, values] : by_length) {
    const std::string name = length > 0 ? length_text(length) : "";
    const Estimate mean = mean_of(values);
    if (c.rule != Rule::most_depths) {
      parts.push_back({name, outcome_of({mean.value - wanted, mean.error, mean.n}),
                       cat(shown(in, mean), " %")});
      continue;
    }
    const auto above =
        double(std::count_if(values.begin(), values.end(), [&](double v) { return v > wanted; }));
    const auto all = double(values.size());
    const double share = above / all;
    parts.push_back({name, outcome_of({share - 0.5, std::sqrt(share * (1 - share) / all), 2}),
                     cat(above, " of ", all, " depths")});
  }
  return parts;
}

std::vector<ClaimPart> higher_parts(const Context& in) {
  const std::string& b = in.claim.b.front();
  const Cells of_a = needle_cells(in, in.claim.a);
  const Cells of_b = needle_cells(in, b);
  const Estimate margin = eval::paired_where_both(of_a, of_b).mean_difference;
  if (margin.n == 0) return {};
  return {{"", outcome_of(margin), cat(shown(in, margin), " points, ", margin.n, " cells")}};
}

// ---- sweeps

using Point = RecordedSweep::Point;

// log y - log x: above 0 where x is lower.
Estimate log_margin(const Point& x, const Point& y) {
  if (!x.loss.empty() && x.loss.size() == y.loss.size()) {
    return eval::paired_where_both(y.loss, x.loss).mean_difference;
  }
  if (x.perplexity.n == 0 || y.perplexity.n == 0) return {};
  return sum_of({{1, log_of(y.perplexity)}, {-1, log_of(x.perplexity)}});
}

std::optional<Boundaries> own_boundaries(const Context& in) {
  for (const ordered_json& model : in.printed.at("models")) {
    if (model.at("name") != in.table.at("model")) continue;
    const Geometry g{.rotary_dim = model.at("rotary_dim").get<int>(),
                     .base = model.at("base").get<double>(),
                     .train_length = model.at("window").get<std::int64_t>()};
    return usual_plan(g, in.claim.a, in.table.at("scale").get<double>()).boundaries();
  }
  return std::nullopt;
}

std::vector<ClaimPart> sweep_parts(const Context& in) {
  const ResultClaim& c = in.claim;
  const std::optional<Boundaries> own = own_boundaries(in);
  if (in.source.run == nullptr || !in.source.run->sweep || in.source.other_setting || !own)
    return {};
  if (!setting_differences(*in.source.run, in.table, c.a).empty()) return {};
  std::map<std::tuple<std::string, int, int>, const Point*> at;  // by method, low, high
  for (const Point& p : in.source.run->sweep->points) {
    if (p.perplexity.n > 0) at[{p.method, p.low, p.high}] = &p;
  }
  const auto find = [&](const std::string& method, const Boundaries& b) -> const Point* {
    const auto it = at.find({method, b.low, b.high});
    return it == at.end() ? nullptr : it->second;
  };
  std::vector<ClaimPart> parts;
  const Point* reference = find(c.a, *own);
  for (const auto& [key, point] : at) {
    if (point->method != c.a) continue;
    const Boundaries b{point->low, point->high};
    const std::string name = cat(c.low ? "low " : "high ", c.low ? b.low : b.high);
    const std::string value = estimate_text(point->perplexity);
    if (c.rule == Rule::best) {
      if (reference == nullptr || b == *own) continue;
      const Estimate margin = log_margin(*reference, *point);
      // A lower one that is not lower by two errors decides nothing.
      const Outcome o = margin.value >= 0 ? Outcome::yes : outcome_of(margin);
      parts.push_back({cat(b.low, " and ", b.high), o,
                       cat(value, " against ", estimate_text(reference->perplexity))});
      continue;
    }
    if ((c.low ? b.high != own->high : b.low != own->low)) continue;
    const int border = c.low ? b.low : b.high;
    if (border < c.from || border > c.to) continue;
    if (c.rule == Rule::flat) {
      if (reference == nullptr || b == *own) continue;
      Estimate margin = log_margin(*point, *reference);
      margin.value += std::log1p(c.number / 100);
      parts.push_back({name, outcome_of(margin),
                       cat(value, " against ", estimate_text(reference->perplexity))});
    } else if (const Point* other = find(c.b.front(), b)) {
      parts.push_back({name, outcome_of(log_margin(*point, *other)),
                       cat(value, " against ", estimate_text(other->perplexity))});
    }
  }
  return parts;
}

// ---- attention

std::vector<ClaimPart> attention_parts(const Context& in) {
  if (in.source.run == nullptr || !in.source.run->attention) return {};
  const RecordedAttention& attention = *in.source.run->attention;
  const auto find = [&](const std::string& method) -> const RecordedAttention::Line* {
    for (const RecordedAttention::Line& line : attention.lines) {
      if (line.method == method) return &line;
    }
    return nullptr;
  };
  const RecordedAttention::Line* a = find(in.claim.a);
  const RecordedAttention::Line* b = find(in.claim.b.front());
  if (a == nullptr || b == nullptr) return {};
  const std::string name = in.source.run->model;
  if (in.claim.rule == Rule::falls_to) {
    const Outcome o = a->falls_until > b->falls_until   ? Outcome::yes
                      : a->falls_until < b->falls_until ? Outcome::no
                                                        : Outcome::undecided;
    return {{name, o, cat(a->falls_until, " against ", b->falls_until)}};
  }
  // Two errors are the distance that 5 % of samples of this size pass by chance.
  const double error = 1.36 / 2 / std::sqrt(double(attention.past));
  return {{name, outcome_of({b->ks - a->ks, error, attention.past}),
           cat(fixed(a->ks, 3), " against ", fixed(b->ks, 3))}};
}

}  // namespace

std::vector<ClaimPart> parts_of(const ResultClaim& claim, const ordered_json& table,
                                const Source& source, const ordered_json& printed) {
  const Context in{claim, table, source, printed};
  switch (claim.rule) {
    case Rule::lower:
    case Rule::last_only:
      return lower_parts(in);
    case Rule::falls_less:
      return fall_parts(in);
    case Rule::times:
    case Rule::near:
    case Rule::not_below:
      return task_parts(in);
    case Rule::beats:
      return beats_parts(in);
    case Rule::reaches:
      return reach_parts(in);
    case Rule::recall:
    case Rule::recall_range:
    case Rule::most_depths:
      return recall_parts(in);
    case Rule::higher:
      return higher_parts(in);
    case Rule::flat:
    case Rule::lower_at:
    case Rule::best:
      return sweep_parts(in);
    case Rule::falls_to:
    case Rule::like_trained:
      return attention_parts(in);
  }
  return {};
}

}  // namespace mrrope::report
