// SPDX-License-Identifier: Apache-2.0
// Needle in a haystack: a sentence is planted at some depth of a long text and asked for at its
// end. Lengths are exact: prompt and room for the answer take N tokens. Answers are
// greedy. Two scores: ROUGE-1 recall of the answer, as in the paper, and exact containment.
//
// Each cell (length, depth) gets `samples` needles. Sample s uses haystack s mod H, of H; its word
// and number are drawn by (seed, s, place), the same for every method and length.
// The protocol of every figure we quote: form planted, seed 1, 10 depths, 20 samples.
#pragma once

#include "eval/run/runner.h"
#include "eval/text/documents.h"

namespace mrrope::eval {

// The user's own needle instead of a built-in one.
struct NeedleTexts {
  std::string needle;
  std::string question;
  std::string answer;
};

// The sentence hidden in a haystack, the question that asks for it, and what counts as the answer:
//   planted     the bundled model's own: the only retrieval it was trained on
//   completion  for base models: a sentence that the model has to finish
//   chat        for instruct models: a question through the model's own chat template
//   kamradt     the usual test in the manner of G. Kamradt, which the paper runs: one sentence of
//               several words about what to do in some place, in words of this project; asked
//               through the chat template if the model has one; the answer is a clause of it
// Texts hold {word} and {number}: a word drawn from a list, and six digits without a leading zero.
struct NeedleForm {
  std::string name{};
  std::string before{};  // comes before the haystack, after BOS
  std::string needle;    // planted into it
  std::string question;  // comes after it; the answer follows
  std::string answer;    // what is looked for
  bool special = false;  // before and question hold the text of control tokens (chat templates do)
  std::vector<std::string> stop{};
  int answer_tokens = 16;  // room for the answer
};

// The form whose haystack is repeated if it is too short, and whose main score is the recall.
constexpr const char* kKamradt = "kamradt";

// name: "planted", "completion", "chat", "kamradt", or empty for chat where the model has a chat
// template and completion where not. answer_tokens 0: 16, for chat and kamradt 50. Throws Error:
// usage (unknown name, incomplete texts, custom texts with planted), unsupported (chat
// without a template).
NeedleForm make_form(const Tokenizer& model, const std::string& name,
                     const std::optional<NeedleTexts>& own, int answer_tokens);

// Throws Error (usage) that names what is missing or empty.
void check_texts(const NeedleTexts& own);

// Whether an answer has words to stem: more than placeholders and digits.
bool has_words(const std::string& answer);

// One needle, drawn and tokenised; no piece carries a BOS.
struct Needle {
  std::string answer;
  std::vector<Token> needle;
  std::vector<Token> question;
  std::vector<Token> right{};  // the answer, after the question
};

// A pure function of its arguments: equal numbers, equal needle. Throws Error (usage) if the form
// leaves too little room for the answer; of an answer with words those that were written count.
Needle draw_needle(const Tokenizer& model, const NeedleForm& form, std::uint64_t seed,
                   std::size_t sample, std::int64_t where);

// The text before the haystack, with the BOS of the whole prompt if the model has one.
std::vector<Token> head_of(const Tokenizer& model, const NeedleForm& form);

// A cell is a length N and a depth. Its prompt is
//   head (BOS, in a chat what the template puts first), haystack, needle somewhere in it, question
// and prompt and answer take exactly N tokens: the haystack gets what the rest leaves.
// The needle's place is depth * N haystack tokens (at most the haystack's end), moved back to just
// after the nearest end of a sentence; if there is none within 64 tokens or a tenth of the way, it
// is not moved, and the cell is marked. Depth 100 is the end of the haystack.
// Sharing: the bare haystack is the trunk of a tree and computed once. Cells with the same place
// (equally spaced lengths have many: half of 4k is a quarter of 8k) and so the same needle are one
// branch: forked off the trunk there, needle, then haystack up to the longest of its lengths, with
// the question of each length on a fork of its own. 8 equally spaced lengths x 11 depths take a
// third of what they would one by one. The keys of an elastic ladder are turned for the rung of one
// length, so its cells are read one by one.
struct NeedleOptions : EngineUse {
  std::vector<std::int64_t> lengths;  // tokens; run_needle() sorts both and makes them unique
  std::vector<double> depths;         // percent, 0..100
  std::size_t samples = 1;            // needles per cell
  std::uint64_t seed = 1;
  NeedleForm form;

  // All needles of a sample are hidden in one text per length, one at each depth, and asked for one
  // after the other; the text is read once. Another test, harder than one needle, for nearly the
  // price of one. Errors are over texts. For forms whose question names {word}.
  bool together = false;
};

struct NeedleCell {
  std::size_t length = 0;     // index into those of the options
  std::size_t depth = 0;      // likewise
  std::int64_t haystack = 0;  // tokens of haystack in its prompt
};

struct NeedleBranch {
  std::int64_t position = 0;  // haystack tokens before the needle
  bool snapped = false;       // a sentence ends there, or the haystack begins or ends
  Needle needle;
  std::vector<NeedleCell> cells;  // ascending lengths
};

struct NeedleTree {
  std::vector<Token> head;
  std::vector<NeedleBranch> branches;  // ascending positions
  std::int64_t tokens = 0;             // to compute, answers not counted
  std::int64_t naive_tokens = 0;       // one by one
};

// Whether a sentence (or a paragraph) ends with tokens[index], by the text of it and of the next.
bool ends_sentence(const Tokenizer& model, std::span<const Token> tokens, std::size_t index);

// The place after the nearest end of a sentence at or before `position`; the start counts as one.
// Absent where none is at most `max_steps` tokens back.
std::optional<std::int64_t> snap_back(const Tokenizer& model, std::span<const Token> haystack,
                                      std::int64_t position, std::int64_t max_steps);

// haystack: at least as many tokens as the longest length. Throws Error (usage) where a length has
// no room for head, needle, question, answer and one token of haystack.
NeedleTree plan_tree(const Tokenizer& model, const NeedleOptions& options,
                     std::span<const Token> haystack, std::size_t sample);

// What is read for one sample: a tree, or together a text for each length, which is the head; a
// branch for each depth, with one cell. The text and the longest question leave room for the
// answer. Every needle has a question of its own; needle k is the same at every length. Its middle
// lies at its depth, or at most half of its share of the haystack before. Needs check_together().
std::vector<NeedleTree> plan_sample(const Tokenizer& model, const NeedleOptions& options,
                                    std::span<const Token> haystack, std::size_t sample);

// Throws Error (usage), which says how many fit, where the form has fewer different questions than
// there are depths, or the shortest length no room for so many needles.
void check_together(const Tokenizer& model, const NeedleOptions& options);

// The task's name in run.json, journals and results.
constexpr const char* kNeedle = "needle";
constexpr const char* kContains = "contains";
constexpr const char* kRecall = "rouge1_recall";

// Whether a method's cells share prefixes: under a static plan, unless told not to, and together.
bool shares(const NeedleOptions& options, const MethodUnderTest& method);

// Eleven depths from 0 to 100; for several needles in one text the middles of so many equal parts
// of it, such as 10, 30, 50, 70, 90.
constexpr std::size_t kMaxNeedles = 100;
std::vector<double> usual_depths(std::size_t needles = 1);

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
// whole tree with an answer for each of its parts; one text where needles are together; behind an
// endpoint one cell), then writes results.json. Throws Error: usage, and what run_job() throws.
ResultTable run_needle(const Target& target, const std::vector<MethodUnderTest>& methods,
                       const std::vector<Document>& documents, const NeedleOptions& options,
                       RunFolder& folder, Progress& progress);

// Metrics, from 0 to 1: rouge1_recall of the answer, rouge1_recall_stemmed (words of more than
// three letters by their stems; only for answers with words) and contains (exactly). Units are
// depths and needles; rows over all depths have no depth, and where needles are together their
// units are texts.
Task needle_task();

}  // namespace mrrope::eval
