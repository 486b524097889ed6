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

#include "eval/tasks/needle/needle.h"
#include "tune/space.h"

namespace mrrope::tune {

using nlohmann::ordered_json;

// ---- The texts of a search, and what it minimizes on them.

struct PlantedAnswer {
  std::vector<Token> question;  // with the answer at its end
  std::size_t answer = 0;       // tokens of the answer
};

struct SearchText {
  std::string id;
  std::int64_t length = 0;    // tokens, with room for the longest question
  std::vector<Token> tokens;  // head and document with its needles
  std::vector<char> planted;  // of each token: part of a needle or the head, or repeated text
  std::vector<PlantedAnswer> asked;
  std::int64_t cost = 0;  // tokens to compute
};

// As many keys with numbers as questions, evenly spread: a plan must tell the keys apart, not only
// find one. document: without BOS; a short one is repeated. The words and numbers are drawn by
// (seed, number). Throws Error (usage) if `length` is too short for the questions.
SearchText plant(const Tokenizer& model, const eval::NeedleForm& form, const std::string& id,
                 const std::vector<Token>& document, std::int64_t length, std::size_t questions,
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

// For a few short documents: half of them each for search and proof. Every text is all of its half
// joined, beginning with another one of them.
Split split_halves(std::vector<eval::Document> documents, std::size_t search, std::size_t held_out,
                   std::uint64_t seed);

// A ladder on one text.
struct Measured {
  std::vector<double> bands;    // loss per token of each band, natural logarithm
  std::vector<double> answers;  // loss per token of each planted answer, as eval reports it
  std::string failed;           // why there are no numbers; empty: there are some

  double log_perplexity() const;  // mean of the bands
  double answer_loss() const;     // mean of the answers
  // Infinite where it failed.
  double objective(double weight) const;
};

// Ends of the bands: half the window, the window, and twice as much each time up to `length`.
std::vector<std::int64_t> band_ends(std::int64_t window, std::int64_t length);

// The model must have no timeline. Numbers that are not finite, and NanLogits, are data: `failed`
// says so. `between` is called with the tokens just computed.
Measured measure(TimelineModel& model, const Ladder& ladder, const SearchText& text,
                 std::int64_t batch, const std::function<void(std::int64_t)>& between);

ordered_json to_json(const Measured& measured);
// May throw Error (corrupt) or an exception of the JSON library.
Measured measured_from_json(const ordered_json& line);

// Plans on texts: from the journal of a folder, or computed now and written there.
class Measurements {
 public:
  // Throws Error (corrupt). batch: tokens handed to the engine at once. most: texts read in all.
  Measurements(TimelineModel& model, eval::RunFolder& folder, eval::Progress& progress,
               std::int64_t batch, double most);
  const Measured& of(const Proposal& proposal, const SearchText& text);
  static std::string key(const std::string& numbers, const std::string& text, std::int64_t length);

 private:
  TimelineModel& model_;
  eval::RunFolder& folder_;
  eval::Progress& progress_;
  std::int64_t batch_;
  double most_;
  std::map<std::string, Measured> done_{};
};

// ---- The search.

struct SearchOptions {
  double budget = 40;          // passes
  double weight = 0;           // of the answers
  std::size_t questions = 20;  // about every text
  std::int64_t batch = 2048;   // tokens handed to the engine at once
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
// The texts of a proof.
std::vector<SearchText> make_proof_texts(const Tokenizer& model, std::int64_t length,
                                         const std::vector<eval::Document>& documents,
                                         const SearchOptions& options);

struct Trial {
  Proposal proposal{};
  std::vector<Measured> measured{};  // texts 0, 1, ... of the set; all of them: complete
  bool complete = false;
  // Over the texts measured.
  eval::Estimate objective{}, log_perplexity{}, answer_loss{};
};

struct SearchResult {
  std::vector<Trial> trials;
  std::size_t best = 0;            // index of the chosen one
  std::vector<std::size_t> front;  // complete ones that no other beats in both; by perplexity
  double passes = 0;
};

// Passes that comparing this many plans takes, without any search from there.
double least_budget(const SearchSet& set, std::size_t plans);
// Throws Error (usage) if the budget does not cover comparing this many published plans.
void check_budget(const SearchSet& set, std::size_t published, double budget);

// Throws Error: usage (as check_budget()), failed (the objective is not a number under any plan),
// interrupted.
SearchResult run_search(TimelineModel& model, const Space& space, const SearchSet& set,
                        const std::vector<Proposal>& first, const SearchOptions& options,
                        eval::RunFolder& folder, eval::Progress& progress);

// results.json: weight, passes, chosen, front, trials {name, origin, plan, parameters, headroom,
// rung_step, texts, complete, objective, log_perplexity, answer_loss, each with stderr}.
ordered_json to_json(const SearchResult& result, double weight);

// The front, the chosen point marked, and the published methods that were measured in full.
std::string to_text(const SearchResult& result);

// ---- The proof of a found plan, on texts that the search never saw, with questions of their own:
// compared with what would be used without it. A context that grows stands against `auto`, a static
// plan against every published one.
//
// The rule. Paired over the texts, the objective of the found plan must be lower by more than two
// standard errors, and neither its perplexity 1 % nor its answer loss 0.05 nats higher.

// One method compared with the found plan.
struct ProofRow {
  std::string method{};
  std::vector<eval::Estimate> perplexity{};  // one per band
  // The found plan's above this one's, in percent, paired; one per band.
  std::vector<eval::Estimate> difference{};
  eval::Estimate answer_loss{};      // nats per token
  eval::Estimate loss_difference{};  // the found plan's minus this one's, paired
  std::string against{};             // why the found plan is not better; empty: it is
};

struct Proof {
  std::vector<std::int64_t> lengths{};  // where the bands end
  std::size_t texts = 0;
  std::size_t questions = 0;  // about each
  ProofRow tuned{};           // its own numbers
  std::vector<ProofRow> rows{};
  bool better = false;
  std::string recommended{};  // the row with the best objective
};

// A plan on all texts of the proof.
struct Proved {
  std::string name;
  std::vector<Measured> measured;
};

// Measures what the folder of the search does not have yet.
Proof prove(TimelineModel& model, const Proposal& tuned, const std::vector<Proposal>& others,
            const std::vector<SearchText>& texts, const SearchOptions& options,
            eval::RunFolder& folder, eval::Progress& progress);

// From the numbers alone.
Proof judge_proof(const Proved& tuned, const std::vector<Proved>& others,
                  std::vector<std::int64_t> lengths, double weight);

ordered_json to_json(const Proof& proof);
std::string to_text(const Proof& proof);

}  // namespace mrrope::tune
