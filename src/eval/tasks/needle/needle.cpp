// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "base/json.h"
#include "base/text.h"
#include "eval/text/words.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

class NeedleUnits : public UnitWork {
 public:
  NeedleUnits(const Target& target, const std::vector<MethodUnderTest>& methods,
              const std::vector<Haystack>& haystacks, const NeedleOptions& options)
      : target_(target),
        methods_(methods),
        haystacks_(haystacks),
        options_(options),
        grid_{options.lengths, options.depths} {}

  std::vector<Unit> units() override {
    std::vector<Unit> all;
    trees_.reserve(options_.samples);
    for (std::size_t s = 0; s < options_.samples; ++s) {
      trees_.push_back(plan_tree(target_.tokenizer(), options_.form, grid_, haystack(s).tokens,
                                 options_.seed, s));
      if (target_.prompts() != nullptr) {
        add_cells(s, all);
        continue;
      }
      add_units(all, methods_, grid_.lengths.back(), [&](std::size_t m) -> Unit {
        return {{std::int64_t(s), std::int64_t(m), 0, 0},
                cost_of(trees_[s], methods_[m]),
                cat(methods_[m].name, "  sample ", s + 1, " of ", options_.samples),
                where(s, m)};
      });
    }
    return all;
  }

  // A whole tree.
  ordered_json compute(const Unit& unit, UnitProgress& progress) override {
    const auto sample = std::size_t(unit.place[0]);
    const NeedleTree& plan = trees_[sample];
    const MethodUnderTest& method = methods_[std::size_t(unit.place[1])];
    std::int64_t tokens = cost_of(plan, method);
    progress_ = &progress;
    cells_.assign(grid_.lengths.size() * grid_.depths.size(), nullptr);
    read_recorded([&] {
      for (const ordered_json& part : progress.parts()) {
        const auto at = whole<std::size_t>(part.at("index"));
        if (at >= cells_.size()) foreign_line(part);
        cells_[at] = part.at("cell");
      }
    });
    target_.timelines()->use(*method.ladder);
    const std::span<const Token> text = haystack(sample).tokens;
    if (std::all_of(cells_.begin(), cells_.end(), answered_already)) {
      // Only its line is missing.
    } else if (options_.together) {
      read_recorded([&] { together(sample, *method.ladder); });
    } else if (shares(options_, method)) {
      shared(plan, text);
    } else {
      one_by_one(plan, text);
    }
    if (options_.together) {
      tokens = 0;
      read_recorded([&] {
        for (const ordered_json& part : progress.parts()) tokens += token_count(part, "tokens");
      });
    }
    ordered_json line = head(unit);
    line["tokens"] = tokens;
    line["naive_tokens"] = plan.naive_tokens;
    line["cells"] = cells_;
    return line;
  }

  Question question(const Unit& unit) override {
    const auto& [branch, cell] = asked_.at(unit.place);
    const auto sample = std::size_t(unit.place[0]);
    return {{whole_prompt(trees_[sample], *branch, *cell, haystack(sample).tokens), {}},
            generate_options()};
  }

  ordered_json answered(const Unit& unit, const WholePrompt& prompt,
                        const Generation& said) override {
    const auto& [branch, cell] = asked_.at(unit.place);
    ordered_json line = head(unit);
    line["tokens"] = line["naive_tokens"] = prompt.tokens.size();
    line["cells"] = ordered_json::array({cell_json(said, *branch, *cell)});
    return line;
  }

  ordered_json unanswered(const Unit& unit) override {
    const NeedleCell& cell = *asked_.at(unit.place).second;
    ordered_json line = head(unit);
    line["length"] = grid_.lengths[cell.length];
    line["depth"] = grid_.depths[cell.depth];
    return line;
  }

 private:
  // Behind an endpoint every cell is a unit, so that no answer is asked for twice.
  void add_cells(std::size_t sample, std::vector<Unit>& all) {
    for (const NeedleBranch& branch : trees_[sample].branches) {
      for (const NeedleCell& cell : branch.cells) {
        add_units(all, methods_, 0, [&](std::size_t m) -> Unit {
          const UnitPlace place = {std::int64_t(sample), std::int64_t(m),
                                   std::int64_t(cell.length + 1), std::int64_t(cell.depth + 1)};
          asked_[place] = {&branch, &cell};
          return {place, grid_.lengths[cell.length], {}, where(sample, m)};
        });
      }
    }
  }

  std::string where(std::size_t sample, std::size_t m) const {
    return cat("method ", methods_[m].name, ", sample ", sample + 1, ", haystack ",
               haystack(sample).id);
  }

  ordered_json head(const Unit& unit) const {
    return {{"task", kNeedle},
            {"method", unit.method},
            {"sample", unit.place[0]},
            {"haystack", haystack(std::size_t(unit.place[0])).id}};
  }

  const Haystack& haystack(std::size_t sample) const {
    return haystacks_[sample % haystacks_.size()];
  }

  std::int64_t cost_of(const NeedleTree& tree, const MethodUnderTest& method) const {
    if (options_.together) {
      return std::accumulate(grid_.lengths.begin(), grid_.lengths.end(), std::int64_t(0));
    }
    return shares(options_, method) ? tree.tokens : tree.naive_tokens;
  }

  static bool answered_already(const ordered_json& cell) { return !cell.is_null(); }

  // tokens: computed for it, answer not counted.
  void answer(Timeline& timeline, const NeedleBranch& branch, const NeedleCell& cell,
              std::int64_t tokens = 0) {
    cells_[index(cell)] = cell_json(timeline.generate(generate_options()), branch, cell);
    progress_->part_done({{"index", index(cell)},
                          {"tokens", tokens},
                          {"end", timeline.length()},
                          {"cell", cells_[index(cell)]}});
  }

  // The trunk grows from branch to branch, so that trunk and branch together never hold more than
  // the longest length. Where parts of the tree are finished, what the others share with them is
  // read again, in the same batches: at most one prompt.
  void shared(const NeedleTree& plan, std::span<const Token> text) {
    const auto trunk = target_.timelines()->timeline();
    append(*trunk, plan.head);
    std::int64_t grown = 0;
    for (const NeedleBranch& branch : plan.branches) {
      append(*trunk, part(text, grown, branch.position));
      grown = branch.position;
      const auto questions = std::int64_t(branch.needle.question.size());
      if (std::all_of(branch.cells.begin(), branch.cells.end(),
                      [&](const NeedleCell& cell) { return done(cell); })) {
        progress_->skip(std::int64_t(branch.needle.needle.size()) + branch.cells.back().haystack -
                        branch.position + std::int64_t(branch.cells.size()) * questions);
        continue;
      }
      const auto tail = trunk->fork();
      append(*tail, branch.needle.needle);
      std::int64_t at = branch.position;
      for (const NeedleCell& cell : branch.cells) {
        append(*tail, part(text, at, cell.haystack));
        at = cell.haystack;
        if (done(cell)) {
          progress_->skip(questions);
          continue;
        }
        const auto asked = tail->fork();
        append(*asked, branch.needle.question);
        answer(*asked, branch, cell);
      }
    }
  }

  void one_by_one(const NeedleTree& plan, std::span<const Token> text) {
    for (const NeedleBranch& branch : plan.branches) {
      for (const NeedleCell& cell : branch.cells) {
        const std::vector<Token> prompt = whole_prompt(plan, branch, cell, text);
        if (done(cell)) {
          progress_->skip(std::int64_t(prompt.size()));
          continue;
        }
        const auto timeline = target_.timelines()->timeline();
        append(*timeline, prompt);
        answer(*timeline, branch, cell);
      }
    }
  }

  void together(std::size_t sample, const Ladder& ladder) {
    for (std::size_t l = 0; l < grid_.lengths.size(); ++l) {
      const NeedleText text = plan_together(target_.tokenizer(), options_.form, grid_, l,
                                            haystack(sample).tokens, options_.seed, sample);
      std::unique_ptr<Timeline> timeline;
      for (std::size_t d = 0; d < grid_.depths.size(); ++d) {
        const NeedleBranch& branch = text.needles[d];
        if (done(branch.cells[0])) {
          if (d + 1 == grid_.depths.size()) progress_->skip(grid_.lengths[l]);
          continue;
        }
        std::int64_t computed = std::int64_t(branch.needle.question.size());
        const auto read = std::int64_t(text.tokens.size());
        // Cells are parts in their order. Keys may have been turned since the text was read.
        const bool again =
            d == 0 ||
            ladder.rung_at(read) != ladder.rung_at(whole<std::int64_t>(
                                        progress_->parts()[index(branch.cells[0]) - 1].at("end")));
        if (again) {
          timeline.reset();
          computed += read;
        }
        if (timeline) {
          timeline->truncate(read);
        } else {
          timeline = target_.timelines()->timeline();
          append(*timeline, text.tokens);
        }
        append(*timeline, branch.needle.question);
        answer(*timeline, branch, branch.cells[0], computed);
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

  static std::span<const Token> part(std::span<const Token> text, std::int64_t begin,
                                     std::int64_t end) {
    return text.subspan(std::size_t(begin), std::size_t(end - begin));
  }

  std::size_t index(const NeedleCell& cell) const {
    return cell.length * grid_.depths.size() + cell.depth;
  }

  bool done(const NeedleCell& cell) const { return answered_already(cells_[index(cell)]); }

  void append(Timeline& timeline, std::span<const Token> tokens) {
    progress_->read(timeline, tokens, options_.batch,
                    [&](std::int64_t size) { progress_->advance(size, size); });
  }

  GenerateOptions generate_options() const {
    GenerateOptions generate;
    generate.max_tokens = options_.form.answer_tokens;
    generate.stop = options_.form.stop;
    return generate;
  }

  ordered_json cell_json(const Generation& said, const NeedleBranch& branch,
                         const NeedleCell& cell) const {
    return {{"length", grid_.lengths[cell.length]},
            {"depth", grid_.depths[cell.depth]},
            {"position", branch.position},
            {"snapped", branch.snapped},
            {"answer", valid_utf8(branch.needle.answer)},
            {"text", valid_utf8(said.text)},
            {"gap", json_or_null(said.smallest_gap)}};
  }

  const Target target_;
  const std::vector<MethodUnderTest>& methods_;
  const std::vector<Haystack>& haystacks_;
  const NeedleOptions& options_;
  const NeedleGrid grid_;
  std::vector<NeedleTree> trees_;  // by sample
  // Of the unit that is computed: by length, then by depth, whatever order they are computed in.
  // Null: not answered yet.
  std::vector<ordered_json> cells_;
  UnitProgress* progress_ = nullptr;
  // Behind an endpoint, by unit.
  std::map<UnitPlace, std::pair<const NeedleBranch*, const NeedleCell*>> asked_;
};

}  // namespace

bool shares(const NeedleOptions& options, const MethodUnderTest& method) {
  return options.share && !method.elastic();
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
  check_methods(target, methods, options.lengths);
  if (options.depths.empty()) refuse("no depth to plant a needle at", "give --depths 0,50,100");
  for (const double depth : options.depths) {
    if (!(depth >= 0 && depth <= 100)) {
      refuse(cat("depth ", depth, " is not a percentage"), "give --depths between 0 and 100");
    }
  }
  if (options.together && target.prompts() != nullptr) {
    refuse("needles in one text need an engine that reads it once", "give a model file");
  }
}

std::vector<Haystack> make_haystacks(const Tokenizer& tokenizer,
                                     const std::vector<Document>& documents, std::int64_t tokens,
                                     std::size_t max_count, bool repeat) {
  const std::vector<Token> between = tokenizer.tokenize("\n\n", false, false);
  std::vector<Haystack> haystacks;
  Haystack next;
  std::int64_t longest = 0;
  for (const Document& document : documents) {
    if (haystacks.size() == max_count) break;
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
  if (haystacks.empty() && repeat && !next.tokens.empty()) {
    const std::vector<Token> once = next.tokens;
    int times = 1;
    for (; std::int64_t(next.tokens.size()) < tokens; ++times) {
      next.tokens.insert(next.tokens.end(), between.begin(), between.end());
      next.tokens.insert(next.tokens.end(), once.begin(), once.end());
    }
    next.tokens.resize(std::size_t(tokens));
    next.id += cat(" x ", times);
    haystacks.push_back(std::move(next));
  }
  if (haystacks.empty()) {
    throw Error(
        ErrorKind::usage,
        cat("the haystack has ", longest, " tokens, fewer than the longest length, ", tokens),
        "give --text more texts, or shorter --lengths");
  }
  return haystacks;
}

std::vector<Document> made_essays(const Tokenizer& tokenizer, std::int64_t tokens,
                                  std::size_t max_count) {
  constexpr std::size_t kParagraphs = 40;
  constexpr std::size_t kSentences = 6;
  std::vector<Document> essays;
  for (std::size_t h = 0; h < max_count; ++h) {
    for (std::int64_t have = 0; have < tokens;) {
      Random random = random_for(1, "needle essay", essays.size());
      std::string text;
      for (std::size_t p = 0; p < kParagraphs; ++p) {
        for (std::size_t s = 0; s < kSentences; ++s) {
          text += cat(s > 0 ? " " : "", prose_sentence(random));
        }
        text += "\n\n";
      }
      have += std::int64_t(tokenizer.tokenize(text, false, false).size());
      essays.push_back({cat("essay ", essays.size() + 1), std::move(text)});
    }
  }
  return essays;
}

ResultTable run_needle(const Target& target, const std::vector<MethodUnderTest>& methods,
                       const std::vector<Document>& documents, const NeedleOptions& requested,
                       RunFolder& folder, Progress& progress) {
  NeedleOptions options = requested;
  options.lengths = sorted_lengths(options.lengths);
  std::sort(options.depths.begin(), options.depths.end());
  options.depths.erase(std::unique(options.depths.begin(), options.depths.end()),
                       options.depths.end());
  check_needle(target, methods, options);
  const std::vector<Haystack> haystacks =
      make_haystacks(target.tokenizer(), documents, options.lengths.back(), options.samples,
                     options.form.name == kKamradt);
  note_same_models(folder, methods, {options.lengths.back()});
  const NeedleForm& form = options.form;
  ordered_json settings = {{"lengths", options.lengths},
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
  if (options.together) settings["together"] = true;
  ordered_json run = run_identity(kNeedle, target, methods, std::move(settings));
  run["haystacks"] = ordered_json::array();
  for (const Haystack& h : haystacks) run["haystacks"].push_back({{"id", h.id}});
  NeedleUnits units(target, methods, haystacks, options);
  return run_job(target, units, run, folder, progress);
}

}  // namespace mrrope::eval
