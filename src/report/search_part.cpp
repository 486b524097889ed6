// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "report/report.h"

namespace mrrope::report {

namespace {

constexpr int kChosen = 8;  // its colour: no published method has it

[[noreturn]] void refuse_results(const std::string& what) {
  throw Error(ErrorKind::corrupt, cat("results.json is damaged: ", what),
              "rerun the command: what is in the journal is not computed twice");
}

double number_at(const ordered_json& object, const char* key) {
  const double value = value_at(object, key);
  if (!std::isfinite(value)) refuse_results(cat("\"", key, "\" is not a number"));
  return value;
}

const ordered_json& list_at(const ordered_json& object, const char* key) {
  constexpr std::size_t kMax = 100000;  // entries
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) refuse_results(cat("\"", key, "\" is not a list"));
  if (it->size() > kMax) refuse_results(cat("\"", key, "\" has ", it->size(), " entries"));
  return *it;
}

bool is_true(const ordered_json& object, const char* key) {
  return object.contains(key) && object.at(key) == true;
}

const ordered_json& object_at(const ordered_json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_object()) refuse_results(cat("\"", key, "\" is not an object"));
  return *it;
}

// A list of objects.
const ordered_json& objects_at(const ordered_json& object, const char* key) {
  const ordered_json& list = list_at(object, key);
  for (const ordered_json& entry : list) {
    if (!entry.is_object()) refuse_results(cat("an entry of \"", key, "\" is not an object"));
  }
  return list;
}

const ordered_json& chosen_plan(const ordered_json& search) {
  return search.at("trials").at(search.at("chosen").get<std::size_t>());
}

// The rows of the proof, the found plan first.
std::vector<ordered_json> proof_rows(const ordered_json& search) {
  if (!search.contains("proof")) return {};
  std::vector<ordered_json> rows = {object_at(search.at("proof"), "tuned")};
  for (const ordered_json& row : objects_at(search.at("proof"), "published")) rows.push_back(row);
  return rows;
}

// Dots without a line between them: a gap after each.
Series scattered(Series s) {
  const std::vector<ChartPoint> points = std::exchange(s.points, {});
  for (const ChartPoint& p : points) {
    s.points.push_back(p);
    s.points.push_back({p.x, kNothing});
  }
  return by_x(std::move(s));
}

ChartPoint place_of(const ordered_json& plan) {
  return {std::exp(value_at(plan.at("log_perplexity"), "value")),
          value_at(plan.at(eval::kAnswerLoss), "value")};
}

LineChart front_chart(const ordered_json& search) {
  LineChart chart{.title = "Perplexity and retrieval of every fully measured plan",
                  .x = {"perplexity, mean over bands of length"},
                  .y = {"loss of planted answers, nats per token"}};
  Palette palette;
  Series tried{"tried", 0, false, {}};
  std::vector<Series> published;
  for (const ordered_json& plan : search.at("trials")) {
    if (!is_true(plan, "complete")) continue;
    if (text_at(plan, "origin") != "published") {
      tried.points.push_back(place_of(plan));
      continue;
    }
    const std::string name = text_at(plan, "name");
    Series s = palette.series(name.substr(0, name.find(' ')));
    s.name = name;
    s.points = {place_of(plan)};
    published.push_back(scattered(std::move(s)));
  }
  Series front = palette.series("power");
  front.name = "front";
  for (const ordered_json& i : search.at("front")) {
    front.points.push_back(place_of(search.at("trials").at(i.get<std::size_t>())));
  }
  chart.series = {scattered(std::move(tried)), by_x(std::move(front))};
  extend(chart.series, published);
  chart.series.push_back(scattered({"chosen", kChosen, false, {place_of(chosen_plan(search))}}));
  return chart;
}

}  // namespace

ordered_json checked_search(ordered_json results) {
  if (!results.is_object()) refuse_results("it is not an object");
  number_at(results, "weight");
  number_at(results, "passes");
  const std::size_t plans = objects_at(results, "trials").size();
  for (const ordered_json& plan : results.at("trials")) {
    for (const char* key : {"objective", "log_perplexity", eval::kAnswerLoss}) object_at(plan, key);
  }
  const auto check_index = [&](const ordered_json& value) {
    if (value.is_number_unsigned() && value.get<std::size_t>() < plans) return;
    refuse_results("it refers to a plan that does not exist");
  };
  check_index(results.value("chosen", ordered_json()));
  for (const ordered_json& i : list_at(results, "front")) check_index(i);
  if (results.contains("proof")) object_at(results, "proof");
  const std::vector<ordered_json> rows = proof_rows(results);
  for (const ordered_json& row : rows) {
    for (const ordered_json& cell : objects_at(row, "perplexity")) {
      if (count_at(cell, "length") == 0) refuse_results("a length of the proof is not valid");
    }
    if (row.at("perplexity").size() != rows.front().at("perplexity").size()) {
      refuse_results("rows of the proof have different lengths");
    }
  }
  return results;
}

std::vector<Figure> search_figures(const RunRecord& record) {
  const ordered_json& search = record.search;
  if (search.is_null()) return {};
  LineChart chart = front_chart(search);
  return {{kSearchSection, "search-front", chart.title,
           "Left and down is better. No plan beats those on the front in both; the weight decides "
           "which of them is chosen.",
           std::move(chart)}};
}

std::vector<std::string> search_text(const ordered_json& search) {
  std::vector<std::string> out = {cat("Found in ", fixed(number_at(search, "passes"), 1),
                                      " passes among ", search.at("trials").size(), " plans (",
                                      "weight of answers ",
                                      significant(number_at(search, "weight"), 3),
                                      "): ", text_at(chosen_plan(search), "name"), ".")};
  if (!search.contains("proof")) {
    out.push_back("It was not tested on held-out text.");
    return out;
  }
  const ordered_json& proof = search.at("proof");
  const std::vector<ordered_json> rows = proof_rows(search);
  const std::string where =
      cat(rows.size() == 2 ? text_at(rows.back(), "method") : "every published plan", " on ",
          count_at(proof, "documents"), " texts that the search never saw");
  out.push_back(is_true(proof, "better")
                    ? cat("Better than ", where, ".")
                    : cat("Not better than ", where, "; ", text_at(proof, "recommended"),
                          " is the best that is known."));
  for (const ordered_json& row : rows) {
    const std::string against = text_at(row, "against");
    if (!against.empty()) out.push_back(cat(text_at(row, "method"), " ", against, "."));
  }
  return out;
}

DataTable proof_table(const RunRecord& record) {
  DataTable table;
  const std::vector<ordered_json> rows = proof_rows(record.search);
  if (rows.empty()) return table;
  table.caption = cat(record.name, ": perplexity up to each length from the one before, of ",
                      count_at(record.search.at("proof"), "documents"),
                      " held-out documents, how far the found plan is above (percent, paired), and "
                      "the loss of answers in nats per token");
  table.header = {"method"};
  for (const ordered_json& cell : rows.front().at("perplexity")) {
    const std::string length = length_text(count_at(cell, "length"));
    table.header.insert(table.header.end(), {length, length + " %"});
  }
  table.header.push_back("answer loss");
  for (const ordered_json& proved : rows) {
    std::vector<std::string> row = {text_at(proved, "method")};
    for (const ordered_json& cell : proved.at("perplexity")) {
      const double above = value_at(cell, "tuned_above_percent");
      row.push_back(estimate_text({value_at(cell, "value"), value_at(cell, "stderr"), 1}));
      row.push_back(table.rows.empty() || !std::isfinite(above)
                        ? ""
                        : cat(fixed(above, 1), " +- ", fixed(value_at(cell, "paired_stderr"), 1)));
    }
    eval::Estimate loss;
    if (const auto at = proved.find(eval::kAnswerLoss); at != proved.end() && at->is_object()) {
      loss = {value_at(*at, "value"), value_at(*at, "stderr"), 1};
    }
    row.push_back(estimate_text(loss));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace mrrope::report
