// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "base/text.h"
#include "eval/run/runner.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

// What is shown while a job takes these steps, and then ends.
std::string shown(bool terminal, const test::Arguments& steps) {
  std::string out;
  Progress::Clock::time_point now;
  Progress progress([&](const std::string& text) { out += text; }, terminal, [&] { return now; });
  const auto wait = [&](double seconds) {
    now += std::chrono::duration_cast<Progress::Clock::duration>(
        std::chrono::duration<double>(seconds));
  };
  for (const std::string& step : steps) {
    std::istringstream words(step);
    std::string verb, text, unit = "tok";
    double number = 0;
    std::int64_t amount = 0;
    words >> verb;
    if (verb == "at_once") progress.at_once();
    if (verb == "label") words >> text, progress.label(text);
    if (verb == "wait") words >> number, wait(number);
    if (verb == "advance") words >> amount, progress.advance(amount);
    if (verb == "grow") words >> number >> amount, progress.grow(number, amount);
    if (verb == "start") {  // TOTAL DONE UNIT
      std::int64_t done = 0;
      words >> amount >> done >> unit;
      progress.start(amount, done, unit);
    }
    if (verb == "seconds") {  // so many, with so much in each
      for (words >> number >> amount; number > 0; --number) wait(1), progress.advance(amount);
    }
  }
  out += cat("\ncomputed ", progress.computed(), ", at the end: ");
  progress.finish();
  return out;
}

TEST(Progress, IsShownAsInTheTranscript) {
  test::expect_functions("progress", {{"bar", [](auto& a) { return shown(true, a); }},
                                      {"lines", [](auto& a) { return shown(false, a); }}});
}

TEST(Interrupt, IsAFlag) {
  EXPECT_FALSE(interrupt_requested());
  request_interrupt();
  EXPECT_TRUE(interrupt_requested());
  clear_interrupt();
  EXPECT_FALSE(interrupt_requested());
}

}  // namespace
}  // namespace mrrope::eval
