// SPDX-License-Identifier: Apache-2.0
#include "serve/api/event_stream.h"

#include <algorithm>
#include <thread>

#include "base/text.h"

namespace mrrope::serve {

namespace {

// Several answers are looked at in turn.
constexpr std::chrono::milliseconds kRoundRobinWait{10};
// An answer with tools or reasoning is parsed from its beginning every time: not for every token.
constexpr std::chrono::milliseconds kBetweenParses{30};

}  // namespace

std::vector<PendingAnswer> submit(const Service& service, Scheduler& scheduler,
                                  const std::vector<PreparedJob>& jobs, int answers,
                                  std::uint64_t number) {
  const ServerSettings& s = service.settings;
  const std::size_t wanted = jobs.size() * static_cast<std::size_t>(answers);
  if (wanted > static_cast<std::size_t>(s.parallel) + static_cast<std::size_t>(s.queue)) {
    throw ApiError(400,
                   cat("the request asks for ", wanted, " answers, and this server has ",
                       s.parallel, " slots and a queue of ", s.queue,
                       ": ask for fewer at a time, or start it with a larger --queue"),
                   answers > 1 ? "n" : "prompt");
  }
  std::vector<PendingAnswer> pending;
  for (const PreparedJob& prepared : jobs) {
    for (int i = 0; i < answers; ++i) {
      Job job = prepared.job;
      job.sampling.seed += static_cast<std::uint32_t>(i);
      const auto answer = scheduler.submit(std::move(job));
      pending.push_back({{answer.get(), [answer](Answer*) { answer->cancel(); }},
                         AnswerReader(service.renderer, prepared.syntax, number++)});
    }
  }
  return pending;
}

std::vector<Completion> take_whole(const Service& service, std::vector<PendingAnswer> pending,
                                   const std::function<bool()>& gone) {
  std::vector<Completion> completions;
  for (auto& [answer, reader] : pending) {
    Completion whole;
    std::string text;
    for (bool complete = false; !complete;) {
      Answer::Part part;
      complete = answer->take(part, kDisconnectPoll, Answer::WaitFor::whole);
      text += part.text;
      std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(whole.tokens));
      if (!complete && gone()) answer->cancel();
    }
    if (const auto failure = failure_of(service, answer->outcome())) throw ApiError(*failure);
    whole.delta = reader.add(text, true);
    whole.outcome = answer->outcome();
    completions.push_back(std::move(whole));
  }
  return completions;
}

EventStream::EventStream(const Service& service, std::vector<PendingAnswer> pending,
                         std::unique_ptr<AnswerFormat> format)
    : service_(service), format_(std::move(format)) {
  for (PendingAnswer& one : pending) states_.push_back({std::move(one)});
}

void EventStream::cancel() noexcept {
  for (State& state : states_) state.pending.answer->cancel();
}

void EventStream::next_of(int index, std::string& out, std::chrono::milliseconds patience) {
  State& state = states_[static_cast<std::size_t>(index)];
  AnswerReader& reader = state.pending.reader;
  if (reader.parses()) std::this_thread::sleep_until(state.parsed + kBetweenParses);
  Answer::Part part;
  state.complete = state.pending.answer->take(part, patience);
  for (const Prefill& earlier : part.earlier) {
    Answer::Part then = part;
    then.prefill = earlier;
    format_->progress(out, index, then);
  }
  if (part.prefill && (part.text.empty() || part.prefill->read == part.prefill->total)) {
    format_->progress(out, index, part);
  }
  std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(state.tokens));
  const bool news = !part.text.empty() || !state.tokens.empty() || state.complete;
  if (!news) return;
  if (state.complete) {
    if (const auto failure = failure_of(service_, state.pending.answer->outcome()))
      throw ApiError(*failure);
  }
  const Delta delta = reader.add(part.text, state.complete);
  state.parsed = std::chrono::steady_clock::now();
  const bool says = !delta.empty() || (!reader.parses() && !state.tokens.empty());
  if (says || (state.complete && !state.tokens.empty())) {
    part.tokens = std::exchange(state.tokens, {});
    format_->chunk(out, index, delta, part);
  }
  if (state.complete) {
    format_->closing(out, index, state.pending.answer->outcome(), reader.has_calls());
  }
}

bool EventStream::advance(std::string& out, std::chrono::milliseconds patience) {
  const int count = static_cast<int>(states_.size());
  if (!opened_) {
    for (int i = 0; i < count; ++i) format_->opening(out, i);
  }
  opened_ = true;
  for (int i = 0; i < count; ++i) {
    if (states_[static_cast<std::size_t>(i)].complete) continue;
    next_of(i, out, count == 1 ? patience : std::min(patience, kRoundRobinWait));
  }
  std::vector<Outcome> outcomes;
  for (const State& state : states_) {
    if (!state.complete) return false;
    outcomes.push_back(state.pending.answer->outcome());
  }
  format_->end(out, outcomes);
  return true;
}

bool EventStream::next(std::string& out, std::chrono::milliseconds patience) {
  try {
    return advance(out, patience);
  } catch (const ApiError& error) {
    format_->failure(out, error);
  } catch (const std::exception& error) {
    format_->failure(out, ApiError(500, error.what(), {}, "generation_failed"));
  }
  cancel();
  return true;
}

}  // namespace mrrope::serve
