// SPDX-License-Identifier: Apache-2.0
#include "eval/run/ask.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace {

constexpr std::size_t kMaxConsecutiveFailures = 8;

struct Item {
  std::size_t index = 0;
  WholePrompt prompt;
  GenerateOptions options;
  WholeAnswer answer;
  std::exception_ptr error;
};

// The threads that wait for the server.
class Askers {
 public:
  explicit Askers(PromptModel& model) : model_(model) {
    for (int i = 0; i < model.parallel(); ++i) threads_.emplace_back([this] { work(); });
  }
  ~Askers() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      waiting_.clear();
    }
    changed_.notify_all();
    if (under_way_ > 0) model_.cancel();
    for (std::thread& t : threads_) t.join();
  }
  Askers(const Askers&) = delete;
  Askers& operator=(const Askers&) = delete;

  void send(Item item) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(item));
      ++under_way_;
    }
    changed_.notify_one();
  }

  std::size_t under_way() const {
    const std::lock_guard lock(mutex_);
    return under_way_;
  }

  // A finished one, or false after a tenth of a second.
  bool receive(Item& item) {
    std::unique_lock lock(mutex_);
    through_.wait_for(lock, std::chrono::milliseconds(100), [&] { return !done_.empty(); });
    if (done_.empty()) return false;
    item = std::move(done_.front());
    done_.pop_front();
    --under_way_;
    return true;
  }

 private:
  void work() {
    for (;;) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        item = std::move(waiting_.front());
        waiting_.pop_front();
      }
      try {
        item.answer = model_.ask(item.prompt, item.options);
      } catch (...) {
        item.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        done_.push_back(std::move(item));
      }
      through_.notify_one();
    }
  }

  PromptModel& model_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable through_;
  std::deque<Item> waiting_;
  std::deque<Item> done_;
  std::size_t under_way_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::string retry_counts_text(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += cat(text.empty() ? "" : ", ", kind, " x", count);
  }
  return text;
}

void note_retries(const AskSummary& summary, RunFolder& folder) {
  if (!summary.retry_counts.empty()) {
    folder.add_note(cat("problems with the server: ", retry_counts_text(summary.retry_counts),
                        summary.retry_counts.count("usage") > 0
                            ? " (usage: its token counts differ from what was sent or asked for)"
                            : ""));
  }
  if (summary.failed > 0) {
    folder.add_note(cat(summary.failed,
                        " prompts got no answer and are excluded from the results; the last one: ",
                        summary.last_failure));
  }
}

AskSummary ask_all(PromptModel& model, const AskJob& job, Progress& progress) {
  AskSummary summary;
  const auto parallel = std::size_t(model.parallel());
  const std::size_t max_ready = parallel + parallel / 4 + 1;  // a few are ready to send
  std::size_t next = 0;
  std::size_t in_a_row = 0;
  Askers askers(model);
  while ((next < job.count || askers.under_way() > 0) && !interrupt_requested()) {
    while (next < job.count && askers.under_way() < max_ready && !interrupt_requested()) {
      Question question = job.make(next);
      Item item{next, std::move(question.prompt), std::move(question.options), {}, nullptr};
      item.options.on_text = [](std::string_view) { return !interrupt_requested(); };
      askers.send(std::move(item));
      ++next;
    }
    const std::string wrong = retry_counts_text(summary.retry_counts);
    progress.label(cat("prompt ", next, " of ", job.count, ", ",
                       std::min(askers.under_way(), parallel), " in flight",
                       wrong.empty() ? "" : "; retried after: ", wrong));
    Item item;
    if (!askers.receive(item)) continue;
    if (item.error) std::rethrow_exception(item.error);
    if (interrupt_requested() && !item.answer.failed.empty()) break;
    for (const auto& [kind, count] : item.answer.troubles) summary.retry_counts[kind] += count;
    job.done(item.index, item.prompt, item.answer);
    in_a_row = item.answer.failed.empty() ? 0 : in_a_row + 1;
    if (in_a_row == 0) continue;
    ++summary.failed;
    summary.last_failure = item.answer.failed;
    if (in_a_row >= std::max(kMaxConsecutiveFailures, parallel)) {
      throw Error(ErrorKind::failed,
                  cat("no answer to ", in_a_row, " prompts in a row: ", item.answer.failed),
                  "give the same command again once the server is back: answers so far are kept");
    }
  }
  return summary;
}

}  // namespace mrrope::eval
