// SPDX-License-Identifier: Apache-2.0
#include "serve/api/event_stream.h"

#include "base/text.h"

namespace mrrope::serve {

EventStream::EventStream(std::shared_ptr<Answer> answer, AnswerFormat format,
                         const CompletionRequest& request, Failure failure)
    : answer_(std::move(answer)),
      format_(std::move(format)),
      usage_(request.stream_usage),
      opened_(!request.chat),
      failure_(std::move(failure)) {}

bool EventStream::next(std::string& out, std::chrono::milliseconds patience) {
  Answer::Part part;
  const bool complete = answer_->take(part, patience);
  const auto event = [&](const ordered_json& data) { out += cat("data: ", to_text(data), "\n\n"); };
  if (!opened_) event(format_.opening());
  opened_ = true;
  if (!part.text.empty() || !part.tokens.empty()) {
    event(format_.chunk(part));
  } else if (part.prefill) {
    out += cat(": ", to_text(format_.prefill(part)), "\n\n");
  }
  if (!complete) return false;
  const Outcome& outcome = answer_->outcome();
  if (const auto failure = failure_(outcome)) {
    event(error_json(*failure));
  } else {
    event(format_.closing(outcome));
    if (usage_) event(format_.usage_chunk(outcome));
  }
  out += "data: [DONE]\n\n";
  return true;
}

}  // namespace mrrope::serve
