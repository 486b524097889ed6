// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/sample_run.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/text.h"
#include "eval/run/ask.h"
#include "eval/run/shard.h"
#include "eval/score/scorers.h"
#include "mrrope/error.h"

namespace mrrope {

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
  run["settings"]["whole_prompts"] = options.whole_prompts;
  run["methods"] = methods_identity(methods);
  run["sets"] = ordered_json::array();
  for (const SampleSet& set : suite.sets) {
    run["sets"].push_back({{"task", set.task},
                           {"length", set.length},
                           {"samples", set.count},
                           {"answer_tokens", set.answer_tokens},
                           {"scorer", set.scorer}});
  }
  return run;
}

// JSON must be UTF-8; what a model writes need not be.
std::string readable(const std::string& text) {
  using Handler = ordered_json::error_handler_t;
  return ordered_json::parse(ordered_json(text).dump(-1, ' ', false, Handler::replace));
}

std::size_t common_start(const std::vector<Token>& a, const std::vector<Token>& b) {
  const std::size_t size = std::min(a.size(), b.size());
  return std::size_t(std::mismatch(a.begin(), a.begin() + std::ptrdiff_t(size), b.begin()).first -
                     a.begin());
}

class SampleJob {
 public:
  SampleJob(const Target& target, const std::vector<MethodUnderTest>& methods,
            const SampleSuite& suite, const SampleRunOptions& options, RunFolder& folder,
            Progress& progress)
      : target_(target),
        methods_(methods),
        suite_(suite),
        options_(options),
        folder_(folder),
        progress_(progress) {
    std::vector<Unit> all;
    std::vector<std::int64_t> costs;
    for (std::size_t s = 0; s < suite_.sets.size(); ++s) {
      for (std::size_t g = 0; g < groups(s); ++g) {
        for (const MethodUnderTest& method : methods_) {
          all.push_back({s, g, &method, std::int64_t(size_of(s, g)) * suite_.sets[s].length});
          costs.push_back(all.back().cost);
        }
      }
    }
    const std::vector<bool> mine = dealt(costs, folder.info().shard);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (mine[i]) units_.push_back(all[i]);
    }
  }

  // Those of this shard.
  std::size_t units() const { return units_.size(); }

  void run() {
    for (const ordered_json& unit : folder_.units()) {
      if (unit.contains("no_answer")) continue;
      done_.insert(key(unit.value("method", ""), unit.value("set", std::size_t(0)),
                       unit.value("group", std::size_t(0))));
    }
    std::int64_t total = 0;
    std::int64_t before = 0;
    for (const Unit& u : units_) {
      total += u.cost;
      if (done_.count(key(u)) > 0) before += u.cost;
    }
    progress_.start(total, before);
    if (target_.prompts() != nullptr) return ask();
    std::vector<Sample> samples;  // made once for all methods, where one needs them
    const Unit* last = nullptr;
    for (const Unit& u : units_) {
      if (last != nullptr && (u.set != last->set || u.group != last->group)) samples.clear();
      last = &u;
      if (done_.count(key(u)) == 0) group(u, samples);
    }
    progress_.finish();
  }

  std::int64_t computed() const { return computed_; }

 private:
  struct Unit {
    std::size_t set = 0;
    std::size_t group = 0;
    const MethodUnderTest* method = nullptr;
    std::int64_t cost = 0;
  };

  static std::string key(const std::string& method, std::size_t set, std::size_t group) {
    return cat(method, "\n", set, "\n", group);
  }
  static std::string key(const Unit& u) { return key(u.method->name, u.set, u.group); }

  std::size_t groups(std::size_t s) const {
    return (suite_.sets[s].count + options_.group - 1) / options_.group;
  }

  std::size_t size_of(std::size_t s, std::size_t g) const {
    return std::min(options_.group, suite_.sets[s].count - g * options_.group);
  }

  void group(const Unit& u, std::vector<Sample>& samples) {
    const SampleSet& set = suite_.sets[u.set];
    const std::size_t first = u.group * options_.group;
    progress_.label(cat(u.method->name, "  ", set.task, " at ", length_text(set.length), "  ",
                        first, " of ", set.count));
    for (std::size_t i = samples.size(); i < size_of(u.set, u.group); ++i) {
      check_interrupt();
      samples.push_back(set.make(first + i));
    }
    try {
      unit(*u.method, u.set, u.group, samples);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::interrupted) throw;
      throw Error(e.kind(),
                  cat(e.what(), " (method ", u.method->name, ", ", set.task, " at ", set.length,
                      ", samples from ", first, ")"),
                  e.hint().empty() ? "give the same command again to go on after the finished units"
                                   : e.hint());
    }
  }

  // Every unit starts with no timeline alive: what an engine's cache looks like then does not
  // depend on earlier units, nor on whether the run was interrupted between them.
  void unit(const MethodUnderTest& method, std::size_t s, std::size_t g,
            const std::vector<Sample>& samples) {
    const SampleSet& set = suite_.sets[s];
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return samples[a].prompt < samples[b].prompt;
    });
    target_.timelines()->use(method.ladder);
    auto timeline = target_.timelines()->timeline();
    const bool share = options_.share && !method.ladder.elastic();
    const std::vector<Token>* last = nullptr;
    std::vector<ordered_json> records(samples.size());
    std::int64_t tokens = 0;
    std::int64_t naive = 0;
    for (const std::size_t i : order) {
      const std::vector<Token>& prompt = samples[i].prompt;
      if (prompt.empty()) {
        throw Error(ErrorKind::failed, cat("sample ", samples[i].id, " has an empty prompt"));
      }
      std::size_t kept = 0;
      if (last != nullptr && share) kept = common_start(*last, prompt);
      if (last != nullptr && kept == 0) {
        timeline.reset();
        timeline = target_.timelines()->timeline();
      }
      // One token at least is computed: its logits are where the answer begins.
      kept = std::min(kept, prompt.size() - 1);
      timeline->truncate(std::int64_t(kept));
      const std::span<const Token> rest = std::span(prompt).subspan(kept);
      records[i] = set.letters.empty() ? generate(*timeline, set, samples[i], rest)
                                       : choose(*timeline, set, samples[i], rest);
      tokens += std::int64_t(rest.size());
      naive += std::int64_t(prompt.size());
      progress_.advance(set.length);
      last = &prompt;
    }
    computed_ += tokens;
    folder_.append({{"task", suite_.task},
                    {"method", method.name},
                    {"set", s},
                    {"group", g},
                    {"tokens", tokens},
                    {"naive_tokens", naive},
                    {"samples", records}},
                   {progress_.seconds(), computed_});
    done_.insert(key(method.name, s, g));
  }

  // Behind a network every sample is a unit: what was answered stays answered.
  void ask() {
    std::vector<const Unit*> left;
    for (const Unit& u : units_) {
      if (done_.count(key(u)) == 0) left.push_back(&u);
    }
    std::map<std::size_t, Sample> under_way;
    AskJob job;
    job.count = left.size();
    job.make = [&](std::size_t i) {
      Sample sample = suite_.sets[left[i]->set].make(left[i]->group);
      WholePrompt prompt{sample.prompt, sample.text};
      under_way.emplace(i, std::move(sample));
      return prompt;
    };
    job.options = [&](std::size_t i) {
      GenerateOptions options;
      options.max_tokens = suite_.sets[left[i]->set].answer_tokens;
      return options;
    };
    job.done = [&](std::size_t i, const WholePrompt& prompt, const WholeAnswer& answer) {
      const Unit& u = *left[i];
      ordered_json line = {
          {"task", suite_.task}, {"method", u.method->name}, {"set", u.set}, {"group", u.group}};
      if (answer.failed.empty()) {
        line["tokens"] = line["naive_tokens"] = prompt.tokens.size();
        line["samples"] = ordered_json::array({answered(under_way.at(i), answer.said)});
        computed_ += std::int64_t(prompt.tokens.size());
        done_.insert(key(u));
      } else {
        line["no_answer"] = readable(answer.failed);
      }
      if (!answer.troubles.empty()) line["troubles"] = answer.troubles;
      under_way.erase(i);
      progress_.advance(u.cost);
      folder_.append(line, {progress_.seconds(), computed_});
    };
    note_troubles(ask_all(*target_.prompts(), job, progress_), folder_);
    check_interrupt();
    progress_.finish();
  }

  void check_interrupt() const {
    if (interrupt_requested()) throw folder_.interrupted(done_.size(), units_.size());
  }

  void append(Timeline& timeline, std::span<const Token> tokens) {
    while (!tokens.empty()) {
      check_interrupt();
      const std::size_t size = options_.whole_prompts
                                   ? tokens.size()
                                   : std::min(std::size_t(options_.batch), tokens.size());
      timeline.append(tokens.first(size));
      tokens = tokens.subspan(size);
    }
  }

  static ordered_json record(const Sample& sample) {
    ordered_json json = {{"id", sample.id}, {"prompt_tokens", sample.prompt.size()}};
    json["expected"] = ordered_json::array();
    for (const std::string& e : sample.expected) json["expected"].push_back(readable(e));
    json.update(sample.more);
    return json;
  }

  ordered_json generate(Timeline& timeline, const SampleSet& set, const Sample& sample,
                        std::span<const Token> rest) {
    append(timeline, rest);
    GenerateOptions options;
    options.max_tokens = set.answer_tokens;
    // Where more words cannot change the score, none are asked for.
    std::string so_far;
    options.on_text = [&](std::string_view piece) {
      so_far += piece;
      return !interrupt_requested() && !decided(set.scorer, sample.expected, so_far);
    };
    const Generation said = timeline.generate(options);
    check_interrupt();
    return answered(sample, said);
  }

  static ordered_json answered(const Sample& sample, const Generation& said) {
    ordered_json json = record(sample);
    json["text"] = readable(said.text);
    json["finish"] = said.finish == "cancelled" ? "decided" : said.finish;
    json["gap"] = or_null(said.smallest_gap);
    return json;
  }

  ordered_json choose(Timeline& timeline, const SampleSet& set, const Sample& sample,
                      std::span<const Token> rest) {
    append(timeline, rest.first(rest.size() - 1));
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
    json["gap"] = sorted.size() > 1 ? or_null(sorted[0] - sorted[1]) : ordered_json();
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
  RunFolder& folder_;
  Progress& progress_;
  std::set<std::string> done_;
  std::vector<Unit> units_;
  std::int64_t computed_ = 0;
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
    throw Error(ErrorKind::unsupported, "letters compare logits, and an endpoint only answers",
                "give --mode generate, or a model file");
  }
  if (options.group < 1) throw Error(ErrorKind::usage, "a unit of 0 samples", "10 is usual");
  if (samples == 0) {
    throw Error(ErrorKind::usage, cat("no sample of ", suite.task, " is left to run"),
                "give more data, or a wider choice of it");
  }
}

SampleResults run_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                          const SampleSuite& suite, const SampleRunOptions& requested,
                          RunFolder& folder, Progress& progress) {
  SampleRunOptions options = requested;
  if (target.prompts() != nullptr) {
    options.group = 1;
    options.share = false;
  }
  check_samples(target, methods, suite, options);
  SampleJob job(target, methods, suite, options, folder, progress);
  folder.begin(identity(target, methods, suite, options), job.units());
  job.run();
  const SampleResults results = sample_results(folder.run(), folder.units());
  folder.finish(results_text(to_json(results)), {progress.seconds(), job.computed()});
  return results;
}

}  // namespace mrrope
