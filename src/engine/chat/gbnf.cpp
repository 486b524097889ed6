// SPDX-License-Identifier: Apache-2.0
// Grammars, tried before they are used. libllama follows all readings of a text at once; with an
// ambiguous grammar their number doubles with every character. No rule tells such grammars from
// others, so some texts are tried: those that lead to the most readings.
#include <llama-grammar.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>

#include "base/text.h"
#include "engine/chat/chat_work.h"

namespace mrrope::engine {

namespace {

constexpr std::size_t kMostReadings = 2000;
constexpr int kCharacters = 24;     // of a text that is tried
constexpr std::size_t kTried = 24;  // different characters
constexpr std::size_t kMostElements = 200'000;

struct FreeGrammar {
  void operator()(llama_grammar* g) const noexcept { llama_grammar_free_impl(g); }
};

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

std::set<std::uint32_t> characters_of(const llama_grammar_rules& rules) {
  std::set<std::uint32_t> characters = {' ', 'a'};
  for (const auto& rule : rules) {
    for (const llama_grammar_element& element : rule) {
      const bool one = element.type == LLAMA_GRETYPE_CHAR || element.type == LLAMA_GRETYPE_CHAR_ALT;
      if (one && characters.size() < kTried) characters.insert(element.value);
    }
  }
  return characters;
}

}  // namespace

void check_gbnf(const std::string& grammar) {
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
  if (elements > kMostElements) {
    throw std::runtime_error(
        cat("it is too large: ", elements, " elements, at most ", kMostElements));
  }
  const std::unique_ptr<llama_grammar, FreeGrammar> made(
      llama_grammar_init_impl(nullptr, grammar.c_str(), "root", false, nullptr, 0, nullptr, 0));
  if (!made) throw std::runtime_error("a rule begins with itself, which is not supported");

  llama_grammar_stacks& readings = llama_grammar_get_stacks(made.get());
  const std::set<std::uint32_t> characters = characters_of(parser.rules);
  for (int length = 1; length <= kCharacters; ++length) {
    const llama_grammar_stacks before = readings;
    llama_grammar_stacks most;
    for (const std::uint32_t character : characters) {
      readings = before;
      llama_grammar_accept(made.get(), character);
      if (readings.size() > most.size()) most = readings;
    }
    if (most.empty()) return;
    if (most.size() > kMostReadings) {
      throw std::runtime_error(cat("it is too ambiguous: a text of ", length,
                                   " characters can be read in ", most.size(), " ways"));
    }
    readings = most;
  }
}

}  // namespace mrrope::engine
