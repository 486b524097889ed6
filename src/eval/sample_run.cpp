// SPDX-License-Identifier: Apache-2.0
#include "eval/sample_run.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/text.h"
#include "eval/scorers.h"
#include "mrrope/error.h"

namespace mrrope {

using nlohmann::ordered_json;

namespace {

ordered_json identity(const LanguageModel& model, const std::vector<MethodUnderTest>& methods,
                      const SampleSuite& suite, const SampleRunOptions& options) {
  ordered_json run;
  run["task"] = suite.task;
  run["model"] = model_identity(model);
  run["engine"] = model.description();
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
  SampleJob(LanguageModel& model, const std::vector<MethodUnderTest>& methods,
            const SampleSuite& suite, const SampleRunOptions& options, RunFolder& folder,
            Progress& progress)
      : model_(model),
        methods_(methods),
        suite_(suite),
        options_(options),
        folder_(folder),
        progress_(progress) {}

  void run() {
    for (const ordered_json& unit : folder_.units()) {
      done_.insert(key(unit.value("method", ""), unit.value("set", std::size_t(0)),
                       unit.value("group", std::size_t(0))));
    }
    std::int64_t total = 0;
    std::int64_t before = 0;
    for (std::size_t s = 0; s < suite_.sets.size(); ++s) {
      for (std::size_t g = 0; g < groups(s); ++g) {
        const std::int64_t cost = std::int64_t(size_of(s, g)) * suite_.sets[s].length;
        for (const MethodUnderTest& method : methods_) {
          ++units_;
          total += cost;
          if (done_.count(key(method.name, s, g)) > 0) before += cost;
        }
      }
    }
    progress_.start(total, before);
    for (std::size_t s = 0; s < suite_.sets.size(); ++s) {
      for (std::size_t g = 0; g < groups(s); ++g) group(s, g);
    }
    progress_.finish();
  }

  std::int64_t computed() const { return computed_; }

 private:
  static std::string key(const std::string& method, std::size_t set, std::size_t group) {
    return cat(method, "\n", set, "\n", group);
  }

  std::size_t groups(std::size_t s) const {
    return (suite_.sets[s].count + options_.group - 1) / options_.group;
  }

  std::size_t size_of(std::size_t s, std::size_t g) const {
    return std::min(options_.group, suite_.sets[s].count - g * options_.group);
  }

  void group(std::size_t s, std::size_t g) {
    const SampleSet& set = suite_.sets[s];
    std::vector<Sample> samples;  // made once for all methods, where one needs them
    for (const MethodUnderTest& method : methods_) {
      if (done_.count(key(method.name, s, g)) > 0) continue;
      progress_.label(cat(method.name, "  ", set.task, " at ", length_text(set.length), "  ",
                          g * options_.group, " of ", set.count));
      for (std::size_t i = 0; samples.size() < size_of(s, g); ++i) {
        check_interrupt();
        samples.push_back(set.make(g * options_.group + i));
      }
      try {
        unit(method, s, g, samples);
      } catch (const Error& e) {
        if (e.kind() == ErrorKind::interrupted) throw;
        throw Error(e.kind(),
                    cat(e.what(), " (method ", method.name, ", ", set.task, " at ", set.length,
                        ", samples from ", g * options_.group, ")"),
                    e.hint().empty()
                        ? "give the same command again to go on after the finished units"
                        : e.hint());
      }
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
    model_.use(method.ladder);
    auto timeline = model_.timeline();
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
        timeline = model_.timeline();
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

  void check_interrupt() const {
    if (interrupt_requested()) throw folder_.interrupted(done_.size(), units_);
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

  LanguageModel& model_;
  const std::vector<MethodUnderTest>& methods_;
  const SampleSuite& suite_;
  const SampleRunOptions& options_;
  RunFolder& folder_;
  Progress& progress_;
  std::set<std::string> done_;
  std::size_t units_ = 0;
  std::int64_t computed_ = 0;
};

}  // namespace

void check_samples(const LanguageModel& model, const std::vector<MethodUnderTest>& methods,
                   const SampleSuite& suite, const SampleRunOptions& options) {
  std::vector<std::int64_t> lengths;
  std::size_t samples = 0;
  for (const SampleSet& set : suite.sets) {
    lengths.push_back(set.length);
    samples += set.count;
  }
  check_methods(model, methods, sorted_lengths(lengths), options.batch);
  if (options.group < 1) throw Error(ErrorKind::usage, "a unit of 0 samples", "10 is usual");
  if (samples == 0) {
    throw Error(ErrorKind::usage, cat("no sample of ", suite.task, " is left to run"),
                "give more data, or a wider choice of it");
  }
}

SampleResults run_samples(LanguageModel& model, const std::vector<MethodUnderTest>& methods,
                          const SampleSuite& suite, const SampleRunOptions& options,
                          RunFolder& folder, Progress& progress) {
  check_samples(model, methods, suite, options);
  folder.begin(identity(model, methods, suite, options));
  SampleJob job(model, methods, suite, options, folder, progress);
  job.run();
  const SampleResults results = sample_results(folder.run(), folder.units());
  folder.finish(results_text(to_json(results)), {progress.seconds(), job.computed()});
  return results;
}

}  // namespace mrrope
