// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/llama_api.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>

#include "engine/chat/chat.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

constexpr std::size_t kLinesKept = 6;

struct Log {
  std::mutex mutex;
  std::deque<std::string> lines;
  bool keeping = false;  // whether the line now being written is one to keep
};

Log& log() {
  static Log instance;
  return instance;
}

// libllama writes a line in one or several calls; continuations have a level of their own.
void keep(ggml_log_level level, const char* text, void*) {
  Log& l = log();
  const std::lock_guard lock(l.mutex);
  if (level != GGML_LOG_LEVEL_CONT) {
    l.keeping = level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR;
    if (l.keeping) l.lines.emplace_back();
  }
  if (!l.keeping || l.lines.empty()) return;
  l.lines.back() += text;
  if (l.lines.size() > kLinesKept) l.lines.pop_front();
}

// libllama ends the process where it cannot go on. Without this it prints a stack of its own.
[[noreturn]] void give_up(const char* message) {
  std::fprintf(
      stderr,
      "mrrope: llama.cpp cannot go on: %s\n"
      "  the model may be damaged or of a kind that this llama.cpp cannot run: check it with "
      "mrrope inspect\n",
      message);
  std::_Exit(int(ErrorKind::failed));
}

}  // namespace

void start_llama() {
  static const bool started = [] {
    chat_renderer();  // forks, which must come before devices are initialised and threads start
    llama_log_set(keep, nullptr);
    ggml_set_abort_callback(give_up);
    llama_backend_init();
    return true;
  }();
  static_cast<void>(started);
}

std::string take_llama_log() {
  Log& l = log();
  const std::lock_guard lock(l.mutex);
  std::string text;
  for (std::string& line : l.lines) {
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    if (!text.empty()) text += "; ";
    text += line;
  }
  l.lines.clear();
  return text;
}

}  // namespace mrrope::engine
