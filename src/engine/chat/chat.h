// SPDX-License-Identifier: Apache-2.0
// The prompt that a model's chat template makes of messages. A template is a program from an
// untrusted file, so it never runs in this process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <span>
#include <string>

#include "model/timeline_model.h"

namespace mrrope::engine {

// Runs templates in child processes, which are killed when they take too long or too much memory.
class ChatRenderer {
 public:
  // Forks. Make it while this process is small and has one thread.
  ChatRenderer();
  ~ChatRenderer();
  ChatRenderer(const ChatRenderer&) = delete;
  ChatRenderer& operator=(const ChatRenderer&) = delete;

  // From any thread; one at a time. Throws Error (failed).
  std::string render(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                     std::chrono::milliseconds limit);

 private:
  std::mutex mutex_;
  int socket_ = -1;
  pid_t keeper_ = -1;
};

// The renderer of this process. start_llama() makes it before it initialises any device.
ChatRenderer& chat_renderer();

}  // namespace mrrope::engine
