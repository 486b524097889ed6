// SPDX-License-Identifier: Apache-2.0
// An answer as server-sent events: OpenAI's chunks, and comments (lines that start with a colon,
// which clients skip) that report the progress of reading a long prompt.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serve/api/format.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

class EventStream {
 public:
  using Failure = std::function<std::optional<ApiError>(const Outcome&)>;

  EventStream(std::shared_ptr<Answer> answer, AnswerFormat format, const CompletionRequest& request,
              Failure failure);

  // Waits for new output and appends it to `out`. True once the end has been appended.
  bool next(std::string& out, std::chrono::milliseconds patience);
  void cancel() noexcept { answer_->cancel(); }

 private:
  std::shared_ptr<Answer> answer_;
  AnswerFormat format_;
  bool usage_;
  bool opened_;
  Failure failure_;
};

}  // namespace mrrope::serve
