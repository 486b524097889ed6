// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "eval/results/result_table.h"
#include "eval/score/answer_text.h"
#include "report/charts/chart.h"
#include "report/charts/markup.h"
#include "report/figures.h"
#include "report/page/html_page.h"
#include "report/paper/paper.h"

namespace mrrope::report {

using nlohmann::ordered_json;

namespace {

// What a term of a report means.
struct Term {
  bool (*used)(const RunRecord&);
  const char* name;
  const char* meaning;  // plain text
};

bool always(const RunRecord&) { return true; }
bool by_search(const RunRecord& r) { return !r.search.is_null(); }
bool with_verdict(const RunRecord& r) { return !r.table.verdicts.empty(); }
bool by_perplexity(const RunRecord& r) { return with_verdict(r) || by_search(r); }
bool by_needles(const RunRecord& r) { return !r.table.answers.empty() || by_search(r); }
bool elastic(const RunRecord& r) {
  return std::any_of(r.methods.begin(), r.methods.end(),
                     [](const RecordedMethod& m) { return is_elastic(m.method); });
}

constexpr Term kTerms[] = {
    {always, "window", "The longest text, in tokens, that the model was trained on."},
    {always, "untouched (none)", "The model as it was shipped, without an extension."},
    {always, "+-",
     "One standard error over documents (for needles: over needles). The true value is within two "
     "of them about 19 times in 20."},
    {by_perplexity, "perplexity",
     "How surprised the model is by the next token, on average; lower is better. 1 is perfect, and "
     "N is as bad as guessing among N tokens."},
    {with_verdict, "band",
     "Perplexity of only those tokens between one length and the next. It shows a collapse that "
     "the average over all tokens hides."},
    {with_verdict, "good to / holds to",
     "The longest length up to which every band stays within 25 % of the perplexity of the "
     "untouched model in its window, and no band is clearly above (10 % and two standard errors) "
     "the best band before it."},
    {with_verdict, "cost inside the window",
     "How much the extension raises the perplexity of short texts, in percent."},
    {with_verdict, "KL divergence",
     "How far the predictions inside the window are from those of the untouched model, in nats; 0 "
     "is identical."},
    {with_verdict, "significant (p < 0.05, Holm)",
     "A difference this large would be rare by chance. p is from a paired t test over documents; "
     "Holm's correction accounts for comparing many methods at once."},
    {by_needles, "needle",
     "A sentence planted in a long text that the model must find again; depth is its place, from "
     "0 % (start) to 100 % (end)."},
    {by_needles, "recall (ROUGE-1)", "The share of the words of the answer that the model wrote."},
    {always, "pair",
     "Two numbers of a query or key that RoPE rotates together; pair 0 turns fastest."},
    {always, "plan, factor",
     "A plan divides the rotation speed of each pair by a factor: 1 leaves the pair as trained."},
    {always, "low, high",
     "The ramp boundaries: pairs before low keep their speed, pairs from high on are slowed in "
     "full."},
    {elastic, "elastic, rung",
     "An elastic method uses the untouched model inside its window and then climbs through plans "
     "of growing scale; each of these is a rung."},
    {by_search, "pass", "One reading of the whole search set at the wanted length."},
    {by_search, "objective",
     "What the search minimizes: mean log-perplexity minus a weight times the log-probability of "
     "planted answers."},
    {by_search, "front", "Plans that no other plan beats in both perplexity and retrieval."},
    {by_search, "held-out", "Documents that the search never saw; the proof uses only these."},
};

constexpr std::size_t kAnswersShown = 6;  // per method
constexpr std::size_t kAnswerText = 400;  // characters of one
constexpr std::size_t kTextsNamed = 40;   // documents in the provenance

// "+-" becomes the sign.
std::string with_sign(std::string html) {
  for (std::size_t at = 0; (at = html.find("+-", at)) != std::string::npos;) {
    html.replace(at, 2, "&#177;");
  }
  return html;
}

std::string pretty(const std::string& text) { return with_sign(escaped(text)); }

std::string state_of(const RunRecord& r) {
  if (!r.problem.empty()) return "could not be read: " + r.problem;
  if (r.finished) return "finished";
  if (r.table.expected_units == 0) return "not finished";
  return cat("not finished: ", r.units, " of ", r.table.expected_units, " units");
}

std::string verdict_part(const std::vector<VerdictText>& verdicts) {
  std::string out;
  for (const VerdictText& v : verdicts) {
    const char* tag = out.empty() ? "h1" : "h2 class=\"second\"";
    out += cat("<section class=\"verdict\">\n<p class=\"model\">", escaped(v.model), "</p>\n<", tag,
               ">", pretty(v.headline), "</", std::string(tag, 2), ">\n");
    std::string points;
    for (const std::string& s : v.sentences) points += cat("<li>", pretty(s), "</li>\n");
    if (!points.empty()) out += cat("<ul>\n", points, "</ul>\n");
    std::string steps;
    for (const NextStep& step : v.next) {
      steps += cat("<dt>", escaped(step.what), "</dt><dd><code>", escaped(step.command),
                   "</code></dd>\n");
    }
    if (!steps.empty()) {
      out += cat("<p class=\"next\"><b>What to do next</b></p>\n<dl class=\"next\">\n", steps,
                 "</dl>\n");
    }
    out += "</section>\n";
  }
  return out;
}

std::string state_part(const std::vector<RunRecord>& records) {
  std::string out;
  for (const RunRecord& r : records) {
    if (r.problem.empty() && r.finished) continue;
    out += cat("<p class=\"warn\"><b>", escaped(r.name), "</b> ", escaped(state_of(r)), ".");
    const std::string command = text_at(r.run, "command");
    if (r.problem.empty() && !command.empty()) {
      out += cat(" Resume with: <code>", escaped(command), "</code>");
    }
    out += "</p>\n";
  }
  return out;
}

// One line per method: how far it holds, and what it costs.
DataTable method_table(const std::vector<RunRecord>& records) {
  DataTable table;
  table.caption = "All methods";
  table.header = {
      "method",           "run", "good to", "cost inside the window", "KL from untouched",
      "why it ends there"};
  table.text_columns = 3;
  table.text_at_end = true;
  std::size_t runs = 0;
  for (const RunRecord& record : records) {
    const eval::ResultTable& r = record.table;
    if (r.verdicts.empty() || !r.reason_without_verdicts().empty()) continue;
    ++runs;
    for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
      const eval::Verdict& v = r.verdicts[i];
      const eval::Estimate cost = v.cost.percent();
      std::string cost_text;
      if (cost.n > 0 && !r.methods[i].untouched) {
        cost_text = cat(cost.value < 0 ? "" : "+", fixed(cost.value, 1),
                        std::isfinite(cost.error) ? cat(" +- ", fixed(cost.error, 1)) : "", " %");
      }
      table.rows.push_back(
          {v.method, record.name,
           !v.judged                ? "no verdict"
           : v.good_to == 0         ? "window"
           : r.methods[i].untouched ? length_text(v.good_to)
                                    : length_text(v.good_to) + (v.to_the_end ? " (longest)" : ""),
           cost_text, v.divergence.n > 0 ? significant(v.divergence.value, 3) : "", v.reason});
    }
  }
  const bool reasons = std::any_of(table.rows.begin(), table.rows.end(),
                                   [](const auto& row) { return !row.back().empty(); });
  if (!reasons) {
    table.text_at_end = false;
    table.header.pop_back();
    for (auto& row : table.rows) row.pop_back();
  }
  if (runs == 1) {  // no need to name it
    table.text_columns = 2;
    table.header.erase(table.header.begin() + 1);
    for (auto& row : table.rows) row.erase(row.begin() + 1);
  }
  return table;
}

std::string table_html(const DataTable& table) { return with_sign(to_html(table)); }

std::string answers_part(const std::vector<RunRecord>& records, const std::string& section) {
  std::string out;
  for (const RunRecord& record : records) {
    if (record.table.answers.empty() || section_of(record.task) != section) continue;
    DataTable table;
    table.caption = cat(record.name, ": wrong answers, longest texts first");
    table.header = {"method", "length", "depth", "expected", "answer"};
    table.text_columns = 5;
    std::vector<eval::RecordedAnswer> missed;
    for (const eval::RecordedAnswer& a : record.table.answers) {
      if (!eval::contains_answer(a.expected, a.text)) missed.push_back(a);
    }
    std::stable_sort(missed.begin(), missed.end(),
                     [](const auto& a, const auto& b) { return a.length > b.length; });
    for (const RecordedMethod& m : record.methods) {
      std::size_t shown = 0;
      for (const eval::RecordedAnswer& a : missed) {
        if (a.method != m.method || shown == kAnswersShown) continue;
        ++shown;
        table.rows.push_back({a.method, length_text(a.length), significant(a.depth, 3) + " %",
                              a.expected, shortened(a.text, kAnswerText)});
      }
    }
    if (table.rows.empty()) continue;
    out += cat("<details><summary>", table.rows.size(), " of ", missed.size(), " wrong answers (",
               escaped(record.name), ")</summary>\n", to_html(table), "</details>\n");
  }
  return out;
}

std::string search_part(const std::vector<RunRecord>& records) {
  std::string out;
  for (const RunRecord& record : records) {
    if (record.search.is_null()) continue;
    out += "<ul>\n";
    for (const std::string& s : search_text(record.search)) {
      out += cat("<li>", pretty(s), "</li>\n");
    }
    out += "</ul>\n";
    const DataTable proof = proof_table(record);
    if (!proof.rows.empty()) out += table_html(proof);
  }
  return out;
}

DataTable cost_table(const std::vector<RunRecord>& records) {
  DataTable table;
  table.caption = "Cost of the runs";
  table.header = {"run", "engine", "tokens", "seconds", "tokens per second", "peak memory"};
  table.text_columns = 2;
  for (const RunRecord& r : records) {
    if (!r.problem.empty()) continue;
    const ordered_json measured = r.run.value("measured", ordered_json::object());
    const double bytes = value_at(measured, "peak_memory_bytes");
    const auto text = [&](const char* key, int digits) {
      const double value = value_at(measured, key);
      return std::isfinite(value) ? fixed(value, digits) : std::string("-");
    };
    table.rows.push_back({r.name, text_at(r.run, "engine"), text("tokens", 0), text("seconds", 1),
                          text("tokens_per_second", 0),
                          std::isfinite(bytes) ? bytes_text(bytes) : "-"});
  }
  return table;
}

std::string listed(const ordered_json& run, const char* key) {
  if (!run.contains(key) || !run[key].is_array()) return {};
  std::string out;
  std::size_t n = 0;
  for (const ordered_json& entry : run[key]) {
    if (++n > kTextsNamed) {
      out += cat(" and ", run[key].size() - kTextsNamed, " more");
      break;
    }
    const std::string id = text_at(entry, "id");
    if (!id.empty()) out += (out.empty() ? "" : ", ") + id;
  }
  return out;
}

std::string provenance_part(const std::vector<RunRecord>& records) {
  std::string out;
  for (const RunRecord& r : records) {
    out += cat("<h3>", escaped(r.name), "</h3>\n<dl>");
    const auto put = [&](const char* term, const std::string& text, bool code = false) {
      if (text.empty()) return;
      out += cat("<dt>", term, "</dt><dd>", code ? "<code>" : "", escaped(text),
                 code ? "</code>" : "", "</dd>\n");
    };
    const auto text_of = [&](const char* key) {
      if (!r.run.contains(key)) return std::string();
      const ordered_json& v = r.run[key];
      return v.is_string() ? v.get<std::string>() : json_text(v);
    };
    put("folder", r.folder, true);
    put("state", state_of(r));
    put("command", text_at(r.run, "command"), true);
    if (r.problem.empty()) {
      put("model", cat(r.model, ", ", r.architecture, ", window ", length_text(r.window)));
      put("model digest", r.model_digest, true);
      put("mrrope", text_of("mrrope"));
      put("engine", text_of("engine"));
      put("seed", text_of("seed"));
      put("settings", text_of("settings"), true);
      put("texts", listed(r.run, "documents") + listed(r.run, "haystacks"));
      std::string plans;
      for (const RecordedMethod& m : r.methods) {
        plans += cat(plans.empty() ? "" : ", ", m.method, " ", m.plan);
      }
      put("plan digests", plans, true);
      put(r.finished ? "finished" : "last unit",
          text_at(r.run.value("measured", ordered_json::object()), "finished"));
    }
    out += "</dl>\n";
    for (const std::string& n : r.table.notes)
      out += cat("<p class=\"soft\">", escaped(n), ".</p>\n");
  }
  return out;
}

std::string legend_part(const std::vector<RunRecord>& records) {
  std::string out;
  for (const Term& term : kTerms) {
    const bool used = std::any_of(records.begin(), records.end(), [&](const RunRecord& r) {
      return r.problem.empty() && term.used(r);
    });
    if (used) out += cat("<dt>", pretty(term.name), "</dt><dd>", escaped(term.meaning), "</dd>\n");
  }
  return cat("<details class=\"terms\"><summary>What the terms mean</summary>\n<dl>\n", out,
             "</dl></details>\n");
}

std::string lead_of(const std::vector<RunRecord>& records) {
  std::vector<std::string> models;
  for (const RunRecord& r : records) {
    if (!r.problem.empty()) continue;
    if (std::find(models.begin(), models.end(), r.model) == models.end()) models.push_back(r.model);
  }
  std::string out = "report";
  for (std::size_t i = 0; i < models.size(); ++i) {
    out += cat(i == 0 ? " on " : ", ", escaped(models[i]));
  }
  return cat(out, ", from ", records.size(), records.size() == 1 ? " run" : " runs");
}

}  // namespace

std::string report_page(const std::vector<RunRecord>& records) {
  std::string body = verdict_part(verdicts_of(records)) + state_part(records);
  const DataTable methods = method_table(records);
  if (!methods.rows.empty()) body += table_html(methods);
  body += legend_part(records);

  const std::vector<Figure> figures = figures_of(records);
  const std::vector<TaskTable> tables = tables_of(records);
  std::vector<std::string> sections;
  const auto remember = [&](const std::string& section) {
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      sections.push_back(section);
    }
  };
  for (const Figure& f : figures) {
    if (f.section != "Plans") remember(f.section);
  }
  for (const TaskTable& t : tables) remember(t.section);
  remember("Plans");
  for (const std::string& section : sections) {
    std::string lines;
    std::string maps;
    for (const Figure& f : figures) {
      if (f.section != section) continue;
      (f.is_map() ? maps : lines) += to_html(f);
    }
    std::string shown;
    for (const TaskTable& t : tables) {
      if (t.section == section) shown += table_html(t.table);
    }
    if (lines.empty() && maps.empty() && shown.empty()) continue;
    body += cat("<h2>", escaped(section), "</h2>\n", maps);
    if (section == kSearchSection) body += search_part(records);
    if (!lines.empty()) body += cat("<div class=\"grid\">\n", lines, "</div>\n");
    if (!shown.empty()) {
      // Charts have the same numbers; a task without a chart shows its table at once.
      const char* open = lines.empty() && maps.empty() ? " open" : "";
      body += cat("<details", open, "><summary>Tables</summary>\n", shown, "</details>\n");
    }
    body += answers_part(records, section);
  }

  const std::vector<DataTable> printed = compared_with_paper(records);
  if (!printed.empty()) {
    body +=
        "<h2>Compared with the paper</h2>\n<p>The numbers that the MrRoPE paper prints for this "
        "model, with yours beside them. The last column names every difference of setting that a "
        "run "
        "records, the caption what neither the paper nor a run says. Different texts and prompts "
        "give different numbers, so compare the order of the methods, not the values.</p>\n";
    for (const DataTable& t : printed) body += table_html(t);
  }
  body += cat("<h2>Speed and memory</h2>\n", to_html(cost_table(records)),
              "<h2>Provenance</h2>\n<p>Everything above comes from the journals of these runs. "
              "The same command gives the same numbers on the same engine.</p>\n",
              provenance_part(records));
  return to_page({"mrrope report", lead_of(records), body});
}

ordered_json report_json(const std::vector<RunRecord>& records) {
  ordered_json verdicts = ordered_json::array();
  for (const VerdictText& v : verdicts_of(records)) {
    ordered_json next = ordered_json::array();
    for (const NextStep& step : v.next) {
      next.push_back({{"what", step.what}, {"command", step.command}});
    }
    verdicts.push_back({{"model", v.model},
                        {"method", v.method.empty() ? ordered_json() : ordered_json(v.method)},
                        {"good_to", v.good_to > 0 ? ordered_json(v.good_to) : ordered_json()},
                        {"headline", v.headline},
                        {"words", v.sentences},
                        {"next", next}});
  }
  ordered_json runs = ordered_json::array();
  ordered_json rows = ordered_json::array();
  for (const RunRecord& r : records) {
    runs.push_back(
        {{"run", r.name},
         {"folder", r.folder},
         {"task", r.task},
         {"model", r.model},
         {"state", r.problem.empty() ? r.finished ? "finished" : "unfinished" : "unreadable"},
         {"units", r.units},
         {"problem", r.problem}});
    const ordered_json own = eval::to_json(r.table).at("results");
    for (const ordered_json& row : own) {
      rows.push_back({{"run", r.name}});
      rows.back().update(row);
    }
  }
  return {{"verdicts", verdicts}, {"runs", runs}, {"results", rows}};
}

std::string report_text(const std::vector<RunRecord>& records) {
  std::string out;
  for (const VerdictText& v : verdicts_of(records)) {
    out += cat(v.model, ": ", v.headline, "\n");
    for (const std::string& s : v.sentences) out += cat("  ", s, "\n");
    for (const NextStep& step : v.next) out += cat("  ", step.what, ": ", step.command, "\n");
  }
  for (const RunRecord& r : records) {
    if (r.search.is_null()) continue;
    out += cat(r.name, ":\n");
    for (const std::string& s : search_text(r.search)) out += cat("  ", s, "\n");
  }
  for (const RunRecord& r : records) {
    if (!r.problem.empty() || !r.finished) out += cat(r.name, " ", state_of(r), "\n");
  }
  return out;
}

}  // namespace mrrope::report
