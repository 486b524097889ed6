// SPDX-License-Identifier: Apache-2.0
#include "serve/schedule/scheduler.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "engine/llama/choose.h"

namespace mrrope::serve {

namespace {

// While answers are being written prompts are read in smaller parts, so that they do not wait long.
constexpr std::size_t kShare = 4;

// Nothing is computed while a grammar chooses. Then it rests for so many times as long.
constexpr int kRest = 2;
constexpr std::chrono::seconds kLongestTurn{1};

constexpr auto kFailed = Outcome::End::failed;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// Of an error that the client can act upon.
std::string with_hint(const Error& error) { return cat(error.what(), ": ", error.hint()); }

ChosenToken chosen_token(std::span<const float> logits, Token token, int top) {
  ChosenToken chosen{token, engine::log_probability(logits, static_cast<std::size_t>(token)), {}};
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<std::ptrdiff_t>(top, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](Token a, Token b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  // Log-probabilities differ by as much as logits do, so one sum is enough for all.
  const double own = static_cast<double>(logits[static_cast<std::size_t>(token)]);
  for (auto it = order.begin(); it != end; ++it) {
    const double logit = static_cast<double>(logits[static_cast<std::size_t>(*it)]);
    chosen.top.emplace_back(*it, chosen.logprob + (logit - own));
  }
  return chosen;
}

}  // namespace

bool Answer::take(Part& part, std::chrono::milliseconds patience, WaitFor what) {
  std::unique_lock lock(mutex_);
  waits_for_ = what;
  changed_.wait_for(lock, patience, [&] { return complete_ || (news_ && what == WaitFor::news); });
  part = std::move(fresh_);
  fresh_ = Part();
  news_ = false;
  return complete_;
}

void Answer::give(Part part, std::optional<Outcome> outcome) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    fresh_.text += part.text;
    std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(fresh_.tokens));
    fresh_.now = part.now;
    if (!all_progress_ && !part.reading.empty()) fresh_.reading.clear();
    fresh_.reading.insert(fresh_.reading.end(), part.reading.begin(), part.reading.end());
    news_ = true;
    if (outcome) {
      outcome_ = std::move(*outcome);
      complete_ = true;
    }
    wake = complete_ || waits_for_ == WaitFor::news;
  }
  if (wake) changed_.notify_one();
}

Scheduler::Scheduler(TimelineModel& model, const Ladder& ladder, const SchedulerLimits& limits)
    : model_(model), ladder_(ladder), limits_(limits) {
  slots_.resize(static_cast<std::size_t>(limits.slots));
  for (Slot& slot : slots_) slot.timeline = model_.timeline();
  counts_.slots = limits.slots;
  states_.resize(slots_.size());
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    refusing_ = stopping_ = true;
  }
  wake_.notify_all();
}

// `add` puts something into a list of work().
void Scheduler::enqueue(const std::function<void()>& add) {
  {
    const std::lock_guard lock(mutex_);
    if (refusing_) throw ApiError(503, "the server is shutting down", {}, "shutting_down");
    add();
  }
  wake_.notify_all();
}

std::shared_ptr<Answer> Scheduler::submit(Job job) {
  const auto size = static_cast<std::int64_t>(job.prompt.size());
  if (size == 0) throw ApiError(400, "the prompt is empty: there is nothing to continue", "prompt");
  if (size >= limits_.context) {
    ApiError error(400,
                   cat("the prompt has ", size,
                       " tokens, which exceeds the available context size: ", limits_.context,
                       " tokens, so a prompt may have at most ", limits_.context - 1,
                       ". Shorten it, or start the server with a larger --ctx"),
                   "prompt", "context_length_exceeded");
    error.excess = {size, limits_.context};
    throw error;
  }
  job.length = std::min(job.length, limits_.context - size);
  auto answer = std::make_shared<Answer>();
  answer->all_progress_ = job.return_progress;
  std::optional<engine::Chooser> chooser;
  try {
    chooser.emplace(job.sampling, model_);  // here, for reading a large grammar takes long
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    throw ApiError(400, with_hint(error), {}, "generation_refused");
  }
  chooser->read(job.prompt);
  const bool constrained = !job.sampling.grammar.text.empty();
  job.sampling = {};
  enqueue([&] {
    const int free = counts_.slots - counts_.slots_busy;
    if (static_cast<int>(queue_.size()) >= limits_.queue + free) {
      throw ApiError(
          429,
          cat(free > 0 ? std::string() : cat("all ", counts_.slots, " slots are busy and "),
              queue_.size(), " requests are waiting: try again later"),
          {}, "queue_full");
    }
    queue_.push_back({std::move(job), answer, std::move(chooser), constrained});
  });
  return answer;
}

std::future<std::int64_t> Scheduler::run_on_slot(int number, SlotTask task) {
  std::packaged_task<std::int64_t(Slot&)> run([this, task = std::move(task)](Slot& slot) {
    const auto look_again = [&] {
      if (!slot.timeline) reset(slot);
      const std::size_t rung = slot.timeline->rung();
      static_cast<Held&>(slot) = {slot.timeline->tokens(), rung, rung, 0};
      slot.last_used = round_;
      publish(slot);
      return slot.timeline->length();
    };
    try {
      task(slot.timeline, slot.salt);
    } catch (...) {
      look_again();
      throw;
    }
    return look_again();
  });
  std::future<std::int64_t> result = run.get_future();
  enqueue([&] { tasks_.push_back({static_cast<std::size_t>(number), std::move(run)}); });
  return result;
}

void Scheduler::between_rounds(std::function<bool()> step) {
  enqueue([&] { steps_.push_back(std::move(step)); });
}

// The first in line, which then goes to its end.
void Scheduler::run_step() {
  std::function<bool()> step;
  {
    const std::lock_guard lock(mutex_);
    if (steps_.empty()) return;
    step = steps_.front();
  }
  const bool done = step();
  const std::lock_guard lock(mutex_);
  std::rotate(steps_.begin(), steps_.begin() + 1, steps_.end());
  if (done) steps_.pop_back();
}

void Scheduler::refuse_new() {
  const std::lock_guard lock(mutex_);
  refusing_ = true;
}

bool Scheduler::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && tasks_.empty() && steps_.empty() && counts_.slots_busy == 0;
}

SchedulerCounts Scheduler::counts() const {
  const std::lock_guard lock(mutex_);
  SchedulerCounts counts = counts_;
  counts.queued = static_cast<int>(queue_.size());
  return counts;
}

std::vector<SlotState> Scheduler::slots() const {
  const std::lock_guard lock(mutex_);
  return states_;
}

Progress Scheduler::progress_of(const Slot& slot) {
  Progress now = slot.outcome;
  now.length = std::ssize(slot.tokens);
  now.read = std::max<std::int64_t>(0, std::min(now.length, now.prompt) - now.cached);
  now.rung = slot.rung;
  if (!slot.answer) return now;
  const auto time = Clock::now();
  const bool wrote = slot.first_token != slot.began;
  now.read_seconds = seconds_between(slot.began, wrote ? slot.first_token : time);
  now.write_seconds = wrote ? seconds_between(slot.first_token, time) : 0;
  return now;
}

void Scheduler::publish(const Slot& slot) {
  const Progress now = progress_of(slot);
  const std::lock_guard lock(mutex_);
  states_[static_cast<std::size_t>(&slot - slots_.data())] = {now, slot.answer != nullptr,
                                                              slot.job.length};
}

void Scheduler::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] {
        return stopping_ || !queue_.empty() || !tasks_.empty() || !steps_.empty() ||
               counts_.slots_busy > 0;
      });
      if (stopping_) break;
    }
    const auto start = Clock::now();
    try {
      end_cancelled();
      resume_followers();
      run_slot_tasks();
      run_step();
      admit();
      preempt_if_full();
      round();
    } catch (const std::exception& error) {  // no memory: what was being written is lost
      for (Slot& slot : slots_) {
        if (slot.answer) fail(slot, error);
      }
    }
    const std::lock_guard lock(mutex_);
    counts_.busy_seconds += seconds_between(start, Clock::now());
  }
  for (Slot& slot : slots_) {
    if (slot.answer) end(slot, kFailed, "the server has stopped");
  }
  const std::lock_guard lock(mutex_);
  for (Writing& waiting : queue_) {
    waiting.outcome.message = "the server has stopped";
    waiting.answer->give({}, waiting.outcome);
  }
  tasks_.clear();  // whose futures tell
  steps_.clear();
}

// Ends answers that were cancelled or took too long.
void Scheduler::end_cancelled() {
  const auto now = Clock::now();
  const auto verdict = [&](const Answer& answer, const Job& job) -> std::optional<Outcome::End> {
    if (answer.cancelled()) return Outcome::End::cancelled;
    if (now > job.deadline) return Outcome::End::timeout;
    return std::nullopt;
  };
  for (Slot& slot : slots_) {
    if (!slot.answer) continue;
    if (const auto how = verdict(*slot.answer, slot.job)) end(slot, *how);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const Writing& waiting) {
    const auto how = verdict(*waiting.answer, waiting.job);
    if (!how) return false;
    Outcome outcome;
    outcome.end = *how;
    outcome.prompt = std::ssize(waiting.job.prompt);
    ++counts_.ended[*how];
    waiting.answer->give({}, outcome);
    return true;
  });
}

void Scheduler::admit() {
  for (;;) {
    Writing waiting;
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto next = next_in_line();
      if (next == queue_.end()) return;
      slot = slot_for(next->job);
      if (slot == nullptr || !fits(next->job.prompt.size())) return;
      waiting = std::move(*next);
      queue_.erase(next);
      ++counts_.slots_busy;
    }
    begin(*slot, std::move(waiting));
  }
}

void Scheduler::begin(Slot& slot, Writing waiting) {
  static_cast<Writing&>(slot) = std::move(waiting);
  slot.admission = ++admitted_;
  slot.outcome.prompt = std::ssize(slot.job.prompt);
  slot.outcome.growth = limits_.growth;
  slot.began = slot.first_token = slot.reported = Clock::now();
  if (slot.constrained) turn_ = latest_turn_ = slot.began + kLongestTurn;
  try {
    slot.text.emplace(slot.job.stop);
    find_prefix_source(slot);
    if (slot.prefix_source == nullptr) take_prefix(slot);
    publish(slot);
    if (slot.job.return_progress) report_prefill(slot);  // what was cached
  } catch (const std::exception& error) {
    fail(slot, error);
  }
}

// After a failure the cached keys are not known.
void Scheduler::fail(Slot& slot, const std::exception& error) {
  reset(slot);
  end(slot, kFailed, error.what());
}

std::size_t Scheduler::part() const { return std::max<std::size_t>(1, model_.batch() / kShare); }

// How much of its prompt a slot reads next: up to the end of its rung.
std::size_t Scheduler::chunk_of(const Slot& slot, std::size_t most) const {
  const std::size_t end =
      static_cast<std::size_t>(ladder_.rungs()[rung_after(slot.tokens.size() + 1)].length);
  if (limits_.deterministic) most = part() - slot.tokens.size() % part();
  return std::min({most, slot.job.prompt.size() - slot.tokens.size(), end - slot.tokens.size()});
}

void Scheduler::round() {
  ++round_;
  // By rung; those on rungs that go together under the first one of them.
  std::map<std::size_t, std::vector<Slot*>> writers;
  const auto group_of = [&](const Slot& slot) {
    const std::size_t rung = rung_after(slot.tokens.size() + 1);
    return ladder_.can_batch_together(0, rung) ? 0 : rung;
  };
  std::vector<Slot*> readers;
  const auto takes_part = [](const Slot& slot) {
    return slot.answer && slot.prefix_source == nullptr && !slot.preempted;
  };
  const bool beside = std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return takes_part(slot) && !slot.constrained;
  });
  const bool rests = beside && Clock::now() < rest_end_;  // those under a grammar
  for (Slot& slot : slots_) {
    if (!takes_part(slot) || (rests && slot.constrained && slot.next)) continue;
    if (slot.next) {
      writers[group_of(slot)].push_back(&slot);
    } else {
      readers.push_back(&slot);
    }
  }
  // The slot that has waited longest reads, and with it those of its group.
  std::stable_sort(readers.begin(), readers.end(),
                   [](const Slot* a, const Slot* b) { return a->last_round < b->last_round; });
  std::optional<std::size_t> reading;  // this group
  if (!readers.empty()) {
    reading = group_of(*readers.front());
    std::erase_if(readers, [&](const Slot* slot) { return group_of(*slot) != *reading; });
    writers[*reading];
  }
  if (limits_.deterministic) {  // every conversation by itself: nothing depends on the others
    for (const auto& entry : writers) {
      for (Slot* slot : entry.second) compute({slot}, {}, 0);
    }
    if (!readers.empty()) compute({}, {readers.front()}, model_.batch());
    return;
  }
  const bool alone = std::all_of(writers.begin(), writers.end(),
                                 [](const auto& entry) { return entry.second.empty(); });
  std::size_t share = alone ? model_.batch() : part();
  if (limits_.pool > 0 && !readers.empty()) {
    // preempt_if_full() has seen to one token for each.
    std::size_t writing = 0;
    for (const auto& entry : writers) writing += entry.second.size();
    while (share > 1 && !make_room(writing + share)) share = share / 2;
  }
  for (auto& [group, slots] : writers) {
    const bool here = group == reading;
    const std::size_t most = model_.batch();
    for (std::size_t first = 0; first < slots.size() || (here && first == 0); first += most) {
      const auto from = slots.begin() + static_cast<std::ptrdiff_t>(first);
      const auto to = from + static_cast<std::ptrdiff_t>(std::min(most, slots.size() - first));
      const std::vector<Slot*> some(from, to);
      const bool room = here && first == 0 && some.size() < most;
      compute(some, room ? readers : std::vector<Slot*>(), std::min(share, most - some.size()));
    }
  }
}

// One computation: the next token of each writer, and up to `most` tokens of the readers' prompts.
void Scheduler::compute(const std::vector<Slot*>& writers, const std::vector<Slot*>& readers,
                        std::size_t most) {
  std::vector<Slot*> slots = writers;
  // The model may read its tokens until read_together() returns, after the observer has chosen a
  // slot's next token or ended its answer: they are copied, and nothing changes the copies.
  std::vector<std::vector<Token>> tokens;
  for (const Slot* slot : writers) tokens.push_back({*slot->next});
  std::size_t read = 0;
  for (Slot* slot : readers) {
    const std::size_t count = chunk_of(*slot, most - read);
    if (count == 0) break;
    slot->last_round = round_;
    slots.push_back(slot);
    const Token* const from = slot->job.prompt.data() + slot->tokens.size();
    tokens.emplace_back(from, from + count);
    read += count;
  }
  if (slots.empty()) return;
  std::vector<Reading> readings;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    readings.push_back({slots[i]->timeline.get(), tokens[i]});
  }
  {
    const std::lock_guard lock(mutex_);
    ++counts_.computations;
    counts_.computed_tokens += writers.size() + read;
    counts_.prompt_tokens += read;
  }
  // What went wrong, per slot. Acted upon when the computation is over: a timeline must not be
  // destroyed while it is being computed.
  using Failure = std::pair<Outcome::End, std::string>;
  std::vector<std::optional<Failure>> failures(slots.size(), Failure{kFailed, "not computed"});
  Clock::duration choosing{};  // under grammars
  try {
    model_.read_together(readings, [&](std::size_t i, std::span<const float> logits) {
      Slot& slot = *slots[i];
      slot.tokens.insert(slot.tokens.end(), readings[i].tokens.begin(), readings[i].tokens.end());
      if (slot.timeline->rung() != slot.rung) {
        slot.rung = slot.timeline->rung();
        ++slot.turn_count;
        const std::lock_guard lock(mutex_);
        ++counts_.turns;
      }
      failures[i].reset();
      if (!slot.next) slot.aligned_tokens = slot.tokens.size() / part() * part();
      if (!slot.next && slot.outcome.written == 0) report_prefill(slot);
      if (!slot.next && slot.tokens.size() < slot.job.prompt.size()) return;
      const bool constrained = slot.constrained;
      const bool first = slot.outcome.written == 0;
      const auto began = Clock::now();
      try {
        choose(slot, logits);
      } catch (const Error& error) {
        failures[i] = {kFailed, error.what()};
        if (error.kind() == ErrorKind::usage)
          failures[i] = {Outcome::End::refused, with_hint(error)};
      } catch (const std::exception& error) {
        failures[i] = {kFailed, error.what()};
      }
      if (!constrained) return;
      const auto now = Clock::now();
      choosing += now - began;
      if (first) turn_ = std::min(latest_turn_, now + kRest * (now - began));
    });
  } catch (const std::exception& error) {
    for (auto& failure : failures) {
      if (failure) failure = {kFailed, error.what()};
    }
  }
  rest_end_ = std::max(rest_end_, Clock::now() + kRest * choosing);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (failures[i]) {
      reset(*slots[i]);
      end(*slots[i], failures[i]->first, failures[i]->second);
    }
    publish(*slots[i]);
  }
}

void Scheduler::choose(Slot& slot, std::span<const float> logits) {
  const Token token = slot.chooser->choose(logits, std::ssize(slot.tokens) - 1).token;
  if (slot.outcome.written == 0) slot.first_token = Clock::now();
  if (model_.ends_text(token)) return end(slot, Outcome::End::stop);
  slot.next = token;
  ++slot.outcome.written;
  Answer::Part part;
  const auto shown = slot.job.shown.find(token);
  part.text = slot.text->add(shown != slot.job.shown.end() ? shown->second : model_.piece(token));
  if (slot.job.logprobs) {
    part.tokens.push_back(chosen_token(logits, token, *slot.job.logprobs));
  } else if (slot.job.return_tokens) {
    part.tokens.push_back({token, 0, {}});
  }
  if (!part.tokens.empty()) part.tokens.back().text = part.text;
  part.now = progress_of(slot);
  ++part.now.length;  // this token, which is read next
  slot.answer->give(std::move(part), std::nullopt);
  if (slot.text->stopped()) {
    slot.outcome.stop_string = slot.text->stop_string();
    return end(slot, Outcome::End::stop);
  }
  if (slot.outcome.written >= slot.job.length) end(slot, Outcome::End::length);
}

void Scheduler::report_prefill(Slot& slot) {
  const auto now = Clock::now();
  const bool quiet = now - slot.began < limits_.quiet;
  if (quiet && !slot.job.return_progress) return;
  const Progress progress = progress_of(slot);
  slot.answer->give({{}, {}, progress, {progress}}, std::nullopt);
  const bool whole = progress.read == progress.to_read();
  if (quiet || !limits_.on_prefill || (!whole && now - slot.reported < limits_.quiet)) return;
  slot.reported = now;
  limits_.on_prefill(progress);
}

void Scheduler::end(Slot& slot, Outcome::End how, const std::string& message) {
  Outcome& outcome = slot.outcome;
  outcome = {progress_of(slot), how, message, outcome.stop_string};
  outcome.length = outcome.prompt + outcome.written;
  Answer::Part rest;
  if (slot.text) rest.text = slot.text->finish();
  rest.now = outcome;
  slot.last_used = round_;
  const auto answer = slot.answer;
  static_cast<Writing&>(slot) = {.outcome = outcome};
  {
    const std::lock_guard lock(mutex_);
    counts_.written_tokens += static_cast<std::uint64_t>(outcome.written);
    ++counts_.ended[how];
    --counts_.slots_busy;
  }
  publish(slot);
  answer->give(std::move(rest), outcome);
}

void Scheduler::reset(Slot& slot) {
  slot.timeline.reset();
  slot.timeline = model_.timeline();
  forget(slot);
}

}  // namespace mrrope::serve
