// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/sample_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

ordered_json identity(const Target& target, const std::vector<MethodUnderTest>& methods,
                      const SampleSuite& suite, const SampleRunOptions& options) {
  ordered_json run;
  run["task"] = suite.task;
  run["model"] = target.identity();
  run["engine"] = target.description();
  run["settings"] = suite.settings;
  run["settings"]["group"] = options.group;
  run["settings"]["batch"] = options.batch;
  run["settings"]["share"] = options.share;
  run["settings"]["whole_prompts"] = false;  // runs of before must still resume
  run["methods"] = methods_identity(methods);
  run["sets"] = ordered_json::array();
  for (const SampleSet& set : suite.sets) {
    run["sets"].push_back({{"task", set.task},
                           {"length", set.length},
                           {"samples", set.count},
                           {"answer_tokens", set.answer_tokens},
                           {"scorer", set.scorer}});
    if (set.questions > 1) run["sets"].back()["questions"] = set.questions;
  }
  return run;
}

std::size_t common_start(const std::vector<Token>& a, const std::vector<Token>& b) {
  const std::size_t size = std::min(a.size(), b.size());
  return std::size_t(std::mismatch(a.begin(), a.begin() + std::ptrdiff_t(size), b.begin()).first -
                     a.begin());
}

// Whether keys that were cached at the first length are on another rung at the second.
bool turned_since(const Ladder& ladder, std::size_t kept, std::int64_t read) {
  return ladder.elastic() && ladder.rung_at(std::int64_t(kept)) != ladder.rung_at(read);
}

class SampleUnits {
 public:
  SampleUnits(const Target& target, const std::vector<MethodUnderTest>& methods,
              const SampleSuite& suite, const SampleRunOptions& options)
      : target_(target), methods_(methods), suite_(suite), options_(options) {}

  std::vector<Unit> units() {
    std::vector<Unit> all;
    for (std::size_t s = 0; s < suite_.sets.size(); ++s) {
      const SampleSet& set = suite_.sets[s];
      for (std::size_t g = 0; g * options_.group < set.count; ++g) {
        const std::size_t first = g * options_.group;
        for (std::size_t m = 0; m < methods_.size(); ++m) {
          parts_.push_back({s, g, m});
          all.push_back({{std::int64_t(s), std::int64_t(g), std::int64_t(m)},
                         std::int64_t(size_of(parts_.back())) * set.length,
                         cat(methods_[m].name, "  ", set.task, " at ", length_text(set.length),
                             "  ", first, " of ", set.count),
                         cat("method ", methods_[m].name, ", ", set.task, " at ", set.length,
                             ", samples from ", first),
                         methods_[m].name});
          if (const auto same = same_before(methods_, m, set.length)) {
            all.back().same_as = all.size() - 1 - m + *same;
            all.back().cost = 0;
          }
        }
      }
    }
    return all;
  }

  ordered_json compute(std::size_t i, UnitProgress& progress) {
    const Part& part = parts_[i];
    if (part.set != made_.set || part.group != made_.group) samples_.clear();
    made_ = part;
    for (std::size_t k = samples_.size(); k < size_of(part); ++k) {
      progress.check();
      samples_.push_back(suite_.sets[part.set].make(part.group * options_.group + k));
    }
    const auto [records, tokens, naive] = ask_all(part, progress);
    return {{"task", suite_.task}, {"method", methods_[part.method].name},
            {"set", part.set},     {"group", part.group},
            {"tokens", tokens},    {"naive_tokens", naive},
            {"samples", records}};
  }

  // Behind an endpoint a group is one sample, so that no answer is asked for twice.
  Question question(std::size_t i) {
    const SampleSet& set = suite_.sets[parts_[i].set];
    Sample sample = set.make(parts_[i].group);
    Question question{{sample.prompt, sample.text}, {}};
    question.options.max_tokens = set.answer_tokens;
    in_flight_.emplace(i, std::move(sample));
    return question;
  }

  ordered_json answered(std::size_t i, const WholePrompt& prompt, const Generation& said) {
    ordered_json line = head(i);
    line["tokens"] = line["naive_tokens"] = prompt.tokens.size();
    line["samples"] = ordered_json::array({answer_json(in_flight_.at(i), said)});
    in_flight_.erase(i);
    return line;
  }

  ordered_json unanswered(std::size_t i) {
    in_flight_.erase(i);
    return head(i);
  }

 private:
  struct Part {
    std::size_t set = 0;
    std::size_t group = 0;
    std::size_t method = 0;
  };

  struct Answers {
    std::vector<ordered_json> records;
    std::int64_t tokens = 0;
    std::int64_t naive = 0;
  };

  std::size_t size_of(const Part& part) const {
    return std::min(options_.group, suite_.sets[part.set].count - part.group * options_.group);
  }

  ordered_json head(std::size_t i) const {
    const Part& part = parts_[i];
    return {{"task", suite_.task},
            {"method", methods_[part.method].name},
            {"set", part.set},
            {"group", part.group}};
  }

  Answers ask_all(const Part& part, UnitProgress& progress) {
    const SampleSet& set = suite_.sets[part.set];
    const MethodUnderTest& method = methods_[part.method];
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
    Answers answers;
    answers.records.resize(samples_.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t i = order[k];
      const std::vector<Token>& prompt = samples_[i].prompt;
      if (prompt.empty()) {
        throw Error(ErrorKind::failed, cat("sample ", samples_[i].id, " has an empty prompt"));
      }
      std::size_t kept = 0;
      if (last != nullptr && options_.share) {
        kept = common_start(*last, prompt);
        if (turned_since(*method.ladder, kept, end)) kept = 0;
      }
      if (last != nullptr && kept == 0) {
        timeline.reset();
        timeline = target_.timelines()->timeline();
      }
      // At least one token is computed: the answer begins with its logits.
      kept = std::min(kept, prompt.size() - 1);
      const std::span<const Token> rest = std::span(prompt).subspan(kept);
      answers.tokens += std::int64_t(rest.size());
      answers.naive += std::int64_t(prompt.size());
      last = &prompt;
      if (k < parts.size()) {
        read_recorded([&] {
          answers.records[i] = parts[k].at("record");
          end = whole<std::int64_t>(parts[k].at("end"));
        });
        earlier.push_back({kept, rest});
        progress.skip(set.length);
        continue;
      }
      if (k == parts.size()) read_again(*timeline, earlier, kept, !set.letters.empty(), progress);
      timeline->truncate(std::int64_t(kept));
      answers.records[i] = set.letters.empty()
                               ? generate(*timeline, set, samples_[i], rest, progress)
                               : choose(*timeline, set, samples_[i], rest, progress);
      end = timeline->length();
      progress.advance(set.length, std::int64_t(rest.size()));
      progress.part_done({{"end", end}, {"record", answers.records[i]}});
    }
    return answers;
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
      append(timeline, first, progress, needed[k] - kept);
      if (needed[k] - kept > first.size()) append(timeline, rest.last(one), progress);
    }
  }

  // Ends after the batch with the last of the tokens that are needed.
  void append(Timeline& timeline, std::span<const Token> tokens, const UnitProgress& progress,
              std::size_t needed = std::numeric_limits<std::size_t>::max()) {
    const std::size_t all = tokens.size();
    while (!tokens.empty() && all - tokens.size() < needed) {
      progress.check();
      const std::size_t size = std::min(std::size_t(options_.batch), tokens.size());
      timeline.append(tokens.first(size));
      tokens = tokens.subspan(size);
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
    append(timeline, rest, progress);
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
    append(timeline, rest.first(rest.size() - 1), progress);
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
  std::vector<Part> parts_;      // of the units
  std::vector<Sample> samples_;  // of set and group made_: one for all methods
  Part made_;
  std::map<std::size_t, Sample> in_flight_;  // behind an endpoint, by unit
};

}  // namespace

void check_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const SampleSuite& suite, const SampleRunOptions& options) {
  std::vector<std::int64_t> lengths;
  std::size_t samples = 0;
  for (const SampleSet& set : suite.sets) {
    lengths.push_back(set.length);
    samples += set.count;
  }
  check_methods(target, methods, sorted_lengths(lengths), options.batch);
  for (const SampleSet& set : suite.sets) {
    if (target.prompts() == nullptr || set.letters.empty()) continue;
    throw Error(ErrorKind::unsupported,
                "comparing letters needs logits, and an endpoint only gives answers",
                "give --mode generate, or a model file");
  }
  if (options.group < 1)
    throw Error(ErrorKind::usage, "a unit of 0 samples is not possible", "10 is usual");
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
  check_samples(target, methods, suite, options);
  std::set<std::string> same;
  for (const SampleSet& set : suite.sets) same.insert(same_models_text(methods, set.length));
  for (const std::string& text : same) {
    if (!text.empty()) folder.add_note(text);
  }
  SampleUnits units(target, methods, suite, options);
  const UnitJob job = make_job(units, identity(target, methods, suite, options), sample_places);
  return run_job(target, job, folder, progress,
                 [&](const ordered_json& run, const std::vector<ordered_json>& lines) {
                   return sample_results(*suite.rules, run, lines);
                 });
}

}  // namespace mrrope::eval
