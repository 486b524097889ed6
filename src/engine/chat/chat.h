// SPDX-License-Identifier: Apache-2.0
// What a model's chat template makes of messages. Templates are programs from strangers' files, so
// a server lets them run in a process of their own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <span>
#include <string>

#include "model/timeline_model.h"

namespace mrrope {

// In this process. Throws Error (failed).
std::string render_chat(const ChatTemplate& chat, std::span<const ChatMessage> messages);

// In another one, which is ended when it takes too long, too much memory, or crashes.
class ChatRenderer {
 public:
  // Forks, so it must be made before this process starts its first thread.
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

}  // namespace mrrope
