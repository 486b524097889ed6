// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/text.h"
#include "report/report.h"

namespace mrrope::report {

eval::MetricInfo metric_info(const RunGroup& group, const std::string& metric) {
  const eval::Task* task = eval::find_task(group.front().task);
  const auto* known =
      task != nullptr ? find_by(task->metrics, &eval::MetricInfo::name, metric) : nullptr;
  return known != nullptr ? *known : eval::MetricInfo{metric, metric, metric};
}

namespace {

using eval::ResultRow;

// Of the metrics that a page of Markdown shows: the one that methods are compared by, and the loss
// of answers, which tells them apart where few are found.
bool is_main(const RunGroup& group, const std::string& metric) {
  return metric == group.front().table.metric || metric == eval::kAnswerLoss;
}

// All rows of a group, without their units. The method is the name under which a chart shows them:
// with the run's where an earlier run has the same method at one of its lengths.
using Rows = std::vector<ResultRow>;

Rows named_rows(const RunGroup& group) {
  std::set<std::tuple<std::string, std::string, std::int64_t>> taken;
  Rows rows;
  for (const RunRecord* run : group.runs) {
    std::set<std::pair<std::string, std::string>> again;
    for (const ResultRow& row : run->table.rows) {
      if (taken.contains({row.task, row.method, row.length})) again.insert({row.task, row.method});
    }
    for (const ResultRow& row : run->table.rows) {
      taken.insert({row.task, row.method, row.length});
      const bool named = again.contains({row.task, row.method});
      rows.push_back({row.task, named ? cat(row.method, " (", run->name, ")") : row.method,
                      row.length, row.depth, row.metric, row.estimate});
    }
  }
  return rows;
}

template <typename Key>
std::vector<Key> distinct(const Rows& rows, Key ResultRow::*key) {
  std::vector<Key> out;
  for (const ResultRow& row : rows) {
    if (!has(out, row.*key)) out.push_back(row.*key);
  }
  return out;
}

Rows chosen(Rows rows, const std::string& metric, bool by_depth) {
  std::erase_if(rows, [&](const ResultRow& r) {
    return r.metric != metric || r.depth.has_value() != by_depth;
  });
  return rows;
}

ChartPoint point_of(double x, const eval::Estimate& e) {
  ChartPoint p{x, e.n > 0 || std::isfinite(e.value) ? e.value : kNothing};
  if (std::isfinite(e.error)) p.low = e.value - e.error, p.high = e.value + e.error;
  return p;
}

bool within(const LineChart& chart, double low, double high) {
  for (const Series& s : chart.series) {
    for (const ChartPoint& p : s.points) {
      if (p.y < low || p.y > high) return false;
    }
  }
  return true;
}

// All values, to tell figures apart: NaN is equal to itself.
std::string values_of(const LineChart& chart) {
  std::string out;
  for (const Series& s : chart.series) {
    for (const ChartPoint& p : s.points) out += cat(number(p.x), ",", number(p.y), ";");
  }
  return out;
}
std::string values_of(const std::vector<HeatMap>& maps) {
  std::string out;
  for (const HeatMap& map : maps) {
    for (const auto& row : map.values) {
      for (const double value : row) out += cat(number(value), ";");
    }
  }
  return out;
}

// Forms of one method that differ in one parameter, or in two.
struct Study {
  std::string name;  // without those
  std::vector<const ParameterInfo*> varied;
  std::vector<std::pair<MethodSpec, const ResultRow*>> points;
};

std::vector<Study> studies_of(const eval::ResultTable& table, std::int64_t length) {
  std::vector<Study> studies;
  for (const eval::MethodRow& method : table.methods) {
    const ResultRow* row = table.find(method.method, length, table.metric);
    const std::string name = method.method.substr(0, method.method.find('('));
    if (row == nullptr || name == method.method || !method.method.ends_with(')')) continue;
    Study* at = find_by(studies, &Study::name, name);
    if (at == nullptr) at = &studies.emplace_back(Study{name, {}, {}});
    try {
      at->points.emplace_back(parse_method(method.method), row);
    } catch (const Error&) {
      // The path of a plan file.
    }
  }
  for (Study& study : studies) {
    for (const ParameterInfo& p : parameters()) {
      if (p.list) continue;
      std::set<std::optional<double>> values;
      for (const auto& [spec, row] : study.points) values.insert(value_of(spec.parameters, p));
      if (values.size() > 1 && !values.count(std::nullopt)) study.varied.push_back(&p);
    }
    if (study.points.empty()) continue;
    MethodSpec rest = study.points.front().first;
    for (const ParameterInfo* p : study.varied) set_value(rest.parameters, *p, std::nullopt);
    study.name = to_string(rest);
  }
  std::erase_if(studies, [](const Study& s) { return s.varied.empty() || s.varied.size() > 2; });
  return studies;
}

std::string names_of(const std::vector<const ParameterInfo*>& varied) {
  return cat(varied.front()->name, varied.size() > 1 ? cat(" and ", varied.back()->name) : "");
}

// A map of these rows and columns without a value yet.
HeatMap empty_map(const std::string& title, std::size_t rows, std::size_t columns) {
  HeatMap map;
  map.title = title;
  map.values.assign(rows, std::vector<double>(columns, kNothing));
  map.details.assign(rows, std::vector<std::string>(columns, "not measured"));
  return map;
}

template <typename T>
std::size_t place_in(const std::set<T>& sorted, T value) {
  return std::size_t(std::distance(sorted.begin(), sorted.find(value)));
}

HeatMap parameter_map(const Study& study) {
  const auto value = [&](const MethodSpec& s, int which) {
    return *value_of(s.parameters, *study.varied[std::size_t(which)]);
  };
  std::set<double> rows, columns;
  for (const auto& [spec, row] : study.points) {
    rows.insert(value(spec, 0));
    columns.insert(value(spec, 1));
  }
  HeatMap map = empty_map(study.name, rows.size(), columns.size());
  map.x_label = study.varied[1]->name;
  map.y_label = study.varied[0]->name;
  map.shades = Shades::amount;
  map.rows = mapped(rows, number);
  map.columns = mapped(columns, number);
  map.low = std::numeric_limits<double>::infinity();
  map.high = -map.low;
  for (const auto& [spec, row] : study.points) {
    const std::size_t r = place_in(rows, value(spec, 0));
    const std::size_t c = place_in(columns, value(spec, 1));
    const eval::Estimate& e = row->estimate;
    map.details[r][c] = cat(row->method, "\n", estimate_text(e), ", n = ", e.n);
    if (e.n == 0 || !std::isfinite(e.value)) continue;
    map.values[r][c] = e.value;
    if (e.value < map.low) map.low = e.value, map.best = {r, c};
    map.high = std::max(map.high, e.value);
  }
  return map;
}

class FigureMaker {
 public:
  explicit FigureMaker(const std::vector<RunRecord>& records) : groups_(grouped(records)) {
    for (const RunGroup& g : groups_) {
      several_models_ |= g.front().model_digest != groups_.front().front().model_digest;
    }
    // The same order of colours wherever charts come from.
    for (const RunGroup& g : groups_) {
      for (const ResultRow& r : named_rows(g)) colours_.colour_of(r.method);
    }
  }

  std::vector<Figure> make() {
    for (const RunGroup& group : groups_) {
      lines(group);
      differences(group);
      for (const RunRecord* run : group.runs) parameters_of(*run, group);
    }
    for (const RunGroup& group : groups_) maps(group);
    for (const RunGroup& group : groups_) searches(group);
    std::stable_sort(out_.begin(), out_.end(), [&](const Figure& a, const Figure& b) {
      return section_rank(a.section) < section_rank(b.section);
    });
    return std::move(out_);
  }

 private:
  // run: of its group, the one that a figure is of; nullptr: all of them.
  std::string titled(const std::string& title, const RunGroup& group,
                     const RunRecord* run = nullptr) const {
    const RunRecord& first = group.front();
    const auto same = std::ranges::count_if(
        groups_, [&](const RunGroup& g) { return g.front().task == first.task; });
    const std::string before = several_models_ ? first.model + ": "
                               : same > 1      ? first.name + ": "
                                               : "";
    const bool named = run != nullptr && group.runs.size() > 1;
    return cat(before, title, named ? cat(" (", run->name, ")") : "");
  }

  std::string file_for(const std::string& wish) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789";
    std::string name = lower_case(wish.substr(0, 60));
    std::replace_if(
        name.begin(), name.end(), [&](char c) { return !has(kPlain, c); }, '-');
    const int number = ++files_[name];
    return number == 1 ? name : cat(name, "-", number);
  }

  // Under a name of its own, unless it is a chart that is empty or flat.
  void add(Figure figure) {
    if (!figure.is_map() && !has_content(std::get<LineChart>(figure.content))) return;
    figure.file = file_for(figure.file);
    out_.push_back(std::move(figure));
  }

  void lines(const RunGroup& group) {
    const Rows all = named_rows(group);
    std::string before;
    std::optional<std::size_t> verdict;  // its headline is above the first chart
    if (!group.front().table.verdicts.empty()) verdict = verdicts_++;
    for (const std::string& metric : distinct(all, &ResultRow::metric)) {
      const eval::MetricInfo info = metric_info(group, metric);
      if (!info.charted) continue;
      const Rows rows = chosen(all, metric, false);
      const std::size_t lengths = distinct(rows, &ResultRow::length).size();
      const std::vector<std::string> tasks = distinct(rows, &ResultRow::task);
      if (lengths < 2) continue;  // no line; a study of parameters has charts of its own
      LineChart chart{.title = titled(info.title, group),
                      .x = {"tokens", Spacing::log, true},
                      .y = {info.axis, info.logarithmic ? Spacing::log : Spacing::linear}};
      if (group.front().window > 0) chart.marks = {window_mark(group.front().window)};
      for (const std::string& name : distinct(rows, &ResultRow::method)) {
        Series s = colours_.series(name);
        std::map<std::int64_t, std::vector<eval::Estimate>> at;
        for (const ResultRow& r : rows) {
          if (r.method == name) at[r.length].push_back(r.estimate);
        }
        for (const auto& [length, list] : at) {
          const bool complete = list.size() == tasks.size();
          s.points.push_back(point_of(double(length), tasks.size() == 1 ? list.front()
                                                      : complete        ? eval::mean_of_means(list)
                                                                        : eval::Estimate()));
        }
        chart.series.push_back(std::move(s));
      }
      if (!info.logarithmic && within(chart, 0, 1)) chart.y.include = {0, 1};
      if (values_of(chart) == std::exchange(before, values_of(chart))) continue;  // says the same
      const std::string note =
          tasks.size() == 1 ? info.note
                            : cat("Mean over ", tasks.size(), " tasks, where all have a value.");
      const std::string words = best_and_worst(chart, info.higher_is_better) + note;
      add({section_of(group.front().task), cat(group.front().task, "-", metric), chart.title, words,
           std::move(chart), std::exchange(verdict, std::nullopt), is_main(group, metric)});
    }
  }

  // Perplexity by the parameters of a method that was measured in several forms: a line of each
  // method for one parameter, a map for two. A figure per length.
  void parameters_of(const RunRecord& run, const RunGroup& group) {
    if (!run.table.logarithmic) return;
    for (const std::int64_t length : run.table.lengths) {
      std::map<std::vector<const ParameterInfo*>, std::vector<Study>> by_parameters;
      for (Study& s : studies_of(run.table, length)) by_parameters[s.varied].push_back(s);
      for (const auto& [varied, studies] : by_parameters) {
        const std::string section = section_of(run.task);
        const std::string file = cat(run.task, "-by-", names_of(varied));
        const std::string title = titled(
            cat("Perplexity at ", length_text(length), " by ", names_of(varied)), group, &run);
        if (varied.size() == 2) {
          add({section, file, title, "Lower is better; darker is higher. The best cell is marked.",
               mapped(studies, parameter_map)});
          continue;
        }
        LineChart chart{.title = title,
                        .x = {std::string(varied.front()->name)},
                        .y = {"perplexity", Spacing::log}};
        for (const Study& study : studies) {
          Series s = colours_.series(study.name);
          for (const auto& [spec, row] : study.points) {
            s.points.push_back(
                point_of(*value_of(spec.parameters, *varied.front()), row->estimate));
          }
          chart.series.push_back(by_x(std::move(s)));
        }
        add({section, file, title,
             "Lower is better. The band is one standard error over documents.", std::move(chart)});
      }
    }
  }

  // Lines that overlap become distinct once each is compared with the same method, document by
  // document: the spread between documents cancels out.
  void differences(const RunGroup& group) {
    for (const RunRecord* run : group.runs) {
      const eval::ResultTable& r = run->table;
      if (r.verdicts.empty() || r.methods.size() < 2) continue;
      const VerdictText verdict = verdicts_of({*run}).front();
      const std::string& reference = verdict.method;
      if (verdict.good_to == 0) continue;
      LineChart chart{
          .title = titled(cat("Difference from ", reference, ", paired"), group, run),
          .x = {"tokens", Spacing::log, true},
          .y = {cat("percent of perplexity above ", reference), Spacing::linear, false, {0}},
          .marks = {window_mark(r.window)}};
      std::vector<std::string> same;
      for (const eval::MethodRow& method : r.methods) {
        if (method.method == reference) continue;
        Series s = colours_.series(method.method);
        for (const std::int64_t length : r.lengths) {
          const auto difference = r.difference(length, method.method, reference);
          // Past its window the untouched model would take up the whole chart.
          if (!difference || (method.untouched && length > r.window)) continue;
          s.points.push_back(point_of(double(length), difference->percent()));
        }
        const bool zero = !find_by(s.points, [](const ChartPoint& p) { return std::abs(p.y) > 0; });
        if (zero) same.push_back(method.method + (method.untouched ? " inside its window" : ""));
        if (!zero) chart.series.push_back(std::move(s));
      }
      add({section_of(run->task), cat(run->task, "-difference"), chart.title,
           cat("Above zero is worse than ", reference, ". The band is one standard error of the ",
               "paired difference.",
               same.empty() ? "" : cat(" Without a difference: ", joined(same, ", "), "."),
               " The unmodified model is compared inside its window only."),
           std::move(chart)});
    }
  }

  void maps(const RunGroup& group) {
    const Rows all = named_rows(group);
    std::string before;
    for (const std::string& metric : distinct(all, &ResultRow::metric)) {
      const Rows rows = chosen(all, metric, true);
      if (rows.empty()) continue;
      std::vector<HeatMap> maps;
      const std::vector<std::string> tasks = distinct(rows, &ResultRow::task);
      for (const std::string& task : tasks) {
        for (const std::string& name : distinct(rows, &ResultRow::method)) {
          maps.push_back(map_of(rows, task, name, tasks.size() > 1));
        }
      }
      if (values_of(maps) == std::exchange(before, values_of(maps))) continue;  // says the same
      const eval::MetricInfo info = metric_info(group, metric);
      add({section_of(group.front().task), cat(group.front().task, "-", metric, "-map"),
           titled(info.title, group),
           cat("Depth of the needle from top to bottom, length from left to right. Numbers are "
               "percent; blue is good. ",
               info.note),
           std::move(maps)});
    }
  }

  static HeatMap map_of(const Rows& rows, const std::string& task, const std::string& name,
                        bool several) {
    std::set<std::int64_t> lengths;
    std::set<double> depths;
    double low = 0, high = 0;
    for (const ResultRow& r : rows) {
      lengths.insert(r.length);
      if (std::isfinite(*r.depth)) depths.insert(*r.depth);
      if (std::isfinite(r.estimate.value)) {
        low = std::min(low, r.estimate.value);
        high = std::max(high, r.estimate.value);
      }
    }
    HeatMap map = empty_map(several ? cat(task, ": ", name) : name, depths.size(), lengths.size());
    map.x_label = "tokens";
    map.y_label = "depth";
    map.percent = high <= 1 && low >= 0;
    map.low = low;
    map.high = map.percent ? 1 : high <= 100 && low >= 0 ? 100 : high;
    map.columns = mapped(lengths, length_text);
    map.rows = mapped(depths, [](double d) { return significant(d, 3) + " %"; });
    for (const ResultRow& r : rows) {
      if (r.method != name || r.task != task || !std::isfinite(*r.depth)) continue;
      const std::size_t row = place_in(depths, *r.depth);
      const std::size_t column = place_in(lengths, r.length);
      eval::Estimate e = r.estimate;
      map.values[row][column] = e.value;
      if (map.percent) e.value *= 100, e.error *= 100;
      map.details[row][column] =
          cat(name, "\n", map.columns[column], " tokens, depth ", map.rows[row], "\n",
              estimate_text(e), map.percent ? " %" : "", ", n = ", e.n);
    }
    return map;
  }

  void searches(const RunGroup& group) {
    for (const RunRecord* run : group.runs) {
      for (Figure& f : search_figures(*run)) {
        auto& chart = std::get<LineChart>(f.content);
        chart.title = f.title = titled(f.title, group, run);
        add(std::move(f));
      }
    }
  }

  std::vector<RunGroup> groups_;
  bool several_models_ = false;
  std::size_t verdicts_ = 0;  // so far, in the order of verdicts_of()
  Palette colours_;
  std::map<std::string, int> files_;
  std::vector<Figure> out_;
};

}  // namespace

std::string section_of(const std::string& task_name) {
  const eval::Task* task = eval::find_task(task_name);
  return task != nullptr ? task->section : task_name.substr(0, task_name.find('/'));
}

int section_rank(const std::string& section) {
  if (section == kSearchSection) return -1;
  const std::vector<eval::Task>& all = eval::tasks();
  const eval::Task* task = find_by(all, &eval::Task::section, section);
  return int(task != nullptr ? task - all.data() : std::ptrdiff_t(all.size()));
}

std::vector<Figure> figures_of(const std::vector<RunRecord>& records) {
  return FigureMaker(records).make();
}

std::vector<TaskTable> tables_of(const std::vector<RunRecord>& records) {
  std::vector<TaskTable> out;
  for (const RunGroup& group : grouped(records)) {
    const Rows all = named_rows(group);
    for (const std::string& metric : distinct(all, &ResultRow::metric)) {
      const Rows rows = chosen(all, metric, false);
      if (rows.empty()) continue;
      std::vector<std::int64_t> lengths = distinct(rows, &ResultRow::length);
      std::sort(lengths.begin(), lengths.end());
      const std::vector<std::string> tasks = distinct(rows, &ResultRow::task);
      DataTable table;
      table.caption = cat(group.front().model, ": ", metric_info(group, metric).title);
      table.header = {"method"};
      if (tasks.size() > 1) table.header.insert(table.header.begin(), "task");
      table.text_columns = table.header.size();
      for (const std::int64_t n : lengths) table.header.push_back(length_text(n));
      table.header.push_back("n");
      for (const std::string& task : tasks) {
        for (const std::string& name : distinct(rows, &ResultRow::method)) {
          std::vector<std::string> line = {name};
          if (tasks.size() > 1) line.insert(line.begin(), task);
          std::size_t n = 0;
          bool any = false;
          for (const std::int64_t length : lengths) {
            const ResultRow* at = find_by(rows, [&](const ResultRow& r) {
              return r.method == name && r.task == task && r.length == length;
            });
            any |= at != nullptr;
            line.push_back(at == nullptr ? "" : estimate_text(at->estimate));
            if (at != nullptr) n = std::max(n, at->estimate.n);
          }
          line.push_back(cat(n));
          if (any) table.rows.push_back(std::move(line));
        }
      }
      out.push_back({section_of(group.front().task), std::move(table), is_main(group, metric)});
    }
  }
  return out;
}

}  // namespace mrrope::report
