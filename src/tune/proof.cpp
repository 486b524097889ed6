// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"
#include "tune/search.h"

namespace mrrope::tune {

using nlohmann::ordered_json;

namespace {

// The cost of a missed needle, in nats per token of the answer.
constexpr double kMissed = 3;

const eval::ResultRow& row_at(const eval::ResultTable& table, const std::string& method,
                              std::int64_t length, const char* metric) {
  if (const eval::ResultRow* row = table.find(method, length, metric)) return *row;
  throw Error(ErrorKind::failed, cat("no results of ", method, " in the proof"),
              "this is a bug: please report it");
}

// The share of needles that a finds, minus that of b.
eval::Estimate needle_difference(const eval::ResultTable& results, const std::string& a,
                                 const std::string& b) {
  for (const eval::Comparison& c : results.comparisons) {
    const eval::Estimate& d = c.difference.mean_difference;
    if (c.a == a && c.b == b) return d;
    if (c.a == b && c.b == a) return {-d.value, d.error, d.n};
  }
  return {};
}

std::string why_against(const ProofRow& row, const ProofRow& tuned) {
  if (!row.lower_perplexity && row.as_many_needles) {
    return "finds as many needles, and its perplexity is not higher at every length by two errors";
  }
  if (row.perplexity.back().value <= tuned.perplexity.back().value &&
      !(row.needle_difference.value > 0)) {
    return "has lower perplexity at the wanted length and finds as many needles";
  }
  return {};
}

double mean_log(const ProofRow& row) {
  double sum = 0;
  for (const eval::Estimate& e : row.perplexity) sum += std::log(e.value);
  return sum / double(row.perplexity.size());
}

std::string plus_minus(const eval::Estimate& e, int digits) {
  if (e.n == 0) return "-";
  return cat(fixed(e.value, digits), " +-", fixed(e.error, digits));
}

eval::Estimate in_percent(const eval::Estimate& e) { return {100 * e.value, 100 * e.error, e.n}; }

std::string signed_percent(const eval::Estimate& e) {
  return cat(e.n > 0 && e.value >= 0 ? "+" : "", plus_minus(e, 1));
}

}  // namespace

Proof judge_proof(const eval::ResultTable& ppl, const eval::ResultTable& needle,
                  const std::string& tuned, double weight) {
  Proof proof;
  for (const std::int64_t length : ppl.lengths) {
    if (length >= ppl.window) proof.lengths.push_back(length);
  }
  for (const eval::MethodRow& method : ppl.methods) {
    ProofRow row;
    row.method = method.method;
    row.lower_perplexity = true;
    for (const std::int64_t length : proof.lengths) {
      const eval::ResultRow& own = row_at(ppl, tuned, length, eval::kPerplexityMetric);
      const eval::ResultRow& other = row_at(ppl, row.method, length, eval::kPerplexityMetric);
      row.perplexity.push_back(other.estimate);
      const eval::PairedDifference d = eval::paired_where_both(own.units, other.units);
      row.difference.push_back(d.percent());
      if (!(d.mean_difference.value + 2 * d.mean_difference.error < 0))
        row.lower_perplexity = false;
    }
    if (method.untouched) {
      proof.untouched = row.perplexity;
      continue;
    }
    if (!needle.rows.empty()) {
      row.found = row_at(needle, row.method, needle.lengths.back(), eval::kContains).estimate;
    }
    if (row.method == tuned) {
      proof.tuned = std::move(row);
      continue;
    }
    row.needle_difference = needle_difference(needle, tuned, row.method);
    row.as_many_needles = !(row.needle_difference.value > 2 * row.needle_difference.error);
    proof.rows.push_back(std::move(row));
  }
  proof.better = true;
  const ProofRow* best = nullptr;
  const auto value = [&](const ProofRow& row) {
    return mean_log(row) + (row.found.n > 0 ? weight * kMissed * (1 - row.found.value) : 0);
  };
  for (ProofRow& row : proof.rows) {
    row.against = why_against(row, proof.tuned);
    if (!row.against.empty()) proof.better = false;
    if (std::isfinite(value(row)) && (!best || value(row) < value(*best))) best = &row;
  }
  if (!proof.better && best) proof.recommended = best->method;
  return proof;
}

Proof prove(TimelineModel& model, const Proposal& tuned, const std::vector<Proposal>& others,
            const std::vector<eval::Document>& held_out, eval::NeedleOptions needles, double weight,
            eval::RunFolder& ppl, eval::RunFolder& needle, eval::Progress& progress) {
  const Geometry& g = model.facts().geometry;
  const std::int64_t ctx = tuned.ladder.longest();
  std::vector<eval::MethodUnderTest> methods = {{tuned.name, tuned.ladder}};
  for (const Proposal& c : others) methods.push_back({c.name, c.ladder});

  needles.lengths = {ctx};
  needles.depths = {5, 15, 25, 35, 45, 55, 65, 75, 85, 95};
  eval::PerplexityOptions perplexity;
  for (std::int64_t n = g.train_length; n < ctx; n *= 2) perplexity.lengths.push_back(n);
  perplexity.lengths.push_back(ctx);
  perplexity.kl_positions = 0;

  std::vector<eval::MethodUnderTest> with_none = methods;
  with_none.push_back({"none", make_ladder(make_plan(g, Extension{}), ctx)});
  const eval::ResultTable p = run_perplexity(model, with_none, held_out, perplexity, ppl, progress);
  eval::ResultTable n;
  if (needles.samples > 0) n = run_needle(model, methods, held_out, needles, needle, progress);
  Proof proof = judge_proof(p, n, tuned.name, weight);
  proof.documents = held_out.size();
  return proof;
}

ordered_json to_json(const Proof& proof) {
  const auto row_json = [&](const ProofRow& row) {
    ordered_json out = {{"method", row.method}, {"perplexity", ordered_json::array()}};
    for (std::size_t l = 0; l < proof.lengths.size(); ++l) {
      out["perplexity"].push_back({{"length", proof.lengths[l]},
                                   {"value", json_or_null(row.perplexity[l].value)},
                                   {"stderr", json_or_null(row.perplexity[l].error)},
                                   {"tuned_above_percent", json_or_null(row.difference[l].value)},
                                   {"paired_stderr", json_or_null(row.difference[l].error)}});
    }
    out["needles"] = {{"found", json_or_null(row.found.value)},
                      {"stderr", json_or_null(row.found.error)},
                      {"n", row.found.n},
                      {"tuned_more", json_or_null(row.needle_difference.value)},
                      {"paired_stderr", json_or_null(row.needle_difference.error)}};
    out["against"] = row.against;
    return out;
  };
  ordered_json out = {{"documents", proof.documents},       {"better", proof.better},
                      {"recommended", proof.recommended},   {"tuned", row_json(proof.tuned)},
                      {"published", ordered_json::array()}, {"untouched", ordered_json::array()}};
  for (const ProofRow& row : proof.rows) out["published"].push_back(row_json(row));
  for (const eval::Estimate& e : proof.untouched) out["untouched"].push_back(json_or_null(e.value));
  return out;
}

std::string to_text(const Proof& proof) {
  std::vector<TextRow> table = {{"method"}};
  for (const std::int64_t n : proof.lengths) table[0].push_back(length_text(n));
  table[0].push_back("needles %");
  std::vector<ProofRow> all = {proof.tuned};
  all.insert(all.end(), proof.rows.begin(), proof.rows.end());
  if (!proof.untouched.empty()) all.push_back({.method = "none", .perplexity = proof.untouched});
  for (const ProofRow& row : all) {
    table.push_back({row.method});
    for (const eval::Estimate& e : row.perplexity) table.back().push_back(plus_minus(e, 3));
    table.back().push_back(plus_minus(in_percent(row.found), 1));
  }
  std::string text = cat("Perplexity of the first N tokens of ", proof.documents,
                         " held-out documents; ", proof.tuned.found.n, " needles at ",
                         length_text(proof.lengths.back()), ":\n", aligned(table));

  std::vector<TextRow> pairs = {{proof.tuned.method + " compared with"}};
  for (const std::int64_t n : proof.lengths) pairs[0].push_back(length_text(n) + " %");
  pairs[0].push_back("needles, points");
  for (const ProofRow& row : proof.rows) {
    pairs.push_back({row.method});
    for (const eval::Estimate& e : row.difference) pairs.back().push_back(signed_percent(e));
    pairs.back().push_back(signed_percent(in_percent(row.needle_difference)));
  }
  text += cat(
      "\nPaired differences (negative percent: lower perplexity; positive points: more needles):\n",
      aligned(pairs));
  for (const ProofRow& row : proof.rows) {
    if (!row.against.empty()) text += cat("  ", row.method, " ", row.against, "\n");
  }
  return text;
}

}  // namespace mrrope::tune
