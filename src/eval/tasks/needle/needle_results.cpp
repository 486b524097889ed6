// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "eval/score/rouge.h"
#include "eval/tasks/needle/needle.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

constexpr const char* kStemmed = "rouge1_recall_stemmed";

// Throws Error (corrupt) where the value is not in the list.
template <typename List>
std::size_t index_of(const List& list, const ordered_json& value, const ordered_json& unit) {
  const auto at = std::find(list.begin(), list.end(), value);
  if (at == list.end()) foreign_line(unit);
  return std::size_t(at - list.begin());
}

class Needles {
 public:
  Needles(const ordered_json& run, ResultTable& table) : table_(table) {
    const ordered_json& settings = run.at("settings");
    table.lengths = recorded_lengths(settings.at("lengths"));
    depths_ = settings.at("depths").get<std::vector<double>>();
    samples_ = whole<std::size_t>(settings.at("samples"));
    form_ = settings.at("form").at("name").get<std::string>();
    haystacks_ = run.at("haystacks").size();
    metrics_ = {kRecall, kContains};
    if (has_words(settings.at("form").at("answer").get<std::string>())) {
      metrics_.insert(metrics_.begin() + 1, kStemmed);  // stems may differ from the words
    }
    table.metric = form_ == kKamradt ? kRecall : kContains;
    table.units = "needles";
    check_grid({table.methods.size(), table.lengths.size(), depths_.size()});
    check_grid({table.methods.size(), table.methods.size(), table.lengths.size()});
    ties_.resize(table.methods.size(), std::vector<std::size_t>(table.lengths.size()));
    table.expected_units = samples_ * table.methods.size();
    if (run.at("model").value("architecture", "") == "served") {  // one per prompt
      table.expected_units *= table.lengths.size() * depths_.size();
    }
  }

  void unit(std::size_t method, const ordered_json& unit) {
    const std::size_t sample = whole<std::size_t>(unit.at("sample"));
    if (sample >= samples_) foreign_line(unit);
    tokens_ += token_count(unit, "tokens");
    naive_tokens_ += token_count(unit, "naive_tokens");
    for (const ordered_json& cell : unit.at("cells")) {
      const std::size_t l = index_of(table_.lengths, cell.at("length"), unit);
      const std::size_t d = index_of(depths_, cell.at("depth"), unit);
      const auto answer = cell.at("answer").get<std::string>();
      const auto text = cell.at("text").get<std::string>();
      const auto put = [&](const char* metric, double value) {
        values_[{method, l, metric}][{d, sample}] = value;
      };
      put(kRecall, rouge1_recall(answer, text));
      put(kStemmed, rouge1_recall(answer, text, Stemming::on));
      put(kContains, contains_answer(answer, text) ? 1.0 : 0.0);
      const ordered_json& gap = cell.at("gap");
      if (gap.is_number() && gap.get<double>() < kTie) ++ties_[method][l];
      if (method == 0 && !cell.at("snapped").get<bool>()) ++unsnapped_;
      table_.answers.push_back(
          {table_.methods[method].method, table_.lengths[l], depths_[d], answer, text});
    }
  }

  void finish() {
    ordered_json ties = ordered_json::array();
    for (std::size_t m = 0; m < table_.methods.size(); ++m) {
      const std::string& method = table_.methods[m].method;
      for (std::size_t l = 0; l < table_.lengths.size(); ++l) {
        const std::int64_t length = table_.lengths[l];
        for (const char* metric : metrics_) {
          add_row(table_, kNeedle, method, length, metric, values_[{m, l, metric}]);
        }
        for (std::size_t d = 0; d < depths_.size(); ++d) {
          for (const char* metric : metrics_) {
            const UnitValues& all = values_[{m, l, metric}];
            add_row(table_, kNeedle, method, length, metric,
                    {all.lower_bound({d, 0}), all.lower_bound({d + 1, 0})}, depths_[d]);
          }
        }
        const std::size_t n = values_[{m, l, kRecall}].size();
        ties.push_back({{"method", method}, {"length", length}, {"ties", ties_[m][l]}, {"n", n}});
        tied_ += ties_[m][l];
        answers_ += n;
      }
    }
    table_.more = {{"ties", ties},
                   {"unsnapped", unsnapped_},
                   {"tokens", tokens_},
                   {"naive_tokens", naive_tokens_}};
    describe();
  }

 private:
  // Whether recall and exact answers give different means.
  bool scores_differ() const {
    return std::any_of(table_.rows.begin(), table_.rows.end(), [&](const ResultRow& row) {
      return row.metric == kRecall && !row.depth &&
             row.estimate.value != table_.find(row.method, row.length, kContains)->estimate.value;
    });
  }

  void describe() {
    table_.heading = cat("Needles, form ", form_, ": ", depths_.size(), " depths x ", samples_,
                         samples_ == 1 ? " needle" : " needles", ", ", haystacks_,
                         haystacks_ == 1 ? " haystack" : " haystacks", " (window ",
                         length_text(table_.window), ")\n");
    for (const MethodRow& m : table_.methods) {
      // The plan of a model behind an endpoint is not known.
      const std::string scale = std::isnan(m.scale) ? "" : cat(", scale ", m.scale);
      table_.tables.push_back({cat("\n", m.method, scale, ": ROUGE-1 recall in percent\n"),
                               kRecall,
                               Axis::depth,
                               Axis::length,
                               {},
                               m.method});
    }
    const auto means = [&](const char* heading, const char* metric) {
      table_.tables.push_back({heading, metric, Axis::length, Axis::method});
    };
    means("\nROUGE-1 recall in percent, all depths:\n", kRecall);
    if (metrics_.size() > 2) means("\nROUGE-1 recall by stems, in percent:\n", kStemmed);
    if (scores_differ()) {
      means("\nAnswer contained, in percent:\n", kContains);
    } else {
      table_.summary = "(Answer contained: the same numbers.)\n";
    }
    table_.remarks = tie_remark(tied_, answers_);
    if (unsnapped_ > 0) {
      table_.remarks += cat(unsnapped_, " needles were inserted mid-sentence.\n");
    }
    table_.remarks += sharing_remark(tokens_, naive_tokens_);
  }

  ResultTable& table_;
  std::vector<double> depths_;
  std::size_t samples_ = 0, haystacks_ = 0;
  std::string form_;
  std::vector<const char*> metrics_;
  std::map<std::tuple<std::size_t, std::size_t, std::string>, UnitValues> values_;
  std::vector<std::vector<std::size_t>> ties_;  // [method][length]
  std::size_t tied_ = 0, answers_ = 0;
  std::size_t unsnapped_ = 0;  // inserted mid-sentence, for one method
  std::int64_t tokens_ = 0, naive_tokens_ = 0;
};

// A unit's place: sample, method, and behind an endpoint the cell.
PlaceOf needle_places(const ordered_json& run) {
  const bool served = run.at("model").value("architecture", "") == "served";
  const ordered_json& settings = run.at("settings");
  return [method_of = method_finder(run), served, lengths = settings.at("lengths"),
          depths = settings.at("depths")](const ordered_json& unit) -> UnitPlace {
    UnitPlace place = {whole<std::int64_t>(unit.at("sample")), std::int64_t(method_of(unit)), 0, 0};
    if (!served) return place;
    const ordered_json& cell = unit.contains("cells") ? unit.at("cells").at(0) : unit;
    place[2] = std::int64_t(index_of(lengths, cell.at("length"), unit)) + 1;
    place[3] = std::int64_t(index_of(depths, cell.at("depth"), unit)) + 1;
    return place;
  };
}

}  // namespace

ResultTable needle_results(const ordered_json& run, const std::vector<ordered_json>& units) {
  return fill_table<Needles>(run, units, needle_places);
}

Task needle_task() {
  Task task;
  task.name = kNeedle;
  task.section = "Needle in a haystack";
  task.metrics = {{kRecall, "Recall of the planted answer (ROUGE-1)", "recall",
                   "Share of the words of the answer that the model wrote."},
                  {kStemmed, "Recall of the planted answer by stems (ROUGE-1)", "recall",
                   "The same, with words of more than three letters by their stems."},
                  {kContains, "Needles found, letter for letter", "share of needles"}};
  task.places = needle_places;
  task.results = needle_results;
  return task;
}

}  // namespace mrrope::eval
