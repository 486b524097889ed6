// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/line_reader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace mrrope::cli {

namespace {

// What is used of libedit, which has no header on most machines that have the library.
struct LineEditor {
  char* (*read)(const char* prompt) = nullptr;
  int (*remember)(const char* line) = nullptr;
};

LineEditor find_editor() {
  for (const char* name : {"libedit.so.2", "libedit.so.0", "libedit.3.dylib", "libedit.dylib"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    LineEditor editor;
    editor.read = reinterpret_cast<char* (*)(const char*)>(dlsym(library, "readline"));
    editor.remember = reinterpret_cast<int (*)(const char*)>(dlsym(library, "add_history"));
    if (editor.read != nullptr && editor.remember != nullptr) return editor;
  }
  return {};
}

volatile std::sig_atomic_t g_interrupted = 0;

// While a line is typed, Ctrl-C ends neither the process nor, by SA_RESTART, goes unnoticed.
class InterruptsLine {
 public:
  InterruptsLine() {
    struct sigaction action {};
    action.sa_handler = [](int) { g_interrupted = 1; };
    sigaction(SIGINT, &action, &before_);
    g_interrupted = 0;
  }
  ~InterruptsLine() { sigaction(SIGINT, &before_, nullptr); }
  InterruptsLine(const InterruptsLine&) = delete;
  InterruptsLine& operator=(const InterruptsLine&) = delete;

 private:
  struct sigaction before_ {};
};

// Byte by byte, so that Ctrl-C is noticed; a terminal hands over whole lines anyway.
std::optional<std::string> plain_line() {
  std::string line;
  for (char c = 0;;) {
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR && g_interrupted == 0) continue;
    if (got < 0 && errno == EINTR) return std::string();
    if (got <= 0) return line.empty() ? std::nullopt : std::optional(line);
    if (c == '\n') return line;
    line += c;
  }
}

std::optional<std::string> typed_line(const LineEditor& editor, const std::string& prompt) {
  const InterruptsLine guard;
  std::optional<std::string> line;
  if (editor.read != nullptr) {
    const std::unique_ptr<char, void (*)(void*)> typed(editor.read(prompt.c_str()), std::free);
    if (typed != nullptr) line = typed.get();
    if (line && !line->empty()) editor.remember(line->c_str());
  } else {
    std::cerr << prompt << std::flush;
    line = plain_line();
  }
  if (g_interrupted != 0) {
    std::cerr << "\nCtrl-D or /exit ends the chat.\n";
    return std::string();
  }
  return line;
}

}  // namespace

ReadLine standard_input() {
  if (isatty(STDIN_FILENO) == 0) {
    return [](const std::string&) -> std::optional<std::string> {
      std::string line;
      if (!std::getline(std::cin, line)) return std::nullopt;
      return line;
    };
  }
  return [editor = find_editor()](const std::string& prompt) { return typed_line(editor, prompt); };
}

std::optional<std::string> read_message(const ReadLine& read, const std::string& prompt) {
  constexpr const char* kBlock = "\"\"\"";
  const std::string more(prompt.size() > 2 ? prompt.size() - 2 : 0, ' ');
  std::optional<std::string> line = read(prompt);
  if (!line) return line;
  if (line->rfind(kBlock, 0) == 0) {
    std::string text = line->substr(3);
    while (!text.ends_with(kBlock)) {
      line = read(more + ". ");
      if (!line) return text;
      text += (text.empty() ? "" : "\n") + *line;
    }
    return text.substr(0, text.size() - 3);
  }
  std::string text = *line;
  while (text.ends_with('\\')) {
    text.back() = '\n';
    line = read(more + ". ");
    if (!line) break;
    text += *line;
  }
  return text;
}

}  // namespace mrrope::cli
