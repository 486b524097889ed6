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

// The user's number for a column of the paper, in the paper's unit.
std::optional<eval::Estimate> own_value(const RunRecord& record, const ordered_json& table,
                                        const std::string& method, const ordered_json& column) {
  const std::string task = paper_task(table, column);
  const double unit = table.value("percent", false) ? 100 : 1;
  for (const ResultRow& row : record.rows) {
    if (row.method != method || row.depth || row.scale != table.at("scale").get<double>() ||
        row.task != task || row.metric != table.at("result").get<std::string>()) {
      continue;
    }
    if (column.is_number() && row.length != column.get<std::int64_t>()) continue;
    eval::Estimate estimate = row.estimate;
    estimate.value *= unit;
    estimate.error *= unit;
    return estimate;
  }
  return std::nullopt;
}

}  // namespace

const ordered_json& paper() {
  static const ordered_json parsed = ordered_json::parse(embedded::paper_json);
  return parsed;
}

const ordered_json* paper_table(const std::string& id) {
  for (const ordered_json& table : paper().at("tables")) {
    if (table.at("id") == id) return &table;
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
  const auto task = table.at("task").get<std::string>();
  if (column.is_number() || column == "average") return task;
  return cat(task, "/", column.get<std::string>());
}

std::optional<double> paper_value(const std::string& id, const std::string& method,
                                  const ordered_json& column, bool as_printed) {
  const ordered_json* table = paper_table(id);
  if (table == nullptr) return std::nullopt;
  const ordered_json& columns = table->at("columns");
  const auto at = std::find(columns.begin(), columns.end(), column);
  if (at == columns.end()) return std::nullopt;
  for (const ordered_json& row : table->at("rows")) {
    if (row.at("method") != method) continue;
    const ordered_json* misprint = misprint_at(*table, method, column);
    if (misprint != nullptr && !as_printed) return misprint->at("meant").get<double>();
    const ordered_json& value = row.at("values").at(std::size_t(at - columns.begin()));
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }
  return std::nullopt;
}

std::string paper_model(const RunRecord& record) {
  for (const ordered_json& model : paper().at("models")) {
    if (model.at("window").get<std::int64_t>() != record.window) continue;
    for (const ordered_json& part : model.at("match")) {
      if (plain(record.model).find(part.get<std::string>()) != std::string::npos) {
        return model.at("name").get<std::string>();
      }
    }
  }
  return {};
}

std::vector<DataTable> compared_with_paper(const std::vector<RunRecord>& records) {
  std::vector<DataTable> out;
  for (const ordered_json& table : paper().at("tables")) {
    const auto of_model = [&](const RunRecord& r) {
      return r.problem.empty() && paper_model(r) == table.at("model").get<std::string>();
    };
    if (std::none_of(records.begin(), records.end(), of_model)) continue;
    DataTable shown;
    shown.caption =
        cat(table.at("model").get<std::string>(), ", ", table.at("task").get<std::string>(), " (",
            table.at("metric").get<std::string>(), "), scale ", table.at("scale").get<double>(),
            "; the paper's ", table.at("place").get<std::string>());
    shown.header = {"method", "from"};
    shown.text_columns = 2;
    for (const ordered_json& column : table.at("columns")) {
      shown.header.push_back(column.is_number() ? length_text(column.get<std::int64_t>())
                                                : column.get<std::string>());
    }
    for (const ordered_json& row : table.at("rows")) {
      const auto method = row.at("method").get<std::string>();
      std::vector<std::string> line = {method, "paper"};
      for (std::size_t i = 0; i < row.at("values").size(); ++i) {
        line.push_back(paper_cell(table, row, i));
      }
      shown.rows.push_back(std::move(line));
      for (const RunRecord& record : records) {
        if (!of_model(record)) continue;
        std::vector<std::string> own = {method, record.name};
        bool any = false;
        for (const ordered_json& column : table.at("columns")) {
          const std::optional<eval::Estimate> found = own_value(record, table, method, column);
          any |= found.has_value();
          own.push_back(found ? estimate_text(*found) : "");
        }
        if (any) shown.rows.push_back(std::move(own));
      }
    }
    out.push_back(std::move(shown));
  }
  return out;
}

}  // namespace mrrope::report
