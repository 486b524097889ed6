// SPDX-License-Identifier: Apache-2.0
// The answers to a request as a stream.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/api/format.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

// An answer on its way, and what reads it.
struct Reply {
  std::shared_ptr<Answer> answer;
  AnswerReader reader;
};

class EventStream {
 public:
  using Failure = std::function<std::optional<ApiError>(const Outcome&)>;

  EventStream(std::vector<Reply> replies, std::unique_ptr<AnswerFormat> format, Failure failure);

  const char* type() const { return format_->stream_type(); }

  // Waits for new output and appends it to `out`. True once the end has been appended; where
  // anything fails, that is an error.
  bool next(std::string& out, std::chrono::milliseconds patience);
  void cancel() noexcept;

 private:
  struct State {
    Reply reply;
    bool complete = false;
    std::vector<ChosenToken> tokens = {};  // not sent yet
    std::chrono::steady_clock::time_point parsed = {};
  };

  bool advance(std::string& out, std::chrono::milliseconds patience);
  void next_of(int index, std::string& out, std::chrono::milliseconds patience);

  std::vector<State> states_;
  std::unique_ptr<AnswerFormat> format_;
  Failure failure_;
  bool opened_ = false;
};

}  // namespace mrrope::serve
