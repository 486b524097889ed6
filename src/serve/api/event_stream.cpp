// SPDX-License-Identifier: Apache-2.0
#include "serve/api/event_stream.h"

#include <algorithm>
#include <thread>

namespace mrrope::serve {

namespace {

// Several answers are looked at in turn.
constexpr std::chrono::milliseconds kTurn{10};
// An answer with tools or reasoning is parsed from its beginning every time: not for every token.
constexpr std::chrono::milliseconds kBetweenParses{30};

}  // namespace

EventStream::EventStream(std::vector<Reply> replies, std::unique_ptr<AnswerFormat> format,
                         Failure failure)
    : format_(std::move(format)), failure_(std::move(failure)) {
  for (Reply& reply : replies) states_.push_back({std::move(reply)});
}

void EventStream::cancel() noexcept {
  for (State& state : states_) state.reply.answer->cancel();
}

void EventStream::next_of(int index, std::string& out, std::chrono::milliseconds patience) {
  State& state = states_[static_cast<std::size_t>(index)];
  AnswerReader& reader = state.reply.reader;
  if (reader.parses()) std::this_thread::sleep_until(state.parsed + kBetweenParses);
  Answer::Part part;
  state.complete = state.reply.answer->take(part, patience);
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
    if (const auto failure = failure_(state.reply.answer->outcome())) throw ApiError(*failure);
  }
  const Delta delta = reader.add(part.text, state.complete);
  state.parsed = std::chrono::steady_clock::now();
  const bool says = !delta.empty() || (!reader.parses() && !state.tokens.empty());
  if (says || (state.complete && !state.tokens.empty())) {
    part.tokens = std::exchange(state.tokens, {});
    format_->chunk(out, index, delta, part);
  }
  if (state.complete) {
    format_->closing(out, index, state.reply.answer->outcome(), reader.has_calls());
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
    next_of(i, out, count == 1 ? patience : std::min(patience, kTurn));
  }
  std::vector<Outcome> outcomes;
  for (const State& state : states_) {
    if (!state.complete) return false;
    outcomes.push_back(state.reply.answer->outcome());
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
