// SPDX-License-Identifier: Apache-2.0

#include <cctype>

#include "base/text.h"
#include "report/report.h"

namespace mrrope::report {

namespace {

// Letters and digits alone, in lower case.
std::string plain(const std::string& name) {
  std::string out = lower_case(name);
  std::erase_if(out, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
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

// In what a run differs from the paper.
struct Differences {
  std::vector<std::string> list;

  template <typename A, typename B>
  void compare(const std::string& what, const A& here, const B& there) {
    if (cat(here) != cat(there)) list.push_back(cat(what, " ", here, " (paper: ", there, ")"));
  }
};

std::string stated_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// What it prints in one column of a method's row, with a misprint marked.
std::string paper_cell(const ordered_json& table, const ordered_json& row, std::size_t column) {
  const ordered_json& value = row.at("values").at(column);
  std::string text = value.is_number() ? number(value.get<double>()) : value.get<std::string>();
  for (const ordered_json& m : table.value("misprints", ordered_json::array())) {
    if (m.value("method", ordered_json()) != row.at("method") ||
        m.value("column", ordered_json()) != table.at("columns").at(column)) {
      continue;
    }
    text += cat(" (misprint; ", number(m.at("meant").get<double>()), " meant)");
  }
  return text;
}

// Tasks of a mean that a run has at one length.
std::vector<std::string> tasks_of_mean(const RunRecord& record, const eval::ResultRow& mean) {
  const std::string prefix = mean.task + "/";
  std::vector<std::string> tasks;
  for (const eval::ResultRow& row : record.table.rows) {
    if (row.method == mean.method && row.metric == mean.metric && row.length == mean.length &&
        row.estimate.n > 0 && row.task.rfind(prefix, 0) == 0) {
      tasks.push_back(row.task.substr(prefix.size()));
    }
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

// The row of a run that comes closest to a column: of the paper's length if it has that. A column
// that is a number is a length, any other one a task.
const eval::ResultRow* row_for(const RunRecord& record, const ordered_json& table,
                               const std::string& method, const ordered_json& column) {
  auto task = table.at("task").get<std::string>();
  if (!column.is_number() && column != "average") task += "/" + column.get<std::string>();
  const std::int64_t length =
      column.is_number() ? column.get<std::int64_t>() : table.value("length", std::int64_t(0));
  const eval::ResultRow* found = nullptr;
  for (const eval::ResultRow& row : record.table.rows) {
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

// Of all numbers of a method: the model (name, base or chat, window), its plan (base, parameters,
// scale), and what the paper says of a task's data and precision, against run.json.
Differences run_differences(const RunRecord& record, const ordered_json& table,
                            const ordered_json& model, const std::string& method) {
  Differences out;
  const bool named = model_named(record) == &model;
  const auto tuned = model.at("tuned").get<std::string>();
  const auto name = model.at("name").get<std::string>();
  const bool same = named && plain(record.model).find(tuned) != std::string::npos;
  out.compare("model", same ? name : record.model, name);
  out.compare("window", length_text(record.window),
              length_text(model.at("window").get<std::int64_t>()));
  for (const RecordedMethod& m : record.methods) {
    if (m.method != method || !m.numbers || !named) continue;
    const Geometry& g = m.numbers->geometry();
    out.compare("base", g.base, model.at("base").get<double>());
    try {
      Extension plain_one;
      plain_one.method = m.numbers->extension().method;
      plain_one.scale = m.numbers->extension().scale;
      if (plain_one.method != method || !m.numbers->same_numbers(make_plan(g, plain_one))) {
        out.list.push_back(cat("different parameters of ", method, " (paper: its defaults)"));
      }
    } catch (const Error&) {
      out.list.push_back(cat("a plan of its own under the name ", method));
    }
  }
  if (const eval::MethodRow* row = record.table.find_method(method)) {
    out.compare("scale", row->scale, table.at("scale").get<double>());
  }
  for (const ordered_json& stated : paper().at("stated").at(table.at("task").get<std::string>())) {
    const ordered_json::json_pointer at(stated.at("at").get<std::string>());
    const ordered_json& here = record.run.contains(at) ? record.run.at(at) : stated.at("otherwise");
    out.compare(stated.at("name"), stated_text(here), stated_text(stated.at("value")));
  }
  return out;
}

// Lengths and numbers of tasks and samples behind one number.
void add_cell_differences(Differences& out, const RunRecord& record, const ordered_json& table,
                          const ordered_json& column, const eval::ResultRow& row) {
  if (!column.is_number()) {
    out.compare("length", length_text(row.length), length_text(table.value("length", row.length)));
  }
  std::size_t tasks = 1;
  if (table.contains("tasks") && row.task == table.at("task").get<std::string>()) {
    auto wanted = table.at("tasks").get<std::vector<std::string>>();
    std::sort(wanted.begin(), wanted.end());
    tasks = wanted.size();
    const std::vector<std::string> own = tasks_of_mean(record, row);
    if (own.size() != tasks) {
      out.compare("mean of", cat(own.size(), " tasks"), tasks);
    } else if (own != wanted) {
      out.list.emplace_back("mean of different tasks");
    }
  }
  if (table.at("samples").is_number()) {
    const std::size_t n = tasks * table.at("samples").get<std::size_t>();
    if (row.estimate.n != n) out.list.push_back(cat(row.estimate.n, " samples (paper: ", n, ")"));
  }
}

}  // namespace

const ordered_json& paper() {
  static const ordered_json parsed = ordered_json::parse(embedded::paper_json);
  return parsed;
}

const ordered_json* paper_table(const std::string& id) {
  return find_by(paper().at("tables"), [&](const ordered_json& t) { return t.at("id") == id; });
}

DataTable compared_with_table(const ordered_json& table,
                              const std::vector<const RunRecord*>& records) {
  const auto task = table.at("task").get<std::string>();
  const ordered_json& model = *find_by(paper().at("models"), [&](const ordered_json& m) {
    return m.at("name") == table.at("model");
  });
  DataTable shown;
  shown.caption =
      cat(model.at("name").get<std::string>(), ", ", task, " (",
          table.at("metric").get<std::string>(), "), scale ", table.at("scale").get<double>(),
          "; the paper's ", table.at("place").get<std::string>(),
          "; not known: ", paper().at("not_known").at(task).get<std::string>());
  shown.header = {"method", "from"};
  shown.text_columns = 2;
  for (const ordered_json& column : table.at("columns")) {
    shown.header.push_back(column.is_number() ? length_text(column.get<std::int64_t>())
                                              : column.get<std::string>());
  }
  const std::size_t columns = table.at("columns").size();
  shown.header.emplace_back("differs in");
  shown.text_at_end = true;
  const double unit = table.value("percent", false) ? 100 : 1;
  const auto add_row = [&](const std::string& method, const std::string& from,
                           const std::vector<std::string>& cells, const std::string& difference) {
    shown.rows.push_back({method, from});
    shown.rows.back().insert(shown.rows.back().end(), cells.begin(), cells.end());
    shown.rows.back().push_back(difference);
  };
  for (const ordered_json& row : table.at("rows")) {
    const auto method = row.at("method").get<std::string>();
    std::vector<std::string> printed;
    for (std::size_t i = 0; i < columns; ++i) printed.push_back(paper_cell(table, row, i));
    add_row(method, "paper", printed, "");
    for (const RunRecord* record : records) {
      const Differences of_run = run_differences(*record, table, model, method);
      // One line for each set of differences: lengths may have different numbers of samples.
      std::vector<std::pair<std::string, std::vector<std::string>>> lines;
      for (std::size_t i = 0; i < columns; ++i) {
        const ordered_json& column = table.at("columns")[i];
        const eval::ResultRow* own = row_for(*record, table, method, column);
        if (own == nullptr) continue;
        Differences all = of_run;
        add_cell_differences(all, *record, table, column, *own);
        const std::string why = all.list.empty() ? "nothing known" : joined(all.list, ", ");
        auto* line = find_by(lines, [&](const auto& entry) { return entry.first == why; });
        if (line == nullptr) {
          line = &lines.emplace_back(why, std::vector<std::string>(columns));
        }
        eval::Estimate value = own->estimate;
        value.value *= unit;
        value.error *= unit;
        line->second[i] = estimate_text(value);
      }
      const std::string from = record->name.empty() ? "yours" : cat("yours (", record->name, ")");
      for (const auto& [why, cells] : lines) add_row(method, from, cells, why);
    }
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
