// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/text.h"
#include "mrrope/version.h"
#include "report/charts/chart.h"
#include "report/page/html_page.h"
#include "serve/api/service.h"
#include "serve/serve_files.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxCurves = 7;
constexpr std::int64_t kAnswer = 1024;  // tokens of an answer where nothing else is asked for

std::string factor_figure(const Ladder& ladder) {
  report::LineChart chart;
  chart.title = "Factor that divides the angle of each pair";
  chart.x.label = "pair, fast to slow";
  chart.y.label = "factor";
  chart.y.spacing = report::Spacing::log;
  chart.dots = false;
  // As many rungs as a chart can show, including the first and the last.
  const std::size_t rungs = ladder.rungs().size();
  const std::size_t curves = std::min(rungs, kMaxCurves);
  for (std::size_t i = 0; i < curves; ++i) {
    const Rung& rung = ladder.rungs()[curves == 1 ? 0 : i * (rungs - 1) / (curves - 1)];
    const report::Series series{
        cat("up to ", length_text(rung.length)), int(i) % report::kColours, false, {}};
    chart.series.push_back(with_values(series, rung.plan.factor()));
  }
  const std::string note =
      rungs > kMaxCurves ? cat(kMaxCurves, " of ", rungs, " rungs are shown.") : "";
  return to_html(report::Figure{"", "factors", chart.title, note, chart});
}

std::string rung_table(const Ladder& ladder) {
  std::string rows;
  for (std::size_t i = 0; i < ladder.rungs().size(); ++i) {
    const Rung& rung = ladder.rungs()[i];
    rows +=
        cat("<tr data-rung=\"", i, "\"><th scope=\"row\">", i + 1, "</th><td class=\"n\">",
            rung.length, "</td><td class=\"n\">", significant(rung.plan.extension().scale, 4),
            "x</td><td class=\"n\">", significant(rung.plan.attention_scale(), 4), "</td></tr>\n");
  }
  return cat(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Rungs\"><table "
      "id=\"ladder\"><thead><tr><th scope=\"col\">rung</th><th scope=\"col\" class=\"n\">up to</th>"
      "<th scope=\"col\" class=\"n\">scale</th><th scope=\"col\" class=\"n\">attention "
      "scale</th></tr>"
      "</thead><tbody>\n",
      rows, "</tbody></table></div>\n");
}

}  // namespace

std::string serve_page(const Service& service) {
  const Ladder& ladder = service.ladder;
  const ServerSettings& settings = service.settings;
  const std::int64_t window = service.model.facts().geometry.train_length;
  const bool chat = service.chat_error.empty();
  // What the picture of the context needs of each rung: where it ends, its scale, the first token
  // that is near, and what the distance to far tokens is divided by in the slowest pair.
  std::string rungs;
  for (const Rung& rung : ladder.rungs()) {
    rungs +=
        cat(rungs.empty() ? "" : ";", rung.length, ",", significant(rung.plan.extension().scale, 6),
            ",", rung.border, ",", significant(rung.plan.factor().back(), 6));
  }
  const std::map<std::string, std::string> values = {
      {"MODEL", report::escaped(settings.model_name)},
      {"METHOD", report::escaped(settings.method)},
      {"CONTEXT", std::to_string(settings.context)},
      {"CONTEXT_TEXT", length_text(settings.context)},
      {"WINDOW", std::to_string(window)},
      {"WINDOW_TEXT", length_text(window)},
      {"RUNGS", std::to_string(ladder.rungs().size())},
      {"RUNG_LIST", rungs},
      {"NEAR", ladder.near() ? "yes" : "no"},
      {"TOKENS", std::to_string(std::min(settings.context, kAnswer))},
      {"MODE", chat ? "chat" : "completion"},
      {"PLACEHOLDER", chat ? "Ask something" : "Start a text for the model to continue"},
      {"LADDER", rung_table(ladder)},
      {"FIGURE", factor_figure(ladder)},
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
