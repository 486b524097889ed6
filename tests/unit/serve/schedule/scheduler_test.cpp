// SPDX-License-Identifier: Apache-2.0
#include "serve/schedule/scheduler.h"

#include "support/scripted.h"
#include "support/test.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

constexpr std::int64_t kContext = 600;

// Can be slow and never end its text, for tests that need an answer to be running while they do
// something else.
class UnhurriedModel : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    if (unhurried) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::set<std::size_t> rungs;
    for (const Reading& r : readings) rungs.insert(r.timeline->rung());
    most_rungs = std::max<std::size_t>(most_rungs, rungs.size());
    ScriptedModel::read_together(readings, observer);
  }
  bool ends_text(Token token) const override {
    return !unhurried && ScriptedModel::ends_text(token);
  }
  std::atomic<bool> unhurried = false;
  std::atomic<std::size_t> most_rungs = 0;  // of the timelines of one computation
};

struct Trial {
  explicit Trial(int slots = 3, int queue = 64, const ScriptedOptions& options = {})
      : Trial(slots, queue, options, growing(ScriptedModel(options).facts().geometry, kContext)) {}
  Trial(int slots, int queue, const ScriptedOptions& options, Ladder context)
      : model(options), ladder(std::move(context)) {
    model.use(ladder);
    scheduler = std::make_unique<Working>(model, ladder, SchedulerLimits{slots, queue, kContext});
  }
  UnhurriedModel model;
  Ladder ladder;
  std::unique_ptr<Working> scheduler;
};

Job job(const ScriptedModel& model, const std::string& text, std::int64_t length = 12) {
  return greedy(model.tokenize(text, true, false), length);
}

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
  Trial alone(1);
  Trial together(3);
  std::vector<Said> expected;
  std::vector<std::shared_ptr<Answer>> answers;
  std::size_t written = 0;
  for (const std::string& text : texts()) {
    expected.push_back(finish(*alone.scheduler->submit(job(alone.model, text))));
  }
  for (const std::string& text : texts()) {
    answers.push_back(together.scheduler->submit(job(together.model, text)));
  }
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
  const Geometry geometry = ScriptedModel(ScriptedOptions{}).facts().geometry;
  Trial near(3, 64, {}, make_ladder(geometry, parse_method("far:pi(sharpen=0)"), kContext));
  Trial elastic(3);
  for (Trial* trial : {&near, &elastic}) {
    trial->model.unhurried = true;
    std::vector<std::shared_ptr<Answer>> answers;
    for (const int length : {20, 200, 400}) {
      answers.push_back(
          trial->scheduler->submit(job(trial->model, std::string(std::size_t(length), 'a'), 60)));
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
  Trial s(1);
  const std::string start(300, 'x');
  for (const int length : {1, 12}) {
    const Job first = job(s.model, start + std::to_string(length), length);
    EXPECT_EQ(finish(*s.scheduler->submit(first)).tokens,
              reference(s.ladder, first.prompt, length));
    // From the middle of what was written, where the timeline goes by what it kept.
    Job next = first;
    for (const Token token : reference(s.ladder, first.prompt, length)) {
      next.prompt.push_back(token);
    }
    next.length = 20;
    const Said said = finish(*s.scheduler->submit(next));
    EXPECT_GE(said.outcome.cached, 290);
    EXPECT_EQ(said.tokens, reference(s.ladder, next.prompt, 20)) << length;
  }
}

TEST(Scheduler, ComputesOnlyWhatIsNew) {
  Trial s(2);
  const std::string start(200, 'x');
  const Said first = finish(*s.scheduler->submit(job(s.model, start)));
  ASSERT_EQ(first.outcome.cached, 0);
  Job more = job(s.model, start);
  more.prompt.insert(more.prompt.end(), first.tokens.begin(), first.tokens.end());
  more.prompt.push_back('y');
  finish(*s.scheduler->submit(job(s.model, "something else")));  // goes to the other slot
  const std::int64_t before = s.model.computed();
  const Said second = finish(*s.scheduler->submit(more));
  // Of what was written the last token was never read.
  EXPECT_EQ(second.outcome.cached, std::int64_t(more.prompt.size()) - 2);
  EXPECT_LE(s.model.computed() - before, 2 + 12);
  // A prompt that is cut short and continues differently keeps the common prefix.
  const Said third = finish(*s.scheduler->submit(job(s.model, start.substr(0, 150) + "zzz")));
  EXPECT_EQ(third.outcome.cached, 151);  // BOS
  // The very same prompt reads its last token again.
  const Said fourth = finish(*s.scheduler->submit(job(s.model, start.substr(0, 150) + "zzz")));
  EXPECT_EQ(fourth.outcome.cached, 153);
  EXPECT_EQ(fourth.tokens, third.tokens);
}

TEST(Scheduler, ShortAnswerDoesNotWaitForALongOne) {
  Trial s(2);
  s.model.unhurried = true;
  const auto slow = s.scheduler->submit(job(s.model, "slow", 400));
  const auto quick = s.scheduler->submit(job(s.model, "quick", 3));
  finish(*quick);
  Answer::Part part;
  EXPECT_FALSE(slow->take(part, std::chrono::milliseconds(0)));
  slow->cancel();
  EXPECT_EQ(finish(*slow).outcome.end, Outcome::End::cancelled);
}

TEST(Scheduler, RefusesWhatItCannotRun) {
  Trial s(1, 1);
  const auto refusal = [&](const Job& j) { return status_of([&] { s.scheduler->submit(j); }); };
  EXPECT_EQ(refusal(job(s.model, std::string(600, 'x'))), 400);
  EXPECT_EQ(refusal(Job()), 400);
  s.model.unhurried = true;
  const auto running = s.scheduler->submit(job(s.model, "a", 500));
  while (s.scheduler->counts().slots_busy == 0) std::this_thread::yield();
  const auto waiting = s.scheduler->submit(job(s.model, "b", 3));
  EXPECT_EQ(refusal(job(s.model, "c")), 429);
  s.scheduler->refuse_new();
  EXPECT_EQ(refusal(job(s.model, "d")), 503);
  EXPECT_FALSE(s.scheduler->idle());
  EXPECT_EQ(finish(*running).outcome.written, 500);  // what was accepted is finished
  EXPECT_EQ(finish(*waiting).outcome.written, 3);
  EXPECT_TRUE(s.scheduler->idle());
}

TEST(Scheduler, AnswerEndsAtTheEndOfTheContext) {
  Trial s(1);
  const Said said = finish(*s.scheduler->submit(job(s.model, std::string(590, 'x'), 1000)));
  EXPECT_EQ(said.outcome.end, Outcome::End::length);
  EXPECT_EQ(said.outcome.length, kContext);
}

TEST(Scheduler, StopsAtAStopString) {
  Trial s(1);
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
  const auto [whole, ended] = text_of(job(s.model, "abc", 50));
  EXPECT_EQ(ended, Outcome::End::length);
  Job j = job(s.model, "abc", 50);
  j.stop = {"never said", whole.substr(7, 3)};
  const auto [cut, stopped] = text_of(j);
  EXPECT_EQ(cut, whole.substr(0, whole.find(j.stop[1])));
  EXPECT_EQ(stopped, Outcome::End::stop);
}

TEST(Scheduler, FailureAffectsOneAnswerOnly) {
  ScriptedOptions options{.fail_at = 30};
  Trial s(1, 4, options);
  const Said failed = finish(*s.scheduler->submit(job(s.model, std::string(50, 'x'))));
  EXPECT_EQ(failed.outcome.end, Outcome::End::failed);
  EXPECT_FALSE(failed.outcome.message.empty());
  const Said next = finish(*s.scheduler->submit(job(s.model, std::string(50, 'x'))));
  EXPECT_EQ(next.outcome.end, Outcome::End::length);
  EXPECT_EQ(next.outcome.cached, 0);

  options.fail_at.reset();
  options.nan_at = 40;
  Trial nan(1, 4, options);
  EXPECT_EQ(finish(*nan.scheduler->submit(job(nan.model, std::string(50, 'x')))).outcome.end,
            Outcome::End::failed);
  EXPECT_EQ(finish(*nan.scheduler->submit(job(nan.model, "short"))).outcome.end,
            Outcome::End::length);
}

// Nothing failed: the client has asked for what cannot be.
TEST(Scheduler, AnswersThatCannotGoOnAreRefused) {
  Trial s(1);
  Job none = job(s.model, "a");
  for (Token t = 0; t < s.model.vocabulary(); ++t) {
    none.sampling.bias.emplace_back(t, -std::numeric_limits<float>::infinity());
  }
  const Said said = finish(*s.scheduler->submit(none));
  EXPECT_EQ(said.outcome.end, Outcome::End::refused);
  EXPECT_TRUE(contains(said.outcome.message, "no token is left"));
  EXPECT_TRUE(contains(said.outcome.message, "logit_bias"));
  EXPECT_EQ(finish(*s.scheduler->submit(job(s.model, "a"))).outcome.end, Outcome::End::length);
}

TEST(Scheduler, StopsAtTheDeadline) {
  Trial s(1);
  Job late = job(s.model, "a", 500);
  late.deadline = Clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(finish(*s.scheduler->submit(late)).outcome.end, Outcome::End::timeout);
}

}  // namespace
}  // namespace mrrope::serve
