// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/sample.h"

#include <numeric>
#include <set>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"

namespace mrrope::eval {

namespace {

class SampleUnits : public UnitWork {
 public:
  SampleUnits(const Target& target, const std::vector<MethodUnderTest>& methods,
              const SampleSuite& suite, const SampleRunOptions& options)
      : target_(target), methods_(methods), suite_(suite), options_(options) {}

  std::vector<Unit> units() override {
    std::vector<Unit> all;
    for (std::size_t s = 0; s < suite_.sets.size(); ++s) {
      const SampleSet& set = suite_.sets[s];
      for (std::size_t g = 0; g * options_.group < set.count; ++g) {
        const std::size_t first = g * options_.group;
        add_units(all, methods_, set.length, [&](std::size_t m) -> Unit {
          return {{std::int64_t(s), std::int64_t(g), std::int64_t(m)},
                  std::int64_t(size_of(s, g)) * set.length,
                  cat(methods_[m].name, "  ", set.task, " at ", length_text(set.length), "  ",
                      first, " of ", set.count),
                  cat("method ", methods_[m].name, ", ", set.task, " at ", set.length,
                      ", samples from ", first)};
        });
      }
    }
    return all;
  }

  ordered_json compute(const Unit& unit, UnitProgress& progress) override {
    const std::size_t group = group_of(unit);
    const std::pair made(&set_of(unit), group);
    if (std::exchange(made_, made) != made) samples_.clear();
    for (std::size_t k = samples_.size(); k < size_of(std::size_t(unit.place[0]), group); ++k) {
      progress.check();
      samples_.push_back(set_of(unit).make(group * options_.group + k));
    }
    ordered_json line = head(unit);
    ask_all(unit, line, progress);
    return line;
  }

  // Behind an endpoint a group is one sample, so that no answer is asked for twice.
  Question question(const Unit& unit) override {
    const Sample sample = set_of(unit).make(group_of(unit));
    Question question{{sample.prompt, sample.text}, {}};
    question.options.max_tokens = set_of(unit).answer_tokens;
    question.line = [sample, line = head(unit)](const Generation* said) mutable {
      if (said == nullptr) return line;
      line["tokens"] = line["naive_tokens"] = sample.prompt.size();
      line["samples"] = ordered_json::array({answer_json(sample, *said)});
      return line;
    };
    return question;
  }

 private:
  // A unit's place: set, group, method.
  const SampleSet& set_of(const Unit& unit) const {
    return suite_.sets[std::size_t(unit.place[0])];
  }
  static std::size_t group_of(const Unit& unit) { return std::size_t(unit.place[1]); }

  std::size_t size_of(std::size_t set, std::size_t group) const {
    return std::min(options_.group, suite_.sets[set].count - group * options_.group);
  }

  ordered_json head(const Unit& unit) const {
    return {{"task", suite_.task},
            {"method", unit.method},
            {"set", unit.place[0]},
            {"group", unit.place[1]}};
  }

  // Adds tokens, naive_tokens and samples to the line.
  void ask_all(const Unit& unit, ordered_json& line, UnitProgress& progress) {
    const SampleSet& set = set_of(unit);
    const MethodUnderTest& method = methods_[std::size_t(unit.place[2])];
    std::vector<std::size_t> order(samples_.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return samples_[a].prompt < samples_[b].prompt;
    });
    target_.timelines()->use(*method.ladder);
    auto timeline = target_.timelines()->timeline();
    const std::vector<Token>* last = nullptr;
    std::int64_t end = 0;  // of the timeline, after the last answer
    const std::vector<ordered_json> parts = progress.parts();
    std::vector<Reading> earlier;
    std::int64_t tokens = 0;
    std::int64_t naive = 0;
    std::vector<ordered_json> records(samples_.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t i = order[k];
      const std::vector<Token>& prompt = samples_[i].prompt;
      fail_if(prompt.empty(), cat("sample ", samples_[i].id, " has an empty prompt"));
      std::size_t kept = 0;
      if (last != nullptr && options_.share) {
        kept = common_prefix(*last, prompt);
        // Keys that were turned to another rung since are not shared.
        const Ladder& ladder = *method.ladder;
        if (ladder.elastic() && ladder.rung_at(std::int64_t(kept)) != ladder.rung_at(end)) kept = 0;
      }
      if (last != nullptr && kept == 0) {
        timeline.reset();
        timeline = target_.timelines()->timeline();
      }
      // At least one token is computed: the answer begins with its logits.
      kept = std::min(kept, prompt.size() - 1);
      const std::span<const Token> rest = std::span(prompt).subspan(kept);
      tokens += std::int64_t(rest.size());
      naive += std::int64_t(prompt.size());
      last = &prompt;
      if (k < parts.size()) {
        read_recorded([&] {
          records[i] = parts[k].at("record");
          end = whole<std::int64_t>(parts[k].at("end"));
        });
        earlier.push_back({kept, rest});
        progress.skip(set.length);
        continue;
      }
      if (k == parts.size()) read_again(*timeline, earlier, kept, !set.letters.empty(), progress);
      timeline->truncate(std::int64_t(kept));
      records[i] = set.letters.empty() ? generate(*timeline, set, samples_[i], rest, progress)
                                       : choose(*timeline, set, samples_[i], rest, progress);
      end = set.letters.empty() ? end_ : timeline->length();
      progress.advance(set.length - std::exchange(shown_, 0), 0);  // what is shared, or not written
      progress.part_done({{"end", end}, {"record", records[i]}});
    }
    line["tokens"] = tokens;
    line["naive_tokens"] = naive;
    line["samples"] = records;
  }

  // A prompt that an earlier call read after the first `kept` tokens of the one before.
  struct Reading {
    std::size_t kept = 0;
    std::span<const Token> rest;
  };

  // The first `shared` tokens as these left them, from the same batches: others round differently.
  void read_again(Timeline& timeline, const std::vector<Reading>& readings, std::size_t shared,
                  bool letters, const UnitProgress& progress) {
    std::vector<std::size_t> needed(readings.size());  // that later prompts have not replaced
    for (std::size_t k = readings.size(); k-- > 0;) {
      needed[k] = shared;
      shared = std::min(shared, readings[k].kept);
    }
    for (std::size_t k = 0; k < readings.size(); ++k) {
      const auto& [kept, rest] = readings[k];
      if (needed[k] <= kept) continue;
      timeline.truncate(std::int64_t(kept));
      const std::size_t one = letters ? 1 : 0;  // the last token was a batch of its own
      const std::span<const Token> first = rest.first(rest.size() - one);
      progress.read(timeline, first, options_.batch, {}, needed[k] - kept);
      if (needed[k] - kept > first.size()) progress.read(timeline, rest.last(one), options_.batch);
    }
  }

  void read(Timeline& timeline, std::span<const Token> tokens, UnitProgress& progress) {
    progress.read(timeline, tokens, options_.batch, [&](std::int64_t size) {
      progress.advance(size, size);
      shown_ += size;
    });
  }

  static ordered_json record(const Sample& sample) {
    ordered_json json = {{"id", sample.id}, {"prompt_tokens", sample.prompt.size()}};
    json["expected"] = mapped(sample.expected, valid_utf8);
    json.update(sample.more);
    return json;
  }

  ordered_json generate(Timeline& timeline, const SampleSet& set, const Sample& sample,
                        std::span<const Token> rest, UnitProgress& progress) {
    read(timeline, rest, progress);
    GenerateOptions options;
    options.max_tokens = set.answer_tokens;
    // It ends where more words cannot change the score.
    std::string so_far;
    options.on_text = [&](std::string_view piece) {
      so_far += piece;
      if (shown_ < set.length) ++shown_, progress.advance(1, 0);
      const auto decided = suite_.rules->decided;
      return !interrupt_requested() &&
             (decided == nullptr || !decided(set.scorer, sample.expected, so_far));
    };
    const Generation said = timeline.generate(options);
    progress.check();
    ordered_json json = answer_json(sample, said);
    const std::int64_t end = timeline.length();
    if (suite_.rules->answer != nullptr) {
      const std::vector<Token> right = answer_tokens(
          target_.tokenizer(), sample.text, suite_.rules->answer(set.scorer, sample.expected));
      if (right.size() <= std::size_t(set.answer_tokens)) {
        json[kAnswerLoss] =
            json_or_null(answer_loss(timeline, std::int64_t(sample.prompt.size()), right));
      }
    }
    end_ = std::max(end, timeline.length());
    return json;
  }

  static ordered_json answer_json(const Sample& sample, const Generation& said) {
    ordered_json json = record(sample);
    json["text"] = valid_utf8(said.text);
    json["finish"] = said.finish == "cancelled" ? "decided" : said.finish;
    json["gap"] = json_or_null(said.smallest_gap);
    return json;
  }

  ordered_json choose(Timeline& timeline, const SampleSet& set, const Sample& sample,
                      std::span<const Token> rest, UnitProgress& progress) {
    read(timeline, rest.first(rest.size() - 1), progress);
    std::vector<double> best(set.letters.size());
    const std::size_t wanted = 0;
    timeline.append(rest.last(1), {&wanted, 1}, [&](std::size_t, std::span<const float> logits) {
      for (std::size_t i = 0; i < best.size(); ++i) {
        best[i] = letter_logit(set.letters[i], logits);
      }
    });
    progress.advance(1, 1);
    ++shown_;
    const auto top = std::max_element(best.begin(), best.end());
    ordered_json json = record(sample);
    json["text"] = std::string(1, char('A' + (top - best.begin())));
    json["logits"] = best;
    std::vector<double> sorted = best;
    std::sort(sorted.rbegin(), sorted.rend());
    json["gap"] = sorted.size() > 1 ? json_or_null(sorted[0] - sorted[1]) : ordered_json();
    return json;
  }

  static double letter_logit(const std::vector<Token>& spellings, std::span<const float> logits) {
    double best = double(logits[std::size_t(spellings.front())]);
    for (const Token token : spellings) best = std::max(best, double(logits[std::size_t(token)]));
    return best;
  }

  const Target target_;
  std::int64_t end_ = 0;  // how far the timeline went for the last answer
  const std::vector<MethodUnderTest>& methods_;
  const SampleSuite& suite_;
  const SampleRunOptions& options_;
  std::int64_t shown_ = 0;                           // of the sample that is asked
  std::vector<Sample> samples_;                      // made once for all methods
  std::pair<const SampleSet*, std::size_t> made_{};  // whose they are
};

constexpr std::size_t kCost = 20;  // a row here costs more than a number

// Units are the set and the number of a sample in it. Only samples of the journal take memory: the
// counts in run.json are only a claim.
class Scores {
 public:
  Scores(const ordered_json& run, ResultTable& table, const SampleRules& rules)
      : rules_(rules), table_(table) {
    const ordered_json& settings = run.at("settings");
    source_ = settings.value("source", "");
    group_ = whole<std::size_t>(settings.at("group"));
    const bool none = group_ == 0 || run.at("sets").empty();
    if (none) damaged_run("run.json describes a run without samples");
    table.tasks.clear();
    std::set<std::string> tasks;
    std::size_t units = 0;
    for (const ordered_json& entry : run.at("sets")) {
      SampleSet set{.task = entry.at("task").get<std::string>(),
                    .length = whole<std::int64_t>(entry.at("length")),
                    .scorer = entry.at("scorer").get<std::string>(),
                    .count = whole<std::size_t>(entry.at("samples"))};
      if (entry.contains("questions")) {
        set.questions = std::max<std::size_t>(1, whole<std::size_t>(entry["questions"]));
      }
      questions_ = std::max(questions_, set.questions);
      prompts_ += set.count;
      units += set.count / group_ + (set.count % group_ > 0 ? 1 : 0);
      if (tasks.insert(set.task).second) table.tasks.push_back(set.task);
      tasks_at_[set.length].insert(set.task);
      if (set.count > 0) sampled_.insert(set.task);
      sets_.push_back(std::move(set));
    }
    table.lengths = mapped(tasks_at_, [](const auto& at) { return at.first; });
    table.units = questions_ > 1 ? "texts" : "samples";
    table.expected_units = units * table.methods.size();
    check_grid({table.methods.size(), table.lengths.size(), table.tasks.size() + 1, kCost});
  }

  void unit(std::size_t method, const ordered_json& unit) {
    const std::size_t s = whole<std::size_t>(unit.at("set"));
    const std::size_t group = whole<std::size_t>(unit.at("group"));
    if (s >= sets_.size() || group > sets_[s].count / group_ ||
        group * group_ + unit.at("samples").size() > sets_[s].count) {
      foreign_line(unit);
    }
    tokens_ += token_count(unit, "tokens");
    naive_tokens_ += token_count(unit, "naive_tokens");
    std::size_t at = group * group_;
    for (const ordered_json& record : unit.at("samples")) sample(method, {s, at++}, record);
  }

  void finish() {
    if (metrics_.empty()) metrics_ = {rules_.metric.empty() ? "score" : rules_.metric};
    table_.metric = metrics_.front();
    if (has_loss_) metrics_.emplace_back(kAnswerLoss);
    std::set<std::string> tags;
    for (const auto& [key, list] : tags_) tags.insert(list.begin(), list.end());
    check_grid({table_.methods.size(), table_.lengths.size(), tags.size() + 1, kCost});
    if (table_.tasks.size() > 1) {
      const bool all = sampled_.size() == table_.tasks.size();
      const std::string n = cat(sampled_.size(), all ? "" : cat(" of ", table_.tasks.size()));
      table_.mean_row = all ? table_.task : cat(table_.task, " (mean of ", n, " tasks)");
      table_.mean_label = "mean of " + n;
    }
    for (std::size_t m = 0; m < table_.methods.size(); ++m) {
      std::map<std::string, Values> by_metric;
      for (const std::string& metric : metrics_) by_metric[metric] = values_of(m, metric);
      for (const std::int64_t length : table_.lengths) {
        for (const std::string& metric : metrics_) {
          add_rows(by_metric[metric], tags, table_.methods[m].method, length, metric);
        }
      }
    }
    describe();
    if (rules_.summarize != nullptr) {
      rules_.summarize(table_, table_.tasks.size() > 1 ? table_.mean_row : table_.tasks.front());
    }
    add_counts();
  }

 private:
  // Of one method and metric, by length and row.
  using Values = std::map<std::pair<std::int64_t, std::string>, UnitValues>;

  void sample(std::size_t method, const UnitKey& key, const ordered_json& record) {
    const std::string& scorer = sets_[key.first].scorer;
    for (const Score& score : rules_.grade(scorer, record)) {
      const std::string& metric = rules_.metric.empty() ? score.metric : rules_.metric;
      if (!has(metrics_, metric)) metrics_.push_back(metric);
      scores_[{method, metric}][key] = score.value;
    }
    if (record.contains(kAnswerLoss) && record[kAnswerLoss].is_number()) {
      scores_[{method, kAnswerLoss}][key] = record[kAnswerLoss].get<double>();
      has_loss_ = true;
    }
    if (record.contains("tags")) tags_[key] = record["tags"].get<std::vector<std::string>>();
    ++answers_;
    const auto text = record.at("text").get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) ++empty_;
    if (rules_.unanswered != nullptr && rules_.unanswered(scorer, text)) ++unanswered_;
    const ordered_json& gap = record.at("gap");
    if (gap.is_number() && gap.get<double>() < kTie) ++ties_;
    if (method == 0 && whole<std::int64_t>(record.value("truncated", ordered_json(0))) > 0) {
      ++truncated_;
    }
  }

  // The mean over the questions about each text.
  Values values_of(std::size_t method, const std::string& metric) {
    const auto text = [&](const UnitKey& key) -> UnitKey {
      return {key.first, key.second - key.second % sets_[key.first].questions};
    };
    Values values;
    for (const auto& [key, mean] : means_of(scores_[{method, metric}], text)) {
      const SampleSet& set = sets_[key.first];
      values[{set.length, set.task}][key] = mean;
      const auto tags = tags_.find(key);
      if (tags == tags_.end()) continue;
      for (const std::string& tag : tags->second) values[{set.length, tag}][key] = mean;
    }
    return values;
  }

  void add_rows(const Values& values, const std::set<std::string>& tags, const std::string& method,
                std::int64_t length, const std::string& metric) {
    const auto add = [&](const std::string& task) {
      const auto units = values.find({length, task});
      return add_row(table_, task, method, length, metric,
                     units != values.end() ? units->second : UnitValues());
    };
    std::vector<Estimate> parts;
    for (const std::string& task : table_.tasks) {
      if (tasks_at_.at(length).count(task) == 0) continue;
      const Estimate score = add(task);
      if (sampled_.count(task) > 0) parts.push_back(score);
    }
    for (const std::string& tag : tags) add(tag);
    if (table_.mean_row.empty()) return;
    table_.rows.push_back({table_.mean_row, method, length, {}, metric, mean_of_means(parts)});
  }

  void describe() {
    table_.heading =
        cat(table_.task, ", ", source_, " (window ", length_text(table_.window), ")\n");
    for (const std::int64_t length : table_.lengths) {
      for (const std::string& metric : metrics_) {
        const char* what =
            metric == kAnswerLoss ? " of the right answer in nats per token:\n" : " in percent:\n";
        table_.tables.push_back({cat("\nAt ", length_text(length), " (", length, " tokens), ",
                                     metric == kAnswerLoss ? "loss" : metric, what),
                                 metric, Axis::task, Axis::method, length});
      }
    }
  }

  void add_counts() {
    ordered_json& more = table_.more;
    more["source"] = source_;
    more["prompts"] = prompts_;
    if (questions_ > 1) more["questions_per_text"] = questions_;
    more["truncated"] = truncated_;
    more["answers"] = answers_;
    more["empty"] = empty_;
    more["unanswered"] = unanswered_;
    more["ties"] = ties_;
    more["tokens"] = tokens_;
    more["naive_tokens"] = naive_tokens_;
    std::string& text = table_.remarks;
    if (truncated_ > 0) {
      text += cat("Cut in the middle to fit: ", truncated_, " of ", prompts_, " prompts.\n");
    }
    text += questions_remark(questions_);
    if (empty_ > 0) text += cat("Empty answers: ", empty_, " of ", answers_, ".\n");
    if (unanswered_ > 0) {
      text += cat("Answers that name no choice, counted as wrong: ", unanswered_, " of ", answers_,
                  ".\n");
    }
    text += tie_remark(ties_, answers_) + sharing_remark(tokens_, naive_tokens_);
  }

  const SampleRules& rules_;
  ResultTable& table_;
  std::string source_;
  std::size_t group_ = 1;
  std::vector<SampleSet> sets_;
  std::map<std::int64_t, std::set<std::string>> tasks_at_;  // [length]
  std::set<std::string> sampled_;                           // tasks with a sample in this run
  std::vector<std::string> metrics_;
  bool has_loss_ = false;
  std::map<std::pair<std::size_t, std::string>, UnitValues> scores_;
  std::map<UnitKey, std::vector<std::string>> tags_;
  std::size_t answers_ = 0, empty_ = 0, unanswered_ = 0, ties_ = 0;
  std::size_t prompts_ = 0, truncated_ = 0;  // for one method
  std::size_t questions_ = 1;                // asked about one text
  std::int64_t tokens_ = 0, naive_tokens_ = 0;
};

// A unit's place: set, group, method.
PlaceOf sample_places(const ordered_json& run) {
  return [method_of = method_finder(run)](const ordered_json& unit) -> UnitPlace {
    return {whole<std::int64_t>(unit.at("set")), whole<std::int64_t>(unit.at("group")),
            std::int64_t(method_of(unit))};
  };
}

}  // namespace

void check_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const SampleSuite& suite) {
  std::size_t samples = 0;
  bool letters = false;
  for (const SampleSet& set : suite.sets) {
    samples += set.count;
    letters |= !set.letters.empty();
  }
  check_methods(target, methods, sorted_lengths(mapped(suite.sets, &SampleSet::length)));
  unsupported_if(letters && target.prompts() != nullptr,
                 "comparing letters needs logits, and an endpoint only gives answers",
                 "give --form auto, or a model file");
  refuse_if(samples == 0, cat("no sample of ", suite.task, " is left to run"),
            "give more data, or a wider choice of it");
}

ResultTable run_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                        const SampleSuite& suite, const SampleRunOptions& requested,
                        RunFolder& folder, Progress& progress) {
  SampleRunOptions options = requested;
  // No text is read in two units.
  std::size_t questions = 1;
  for (const SampleSet& set : suite.sets) questions = std::lcm(questions, set.questions);
  options.group = questions * std::max<std::size_t>(1, options.group / questions);
  if (target.prompts() != nullptr) {
    options.group = 1;
    options.share = false;
  }
  check_samples(target, methods, suite);
  ordered_json settings = suite.settings;
  settings["group"] = options.group;
  settings["batch"] = options.batch;
  settings["share"] = options.share;
  settings["whole_prompts"] = false;  // runs of before must still resume
  ordered_json run = run_identity(suite.task, target, methods, std::move(settings));
  run["sets"] = ordered_json::array();
  for (const SampleSet& set : suite.sets) {
    run["sets"].push_back({{"task", set.task},
                           {"length", set.length},
                           {"samples", set.count},
                           {"answer_tokens", set.answer_tokens},
                           {"scorer", set.scorer}});
    if (set.questions > 1) run["sets"].back()["questions"] = set.questions;
  }
  note_same_models(folder, methods, mapped(suite.sets, &SampleSet::length));
  SampleUnits units(target, methods, suite, options);
  return run_job(target, units, run, folder, progress);
}

void unknown_scorer(const std::string& name) {
  throw Error(ErrorKind::corrupt, cat("there is no scorer ", shown(name)),
              "this run was made by another version of mrrope");
}

Task sample_task(const std::string& name, const SampleRules& rules) {
  const auto results = [&rules](const RecordedRun& recorded) {
    return fill_table<Scores>(recorded, rules);
  };
  return {name, name, {answer_loss_info()}, sample_places, results};
}

}  // namespace mrrope::eval
