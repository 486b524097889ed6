// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/line_reader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string_view>

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

// While a line is typed, Ctrl-C does not end the process. The editor goes on reading after it, so
// the hint comes from the handler.
class InterruptsNothing {
 public:
  InterruptsNothing() {
    struct sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = [](int) {
      constexpr std::string_view kHint = "\nCtrl-D or /exit ends the chat.\n> ";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kHint.data(), kHint.size());
    };
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptsNothing() { sigaction(SIGINT, &before_, nullptr); }
  InterruptsNothing(const InterruptsNothing&) = delete;
  InterruptsNothing& operator=(const InterruptsNothing&) = delete;

 private:
  struct sigaction before_ {};
};

std::optional<std::string> plain_line() {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

std::optional<std::string> typed_line(const LineEditor& editor, const std::string& prompt) {
  const InterruptsNothing guard;
  if (editor.read == nullptr) {
    std::cerr << prompt << std::flush;
    return plain_line();
  }
  const std::unique_ptr<char, void (*)(void*)> typed(editor.read(prompt.c_str()), std::free);
  if (typed == nullptr) return std::nullopt;
  const std::string line = typed.get();
  if (!line.empty()) editor.remember(line.c_str());
  return line;
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
