// SPDX-License-Identifier: Apache-2.0
// Grammars, read where nothing is lost by a crash or a long wait.
#include <llama-grammar.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "base/text.h"
#include "engine/chat/chat_work.h"

namespace mrrope::engine {

namespace {

constexpr std::size_t kMaxElements = 200'000;
constexpr int kMaxDepth = 200;  // libllama's parser takes stack for each

// libllama prints why it cannot read a grammar.
class PrintedReason {
 public:
  PrintedReason() : file_(std::tmpfile()), before_(::dup(STDERR_FILENO)) {
    if (file_ != nullptr) ::dup2(::fileno(file_), STDERR_FILENO);
  }
  ~PrintedReason() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    if (file_ != nullptr) std::fclose(file_);
  }
  PrintedReason(const PrintedReason&) = delete;
  PrintedReason& operator=(const PrintedReason&) = delete;

  std::string text() const {
    std::fflush(stderr);
    char bytes[512] = {};
    if (file_ == nullptr) return {};
    std::rewind(file_);
    const std::size_t size = std::fread(bytes, 1, sizeof bytes - 1, file_);
    std::string said(bytes, size);
    if (const auto end = said.find("\n\n"); end != std::string::npos) said.resize(end);
    const std::string mark = "grammar: ";
    if (const auto at = said.find(mark); at != std::string::npos) said.erase(0, at + mark.size());
    for (char& c : said) {
      if (c == '\n') c = ' ';
    }
    return said;
  }

 private:
  std::FILE* file_;
  int before_;
};

// How deep its parentheses are nested, outside of quotes, classes and comments.
int depth_of(const std::string& grammar) {
  int depth = 0;
  int deepest = 0;
  char end = '\0';  // of what nothing counts in
  for (std::size_t i = 0; i < grammar.size(); ++i) {
    const char c = grammar[i];
    if (end != '\0') {
      if (c == '\\' && end != '\n') ++i;
      if (c == end || (c == '\r' && end == '\n')) end = '\0';
    } else if (c == '"' || c == '[' || c == '#') {
      end = c == '"' ? '"' : c == '[' ? ']' : '\n';
    } else if (c == '(') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ')') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

void check_gbnf(const std::string& grammar) {
  if (const int depth = depth_of(grammar); depth > kMaxDepth) {
    throw std::runtime_error(cat("its parentheses are nested ", depth, " deep, at most ", kMaxDepth,
                                 " are allowed: give parts of it a rule of their own"));
  }
  const PrintedReason reason;
  llama_grammar_parser parser;
  if (!parser.parse(grammar.c_str()) || parser.rules.empty()) {
    const std::string why = reason.text();
    if (why.find("no vocab") != std::string::npos) {
      throw std::runtime_error("it names a token by its text: name it by its number, <[NUMBER]>");
    }
    throw std::runtime_error(why.empty() ? "it has no rules" : why);
  }
  if (parser.symbol_ids.count("root") == 0) throw std::runtime_error("it has no rule named root");
  std::size_t elements = 0;
  for (const auto& rule : parser.rules) elements += rule.size();
  if (elements > kMaxElements) {
    throw std::runtime_error(
        cat("it is too large: ", elements, " elements, at most ", kMaxElements));
  }
}

}  // namespace mrrope::engine
