// SPDX-License-Identifier: Apache-2.0
#include "tune/search.h"

#include <numeric>
#include <set>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/plan_file.h"

namespace mrrope::tune {

namespace {

constexpr double kStartShare = 0.4;     // of the budget, at most, for the start
constexpr std::size_t kMostStart = 48;  // proposals
constexpr std::size_t kRaceTexts = 3;   // before a trial may be stopped
constexpr double kFailed = 10;          // how far a plan without numbers is above the best

// Texts of each stage of the start. The first stage reads halves.
struct Stage {
  bool halves;
  std::size_t texts;
};

std::vector<Stage> stages(const SearchSet& set) {
  const std::size_t n = set.texts.size();
  std::vector<Stage> all;
  if (!set.halves.empty()) all.push_back({true, set.halves.size()});
  for (const std::size_t texts :
       {std::max<std::size_t>(1, n / 4), std::max<std::size_t>(1, n / 2), n}) {
    if (all.empty() || all.back().halves || texts > all.back().texts) all.push_back({false, texts});
  }
  return all;
}

std::size_t kept(std::size_t n, bool rescue) {
  const std::size_t half = std::max<std::size_t>(std::min<std::size_t>(n, 2), (n + 1) / 2);
  return rescue ? std::min(n, half + (n + 3) / 4) : half;
}

// Passes that the start takes with this many proposals.
double start_cost(const SearchSet& set, std::size_t proposals, bool rescue) {
  double passes = 0;
  std::size_t n = proposals;
  std::size_t read = 0;
  for (const Stage& stage : stages(set)) {
    const auto& texts = stage.halves ? set.halves : set.texts;
    std::int64_t tokens = 0;
    for (std::size_t i = stage.halves ? 0 : read; i < stage.texts; ++i) tokens += texts[i].cost;
    if (!stage.halves) read = stage.texts;
    passes += double(n) * double(tokens) / double(set.pass);
    n = kept(n, rescue);
  }
  return passes;
}

class OutOfBudget {};

class Search {
 public:
  Search(TimelineModel& model, const Space& space, const SearchSet& set,
         const SearchOptions& options, eval::RunFolder& folder, eval::Progress& progress)
      : space_(space),
        set_(set),
        options_(options),
        measurements_(model, folder, progress, options.batch,
                      options.budget * double(set.texts.size())),
        progress_(progress),
        left_(std::int64_t(options.budget * double(set.pass))) {}

  SearchResult run(const std::vector<Proposal>& first) {
    const std::int64_t all = left_;
    progress_.start(all, 0);
    // A small budget goes into more points of the family instead.
    const bool rescue = start_cost(set_, 2 * first.size(), true) <= kStartShare * options_.budget;
    std::size_t count = first.size();
    while (count < kMostStart &&
           start_cost(set_, count + 1, rescue) <= kStartShare * options_.budget) {
      ++count;
    }
    for (const Proposal& c : first) add(c);
    for (const Point& point : spread(space_, count - first.size(), options_.seed)) {
      add(proposal_at(space_, point, "start"));
    }
    try {
      halve(rescue);
    } catch (const OutOfBudget&) {  // fully measured plans remain
    }
    throw_if(!best_, ErrorKind::failed,
             cat("the objective is not a number under any of ", result_.trials.size(),
                 " plans: ", last_failure_),
             "try -fa off, or -ctk f32 -ctv f32; mrrope eval ppl shows where it begins");
    refine_family();
    progress_.finish();

    result_.best = *best_;
    result_.passes = double(all - left_) / double(set_.pass);
    result_.front = front();
    return std::move(result_);
  }

 private:
  std::size_t add(const Proposal& proposal) {
    std::vector<Trial>& all = result_.trials;
    const auto same = [&](const Trial& t) { return t.proposal.numbers == proposal.numbers; };
    if (const Trial* known = find_by(all, same)) return std::size_t(known - all.data());
    all.push_back({proposal});
    return all.size() - 1;
  }

  // One unit, from the journal or computed now. Throws OutOfBudget.
  const Measured& unit(const Proposal& proposal, const SearchText& text) {
    const std::string key = Measurements::key(proposal.numbers, text.id, text.length);
    if (counted_.count(key) == 0) {
      if (left_ < text.cost) throw OutOfBudget();
      left_ -= text.cost;
      counted_.insert(key);
    }
    progress_.label(best_text());
    return measurements_.of(proposal, text);
  }

  std::string best_text() const {
    if (!best_) return "start";
    const Trial& t = result_.trials[*best_];
    return cat("best ", fixed(t.objective.value, 4), ": ", t.proposal.name);
  }

  double objective(const Measured& m) const { return m.objective(options_.weight); }

  void update(Trial& trial) {
    for (const Measured& m : trial.measured) {
      if (!m.failed.empty()) last_failure_ = m.failed;
    }
    const auto own = [&](const Measured& m) { return objective(m); };
    trial.objective = eval::mean(mapped(trial.measured, own));
    trial.log_perplexity = eval::mean(mapped(trial.measured, &Measured::log_perplexity));
    trial.answer_loss = eval::mean(mapped(trial.measured, &Measured::answer_loss));
    trial.complete = trial.measured.size() == set_.texts.size();
  }

  // One more text of the set.
  void extend(std::size_t index) {
    Trial& trial = result_.trials[index];
    trial.measured.push_back(unit(trial.proposal, set_.texts[trial.measured.size()]));
    update(trial);
  }

  // The best so far is always one measured on the whole set.
  void consider(std::size_t index) {
    const Trial& trial = result_.trials[index];
    if (!trial.complete || !std::isfinite(trial.objective.value)) return;
    if (best_ && trial.objective.value >= result_.trials[*best_].objective.value) return;
    best_ = index;
  }

  void halve(bool rescue) {
    std::vector<std::size_t> alive(result_.trials.size());
    std::iota(alive.begin(), alive.end(), 0);
    for (const Stage& stage : stages(set_)) {
      std::map<std::size_t, Trial> seen;
      for (const std::size_t i : alive) {
        if (stage.halves) {
          for (const SearchText& text : set_.halves) {
            const Proposal shorter = at_length(space_, result_.trials[i].proposal, text.length);
            seen[i].measured.push_back(unit(shorter, text));
          }
          update(seen[i]);
        } else {
          while (result_.trials[i].measured.size() < stage.texts) extend(i);
          seen[i] = result_.trials[i];
          consider(i);
        }
      }
      if (!stage.halves && stage.texts == set_.texts.size()) return;
      drop(alive, seen, rescue);
      if (alive.empty()) return;
    }
  }

  // Keeps the better half, and what is used without a search, to compare with. rescue: and of the
  // others, while there is room, the best in perplexity alone, the best in answers alone (the ends
  // of the front), and those that are not clearly worse than the best.
  void drop(std::vector<std::size_t>& alive, std::map<std::size_t, Trial>& seen,
            bool rescue) const {
    const auto by = [&](eval::Estimate Trial::*estimate) {
      return [&seen, estimate](std::size_t a, std::size_t b) {
        return (seen[a].*estimate).value < (seen[b].*estimate).value;
      };
    };
    std::erase_if(alive, [&](std::size_t i) { return !std::isfinite(seen[i].objective.value); });
    if (alive.empty()) return;
    std::optional<std::size_t> unnamed;
    std::erase_if(alive, [&](std::size_t i) {
      if (is_auto(result_.trials[i].proposal.name)) unnamed = i;
      return unnamed == i;
    });
    std::stable_sort(alive.begin(), alive.end(), by(&Trial::objective));
    const std::size_t most = kept(alive.size(), rescue);
    const auto half = alive.begin() + std::ptrdiff_t(kept(alive.size(), false));
    std::vector<std::size_t> staying(alive.begin(), half);
    const auto save = [&](std::size_t i) {
      if (staying.size() >= most) return;
      if (!has(staying, i)) staying.push_back(i);
    };
    if (rescue && half != alive.end()) {
      save(*std::min_element(alive.begin(), alive.end(), by(&Trial::log_perplexity)));
      save(*std::min_element(alive.begin(), alive.end(), by(&Trial::answer_loss)));
      for (auto i = half; i != alive.end(); ++i) {
        const eval::Estimate d = difference(seen[*i], seen[alive.front()]);
        if (d.n > 1 && d.value <= 2 * d.error) save(*i);
      }
    }
    alive = std::move(staying);
    if (unnamed) alive.push_back(*unnamed);
  }

  // Of the objective, text by text: what a has more than b.
  eval::Estimate difference(const Trial& a, const Trial& b) const {
    std::vector<double> d;
    for (std::size_t i = 0; i < a.measured.size() && i < b.measured.size(); ++i) {
      d.push_back(objective(a.measured[i]) - objective(b.measured[i]));
    }
    return eval::mean(d);
  }

  // The value of a proposal for the local search: the best's plus the paired difference. A trial
  // ends early once it is worse by two standard errors; no value once the budget is spent.
  std::optional<double> race(const Proposal& proposal) {
    const std::size_t i = add(proposal);
    try {
      for (;;) {
        const Trial& trial = result_.trials[i];
        const Trial& best = result_.trials[*best_];
        const std::size_t n = trial.measured.size();
        const eval::Estimate d = difference(trial, best);
        if (n > 0 && !std::isfinite(d.value)) return best.objective.value + kFailed;
        const bool worse = n >= kRaceTexts && d.value > 2 * d.error;
        if (trial.complete || worse) {
          const double result = best.objective.value + d.value;
          consider(i);
          return result;
        }
        extend(i);
      }
    } catch (const OutOfBudget&) {
      return std::nullopt;
    }
  }

  // From the best member of the family; then, if passes are left, again from where that led.
  void refine_family() {
    std::vector<SearchAxis> axes = space_.axes;
    for (int round = 0; round < 2; ++round) {
      std::optional<std::size_t> from;
      for (std::size_t i = 0; i < result_.trials.size(); ++i) {
        const Trial& t = result_.trials[i];
        if (!t.complete || !t.proposal.point) continue;
        if (!from || t.objective.value < result_.trials[*from].objective.value) from = i;
      }
      if (!from) return;
      bool spent = false;
      refine(axes, *result_.trials[*from].proposal.point, [&](const Point& point) {
        const auto value = race(proposal_at(space_, point, "refined"));
        spent = !value;
        return value;
      });
      if (spent) return;
      for (SearchAxis& axis : axes) axis.step /= 2;
    }
  }

  std::vector<std::size_t> front() const {
    std::vector<std::size_t> all;
    const auto better = [&](const Trial& a, const Trial& b) {
      return a.log_perplexity.value <= b.log_perplexity.value &&
             a.answer_loss.value <= b.answer_loss.value &&
             (a.log_perplexity.value < b.log_perplexity.value ||
              a.answer_loss.value < b.answer_loss.value);
    };
    for (std::size_t i = 0; i < result_.trials.size(); ++i) {
      const Trial& t = result_.trials[i];
      if (!t.complete || !std::isfinite(t.objective.value)) continue;
      const auto beats = [&](const Trial& other) { return other.complete && better(other, t); };
      if (!find_by(result_.trials, beats)) all.push_back(i);
    }
    std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
      return result_.trials[a].log_perplexity.value < result_.trials[b].log_perplexity.value;
    });
    return all;
  }

  const Space& space_;
  const SearchSet& set_;
  const SearchOptions& options_;
  Measurements measurements_;
  eval::Progress& progress_;
  std::int64_t left_;  // tokens of the budget
  std::set<std::string> counted_;
  std::optional<std::size_t> best_;
  std::string last_failure_;
  SearchResult result_;
};

// What every unit depends on: the identity of the run.
ordered_json search_identity(TimelineModel& model, const Space& space, const SearchSet& set,
                             const SearchOptions& options) {
  ordered_json run;
  run["task"] = "tune";
  run["model"] = eval::Target(model).identity();
  run["engine"] = model.description();
  run["settings"] = {{"ctx", space.ctx},
                     {"questions", options.questions},
                     {"form", options.form.name},
                     {"batch", options.batch},
                     {"seed", options.seed}};
  run["texts"] = ordered_json::array();
  for (const SearchText& text : set.texts) {
    run["texts"].push_back({{"id", text.id}, {"tokens", text.cost}});
  }
  return run;
}

ordered_json estimate(const eval::Estimate& e) {
  return {{"value", json_or_null(e.value)}, {"stderr", json_or_null(e.error)}, {"n", e.n}};
}

TextRow row(const Trial& t, const std::string& mark) {
  return {cat(mark, t.proposal.name), fixed(std::exp(t.log_perplexity.value), 3),
          fixed(t.answer_loss.value, 3), fixed(t.objective.value, 4)};
}

}  // namespace

Measurements::Measurements(TimelineModel& model, eval::RunFolder& folder, eval::Progress& progress,
                           std::int64_t batch, double most)
    : model_(model), folder_(folder), progress_(progress), batch_(batch), most_(most) {
  for (const ordered_json& line : folder.units()) {
    try {
      done_[key(line.at("numbers").get<std::string>(), line.at("text").get<std::string>(),
                whole<std::int64_t>(line.at("length")))] = measured_from_json(line);
    } catch (const ordered_json::exception& e) {
      throw Error(ErrorKind::corrupt, cat("a line of the journal is damaged: ", e.what()),
                  "delete this line, or the folder");
    }
  }
}

std::string Measurements::key(const std::string& numbers, const std::string& text,
                              std::int64_t length) {
  return cat(numbers, "\n", text, "\n", length);
}

const Measured& Measurements::of(const Proposal& proposal, const SearchText& text) {
  const std::string here = key(proposal.numbers, text.id, text.length);
  const auto found = done_.find(here);
  if (found != done_.end()) return found->second;
  const Measured measured = measure(model_, proposal.ladder, text, batch_, [&](std::int64_t n) {
    progress_.advance(n);
    if (!interrupt_requested()) return;
    throw folder_.interrupted(done_.size(), std::max(done_.size(), std::size_t(most_)));
  });
  ordered_json line = {
      {"task", "tune"},          {"plan", proposal.plan}, {"numbers", proposal.numbers},
      {"method", proposal.name}, {"text", text.id},       {"length", text.length}};
  line.update(to_json(measured));
  folder_.append(line);
  return done_[here] = measured;
}

SearchSet make_search_set(const Tokenizer& model, const Space& space,
                          const std::vector<eval::Document>& documents,
                          const SearchOptions& options) {
  SearchSet set;
  // At half the length, if that still needs a meaningful extension.
  const std::int64_t window = space.geometry.train_length;
  const std::int64_t shorter = space.ctx >= 3 * window ? space.ctx / 2 : space.ctx * 3 / 4;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::vector<Token> tokens = model.tokenize(documents[i].text, false, false);
    const auto planted = [&](std::int64_t length, std::size_t questions) {
      return plant(model, options.form, documents[i].id, tokens, length, questions, options.seed,
                   i);
    };
    set.texts.push_back(planted(space.ctx, options.questions));
    set.pass += set.texts.back().cost;
    if (shorter > window && i < std::max<std::size_t>(1, documents.size() / 4)) {
      set.halves.push_back(planted(shorter, (options.questions + 1) / 2));
    }
  }
  return set;
}

std::vector<SearchText> make_proof_texts(const Tokenizer& model, std::int64_t length,
                                         const std::vector<eval::Document>& documents,
                                         const SearchOptions& options) {
  constexpr std::size_t kFirst = 1 << 20;  // other words than those of any search
  std::vector<SearchText> texts;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    texts.push_back(plant(model, options.form, documents[i].id,
                          model.tokenize(documents[i].text, false, false), length,
                          options.questions, options.seed, kFirst + i));
  }
  return texts;
}

double least_budget(const SearchSet& set, std::size_t plans) {
  // What is used without a search stays to the end. A little more, against rounding.
  return 1.001 * (start_cost(set, plans, false) + 1);
}

void check_budget(const SearchSet& set, std::size_t published, double budget) {
  constexpr double kMost = 1e18;  // tokens; they are counted in 64 bits
  refuse_if(!(budget * double(set.pass) <= kMost),
            cat("a budget of ", budget, " passes is too large"), "40 is the default");
  const double least = start_cost(set, published, false);
  if (budget >= least) return;
  throw Error(ErrorKind::usage,
              cat("a budget of ", budget, " passes is too small: comparing the ", published,
                  " published plans takes ", fixed(least, 1)),
              cat("give --budget ", std::ceil(2 * least), " or more; 40 is the default"));
}

SearchResult run_search(TimelineModel& model, const Space& space, const SearchSet& set,
                        const std::vector<Proposal>& first, const SearchOptions& options,
                        eval::RunFolder& folder, eval::Progress& progress) {
  check_budget(set, first.size(), options.budget);
  folder.begin(search_identity(model, space, set, options));
  return Search(model, space, set, options, folder, progress).run(first);
}

ordered_json to_json(const SearchResult& result, double weight) {
  ordered_json out = {{"weight", weight},
                      {"passes", result.passes},
                      {"chosen", result.best},
                      {"front", result.front},
                      {"trials", ordered_json::array()}};
  for (const Trial& t : result.trials) {
    const Proposal& c = t.proposal;
    const Plan& last = c.ladder.rungs().back().plan;
    const ordered_json numbers = plan_json(last);
    out["trials"].push_back(
        {{"name", c.name},
         {"origin", c.origin},
         {"plan", c.plan},
         {"method", c.method.name},
         {"parameters", numbers["parameters"]},
         {"boundaries", numbers["boundaries"]},
         {"headroom", c.headroom()},
         {"rung_step", c.ladder.elastic() ? ordered_json(c.ladder.rung_step()) : ordered_json()},
         {"texts", t.measured.size()},
         {"complete", t.complete},
         {"objective", estimate(t.objective)},
         {"log_perplexity", estimate(t.log_perplexity)},
         {eval::kAnswerLoss, estimate(t.answer_loss)}});
    if (const auto& near = c.ladder.near()) {
      out["trials"].back()["near"] = {{"length", near->length}, {"step", near->step}};
    }
  }
  return out;
}

std::string to_text(const SearchResult& result) {
  std::vector<TextRow> table = {{"plan", "perplexity", "answer loss", "objective"}};
  for (const std::size_t i : result.front) {
    table.push_back(row(result.trials[i], i == result.best ? "* " : "  "));
  }
  std::string text =
      cat("The front of ", result.trials.size(), " plans tried in ", fixed(result.passes, 1),
          " passes (perplexity: mean over bands; answer loss: nats per token):\n", aligned(table));
  std::vector<TextRow> others;
  for (const Trial& t : result.trials) {
    if (t.proposal.origin == "published" && t.complete) others.push_back(row(t, "  "));
  }
  if (!others.empty()) text += cat("Published plans on the same texts:\n", aligned(others));
  return text;
}

}  // namespace mrrope::tune
