// SPDX-License-Identifier: Apache-2.0
// What answers under a grammar may take from others: slots and time.
#include "serve/schedule/scheduler.h"
#include "support/scripted.h"
#include "support/test.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

constexpr std::int64_t kContext = 600;

// Notes whose prompt it reads, in order, and how many computations there were before each choice of
// a grammar, which it can make slow.
class WatchedModel : public ScriptedModel {
 public:
  WatchedModel() : ScriptedModel({}) {
    for (Token token = 0; token < vocabulary(); ++token) {
      texts.text.push_back(token > 0 && token < 128 ? std::string(1, char(token)) : "");
      if (!texts.text.back().empty()) texts.sorted.push_back(token);
    }
  }
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    reading = true;
    while (held) std::this_thread::yield();
    for (const Reading& reading : readings) {
      if (reading.tokens.size() > 1) read += char(reading.tokens[1]);
    }
    ++computations;
    ScriptedModel::read_together(readings, observer);
  }
  // A grammar that is tried with the whole vocabulary asks for the first token too.
  bool ends_text(Token token) const override {
    if (token != 0) return false;
    choices.push_back(computations);
    for (const std::clock_t began = std::clock(); std::clock() - began < cost;) {
    }
    return false;
  }
  const TokenTexts* token_texts() const override { return &texts; }

  TokenTexts texts;
  std::atomic<bool> held = true, reading = false;
  std::clock_t cost = 0;
  std::string read;
  int computations = 0;
  mutable std::vector<int> choices;
};

struct Trial {
  explicit Trial(int slots) : ladder(growing(model.facts().geometry, kContext)) {
    model.use(ladder);
    scheduler = std::make_unique<Working>(model, ladder, SchedulerLimits{slots, 64, kContext});
    submit('.', "", 1);
    while (!model.reading) std::this_thread::yield();
  }
  ~Trial() { model.held = false; }
  void submit(char name, const std::string& grammar, std::int64_t length, bool lazy = false) {
    Job job = greedy(model.tokenize(std::string(4, name), true, false), length);
    job.sampling.grammar.text = grammar;
    job.sampling.grammar.lazy = lazy;
    answers.push_back(scheduler->submit(std::move(job)));
  }
  // Of all that was submitted while the first one was being read.
  void finish_all() {
    model.held = false;
    for (const auto& answer : answers) {
      const Said said = finish(*answer);
      EXPECT_EQ(said.outcome.end, Outcome::End::length) << said.outcome.message;
    }
  }
  WatchedModel model;
  Ladder ladder;
  std::vector<std::shared_ptr<Answer>> answers;
  std::unique_ptr<Working> scheduler;
};

// A prompt is a letter, four times; those of A to Z are under a grammar. All answers are as long.
std::string order(int slots, const std::string& names, bool lazy = false) {
  Trial s(slots);
  for (const char name : names) s.submit(name, name < 'a' ? "root ::= [0-9]+" : "", 3, lazy);
  s.finish_all();
  return s.model.read.substr(1);
}

// Those that begin in one round are read in the order of their slots.
std::string rounds(const std::string& read, std::size_t slots) {
  std::string out;
  for (std::size_t i = 0; i < read.size(); i += slots) {
    std::string round = read.substr(i, slots);
    std::sort(round.begin(), round.end());
    out += (i > 0 ? " " : "") + round;
  }
  return out;
}

TEST(GrammarShare, AQuarterOfTheSlotsWhileOthersWait) {
  EXPECT_EQ(rounds(order(4, "ABCDEFabcdef"), 4), "Aabc Bdef CDEF");
  EXPECT_EQ(rounds(order(8, "ABCDEFGHabcdefgh"), 8), "ABabcdef CDEFGHgh");
  // All slots where nobody else waits, and first come, first served where there is one slot.
  EXPECT_EQ(rounds(order(4, "ABCDEFGH"), 4), "ABCD EFGH");
  EXPECT_EQ(order(1, "ABab"), "ABab");
  // An answer that may never come to its grammar is like others.
  EXPECT_EQ(rounds(order(4, "ABCDabcd", true), 4), "ABCD abcd");
}

constexpr int kLength = 5;

TEST(GrammarShare, SlowChoicesWaitForOneAnotherWhileOthersWrite) {
  Trial s(4);
  s.model.cost = CLOCKS_PER_SEC / 20;
  for (const char name : {'A', 'B', 'C'}) s.submit(name, "root ::= [0-9]+", kLength);
  s.submit('a', "", 200);
  s.finish_all();
  // Never two in one round, while the other is written; and all end.
  ASSERT_EQ(s.model.choices.size(), 3U * kLength);
  for (std::size_t i = 1; i < s.model.choices.size(); ++i) {
    if (s.model.choices[i] >= 200) break;
    EXPECT_GT(s.model.choices[i], s.model.choices[i - 1]) << i;
  }
}

// Nobody waits for quick ones, and grammars alone lose nothing, however slow they are.
TEST(GrammarShare, OthersGoOnTogether) {
  for (const bool slow : {false, true}) {
    Trial s(4);
    if (slow) s.model.cost = CLOCKS_PER_SEC / 100;
    for (const char name : {'A', 'B', 'C'}) s.submit(name, "root ::= [0-9]+", kLength);
    if (!slow) s.submit('a', "", kLength);
    s.finish_all();
    EXPECT_EQ(s.model.choices.size(), 3U * kLength);
    EXPECT_EQ(s.model.computations, kLength + 1) << slow;
  }
}

}  // namespace
}  // namespace mrrope::serve
