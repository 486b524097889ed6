// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle_results.h"

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "eval/run/collect.h"
#include "eval/score/rouge.h"
#include "eval/tasks/needle/needle_forms.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

struct Score {
  double rouge = 0;
  double stemmed = 0;
  double contains = 0;
};

// Of one method at one length, by depth and sample. Only what the journal holds takes memory: the
// number of samples in run.json is only a claim.
using Scores = std::map<std::pair<std::size_t, std::size_t>, Score>;

NeedleScore estimate(Scores::const_iterator begin, Scores::const_iterator end) {
  std::vector<double> rouge;
  std::vector<double> stemmed;
  std::vector<double> contains;
  for (auto at = begin; at != end; ++at) {
    rouge.push_back(at->second.rouge);
    stemmed.push_back(at->second.stemmed);
    contains.push_back(at->second.contains);
  }
  return {mean(rouge), mean(stemmed), mean(contains)};
}

class ScoreTable {
 public:
  ScoreTable(const ordered_json& run, NeedleResults& results) : results_(results) {
    check_task(run, kNeedle);
    const ordered_json& settings = run.at("settings");
    results.lengths = recorded_lengths(settings.at("lengths"));
    results.depths = settings.at("depths").get<std::vector<double>>();
    results.samples = whole<std::size_t>(settings.at("samples"));
    results.form = settings.at("form").at("name").get<std::string>();
    results.by_recall = results.form == kKamradt;
    results.stemmed = has_words(settings.at("form").at("answer").get<std::string>());
    results.window = whole<std::int64_t>(run.at("model").at("train_length"));
    results.served = run.at("model").value("architecture", "") == "served";
    results.haystacks = run.at("haystacks").size();
    const std::size_t methods = run.at("methods").size();
    check_grid({methods, results.lengths.size(), results.depths.size()});
    check_grid({methods, methods, results.lengths.size()});
    for (const ordered_json& method : run.at("methods")) {
      NeedleRow row{read_method_row(method), {}, {}, {}};
      row.ties.resize(results.lengths.size());
      results.rows.push_back(std::move(row));
      scores_.emplace_back(results.lengths.size());
    }
  }

  void unit(std::size_t method, const ordered_json& unit) {
    const std::size_t sample = whole<std::size_t>(unit.at("sample"));
    if (sample >= results_.samples) foreign_line(unit);
    NeedleRow& row = results_.rows[method];
    results_.tokens += token_count(unit, "tokens");
    results_.naive_tokens += token_count(unit, "naive_tokens");
    for (const ordered_json& cell : unit.at("cells")) {
      const std::size_t l = index_of(results_.lengths, cell.at("length"), unit);
      const std::size_t d = index_of(results_.depths, cell.at("depth"), unit);
      const auto answer = cell.at("answer").get<std::string>();
      const auto text = cell.at("text").get<std::string>();
      scores_[method][l][{d, sample}] = {rouge1_recall(answer, text),
                                         rouge1_recall(answer, text, Stemming::on),
                                         contains_answer(answer, text) ? 1.0 : 0.0};
      const ordered_json& gap = cell.at("gap");
      if (gap.is_number() && gap.get<double>() < kTie) ++row.ties[l];
      if (method == 0 && !cell.at("snapped").get<bool>()) ++results_.unsnapped;
      results_.answers.push_back(
          {row.method, results_.lengths[l], results_.depths[d], answer, text});
    }
  }

  void finish() {
    for (std::size_t m = 0; m < results_.rows.size(); ++m) {
      NeedleRow& row = results_.rows[m];
      for (const Scores& scores : scores_[m]) {
        row.all.push_back(estimate(scores.begin(), scores.end()));
        row.cells.emplace_back();
        for (std::size_t d = 0; d < results_.depths.size(); ++d) {
          row.cells.back().push_back(
              estimate(scores.lower_bound({d, 0}), scores.lower_bound({d + 1, 0})));
        }
      }
    }
    compare();
  }

 private:
  template <typename T>
  static std::size_t index_of(const std::vector<T>& list, const ordered_json& value,
                              const ordered_json& unit) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (value == list[i]) return i;
    }
    foreign_line(unit);
  }

  void compare() {
    std::vector<std::string> methods;
    for (const NeedleRow& row : results_.rows) methods.push_back(row.method);
    const auto scores = [&](std::size_t m, std::size_t l) {
      std::map<std::pair<std::size_t, std::size_t>, double> values;
      for (const auto& [key, score] : scores_[m][l]) {
        values.emplace(key, results_.by_recall ? score.rouge : score.contains);
      }
      return values;
    };
    results_.comparisons = compare_methods(methods, results_.lengths,
                                           [&](std::size_t a, std::size_t b, std::size_t l) {
                                             return paired_where_both(scores(a, l), scores(b, l));
                                           });
  }

  NeedleResults& results_;
  std::vector<std::vector<Scores>> scores_;  // [method][length]
};

}  // namespace

NeedleResults needle_results(const ordered_json& run, const std::vector<ordered_json>& units) {
  NeedleResults results;
  read_recorded([&] {
    ScoreTable table(run, results);
    results.failed = collect(run, units, needle_places, [&](std::size_t method, const auto& unit) {
      table.unit(method, unit);
    });
    table.finish();
  });
  return results;
}

ordered_json to_json(const NeedleResults& results) {
  ordered_json json;
  ordered_json& rows = json["results"] = ordered_json::array();
  ordered_json ties = ordered_json::array();
  for (const NeedleRow& row : results.rows) {
    for (std::size_t l = 0; l < results.lengths.size(); ++l) {
      const auto put = [&](std::optional<double> depth, const char* metric, const Estimate& e) {
        rows.push_back(result_row(kNeedle, row, results.lengths[l], metric, e, depth));
      };
      const auto put_all = [&](std::optional<double> depth, const NeedleScore& score) {
        put(depth, "rouge1_recall", score.rouge);
        if (results.stemmed) put(depth, "rouge1_recall_stemmed", score.stemmed);
        put(depth, "contains", score.contains);
      };
      put_all({}, row.all[l]);
      for (std::size_t d = 0; d < results.depths.size(); ++d) {
        put_all(results.depths[d], row.cells[l][d]);
      }
      ties.push_back({{"method", row.method},
                      {"length", results.lengths[l]},
                      {"ties", row.ties[l]},
                      {"n", row.all[l].rouge.n}});
    }
  }
  json["comparisons"] =
      comparisons_json(results.comparisons, results.by_recall ? "rouge1_recall" : "contains");
  json["ties"] = ties;
  json["unsnapped"] = results.unsnapped;
  json["tokens"] = results.tokens;
  json["naive_tokens"] = results.naive_tokens;
  if (results.failed > 0) json["failed"] = results.failed;
  return json;
}

std::string hopeless_text(const NeedleResults& results) {
  for (const NeedleRow& row : results.rows) {
    if (!row.untouched && !row.grows) continue;
    std::int64_t longest = 0;
    for (std::size_t l = 0; l < results.lengths.size(); ++l) {
      const Estimate& found = results.by_recall ? row.all[l].rouge : row.all[l].contains;
      if (results.lengths[l] > results.window || found.n == 0) continue;
      if (found.value > 0) return {};
      longest = results.lengths[l];
    }
    if (longest == 0) return {};
    return cat("This model finds 0 % of these needles inside its window (measured up to ",
               length_text(longest), "): nothing can be learned beyond it.");
  }
  return {};
}

PlaceOf needle_places(const ordered_json& run) {
  const std::map<std::string, std::size_t> methods = method_indices(run);
  const bool served = run.at("model").value("architecture", "") == "served";
  const ordered_json& settings = run.at("settings");
  return [methods, served, lengths = settings.at("lengths"),
          depths = settings.at("depths")](const ordered_json& unit) -> UnitPlace {
    const auto method = methods.find(unit.at("method").get<std::string>());
    if (method == methods.end()) foreign_line(unit);
    UnitPlace place = {whole<std::int64_t>(unit.at("sample")), std::int64_t(method->second), 0, 0};
    if (!served) return place;
    const ordered_json& cell = unit.contains("cells") ? unit.at("cells").at(0) : unit;
    const auto index = [&](const ordered_json& list, const char* key) {
      const auto at = std::find(list.begin(), list.end(), cell.at(key));
      if (at == list.end()) foreign_line(unit);
      return std::int64_t(at - list.begin()) + 1;
    };
    place[2] = index(lengths, "length");
    place[3] = index(depths, "depth");
    return place;
  };
}

TaskResults task_results(const NeedleResults& r) {
  TaskResults results;
  results.json = to_json(r);
  results.text = [r](bool shaded) { return to_text(r, shaded); };
  results.units = r.samples * r.rows.size();
  if (r.served) results.units *= r.lengths.size() * r.depths.size();  // one per prompt
  if (const std::string text = hopeless_text(r); !text.empty()) results.notes.push_back(text);
  results.answers = r.answers;
  results.details = r;
  return results;
}

Task needle_task() {
  Task task;
  task.name = kNeedle;
  task.section = "Needle in a haystack";
  task.metrics = {{"rouge1_recall", "Recall of the planted answer (ROUGE-1)", "recall",
                   "Share of the words of the answer that the model wrote."},
                  {"rouge1_recall_stemmed", "Recall of the planted answer by stems (ROUGE-1)",
                   "recall", "The same, with words of more than three letters by their stems."},
                  {"contains", "Needles found, letter for letter", "share of needles"}};
  task.places = needle_places;
  task.results = [](const ordered_json& run, const std::vector<ordered_json>& units) {
    return task_results(needle_results(run, units));
  };
  return task;
}

}  // namespace mrrope::eval
