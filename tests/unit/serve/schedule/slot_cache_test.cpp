// SPDX-License-Identifier: Apache-2.0
// What conversations share, and how they get along in one cache. The scripted model counts what it
// computes, and its answers depend on every token and on the rung, so a wrong copy changes them.

#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"
#include "support/scripted.h"
#include "support/test.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

constexpr std::int64_t kContext = 600;
constexpr std::int64_t kWindow = 256;

// Never ends its text, and can be made to wait before it computes.
class PatientModel : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    while (held || computed() >= held_after) std::this_thread::yield();
    for (const Reading& reading : readings) most = std::max(most, reading.tokens.size());
    together = std::max(together, readings.size());
    ScriptedModel::read_together(readings, observer);
  }
  bool ends_text(Token) const override { return false; }
  bool forgets() const override { return can_forget; }
  std::size_t batch() const override { return 64; }

  std::atomic<bool> held = false;
  std::atomic<std::int64_t> held_after = 1 << 20;  // tokens
  bool can_forget = true;
  std::size_t most = 0;      // tokens of one reading
  std::size_t together = 0;  // readings of one computation
};

ScriptedOptions windowed() { return {.train_length = kWindow}; }

Ladder with_near_part(const Geometry& geometry) {
  return make_ladder(
      geometry, parse_method("far:pi(rung_step=1.19,headroom=1,near=64,near_step=64)"), kContext);
}

struct Trial {
  explicit Trial(SchedulerLimits limits, bool can_forget = true, bool near = false)
      : model(windowed()),
        ladder(near ? with_near_part(model.facts().geometry)
                    : growing(model.facts().geometry, kContext)) {
    model.can_forget = can_forget;
    model.use(ladder);
    limits.context = kContext;
    scheduler = std::make_unique<Working>(model, ladder, limits);
  }
  ~Trial() {
    model.held = false;
    model.held_after = 1 << 20;
  }
  std::shared_ptr<Answer> submit(const std::string& text, std::int64_t length = 12,
                                 const std::string& salt = {}) {
    return submit(model.tokenize(text, true, false), length, salt);
  }
  std::shared_ptr<Answer> submit(const std::vector<Token>& prompt, std::int64_t length,
                                 const std::string& salt = {}) {
    Job job = greedy(prompt, length);
    job.cache_salt = salt;
    return scheduler->submit(std::move(job));
  }
  PatientModel model;
  Ladder ladder;
  std::unique_ptr<Working> scheduler;
};

std::vector<Token> alone(const std::string& text, std::int64_t length = 12) {
  Trial trial({.slots = 1});
  return finish(*trial.submit(text, length)).tokens;
}

const std::string kSystem(100, 's');
constexpr std::int64_t kShared = 101;  // with BOS

TEST(SharedPrefix, IsCopiedFromAnotherConversation) {
  Trial s({.slots = 3});
  const std::string other = kSystem + std::string(90, 'A');
  const Said first = finish(*s.submit(other));
  const std::int64_t before = s.model.computed();
  const Said second = finish(*s.submit(kSystem + "BBB"));
  EXPECT_EQ(second.outcome.cached, kShared);
  EXPECT_EQ(s.model.computed() - before, 3 + 11);
  EXPECT_EQ(second.tokens, alone(kSystem + "BBB"));
  // The first conversation is still there, and can be continued.
  std::vector<Token> more = s.model.tokenize(other, true, false);
  more.insert(more.end(), first.tokens.begin(), first.tokens.end());
  EXPECT_EQ(finish(*s.submit(more, 5)).outcome.cached, std::int64_t(more.size()) - 1);
}

// Also from one that is being written; but not if its keys are on another rung.
TEST(SharedPrefix, IsCopiedFromARunningAnswerOnTheSameRung) {
  for (const std::size_t size : {20U, 220U}) {
    Trial s({.slots = 2});
    s.model.held_after = kShared + std::int64_t(size) + 10;
    const auto running = s.submit(kSystem + std::string(size, 'A'), 100);
    while (s.scheduler->slots()[0].written < 10) std::this_thread::yield();
    const auto answer = s.submit(kSystem + "B");
    s.model.held_after = 1 << 20;
    const Said said = finish(*answer);
    EXPECT_EQ(said.outcome.cached, size == 20 ? kShared : 0);
    EXPECT_EQ(said.tokens, alone(kSystem + "B"));
    EXPECT_EQ(finish(*running).tokens, alone(kSystem + std::string(size, 'A'), 100));
  }
}

TEST(SharedPrefix, IsNotCopiedWhereNothingCanBeForgotten) {
  Trial s({.slots = 3}, false);
  finish(*s.submit(kSystem + std::string(60, 'x')));
  EXPECT_EQ(finish(*s.submit(kSystem + std::string(60, 'y'))).outcome.end, Outcome::End::length);
}

// Several answers to one prompt, sent at once: it is read once.
TEST(SharedPrefix, IsReadOnceForAllThatWaitForIt) {
  Trial s({.slots = 4});
  const std::string prompt(500, 'p');
  s.model.held = true;
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 4; ++i) answers.push_back(s.submit(prompt, 5));
  s.model.held = false;
  const std::vector<Token> expected = alone(prompt, 5);
  for (const auto& answer : answers) EXPECT_EQ(finish(*answer).tokens, expected);
  // Each but the first reads the last token again, and all read four of the five they write.
  EXPECT_EQ(s.model.computed(), 501 + 3 + 4 * 4);
}

TEST(SharedPrefix, OutlivesAReaderThatIsCancelled) {
  Trial s({.slots = 2});
  const std::string prompt(550, 'p');
  s.model.held = true;
  const auto first = s.submit(prompt, 5);
  const auto second = s.submit(prompt, 5);
  first->cancel();
  s.model.held = false;
  EXPECT_EQ(finish(*first).outcome.end, Outcome::End::cancelled);
  EXPECT_EQ(finish(*second).tokens, alone(prompt, 5));
}

// Tokens that such a context would read again inside the window are read, and counted, as a prompt.
TEST(NearPart, NothingIsKeptBackInsideTheWindow) {
  for (const bool near : {false, true}) {
    Trial s({.slots = 1}, true, near);
    const std::string prompt(300, 'p');
    finish(*s.submit(prompt));
    EXPECT_EQ(finish(*s.submit(prompt.substr(0, 280))).outcome.cached, 280);
    EXPECT_EQ(finish(*s.submit(prompt.substr(0, 200))).outcome.cached, near ? 0 : 200);
    EXPECT_EQ(finish(*s.submit(prompt.substr(0, 150))).outcome.cached, 150);
  }
}

// The conversation with most in common is too long to be copied.
TEST(Pool, NoConversationIsForgottenInVain) {
  Trial s({.slots = 3, .pool = 400});
  const std::string first(60, 's');
  const std::string both = first + std::string(90, 't');
  finish(*s.submit(first + std::string(40, 'A')));
  finish(*s.submit(both + std::string(90, 'B')));
  const Said said = finish(*s.submit(both + "C"));
  EXPECT_EQ(said.outcome.end, Outcome::End::length) << said.outcome.message;
  EXPECT_EQ(said.tokens, alone(both + "C"));
}

// One cache for all: a long chat takes the room of idle ones.
TEST(Pool, IdleConversationsMakeRoom) {
  Trial s({.slots = 3, .pool = kContext});
  finish(*s.submit(std::string(250, 'a')));
  finish(*s.submit(std::string(250, 'b')));
  const std::string prompt(500, 'c');
  EXPECT_EQ(finish(*s.submit(prompt, 99)).tokens, alone(prompt, 99));
  std::int64_t held = 0;
  for (const SlotState& slot : s.scheduler->slots()) held += slot.length;
  EXPECT_EQ(held, 600 - 1);  // the last token was not read
}

// Answers that together outgrow it take turns, and each is what it would have been alone.
TEST(Pool, AnswersThatOutgrowItAreAllFinished) {
  Trial s({.slots = 3, .pool = kContext});
  std::vector<std::string> prompts;
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 5; ++i) {
    prompts.push_back(std::string(1, char('k' + i)) + std::string(150, char('a' + i)));
    answers.push_back(s.submit(prompts.back(), 300));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Said said = finish(*answers[i]);
    EXPECT_EQ(said.outcome.end, Outcome::End::length) << said.outcome.message;
    EXPECT_EQ(said.tokens, alone(prompts[i], 300)) << i;
    EXPECT_EQ(said.outcome.prompt, 152);
  }
  EXPECT_GT(s.model.computed(), 5 * (152 + 299)) << "nobody had to wait";
}

TEST(Deterministic, ReadsAndWritesInFixedShapes) {
  Trial s({.slots = 4, .deterministic = true});
  const std::size_t part = s.model.batch() / 4;  // 16
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 4; ++i) answers.push_back(s.submit(std::string(300, char('a' + i)), 20));
  for (const auto& answer : answers) finish(*answer);
  EXPECT_EQ(s.model.together, 1U);
  EXPECT_LE(s.model.most, part);
  // Of a prompt that is known whole parts are used again, unless their keys were turned further.
  finish(*s.submit(std::string(200, 'x'), 20));
  EXPECT_EQ(finish(*s.submit(std::string(200, 'x'), 20)).outcome.cached, 192);
  EXPECT_EQ(finish(*s.submit(std::string(100, 'x'), 20)).outcome.cached, 96);
  EXPECT_EQ(finish(*s.submit(std::string(100, 'a'), 20)).outcome.cached, 0);
}

TEST(Salt, OnlyTheSameSaltSharesAPrefix) {
  const std::string text = kSystem + "A";
  const std::int64_t all = kShared;
  for (const int slots : {1, 3}) {
    Trial s({.slots = slots});
    const auto cached = [&](const std::string& salt) {
      const Said said = finish(*s.submit(text, 12, salt));
      EXPECT_EQ(said.tokens, alone(text));
      return said.outcome.cached;
    };
    EXPECT_EQ(cached(""), 0);
    EXPECT_EQ(cached("mine"), 0);
    EXPECT_EQ(cached("mine"), all);
    EXPECT_EQ(cached("yours"), 0);
    EXPECT_EQ(cached("yours"), all);
    EXPECT_EQ(cached(""), slots == 1 ? 0 : all);
    EXPECT_EQ(cached("mine"), slots == 1 ? 0 : all);
  }
}

// A prompt that is being read is waited for by its own salt alone.
TEST(Salt, NobodyWaitsForAPromptOfAnotherSalt) {
  Trial s({.slots = 3});
  const std::string prompt(500, 'p');
  s.model.held = true;
  const auto first = s.submit(prompt, 5, "mine");
  const auto same = s.submit(prompt, 5, "mine");
  const auto other = s.submit(prompt, 5, "yours");
  s.model.held = false;
  EXPECT_EQ(finish(*first).outcome.cached, 0);
  EXPECT_EQ(finish(*same).outcome.cached, 500);
  EXPECT_EQ(finish(*other).outcome.cached, 0);
}

// What an errand puts into a slot has the salt that the errand says.
TEST(Salt, IsKeptBySlotTasks) {
  Trial s({.slots = 1});
  const std::string text = kSystem + "A";
  finish(*s.submit(text, 12, "mine"));
  std::string salt;
  s.scheduler
      ->run_on_slot(0,
                    [&](auto& timeline, std::string& own) {
                      salt = own;
                      timeline = timeline->fork();
                    })
      .get();
  EXPECT_EQ(salt, "mine");
  EXPECT_EQ(finish(*s.submit(text, 12, "mine")).outcome.cached, kShared);
  s.scheduler->run_on_slot(0, [&](auto&, std::string& own) { own = "yours"; }).get();
  EXPECT_EQ(finish(*s.submit(text, 12, "mine")).outcome.cached, 0);
}

TEST(Visit, WaitsForTheAnswerAndChangesTheSlot) {
  Trial s({.slots = 1});
  s.model.held = true;
  const auto answer = s.submit("abc", 5);
  while (s.scheduler->counts().slots_busy == 0) std::this_thread::yield();
  auto erased = s.scheduler->run_on_slot(0, [](auto& t, auto&) { t->truncate(2); });
  EXPECT_EQ(erased.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  s.model.held = false;
  EXPECT_EQ(finish(*answer).outcome.written, 5);
  EXPECT_EQ(erased.get(), 2);
  EXPECT_EQ(s.scheduler->slots()[0].length, 2);
  EXPECT_EQ(finish(*s.submit("abc", 5)).outcome.cached, 2);
  // One that fails after it has given up what was there leaves an empty slot.
  auto failed = s.scheduler->run_on_slot(0, [](auto& t, auto&) {
    t.reset();
    throw Error(ErrorKind::corrupt, "not a state");
  });
  EXPECT_THROW(failed.get(), Error);
  EXPECT_EQ(s.scheduler->slots()[0].length, 0);
  EXPECT_EQ(finish(*s.submit("abc", 5)).tokens, alone("abc", 5));
}

}  // namespace
}  // namespace mrrope::serve
