// SPDX-License-Identifier: Apache-2.0
// What answers under a grammar may take from others: slots and time.
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

constexpr std::int64_t kContext = 600;

// Notes whose prompt it reads in which computation, and can make choices of a grammar slow.
class WatchedModel : public ScriptedModel {
 public:
  WatchedModel() : ScriptedModel({}) {
    std::vector<std::string> characters;
    for (Token token = 0; token < vocabulary(); ++token) {
      characters.push_back(token > 0 && token < 128 ? std::string(1, char(token)) : "");
    }
    texts = TokenTexts(characters);
  }
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    reading = true;
    while (held) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++computations;
    if (readings.size() > 1) last_shared = computations;
    for (const Reading& one : readings) {
      if (one.tokens.size() > 1) begun[char(one.tokens[1])] = computations;
    }
    ScriptedModel::read_together(readings, observer);
  }
  // A grammar that is tried with the whole vocabulary asks for one token after the other.
  bool ends_text(Token token) const override {
    if (std::exchange(last_asked, token) == 0 && token == 1) std::this_thread::sleep_for(cost);
    return false;
  }
  const TokenTexts* token_texts() const override { return &texts; }

  TokenTexts texts;
  std::atomic<bool> held = true, reading = false;
  std::chrono::milliseconds cost{0};
  std::map<char, int> begun;
  int computations = 0;
  int last_shared = 0;  // by two answers
  mutable Token last_asked = 0;
};

struct Trial {
  explicit Trial(int slots, int cost = 0) : ladder(growing(model.facts().geometry, kContext)) {
    model.use(ladder);
    model.cost = std::chrono::milliseconds(cost);
    scheduler = std::make_unique<Working>(model, ladder, SchedulerLimits{slots, 64, kContext});
    submit(".", 1);
    while (!model.reading) std::this_thread::yield();
  }
  ~Trial() { model.held = false; }
  // A prompt for each letter; those of capital letters are under a grammar.
  void submit(const std::string& names, std::int64_t length) {
    for (const char name : names) {
      Job job = greedy(model.tokenize(std::string(4, name), true, false), length);
      if (name >= 'A' && name <= 'Z') job.sampling.grammar.text = "root ::= [0-9]+";
      answers.push_back(scheduler->submit(std::move(job)));
    }
  }
  // Of all that was submitted while the first one was being read.
  void finish_all() {
    model.held = false;
    for (const auto& answer : answers) {
      const Said said = finish(*answer);
      EXPECT_EQ(said.outcome.end, Outcome::End::length) << said.outcome.message;
    }
  }
  int begun(char name) { return model.begun.at(name); }
  std::string begun_in(int computation) const {
    std::string names;
    for (const auto& [name, when] : model.begun) names += when == computation ? cat(name) : "";
    return names;
  }

  WatchedModel model;
  Ladder ladder;
  std::vector<std::shared_ptr<Answer>> answers;
  std::unique_ptr<Working> scheduler;
};

// Of those that wait in this order, who begins when all slots are free?
std::string first_of(const std::string& names, int slots) {
  Trial s(slots);
  s.submit(names, 3);
  s.finish_all();
  return s.begun_in(2);
}

TEST(GrammarShare, BothKindsHaveSlots) {
  EXPECT_EQ(first_of("abcdefABCDEF", 4), "Aabc");
  EXPECT_EQ(first_of("ABCDEFabcdef", 4), "Aabc");
  EXPECT_EQ(first_of("AaBb", 1), "A");
  EXPECT_EQ(first_of("aAbB", 1), "a");
  // All of them where the others do not wait.
  EXPECT_EQ(first_of("abcdef", 4), "abcd");
  EXPECT_EQ(first_of("ABCDEF", 4), "ABCD");
}

TEST(GrammarShare, NoMoreThanHalfOfTheSlotsWhileOthersWait) {
  Trial s(4);
  s.submit("ABCDE", 400);
  s.submit("abcdefghijklmnop", 20);
  s.finish_all();
  EXPECT_LT(s.begun('B'), s.begun('p'));
  EXPECT_GE(s.begun('C'), s.begun('p'));  // the last of the others
}

TEST(GrammarShare, SlowOnesBeginInTurnBesideOthers) {
  Trial s(4, 50);
  s.submit("aABC", 5);
  s.submit("b", 400);
  s.finish_all();
  EXPECT_EQ(s.begun('A'), 2);
  EXPECT_GT(s.begun('B'), s.begun('A') + 3);
  EXPECT_GT(s.begun('C'), s.begun('B') + 3);
  EXPECT_LT(s.begun('C'), 400);  // before the other ends
}

TEST(GrammarShare, SlowOnesRestBesideOthers) {
  Trial s(2, 20);
  s.submit("A", 10);
  s.submit("b", 500);
  s.finish_all();
  EXPECT_GT(s.model.last_shared, 25);  // at most 12 if it never rests
  EXPECT_LT(s.model.last_shared, 500);
}

// However slow the one before is.
TEST(GrammarShare, NobodyWaitsMoreThanASecondForATurn) {
  Trial s(3, 1100);
  s.submit("aAB", 1);
  s.submit("b", 20);
  s.finish_all();
  EXPECT_LE(s.begun('B'), s.begun('A') + 2);
}

// The server ends when all are answered.
TEST(GrammarShare, NobodyWaitsForATurnAtTheEnd) {
  Trial s(4);
  s.submit("aABC", 5);
  s.scheduler->refuse_new();
  s.finish_all();
  EXPECT_EQ(s.begun_in(2), "ABCa");
}

TEST(GrammarShare, QuickOnesCostNothing) {
  Trial beside(4);
  beside.submit("aABC", 300);
  beside.finish_all();
  EXPECT_LT(beside.begun('C'), 100);
  // Nor do slow ones by themselves.
  Trial alone(4, 20);
  alone.submit("ABCDEFGH", 5);
  alone.finish_all();
  EXPECT_EQ(alone.model.computations, 1 + 5 + 5);
}

}  // namespace
}  // namespace mrrope::serve
