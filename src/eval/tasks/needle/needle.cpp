// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needle/needle.h"

#include "base/json.h"
#include "base/text.h"
#include "eval/score/answer_text.h"
#include "eval/text/word_list.h"

namespace mrrope::eval {

namespace {

class NeedleUnits : public UnitWork {
 public:
  NeedleUnits(const Target& target, const std::vector<MethodUnderTest>& methods,
              const std::vector<Haystack>& haystacks, const NeedleOptions& options)
      : target_(target), methods_(methods), haystacks_(haystacks), options_(options) {}

  std::vector<Unit> units() override {
    std::vector<Unit> all;
    trees_.reserve(options_.samples);
    for (std::size_t s = 0; s < options_.samples; ++s) {
      trees_.push_back(plan_sample(target_.tokenizer(), options_, haystack(s).tokens, s));
      for (std::size_t t = 0; t < trees_[s].size(); ++t) {
        if (target_.prompts() != nullptr) {
          add_cells(s, trees_[s][t], all);
          continue;
        }
        const std::int64_t longest =
            options_.together ? options_.lengths[t] : options_.lengths.back();
        add_units(all, methods_, longest, [&](std::size_t m) -> Unit {
          Unit unit{{std::int64_t(s), std::int64_t(t), std::int64_t(m), 0},
                    cost_of(trees_[s][t], methods_[m]),
                    cat(methods_[m].name, "  sample ", s + 1, " of ", options_.samples),
                    where(s, m)};
          unit.answers = std::int64_t(cells_of_unit()) * room();
          return unit;
        });
      }
    }
    return all;
  }

  // A whole tree.
  ordered_json compute(const Unit& unit, UnitProgress& progress) override {
    const auto sample = std::size_t(unit.place[0]);
    const NeedleTree& plan = trees_[sample][std::size_t(unit.place[1])];
    const MethodUnderTest& method = methods_[std::size_t(unit.place[2])];
    progress_ = &progress;
    cells_.assign(cells_of_unit(), nullptr);
    target_.timelines()->use(*method.ladder);
    std::int64_t tokens = cost_of(plan, method);
    read_recorded([&] {
      for (const ordered_json& part : progress.parts()) {
        const auto at = whole<std::size_t>(part.at("index"));
        if (at >= cells_.size()) foreign_line(part);
        cells_[at] = part.at("cell");
      }
      const std::span<const Token> text = haystack(sample).tokens;
      if (std::all_of(cells_.begin(), cells_.end(), answered_already)) {
        // Only its line is missing.
      } else if (options_.together) {
        together(plan, *method.ladder);
      } else if (shares(options_, method)) {
        shared(plan, text);
      } else {
        one_by_one(plan, text);
      }
      if (!options_.together) return;
      tokens = 0;
      for (const ordered_json& part : progress.parts()) tokens += token_count(part, "tokens");
    });
    ordered_json line = head(unit);
    line["tokens"] = tokens;
    line["naive_tokens"] = plan.naive_tokens;
    line["cells"] = cells_;
    return line;
  }

  Question question(const Unit& unit) override {
    const NeedleBranch& branch = *asked_.at(unit.place).first;
    const NeedleCell& cell = *asked_.at(unit.place).second;
    const auto sample = std::size_t(unit.place[0]);
    const NeedleTree& tree = trees_[sample][options_.together ? cell.length : 0];
    Question question{{whole_prompt(tree, branch, cell, haystack(sample).tokens), {}},
                      generate_options()};
    question.line = [this, &branch, &cell, line = head(unit),
                     tokens = question.prompt.tokens.size()](const Generation* said) mutable {
      if (said == nullptr) {
        line["length"] = options_.lengths[cell.length];
        line["depth"] = options_.depths[cell.depth];
        return line;
      }
      line["tokens"] = line["naive_tokens"] = tokens;
      line["cells"] = ordered_json::array({cell_json(*said, branch, cell)});
      return line;
    };
    return question;
  }

 private:
  // Behind an endpoint every cell is a unit, so that no answer is asked for twice.
  void add_cells(std::size_t sample, const NeedleTree& tree, std::vector<Unit>& all) {
    for (const NeedleBranch& branch : tree.branches) {
      for (const NeedleCell& cell : branch.cells) {
        add_units(all, methods_, 0, [&](std::size_t m) -> Unit {
          const UnitPlace place = {std::int64_t(sample), std::int64_t(cell.length), std::int64_t(m),
                                   std::int64_t(cell.depth)};
          asked_[place] = {&branch, &cell};
          return {place, options_.lengths[cell.length], {}, where(sample, m)};
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
    return shares(options_, method) ? tree.tokens : tree.naive_tokens;
  }

  // Tokens that an answer may take.
  std::int64_t room() const { return options_.form.answer_tokens; }

  std::size_t cells_of_unit() const {
    return options_.depths.size() * (options_.together ? 1 : options_.lengths.size());
  }

  static bool answered_already(const ordered_json& cell) { return !cell.is_null(); }

  // tokens: computed for it, answer not counted.
  void answer(Timeline& timeline, const NeedleBranch& branch, const NeedleCell& cell,
              std::int64_t tokens = 0) {
    const std::int64_t prompt = timeline.length();
    GenerateOptions generate = generate_options();
    std::int64_t left = room();
    generate.on_text = [&](std::string_view) {
      if (left > 0) --left, progress_->advance(1, 0);
      return true;
    };
    cells_[index(cell)] = cell_json(timeline.generate(generate), branch, cell);
    progress_->advance(left, 0);
    const std::int64_t end = timeline.length();
    if (branch.needle.right.size() <= std::size_t(room())) {
      cells_[index(cell)][kAnswerLoss] =
          json_or_null(answer_loss(timeline, prompt, branch.needle.right));
    }
    progress_->part_done({{"index", index(cell)},
                          {"tokens", tokens},
                          {"end", std::max(end, timeline.length())},
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
      if (!find_by(branch.cells, [&](const NeedleCell& cell) { return !done(cell); })) {
        progress_->skip(std::int64_t(branch.needle.needle.size()) + branch.cells.back().haystack -
                        branch.position + std::int64_t(branch.cells.size()) * (questions + room()));
        continue;
      }
      const auto tail = trunk->fork();
      append(*tail, branch.needle.needle);
      std::int64_t at = branch.position;
      for (const NeedleCell& cell : branch.cells) {
        append(*tail, part(text, at, cell.haystack));
        at = cell.haystack;
        if (done(cell)) {
          progress_->skip(questions + room());
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
          progress_->skip(std::int64_t(prompt.size()) + room());
          continue;
        }
        const auto timeline = target_.timelines()->timeline();
        append(*timeline, prompt);
        answer(*timeline, branch, cell);
      }
    }
  }

  void together(const NeedleTree& text, const Ladder& ladder) {
    std::unique_ptr<Timeline> timeline;
    const auto read = std::int64_t(text.head.size());
    for (std::size_t d = 0; d < text.branches.size(); ++d) {
      const NeedleBranch& branch = text.branches[d];
      const auto question = std::int64_t(branch.needle.question.size());
      if (done(branch.cells[0])) {
        progress_->skip(question + room());
        continue;
      }
      // Cells are parts in their order. Keys may have been turned since the text was read.
      const auto end = [&] { return whole<std::int64_t>(progress_->parts()[d - 1].at("end")); };
      const bool again = d == 0 || ladder.rung_at(read) != ladder.rung_at(end());
      if (again) timeline.reset();
      if (timeline) {
        timeline->truncate(read);
      } else {
        timeline = target_.timelines()->timeline();
        append(*timeline, text.head);
      }
      append(*timeline, branch.needle.question);
      answer(*timeline, branch, branch.cells[0], again ? read + question : question);
    }
  }

  std::vector<Token> whole_prompt(const NeedleTree& plan, const NeedleBranch& branch,
                                  const NeedleCell& cell, std::span<const Token> text) const {
    std::vector<Token> prompt = plan.head;
    if (!options_.together) {
      extend(prompt, part(text, 0, branch.position));
      extend(prompt, branch.needle.needle);
      extend(prompt, part(text, branch.position, cell.haystack));
    }
    extend(prompt, branch.needle.question);
    return prompt;
  }

  static std::span<const Token> part(std::span<const Token> text, std::int64_t begin,
                                     std::int64_t end) {
    return text.subspan(std::size_t(begin), std::size_t(end - begin));
  }

  std::size_t index(const NeedleCell& cell) const {
    return (options_.together ? 0 : cell.length * options_.depths.size()) + cell.depth;
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
    return {{"length", options_.lengths[cell.length]},
            {"depth", options_.depths[cell.depth]},
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
  std::vector<std::vector<NeedleTree>> trees_;  // by sample
  // Of the unit that is computed: by length, then by depth, whatever order they are computed in.
  // Null: not answered yet.
  std::vector<ordered_json> cells_;
  UnitProgress* progress_ = nullptr;
  // Behind an endpoint, by unit.
  std::map<UnitPlace, std::pair<const NeedleBranch*, const NeedleCell*>> asked_;
};

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
    together_ = settings.contains("questions");
    table.units = together_ ? "texts" : "needles";
    check_grid({table.methods.size(), table.lengths.size(), depths_.size()});
    table.expected_units = samples_ * table.methods.size();
    const bool served = run.at("model").value("architecture", "") == "served";
    if (served || together_) table.expected_units *= table.lengths.size();
    if (served) table.expected_units *= depths_.size();  // one per prompt
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
      if (cell.contains(kAnswerLoss) && cell[kAnswerLoss].is_number()) {
        put(kAnswerLoss, cell[kAnswerLoss].get<double>());
        has_loss_ = true;
      }
      const ordered_json& gap = cell.at("gap");
      if (gap.is_number() && gap.get<double>() < kTie) ++ties_[{method, l}];
      if (method == 0 && !cell.at("snapped").get<bool>()) ++unsnapped_;
      table_.answers.push_back(
          {table_.methods[method].method, table_.lengths[l], depths_[d], answer, text});
    }
  }

  void finish() {
    if (has_loss_) metrics_.push_back(kAnswerLoss);
    ordered_json ties = ordered_json::array();
    for (std::size_t m = 0; m < table_.methods.size(); ++m) {
      const std::string& method = table_.methods[m].method;
      for (std::size_t l = 0; l < table_.lengths.size(); ++l) {
        const std::int64_t length = table_.lengths[l];
        for (const char* metric : metrics_) {
          const UnitValues& all = values_[{m, l, metric}];
          const auto text = [](const UnitKey& key) { return UnitKey{0, key.second}; };
          add_row(table_, kNeedle, method, length, metric, together_ ? means_of(all, text) : all);
        }
        for (std::size_t d = 0; d < depths_.size(); ++d) {
          for (const char* metric : metrics_) {
            const UnitValues& all = values_[{m, l, metric}];
            add_row(table_, kNeedle, method, length, metric,
                    {all.lower_bound({d, 0}), all.lower_bound({d + 1, 0})}, depths_[d]);
          }
        }
        const std::size_t n = values_[{m, l, kRecall}].size();
        const std::size_t tied = ties_[{m, l}];
        ties.push_back({{"method", method}, {"length", length}, {"ties", tied}, {"n", n}});
        tied_ += tied;
        answers_ += n;
      }
    }
    table_.more = {{"ties", ties},
                   {"unsnapped", unsnapped_},
                   {"tokens", tokens_},
                   {"naive_tokens", naive_tokens_}};
    if (together_) table_.more["questions_per_text"] = depths_.size();
    describe();
  }

 private:
  // Whether recall and exact answers give different means.
  bool scores_differ() const {
    return find_by(table_.rows, [&](const ResultRow& row) {
      return row.metric == kRecall && !row.depth &&
             row.estimate.value != table_.find(row.method, row.length, kContains)->estimate.value;
    });
  }

  void describe() {
    const char* what = together_ ? " text" : " needle";
    table_.heading = cat("Needles, form ", form_, ": ", depths_.size(), " depths x ", samples_,
                         what, samples_ == 1 ? "" : "s", ", ", haystacks_,
                         haystacks_ == 1 ? " haystack" : " haystacks", " (window ",
                         length_text(table_.window), ")\n");
    for (const MethodRow& m : table_.methods) {
      // The plan of a model behind an endpoint is not known.
      const std::string scale = std::isnan(m.scale) ? "" : cat(", scale ", significant(m.scale, 4));
      table_.tables.push_back(
          {.heading = cat("\n", m.method, scale, ": ROUGE-1 recall in percent\n"),
           .metric = kRecall,
           .down = Axis::depth,
           .method = m.method});
    }
    const auto means = [&](const char* heading, const char* metric) {
      table_.tables.push_back({heading, metric, Axis::length, Axis::method});
    };
    means("\nROUGE-1 recall in percent, all depths:\n", kRecall);
    if (std::count(metrics_.begin(), metrics_.end(), kStemmed) > 0) {
      means("\nROUGE-1 recall by stems, in percent:\n", kStemmed);
    }
    if (has_loss_) means("\nLoss of the right answer, in nats per token:\n", kAnswerLoss);
    if (scores_differ()) {
      means("\nAnswer contained, in percent:\n", kContains);
    } else {
      table_.summary = "(Answer contained: the same numbers.)\n";
    }
    table_.remarks = together_ ? questions_remark(depths_.size()) : "";
    table_.remarks += tie_remark(tied_, answers_);
    if (unsnapped_ > 0) {
      table_.remarks += cat(unsnapped_, unsnapped_ == 1 ? " needle was" : " needles were",
                            " inserted mid-sentence.\n");
    }
    table_.remarks += sharing_remark(tokens_, naive_tokens_);
  }

  ResultTable& table_;
  std::vector<double> depths_;
  std::size_t samples_ = 0, haystacks_ = 0;
  std::string form_;
  std::vector<const char*> metrics_;
  bool together_ = false, has_loss_ = false;
  std::map<std::tuple<std::size_t, std::size_t, std::string>, UnitValues> values_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> ties_;  // by method and length
  std::size_t tied_ = 0, answers_ = 0;
  std::size_t unsnapped_ = 0;  // inserted mid-sentence, for one method
  std::int64_t tokens_ = 0, naive_tokens_ = 0;
};

// A unit's place: sample, length, method, depth; 0 where a unit has all lengths, or all depths.
PlaceOf needle_places(const ordered_json& run) {
  const bool served = run.at("model").value("architecture", "") == "served";
  const ordered_json& settings = run.at("settings");
  const bool together = settings.contains("questions");
  return [method_of = method_finder(run), served, together, lengths = settings.at("lengths"),
          depths = settings.at("depths")](const ordered_json& unit) -> UnitPlace {
    UnitPlace place = {whole<std::int64_t>(unit.at("sample")), 0, std::int64_t(method_of(unit)), 0};
    if (!served && !together) return place;
    const ordered_json& cell = unit.contains("cells") ? unit.at("cells").at(0) : unit;
    place[1] = std::int64_t(index_of(lengths, cell.at("length"), unit));
    if (served) place[3] = std::int64_t(index_of(depths, cell.at("depth"), unit));
    return place;
  };
}

}  // namespace

bool shares(const NeedleOptions& options, const MethodUnderTest& method) {
  return options.together || (options.share && !method.elastic());
}

std::vector<double> usual_depths(std::size_t needles) {
  std::vector<double> depths;
  for (int d = 0; d <= 100 && needles < 2; d += 10) depths.push_back(d);
  for (std::size_t k = 0; k < needles && needles > 1; ++k) {
    depths.push_back(100 * double(2 * k + 1) / double(2 * needles));
  }
  return depths;
}

void check_needle(const Target& target, const std::vector<MethodUnderTest>& methods,
                  const NeedleOptions& options) {
  check_methods(target, methods, options.lengths);
  if (options.depths.empty()) refuse("no depth to plant a needle at", "give --depths 0,50,100");
  for (const double depth : options.depths) {
    refuse_if(!(depth >= 0 && depth <= 100), cat("depth ", depth, " is not a percentage"),
              "give --depths between 0 and 100");
  }
  if (options.together) check_together(target.tokenizer(), options);
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
  note_same_models(folder, methods,
                   options.together ? options.lengths : std::vector{options.lengths.back()});
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
  if (options.together) settings["questions"] = options.depths.size();
  ordered_json run = run_identity(kNeedle, target, methods, std::move(settings));
  run["haystacks"] = ordered_json::array();
  for (const Haystack& h : haystacks) run["haystacks"].push_back({{"id", h.id}});
  NeedleUnits units(target, methods, haystacks, options);
  return run_job(target, units, run, folder, progress);
}

Task needle_task() {
  std::vector<MetricInfo> metrics = {
      {kRecall, "Recall of the planted answer (ROUGE-1)", "recall",
       "Share of the words of the answer that the model wrote."},
      {kStemmed, "Recall of the planted answer by stems (ROUGE-1)", "recall",
       "The same, with words of more than three letters by their stems."},
      {kContains, "Needles found, letter for letter", "share of needles"},
      answer_loss_info()};
  return {kNeedle, "Needle in a haystack", std::move(metrics), needle_places,
          [](const RecordedRun& recorded) { return fill_table<Needles>(recorded); }};
}

}  // namespace mrrope::eval
