// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "report/search_part.h"
#include "report/sweep_part.h"
#include "report/verdict_text.h"

namespace mrrope::report {

namespace {

// How the group's task shows a metric.
eval::MetricInfo metric_info(const RunGroup& group, const std::string& metric) {
  if (const eval::Task* task = eval::find_task(group.front().task)) {
    for (const eval::MetricInfo& info : task->metrics) {
      if (info.name == metric) return info;
    }
  }
  return {metric, metric, metric};
}

// All rows of a group with the name under which a chart shows them: the method's, and with the
// run's where two runs use the same name.
struct NamedRow {
  std::string name;
  const eval::ResultRow* row;
};

std::vector<NamedRow> named_rows(const RunGroup& group) {
  std::map<std::string, const RunRecord*> first;
  std::vector<NamedRow> rows;
  for (const RunRecord* run : group.runs) {
    for (const eval::ResultRow& row : run->table.rows) {
      const auto [at, fresh] = first.emplace(row.method, run);
      rows.push_back(
          {at->second == run ? row.method : cat(row.method, " (", run->name, ")"), &row});
    }
  }
  return rows;
}

template <typename Key>
std::vector<Key> distinct(const std::vector<NamedRow>& rows, Key (*of)(const NamedRow&)) {
  std::vector<Key> out;
  for (const NamedRow& row : rows) {
    const Key key = of(row);
    if (std::find(out.begin(), out.end(), key) == out.end()) out.push_back(key);
  }
  return out;
}
std::string task_of(const NamedRow& r) { return r.row->task; }
std::string metric_of(const NamedRow& r) { return r.row->metric; }
std::string name_of(const NamedRow& r) { return r.name; }
std::int64_t length_of(const NamedRow& r) { return r.row->length; }

std::vector<NamedRow> chosen(const std::vector<NamedRow>& rows, const std::string& metric,
                             bool by_depth) {
  std::vector<NamedRow> out;
  for (const NamedRow& r : rows) {
    if (r.row->metric == metric && r.row->depth.has_value() == by_depth) out.push_back(r);
  }
  return out;
}

ChartPoint point_of(double x, const eval::Estimate& e) {
  ChartPoint p{x, e.n > 0 || std::isfinite(e.value) ? e.value : kNothing};
  if (std::isfinite(e.error)) p.low = e.value - e.error, p.high = e.value + e.error;
  return p;
}

// Mean over tasks where each has a value, with the errors of independent tasks.
eval::Estimate mean_over_tasks(const std::vector<const eval::ResultRow*>& rows) {
  double sum = 0;
  double variance = 0;
  std::size_t n = 0;
  for (const eval::ResultRow* r : rows) {
    sum += r->estimate.value;
    variance += r->estimate.error * r->estimate.error;
    n += r->estimate.n;
  }
  const double count = double(rows.size());
  return {sum / count, std::sqrt(variance) / count, n};
}

bool within(const LineChart& chart, double low, double high) {
  for (const Series& s : chart.series) {
    for (const ChartPoint& p : s.points) {
      if (p.y < low || p.y > high) return false;
    }
  }
  return true;
}

bool same_values(const LineChart& a, const LineChart& b) {
  if (a.series.size() != b.series.size()) return false;
  for (std::size_t i = 0; i < a.series.size(); ++i) {
    const auto same = [](const ChartPoint& p, const ChartPoint& q) {
      return p.x == q.x && (p.y == q.y || (std::isnan(p.y) && std::isnan(q.y)));
    };
    if (!std::equal(a.series[i].points.begin(), a.series[i].points.end(),
                    b.series[i].points.begin(), b.series[i].points.end(), same)) {
      return false;
    }
  }
  return true;
}

class FigureMaker {
 public:
  explicit FigureMaker(const std::vector<RunRecord>& records) : groups_(grouped(records)) {
    std::set<std::string> models;
    for (const RunGroup& g : groups_) models.insert(g.front().model_digest);
    several_models_ = models.size() > 1;
    // The same order of colours wherever charts come from.
    for (const RunGroup& g : groups_) {
      for (const NamedRow& r : named_rows(g)) colours_.colour_of(r.name);
    }
  }

  std::vector<Figure> make() {
    for (const RunGroup& group : groups_) {
      lines(group);
      differences(group);
    }
    for (const RunGroup& group : groups_) maps(group);
    for (const RunGroup& group : groups_) searches(group);
    plans();
    std::stable_sort(out_.begin(), out_.end(), [&](const Figure& a, const Figure& b) {
      return rank(a.section) < rank(b.section);
    });
    return std::move(out_);
  }

 private:
  static int rank(const std::string& section) {
    if (section == kSearchSection || section == kSweepSection) return -1;
    if (section == "Plans") return std::numeric_limits<int>::max();
    for (std::size_t i = 0; i < eval::tasks().size(); ++i) {
      if (eval::tasks()[i].section == section) return int(i);
    }
    return int(eval::tasks().size());
  }

  std::string titled(const std::string& title, const RunGroup& group) const {
    std::size_t same = 0;
    for (const RunGroup& g : groups_) same += g.front().task == group.front().task ? 1 : 0;
    if (several_models_) return cat(group.front().model, ": ", title);
    return same > 1 ? cat(group.front().name, ": ", title) : title;
  }

  std::string file_for(const std::string& wish) {
    std::string name;
    for (const char c : wish) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      name += plain ? c : (c >= 'A' && c <= 'Z') ? char(c - 'A' + 'a') : '-';
    }
    if (name.size() > 60) name.resize(60);
    const int number = ++files_[name];
    return number == 1 ? name : cat(name, "-", number);
  }

  void add(const std::string& section, const std::string& file, const std::string& note,
           LineChart chart) {
    std::string title = chart.title;
    out_.push_back({section, file_for(file), std::move(title), note, std::move(chart)});
  }

  void lines(const RunGroup& group) {
    const std::vector<NamedRow> all = named_rows(group);
    LineChart before;
    for (const std::string& metric : distinct(all, metric_of)) {
      const eval::MetricInfo info = metric_info(group, metric);
      if (!info.charted) continue;
      const std::vector<NamedRow> rows = chosen(all, metric, false);
      const std::size_t lengths = distinct(rows, length_of).size();
      const std::vector<std::string> tasks = distinct(rows, task_of);
      if (rows.empty() || (lengths < 2 && !info.logarithmic)) continue;
      LineChart chart;
      chart.title = titled(info.title, group);
      chart.x = {"tokens", Spacing::log, true};
      chart.y = {info.axis, info.logarithmic ? Spacing::log : Spacing::linear, false};
      if (group.front().window > 0) {
        chart.marks.push_back(
            {double(group.front().window), cat("window ", length_text(group.front().window))});
      }
      std::string note = info.note;
      if (tasks.size() > 1)
        note = cat("Mean over ", tasks.size(), " tasks, where all have a value.");
      for (const std::string& name : distinct(rows, name_of)) {
        Series s = colours_.series(name);
        std::map<std::int64_t, std::vector<const eval::ResultRow*>> at;
        for (const NamedRow& r : rows) {
          if (r.name == name) at[r.row->length].push_back(r.row);
        }
        for (const auto& [length, list] : at) {
          const bool complete = list.size() == tasks.size();
          const eval::Estimate e = tasks.size() == 1 ? list.front()->estimate
                                   : complete        ? mean_over_tasks(list)
                                                     : eval::Estimate();
          s.points.push_back(point_of(double(length), e));
        }
        chart.series.push_back(std::move(s));
      }
      const bool shares = !info.logarithmic && within(chart, 0, 1);
      if (shares) chart.y.include = {0, 1};
      if (same_values(chart, before)) continue;  // the other score says the same
      before = chart;
      add(section_of(group.front().task), cat(group.front().task, "-", metric), note,
          std::move(chart));
    }
  }

  // Lines that overlap become distinct once each is compared with the same method, document by
  // document: the spread between documents cancels out.
  void differences(const RunGroup& group) {
    for (const RunRecord* run : group.runs) {
      const eval::ResultTable& r = run->table;
      if (r.verdicts.empty() || r.methods.size() < 2) continue;
      const std::string reference = verdicts_of({*run}).front().method;
      if (reference.empty()) continue;
      LineChart chart;
      chart.title = titled(cat("Difference from ", reference, ", paired"), group);
      if (group.runs.size() > 1) chart.title += cat(" (", run->name, ")");
      chart.x = {"tokens", Spacing::log, true};
      chart.y = {cat("percent of perplexity above ", reference), Spacing::linear, false, {0}};
      chart.marks = {{double(r.window), cat("window ", length_text(r.window))}};
      for (const eval::MethodRow& method : r.methods) {
        if (method.method == reference) continue;
        Series s = colours_.series(method.method);
        for (const eval::Comparison& c : r.comparisons) {
          const bool forth = c.a == method.method && c.b == reference;
          const bool back = c.b == method.method && c.a == reference;
          // Past its window the untouched model would take up the whole chart.
          if ((!forth && !back) || (method.untouched && c.length > r.window)) continue;
          eval::PairedDifference d = c.difference;
          if (back) d.mean_difference.value = -d.mean_difference.value;
          s.points.push_back(point_of(double(c.length), d.percent()));
        }
        chart.series.push_back(std::move(s));
      }
      add(section_of(run->task), cat(run->task, "-difference"),
          "Below zero is better. The band is one standard error of the paired difference. The "
          "untouched model is shown inside its window only.",
          std::move(chart));
    }
  }

  void maps(const RunGroup& group) {
    const std::vector<NamedRow> all = named_rows(group);
    std::vector<HeatMap> before;
    for (const std::string& metric : distinct(all, metric_of)) {
      const std::vector<NamedRow> rows = chosen(all, metric, true);
      if (rows.empty()) continue;
      std::vector<HeatMap> maps;
      for (const std::string& task : distinct(rows, task_of)) {
        for (const std::string& name : distinct(rows, name_of)) {
          maps.push_back(map_of(rows, task, name, distinct(rows, task_of).size() > 1));
        }
      }
      const auto same = [](const HeatMap& a, const HeatMap& b) {
        for (std::size_t r = 0; r < a.values.size(); ++r) {
          for (std::size_t c = 0; c < a.values[r].size(); ++c) {
            const double x = a.values[r][c];
            const double y = b.values[r][c];
            if (x != y && !(std::isnan(x) && std::isnan(y))) return false;
          }
        }
        return true;
      };
      if (before.size() == maps.size() &&
          std::equal(maps.begin(), maps.end(), before.begin(), same)) {
        continue;  // the other score says the same
      }
      before = maps;
      const eval::MetricInfo info = metric_info(group, metric);
      out_.push_back(
          {section_of(group.front().task), file_for(cat(group.front().task, "-", metric, "-map")),
           titled(info.title, group),
           cat("Depth of the needle from top to bottom, length from left to right. Numbers are "
               "percent; blue is good. ",
               info.note),
           std::move(maps)});
    }
  }

  static HeatMap map_of(const std::vector<NamedRow>& rows, const std::string& task,
                        const std::string& name, bool several) {
    HeatMap map;
    map.title = several ? cat(task, ": ", name) : name;
    map.x_label = "tokens";
    map.y_label = "depth";
    std::set<std::int64_t> lengths;
    std::set<double> depths;
    double low = 0;
    double high = 0;
    for (const NamedRow& r : rows) {
      lengths.insert(r.row->length);
      if (std::isfinite(*r.row->depth)) depths.insert(*r.row->depth);
      if (std::isfinite(r.row->estimate.value)) {
        low = std::min(low, r.row->estimate.value);
        high = std::max(high, r.row->estimate.value);
      }
    }
    map.percent = high <= 1 && low >= 0;
    map.low = map.percent ? 0 : low;
    map.high = map.percent ? 1 : high <= 100 && low >= 0 ? 100 : high;
    for (const std::int64_t n : lengths) map.columns.push_back(length_text(n));
    for (const double d : depths) map.rows.push_back(significant(d, 3) + " %");
    map.values.assign(depths.size(), std::vector<double>(lengths.size(), kNothing));
    map.details.assign(depths.size(), std::vector<std::string>(lengths.size(), "not measured"));
    for (const NamedRow& r : rows) {
      if (r.name != name || r.row->task != task || !std::isfinite(*r.row->depth)) continue;
      const auto row = std::size_t(std::distance(depths.begin(), depths.find(*r.row->depth)));
      const auto column = std::size_t(std::distance(lengths.begin(), lengths.find(r.row->length)));
      eval::Estimate e = r.row->estimate;
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
      if (run->sweep) {
        Figure f = sweep_figure(*run->sweep);
        f.file = file_for(f.file);
        f.title = titled(f.title, group);
        out_.push_back(std::move(f));
      }
      for (Figure& f : search_figures(*run)) {
        auto& chart = std::get<LineChart>(f.content);
        chart.title = titled(chart.title, group);
        if (group.runs.size() > 1) chart.title += cat(" (", run->name, ")");
        add(f.section, f.file, f.note, std::move(chart));
      }
    }
  }

  // Factor per pair of every plan, one chart per model.
  void plans() {
    std::map<std::string, std::vector<const RunRecord*>> by_model;
    std::vector<std::string> order;
    for (const RunGroup& g : groups_) {
      for (const RunRecord* run : g.runs) {
        if (by_model[run->model_digest].empty()) order.push_back(run->model_digest);
        by_model[run->model_digest].push_back(run);
      }
    }
    for (const std::string& digest : order) {
      LineChart chart;
      const RunRecord& first = *by_model[digest].front();
      chart.title = cat(several_models_ ? first.model + ": " : "", "Factor per pair");
      chart.x = {"pair, from fast to slow", Spacing::linear, false};
      chart.y = {"divisor of the angle per position", Spacing::log, false};
      chart.dots = false;
      std::set<std::string> seen;
      std::map<std::string, int> names;
      std::optional<Boundaries> middle;
      for (const RunRecord* run : by_model[digest]) {
        for (const RecordedMethod& m : run->methods) {
          if (!m.numbers || !seen.insert(m.plan + "\n" + m.method).second) continue;
          const std::string name =
              ++names[m.method] == 1 ? m.method : cat(m.method, " (", run->name, ")");
          Series s = colours_.series(name);
          for (std::size_t i = 0; i < m.numbers->factor().size(); ++i) {
            s.points.push_back({double(i), m.numbers->factor()[i]});
          }
          chart.series.push_back(std::move(s));
          if (!m.untouched) middle = m.numbers->boundaries();
        }
      }
      if (chart.series.empty()) continue;
      if (middle) {
        chart.marks = {{double(middle->low), cat("low ", middle->low)},
                       {double(middle->high), cat("high ", middle->high)}};
      }
      add("Plans", cat("plans"),
          "Pairs left of low turn as trained; pairs right of high are slowed in full; methods "
          "differ in between. An elastic plan is shown at its last rung.",
          std::move(chart));
    }
  }

  std::vector<RunGroup> groups_;
  bool several_models_ = false;
  Palette colours_;
  std::map<std::string, int> files_;
  std::vector<Figure> out_;
};

}  // namespace

std::string section_of(const std::string& task_name) {
  const eval::Task* task = eval::find_task(task_name);
  return task != nullptr ? task->section : task_name.substr(0, task_name.find('/'));
}

std::vector<Figure> figures_of(const std::vector<RunRecord>& records) {
  return FigureMaker(records).make();
}

std::vector<TaskTable> tables_of(const std::vector<RunRecord>& records) {
  std::vector<TaskTable> out;
  for (const RunGroup& group : grouped(records)) {
    for (const RunRecord* run : group.runs) {
      if (run->sweep) out.push_back({kSweepSection, sweep_table(*run->sweep)});
    }
    const std::vector<NamedRow> all = named_rows(group);
    for (const std::string& metric : distinct(all, metric_of)) {
      const std::vector<NamedRow> rows = chosen(all, metric, false);
      if (rows.empty()) continue;
      std::vector<std::int64_t> lengths = distinct(rows, length_of);
      std::sort(lengths.begin(), lengths.end());
      const std::vector<std::string> tasks = distinct(rows, task_of);
      DataTable table;
      table.caption = cat(group.front().model, ": ", metric_info(group, metric).title);
      table.header = {"method"};
      if (tasks.size() > 1) table.header.insert(table.header.begin(), "task");
      table.text_columns = table.header.size();
      for (const std::int64_t n : lengths) table.header.push_back(length_text(n));
      table.header.push_back("n");
      for (const std::string& task : tasks) {
        for (const std::string& name : distinct(rows, name_of)) {
          std::vector<std::string> line = {name};
          if (tasks.size() > 1) line.insert(line.begin(), task);
          std::size_t n = 0;
          bool any = false;
          for (const std::int64_t length : lengths) {
            const auto at = std::find_if(rows.begin(), rows.end(), [&](const NamedRow& r) {
              return r.name == name && r.row->task == task && r.row->length == length;
            });
            any |= at != rows.end();
            line.push_back(at == rows.end() ? "" : estimate_text(at->row->estimate));
            if (at != rows.end()) n = std::max(n, at->row->estimate.n);
          }
          line.push_back(cat(n));
          if (any) table.rows.push_back(std::move(line));
        }
      }
      out.push_back({section_of(group.front().task), std::move(table)});
    }
  }
  return out;
}

}  // namespace mrrope::report
