// SPDX-License-Identifier: Apache-2.0
// The search itself. It begins with every published method and points spread over the family, drops
// half of them at a time while texts get longer and more (all compared on the same texts), then
// refines the best by local search, where a trial ends as soon as it is clearly worse than the
// best.
//
// The budget counts passes: one pass is the whole search set once at the wanted length. Every unit
// (plan and text) is a line of the journal, so the same command resumes where it stopped; units
// from the journal count as if computed now, so the path is the same. It depends on seed and
// numbers only.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/results/result_table.h"
#include "eval/run/run_folder.h"
#include "eval/run/runner.h"
#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "eval/text/documents.h"
#include "model/timeline_model.h"
#include "tune/space.h"

namespace mrrope::tune {

// ---- The texts of a search, and what it minimizes on them.

struct PlantedAnswer {
  double depth = 0;             // of its needle, from 0 to 1
  std::vector<Token> question;  // with the answer at its end
  std::size_t answer = 0;       // tokens of the answer
};

struct SearchText {
  std::string id;
  std::int64_t length = 0;    // tokens, with room for the longest question
  std::vector<Token> tokens;  // head and document with its needles
  std::vector<char> planted;  // of each token: part of a needle, or of the head
  std::vector<PlantedAnswer> asked;
  std::int64_t cost = 0;  // tokens to compute
};

struct Planting {
  std::size_t answers = 10;
  // Needles that are never asked for, per answer: a plan must tell the keys apart, not only find
  // one. They take at most an eighth of the text.
  std::size_t decoys = 3;
};

// document: at least `length` tokens without BOS. The words and numbers are drawn by (seed,
// number). Throws Error (usage) if `length` is too short for the answers.
SearchText plant(const Tokenizer& model, const eval::NeedleForm& form, const std::string& id,
                 const std::vector<Token>& document, std::int64_t length, const Planting& planting,
                 std::uint64_t seed, std::size_t number);

// The documents that the search sees and those that it never does, drawn by the seed before
// anything starts.
struct Split {
  std::vector<eval::Document> search;
  std::vector<eval::Document> held_out;
};

// At most `most` for the search, at most half of them; the rest is held out, at most
// `most_held_out` (0: all). Throws Error (usage) if there are fewer than one and two: a paired
// error needs two documents.
Split split_documents(const Tokenizer& model, const std::vector<eval::Document>& documents,
                      std::int64_t tokens, std::size_t most, std::size_t most_held_out,
                      std::uint64_t seed);

// A ladder on one text.
struct Measured {
  std::vector<double> bands;    // loss per token of each band, natural logarithm
  std::vector<double> answers;  // log-probability per token of each planted answer
  std::string failed;           // why there are no numbers; empty: there are some

  double log_perplexity() const;  // mean of the bands
  double retrieval() const;       // mean of the answers
  // Infinite where it failed.
  double objective(double weight) const;
};

// The model must have no timeline. Numbers that are not finite, and NanLogits, are data: `failed`
// says so. `between` is called with the tokens just computed.
Measured measure(TimelineModel& model, const Ladder& ladder, const SearchText& text,
                 std::int64_t batch, const std::function<void(std::int64_t)>& between);

nlohmann::ordered_json to_json(const Measured& measured);
// May throw Error (corrupt) or an exception of the JSON library.
Measured measured_from_json(const nlohmann::ordered_json& line);

// ---- The search.

struct SearchOptions {
  double budget = 40;         // passes
  double weight = 0;          // of retrieval
  Planting planting;          // in every text
  std::int64_t batch = 2048;  // tokens handed to the engine at once
  std::uint64_t seed = 1;
  eval::NeedleForm form;
};

// The search set, tokenised: every document at the wanted length, and some at about half of it.
struct SearchSet {
  std::vector<SearchText> texts;
  std::vector<SearchText> halves;  // read under the same parameters at their length; may be empty
  std::int64_t pass = 0;           // tokens of one pass
};
SearchSet make_search_set(const Tokenizer& model, const Space& space,
                          const std::vector<eval::Document>& documents,
                          const SearchOptions& options);

struct Trial {
  Proposal proposal{};
  std::vector<Measured> measured{};  // texts 0, 1, ... of the set; all of them: complete
  bool complete = false;
  // Over the texts measured.
  eval::Estimate objective{}, log_perplexity{}, retrieval{};
};

struct SearchResult {
  std::vector<Trial> trials;
  std::size_t best = 0;            // index of the chosen one
  std::vector<std::size_t> front;  // complete ones that no other beats in both; by perplexity
  struct Step {
    double passes;
    std::size_t trial;
  };
  std::vector<Step> path;  // each time the best changed
  double passes = 0;
};

// Throws Error (usage) if the budget does not cover comparing this many published plans.
void check_budget(const SearchSet& set, std::size_t published, double budget);

// Throws Error: usage (as check_budget()), failed (the objective is not a number under any plan),
// interrupted.
SearchResult run_search(TimelineModel& model, const Space& space, const SearchSet& set,
                        const std::vector<Proposal>& first, const SearchOptions& options,
                        eval::RunFolder& folder, eval::Progress& progress);

// results.json: weight, passes, chosen, front, path, trials {name, origin, plan, parameters,
// headroom, rung_step, texts, complete, objective, log_perplexity, retrieval, each with stderr},
// factors of the chosen plan, of pro and of yarn.
nlohmann::ordered_json to_json(const SearchResult& result, const Space& space, double weight);

// The front, the chosen point marked, and the published methods that were measured in full.
std::string to_text(const SearchResult& result);

// ---- The proof of a found plan, on documents that the search never saw: perplexity at every
// length from the window on, and needles by the pinned protocol, compared with every published
// method at headroom 1 and 1.25.
//
// The rule. A published method rivals the found plan if it finds as many needles (not fewer by more
// than two standard errors of the paired difference) and the found plan's perplexity is not lower
// by more than two standard errors at every length; or if its perplexity at the wanted length is
// lower or equal and the found plan does not find more needles. The found plan is better if it has
// no rival.

constexpr std::size_t kProofNeedles = 20;  // per depth, if nothing else is asked for

// One published method compared with the found plan.
struct ProofRow {
  std::string method{};
  std::vector<eval::Estimate> perplexity{};  // one per length
  // The found plan's above this one's, in percent, paired; one per length.
  std::vector<eval::Estimate> difference{};
  eval::Estimate found{};              // share of needles
  eval::Estimate needle_difference{};  // the found plan's share minus this one's, paired
  bool lower_perplexity = false;       // the found plan's is, at every length from the window on
  bool as_many_needles = false;        // as the found plan
  std::string against{};               // why it rivals the found plan; empty: it does not
};

struct Proof {
  std::vector<std::int64_t> lengths;  // from the window on
  std::size_t documents = 0;
  ProofRow tuned;  // its own numbers
  std::vector<ProofRow> rows;
  std::vector<eval::Estimate> untouched;  // perplexity of the unmodified model
  bool better = false;
  std::string recommended;  // a row, if it is not
};

// Runs what the folders `ppl` and `needle` do not have yet. tuned.name is its row. needles: their
// form, and samples per depth (0: none, and perplexity alone decides); lengths and depths are those
// of the proof. weight: of needles against log-perplexity, for recommending a published method.
Proof prove(TimelineModel& model, const Proposal& tuned, const std::vector<Proposal>& others,
            const std::vector<eval::Document>& held_out, eval::NeedleOptions needles, double weight,
            eval::RunFolder& ppl, eval::RunFolder& needle, eval::Progress& progress);

// From results alone.
Proof judge_proof(const eval::ResultTable& ppl, const eval::ResultTable& needle,
                  const std::string& tuned, double weight);

nlohmann::ordered_json to_json(const Proof& proof);
std::string to_text(const Proof& proof);

}  // namespace mrrope::tune
