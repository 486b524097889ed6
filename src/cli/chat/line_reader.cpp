// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/line_reader.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <type_traits>

#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

// What is used of libedit, which has no header on most machines that have the library. Its calls
// for a loop of one's own: readline() itself cannot drop a line.
struct LineEditor {
  void (*begin)(const char* prompt, void (*on_line)(char*)) = nullptr;
  void (*take_key)() = nullptr;
  void (*end)() = nullptr;
  int (*remember)(const char* line) = nullptr;
};

LineEditor find_editor() {
  for (const char* name : {"libedit.so.2", "libedit.so.0", "libedit.3.dylib", "libedit.dylib"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    LineEditor editor;
    const auto find = [&](auto& call, const char* symbol) {
      call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, symbol));
      return call != nullptr;
    };
    if (find(editor.begin, "rl_callback_handler_install") &&
        find(editor.take_key, "rl_callback_read_char") &&
        find(editor.end, "rl_callback_handler_remove") && find(editor.remember, "add_history")) {
      // It takes letters beyond ASCII where the locale has them.
      if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
        std::setlocale(LC_CTYPE, "C.UTF-8");
      }
      return editor;
    }
  }
  return {};
}

volatile std::sig_atomic_t ctrl_c = 0;
bool line_done = false;
std::optional<std::string> edited_line;  // nothing: the input has ended

// While it lives, a line is being typed, and Ctrl-C drops it instead of ending the process.
class Typing {
 public:
  Typing(const LineEditor& editor, const std::string& prompt) : editor_(editor) {
    ctrl_c = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { ctrl_c = 1; };
    sigaction(SIGINT, &action, &before_);
    if (editor_.begin == nullptr) {
      std::cerr << prompt << std::flush;
      return;
    }
    line_done = false;
    edited_line.reset();
    editor_.begin(prompt.c_str(), [](char* text) {
      line_done = true;
      if (text != nullptr) edited_line = text;
      std::free(text);
    });
  }
  ~Typing() {
    if (editor_.end != nullptr) editor_.end();
    sigaction(SIGINT, &before_, nullptr);
  }
  Typing(const Typing&) = delete;
  Typing& operator=(const Typing&) = delete;

  // Waits for a key, or where the terminal edits for a line. False: the terminal is gone. Throws
  // Error (interrupted) after Ctrl-C.
  static bool wait() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (ctrl_c == 0 && poll(&input, 1, -1) < 0 && errno == EINTR) {
    }
    if (ctrl_c != 0) throw Error(ErrorKind::interrupted, "Ctrl-D or /exit ends the chat.");
    return (input.revents & (POLLHUP | POLLERR)) == 0;
  }

 private:
  const LineEditor& editor_;
  struct sigaction before_ {};
};

std::optional<std::string> plain_line() {
  std::string text;
  if (!std::getline(std::cin, text)) return std::nullopt;
  return text;
}

std::optional<std::string> typed_line(const LineEditor& editor, const std::string& prompt) {
  const Typing typing(editor, prompt);
  if (editor.begin == nullptr) return Typing::wait() ? plain_line() : std::nullopt;
  while (!line_done && Typing::wait()) editor.take_key();
  if (edited_line && !edited_line->empty()) editor.remember(edited_line->c_str());
  return edited_line;
}

}  // namespace

ReadLine standard_input() {
  if (isatty(STDIN_FILENO) == 0) {
    return [](const std::string&) { return plain_line(); };
  }
  return [editor = find_editor()](const std::string& prompt) { return typed_line(editor, prompt); };
}

std::optional<std::string> read_message(const ReadLine& read, const std::string& prompt) {
  constexpr const char* kBlock = "\"\"\"";
  const std::string more = prompt.empty() ? "" : ". ";
  std::optional<std::string> line = read(prompt);
  if (!line) return line;
  if (line->rfind(kBlock, 0) == 0) {
    std::string text = line->substr(3);
    while (!text.ends_with(kBlock)) {
      line = read(more);
      if (!line) return text;
      text += (text.empty() ? "" : "\n") + *line;
    }
    return text.substr(0, text.size() - 3);
  }
  std::string text = *line;
  while (text.ends_with('\\')) {
    text.back() = '\n';
    line = read(more);
    if (!line) break;
    text += *line;
  }
  return text;
}

}  // namespace mrrope::cli
