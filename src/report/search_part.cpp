// SPDX-License-Identifier: Apache-2.0
#include "report/search_part.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/json_fields.h"
#include "report/verdict_text.h"

namespace mrrope::report {

using nlohmann::ordered_json;

namespace {

constexpr int kChosen = 8;  // its colour: no published method has it

// {value, stderr, n}
eval::Estimate estimate_at(const ordered_json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_object()) refuse_results(cat("a plan has no \"", key, "\""));
  return {value_at(*it, "value"), value_at(*it, "stderr"), std::size_t(count_at(*it, "n"))};
}

std::size_t index_at(const ordered_json& value, std::size_t size) {
  if (!value.is_number_unsigned() || value.get<std::size_t>() >= size) {
    refuse_results("it refers to a plan that does not exist");
  }
  return value.get<std::size_t>();
}

ProofLine line_of(const ordered_json& row) {
  if (!row.is_object()) refuse_results("a row of the proof is not an object");
  ProofLine line;
  line.method = text_at(row, "method");
  line.against = text_at(row, "against");
  for (const ordered_json& cell : list_at(row, "perplexity")) {
    if (!cell.is_object()) refuse_results("a cell of the proof is not an object");
    const double length = number_at(cell, "length");
    if (!(length > 0 && length < 9e15)) refuse_results("a length of the proof is not valid");
    line.cells.push_back({std::int64_t(length),
                          {value_at(cell, "value"), value_at(cell, "stderr"), 1},
                          value_at(cell, "tuned_above_percent"),
                          value_at(cell, "paired_stderr")});
  }
  if (const auto needles = row.find("needles"); needles != row.end() && needles->is_object()) {
    line.needles = {value_at(*needles, "found"), value_at(*needles, "stderr"),
                    std::size_t(count_at(*needles, "n"))};
  }
  return line;
}

// Dots without a line between them: a gap after each.
Series scattered(Series s, std::vector<ChartPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  for (const ChartPoint& p : points) {
    s.points.push_back(p);
    s.points.push_back({p.x, kNothing});
  }
  return s;
}

ChartPoint place_of(const SearchedPlan& p) {
  return {std::exp(p.log_perplexity.value), p.retrieval.value};
}

LineChart front_chart(const RecordedSearch& search) {
  LineChart chart;
  chart.title = "Perplexity and retrieval of every fully measured plan";
  chart.x = {"perplexity, mean over bands of length", Spacing::linear, false};
  chart.y = {"log-probability of planted answers, per token", Spacing::linear, false};
  Palette palette;
  std::vector<ChartPoint> tried;
  for (const SearchedPlan& p : search.plans) {
    if (p.complete && p.origin != "published") tried.push_back(place_of(p));
  }
  chart.series.push_back(scattered({"tried", 0, false, {}}, tried));
  Series front = palette.series("power");
  front.name = "front";
  for (const std::size_t i : search.front) front.points.push_back(place_of(search.plans[i]));
  std::stable_sort(front.points.begin(), front.points.end(),
                   [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  chart.series.push_back(std::move(front));
  for (const SearchedPlan& p : search.plans) {
    if (!p.complete || p.origin != "published") continue;
    Series s = palette.series(p.name.substr(0, p.name.find(' ')));
    s.name = p.name;
    chart.series.push_back(scattered(std::move(s), {place_of(p)}));
  }
  chart.series.push_back(
      scattered({"chosen", kChosen, false, {}}, {place_of(search.plans[search.chosen])}));
  return chart;
}

LineChart path_chart(const RecordedSearch& search) {
  LineChart chart;
  chart.title = "Best plan so far";
  chart.x = {"passes", Spacing::linear, false, {0, search.passes}};
  chart.y = {"objective: mean log-perplexity minus weighted answers", Spacing::linear, false};
  Series best = Palette().series("power");
  best.name = "best";
  for (std::size_t i = 0; i < search.path.size(); ++i) {
    const auto& [passes, objective] = search.path[i];
    if (i > 0) best.points.push_back({passes, search.path[i - 1].second});
    best.points.push_back({passes, objective});
  }
  if (!search.path.empty()) {
    best.points.push_back(
        {std::max(search.passes, search.path.back().first), search.path.back().second});
  }
  chart.series.push_back(std::move(best));
  return chart;
}

LineChart factor_chart(const RecordedSearch& search) {
  LineChart chart;
  chart.title = "Factors of the chosen plan";
  chart.x = {"pair, from fast to slow", Spacing::linear, false};
  chart.y = {"divisor of the angle per position", Spacing::log, false};
  chart.dots = false;
  Palette palette;
  for (const auto& [name, factors] : search.factors) {
    Series s = palette.series(name);
    if (name == "chosen") s.colour = kChosen;
    for (std::size_t i = 0; i < factors.size(); ++i) s.points.push_back({double(i), factors[i]});
    chart.series.push_back(std::move(s));
  }
  return chart;
}

}  // namespace

RecordedSearch search_from_json(const ordered_json& results) {
  if (!results.is_object()) refuse_results("it is not an object");
  RecordedSearch out;
  out.weight = number_at(results, "weight");
  out.passes = number_at(results, "passes");
  for (const ordered_json& entry : list_at(results, "trials")) {
    if (!entry.is_object()) refuse_results("a plan is not an object");
    SearchedPlan plan;
    plan.name = text_at(entry, "name");
    plan.origin = text_at(entry, "origin");
    plan.complete = entry.contains("complete") && entry["complete"] == true;
    plan.objective = estimate_at(entry, "objective");
    plan.log_perplexity = estimate_at(entry, "log_perplexity");
    plan.retrieval = estimate_at(entry, "retrieval");
    out.plans.push_back(std::move(plan));
  }
  out.chosen = index_at(results.value("chosen", ordered_json()), out.plans.size());
  for (const ordered_json& i : list_at(results, "front")) {
    out.front.push_back(index_at(i, out.plans.size()));
  }
  for (const ordered_json& step : list_at(results, "path")) {
    if (!step.is_object()) refuse_results("a step of the path is not an object");
    out.path.emplace_back(number_at(step, "passes"), number_at(step, "objective"));
  }
  const ordered_json factors = results.value("factors", ordered_json::object());
  for (const char* name : {"chosen", "pro", "yarn"}) {
    std::vector<double> list;
    for (const ordered_json& f : list_at(factors, name)) {
      if (!f.is_number()) refuse_results("a factor is not a number");
      list.push_back(f.get<double>());
    }
    out.factors.emplace_back(name, std::move(list));
  }
  const auto proof = results.find("proof");
  if (proof == results.end()) return out;
  if (!proof->is_object() || !proof->contains("tuned"))
    refuse_results("the proof has no \"tuned\"");
  out.proved = true;
  out.better = proof->contains("better") && (*proof)["better"] == true;
  out.recommended = text_at(*proof, "recommended");
  out.documents = std::size_t(count_at(*proof, "documents"));
  out.proof.push_back(line_of((*proof)["tuned"]));
  for (const ordered_json& row : list_at(*proof, "published")) {
    out.proof.push_back(line_of(row));
    if (out.proof.back().cells.size() != out.proof.front().cells.size()) {
      refuse_results("rows of the proof have different lengths");
    }
  }
  return out;
}

std::vector<Figure> search_figures(const RunRecord& record) {
  if (!record.search) return {};
  const RecordedSearch& search = *record.search;
  std::vector<Figure> out;
  const auto add = [&](const char* file, const char* note, LineChart chart) {
    out.push_back({kSearchSection, file, chart.title, note, std::move(chart)});
  };
  add("search-front",
      "Left and up is better. No plan beats those on the front in both; the weight decides which "
      "of them is chosen.",
      front_chart(search));
  add("search-path",
      "Only plans measured on the whole search set count. One pass reads that set once at the "
      "wanted length.",
      path_chart(search));
  add("search-factors", "An elastic plan is shown at its last rung.", factor_chart(search));
  return out;
}

std::vector<std::string> search_text(const RecordedSearch& search) {
  const SearchedPlan& chosen = search.plans[search.chosen];
  std::vector<std::string> out = {cat("Found in ", fixed(search.passes, 1), " passes among ",
                                      search.plans.size(), " plans (", "weight of answers ",
                                      significant(search.weight, 3), "): ", chosen.name, ".")};
  if (!search.proved) {
    out.push_back("It was not tested on held-out text.");
  } else if (search.better) {
    out.push_back(cat("Better than every published plan on ", search.documents,
                      " documents that the search never saw."));
  } else {
    out.push_back(cat("Not better than every published plan on ", search.documents,
                      " documents that the search never saw; of those, ", search.recommended,
                      " is recommended."));
  }
  for (const ProofLine& line : search.proof) {
    if (!line.against.empty()) out.push_back(cat(line.method, " ", line.against, "."));
  }
  return out;
}

DataTable proof_table(const RunRecord& record) {
  DataTable table;
  if (!record.search || record.search->proof.empty()) return table;
  const RecordedSearch& search = *record.search;
  table.caption = cat(record.name, ": perplexity of the first N tokens of ", search.documents,
                      " held-out documents, how far the found plan is above (percent, paired), and "
                      "needles found");
  table.header = {"method"};
  for (const auto& cell : search.proof.front().cells) {
    table.header.push_back(length_text(cell.length));
    table.header.push_back(cat(length_text(cell.length), " %"));
  }
  table.header.push_back("needles %");
  for (std::size_t r = 0; r < search.proof.size(); ++r) {
    const ProofLine& line = search.proof[r];
    std::vector<std::string> row = {line.method};
    for (const auto& cell : line.cells) {
      row.push_back(estimate_text(cell.perplexity));
      row.push_back(r == 0 || !std::isfinite(cell.above)
                        ? ""
                        : cat(fixed(cell.above, 1), " +- ", fixed(cell.above_error, 1)));
    }
    eval::Estimate found = line.needles;
    found.value *= 100;
    found.error *= 100;
    row.push_back(estimate_text(found));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace mrrope::report
