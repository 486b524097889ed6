// SPDX-License-Identifier: Apache-2.0

#include "base/json.h"
#include "base/text.h"
#include "tune/search.h"

namespace mrrope::tune {

namespace {

constexpr double kMorePerplexity = 0.01;  // that a better plan may have, natural logarithm
constexpr double kMoreLoss = 0.05;        // of answers, nats per token

bool has_numbers(const Proved& plan) {
  return !find_by(plan.measured, [](const Measured& m) { return !m.failed.empty(); });
}

std::string why_against(const Proved& tuned, const Proved& other, double weight) {
  if (!has_numbers(tuned)) return "has numbers on every text; the plan found has none on some";
  if (!has_numbers(other)) return {};
  const auto difference = [&](auto value) {
    return eval::paired(mapped(tuned.measured, value), mapped(other.measured, value))
        .mean_difference;
  };
  const eval::Estimate all = difference([&](const Measured& m) { return m.objective(weight); });
  if (!(all.value + 2 * all.error < 0)) {
    return cat("is not worse by two errors: the objective differs by ", fixed(all.value, 4), " +-",
               fixed(all.error, 4));
  }
  if (difference(&Measured::log_perplexity).value > kMorePerplexity) {
    return "has a perplexity more than 1 % lower";
  }
  if (difference(&Measured::answer_loss).value > kMoreLoss) {
    return "has an answer loss more than 0.05 nats lower";
  }
  return {};
}

ProofRow row_of(const Proved& tuned, const Proved& plan, std::size_t bands) {
  ProofRow row{.method = plan.name};
  row.perplexity.resize(bands);
  row.difference.resize(bands);
  if (!has_numbers(plan) || !has_numbers(tuned)) return row;
  for (std::size_t b = 0; b < bands; ++b) {
    const auto band = [b](const Measured& m) { return m.bands.at(b); };
    row.perplexity[b] = exponential(eval::mean(mapped(plan.measured, band)));
    row.difference[b] =
        eval::paired(mapped(tuned.measured, band), mapped(plan.measured, band)).percent();
  }
  const std::vector<double> losses = mapped(plan.measured, &Measured::answer_loss);
  row.answer_loss = eval::mean(losses);
  row.loss_difference =
      eval::paired(mapped(tuned.measured, &Measured::answer_loss), losses).mean_difference;
  return row;
}

std::string plus_minus(const eval::Estimate& e, int digits) {
  return e.n == 0 ? "-" : cat(fixed(e.value, digits), " +-", fixed(e.error, digits));
}

std::string signed_text(const eval::Estimate& e, int digits) {
  return cat(e.n > 0 && e.value >= 0 ? "+" : "", plus_minus(e, digits));
}

}  // namespace

Proof judge_proof(const Proved& tuned, const std::vector<Proved>& others,
                  std::vector<std::int64_t> lengths, double weight) {
  Proof proof{.lengths = std::move(lengths), .texts = tuned.measured.size()};
  if (has_numbers(tuned)) {
    // Where a text has none of its own words left, the last bands are missing.
    for (const Measured& m : tuned.measured) {
      proof.lengths.resize(std::min(proof.lengths.size(), m.bands.size()));
    }
    proof.questions = tuned.measured.front().answers.size();
  }
  const std::size_t bands = proof.lengths.size();
  proof.tuned = row_of(tuned, tuned, bands);
  proof.better = true;
  double best = INFINITY;
  for (const Proved& other : others) {
    ProofRow& row = proof.rows.emplace_back(row_of(tuned, other, bands));
    row.against = why_against(tuned, other, weight);
    if (!row.against.empty()) proof.better = false;
    const double value = eval::mean(mapped(other.measured, [&](const Measured& m) {
                           return m.objective(weight);
                         })).value;
    if (value < best) {
      best = value;
      proof.recommended = other.name;
    }
  }
  return proof;
}

Proof prove(TimelineModel& model, const Proposal& tuned, const std::vector<Proposal>& others,
            const std::vector<SearchText>& texts, const SearchOptions& options,
            eval::RunFolder& folder, eval::Progress& progress) {
  std::vector<const Proposal*> plans = {&tuned};
  for (const Proposal& other : others) plans.push_back(&other);
  Measurements measurements(model, folder, progress, options.batch,
                            double(plans.size() * texts.size()));
  std::int64_t tokens = 0;
  for (const SearchText& text : texts) tokens += text.cost * std::int64_t(plans.size());
  progress.start(tokens, 0);
  std::vector<Proved> proved;
  for (const Proposal* plan : plans) {
    progress.label(cat("proof: ", plan->name));
    Proved& one = proved.emplace_back(Proved{plan->name, {}});
    one.measured = mapped(texts, [&](const auto& text) { return measurements.of(*plan, text); });
  }
  progress.finish();
  return judge_proof(proved.front(), {proved.begin() + 1, proved.end()},
                     band_ends(model.facts().geometry.train_length, texts.front().length),
                     options.weight);
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
    out[eval::kAnswerLoss] = {{"value", json_or_null(row.answer_loss.value)},
                              {"stderr", json_or_null(row.answer_loss.error)},
                              {"tuned_above", json_or_null(row.loss_difference.value)},
                              {"paired_stderr", json_or_null(row.loss_difference.error)}};
    out["against"] = row.against;
    return out;
  };
  ordered_json out = {{"documents", proof.texts},       {"questions", proof.questions},
                      {"better", proof.better},         {"recommended", proof.recommended},
                      {"tuned", row_json(proof.tuned)}, {"published", ordered_json::array()}};
  for (const ProofRow& row : proof.rows) out["published"].push_back(row_json(row));
  return out;
}

std::string to_text(const Proof& proof) {
  std::vector<TextRow> table = {{"method"}};
  std::vector<TextRow> pairs = {{proof.tuned.method + " compared with"}};
  for (const std::int64_t n : proof.lengths) {
    table[0].push_back(length_text(n));
    pairs[0].push_back(length_text(n) + " %");
  }
  table[0].push_back("answer loss");
  pairs[0].push_back("answer loss");
  std::vector<ProofRow> all = {proof.tuned};
  extend(all, proof.rows);
  for (const ProofRow& row : all) {
    table.push_back({row.method});
    for (const eval::Estimate& e : row.perplexity) table.back().push_back(plus_minus(e, 3));
    table.back().push_back(plus_minus(row.answer_loss, 3));
    if (table.size() == 2) continue;  // itself
    pairs.push_back({row.method});
    for (const eval::Estimate& e : row.difference) pairs.back().push_back(signed_text(e, 1));
    pairs.back().push_back(signed_text(row.loss_difference, 3));
  }
  std::string text =
      cat("Proof on ", proof.texts, " texts that the search never saw: perplexity up ",
          "to each length from the one before, and the loss of ", proof.questions,
          " answers about each text in nats per token:\n", aligned(table),
          "\nPaired differences (negative: the plan found is better):\n", aligned(pairs));
  for (const ProofRow& row : proof.rows) {
    if (!row.against.empty()) text += cat("  ", row.method, " ", row.against, "\n");
  }
  return text;
}

}  // namespace mrrope::tune
