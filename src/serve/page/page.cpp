// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "core/ladder_text.h"
#include "mrrope/version.h"
#include "report/charts/chart.h"
#include "report/page/html_page.h"
#include "serve/api/service.h"
#include "serve/serve_files.h"

namespace mrrope::serve {

namespace {

constexpr std::int64_t kAnswer = 1024;  // tokens of an answer where nothing else is asked for

// The last rung of each plan: with a near part most rungs differ in their border alone.
std::vector<std::size_t> last_rungs(const Ladder& ladder) {
  const std::vector<Rung>& rungs = ladder.rungs();
  std::vector<std::size_t> last;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (i + 1 == rungs.size() || !rungs[i].plan.same_numbers(rungs[i + 1].plan)) last.push_back(i);
  }
  return last;
}

std::string plan_table(const Ladder& ladder, const std::vector<std::size_t>& last) {
  if (ladder_summary(ladder) == "unmodified") return "";
  const bool attends = std::ranges::any_of(
      last, [&](std::size_t i) { return ladder.rungs()[i].plan.attention_scale() != 1; });
  std::string rows;
  for (const std::size_t i : last) {
    const Rung& rung = ladder.rungs()[i];
    rows += cat("<tr data-rung=\"", i, "\"><th scope=\"row\">up to ", rung.length,
                "</th><td class=\"n\">", significant(rung.plan.extension().scale, 4), "x</td>");
    if (attends) {
      rows += cat("<td class=\"n\">", significant(rung.plan.attention_scale(), 4), "</td>");
    }
    rows += "</tr>\n";
  }
  return cat(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The plan\"><table "
      "id=\"ladder\"><thead><tr><th scope=\"col\">tokens</th><th scope=\"col\" "
      "class=\"n\">scale</th>",
      attends ? "<th scope=\"col\" class=\"n\">attention scale</th>" : "", "</tr></thead><tbody>\n",
      rows, "</tbody></table></div>\n");
}

// Those of the glossary that the page uses.
std::string words() {
  std::string out;
  for (const auto& term : nlohmann::json::parse(embedded::terms_json)) {
    if (!term.contains("chat")) continue;
    out += cat("<dt>", report::escaped(term.at("term").get<std::string>()), "</dt><dd>",
               report::escaped(term.at("meaning").get<std::string>()), "</dd>\n");
  }
  return out;
}

}  // namespace

std::string serve_page(const Service& service) {
  const Ladder& ladder = service.ladder;
  const ServerSettings& settings = service.settings;
  const std::int64_t window = service.model.facts().geometry.train_length;
  const bool chat = service.chat_error.empty();
  const std::vector<std::size_t> last = last_rungs(ladder);
  // What the picture of the context needs of each rung: where it ends, its scale, the first token
  // that is near, and what the distance to far tokens is divided by in the slowest pair.
  const auto rung_text = [](const Rung& rung) {
    return cat(rung.length, ",", significant(rung.plan.extension().scale, 6), ",", rung.border, ",",
               significant(rung.plan.factor().back(), 6));
  };
  const std::string rungs = joined(mapped(ladder.rungs(), rung_text), ";");
  const std::map<std::string, std::string> values = {
      {"MODEL", report::escaped(settings.model_name)},
      {"METHOD", report::escaped(settings.method)},
      {"CONTEXT", std::to_string(settings.context)},
      {"CONTEXT_TEXT", tokens_text(settings.context)},
      {"SUMMARY", ladder_summary(ladder)},
      {"WINDOW", std::to_string(window)},
      {"RUNGS", std::to_string(ladder.rungs().size())},
      {"RUNG_LIST", rungs},
      {"NEAR", ladder.near() ? "yes" : "no"},
      {"TOKENS", std::to_string(std::min(settings.context, kAnswer))},
      {"MODE", chat ? "chat" : "completion"},
      {"PLACEHOLDER", chat ? "Ask something" : "Start a text for the model to continue"},
      {"LADDER", plan_table(ladder, last)},
      {"WORDS", words()},
      {"VERSION", report::escaped(version())}};
  const std::string source = embedded::serve_html;
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t open = source.find("{{", at);
    const std::size_t close = source.find("}}", open);
    if (open == std::string::npos || close == std::string::npos) return out + source.substr(at);
    out += source.substr(at, open - at) + values.at(source.substr(open + 2, close - open - 2));
    at = close + 2;
  }
}

std::string serve_style() {
  return cat(report::chart_style(), embedded::page_css, embedded::serve_css);
}

std::string serve_script() {
  return cat(embedded::page_js, embedded::markdown_js, embedded::context_js, embedded::chats_js,
             embedded::serve_js);
}

}  // namespace mrrope::serve
