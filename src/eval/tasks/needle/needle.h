// SPDX-License-Identifier: Apache-2.0
// Needle in a haystack: a sentence is planted at some depth of a long text and asked for at its
// end. Lengths are exact: prompt and room for the answer take N tokens (needle_plan.h). Answers are
// greedy. Two scores: ROUGE-1 recall of the answer, as in the paper, and exact containment.
//
// Each cell (length, depth) gets `samples` needles. Sample s uses haystack s mod H, of H; its word
// and number are drawn by (seed, s, place), the same for every method. Lengths are measured with
// the same needle where the place is the same.
//
// The protocol of every figure we quote: form planted, seed 1, 10 depths, 20 samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/run/runner.h"
#include "eval/tasks/needle/needle_plan.h"
#include "eval/text/documents.h"

namespace mrrope::eval {

// The task's name in run.json, journals and results.
constexpr const char* kNeedle = "needle";
constexpr const char* kContains = "contains";
constexpr const char* kRecall = "rouge1_recall";

struct NeedleOptions : EngineUse {
  std::vector<std::int64_t> lengths;  // tokens; sorted and made unique here
  std::vector<double> depths;         // percent, 0..100; sorted and made unique here
  std::size_t samples = 1;            // needles per cell
  std::uint64_t seed = 1;
  NeedleForm form;

  // All needles of a sample are hidden in one text, which is read once per length, and asked for
  // one after the other. Another test, harder than one needle, at a tenth of the cost. For forms
  // whose question names {word}; not behind an endpoint.
  bool together = false;
};

// Whether a method's cells share prefixes: under a static plan, unless told not to.
bool shares(const NeedleOptions& options, const MethodUnderTest& method);

// Eleven depths from 0 to 100.
std::vector<double> usual_depths();

// What run_needle() checks first. Lengths are sorted. Throws Error (usage).
void check_needle(const Target& target, const std::vector<MethodUnderTest>& methods,
                  const NeedleOptions& options);

// Haystacks of at least `tokens` tokens without BOS, `max_count` of them at most. A document that
// is too short is joined with those after it. If all of them together are too short, they are
// repeated until they are long enough (`repeat`, as Kamradt's script does), or else Error (usage).
struct Haystack {
  std::string id;  // of its documents, " + " between; " x 3" after them where they are repeated
  std::vector<Token> tokens;
};
std::vector<Haystack> make_haystacks(const Tokenizer& tokenizer,
                                     const std::vector<Document>& documents, std::int64_t tokens,
                                     std::size_t max_count, bool repeat = false);

// Essays in small-town prose of this project, enough for `max_count` haystacks of so many tokens:
// what the form kamradt hides its needle in without --text. A pure function of its arguments.
std::vector<Document> made_essays(const Tokenizer& tokenizer, std::int64_t tokens,
                                  std::size_t max_count);

// Runs the units that the folder's journal does not have yet (a sample under a method, which is a
// whole tree with an answer for each of its parts; behind an endpoint one cell), then writes
// results.json. Throws Error: usage (options,
// a length beyond the context or a ladder, haystacks too short) and what run_units() throws.
ResultTable run_needle(const Target& target, const std::vector<MethodUnderTest>& methods,
                       const std::vector<Document>& documents, const NeedleOptions& options,
                       RunFolder& folder, Progress& progress);

// The results of a run, made from run.json and journal lines alone: a journal can be graded again.
// Metrics, from 0 to 1: rouge1_recall of the answer, rouge1_recall_stemmed (words of more than
// three letters by their stems; only for answers with words) and contains (exactly). Units are
// depths and needles; rows over all depths have no depth. Lines may come in any order: the outcome
// is the same to the last bit. Throws Error (corrupt) on a line that does not belong to the run.
ResultTable needle_results(const nlohmann::ordered_json& run,
                           const std::vector<nlohmann::ordered_json>& units);

Task needle_task();

}  // namespace mrrope::eval
