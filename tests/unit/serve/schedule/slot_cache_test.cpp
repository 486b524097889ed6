// SPDX-License-Identifier: Apache-2.0
// What conversations share, and how they get along in one cache. The scripted model counts what it
// computes, and its answers depend on every token and on the rung, so a wrong copy changes them.

#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

constexpr const char* kNear = "far:pi(rung_step=1.19,headroom=1,near=64,near_step=64)";

struct Trial : ScriptedTrial {
  explicit Trial(SchedulerLimits limits, bool can_forget = true, const char* method = "elastic:pro")
      : ScriptedTrial(limits, {.train_length = 256}, method) {
    model.endless = true;
    model.can_forget = can_forget;
    model.most_batch = 64;
  }
  std::shared_ptr<Answer> submit(const std::string& text, std::int64_t length = 12,
                                 const std::string& salt = {}) {
    Job sent = job(text, length);
    sent.cache_salt = salt;
    return scheduler->submit(std::move(sent));
  }
};

std::vector<Token> alone(const std::string& text, std::int64_t length = 12) {
  Trial trial({.slots = 1});
  return finish(*trial.submit(text, length)).tokens;
}

const std::string kSystem(100, 's');
constexpr std::int64_t kShared = 101;  // with BOS

// "CONDITIONS | TEXT | TEXT ...": texts one after the other, each "TEXT then LENGTH as SALT". What
// each finds in the cache and lets the model compute, which gives the answer of a model alone.
std::string conversations(const test::Arguments& a) {
  SchedulerLimits limits;
  const auto said = [&](const char* word) { return contains(a[0], word); };
  limits.slots = a[0][0] - '0';
  if (said("pool")) limits.pool = std::stol(a[0].substr(a[0].find("pool") + 5));
  limits.deterministic = said("deterministic");
  Trial s(limits, !said("unforgetting"), said("near") ? kNear : "elastic:pro");
  std::string out;
  for (std::size_t i = 1; i < a.size(); ++i) {
    const std::size_t then = a[i].find(" then "), as = a[i].find(" as ");
    const std::string text = a[i].substr(0, std::min(then, as));
    const std::int64_t length = then == std::string::npos ? 12 : std::stol(a[i].substr(then + 6));
    const std::int64_t before = s.model.computed();
    const auto salt = as == std::string::npos ? std::string() : a[i].substr(as + 4);
    const Said found = finish(*s.submit(text, length, salt));
    EXPECT_EQ(found.outcome.end, Outcome::End::length) << found.outcome.message;
    EXPECT_TRUE(said("near") || found.tokens == alone(text, length)) << i;
    out += cat(out.empty() ? "" : ", ", found.outcome.cached, "+", s.model.computed() - before);
  }
  std::int64_t held = 0;
  for (const SlotState& slot : s.scheduler->slots()) held += slot.length;
  return out + cat("; ", held, " kept");
}

TEST(SlotCache, WhatConversationsShare) {
  test::expect_functions("slot_cache", {{"slots", conversations}});
}

// Also from one that is being written; but not if its keys are on another rung.
TEST(SharedPrefix, IsCopiedFromARunningAnswerOnTheSameRung) {
  for (const std::size_t size : {20U, 220U}) {
    Trial s({.slots = 2});
    s.model.held_after = kShared + std::int64_t(size) + 10;
    const auto running = s.submit(kSystem + std::string(size, 'A'), 100);
    while (s.scheduler->slots()[0].written < 10) std::this_thread::yield();
    const auto answer = s.submit(kSystem + "B");
    s.model.release();
    const Said said = finish(*answer);
    EXPECT_EQ(said.outcome.cached, size == 20 ? kShared : 0);
    EXPECT_EQ(said.tokens, alone(kSystem + "B"));
    EXPECT_EQ(finish(*running).tokens, alone(kSystem + std::string(size, 'A'), 100));
  }
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

// Answers that together outgrow it take turns, and each is what it would have been alone.
TEST(Pool, AnswersThatOutgrowItAreAllFinished) {
  Trial s({.slots = 3, .pool = kTrialContext});
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
  EXPECT_EQ(s.model.most_readings, 1U);
  EXPECT_LE(s.model.most_tokens, part);
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
