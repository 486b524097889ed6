// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "base/text.h"
#include "eval/run/ask.h"
#include "eval/run/shard.h"
#include "eval/tasks/needle/needle_plan.h"
#include "mrrope/error.h"

namespace mrrope {

using nlohmann::ordered_json;

namespace {

ordered_json identity(const Target& target, const std::vector<MethodUnderTest>& methods,
                      const std::vector<Haystack>& haystacks, const NeedleOptions& options) {
  const NeedleForm& form = options.form;
  ordered_json run;
  run["task"] = "needle";
  run["model"] = target.identity();
  run["engine"] = target.description();
  run["settings"] = {{"lengths", options.lengths},
                     {"depths", options.depths},
                     {"samples", options.samples},
                     {"seed", options.seed},
                     {"batch", options.batch},
                     {"share", options.share},
                     {"form",
                      {{"name", form.name},
                       {"before", form.before},
                       {"needle", form.needle},
                       {"question", form.question},
                       {"answer", form.answer},
                       {"stop", form.stop},
                       {"answer_tokens", form.answer_tokens}}}};
  run["methods"] = methods_identity(methods);
  run["haystacks"] = ordered_json::array();
  for (const Haystack& h : haystacks) run["haystacks"].push_back({{"id", h.id}});
  return run;
}

// JSON must be UTF-8; what a model writes need not be.
std::string readable(const std::string& text) {
  using Handler = ordered_json::error_handler_t;
  return ordered_json::parse(ordered_json(text).dump(-1, ' ', false, Handler::replace));
}

class NeedleJob {
 public:
  NeedleJob(const Target& target, const std::vector<MethodUnderTest>& methods,
            const std::vector<Haystack>& haystacks, const NeedleOptions& options, RunFolder& folder,
            Progress& progress)
      : target_(target),
        methods_(methods),
        haystacks_(haystacks),
        options_(options),
        folder_(folder),
        progress_(progress),
        grid_{options.lengths, options.depths} {
    std::vector<Unit> all;
    std::vector<std::int64_t> costs;
    for (std::size_t s = 0; s < options_.samples; ++s) {
      NeedleTree plan = tree(s);
      for (const MethodUnderTest& method : methods_) {
        if (target_.prompts() == nullptr) all.push_back({s, &method, cost_of(plan, method)});
      }
      if (target_.prompts() != nullptr) add_cells(s, std::move(plan), all);
    }
    for (const Unit& u : all) costs.push_back(u.cost);
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
      std::string one = key(unit.value("method", ""), unit.value("sample", std::size_t(0)));
      if (target_.prompts() != nullptr) {
        const ordered_json& cell = unit.at("cells").at(0);
        one += cat("\n", cell.at("length").dump(), "\n", cell.at("depth").dump());
      }
      done_.insert(one);
    }
    std::int64_t total = 0;
    std::int64_t before = 0;
    for (const Unit& u : units_) {
      total += u.cost;
      if (done_.count(key(u)) > 0) before += u.cost;
    }
    progress_.start(total, before);
    if (target_.prompts() != nullptr) return ask();
    std::optional<NeedleTree> plan;
    std::size_t planned = 0;
    for (const Unit& u : units_) {
      if (done_.count(key(u)) > 0) continue;
      if (!plan || planned != u.sample) plan = tree(u.sample);
      planned = u.sample;
      progress_.label(cat(u.method->name, "  sample ", u.sample + 1, " of ", options_.samples));
      unit(*u.method, u.sample, *plan);
    }
    progress_.finish();
  }

 private:
  struct Unit {
    std::size_t sample = 0;
    const MethodUnderTest* method = nullptr;
    std::int64_t cost = 0;
    // Behind a network every cell is a unit: what was answered stays answered.
    const NeedleTree* tree = nullptr;
    const NeedleBranch* branch = nullptr;
    const NeedleCell* cell = nullptr;
  };

  void add_cells(std::size_t sample, NeedleTree plan, std::vector<Unit>& all) {
    trees_.push_back(std::make_unique<NeedleTree>(std::move(plan)));
    const NeedleTree* kept = trees_.back().get();
    for (const MethodUnderTest& method : methods_) {
      for (const NeedleBranch& branch : kept->branches) {
        for (const NeedleCell& cell : branch.cells) {
          all.push_back({sample, &method, grid_.lengths[cell.length], kept, &branch, &cell});
        }
      }
    }
  }

  std::string key(const Unit& u) const {
    std::string one = key(u.method->name, u.sample);
    if (u.cell != nullptr) {
      one += cat("\n", grid_.lengths[u.cell->length], "\n",
                 ordered_json(grid_.depths[u.cell->depth]).dump());
    }
    return one;
  }

  static std::string key(const std::string& method, std::size_t sample) {
    return cat(method, "\n", sample);
  }

  const Haystack& haystack(std::size_t sample) const {
    return haystacks_[sample % haystacks_.size()];
  }

  NeedleTree tree(std::size_t sample) const {
    return plan_tree(target_.tokenizer(), options_.form, grid_, haystack(sample).tokens,
                     options_.seed, sample);
  }

  std::int64_t cost_of(const NeedleTree& tree, const MethodUnderTest& method) const {
    return shares(options_, method) ? tree.tokens : tree.naive_tokens;
  }

  void unit(const MethodUnderTest& method, std::size_t sample, const NeedleTree& plan) {
    ordered_json line = {{"task", "needle"},
                         {"method", method.name},
                         {"sample", sample},
                         {"haystack", haystack(sample).id},
                         {"tokens", cost_of(plan, method)},
                         {"naive_tokens", plan.naive_tokens}};
    // By length, then by depth, whatever order they are computed in.
    std::vector<ordered_json> cells(grid_.lengths.size() * grid_.depths.size());
    try {
      target_.timelines()->use(method.ladder);
      if (shares(options_, method)) {
        shared(plan, haystack(sample).tokens, cells);
      } else {
        one_by_one(plan, haystack(sample).tokens, cells);
      }
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::interrupted) throw;
      throw Error(e.kind(),
                  cat(e.what(), " (method ", method.name, ", sample ", sample + 1, ", haystack ",
                      haystack(sample).id, ")"),
                  e.hint().empty() ? "give the same command again to go on after the finished units"
                                   : e.hint());
    }
    line["cells"] = cells;
    folder_.append(line, {progress_.seconds(), progress_.computed()});
    done_.insert(key(method.name, sample));
  }

  // The trunk grows from branch to branch, so that trunk and branch together never hold more than
  // the longest length. Every unit starts with no timeline alive: what an engine's cache looks like
  // then does not depend on earlier units, nor on whether the run was interrupted between them.
  void shared(const NeedleTree& plan, std::span<const Token> text,
              std::vector<ordered_json>& cells) {
    const auto trunk = target_.timelines()->timeline();
    append(*trunk, plan.head);
    std::int64_t grown = 0;
    for (const NeedleBranch& branch : plan.branches) {
      append(*trunk, part(text, grown, branch.position));
      grown = branch.position;
      const auto tail = trunk->fork();
      append(*tail, branch.needle.needle);
      std::int64_t at = branch.position;
      for (const NeedleCell& cell : branch.cells) {
        append(*tail, part(text, at, cell.haystack));
        at = cell.haystack;
        const auto asked = tail->fork();
        append(*asked, branch.needle.question);
        cells[index(cell)] = answer(*asked, branch, cell);
      }
    }
  }

  void one_by_one(const NeedleTree& plan, std::span<const Token> text,
                  std::vector<ordered_json>& cells) {
    for (const NeedleBranch& branch : plan.branches) {
      for (const NeedleCell& cell : branch.cells) {
        const std::vector<Token> prompt = whole_prompt(plan, branch, cell, text);
        const auto timeline = target_.timelines()->timeline();
        append(*timeline, prompt);
        cells[index(cell)] = answer(*timeline, branch, cell);
      }
    }
  }

  static std::vector<Token> whole_prompt(const NeedleTree& plan, const NeedleBranch& branch,
                                         const NeedleCell& cell, std::span<const Token> text) {
    std::vector<Token> prompt = plan.head;
    const auto add = [&](std::span<const Token> tokens) {
      prompt.insert(prompt.end(), tokens.begin(), tokens.end());
    };
    add(part(text, 0, branch.position));
    add(branch.needle.needle);
    add(part(text, branch.position, cell.haystack));
    add(branch.needle.question);
    return prompt;
  }

  void ask() {
    std::vector<const Unit*> left;
    for (const Unit& u : units_) {
      if (done_.count(key(u)) == 0) left.push_back(&u);
    }
    AskJob job;
    job.count = left.size();
    job.make = [&](std::size_t i) {
      const Unit& u = *left[i];
      return WholePrompt{whole_prompt(*u.tree, *u.branch, *u.cell, haystack(u.sample).tokens), {}};
    };
    job.options = [&](std::size_t) { return generate_options(); };
    job.done = [&](std::size_t i, const WholePrompt& prompt, const WholeAnswer& answer) {
      const Unit& u = *left[i];
      ordered_json line = {{"task", "needle"},
                           {"method", u.method->name},
                           {"sample", u.sample},
                           {"haystack", haystack(u.sample).id}};
      if (answer.failed.empty()) {
        line["tokens"] = line["naive_tokens"] = prompt.tokens.size();
        line["cells"] = ordered_json::array({answered(answer.said, *u.branch, *u.cell)});
        done_.insert(key(u));
      } else {
        line["length"] = grid_.lengths[u.cell->length];
        line["depth"] = grid_.depths[u.cell->depth];
        line["no_answer"] = readable(answer.failed);
      }
      if (!answer.troubles.empty()) line["troubles"] = answer.troubles;
      progress_.advance(u.cost);
      folder_.append(line, {progress_.seconds(), progress_.computed()});
    };
    note_troubles(ask_all(*target_.prompts(), job, progress_), folder_);
    if (interrupt_requested()) throw folder_.interrupted(done_.size(), units_.size());
    progress_.finish();
  }

  static std::span<const Token> part(std::span<const Token> text, std::int64_t begin,
                                     std::int64_t end) {
    return text.subspan(std::size_t(begin), std::size_t(end - begin));
  }

  std::size_t index(const NeedleCell& cell) const {
    return cell.length * grid_.depths.size() + cell.depth;
  }

  void append(Timeline& timeline, std::span<const Token> tokens) {
    while (!tokens.empty()) {
      if (interrupt_requested()) throw folder_.interrupted(done_.size(), units_.size());
      const std::size_t size = options_.whole_prompts
                                   ? tokens.size()
                                   : std::min(std::size_t(options_.batch), tokens.size());
      timeline.append(tokens.first(size));
      progress_.advance(std::int64_t(size));
      tokens = tokens.subspan(size);
    }
  }

  ordered_json answer(Timeline& timeline, const NeedleBranch& branch, const NeedleCell& cell) {
    return answered(timeline.generate(generate_options()), branch, cell);
  }

  GenerateOptions generate_options() const {
    GenerateOptions generate;
    generate.max_tokens = options_.form.answer_tokens;
    generate.stop = options_.form.stop;
    return generate;
  }

  ordered_json answered(const Generation& said, const NeedleBranch& branch,
                        const NeedleCell& cell) const {
    return {{"length", grid_.lengths[cell.length]},
            {"depth", grid_.depths[cell.depth]},
            {"position", branch.position},
            {"snapped", branch.snapped},
            {"answer", readable(branch.needle.answer)},
            {"text", readable(said.text)},
            {"gap", or_null(said.smallest_gap)}};
  }

  const Target target_;
  const std::vector<MethodUnderTest>& methods_;
  const std::vector<Haystack>& haystacks_;
  const NeedleOptions& options_;
  RunFolder& folder_;
  Progress& progress_;
  const NeedleGrid grid_;
  std::set<std::string> done_;
  std::vector<Unit> units_;
  std::vector<std::unique_ptr<NeedleTree>> trees_;  // of those
};

}  // namespace

bool shares(const NeedleOptions& options, const MethodUnderTest& method) {
  return options.share && !method.ladder.elastic();
}

std::vector<double> usual_depths() {
  std::vector<double> depths;
  for (int d = 0; d <= 100; d += 10) depths.push_back(d);
  return depths;
}

void check_needle(const Target& target, const std::vector<MethodUnderTest>& methods,
                  const NeedleOptions& options) {
  const auto refuse = [](const std::string& message, const std::string& hint) {
    throw Error(ErrorKind::usage, message, hint);
  };
  check_methods(target, methods, options.lengths, options.batch);
  if (options.depths.empty()) refuse("no depth to plant a needle at", "give --depths 0,50,100");
  for (const double depth : options.depths) {
    if (!(depth >= 0 && depth <= 100)) {
      refuse(cat("depth ", depth, " is no percentage"), "give --depths between 0 and 100");
    }
  }
  if (options.samples < 1) refuse("no needle per cell", "give --samples 1 or more");
}

std::vector<Haystack> make_haystacks(const Tokenizer& tokenizer,
                                     const std::vector<Document>& documents, std::int64_t tokens,
                                     std::size_t most) {
  const std::vector<Token> between = tokenizer.tokenize("\n\n", false, false);
  std::vector<Haystack> haystacks;
  Haystack next;
  std::int64_t longest = 0;
  for (const Document& document : documents) {
    if (haystacks.size() == most) break;
    if (!next.tokens.empty()) {
      next.id += " + ";
      next.tokens.insert(next.tokens.end(), between.begin(), between.end());
    }
    const std::vector<Token> more = tokenizer.tokenize(document.text, false, false);
    next.id += document.id;
    next.tokens.insert(next.tokens.end(), more.begin(), more.end());
    longest = std::max(longest, std::int64_t(next.tokens.size()));
    if (std::int64_t(next.tokens.size()) < tokens) continue;
    next.tokens.resize(std::size_t(tokens));
    haystacks.push_back(std::move(next));
    next = {};
  }
  if (haystacks.empty()) {
    throw Error(
        ErrorKind::usage,
        cat("the haystack has ", longest, " tokens, fewer than the longest length, ", tokens),
        "give --haystack more texts, or shorter --lengths");
  }
  return haystacks;
}

NeedleResults run_needle(const Target& target, const std::vector<MethodUnderTest>& methods,
                         const std::vector<Document>& documents, const NeedleOptions& requested,
                         RunFolder& folder, Progress& progress) {
  NeedleOptions options = requested;
  options.lengths = sorted_lengths(options.lengths);
  std::sort(options.depths.begin(), options.depths.end());
  options.depths.erase(std::unique(options.depths.begin(), options.depths.end()),
                       options.depths.end());
  check_needle(target, methods, options);
  const std::vector<Haystack> haystacks =
      make_haystacks(target.tokenizer(), documents, options.lengths.back(), options.samples);
  NeedleJob job(target, methods, haystacks, options, folder, progress);
  folder.begin(identity(target, methods, haystacks, options), job.units());
  job.run();
  const NeedleResults results = needle_results(folder.run(), folder.units());
  folder.finish(results_text(to_json(results)), {progress.seconds(), progress.computed()});
  return results;
}

}  // namespace mrrope
