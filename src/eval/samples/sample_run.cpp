// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "base/words.h"
#include "eval/samples/sample.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

// Whether keys that were cached at the first length are on another rung at the second.
bool turned_since(const Ladder& ladder, std::size_t kept, std::int64_t read) {
  return ladder.elastic() && ladder.rung_at(std::int64_t(kept)) != ladder.rung_at(read);
}

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
    if (&set_of(unit) != made_set_ || group != made_group_) samples_.clear();
    made_set_ = &set_of(unit);
    made_group_ = group;
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
    Sample sample = set_of(unit).make(group_of(unit));
    Question question{{sample.prompt, sample.text}, {}};
    question.options.max_tokens = set_of(unit).answer_tokens;
    in_flight_.emplace(unit.place, std::move(sample));
    return question;
  }

  ordered_json answered(const Unit& unit, const WholePrompt& prompt,
                        const Generation& said) override {
    ordered_json line = head(unit);
    line["tokens"] = line["naive_tokens"] = prompt.tokens.size();
    line["samples"] = ordered_json::array({answer_json(in_flight_.at(unit.place), said)});
    in_flight_.erase(unit.place);
    return line;
  }

  ordered_json unanswered(const Unit& unit) override {
    in_flight_.erase(unit.place);
    return head(unit);
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
      if (prompt.empty()) {
        throw Error(ErrorKind::failed, cat("sample ", samples_[i].id, " has an empty prompt"));
      }
      std::size_t kept = 0;
      if (last != nullptr && options_.share) {
        kept = common_prefix(*last, prompt);
        if (turned_since(*method.ladder, kept, end)) kept = 0;
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
      end = timeline->length();
      progress.advance(set.length, std::int64_t(rest.size()));
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

  static ordered_json record(const Sample& sample) {
    ordered_json json = {{"id", sample.id}, {"prompt_tokens", sample.prompt.size()}};
    json["expected"] = ordered_json::array();
    for (const std::string& e : sample.expected) json["expected"].push_back(valid_utf8(e));
    json.update(sample.more);
    return json;
  }

  ordered_json generate(Timeline& timeline, const SampleSet& set, const Sample& sample,
                        std::span<const Token> rest, const UnitProgress& progress) {
    progress.read(timeline, rest, options_.batch);
    GenerateOptions options;
    options.max_tokens = set.answer_tokens;
    // It ends where more words cannot change the score.
    std::string so_far;
    options.on_text = [&](std::string_view piece) {
      so_far += piece;
      const auto decided = suite_.rules->decided;
      return !interrupt_requested() &&
             (decided == nullptr || !decided(set.scorer, sample.expected, so_far));
    };
    const Generation said = timeline.generate(options);
    progress.check();
    return answer_json(sample, said);
  }

  static ordered_json answer_json(const Sample& sample, const Generation& said) {
    ordered_json json = record(sample);
    json["text"] = valid_utf8(said.text);
    json["finish"] = said.finish == "cancelled" ? "decided" : said.finish;
    json["gap"] = json_or_null(said.smallest_gap);
    return json;
  }

  ordered_json choose(Timeline& timeline, const SampleSet& set, const Sample& sample,
                      std::span<const Token> rest, const UnitProgress& progress) {
    progress.read(timeline, rest.first(rest.size() - 1), options_.batch);
    std::vector<double> best(set.letters.size());
    const std::size_t wanted = 0;
    timeline.append_observed(rest.last(1), {&wanted, 1},
                             [&](std::size_t, std::span<const float> logits) {
                               for (std::size_t i = 0; i < best.size(); ++i) {
                                 best[i] = letter_logit(set.letters[i], logits);
                               }
                             });
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
  const std::vector<MethodUnderTest>& methods_;
  const SampleSuite& suite_;
  const SampleRunOptions& options_;
  std::vector<Sample> samples_;  // of this set and group: made once for all methods
  const SampleSet* made_set_ = nullptr;
  std::size_t made_group_ = 0;
  std::map<UnitPlace, Sample> in_flight_;  // behind an endpoint
};

}  // namespace

void check_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const SampleSuite& suite) {
  std::vector<std::int64_t> lengths;
  std::size_t samples = 0;
  for (const SampleSet& set : suite.sets) {
    lengths.push_back(set.length);
    samples += set.count;
  }
  check_methods(target, methods, sorted_lengths(lengths));
  for (const SampleSet& set : suite.sets) {
    if (target.prompts() == nullptr || set.letters.empty()) continue;
    throw Error(ErrorKind::unsupported,
                "comparing letters needs logits, and an endpoint only gives answers",
                "give --form auto, or a model file");
  }
  if (samples == 0) {
    throw Error(ErrorKind::usage, cat("no sample of ", suite.task, " is left to run"),
                "give more data, or a wider choice of it");
  }
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
  std::vector<std::int64_t> lengths;
  for (const SampleSet& set : suite.sets) {
    lengths.push_back(set.length);
    run["sets"].push_back({{"task", set.task},
                           {"length", set.length},
                           {"samples", set.count},
                           {"answer_tokens", set.answer_tokens},
                           {"scorer", set.scorer}});
    if (set.questions > 1) run["sets"].back()["questions"] = set.questions;
  }
  note_same_models(folder, methods, lengths);
  SampleUnits units(target, methods, suite, options);
  return run_job(target, units, run, folder, progress);
}

}  // namespace mrrope::eval
