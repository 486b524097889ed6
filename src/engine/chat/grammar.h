// SPDX-License-Identifier: Apache-2.0
// A grammar in llama.cpp's GBNF, followed character by character with bounded work. All readings of
// a text are followed at once, each a stack of places in rules. libllama does the same without
// bounds: under an ambiguous grammar one token of 64 equal characters can take it forever.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/timeline_model.h"

struct llama_grammar_element;

namespace mrrope::engine {

// Throws std::runtime_error with the reason if a grammar cannot be read. It may crash or take long:
// for the workers of a ChatRenderer only.
void check_gbnf(const std::string& grammar);

class GrammarReader {
 public:
  // Throws Error (usage) if the grammar cannot be read. Tokens are named by number only.
  explicit GrammarReader(const std::string& gbnf);

  // Everything below throws Error (usage) where the text has too many readings, or when the work
  // granted so far is used up. There is enough at first for the slowest useful grammar; call this
  // once per token.
  void grant_work();

  bool may_end() const;
  bool allows(Token token, std::string_view text);
  // By token. Those without a text are not allowed.
  std::vector<bool> allowed(const TokenTexts& tokens);
  // Throws Error (usage) if it is not allowed.
  void accept(Token token, std::string_view text);

 private:
  // What a rule is made of; its alternatives are separated by ends.
  struct Element {
    enum class Kind : std::uint8_t { end, rule, characters, token } kind;
    bool inverse = false;     // all others match
    std::uint32_t value = 0;  // a rule or a token
    std::size_t from = 0;     // ranges of characters, ascending and apart
    std::size_t to = 0;
  };
  struct Range {
    std::uint32_t low, high;
  };
  // Stacks share what is below their top, so equal ones have equal numbers. 0 is the empty stack.
  using Stack = std::uint32_t;
  struct Node {
    Stack below;
    std::uint32_t element;
  };
  // A set of stacks, by number. 0 is the empty set: nothing can be read any more.
  using Set = std::uint32_t;
  // After some bytes, of which the last may be part of a character.
  struct Place {
    Set set = 0;
    std::uint32_t bits = 0;
    int missing = 0;  // bytes of that character
  };

  void add_rule(const std::vector<llama_grammar_element>& rule);
  bool matches(const Element& element, Range some) const;
  void spend(std::size_t work);
  void forget_stacks();
  Stack push(Stack below, std::uint32_t element);
  void expand(Stack stack, std::vector<Stack>& readings);
  Set number_of(std::vector<Stack> readings);
  Set step(Set set, std::uint32_t character);
  bool advance(Place& place, unsigned char byte);
  bool follow(Place& place, std::string_view text);
  bool can_stop(const Place& place);
  std::vector<Stack> readings_after(Token token);
  void compact();

  std::vector<Element> elements_;  // of all rules
  std::vector<Range> ranges_;
  std::vector<std::vector<std::uint32_t>> alternatives_;  // of each rule: their first elements

  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, Stack> stacks_;
  std::vector<std::uint32_t> seen_;  // by stack: the last expansion that met it
  std::uint32_t expansion_ = 0;
  std::map<std::vector<Stack>, Set> numbers_;
  struct Stacks {
    const std::vector<Stack>* list;
    std::bitset<129> next;  // ASCII characters that may come next; the last stands for all others
  };
  std::vector<Stacks> sets_;
  std::unordered_map<std::uint64_t, Set> steps_;  // known ones
  std::size_t held_ = 0;                          // entries of all of these
  std::size_t held_after_compact_ = 0;

  Place place_;
  std::size_t work_;
};

}  // namespace mrrope::engine
