// SPDX-License-Identifier: Apache-2.0
// Several conversations over one model. One thread owns the model and all timelines: work()'s.
// Every round, each answer being written gains one token, those on the same rung in one
// computation; prompts are read in between, in chunks, by turns.
//
// A slot keeps its timeline when its answer is complete. The next prompt that begins like it goes
// there, and only what is new is computed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text_stream.h"
#include "engine/llama/choose.h"
#include "model/timeline_model.h"

namespace mrrope {

using Clock = std::chrono::steady_clock;

struct Job {
  std::vector<Token> prompt;
  std::int64_t length = 16;  // tokens of the answer, at most
  Sampling sampling;
  std::vector<std::string> stop;
  std::optional<int> logprobs;  // how many of the likeliest tokens to list
  Clock::time_point deadline = Clock::time_point::max();
};

struct ChosenToken {
  Token token = 0;
  double logprob = 0;
  std::vector<std::pair<Token, double>> top;  // likeliest first
};

struct Outcome {
  enum class End { stop, length, cancelled, timeout, failed };
  End end = End::failed;
  std::string message;  // of a failure
  std::int64_t prompt = 0;
  std::int64_t cached = 0;  // of the prompt: not computed again
  std::int64_t written = 0;
  std::int64_t length = 0;  // of the conversation
  std::size_t rung = 0;
  double read_seconds = 0;
  double write_seconds = 0;
};

// An answer on its way from the scheduler to the one who asked.
class Answer {
 public:
  struct Part {
    std::string text;
    std::vector<ChosenToken> tokens;  // where logprobs were asked for
    std::int64_t written = 0;         // tokens so far
    std::int64_t length = 0;          // tokens of the conversation
    std::size_t rung = 0;
  };
  // Waits for something new, or for the whole of it; takes what there is. True once the answer is
  // complete and all of it is taken.
  enum class Wish { news, whole };
  bool take(Part& part, std::chrono::milliseconds patience, Wish wish = Wish::news);
  // After that.
  const Outcome& outcome() const { return outcome_; }

  // Nobody is interested any more.
  void cancel() noexcept { cancelled_ = true; }
  bool cancelled() const noexcept { return cancelled_; }

 private:
  friend class Scheduler;
  // With an outcome it is complete.
  void give(Part part, std::optional<Outcome> outcome);

  std::mutex mutex_;
  std::condition_variable changed_;
  Part fresh_;
  bool news_ = false;
  Wish wish_ = Wish::news;
  bool complete_ = false;
  Outcome outcome_;
  std::atomic<bool> cancelled_ = false;
};

struct SchedulerLimits {
  int slots = 1;
  int queue = 64;
  std::int64_t context = 0;  // tokens of one conversation
};

struct SchedulerCounts {
  std::uint64_t prompt_tokens = 0;  // computed
  std::uint64_t cached_tokens = 0;
  std::uint64_t written_tokens = 0;
  std::uint64_t computations = 0;
  std::uint64_t computed_tokens = 0;
  std::uint64_t turns = 0;  // of a conversation's keys from rung to rung
  std::map<Outcome::End, std::uint64_t> ended;
  double busy_seconds = 0;
  int slots = 0;
  int slots_busy = 0;
  int queued = 0;
};

class Scheduler {
 public:
  // The model stands under the ladder, has room for slots timelines of the longest context, and is
  // nobody else's until the scheduler is gone.
  Scheduler(TimelineModel& model, const Ladder& ladder, const SchedulerLimits& limits);

  // Computes, until stop() is called. Best on the thread that opened the model: OpenMP keeps a team
  // for every thread that has computed, and with two teams on the same processors their members no
  // longer spin between the steps of a computation but sleep.
  void work();
  void stop();

  // From any thread. Throws ApiError: 400 (the prompt does not fit), 429 (the queue is full), 503
  // (shutting down).
  std::shared_ptr<Answer> submit(Job job);

  // Refuses whatever comes from now on; true once all answers are complete.
  void refuse_new();
  bool idle() const;

  SchedulerCounts counts() const;

 private:
  struct Waiting {
    Job job;
    std::shared_ptr<Answer> answer;
  };
  struct Slot {
    std::unique_ptr<Timeline> timeline;
    std::vector<Token> tokens;  // what the timeline holds
    std::size_t rung = 0;
    std::size_t turned = 0;  // how often, since it was empty
    std::uint64_t used = 0;  // when last, in rounds
    // While at work.
    std::shared_ptr<Answer> answer;
    Job job;
    std::optional<Chooser> chooser;
    std::optional<TextStream> text;
    std::optional<Token> next;  // chosen, not read yet; none: the prompt is being read
    std::uint64_t served = 0;   // round of the last chunk of its prompt
    Outcome so_far;
    Clock::time_point began, first_token;
  };

  void admit();
  Slot* slot_for(const std::vector<Token>& prompt);
  void begin(Slot& slot, Waiting waiting);
  void sweep();
  void round();
  void compute(const std::vector<Slot*>& writers, const std::vector<Slot*>& readers,
               std::size_t most);
  std::size_t chunk_of(const Slot& slot, std::size_t most) const;
  std::size_t rung_of(const Slot& slot) const;
  void choose(Slot& slot, std::span<const float> logits);
  void end(Slot& slot, Outcome::End how, const std::string& message = {});
  void reset(Slot& slot);

  TimelineModel& model_;
  const Ladder ladder_;
  const SchedulerLimits limits_;
  std::vector<Slot> slots_;  // the thread's own
  std::uint64_t round_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Waiting> queue_;
  SchedulerCounts counts_;
  bool refusing_ = false;
  bool stopping_ = false;
};

}  // namespace mrrope
