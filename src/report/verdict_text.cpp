// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/text.h"
#include "core/methods.h"
#include "eval/tasks/needle/needle.h"
#include "report/report.h"

namespace mrrope::report {

namespace {

constexpr std::size_t kFew = 8;  // documents

std::string plural(std::size_t n, const std::string& one) {
  return n == 1 ? "1 " + one : cat(n, " ", one, "s");
}

std::string percent_text(double value) {
  return fixed(value, std::abs(value) < 100 ? 1 : 0) + " %";
}

struct Best {
  const RunRecord* run = nullptr;
  std::size_t method = 0;  // of the table
  std::int64_t good_to = 0;
  eval::Estimate perplexity;
};

eval::Estimate estimate_at(const eval::ResultTable& table, const std::string& method,
                           std::int64_t length) {
  const eval::ResultRow* row = table.find(method, length, table.metric);
  return row != nullptr ? row->estimate : eval::Estimate();
}

// Longest good_to, then lowest perplexity there. The untouched model does not count.
Best best_of(const RunGroup& group) {
  Best best;
  for (const RunRecord* run : group.runs) {
    const eval::ResultTable& r = run->table;
    for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
      const eval::Verdict& v = r.verdicts[i];
      if (!v.judged || v.good_to <= r.window || r.methods[i].untouched) continue;
      const eval::Estimate e = estimate_at(r, v.method, v.good_to);
      const bool better = v.good_to > best.good_to ||
                          (v.good_to == best.good_to && e.value < best.perplexity.value);
      if (best.run == nullptr || better) best = {run, i, v.good_to, e};
    }
  }
  return best;
}

// How a command names the model and its geometry. Runs of earlier versions do not say.
std::string model_argument(const RunRecord& record) {
  const ordered_json file = record.run.value("model_file", ordered_json());
  const std::string path = file.is_object() ? text_at(file, "path") : "";
  if (path.empty()) return "MODEL.gguf";
  const std::string window = text_at(file, "train_ctx");
  return cat(shell_word(path), window.empty() ? "" : " --train-ctx " + shell_word(window),
             file.value("replace_scaling", ordered_json()) == true ? " --replace-scaling" : "");
}

// How a command names this method. Empty if the name is not that of a method: a plan file.
std::string method_argument(const RunRecord& record, const std::string& name) {
  MethodSpec method;
  try {
    method = parse_method(name);
  } catch (const Error&) {
    return {};
  }
  const bool is_static = method.growth == Growth::none && !is_auto(method.name);
  for (const RecordedMethod& m : record.methods) {
    // Names of earlier versions have no parameters.
    if (m.method != name || !m.numbers || !is_static) continue;
    if (m.numbers->extension().method != method.name) return {};  // a row "vendor" of another rule
    const Parameters named = method.parameters;
    method.parameters = m.numbers->extension().parameters;
    method.parameters.headroom = named.headroom;
    if (!method.parameters.factors.empty() || !method.parameters.lambdas.empty()) return {};
  }
  return "--method " + shell_word(to_string(method));
}

// At the longest length that a run measured.
std::string needles_of(const std::vector<RunRecord>& records, const RunRecord& of,
                       const std::string& method, const std::string& plan) {
  std::string text;
  std::int64_t longest = 0;
  for (const RunRecord& record : records) {
    const eval::ResultTable& r = record.table;
    const eval::MethodRow* row = r.find_method(method);
    if (r.answers.empty() || record.model_digest != of.model_digest || row == nullptr ||
        row->plan != plan) {
      continue;
    }
    for (const std::int64_t length : r.lengths) {
      const eval::ResultRow* found = r.find(method, length, eval::kContains);
      if (length <= longest || found == nullptr || found->estimate.n == 0) continue;
      longest = length;
      const eval::Estimate& e = found->estimate;
      text = cat(" finds ", fixed(100 * e.value, 0),
                 std::isfinite(e.error) ? cat(" +- ", fixed(100 * e.error, 0)) : std::string(),
                 r.units == "texts" ? " % of the needles in " : " % of ",
                 plural(e.n, r.units == "texts" ? "text" : "needle"), " at ", length_text(length),
                 ".");
    }
  }
  return text;
}

// Tasks that cannot show what an extension is worth.
void add_baseline_notes(VerdictText& text, const std::vector<RunRecord>& records,
                        const std::string& model_digest) {
  for (const RunRecord& record : records) {
    if (record.model_digest != model_digest) continue;
    const std::string note = zero_baseline_note(record.table);
    if (!note.empty()) text.sentences.push_back(cat(record.task, ": ", note));
  }
}

void add_next_steps(VerdictText& text, const Best& best, const eval::Verdict& verdict) {
  const std::string model = model_argument(*best.run);
  const std::string method = method_argument(*best.run, text.method);
  const std::string ctx = length_text(text.good_to);
  const bool grows = is_elastic(text.method) || is_auto(bare_name(text.method));
  const bool file = !method.empty() && !grows;
  text.next.push_back({"Use it", cat(file ? "mrrope export " : "mrrope serve ", model, " ",
                                     method.empty() ? "--plan PLAN.json" : method, " --ctx ", ctx,
                                     file ? cat(" -o extended-", ctx, ".gguf") : "")});
  if (!method.empty() && verdict.to_the_end) {
    const std::string longer = length_text(2 * text.good_to);
    text.next.push_back({"Measure further", cat("mrrope eval ppl ", model, " ", method, " --ctx ",
                                                longer, " -o ppl-", longer)});
  }
}

// The runs of a group as one: the rows of one metric, and how methods compare by it.
eval::ResultTable together(const RunGroup& group, const std::string& metric) {
  eval::ResultTable all = group.front().table;
  all.logarithmic &= metric == all.metric;
  all.metric = metric;
  all.rows.clear();
  std::set<std::int64_t> lengths;
  for (const RunRecord* run : group.runs) {
    for (const eval::MethodRow& m : run->table.methods) {
      if (all.find_method(m.method) == nullptr) all.methods.push_back(m);
    }
    for (const eval::ResultRow& row : run->table.rows) {
      if (row.metric != metric || row.depth || row.estimate.n == 0) continue;
      if (all.find(row.method, row.length, metric, {}, row.task) != nullptr) continue;
      all.rows.push_back(row);
      lengths.insert(row.length);
    }
  }
  all.lengths.assign(lengths.begin(), lengths.end());
  all.comparisons = compare_methods(all);
  return all;
}

// How other methods compare with this one at this length.
std::vector<std::string> comparisons_of(const eval::ResultTable& r, const std::string& own,
                                        std::int64_t length) {
  std::vector<std::string> better, worse, open;
  for (const eval::Comparison& c : r.comparisons) {
    if (c.length != length || (c.a != own && c.b != own)) continue;
    const std::string& other = c.a == own ? c.b : c.a;
    if (r.find_method(other)->untouched || c.difference.mean_difference.n < 2) continue;
    // By how much the other is worse.
    const double log =
        c.a == own ? -c.difference.mean_difference.value : c.difference.mean_difference.value;
    auto& list = c.corrected_p >= eval::kSignificant ? open : log > 0 ? better : worse;
    list.push_back(cat(other, " (", log < 0 ? "" : "+", percent_text(100 * std::expm1(log)), ", p ",
                       c.corrected_p < 0.001 ? "< 0.001" : fixed(c.corrected_p, 3), ")"));
  }
  std::vector<std::string> out;
  const auto say = [&](const char* what, const std::vector<std::string>& list, const char* end) {
    if (!list.empty()) out.push_back(cat("It is ", what, joined(list, ", "), end));
  };
  say("significantly better than ", better, ".");
  say("significantly worse than ", worse, ", but holds further.");
  say("not significantly different from ", open, ".");
  if (!out.empty()) {
    out.push_back(
        "Percentages say how far the other perplexity is above its own, paired over documents; "
        "significant means p < 0.05 (Holm).");
  }
  return out;
}

std::string score_text(double value, const eval::MetricInfo& info) {
  return info.higher_is_better && value <= 1 ? percent_text(100 * value) : value_text(value);
}

// By how much b is above a, paired over what both have; empty where nothing is.
std::string paired_text(const eval::ResultTable& table, std::int64_t length, const std::string& a,
                        const std::string& b, const eval::MetricInfo& info) {
  const auto difference = table.difference(length, b, a);
  if (!difference || difference->mean_difference.n == 0) return {};
  if (table.logarithmic) return cat(" (", signed_percent(difference->percent()), ", paired)");
  const auto points = [&](double value) {
    return info.higher_is_better ? fixed(100 * value, 1) : significant(value, 2);
  };
  const eval::Estimate& e = difference->mean_difference;
  return cat(" (", e.value < 0 ? "" : "+", points(e.value),
             std::isfinite(e.error) ? cat(" +- ", points(e.error)) : "",
             info.higher_is_better ? " points, paired)" : ", paired)");
}

// "At 128k tokens auto has the lowest perplexity, 3.118; best static plan: uni, 3.257 (+4.5 +- 0.3
// %)."
struct Ranking {
  std::string text;  // empty where no method has a value
  std::string best;  // empty: several have the same value
  std::int64_t length = 0;
  std::size_t n = 0;  // of the best one
  bool alone = false;
};

Ranking ranking_of(const eval::ResultTable& table, std::int64_t length,
                   const eval::MetricInfo& info) {
  struct Ranked {
    const eval::MethodRow* method;
    double value;
    std::size_t n;
  };
  const std::string task = !table.mean_row.empty()   ? table.mean_row
                           : table.tasks.size() == 1 ? table.tasks.front()
                                                     : table.task;
  std::vector<Ranked> ranked;
  for (const eval::MethodRow& method : table.methods) {
    const eval::ResultRow* row = table.find(method.method, length, table.metric, {}, task);
    if (row != nullptr && std::isfinite(row->estimate.value)) {
      ranked.push_back({&method, row->estimate.value, row->estimate.n});
    }
  }
  if (ranked.empty()) return {};
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Ranked& a, const Ranked& b) {
    return info.higher_is_better ? a.value > b.value : a.value < b.value;
  });
  std::string what = info.name == eval::kAnswerLoss ? "loss of the right answer" : info.axis;
  std::replace(what.begin(), what.end(), '_', ' ');
  const Ranked& first = ranked.front();
  std::vector<std::string> same;
  for (const Ranked& r : ranked) {
    if (r.value == first.value) same.push_back(r.method->method);
  }
  const std::string at = cat("At ", length_text(length), " tokens ");
  const std::string value = score_text(first.value, info);
  if (same.size() > 1) {
    const bool all = same.size() == ranked.size();
    const std::string every = same.size() == 2 ? "both" : cat("all ", same.size());
    return {cat(at, all ? every + " methods" : joined(same, ", "), " have the same ", what, ", ",
                value, "."),
            "", length, first.n};
  }
  const std::string& name = first.method->method;
  if (ranked.size() == 1) {
    return {cat(at, name, " has a ", what, " of ", value, "; no other method was measured there."),
            name, length, first.n, true};
  }
  // Of a method that grows, what a file can have instead.
  const auto rival = std::find_if(ranked.begin() + 1, ranked.end(), [&](const Ranked& r) {
    return !r.method->untouched && !(first.method->grows && r.method->grows);
  });
  const Ranked& next = rival == ranked.end() ? ranked[1] : *rival;
  return {cat(at, name, " has the ", info.higher_is_better ? "highest " : "lowest ", what, ", ",
              value, "; ",
              next.method->untouched                       ? "unmodified"
              : first.method->grows && !next.method->grows ? "best static plan"
                                                           : "next",
              ": ", next.method->untouched ? "" : next.method->method + ", ",
              score_text(next.value, info),
              paired_text(table, length, name, next.method->method, info), "."),
          name, length, first.n};
}

// Of every length and the metrics that methods are compared by. Those that name a best method come
// first, then the longest.
std::vector<Ranking> rankings(const RunGroup& group) {
  std::vector<Ranking> out;
  for (const std::string& metric : {group.front().table.metric, std::string(eval::kAnswerLoss)}) {
    const eval::ResultTable table = together(group, metric);
    const eval::MetricInfo info = metric_info(group, metric);
    for (auto at = table.lengths.rbegin(); at != table.lengths.rend(); ++at) {
      Ranking ranking = ranking_of(table, *at, info);
      if (ranking.text.empty() || (ranking.alone && !out.empty())) continue;
      out.push_back(std::move(ranking));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Ranking& a, const Ranking& b) {
    return std::pair(a.best.empty(), -a.length) < std::pair(b.best.empty(), -b.length);
  });
  return out;
}

// Of the other tasks at this length.
std::vector<Ranking> answer_rankings(const std::vector<RunRecord>& records, const RunRecord& of,
                                     std::int64_t length) {
  std::vector<Ranking> out;
  for (const RunGroup& other : grouped(records)) {
    if (other.front().model_digest != of.model_digest || !other.front().table.verdicts.empty()) {
      continue;
    }
    for (Ranking& ranking : rankings(other)) {
      if (ranking.length == length) out.push_back(std::move(ranking));
    }
  }
  return out;
}

// The first is the headline where there is none yet.
void add_rankings(VerdictText& text, const std::vector<Ranking>& ranked,
                  const std::string& so_far) {
  for (const Ranking& ranking : ranked) {
    if (text.headline.empty()) {
      text.headline = so_far + ranking.text;
    } else {
      text.sentences.push_back(ranking.text);
    }
  }
}

std::string confidence_of(std::size_t documents) {
  if (documents < 2) return "Confidence: none (1 document), so there is no error to state.";
  return cat("Confidence: ", documents < kFew ? "low (" : "", plural(documents, "document"),
             documents < kFew ? ")" : "", "; errors are standard errors over documents.");
}

VerdictText text_without_best(VerdictText text, const RunGroup& group,
                              const std::vector<RunRecord>& records, const std::string& so_far) {
  const RunRecord& first = group.front();
  const eval::ResultTable& r = first.table;
  const bool extended = find_by(r.methods, &eval::MethodRow::untouched, false) != nullptr;
  bool judged = false;  // an extension, or the untouched model where nothing else was asked for
  for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
    judged |= r.verdicts[i].judged && !(extended && r.methods[i].untouched);
  }
  const std::string model = model_argument(first);
  if (!judged) {
    const eval::Verdict* open = find_by(r.verdicts, &eval::Verdict::judged, false);
    const std::string reason = open != nullptr ? open->reason : "nothing was measured";
    const std::vector<Ranking> ranked = rankings(group);
    if (ranked.empty() || ranked.front().length <= r.window) {
      text.headline = so_far.empty() ? "No verdict." : so_far + "no verdict.";
      text.sentences.push_back(cat("Reason: ", reason, "."));
    } else {
      text.method = ranked.front().best;
      text.sentences.push_back(
          cat("Not known: how far it holds, and what it costs inside the window; ", reason, "."));
      text.sentences.push_back(confidence_of(ranked.front().n));
    }
    add_rankings(text, ranked, so_far);
    for (const Ranking& ranking : answer_rankings(records, first, r.lengths.back())) {
      text.sentences.push_back(ranking.text);
    }
    const std::string ctx = length_text(std::max(4 * r.window, r.lengths.back()));
    text.next.push_back({"Measure inside and beyond the window",
                         cat("mrrope eval ppl ", model, " --ctx ", ctx, " -o ppl-", ctx)});
    return text;
  }
  text.headline = cat(so_far, so_far.empty() ? "No" : "no", " method holds beyond the window of ",
                      length_text(r.window), " tokens.");
  for (const eval::Verdict& v : r.verdicts) {
    if (!v.reason.empty()) text.sentences.push_back(cat(v.method, ": ", v.reason, "."));
  }
  text.next.push_back(
      {"Search for a plan that does",
       cat("mrrope tune ", model, " --ctx ", length_text(2 * r.window), " -o plan.json")});
  return text;
}

std::string so_far_of(const RunGroup& group) {
  return find_by(group.runs, &RunRecord::finished, false) != nullptr ? "So far: " : "";
}

VerdictText verdict_text(const RunGroup& group, const std::vector<RunRecord>& records) {
  const RunRecord& first = group.front();
  VerdictText text;
  text.model = first.model;
  const std::string so_far = so_far_of(group);
  const Best best = best_of(group);
  if (best.run == nullptr) return text_without_best(std::move(text), group, records, so_far);
  const eval::ResultTable& b = best.run->table;
  const eval::MethodRow& row = b.methods[best.method];
  const eval::Verdict& verdict = b.verdicts[best.method];
  text.method = row.method;
  text.good_to = best.good_to;
  const double times = double(best.good_to) / double(b.window);
  text.headline = cat(so_far, row.method, " holds to ", length_text(best.good_to), " tokens, ",
                      significant(times, 3), " times the window of ", length_text(b.window), ".");
  std::string there = cat("Its perplexity over the first ", length_text(best.good_to),
                          " tokens is ", estimate_text(best.perplexity));
  const eval::ResultTable all = together(group, b.metric);
  for (const eval::MethodRow& other : all.methods) {
    const eval::Estimate e = estimate_at(all, other.method, best.good_to);
    if (other.untouched && e.n > 0) {
      there += cat("; that of the unmodified model is ", estimate_text(e));
    }
  }
  text.sentences.push_back(there + ".");
  for (const std::string& s : comparisons_of(all, row.method, best.good_to)) {
    text.sentences.push_back(s);
  }
  if (verdict.cost.mean_difference.n > 0) {
    text.sentences.push_back(cat(
        "At ", length_text(b.reference_length()), ", inside the window, it costs ",
        signed_percent(verdict.cost.percent()), " perplexity compared with the unmodified model."));
  }
  const std::string needles = needles_of(records, *best.run, row.method, row.plan);
  if (!needles.empty()) text.sentences.push_back("It" + needles);
  for (const Ranking& ranking : answer_rankings(records, *best.run, best.good_to)) {
    if (!ranking.alone) text.sentences.push_back(ranking.text);
  }
  text.sentences.push_back(confidence_of(best.perplexity.n));
  if (verdict.to_the_end) {
    text.sentences.push_back("This is the longest length measured: it may hold further.");
  } else if (!verdict.reason.empty()) {
    text.sentences.push_back(cat("Why it does not hold further: ", verdict.reason, "."));
  }
  add_next_steps(text, best, verdict);
  return text;
}

// Of a model that was measured with other tasks than perplexity alone.
VerdictText text_without_perplexity(const RunGroup& group) {
  const RunRecord& record = group.front();
  VerdictText text;
  text.model = record.model;
  if (!record.search.is_null()) {
    text.headline = search_text(record.search).front();
    return text;
  }
  const std::vector<Ranking> ranked = rankings(group);
  if (ranked.empty()) {
    text.headline = "No verdict on length: perplexity was not measured.";
  } else {
    text.method = ranked.front().best;
    add_rankings(text, ranked, so_far_of(group));
    text.sentences.push_back("Not known: how far a method holds; perplexity was not measured.");
  }
  std::int64_t longest = 2 * record.window;
  for (const eval::ResultRow& row : record.table.rows) longest = std::max(longest, row.length);
  if (longest > 0) {
    text.next.push_back({"Measure perplexity", cat("mrrope eval ppl ", model_argument(record),
                                                   " --ctx ", length_text(longest), " -o ppl")});
  }
  return text;
}

}  // namespace

std::string estimate_text(const eval::Estimate& e) {
  if (e.n == 0 || !std::isfinite(e.value)) return "-";
  const std::string error = e.error < 100 ? significant(e.error, 2) : fixed(e.error, 0);
  return value_text(e.value) + (std::isfinite(e.error) ? " +- " + error : "");
}

std::string signed_percent(const eval::Estimate& e) {
  return cat(e.value < 0 ? "" : "+", fixed(e.value, 1),
             std::isfinite(e.error) ? cat(" +- ", fixed(e.error, 1)) : "", " %");
}

std::vector<VerdictText> verdicts_of(const std::vector<RunRecord>& records) {
  std::vector<VerdictText> out;
  std::set<std::string> models;
  std::vector<RunGroup> groups = grouped(records);
  const auto judged = [](const RunGroup& g) { return !g.front().table.verdicts.empty(); };
  std::stable_partition(groups.begin(), groups.end(), judged);
  for (const RunGroup& group : groups) {
    const bool first = models.insert(group.front().model_digest).second;
    if (!first && !judged(group)) continue;
    out.push_back(judged(group) ? verdict_text(group, records) : text_without_perplexity(group));
    if (first) add_baseline_notes(out.back(), records, group.front().model_digest);
  }
  return out;
}

std::string best_and_worst(const LineChart& chart, bool higher_is_better) {
  std::map<double, std::vector<std::pair<double, std::string>>> by_length;
  for (const Series& s : chart.series) {
    for (const ChartPoint& p : s.points) {
      if (std::isfinite(p.y)) by_length[p.x].emplace_back(p.y, s.name);
    }
  }
  for (auto at = by_length.rbegin(); at != by_length.rend(); ++at) {
    const auto [low, high] =
        std::minmax_element(at->second.begin(), at->second.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; });
    if (low->first == high->first) continue;
    const auto& best = higher_is_better ? *high : *low;
    const auto& worst = higher_is_better ? *low : *high;
    return cat("At ", tick_text(chart.x, at->first), " ", best.second, " is best (",
               value_text(best.first), "), ", worst.second, " worst (", value_text(worst.first),
               "). ");
  }
  return {};
}

}  // namespace mrrope::report
