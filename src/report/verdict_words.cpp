// SPDX-License-Identifier: Apache-2.0
#include "report/verdict_words.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "core/methods.h"
#include "eval/stats/comparison.h"
#include "report/charts/axis.h"
#include "report/charts/chart.h"
#include "report/json_fields.h"
#include "report/search_part.h"
#include "report/sweep_part.h"

namespace mrrope::report {

namespace {

constexpr std::size_t kFew = 8;   // documents
constexpr double kFailed = 0.05;  // a share of answers below this says nothing

std::string plural(std::size_t n, const std::string& one) {
  return n == 1 ? "1 " + one : cat(n, " ", one, "s");
}

std::string percent_text(double value, int digits) {
  return fixed(value, std::abs(value) < 100 ? digits : 0) + " %";
}

std::size_t index_of(const eval::PerplexityResults& r, std::int64_t length) {
  return std::size_t(std::find(r.lengths.begin(), r.lengths.end(), length) - r.lengths.begin());
}

struct Best {
  const RunRecord* run = nullptr;
  std::size_t row = 0;
  std::int64_t good_to = 0;
  eval::Estimate perplexity;
};

// Longest good_to, then lowest perplexity there. The untouched model does not count.
Best best_of(const RunGroup& group) {
  Best best;
  for (const RunRecord* run : group.runs) {
    if (!run->perplexity) continue;
    const eval::PerplexityResults& r = *run->perplexity;
    for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
      const eval::Verdict& v = r.verdicts[i];
      if (!v.judged || v.good_to <= r.window || r.rows[i].untouched) continue;
      const eval::Estimate e = r.rows[i].cells[index_of(r, v.good_to)].perplexity;
      const bool better = v.good_to > best.good_to ||
                          (v.good_to == best.good_to && e.value < best.perplexity.value);
      if (best.run == nullptr || better) best = {run, i, v.good_to, e};
    }
  }
  return best;
}

// The words of the recorded command, with their quotes.
std::vector<std::string> command_words(const RunRecord& record) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char c : text_at(record.run, "command") + " ") {
    if (c == '\'') quoted = !quoted;
    if (c != ' ' || quoted) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

// " --low 12" if the recorded command has this flag.
std::string flag_of(const std::vector<std::string>& words, const std::string& flag) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(flag + "=")) return " " + words[i];
    if (words[i] == flag && i + 1 < words.size()) return cat(" ", flag, " ", words[i + 1]);
  }
  return {};
}

// The model as the recorded command names it, with the flags of its geometry, so that the next
// command can be typed as it is.
std::string model_argument(const RunRecord& record) {
  const std::vector<std::string> words = command_words(record);
  for (const std::string& word : words) {
    if (word.find(".gguf") == std::string::npos) continue;
    const bool replaced = std::find(words.begin(), words.end(), "--replace-scaling") != words.end();
    return word + flag_of(words, "--train-ctx") + (replaced ? " --replace-scaling" : "");
  }
  return "MODEL.gguf";
}

// The flags of the recorded command that changed this method: runs of before the notation.
std::string settings_argument(const RunRecord& record, const std::string& name) {
  const std::vector<std::string> words = command_words(record);
  const MethodSpec method = parse_method(name);
  std::string text;
  for (const ParameterInfo& p : parameters()) {
    std::string flag = cat("--", p.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (uses(method, p)) text += flag_of(words, flag.c_str());
  }
  return text;
}

// "pro x1.25" is pro with headroom 1.25. Empty if the name is not that of a method: a plan file.
std::string method_argument(const RunRecord& record, const std::string& name) {
  if (is_auto(name)) return "--method auto";
  const std::size_t at = name.rfind(" x");
  const std::string method = name.substr(0, at);
  const std::string plain = bare_name(method);
  for (const MethodInfo& info : methods()) {
    if (info.name != plain) continue;
    if (at != std::string::npos)
      return cat("--method ", method, " --headroom ", name.substr(at + 2));
    const bool complete = method.find('(') != std::string::npos;
    return cat("--method ", shell_word(method), complete ? "" : settings_argument(record, method));
  }
  return {};
}

// How other methods compare at the length of the headline.
std::vector<std::string> comparisons_of(const Best& best) {
  const eval::PerplexityResults& r = *best.run->perplexity;
  const std::string& own = r.rows[best.row].method;
  std::string better;
  std::string worse;
  std::string open;
  for (const eval::Comparison& c : r.comparisons) {
    if (c.length != best.good_to || (c.a != own && c.b != own)) continue;
    const std::string& other = c.a == own ? c.b : c.a;
    const auto row = std::find_if(r.rows.begin(), r.rows.end(),
                                  [&](const eval::PerplexityRow& x) { return x.method == other; });
    if (row == r.rows.end() || row->untouched || c.difference.mean_difference.n < 2) continue;
    // By how much the other is worse.
    const double log =
        c.a == own ? -c.difference.mean_difference.value : c.difference.mean_difference.value;
    const std::string text =
        cat(other, " (", log < 0 ? "" : "+", percent_text(100 * std::expm1(log), 1), ", p ",
            c.corrected_p < 0.001 ? std::string("< 0.001") : fixed(c.corrected_p, 3), ")");
    std::string& list = c.corrected_p >= eval::kSignificant ? open : log > 0 ? better : worse;
    list += (list.empty() ? "" : ", ") + text;
  }
  std::vector<std::string> out;
  if (!better.empty()) out.push_back(cat("It is significantly better than ", better, "."));
  if (!worse.empty()) {
    out.push_back(cat("It is significantly worse than ", worse, ", but holds further."));
  }
  if (!open.empty()) out.push_back(cat("It is not significantly different from ", open, "."));
  if (!out.empty()) {
    out.push_back(
        "Percentages say how far the other perplexity is above its own, paired over documents; "
        "significant means p < 0.05 (Holm).");
  }
  return out;
}

std::string needles_of(const std::vector<RunRecord>& records, const RunRecord& of,
                       const std::string& method, const std::string& plan) {
  std::string text;
  for (const RunRecord& record : records) {
    if (!record.needle || record.model_digest != of.model_digest) continue;
    const eval::NeedleResults& r = *record.needle;
    for (const eval::NeedleRow& row : r.rows) {
      if (row.method != method || row.plan != plan) continue;
      for (std::size_t l = r.lengths.size(); l-- > 0;) {
        const eval::Estimate& e = row.all[l].contains;
        if (e.n == 0) continue;
        text = cat("It finds ", fixed(100 * e.value, 0),
                   std::isfinite(e.error) ? cat(" +- ", fixed(100 * e.error, 0)) : std::string(),
                   " % of ", plural(e.n, "needle"), " at ", length_text(r.lengths[l]), ".");
        break;
      }
    }
  }
  return text;
}

std::string reason_of(const eval::PerplexityResults& r) {
  for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
    if (!r.verdicts[i].judged) return r.verdicts[i].reason;
  }
  return r.stride > 0 ? "sliding windows have no bands to judge" : "nothing was measured";
}

// Tasks that the untouched model fails inside its own window: they cannot show what an extension
// is worth.
std::vector<std::string> failed_inside_window(const std::vector<RunRecord>& records,
                                              const std::string& model_digest) {
  std::vector<std::string> out;
  for (const RunRecord& record : records) {
    if (record.model_digest != model_digest || record.perplexity || record.search) continue;
    std::map<std::string, double> best;  // by task
    for (const ResultRow& row : record.rows) {
      const bool untouched = std::any_of(
          record.methods.begin(), record.methods.end(),
          [&](const auto& m) { return (m.untouched || m.grows) && m.name == row.method; });
      if (!untouched || row.depth || row.length > record.window || row.estimate.n == 0) continue;
      double& value = best.emplace(row.task, 0).first->second;
      value = std::max(value, row.estimate.value);
    }
    for (const auto& [task, value] : best) {
      if (value >= kFailed) continue;
      out.push_back(cat(task, ": the untouched model answers ", fixed(100 * value, 0),
                        " % inside its window of ", length_text(record.window),
                        ", so this task says nothing about longer texts."));
    }
  }
  return out;
}

void add_next_steps(VerdictWords& words, const Best& best, const eval::Verdict& verdict) {
  const std::string model = model_argument(*best.run);
  const std::string method = method_argument(*best.run, words.method);
  const std::string ctx = length_text(words.good_to);
  if (method.empty()) {
    words.next.push_back({"Use it", cat("mrrope serve ", model, " --plan PLAN.json --ctx ", ctx)});
    return;
  }
  if (is_elastic(words.method) || is_auto(words.method)) {
    words.next.push_back({"Use it", cat("mrrope serve ", model, " ", method, " --ctx ", ctx)});
  } else {
    words.next.push_back({"Use it", cat("mrrope export ", model, " ", method, " --ctx ", ctx,
                                        " -o extended-", ctx, ".gguf")});
  }
  if (verdict.to_the_end) {
    const std::string longer = length_text(2 * words.good_to);
    words.next.push_back({"Measure further", cat("mrrope eval ppl ", model, " ", method, " --ctx ",
                                                 longer, " -o ppl-", longer)});
  }
}

VerdictWords words_without_best(VerdictWords words, const RunRecord& first,
                                const std::string& so_far) {
  const eval::PerplexityResults& r = *first.perplexity;
  bool judged = false;  // an extension, or the untouched model where nothing else was asked for
  bool extended = false;
  for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
    if (r.rows[i].untouched && extended) continue;
    if (!r.rows[i].untouched && !std::exchange(extended, true)) judged = false;
    judged |= r.verdicts[i].judged;
  }
  const std::string model = model_argument(first);
  if (!judged) {
    words.headline = so_far + "no verdict.";
    words.sentences.push_back(cat("Reason: ", reason_of(r), "."));
    const std::string ctx = length_text(4 * r.window);
    words.next.push_back({"Measure inside and beyond the window",
                          cat("mrrope eval ppl ", model, " --ctx ", ctx, " -o ppl-", ctx)});
    return words;
  }
  words.headline = cat(so_far, so_far.empty() ? "No" : "no", " method holds beyond the window of ",
                       length_text(r.window), " tokens.");
  for (const eval::Verdict& v : r.verdicts) {
    if (!v.reason.empty()) words.sentences.push_back(cat(v.method, ": ", v.reason, "."));
  }
  words.next.push_back(
      {"Search for a plan that does",
       cat("mrrope tune ", model, " --ctx ", length_text(2 * r.window), " -o plan.json")});
  return words;
}

std::string confidence_of(std::size_t documents) {
  if (documents < 2) return "Confidence: none (1 document), so there is no error to state.";
  return cat("Confidence: ", documents < kFew ? "low (" : "", plural(documents, "document"),
             documents < kFew ? ")" : "", "; errors are standard errors over documents.");
}

VerdictWords words_of(const RunGroup& group, const std::vector<RunRecord>& records) {
  const RunRecord& first = group.front();
  VerdictWords words;
  words.model = first.model;
  const bool open = std::any_of(group.runs.begin(), group.runs.end(),
                                [](const RunRecord* run) { return !run->finished; });
  const std::string so_far = open ? "So far: " : "";
  const Best best = best_of(group);
  if (best.run == nullptr) return words_without_best(std::move(words), first, so_far);
  const eval::PerplexityResults& b = *best.run->perplexity;
  const eval::PerplexityRow& row = b.rows[best.row];
  const eval::Verdict& verdict = b.verdicts[best.row];
  words.method = row.method;
  words.good_to = best.good_to;
  const double times = double(best.good_to) / double(b.window);
  words.headline = cat(so_far, row.method, " holds to ", length_text(best.good_to), " tokens, ",
                       significant(times, 3), " times the window of ", length_text(b.window), ".");
  std::string there = cat("Its perplexity over the first ", length_text(best.good_to),
                          " tokens is ", estimate_text(best.perplexity));
  for (const eval::PerplexityRow& other : b.rows) {
    const eval::Estimate& e = other.cells[index_of(b, best.good_to)].perplexity;
    if (other.untouched && e.n > 0) {
      there += cat("; that of the untouched model is ", estimate_text(e));
    }
  }
  words.sentences.push_back(there + ".");
  for (std::string& sentence : comparisons_of(best)) words.sentences.push_back(std::move(sentence));
  if (verdict.cost.mean_difference.n > 0) {
    const eval::Estimate cost = verdict.cost.percent();
    words.sentences.push_back(
        cat("At ", length_text(b.reference_length), ", inside the window, it costs ",
            cost.value < 0 ? "" : "+", fixed(cost.value, 1),
            std::isfinite(cost.error) ? cat(" +- ", fixed(cost.error, 1)) : std::string(),
            " % perplexity compared with the untouched model."));
  }
  const std::string needles = needles_of(records, *best.run, row.method, row.plan);
  if (!needles.empty()) words.sentences.push_back(needles);
  words.sentences.push_back(confidence_of(best.perplexity.n));
  if (verdict.to_the_end) {
    words.sentences.push_back("This is the longest length measured: it may hold further.");
  } else if (!verdict.reason.empty()) {
    words.sentences.push_back(cat("Why it does not hold further: ", verdict.reason, "."));
  }
  add_next_steps(words, best, verdict);
  return words;
}

// Of a model that was measured with other tasks than perplexity alone.
VerdictWords words_without_perplexity(const RunRecord& record,
                                      const std::vector<RunRecord>& records) {
  VerdictWords words;
  words.model = record.model;
  if (record.sweep) {
    words.headline = sweep_words(*record.sweep);
    if (const auto* best = sweep_best(*record.sweep)) {
      words.next.push_back(
          {"Measure it at every length",
           cat("mrrope eval ppl ", model_argument(record), " --method ", best->method, " --low ",
               best->low, " --high ", best->high, flag_of(command_words(record), "--headroom"),
               " --ctx ", length_text(record.sweep->length), " -o ppl")});
    }
    return words;
  }
  if (record.search) {
    words.headline = search_words(*record.search).front();
    return words;
  }
  words.headline = "No verdict on length: perplexity was not measured.";
  std::int64_t longest = 2 * record.window;
  for (const ResultRow& row : record.rows) longest = std::max(longest, row.length);
  if (record.needle) {
    for (const RecordedMethod& m : record.methods) {
      const std::string found = needles_of(records, record, m.name, m.digest);
      if (!found.empty()) words.sentences.push_back(cat(m.name, ": ", found));
    }
  }
  if (longest > 0) {
    words.next.push_back({"Measure perplexity", cat("mrrope eval ppl ", model_argument(record),
                                                    " --ctx ", length_text(longest), " -o ppl")});
  }
  return words;
}

}  // namespace

std::string estimate_text(const eval::Estimate& e) {
  if (e.n == 0 || !std::isfinite(e.value)) return "-";
  return value_text(e.value) + (std::isfinite(e.error) ? " +- " + significant(e.error, 2) : "");
}

std::vector<VerdictWords> verdicts_of(const std::vector<RunRecord>& records) {
  std::vector<VerdictWords> out;
  std::set<std::string> judged;
  for (const RunGroup& group : grouped(records)) {
    if (!group.front().perplexity) continue;
    const bool first = judged.insert(group.front().model_digest).second;
    out.push_back(words_of(group, records));
    if (!first) continue;
    for (std::string& s : failed_inside_window(records, group.front().model_digest)) {
      out.back().sentences.push_back(std::move(s));
    }
  }
  for (const RunRecord& record : records) {
    if (!record.problem.empty() || !judged.insert(record.model_digest).second) continue;
    out.push_back(words_without_perplexity(record, records));
    for (std::string& s : failed_inside_window(records, record.model_digest)) {
      out.back().sentences.push_back(std::move(s));
    }
  }
  return out;
}

}  // namespace mrrope::report
