// SPDX-License-Identifier: Apache-2.0
// Which slot a prompt goes to, what it need not compute because a slot holds it, and who makes room
// in a cache that all share.
#include <algorithm>

#include "base/words.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

namespace {

// Every turn rounds a key once more (docs/design/growing-contexts.md). A conversation that only
// grows is turned once per rung; one that goes back and forth is read again after this many times
// that.
constexpr std::size_t kTurnsPerRung = 2;

// A prefix is copied from another slot if that saves the reading of this many tokens, and if it is
// at least this part of what the slot holds: all of that is copied before it is cut.
constexpr std::size_t kMinCopied = 32;
constexpr std::size_t kMaxCopyRatio = 4;

// A slot is taken over by a prompt that drops the end of its conversation, rather than copied to an
// empty slot, if that end has no more tokens than this.
constexpr std::size_t kMaxDropped = 64;

}  // namespace

// First come, first served, but for what scheduler.h says of grammars. May be nobody.
std::deque<Scheduler::Writing>::iterator Scheduler::next_in_line() {
  if (queue_.empty()) return queue_.end();
  const auto is = [](bool constrained) {
    return [=](const Writing& w) { return w.answer && w.constrained == constrained; };
  };
  const auto first = queue_.begin();
  const auto plain = std::find_if(first, queue_.end(), is(false));
  const auto other = first->constrained ? plain : std::find_if(first, queue_.end(), is(true));
  const auto held = std::count_if(slots_.begin(), slots_.end(), is(first->constrained));
  const bool enough = other != queue_.end() && held >= std::max(1, limits_.slots / 2);
  const auto next = enough ? other : first;
  const bool beside = plain != queue_.end() || std::any_of(slots_.begin(), slots_.end(), is(false));
  const bool waits = next->constrained && beside && !refusing_ && Clock::now() < turn_;
  return waits ? plain : next;
}

// The free slot with the longest common prefix, if that is at least half of the prompt or of what
// the slot holds; else an empty one; else the one that has been unused for the longest time.
Scheduler::Slot* Scheduler::slot_for(const Job& job) {
  Slot* best = nullptr;
  Slot* oldest = nullptr;
  std::size_t most = 0;
  for (Slot& slot : slots_) {
    if (slot.answer) continue;
    const std::size_t same =
        slot.salt == job.cache_salt ? common_prefix(slot.tokens, job.prompt) : 0;
    if (same > most && 2 * same >= std::min(slot.tokens.size(), job.prompt.size())) {
      most = same;
      best = &slot;
    }
    const auto age = [](const Slot& s) { return s.tokens.empty() ? 0 : s.last_used + 1; };
    if (oldest == nullptr || age(slot) < age(*oldest)) oldest = &slot;
  }
  if (best == nullptr) return oldest;
  // The rest of that conversation may be continued too, while nothing has to go for it.
  const bool copies = model_.forgets() && most >= kMinCopied &&
                      kMaxCopyRatio * most >= best->tokens.size() && best->rung == rung_after(most);
  const bool goes_on = best->tokens.size() <= most + kMaxDropped;
  return copies && !goes_on && oldest->tokens.empty() ? oldest : best;
}

// The rung that keys are on after this many tokens.
std::size_t Scheduler::rung_after(std::size_t tokens) const {
  return ladder_.rung_at(std::max<std::int64_t>(1, static_cast<std::int64_t>(tokens)));
}

// How many tokens of a job's prompt the slot holds such that they can be used. At least one token
// must be read, for the logits that follow it.
std::size_t Scheduler::usable(const Slot& slot, const Job& job) const {
  if (!job.cache_prompt || slot.salt != job.cache_salt) return 0;
  if (slot.turn_count > kTurnsPerRung * ladder_.rungs().size()) return 0;
  const std::size_t same = std::min(common_prefix(slot.tokens, job.prompt), job.prompt.size() - 1);
  // Back inside the window a context with a near part reads its tokens again: as a prompt, part by
  // part, and counted as one.
  if (ladder_.near() && slot.rung > 0 && rung_after(same) == 0) return 0;
  if (!limits_.deterministic) return same;
  // Only what was read in the same parts and turned in the same steps as it would be without a
  // cache.
  const std::size_t aligned = std::min(same, slot.aligned_tokens) / part() * part();
  const bool same_turns = slot.turn_count == slot.rung && slot.rung == rung_after(aligned);
  return same_turns ? aligned : 0;
}

// Keeps what the slot holds of its prompt, or copies what another one holds.
void Scheduler::take_prefix(Slot& slot) {
  std::size_t same = usable(slot, slot.job);
  std::size_t most = same + kMinCopied - 1;
  Slot* donor = nullptr;
  for (Slot& other : slots_) {
    if (&other == &slot || !model_.forgets()) continue;
    const std::size_t more = usable(other, slot.job);
    if (more <= most || kMaxCopyRatio * more < other.tokens.size() ||
        other.rung != rung_after(more)) {
      continue;
    }
    most = more;
    donor = &other;
  }
  // A copy takes the place of what the slot holds.
  const auto room_for = [&](const Slot& from) {
    return from.tokens.size() - std::min(from.tokens.size(), slot.tokens.size());
  };
  if (donor != nullptr && make_room(room_for(*donor), donor)) {
    same = most;
    slot.timeline.reset();
    try {
      slot.timeline = donor->timeline->fork();
      static_cast<Held&>(slot) = *donor;
    } catch (const std::exception&) {  // no memory for a copy: then it is read
      reset(slot);
      same = 0;
    }
  }
  slot.timeline->truncate(static_cast<std::int64_t>(same));
  slot.tokens.resize(same);
  slot.aligned_tokens = std::min(slot.aligned_tokens, same);
  if (same == 0) slot.rung = slot.turn_count = 0;
  slot.salt = slot.job.cache_salt;
  slot.outcome.cached = static_cast<std::int64_t>(same);
  const std::lock_guard lock(mutex_);
  counts_.cached_tokens += same;
}

// A slot that is reading what this one is about to read: it waits, and copies.
void Scheduler::find_prefix_source(Slot& slot) {
  slot.prefix_source = nullptr;
  if (!slot.job.cache_prompt || !model_.forgets()) return;
  std::size_t most = kMinCopied;
  for (const Slot& other : slots_) most = std::max(most, usable(other, slot.job) + kMinCopied);
  for (Slot& other : slots_) {
    if (&other == &slot || !other.answer || other.next || other.prefix_source != nullptr) continue;
    if (other.job.cache_salt != slot.job.cache_salt) continue;
    const std::size_t same =
        std::min(common_prefix(other.job.prompt, slot.job.prompt), slot.job.prompt.size() - 1);
    if (same < most || kMaxCopyRatio * same < other.job.prompt.size()) continue;
    most = same;
    slot.prefix_source = &other;
    slot.source_answer = other.answer;
    slot.shared_tokens = same;
  }
}

// Those that waited for another slot to read their prefix go on by themselves.
void Scheduler::resume_followers() {
  for (Slot& slot : slots_) {
    if (!slot.answer || slot.prefix_source == nullptr) continue;
    const Slot& source = *slot.prefix_source;
    const bool reads = source.answer == slot.source_answer && !source.next;
    if (reads && source.tokens.size() < slot.shared_tokens) continue;
    slot.prefix_source = nullptr;
    slot.source_answer = nullptr;
    try {
      take_prefix(slot);
    } catch (const std::exception& error) {
      fail(slot, error);
    }
  }
}

void Scheduler::run_slot_tasks() {
  for (;;) {
    PendingTask pending;
    {
      const std::lock_guard lock(mutex_);
      const auto ready = std::find_if(tasks_.begin(), tasks_.end(), [&](const PendingTask& v) {
        return slots_.at(v.slot).answer == nullptr;
      });
      if (ready == tasks_.end()) return;
      pending = std::move(*ready);
      tasks_.erase(ready);
    }
    pending.run(slots_[pending.slot]);
  }
}

// Whether a prompt fits beside the answers that are being written. besides: whose it is, if it was
// put off.
bool Scheduler::fits(std::size_t prompt, const Slot* besides) const {
  if (limits_.pool == 0) return true;
  std::size_t needed = prompt + 1;
  for (const Slot& slot : slots_) {
    if (!slot.answer || &slot == besides) continue;
    if (slot.preempted) {
      if (besides == nullptr || slot.admission < besides->admission) return false;  // it is first
      continue;
    }
    needed += std::max(slot.tokens.size(), slot.job.prompt.size()) + 1;
  }
  return needed <= static_cast<std::size_t>(limits_.pool);
}

// Idle conversations are forgotten until `more` tokens fit, those unused for
// the longest time first. If all of them would not be enough, none is.
bool Scheduler::make_room(std::size_t more, const Slot* keep) {
  if (limits_.pool == 0) return true;
  const auto pool = static_cast<std::size_t>(limits_.pool);
  std::size_t stays = more, all = more;
  for (const Slot& slot : slots_) {
    stays += slot.answer || &slot == keep ? slot.tokens.size() : 0;
    all += slot.tokens.size();
  }
  if (stays > pool) return false;
  while (all > pool) {
    Slot* oldest = nullptr;
    for (Slot& slot : slots_) {
      if (slot.answer || slot.tokens.empty() || &slot == keep) continue;
      if (oldest == nullptr || slot.last_used < oldest->last_used) oldest = &slot;
    }
    if (oldest == nullptr) return false;
    all -= oldest->tokens.size();
    forget(*oldest);
    publish(*oldest);
  }
  return true;
}

void Scheduler::forget(Slot& slot) {
  slot.timeline->truncate(0);
  static_cast<Held&>(slot) = {};
}

// Where answers together outgrow the cache, the one that came last gives its room away, and reads
// everything again once there is room for it. The first of them is never put off, so all end.
void Scheduler::preempt_if_full() {
  if (limits_.pool == 0) return;
  for (Slot& slot : slots_) {
    if (slot.preempted && fits(slot.job.prompt.size(), &slot)) slot.preempted = false;
  }
  std::size_t needed = 0;
  for (const Slot& slot : slots_) needed += slot.answer && !slot.preempted ? 1 : 0;
  while (!make_room(needed)) {
    Slot* last = nullptr;
    for (Slot& slot : slots_) {
      if (!slot.answer || slot.tokens.empty()) continue;
      if (last == nullptr || slot.admission > last->admission) last = &slot;
    }
    if (last == nullptr) return;
    if (last->next) {
      last->job.prompt = last->tokens;
      last->job.prompt.push_back(*last->next);
      last->next.reset();
    }
    forget(*last);
    last->preempted = true;
    --needed;
  }
}

}  // namespace mrrope::serve
