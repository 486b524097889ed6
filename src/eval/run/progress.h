// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: a bar on a terminal, redrawn in place; elsewhere a line now and then; nothing
// in the first two seconds. It uses no colours, so NO_COLOR holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace mrrope::eval {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // write: where text goes; nothing is ever shown when empty. terminal: draw a bar.
  // now: for tests.
  explicit Progress(std::function<void(const std::string&)> write = {}, bool terminal = false,
                    std::function<Clock::time_point()> now = Clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // total: tokens (or whatever `unit` says) of the whole job; done: of an earlier run.
  void start(std::int64_t total, std::int64_t done = 0, std::string unit = "tok");
  // What is being worked on, e.g. "pro  document 3 of 10".
  void label(std::string text);
  void advance(std::int64_t amount);
  // Part of the job that an earlier run did.
  void skip(std::int64_t amount) { before_ += amount; }
  // Clears the bar, or writes the last line where lines were written.
  void finish();

  // Since start(): amount per second, without what was done before.
  double rate() const;
  double seconds() const;
  std::int64_t computed() const noexcept { return computed_; }

 private:
  void show(bool last);
  std::string line() const;

  std::function<void(const std::string&)> write_;
  bool terminal_;
  std::function<Clock::time_point()> now_;
  std::string unit_;
  std::string label_;
  std::int64_t total_ = 0;
  std::int64_t before_ = 0;
  std::int64_t computed_ = 0;
  Clock::time_point started_;
  Clock::time_point shown_;
  bool visible_ = false;
  bool running_ = false;
};

// To stderr, with a bar if that is a terminal (and TERM is not "dumb").
std::function<void(const std::string&)> stderr_writer();
bool stderr_is_terminal();

}  // namespace mrrope::eval
