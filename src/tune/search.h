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
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/run/run_folder.h"
#include "eval/run/runner.h"
#include "model/timeline_model.h"
#include "tune/objective.h"
#include "tune/space.h"

namespace mrrope::tune {

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
SearchSet make_search_set(const TimelineModel& model, const Space& space,
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

}  // namespace mrrope::tune
