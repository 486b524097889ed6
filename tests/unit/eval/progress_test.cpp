// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "eval/run/runner.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  Progress make(bool terminal) {
    return Progress([this](const std::string& text) { shown_ += text; }, terminal,
                    [this] { return now_; });
  }
  void wait(double seconds) {
    now_ += std::chrono::duration_cast<Progress::Clock::duration>(
        std::chrono::duration<double>(seconds));
  }
  std::string shown_;
  Progress::Clock::time_point now_;
};

TEST_F(ProgressTest, IsSilentForShortRuns) {
  for (const bool terminal : {false, true}) {
    Progress progress = make(terminal);
    progress.start(100);
    wait(1.9);
    progress.advance(100);
    progress.finish();
    EXPECT_EQ(shown_, "");
  }
}

TEST_F(ProgressTest, ShowsAtOnceWhereItIsAskedTo) {
  Progress progress = make(true);
  progress.at_once();
  progress.label("none");
  progress.start(100);
  EXPECT_EQ(shown_, "\r[--------------------] 0%  none\x1b[K");
}

TEST_F(ProgressTest, PrintsLinesAtIntervals) {
  Progress progress = make(false);
  progress.start(1000);
  progress.label("pro");
  for (int i = 0; i < 40; ++i) {
    wait(1);
    progress.advance(10);
  }
  EXPECT_EQ(shown_,
            "2%  pro  10 tok/s  1 min 38 s left\n"
            "17%  pro  10 tok/s  1 min 23 s left\n"
            "32%  pro  10 tok/s  1 min 08 s left\n");
  progress.finish();
  EXPECT_TRUE(shown_.ends_with("\n40%  pro  10 tok/s  1 min 00 s left\n")) << shown_;
}

// A label is cut, not the time left.
TEST_F(ProgressTest, FitsIntoALineOfATerminal) {
  Progress progress = make(true);
  progress.label("downloading " + std::string(80, 'x'));
  progress.start(1000, 0, "MiB");
  wait(10);
  progress.advance(100);
  EXPECT_EQ(shown_.size(), 79 + std::string("\r\x1b[K").size());
  EXPECT_TRUE(shown_.ends_with("xxx...  10 MiB/s  1 min 30 s left\x1b[K")) << shown_;
}

// Ten times as slow at the end as at the start: time left and the bar count that, the rate does
// not.
TEST_F(ProgressTest, CountsThatALongTextReadsSlower) {
  Progress progress = make(true);
  progress.grow(0.009, 0);
  progress.start(1000);
  wait(10);
  progress.advance(100);  // of 5500 parts of time, 145
  EXPECT_EQ(shown_, "\r[--------------------] 2%  10 tok/s  6 min 10 s left\x1b[K");
  progress.start(100);
  progress.grow(0.009, 900);  // the end alone: 955 of 5500
  wait(10);
  progress.advance(50);
  EXPECT_TRUE(shown_.ends_with("\r[#########-----------] 48%  5.0 tok/s  11 s left\x1b[K"))
      << shown_;
}

TEST_F(ProgressTest, ShowsABarOnATerminalAndClearsIt) {
  Progress progress = make(true);
  progress.start(100);
  wait(5);
  progress.advance(50);
  EXPECT_EQ(shown_, "\r[##########----------] 50%  10 tok/s  5 s left\x1b[K");
  shown_.clear();
  wait(0.01);
  progress.advance(1);
  EXPECT_EQ(shown_, "");
  progress.label(std::string(200, 'x'));
  wait(1);
  progress.advance(1);
  EXPECT_LE(shown_.size(), 79u + 4);
  shown_.clear();
  progress.finish();
  EXPECT_EQ(shown_, "\r\x1b[K");
}

TEST_F(ProgressTest, EarlierWorkCountsAsDoneButNotTowardsTheRate) {
  Progress progress = make(false);
  progress.start(100, 50);
  wait(5);
  progress.advance(5);
  EXPECT_EQ(shown_, "55%  1.0 tok/s  45 s left\n");
  EXPECT_EQ(progress.computed(), 5);
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
