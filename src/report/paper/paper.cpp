// SPDX-License-Identifier: Apache-2.0
#include "report/paper/paper.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "report/embedded.h"
#include "report/verdict_words.h"

namespace mrrope::report {

using nlohmann::ordered_json;

namespace {

const ordered_json* misprint_at(const ordered_json& table, const std::string& method,
                                const ordered_json& column) {
  if (!table.contains("misprints")) return nullptr;
  for (const ordered_json& m : table.at("misprints")) {
    if (m.value("method", "") == method && m.contains("column") && m.at("column") == column) {
      return &m;
    }
  }
  return nullptr;
}

// Letters and digits alone, in lower case.
std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += char(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

// The entry of paper.json for the model of this name, whatever its window; nullptr: none.
const ordered_json* model_named(const RunRecord& record) {
  for (const ordered_json& model : paper().at("models")) {
    for (const ordered_json& part : model.at("match")) {
      if (plain(record.model).find(part.get<std::string>()) != std::string::npos) return &model;
    }
  }
  return nullptr;
}

const ordered_json* model_of(const ordered_json& table) {
  for (const ordered_json& model : paper().at("models")) {
    if (model.at("name") == table.value("model", "")) return &model;
  }
  return nullptr;
}

template <typename A, typename B>
std::string differs(const char* what, const A& here, const B& there) {
  return cat(what, " ", here, " (paper: ", there, ")");
}

// Tasks of a mean that a run has at one length.
std::vector<std::string> tasks_of_mean(const RunRecord& record, const ResultRow& mean) {
  const std::string prefix = mean.task + "/";
  std::vector<std::string> tasks;
  for (const ResultRow& row : record.rows) {
    if (row.method == mean.method && row.metric == mean.metric && row.length == mean.length &&
        row.estimate.n > 0 && row.task.rfind(prefix, 0) == 0) {
      tasks.push_back(row.task.substr(prefix.size()));
    }
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

// The row of a run that comes closest to a column: of the paper's length if it has that.
const ResultRow* row_for(const RunRecord& record, const ordered_json& table,
                         const std::string& method, const ordered_json& column) {
  const std::string task = paper_task(table, column);
  const std::int64_t length =
      column.is_number() ? column.get<std::int64_t>() : table.value("length", std::int64_t(0));
  const ResultRow* found = nullptr;
  for (const ResultRow& row : record.rows) {
    if (row.method != method || row.depth || row.task != task || row.estimate.n == 0 ||
        !std::isfinite(row.estimate.value) || row.metric != table.value("result", "")) {
      continue;
    }
    if (column.is_number() && row.length != length) continue;
    if (row.length == length) return &row;
    if (found == nullptr || row.length > found->length) found = &row;
  }
  return found;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

}  // namespace

const ordered_json& paper() {
  static const ordered_json parsed = ordered_json::parse(embedded::paper_json);
  return parsed;
}

const ordered_json* paper_table(const std::string& id, const ordered_json& of) {
  for (const char* list : {"tables", "figures"}) {
    for (const ordered_json& table : of.at(list)) {
      if (table.at("id") == id) return &table;
    }
  }
  return nullptr;
}

std::string paper_cell(const ordered_json& table, const ordered_json& row, std::size_t column) {
  const ordered_json& value = row.at("values").at(column);
  std::string text = value.is_number() ? number(value.get<double>()) : value.get<std::string>();
  if (const ordered_json* m =
          misprint_at(table, row.at("method").get<std::string>(), table.at("columns").at(column))) {
    text += cat(" (misprint; ", number(m->at("meant").get<double>()), " meant)");
  }
  return text;
}

std::string paper_task(const ordered_json& table, const ordered_json& column) {
  auto task = table.at("task").get<std::string>();
  if (column.is_number() || column == "average") return task;
  return cat(task, "/", column.get<std::string>());
}

std::optional<double> paper_value(const ordered_json& table, const std::string& method,
                                  const ordered_json& column, bool as_printed) {
  if (!table.contains("rows")) return std::nullopt;
  const ordered_json& columns = table.at("columns");
  const auto at = std::find(columns.begin(), columns.end(), column);
  if (at == columns.end()) return std::nullopt;
  for (const ordered_json& row : table.at("rows")) {
    if (row.at("method") != method) continue;
    const ordered_json* misprint = misprint_at(table, method, column);
    if (misprint != nullptr && !as_printed) return misprint->at("meant").get<double>();
    const ordered_json& value = row.at("values").at(std::size_t(at - columns.begin()));
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }
  return std::nullopt;
}

std::string paper_model(const RunRecord& record) {
  const ordered_json* model = model_named(record);
  if (model == nullptr || model->at("window").get<std::int64_t>() != record.window) return {};
  return model->at("name").get<std::string>();
}

std::vector<std::string> setting_differences(const RunRecord& record, const ordered_json& table,
                                             const std::string& method) {
  std::vector<std::string> out;
  const ordered_json* model = model_of(table);
  const bool other_model = model != nullptr && model_named(record) != model;
  if (other_model) {
    out.push_back(differs("model", record.model, model->at("name").get<std::string>()));
  } else if (model != nullptr && model->at("window").get<std::int64_t>() != record.window) {
    out.push_back(differs("window", length_text(record.window),
                          length_text(model->at("window").get<std::int64_t>())));
  }
  for (const RecordedMethod& m : record.methods) {
    if (m.name != method || !m.plan || model == nullptr || other_model) continue;
    const Geometry& g = m.plan->geometry();
    if (g.base != model->at("base").get<double>()) {
      out.push_back(differs("base", g.base, model->at("base").get<double>()));
    }
    try {
      Extension usual;
      usual.method = m.plan->extension().method;
      usual.scale = m.plan->extension().scale;
      if (usual.method != method || !m.plan->same_numbers(make_plan(g, usual))) {
        out.push_back(cat("other parameters of ", method, " (paper: its defaults)"));
      }
    } catch (const Error&) {
      out.push_back(cat("a plan of its own under the name ", method));
    }
  }
  for (const ResultRow& row : record.rows) {
    if (row.method != method || !table.contains("scale")) continue;
    const double scale = table.at("scale").get<double>();
    if (row.scale != scale) out.push_back(differs("scale", row.scale, scale));
    break;
  }
  if (record.sweep && table.contains("length")) {
    const auto length = table.at("length").get<std::int64_t>();
    if (record.sweep->length != length) {
      out.push_back(differs("length", length_text(record.sweep->length), length_text(length)));
    }
  }
  if (table.contains("form") && record.needle) {
    const auto form = table.at("form").get<std::string>();
    if (record.needle->form != form) out.push_back(differs("form", record.needle->form, form));
  }
  return out;
}

std::optional<OwnCell> own_cell(const RunRecord& record, const ordered_json& table,
                                const std::string& method, const ordered_json& column) {
  const ResultRow* row = row_for(record, table, method, column);
  if (row == nullptr) return std::nullopt;
  OwnCell cell{row->estimate, setting_differences(record, table, method), ""};
  const std::int64_t length = table.value("length", row->length);
  if (!column.is_number() && row->length != length) {
    cell.differences.push_back(differs("length", length_text(row->length), length_text(length)));
  }
  std::size_t tasks = 1;
  if (table.contains("tasks") && row->task == table.at("task").get<std::string>()) {
    auto wanted = table.at("tasks").get<std::vector<std::string>>();
    std::sort(wanted.begin(), wanted.end());
    tasks = wanted.size();
    const std::vector<std::string> own = tasks_of_mean(record, *row);
    if (own.size() != wanted.size()) {
      cell.differences.push_back(differs("mean of", cat(own.size(), " tasks"), wanted.size()));
    } else if (own != wanted) {
      cell.differences.push_back("mean of other tasks");
    }
  }
  if (table.contains("samples") && table.at("samples").is_number()) {
    const std::size_t n = tasks * table.at("samples").get<std::size_t>();
    if (row->estimate.n != n) {
      cell.samples = cat(row->estimate.n, " samples (paper: ", n, ")");
    }
  }
  return cell;
}

DataTable compared_with_table(const ordered_json& table,
                              const std::vector<const RunRecord*>& records) {
  DataTable shown;
  const bool stated = table.contains("samples") && table.at("samples").is_number();
  shown.caption =
      cat(table.at("model").get<std::string>(), ", ", table.at("task").get<std::string>(), " (",
          table.at("metric").get<std::string>(), "), scale ", table.at("scale").get<double>(),
          "; the paper's ", table.at("place").get<std::string>(),
          stated ? "" : "; the paper does not say how many samples it took");
  shown.header = {"method", "from"};
  shown.text_columns = 2;
  for (const ordered_json& column : table.at("columns")) {
    shown.header.push_back(column.is_number() ? length_text(column.get<std::int64_t>())
                                              : column.get<std::string>());
  }
  const std::size_t columns = table.at("columns").size();
  const double unit = table.value("percent", false) ? 100 : 1;
  std::vector<std::string> notes;  // of each row: what differs
  for (const ordered_json& row : table.at("rows")) {
    const auto method = row.at("method").get<std::string>();
    std::vector<std::string> printed = {method, "paper"};
    for (std::size_t i = 0; i < columns; ++i) printed.push_back(paper_cell(table, row, i));
    shown.rows.push_back(std::move(printed));
    notes.emplace_back();
    for (const RunRecord* record : records) {
      // One line for each set of differences: lengths may have different numbers of samples.
      std::vector<std::pair<std::string, std::vector<std::string>>> lines;
      for (std::size_t i = 0; i < columns; ++i) {
        std::optional<OwnCell> cell = own_cell(*record, table, method, table.at("columns")[i]);
        if (!cell) continue;
        if (!cell->samples.empty()) cell->differences.push_back(cell->samples);
        const std::string why = joined(cell->differences);
        auto line = std::find_if(lines.begin(), lines.end(),
                                 [&](const auto& entry) { return entry.first == why; });
        if (line == lines.end()) {
          lines.emplace_back(why, std::vector<std::string>(columns));
          line = std::prev(lines.end());
        }
        cell->value.value *= unit;
        cell->value.error *= unit;
        line->second[i] = estimate_text(cell->value);
      }
      for (const auto& [why, cells] : lines) {
        const std::string name = record->name.empty() ? "" : cat(" (", record->name, ")");
        shown.rows.push_back({method, cat(why.empty() ? "yours" : "not alike", name)});
        shown.rows.back().insert(shown.rows.back().end(), cells.begin(), cells.end());
        notes.push_back(why);
      }
    }
  }
  if (std::any_of(notes.begin(), notes.end(), [](const auto& n) { return !n.empty(); })) {
    shown.header.push_back("differs in");
    shown.text_at_end = true;
    for (std::size_t i = 0; i < notes.size(); ++i) shown.rows[i].push_back(notes[i]);
  }
  return shown;
}

std::vector<DataTable> compared_with_paper(const std::vector<RunRecord>& records) {
  std::vector<DataTable> out;
  for (const ordered_json& table : paper().at("tables")) {
    std::vector<const RunRecord*> same;
    for (const RunRecord& r : records) {
      const ordered_json* model = r.problem.empty() ? model_named(r) : nullptr;
      if (model != nullptr && model->at("name") == table.at("model")) same.push_back(&r);
    }
    if (!same.empty()) out.push_back(compared_with_table(table, same));
  }
  return out;
}

}  // namespace mrrope::report
