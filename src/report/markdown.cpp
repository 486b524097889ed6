// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/text.h"
#include "report/report.h"

namespace mrrope::report {

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < ' '; }

// Text from a run, which may hold anything, on one line: nothing in it begins a tag, a link, a
// cell, code or emphasis. "+-" becomes the sign.
std::string markdown_text(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "+-") == 0) {
      out += "\u00b1";
      ++i;
    } else if (is_control(text[i])) {
      out += ' ';
    } else {
      if (std::string_view("\\`*[]|").find(text[i]) != std::string_view::npos) out += '\\';
      text[i] == '<' ? out += "&lt;" : out += text[i];
    }
  }
  return out;
}

std::string code_span(std::string text) {
  for (char& c : text) {
    if (c == '`' || is_control(c)) c = ' ';
  }
  return cat("`", text, "`");
}

std::string to_markdown(const DataTable& table, const std::string& caption) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string out = "|";
    for (const std::string& cell : cells) out += cat(" ", markdown_text(cell), " |");
    return out + "\n";
  };
  std::string out = cat(markdown_text(caption), ":\n\n", line(table.header), "|");
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    out += i < table.text_columns ? "---|" : "---:|";
  }
  out += "\n";
  for (const std::vector<std::string>& row : table.rows) out += line(row);
  return out + "\n";
}

// "perplexity" of "Perplexity against length".
std::string first_word(const std::string& section) {
  std::string word = lower_case(section.substr(0, section.find(' ')));
  std::replace_if(
      word.begin(), word.end(), [](char c) { return c < 'a' || c > 'z'; }, '-');
  return word;
}

// When it was measured, or nothing.
std::string day_of(const RunRecord& r) {
  return text_at(r.run.value("measured", ordered_json::object()), "finished").substr(0, 10);
}

DataTable source_table(const std::vector<RunRecord>& records) {
  DataTable table{.header = {"runs", "finished", "mrrope", "engine and machine", "tokens", "hours"},
                  .text_columns = 4};
  struct Sum {
    std::vector<std::string> names;
    std::int64_t tokens = 0;
    double seconds = 0;
  };
  std::map<std::vector<std::string>, Sum> sums;  // by what runs have in common
  for (const RunRecord& r : records) {
    const ordered_json measured = r.run.value("measured", ordered_json::object());
    const std::string commit = text_at(r.run, "commit");
    Sum& sum = sums[{r.finished ? day_of(r) : "not yet",
                     cat(text_at(r.run, "mrrope"), commit.empty() ? "" : ", commit " + commit),
                     text_at(r.run, "engine")}];
    sum.names.push_back(r.name);
    sum.tokens += std::int64_t(count_at(measured, "tokens"));
    sum.seconds += value_at(measured, "seconds");
  }
  for (const auto& [common, sum] : sums) {
    std::vector<std::string> row = {joined(sum.names, ", ")};
    extend(row, common);
    row.push_back(cat(sum.tokens));
    row.push_back(std::isfinite(sum.seconds) ? fixed(sum.seconds / 3600, 2) : "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

MarkdownPage report_markdown(const std::vector<RunRecord>& records, const std::string& prefix,
                             const std::string& command) {
  MarkdownPage page;
  std::vector<RunRecord> good = records;
  std::erase_if(good, [](const RunRecord& r) { return !r.problem.empty(); });
  const RunRecord& first = good.front();  // read_records() throws where there is none
  std::string& out = page.text;
  std::set<std::string> days;
  for (const RunRecord& r : good) days.insert(day_of(r));
  const std::string when = cat(*days.begin(), days.size() > 1 ? " to " + *days.rbegin() : "");
  out = cat("# ", markdown_text(first.model), "\n\n", markdown_text(first.architecture),
            ", window ", length_text(first.window), " tokens. Measured ", markdown_text(when),
            ". Made by ", code_span(command), ".\n\n");
  std::map<std::string, int> files;
  for (Figure& f : figures_of(good)) {
    if (!f.main) continue;
    f.file = cat(prefix, "-", first_word(f.section));
    if (const int number = ++files[f.file]; number > 1) f.file += cat("-", number);
    out += cat("![", markdown_text(f.title), "](", f.file, ".svg)\n\n", markdown_text(f.note),
               " Drawn by ", code_span(command), ".\n\n");
    page.figures.push_back(std::move(f));
  }
  for (const VerdictText& v : verdicts_of(good)) {
    out += cat("**", markdown_text(v.headline), "**\n\n");
    for (const std::string& s : v.sentences) out += cat("- ", markdown_text(s), "\n");
    out += "\n";
  }
  std::vector<TaskTable> tables = tables_of(good);
  std::stable_sort(tables.begin(), tables.end(), [](const TaskTable& a, const TaskTable& b) {
    return section_rank(a.section) < section_rank(b.section);
  });
  std::string section;
  for (const TaskTable& t : tables) {
    if (!t.main) continue;
    if (section != t.section) out += cat("## ", markdown_text(t.section), "\n\n");
    section = t.section;
    out += to_markdown(t.table, t.table.caption);
  }
  out += cat("## Where the numbers come from\n\n", to_markdown(source_table(good), "Runs"));
  for (const RunRecord& r : good) {
    out += cat("- ", markdown_text(r.name), ": ", code_span(text_at(r.run, "command")), "\n");
  }
  return page;
}

}  // namespace mrrope::report
