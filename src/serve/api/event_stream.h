// SPDX-License-Identifier: Apache-2.0
// The answers to a request, whole or as a stream.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/api/service.h"

namespace mrrope::serve {

constexpr std::chrono::milliseconds kDisconnectPoll{200};  // how often clients are looked at

// An answer on its way, and what reads it. Without it the answer is cancelled.
struct PendingAnswer {
  std::shared_ptr<Answer> answer;
  AnswerReader reader;
};

// `answers` of them to each job. number: ids of tool calls are made of it. Throws ApiError where
// they are more than the scheduler can take.
std::vector<PendingAnswer> submit(const Service& service, Scheduler& scheduler,
                                  const std::vector<PreparedJob>& jobs, int answers,
                                  std::uint64_t number);

// Waits for all of them. Throws ApiError if one fails or `gone` returns true.
std::vector<Completion> take_whole(const Service& service, std::vector<PendingAnswer> pending,
                                   const std::function<bool()>& gone);

class EventStream {
 public:
  EventStream(const Service& service, std::vector<PendingAnswer> pending,
              std::unique_ptr<AnswerFormat> format);

  const char* type() const { return format_->stream_type(); }

  // Waits for new output and appends it to `out`. True once the end has been appended; where
  // anything fails, that is an error.
  bool next(std::string& out, std::chrono::milliseconds patience);
  void cancel() noexcept;

 private:
  struct State {
    PendingAnswer pending;
    bool complete = false;
    std::vector<ChosenToken> tokens = {};  // not sent yet
    std::chrono::steady_clock::time_point parsed = {};
  };

  bool advance(std::string& out, std::chrono::milliseconds patience);
  void next_of(int index, std::string& out, std::chrono::milliseconds patience);

  const Service& service_;
  std::vector<State> states_;
  std::unique_ptr<AnswerFormat> format_;
  bool opened_ = false;
};

}  // namespace mrrope::serve
