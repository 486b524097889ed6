// SPDX-License-Identifier: Apache-2.0
#include "eval/run/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace mrrope::eval {

namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds kSilent{2};
constexpr Seconds kRedraw{0.1};
constexpr Seconds kLine{15};
constexpr int kBar = 20;
constexpr std::size_t kWidest = 79;  // a bar that wraps cannot be redrawn in place

}  // namespace

Progress::Progress(std::function<void(const std::string&)> write, bool terminal,
                   std::function<Clock::time_point()> now)
    : write_(std::move(write)), terminal_(terminal), now_(std::move(now)) {}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // failing to clear the bar is not fatal
  }
}

void Progress::start(std::int64_t total, std::int64_t done, std::string unit) {
  finish();
  total_ = total;
  before_ = done;
  computed_ = 0;
  unit_ = std::move(unit);
  started_ = shown_ = now_();
  running_ = true;
}

void Progress::label(std::string text) { label_ = std::move(text); }

void Progress::advance(std::int64_t amount) {
  computed_ += amount;
  if (running_) show(false);
}

void Progress::finish() {
  if (running_ && visible_) show(true);
  visible_ = false;
  running_ = false;
}

double Progress::seconds() const { return Seconds(now_() - started_).count(); }

double Progress::rate() const {
  const double elapsed = seconds();
  return elapsed > 0 ? double(computed_) / elapsed : 0;
}

void Progress::show(bool last) {
  if (!write_) return;
  const Clock::time_point now = now_();
  if (last) {
    write_(terminal_ ? "\r\x1b[K" : line() + "\n");
    return;
  }
  if (now - started_ < kSilent) return;
  if (visible_ && now - shown_ < (terminal_ ? kRedraw : kLine)) return;
  write_(terminal_ ? "\r" + line() + "\x1b[K" : line() + "\n");
  visible_ = true;
  shown_ = now;
}

std::string Progress::line() const {
  const std::int64_t done = std::min(total_, before_ + computed_);
  const double part = total_ > 0 ? double(done) / double(total_) : 1;
  std::string text;
  if (terminal_) {
    const int filled = int(part * kBar);
    text = "[" + std::string(std::size_t(filled), '#') +
           std::string(std::size_t(kBar - filled), '-') + "] ";
  }
  text += fixed(std::floor(100 * part), 0) + "%";
  if (!label_.empty()) text += "  " + label_;
  const double speed = rate();
  if (speed > 0) {
    text += "  " + (speed < 10 ? fixed(speed, 1) : fixed(speed, 0)) + " " + unit_ + "/s";
    text += "  " + duration_text(double(total_ - done) / speed) + " left";
  }
  if (terminal_ && text.size() > kWidest) text.resize(kWidest);
  return text;
}

std::function<void(const std::string&)> stderr_writer() {
  return [](const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  };
}

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace mrrope::eval
