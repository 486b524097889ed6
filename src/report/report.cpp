// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "base/json.h"
#include "base/text.h"
#include "eval/score/answer_text.h"

namespace mrrope::report {

namespace {

// Whether a run is of the kind that a row of terms.json explains a term for.
bool is_of(const RunRecord& r, const std::string& kind) {
  const bool by_search = !r.search.is_null();
  const bool with_verdict = !r.table.verdicts.empty();
  if (kind == "words") return false;  // of the command alone: mrrope help words
  if (kind == "search") return by_search;
  if (kind == "verdict") return with_verdict;
  if (kind == "perplexity") return with_verdict || by_search;
  if (kind == "needles") return !r.table.answers.empty() || by_search;
  if (kind != "elastic") return true;
  return std::any_of(r.methods.begin(), r.methods.end(),
                     [](const RecordedMethod& m) { return is_elastic(m.method); });
}

constexpr std::size_t kAnswersShown = 6;  // per method
constexpr std::size_t kAnswerText = 400;  // characters of one
constexpr std::size_t kTextsNamed = 40;   // documents in the provenance

// "+-" becomes the sign.
std::string with_sign(const std::string& html) { return replaced(html, "+-", "&#177;"); }

std::string pretty(const std::string& text) { return with_sign(escaped(text)); }

std::string list_html(const std::vector<std::string>& sentences) {
  std::string points;
  for (const std::string& s : sentences) points += cat("<li>", pretty(s), "</li>\n");
  return points.empty() ? points : cat("<ul>\n", points, "</ul>\n");
}

// Nothing for an empty text.
std::string entry_html(const std::string& term, const std::string& text, bool code = false) {
  if (text.empty()) return {};
  return cat("<dt>", pretty(term), "</dt><dd>", code ? "<code>" : "", escaped(text),
             code ? "</code>" : "", "</dd>\n");
}

std::string state_of(const RunRecord& r) {
  if (!r.problem.empty()) return "could not be read: " + r.problem;
  if (r.finished) return "finished";
  if (r.table.expected_units == 0) return "not finished";
  return cat("not finished: ", r.units, " of ", r.table.expected_units, " units");
}

// Each headline with the picture that carries it.
std::string verdict_part(const std::vector<VerdictText>& verdicts,
                         const std::vector<Figure>& figures) {
  std::string out;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const VerdictText& v = verdicts[i];
    const char* tag = out.empty() ? "h1" : "h2 class=\"second\"";
    out += cat("<section class=\"verdict\">\n<p class=\"model\">", escaped(v.model), "</p>\n<", tag,
               ">", pretty(v.headline), "</", std::string(tag, 2), ">\n");
    for (const Figure& f : figures) {
      if (f.verdict == i) out += to_html(f, true);
    }
    out += list_html(v.sentences);
    std::string steps;
    for (const NextStep& step : v.next) steps += entry_html(step.what, step.command, true);
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
  DataTable table{.caption = "All methods",
                  .header = {"method", "run", "good to", "cost inside the window",
                             "KL from unmodified", "why it ends there"},
                  .text_columns = 3,
                  .text_at_end = true};
  std::size_t runs = 0;
  for (const RunRecord& record : records) {
    const eval::ResultTable& r = record.table;
    // The headline says why.
    if (std::ranges::none_of(r.verdicts, [](const eval::Verdict& v) { return v.judged; })) continue;
    ++runs;
    for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
      const eval::Verdict& v = r.verdicts[i];
      const eval::Estimate cost = v.cost.percent();
      const bool has_cost = cost.n > 0 && !r.methods[i].untouched;
      table.rows.push_back(
          {v.method, record.name,
           !v.judged                ? "no verdict"
           : v.good_to == 0         ? "window"
           : r.methods[i].untouched ? length_text(v.good_to)
                                    : length_text(v.good_to) + (v.to_the_end ? " (longest)" : ""),
           has_cost ? signed_percent(cost) : "",
           v.divergence.n > 0 ? significant(v.divergence.value, 3) : "", v.reason});
    }
  }
  if (!find_by(table.rows, [](const auto& row) { return !row.back().empty(); })) {
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
    DataTable table{.caption = cat(record.name, ": wrong answers, longest texts first"),
                    .header = {"method", "length", "depth", "expected", "answer"},
                    .text_columns = 5};
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
    out += list_html(search_text(record.search));
    const DataTable proof = proof_table(record);
    if (!proof.rows.empty()) out += table_html(proof);
  }
  return out;
}

DataTable cost_table(const std::vector<RunRecord>& records) {
  DataTable table{
      .caption = "Cost of the runs",
      .header = {"run", "engine", "tokens", "seconds", "tokens per second", "peak memory"},
      .text_columns = 2};
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
  std::vector<std::string> ids;
  const std::size_t all = run[key].size();
  for (std::size_t i = 0; i < std::min(all, kTextsNamed); ++i) {
    ids.push_back(text_at(run[key][i], "id"));
  }
  std::erase(ids, "");
  return cat(joined(ids, ", "), all > kTextsNamed ? cat(" and ", all - kTextsNamed, " more") : "");
}

std::string provenance_part(const std::vector<RunRecord>& records) {
  std::string out;
  for (const RunRecord& r : records) {
    out += cat("<h3>", escaped(r.name), "</h3>\n<dl>");
    const auto put = [&](const char* term, const std::string& text, bool code = false) {
      out += entry_html(term, text, code);
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
      const auto plan = [](const RecordedMethod& m) { return cat(m.method, " ", m.plan); };
      put("plan digests", joined(mapped(r.methods, plan), ", "), true);
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
  for (const ordered_json& term : ordered_json::parse(embedded::terms_json)) {
    const auto uses = [&](const RunRecord& r) {
      return r.problem.empty() && is_of(r, term.at("of"));
    };
    if (find_by(records, uses)) out += entry_html(term.at("term"), term.at("meaning"));
  }
  return cat("<details class=\"terms\"><summary>What the terms mean</summary>\n<dl>\n", out,
             "</dl></details>\n");
}

std::string lead_of(const std::vector<RunRecord>& records) {
  std::vector<std::string> models;
  for (const RunRecord& r : records) {
    if (!r.problem.empty()) continue;
    if (!has(models, r.model)) models.push_back(r.model);
  }
  return cat("report", models.empty() ? "" : " on ", escaped(joined(models, ", ")), ", from ",
             records.size(), records.size() == 1 ? " run" : " runs");
}

}  // namespace

std::string report_page(const std::vector<RunRecord>& records) {
  std::vector<Figure> figures = figures_of(records);
  const std::vector<VerdictText> verdicts = verdicts_of(records);
  // Without perplexity the first picture carries the headline.
  const bool pictured = find_by(figures, [](const Figure& f) { return f.verdict.has_value(); });
  if (!pictured && verdicts.size() == 1 && !figures.empty()) figures.front().verdict = 0;
  std::string body = verdict_part(verdicts, figures) + state_part(records);
  const DataTable methods = method_table(records);
  if (!methods.rows.empty()) body += table_html(methods);
  body += legend_part(records);

  const std::vector<TaskTable> tables = tables_of(records);
  std::vector<std::string> sections;
  const auto remember = [&](const std::string& section) {
    if (!has(sections, section)) sections.push_back(section);
  };
  for (const Figure& f : figures) remember(f.section);
  for (const TaskTable& t : tables) remember(t.section);
  for (const std::string& section : sections) {
    std::string lines, maps;
    const auto here = [&](const Figure& f) { return f.section == section && !f.verdict; };
    // Lines go two by two; of an odd number the first takes the whole width.
    bool alone = false;
    for (const Figure& f : figures) alone ^= here(f) && !f.is_map();
    for (const Figure& f : figures) {
      if (!here(f)) continue;
      const bool wide = !f.is_map() && std::exchange(alone, false);
      (f.is_map() || wide ? maps : lines) += to_html(f, wide);
    }
    std::string shown;
    for (const TaskTable& t : tables) {
      if (t.section == section) shown += table_html(t.table);
    }
    const std::string search = section == kSearchSection ? search_part(records) : "";
    if (lines.empty() && maps.empty() && shown.empty() && search.empty()) continue;
    body += cat("<h2>", escaped(section), "</h2>\n", maps, search);
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
  return to_page("mrrope report", lead_of(records), body);
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
  ordered_json runs = ordered_json::array(), rows = ordered_json::array();
  for (const RunRecord& r : records) {
    runs.push_back(
        {{"run", r.name},
         {"folder", r.folder},
         {"task", r.task},
         {"model", r.model},
         {"state", r.problem.empty() ? r.finished ? "finished" : "unfinished" : "unreadable"},
         {"units", r.units},
         {"problem", r.problem}});
    for (const ordered_json& row : ordered_json(eval::to_json(r.table).at("results"))) {
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
