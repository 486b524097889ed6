// SPDX-License-Identifier: Apache-2.0
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

// Lengths on several rungs: the window is 64.
std::vector<std::string> texts() {
  std::vector<std::string> out;
  for (int i = 0; i < 12; ++i) {
    out.push_back(std::string(1, char('a' + i)) +
                  std::string(std::size_t(5 + 40 * i), char('A' + i)));
  }
  return out;
}

TEST(Scheduler, ParallelAnswersEqualSingleAnswers) {
  ScriptedTrial alone({.slots = 1});
  ScriptedTrial together({.slots = 3});
  std::vector<Said> expected;
  std::vector<std::shared_ptr<Answer>> answers;
  std::size_t written = 0;
  for (const std::string& text : texts()) {
    expected.push_back(alone.ask(alone.job(text)));
  }
  together.model.held = true;  // until all have come
  for (const std::string& text : texts()) {
    answers.push_back(together.scheduler->submit(together.job(text)));
  }
  together.model.held = false;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Said said = finish(*answers[i]);
    EXPECT_EQ(said.outcome.end, expected[i].outcome.end) << i << said.outcome.message;
    EXPECT_EQ(said.tokens, expected[i].tokens) << i;
    written += said.tokens.size();
  }
  EXPECT_GT(written, 3 * answers.size());  // some end early, as a scripted model wants
  const SchedulerCounts counts = together.scheduler->counts();
  EXPECT_EQ(counts.slots_busy, 0);
  EXPECT_EQ(counts.queued, 0);
  EXPECT_LT(counts.computations, alone.scheduler->counts().computations);
}

// Queries of one sharpness, wherever the border is.
TEST(Scheduler, RungsThatGoTogetherAreComputedTogether) {
  ScriptedTrial near({.slots = 3}, {}, "far:pi(sharpen=0)"), elastic({.slots = 3});
  for (ScriptedTrial* trial : {&near, &elastic}) {
    trial->model.slow = trial->model.endless = true;
    std::vector<std::shared_ptr<Answer>> answers;
    for (const int length : {20, 200, 400}) {
      answers.push_back(
          trial->scheduler->submit(trial->job(std::string(std::size_t(length), 'a'), 60)));
    }
    for (const auto& answer : answers) finish(*answer);
  }
  EXPECT_GT(near.model.most_rungs, 1u);
  EXPECT_EQ(elastic.model.most_rungs, 1u);
}

// What a separate timeline writes, without a scheduler.
std::vector<Token> reference(const Ladder& ladder, const std::vector<Token>& prompt, int length) {
  ScriptedModel model({});
  model.use(ladder);
  const auto timeline = model.timeline();
  timeline->append(prompt);
  GenerateOptions options;
  options.max_tokens = length;
  return timeline->generate(options).tokens;
}

// The engine may read its tokens again after the observer has ended the answer or chosen the next
// token.
TEST(Scheduler, TokensDoNotChangeWhileTheModelReadsThem) {
  ScriptedTrial s({.slots = 1});
  const std::string start(300, 'x');
  for (const int length : {1, 12}) {
    const Job first = s.job(start + std::to_string(length), length);
    EXPECT_EQ(s.ask(first).tokens, reference(s.ladder, first.prompt, length));
    // From the middle of what was written, where the timeline goes by what it kept.
    Job next = first;
    for (const Token token : reference(s.ladder, first.prompt, length)) {
      next.prompt.push_back(token);
    }
    next.length = 20;
    const Said said = s.ask(next);
    EXPECT_GE(said.outcome.cached, 290);
    EXPECT_EQ(said.tokens, reference(s.ladder, next.prompt, 20)) << length;
  }
}

TEST(Scheduler, ComputesOnlyWhatIsNew) {
  ScriptedTrial s({.slots = 2});
  const std::string start(200, 'x');
  const Said first = s.ask(s.job(start));
  ASSERT_EQ(first.outcome.cached, 0);
  Job more = s.job(start);
  more.prompt.insert(more.prompt.end(), first.tokens.begin(), first.tokens.end());
  more.prompt.push_back('y');
  s.ask(s.job("something else"));  // goes to the other slot
  const std::int64_t before = s.model.computed();
  const Said second = s.ask(more);
  // Of what was written the last token was never read.
  EXPECT_EQ(second.outcome.cached, std::int64_t(more.prompt.size()) - 2);
  EXPECT_LE(s.model.computed() - before, 2 + 12);
  // A prompt that is cut short and continues differently keeps the common prefix.
  const Said third = s.ask(s.job(start.substr(0, 150) + "zzz"));
  EXPECT_EQ(third.outcome.cached, 151);  // BOS
  // The very same prompt reads its last token again.
  const Said fourth = s.ask(s.job(start.substr(0, 150) + "zzz"));
  EXPECT_EQ(fourth.outcome.cached, 153);
  EXPECT_EQ(fourth.tokens, third.tokens);
}

TEST(Scheduler, ShortAnswerDoesNotWaitForALongOne) {
  ScriptedTrial s({.slots = 2});
  s.model.slow = s.model.endless = true;
  const auto slow = s.scheduler->submit(s.job("slow", 400));
  const auto quick = s.scheduler->submit(s.job("quick", 3));
  finish(*quick);
  Answer::Part part;
  EXPECT_FALSE(slow->take(part, std::chrono::milliseconds(0)));
  slow->cancel();
  EXPECT_EQ(finish(*slow).outcome.end, Outcome::End::cancelled);
}

TEST(Scheduler, RefusesWhatItCannotRun) {
  ScriptedTrial s({.slots = 1, .queue = 1});
  const auto refusal = [&](const Job& j) { return status_of([&] { s.scheduler->submit(j); }); };
  EXPECT_EQ(refusal(s.job(std::string(600, 'x'))), 400);
  EXPECT_EQ(refusal(Job()), 400);
  s.model.slow = s.model.endless = true;
  const auto running = s.scheduler->submit(s.job("a", 500));
  while (s.scheduler->counts().slots_busy == 0) std::this_thread::yield();
  const auto waiting = s.scheduler->submit(s.job("b", 3));
  EXPECT_EQ(refusal(s.job("c")), 429);
  s.scheduler->refuse_new();
  EXPECT_EQ(refusal(s.job("d")), 503);
  EXPECT_FALSE(s.scheduler->idle());
  EXPECT_EQ(finish(*running).outcome.written, 500);  // what was accepted is finished
  EXPECT_EQ(finish(*waiting).outcome.written, 3);
  EXPECT_TRUE(s.scheduler->idle());
}

TEST(Scheduler, AnswerEndsAtTheEndOfTheContext) {
  ScriptedTrial s({.slots = 1});
  const Said said = s.ask(s.job(std::string(590, 'x'), 1000));
  EXPECT_EQ(said.outcome.end, Outcome::End::length);
  EXPECT_EQ(said.outcome.length, kTrialContext);
}

TEST(Scheduler, StopsAtAStopString) {
  ScriptedTrial s({.slots = 1});
  const auto text_of = [&](Job j) {
    const auto answer = s.scheduler->submit(std::move(j));
    std::string text;
    for (bool complete = false; !complete;) {
      Answer::Part part;
      complete = answer->take(part, std::chrono::milliseconds(100));
      text += part.text;
    }
    return std::pair(text, answer->outcome().end);
  };
  const auto [whole, ended] = text_of(s.job("abc", 50));
  EXPECT_EQ(ended, Outcome::End::length);
  Job j = s.job("abc", 50);
  j.stop = {"never said", whole.substr(7, 3)};
  const auto [cut, stopped] = text_of(j);
  EXPECT_EQ(cut, whole.substr(0, whole.find(j.stop[1])));
  EXPECT_EQ(stopped, Outcome::End::stop);
}

TEST(Scheduler, FailureAffectsOneAnswerOnly) {
  ScriptedOptions options{.fail_at = 30};
  ScriptedTrial s({.slots = 1}, options);
  const Said failed = s.ask(s.job(std::string(50, 'x')));
  EXPECT_EQ(failed.outcome.end, Outcome::End::failed);
  EXPECT_FALSE(failed.outcome.message.empty());
  const Said next = s.ask(s.job(std::string(50, 'x')));
  EXPECT_EQ(next.outcome.end, Outcome::End::length);
  EXPECT_EQ(next.outcome.cached, 0);

  options.fail_at.reset();
  options.nan_at = 40;
  ScriptedTrial nan({.slots = 1}, options);
  EXPECT_EQ(nan.ask(nan.job(std::string(50, 'x'))).outcome.end, Outcome::End::failed);
  EXPECT_EQ(nan.ask(nan.job("short")).outcome.end, Outcome::End::length);
}

// Nothing failed: the client has asked for what cannot be.
TEST(Scheduler, AnswersThatCannotGoOnAreRefused) {
  ScriptedTrial s({.slots = 1});
  Job none = s.job("a");
  for (Token t = 0; t < s.model.vocabulary(); ++t) {
    none.sampling.bias.emplace_back(t, -std::numeric_limits<float>::infinity());
  }
  const Said said = s.ask(none);
  EXPECT_EQ(said.outcome.end, Outcome::End::refused);
  EXPECT_TRUE(contains(said.outcome.message, "no token is left"));
  EXPECT_TRUE(contains(said.outcome.message, "logit_bias"));
  EXPECT_EQ(s.ask(s.job("a")).outcome.end, Outcome::End::length);
}

TEST(Scheduler, StopsAtTheDeadline) {
  ScriptedTrial s({.slots = 1});
  Job late = s.job("a", 500);
  late.deadline = Clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(s.ask(late).outcome.end, Outcome::End::timeout);
}

}  // namespace
}  // namespace mrrope::serve
