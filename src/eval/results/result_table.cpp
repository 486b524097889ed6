// SPDX-License-Identifier: Apache-2.0
#include "eval/results/result_table.h"

#include <numeric>
#include <set>

#include "base/json.h"
#include "base/text.h"

namespace mrrope::eval {

namespace {

constexpr double kFailed = 0.05;  // a score below this says nothing

// Plain ASCII, of bounded length.
std::string quoted(const ordered_json& value) {
  const std::string text = value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
  return text.size() > 200 ? text.substr(0, 197) + "..." : text;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Continued fraction of the regularised incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double result = d;
  for (int m = 1; m <= 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double step = 1;
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = 1 + term / c;
      if (std::abs(c) < kTiny) c = kTiny;
      step = c * d;
      result *= step;
    }
    if (std::abs(step - 1) < 1e-15) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on one side of the mean only.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

const Task* find_task(std::string_view name) {
  return find_by(tasks(), &Task::name, name.substr(0, name.find('/')));
}

const Task& task_of(const ordered_json& run) {
  const auto name = run.find("task");
  const Task* task =
      name != run.end() && name->is_string() ? find_task(name->get<std::string>()) : nullptr;
  if (task != nullptr) return *task;
  damaged_run(cat("run.json is not of a task of mrrope eval: ",
                  name != run.end() ? quoted(*name) : std::string("it names none")),
              "give the --out folder of an evaluation");
}

std::vector<UnitPlace> unit_places(const RecordedRun& recorded) {
  std::vector<UnitPlace> all;
  read_recorded([&] {
    const PlaceOf place = task_of(recorded.run).places(recorded.run);
    for (const ordered_json& unit : recorded.units) {
      try {
        all.push_back(place(unit));
      } catch (const nlohmann::json::exception& e) {
        damaged_run(cat("line ", all.size() + 2, " of the journal is damaged: ", e.what()),
                    "delete this line, or the folder");
      }
    }
  });
  return all;
}

void check_grid(std::initializer_list<std::size_t> counts) {
  constexpr std::size_t kMax = 2'000'000;
  std::size_t product = 1;
  for (const std::size_t count : counts) {
    if (count > 0 && product > kMax / count) {
      damaged_run("run.json describes more results than an evaluation has");
    }
    product *= count;
  }
}

std::vector<std::int64_t> recorded_lengths(const ordered_json& list) {
  const auto lengths = mapped(list, whole<std::int64_t, ordered_json>);
  const bool ascending =
      std::adjacent_find(lengths.begin(), lengths.end(), std::greater_equal()) == lengths.end();
  if (!ascending || lengths.empty() || lengths.front() < 1)
    damaged_run(cat("run.json has unusable lengths: ", quoted(list)));
  return lengths;
}

std::int64_t longest_within(const std::vector<std::int64_t>& lengths, std::int64_t limit) {
  std::int64_t longest = 0;
  for (const std::int64_t n : lengths) {
    if (n <= limit) longest = std::max(longest, n);
  }
  return longest;
}

void damaged_run(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::corrupt, message, hint);
}

void foreign_line(const ordered_json& line) {
  damaged_run(cat("a journal line is not of this run: ", quoted(line)),
              "delete the line, or the folder");
}

std::int64_t token_count(const ordered_json& unit, const char* key) {
  constexpr std::int64_t kMax = std::int64_t{1} << 40;  // a journal has fewer than 2^23 lines
  const auto count = whole<std::int64_t>(unit.at(key));
  if (count < 0 || count > kMax) foreign_line(unit);
  return count;
}

void read_recorded(const std::function<void()>& action) {
  try {
    action();
  } catch (const nlohmann::json::exception& e) {
    damaged_run(cat("run.json or the journal lacks something: ", e.what()));
  }
}

MethodRow read_method_row(const ordered_json& entry) {
  const ordered_json& scale = entry.at("scale");
  return {entry.at("method").get<std::string>(), entry.at("plan").get<std::string>(),
          scale.is_null() ? std::nan("") : scale.get<double>(), entry.value("untouched", false),
          entry.contains("numbers") && entry["numbers"].contains("rungs")};
}

const MethodRow* ResultTable::find_method(const std::string& method) const {
  return find_by(methods, &MethodRow::method, method);
}

const ResultRow* ResultTable::find(const std::string& method, std::int64_t length,
                                   const std::string& of_metric, std::optional<double> depth,
                                   const std::string& of_task) const {
  return find_by(rows, [&](const ResultRow& r) {
    return r.method == method && r.length == length && r.metric == of_metric && r.depth == depth &&
           r.task == (of_task.empty() ? task : of_task);
  });
}

std::optional<PairedDifference> ResultTable::difference(std::int64_t length, const std::string& a,
                                                        const std::string& b) const {
  for (const Comparison& c : comparisons) {
    const bool back = c.a == b && c.b == a;
    if (c.length != length || c.metric != metric || (!back && (c.a != a || c.b != b))) continue;
    PairedDifference found = c.difference;
    if (back) found.mean_difference.value = -found.mean_difference.value;
    return found;
  }
  return std::nullopt;
}

std::string ResultTable::reason_without_verdicts() const {
  const bool none = std::all_of(verdicts.begin(), verdicts.end(), [&](const Verdict& v) {
    return !v.judged && v.reason == verdicts.front().reason;
  });
  return none && verdicts.size() > 1 ? verdicts.front().reason : "";
}

std::string ResultTable::label(const std::string& of_task) const {
  if (of_task == mean_row && !mean_row.empty()) return mean_label;
  return of_task.starts_with(task + "/") ? of_task.substr(task.size() + 1) : of_task;
}

std::int64_t ResultTable::reference_length() const { return longest_within(lengths, window); }

ResultTable begin_table(const ordered_json& run) {
  ResultTable table;
  table.task = run.at("task").get<std::string>();
  table.tasks = {table.task};
  table.window = whole<std::int64_t>(run.at("model").at("train_length"));
  table.methods = mapped(run.at("methods"), read_method_row);
  return table;
}

std::function<std::size_t(const ordered_json&)> method_finder(const ordered_json& run) {
  std::map<std::string, std::size_t> methods;
  for (const ordered_json& entry : run.at("methods")) {
    methods.emplace(entry.at("method").get<std::string>(), methods.size());
  }
  return [methods](const ordered_json& unit) {
    const auto method = methods.find(unit.at("method").get<std::string>());
    if (method == methods.end()) foreign_line(unit);
    return method->second;
  };
}

std::size_t collect(const RecordedRun& recorded,
                    const std::function<void(std::size_t, const ordered_json&)>& use) {
  const auto method_of = method_finder(recorded.run);
  const PlaceOf place_of = task_of(recorded.run).places(recorded.run);
  std::set<UnitPlace> unanswered;
  for (const ordered_json& unit : recorded.units) {
    if (unit.value("task", ordered_json()) != recorded.run.at("task")) foreign_line(unit);
    const std::size_t method = method_of(unit);
    if (unit.contains("no_answer")) {
      unanswered.insert(place_of(unit));
      continue;
    }
    if (!unanswered.empty()) unanswered.erase(place_of(unit));
    use(method, unit);
  }
  return unanswered.size();
}

Estimate mean_of_units(const UnitValues& units) {
  return mean(mapped(units, &UnitValues::value_type::second));
}

UnitValues means_of(const UnitValues& units, const std::function<UnitKey(const UnitKey&)>& group) {
  std::map<UnitKey, std::pair<double, std::size_t>> sums;
  for (const auto& [unit, value] : units) {
    auto& [sum, n] = sums[group(unit)];
    sum += value, ++n;
  }
  UnitValues means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / double(sum.second);
  return means;
}

Estimate add_row(ResultTable& table, const std::string& task, const std::string& method,
                 std::int64_t length, const std::string& metric, UnitValues units,
                 std::optional<double> depth) {
  Estimate estimate = mean_of_units(units);
  if (table.logarithmic) estimate = exponential(estimate);
  table.rows.push_back({task, method, length, depth, metric, estimate, std::move(units)});
  return estimate;
}

namespace {

void compare_by(const std::string& metric, const ResultTable& table, std::vector<Comparison>& all) {
  std::map<std::pair<std::int64_t, std::string>, UnitValues> measured;
  for (const ResultRow& row : table.rows) {
    if (row.metric != metric || row.depth) continue;
    measured[{row.length, row.method}].insert(row.units.begin(), row.units.end());
  }
  if (measured.empty()) return;
  for (const std::int64_t length : table.lengths) {
    const std::vector<UnitValues> units = mapped(table.methods, [&](const MethodRow& m) {
      return measured[{length, m.method}];
    });
    const std::size_t first = all.size();
    std::vector<double> p;
    for (std::size_t a = 0; a < units.size(); ++a) {
      for (std::size_t b = a + 1; b < units.size(); ++b) {
        all.push_back({length, table.methods[a].method, table.methods[b].method,
                       paired_where_both(units[a], units[b]), kNan, metric});
        p.push_back(all.back().difference.p);
      }
    }
    const std::vector<double> corrected = holm(p);
    for (std::size_t i = 0; i < corrected.size(); ++i) all[first + i].corrected_p = corrected[i];
  }
}

}  // namespace

std::vector<Comparison> compare_methods(const ResultTable& table) {
  std::vector<Comparison> all;
  compare_by(table.metric, table, all);
  compare_by(kAnswerLoss, table, all);
  return all;
}

std::string zero_baseline_note(const ResultTable& table) {
  if (table.logarithmic) return {};
  const MethodRow* baseline =
      find_by(table.methods, [](const MethodRow& m) { return m.untouched || m.grows; });
  if (baseline == nullptr) return {};
  std::vector<std::string> names;
  for (const std::string& task : table.tasks) {
    double best = -1;
    for (const ResultRow& row : table.rows) {
      if (row.task == task && row.method == baseline->method && row.metric == table.metric &&
          !row.depth && row.length <= table.window && row.estimate.n > 0) {
        best = std::max(best, row.estimate.value);
      }
    }
    if (best < 0 || best >= kFailed) continue;
    names.push_back(cat(table.label(task), " (", fixed(100 * best, 0), " %)"));
  }
  if (names.empty()) return {};
  return cat("Inside its window of ", length_text(table.window),
             " the unmodified model fails: ", joined(names, ", "),
             ". Nothing can be learned beyond it from these tasks.");
}

std::string questions_remark(std::size_t questions) {
  if (questions < 2) return {};
  return cat("Questions about each text: ", questions,
             ". n counts texts, and errors are over texts.\n");
}

std::string tie_remark(std::size_t ties, std::size_t answers) {
  if (ties == 0) return {};
  return cat("Near ties: in ", ties, " of ", answers, " answers the top two logits came within ",
             kTie, " of each other; other hardware may give another answer.\n");
}

std::string sharing_remark(std::int64_t tokens, std::int64_t naive_tokens) {
  if (naive_tokens == 0) return {};
  return cat("Shared prefixes: ", tokens, " tokens computed of ", naive_tokens, ", ",
             fixed(100 * double(naive_tokens - tokens) / double(naive_tokens), 0), " % saved.\n");
}

Estimate mean(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n == 0) return {};
  const double average = std::accumulate(values.begin(), values.end(), 0.0) / double(n);
  if (n == 1) return {average, kNan, 1};
  double squares = 0;
  for (const double v : values) squares += (v - average) * (v - average);
  return {average, std::sqrt(squares / double(n - 1) / double(n)), n};
}

Estimate mean_of_means(const std::vector<Estimate>& parts) {
  double sum = 0;
  double squares = 0;
  std::size_t n = 0;
  for (const Estimate& e : parts) {
    if (!std::isfinite(e.value)) return {};
    sum += e.value;
    squares += e.error * e.error;
    n += e.n;
  }
  const auto k = double(parts.size());
  return parts.empty() ? Estimate() : Estimate{sum / k, std::sqrt(squares) / k, n};
}

Estimate exponential(const Estimate& log) {
  return {std::exp(log.value), std::exp(log.value) * log.error, log.n};
}

Estimate PairedDifference::percent() const {
  const Estimate ratio = exponential(mean_difference);
  return {100 * (ratio.value - 1), 100 * ratio.error, ratio.n};
}

PairedDifference paired(std::span<const double> a, std::span<const double> b) {
  std::vector<double> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  PairedDifference result;
  result.mean_difference = mean(difference);
  const Estimate& d = result.mean_difference;
  if (d.n < 2) {
    result.p = kNan;
  } else if (d.error == 0) {
    // All differences are equal, and t is not defined: how rarely random signs would all agree.
    result.p = d.value == 0 ? 1 : std::ldexp(1.0, 1 - int(std::min<std::size_t>(d.n, 1000)));
  } else {
    result.p = student_two_sided(d.value / d.error, double(d.n - 1));
  }
  return result;
}

PairedDifference paired_where_both(const UnitValues& a, const UnitValues& b) {
  std::vector<double> x;
  std::vector<double> y;
  for (const auto& [unit, value] : a) {
    const auto other = b.find(unit);
    if (other == b.end() || !std::isfinite(value) || !std::isfinite(other->second)) continue;
    x.push_back(value);
    y.push_back(other->second);
  }
  return paired(x, y);
}

double student_two_sided(double t, double degrees) {
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!std::isnan(p[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return p[x] < p[y]; });
  std::vector<double> corrected(p.size(), kNan);
  double floor = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    floor = std::max(floor, std::min(1.0, p[order[k]] * double(order.size() - k)));
    corrected[order[k]] = floor;
  }
  return corrected;
}

}  // namespace mrrope::eval
