// SPDX-License-Identifier: Apache-2.0
// Several conversations over one model. One thread owns the model and all timelines: the one that
// calls work(). In every round each answer being written gains one token, in one computation those
// on rungs that go together; prompts are read in between, in chunks, round-robin.
//
// A slot keeps its timeline when its answer is complete. The next prompt with the same prefix goes
// to that slot, and only the rest is computed. A prefix that another conversation holds, or is
// about to read, is copied from there. Prompts of different salts share nothing.
//
// While both wait, neither requests with a grammar nor those without hold more than half of the
// slots. Nothing is computed while a grammar chooses. So beside answers without one, those with a
// grammar rest for twice as long as their choices took, and begin in turn: the next one after twice
// what the first choice of the last one took, and at the latest after a second.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "engine/llama/choose.h"
#include "model/timeline_model.h"
#include "serve/api/request.h"

namespace mrrope::serve {

using Clock = std::chrono::steady_clock;

struct Job : AnswerSettings {
  std::vector<Token> prompt;
  std::int64_t length = 16;            // longest answer, in tokens
  std::map<Token, std::string> shown;  // control tokens that have a text in this answer
  Clock::time_point deadline = Clock::time_point::max();
};

struct ChosenToken {
  Token token = 0;
  double logprob = 0;
  std::vector<std::pair<Token, double>> top;  // most likely first
  std::string text = {};                      // that it added to the answer
};

// How far an answer is, in tokens.
struct Progress {
  std::int64_t prompt = 0;
  std::int64_t cached = 0;  // of the prompt: not computed again
  std::int64_t read = 0;    // of the prompt, computed so far
  std::int64_t written = 0;
  std::int64_t length = 0;  // of the conversation
  std::size_t rung = 0;     // from 0
  double read_seconds = 0;  // so far
  double write_seconds = 0;
  double growth = 0;  // of the time for a token with each before it (engine/run/speed.h)

  // What of the prompt is computed, at which speed, and how long the rest takes.
  std::int64_t to_read() const { return prompt - cached; }
  double reading_rate() const { return read_seconds > 0 ? double(read) / read_seconds : 0; }
  double cost(std::int64_t tokens) const {
    return double(tokens) * (1 + growth * (double(cached) + double(tokens) / 2));
  }
  double seconds_left() const {
    return read > 0 ? read_seconds * (cost(to_read()) / cost(read) - 1) : 0;
  }
};

struct Outcome : Progress {
  enum class End { stop, length, cancelled, timeout, refused, failed };
  End end = End::failed;
  std::string message;      // of a failure, or of what the client asked for and cannot be
  std::string stop_string;  // that ended it; empty: the model's end of text, or the length
};

// An answer while it passes from the scheduler to the client.
class Answer {
 public:
  struct Part {
    std::string text;
    std::vector<ChosenToken> tokens;  // where logprobs were asked for
    Progress now;
    std::vector<Progress> reading;  // while a prompt is read: the last report, or all of them
  };
  // Waits for something new, or for the whole answer, and takes what there is. True once the answer
  // is complete and all of it is taken.
  enum class WaitFor { news, whole };
  bool take(Part& part, std::chrono::milliseconds patience, WaitFor what = WaitFor::news);
  // After take() has returned true.
  const Outcome& outcome() const { return outcome_; }

  // The client no longer wants it.
  void cancel() noexcept { cancelled_ = true; }
  bool cancelled() const noexcept { return cancelled_; }

 private:
  friend class Scheduler;
  // An outcome completes it.
  void give(Part part, std::optional<Outcome> outcome);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool all_progress_ = false;
  Part fresh_;
  bool news_ = false;
  WaitFor waits_for_ = WaitFor::news;
  bool complete_ = false;
  Outcome outcome_;
  std::atomic<bool> cancelled_ = false;
};

struct SchedulerLimits {
  int slots = 1;
  int queue = 64;
  std::int64_t context = 0;  // tokens of one conversation
  // Tokens of all conversations together, at least those of one; 0: each has room for all of its
  // own. Idle conversations are forgotten to make room.
  std::int64_t pool = 0;
  // What is computed for an answer depends on its prompt alone: conversations are computed one by
  // one, prompts in parts of a fixed size.
  bool deterministic = false;
  double growth = 0;  // see Progress
  // A prompt that takes longer than this to read is reported as it goes on, to its client and to
  // on_prefill, which is called by work().
  std::chrono::milliseconds quiet{2000};
  std::function<void(const Progress&)> on_prefill = {};
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

// What a slot does, or did last.
struct SlotState : Progress {
  bool busy = false;
  std::int64_t max_tokens = 0;  // of the answer, while it is busy
};

class Scheduler {
 public:
  // The model is under the ladder, has room for `slots` timelines of the longest context, and is
  // used by the scheduler alone until that is destroyed.
  Scheduler(TimelineModel& model, const Ladder& ladder, const SchedulerLimits& limits);

  // Computes until stop() is called. Best on the thread that opened the model: OpenMP keeps a team
  // for every thread that has computed, and with two teams on the same processors their members
  // sleep between the steps of a computation instead of spinning.
  void work();
  void stop();

  // From any thread. Throws ApiError: 400 (the prompt does not fit, the grammar is too ambiguous),
  // 429 (the queue is full), 503 (shutting down).
  std::shared_ptr<Answer> submit(Job job);

  // From any thread: calls the task with what a slot holds, in work(), as soon as it writes no
  // answer. The task may change the timeline or put another in its place; if it throws, the slot
  // is empty unless it still has its timeline. The result is the length of the conversation
  // afterwards, or what was thrown.
  using SlotTask = std::function<void(std::unique_ptr<Timeline>&, std::string& salt)>;
  std::future<std::int64_t> run_on_slot(int number, SlotTask task);

  // From any thread: work() calls the step between two rounds, until it returns true. It must not
  // throw. Where the server stops before, it is dropped.
  void between_rounds(std::function<bool()> step);

  // Refuses every later submit(), run_on_slot() and between_rounds().
  void refuse_new();
  // Whether all answers are complete.
  bool idle() const;

  SchedulerCounts counts() const;
  std::vector<SlotState> slots() const;

 private:
  // What a timeline holds.
  struct Held {
    std::vector<Token> tokens;
    std::size_t rung = 0;
    std::size_t turn_count = 0;      // of its keys, since it was empty
    std::size_t aligned_tokens = 0;  // of its tokens, read as a prompt in whole parts
  };
  struct Slot;
  // An answer, which waits or is being written.
  struct Writing {
    Job job = {};
    std::shared_ptr<Answer> answer = {};
    std::optional<engine::Chooser> chooser = {};
    bool constrained = false;  // by a grammar
    std::optional<TextStream> text = {};
    std::optional<Token> next = {};  // chosen, not read yet; nullopt: the prompt is being read
    std::uint64_t last_round = 0;    // that read a part of its prompt
    std::uint64_t admission = 0;     // number of the answer, in the order they began
    bool preempted = false;          // until there is room in the cache
    // It waits while another slot reads `shared_tokens` of its prompt for its own answer.
    Slot* prefix_source = nullptr;
    std::shared_ptr<Answer> source_answer = {};
    std::size_t shared_tokens = 0;
    Outcome outcome = {};  // so far, or that of the last answer
    Clock::time_point began = {}, first_token = {}, reported = {};
  };
  struct Slot : Held, Writing {
    std::unique_ptr<Timeline> timeline;
    std::string salt;             // of the job that it was read for
    std::uint64_t last_used = 0;  // in rounds
  };

  void enqueue(const std::function<void()>& add);
  void run_slot_tasks();
  void run_step();
  void admit();
  std::deque<Writing>::iterator next_in_line();
  Slot* slot_for(const Job& job);
  void begin(Slot& slot, Writing waiting);
  std::size_t rung_after(std::size_t tokens) const;
  std::size_t usable(const Slot& slot, const Job& job) const;
  void take_prefix(Slot& slot);
  void find_prefix_source(Slot& slot);
  void resume_followers();
  bool fits(std::size_t prompt, const Slot* besides = nullptr) const;
  bool make_room(std::size_t more, const Slot* keep = nullptr);
  void forget(Slot& slot);
  void preempt_if_full();
  void end_cancelled();
  void round();
  void compute(const std::vector<Slot*>& writers, const std::vector<Slot*>& readers,
               std::size_t most);
  std::size_t part() const;
  std::size_t chunk_of(const Slot& slot, std::size_t most) const;
  void choose(Slot& slot, std::span<const float> logits);
  static Progress progress_of(const Slot& slot);
  void report_prefill(Slot& slot);
  void end(Slot& slot, Outcome::End how, const std::string& message = {});
  void reset(Slot& slot);
  void fail(Slot& slot, const std::exception& error);
  void publish(const Slot& slot);

  TimelineModel& model_;
  const Ladder ladder_;
  const SchedulerLimits limits_;
  std::vector<Slot> slots_;  // used by work() only
  std::uint64_t round_ = 0;
  std::uint64_t admitted_ = 0;
  Clock::time_point rest_end_ = {};  // when answers under a grammar go on beside others
  Clock::time_point turn_ = {};      // when the next one begins
  Clock::time_point latest_turn_ = {};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Writing> queue_;
  struct PendingTask {
    std::size_t slot;
    std::packaged_task<std::int64_t(Slot&)> run;
  };
  std::deque<PendingTask> tasks_;
  std::deque<std::function<bool()>> steps_;
  SchedulerCounts counts_;
  std::vector<SlotState> states_;  // of slots_, for others
  bool refusing_ = false;
  bool stopping_ = false;
};

}  // namespace mrrope::serve
