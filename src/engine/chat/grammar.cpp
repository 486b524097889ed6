// SPDX-License-Identifier: Apache-2.0
#include "engine/chat/grammar.h"

#include <llama-grammar.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <utility>

#include "base/text.h"

namespace mrrope::engine {

namespace {

constexpr std::size_t kMaxReadings = 10'000;
// Visits of a stack. A million take some 30 ms, in which nobody else's answer is computed.
constexpr std::size_t kMaxWork = 4'000'000;
constexpr std::size_t kWorkPerToken = 200'000;
constexpr std::size_t kEntryCost = 4;  // what keeping a stack, a set or a step costs in time
constexpr std::size_t kMaxEntries = 1U << 18;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::usage, "the grammar is too ambiguous: " + why,
              "no two alternatives should begin alike, and no rule with itself");
}

std::uint64_t key_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

constexpr std::size_t kMaxElements = 200'000;
constexpr int kMaxDepth = 200;  // libllama's parser takes stack for each

// What libllama prints while it works: why it cannot read a grammar.
std::string printed_by(const std::function<void()>& work) {
  std::FILE* const file = std::tmpfile();
  const int before = ::dup(STDERR_FILENO);
  if (file != nullptr) ::dup2(::fileno(file), STDERR_FILENO);
  work();
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  if (file == nullptr) return {};
  char bytes[512];
  std::rewind(file);
  std::string said(bytes, std::fread(bytes, 1, sizeof bytes - 1, file));
  std::fclose(file);
  said.resize(std::min(said.find("\n\n"), said.size()));
  const std::string mark = "grammar: ";
  if (const auto at = said.find(mark); at != std::string::npos) said.erase(0, at + mark.size());
  std::replace(said.begin(), said.end(), '\n', ' ');
  return said;
}

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
  llama_grammar_parser parser;
  bool read = false;
  const std::string why = printed_by([&] { read = parser.parse(grammar.c_str()); });
  if (!read || parser.rules.empty()) {
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

GrammarReader::GrammarReader(const std::string& gbnf) : work_(kMaxWork) {
  llama_grammar_parser parser;
  refuse_if(!parser.parse(gbnf.c_str()) || parser.symbol_ids.count("root") == 0,
            "the grammar cannot be read", "write it in GBNF, with a rule named root");
  for (const llama_grammar_rule& rule : parser.rules) add_rule(rule);
  forget_stacks();
  std::vector<Stack> readings;
  ++expansion_;
  for (const std::uint32_t start : alternatives_[parser.symbol_ids.at("root")]) {
    expand(push(0, start), readings);
  }
  place_.set = number_of(std::move(readings));
}

void GrammarReader::add_rule(const std::vector<llama_grammar_element>& rule) {
  using Kind = Element::Kind;
  std::vector<std::uint32_t>& starts = alternatives_.emplace_back();
  bool start = true;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    const auto [type, value] = rule[i];
    if (start) starts.push_back(std::uint32_t(elements_.size()));
    start = type == LLAMA_GRETYPE_ALT;
    if (start || type == LLAMA_GRETYPE_END) {
      elements_.push_back({Kind::end});
    } else if (type == LLAMA_GRETYPE_RULE_REF) {
      elements_.push_back({Kind::rule, false, value});
    } else if (type == LLAMA_GRETYPE_TOKEN || type == LLAMA_GRETYPE_TOKEN_NOT) {
      elements_.push_back({Kind::token, type == LLAMA_GRETYPE_TOKEN_NOT, value});
    } else if (type == LLAMA_GRETYPE_CHAR_ANY) {
      elements_.push_back({Kind::characters, true});
    } else {
      std::vector<Range> ranges;
      for (bool more = true; more; ++i) {
        const bool wide = rule[i + 1].type == LLAMA_GRETYPE_CHAR_RNG_UPPER;
        ranges.push_back({rule[i].value, rule[i + wide].value});
        i += wide;
        more = rule[i + 1].type == LLAMA_GRETYPE_CHAR_ALT;
      }
      --i;
      std::sort(ranges.begin(), ranges.end(),
                [](const Range& a, const Range& b) { return a.low < b.low; });
      const std::size_t from = ranges_.size();
      for (const Range& range : ranges) {
        if (range.low > range.high) continue;
        if (ranges_.size() > from && range.low <= ranges_.back().high) {
          ranges_.back().high = std::max(ranges_.back().high, range.high);
        } else {
          ranges_.push_back(range);
        }
      }
      elements_.push_back(
          {Kind::characters, type == LLAMA_GRETYPE_CHAR_NOT, 0, from, ranges_.size()});
    }
  }
}

// Whether it matches some character of these.
bool GrammarReader::matches(const Element& element, Range some) const {
  const auto end = ranges_.begin() + std::ptrdiff_t(element.to);
  const auto at = std::partition_point(ranges_.begin() + std::ptrdiff_t(element.from), end,
                                       [&](const Range& range) { return range.high < some.low; });
  if (at == end || at->low > some.high) return element.inverse;
  return !element.inverse || some.low < at->low || at->high < some.high;
}

void GrammarReader::forget_stacks() {
  nodes_.assign(1, {0, 0});
  stacks_.clear();
  seen_.assign(1, 0);
  numbers_.clear();
  sets_.clear();
  steps_.clear();
  held_ = 0;
  number_of({});
}

void GrammarReader::grant_work() { work_ = std::min(kMaxWork, work_ + kWorkPerToken); }

void GrammarReader::spend(std::size_t work) {
  if (work > work_) refuse("following it takes too long");
  work_ -= work;
}

// An alternative that is at its end leaves the stack as it is.
GrammarReader::Stack GrammarReader::push(Stack below, std::uint32_t element) {
  if (elements_[element].kind == Element::Kind::end) return below;
  const auto [it, fresh] =
      stacks_.try_emplace(key_of(below, element), static_cast<Stack>(nodes_.size()));
  if (fresh) {
    spend(kEntryCost);
    nodes_.push_back({below, element});
    seen_.push_back(0);
    ++held_;
  }
  return it->second;
}

// Adds what a stack leads to before the next character, unless this expansion has met it already.
void GrammarReader::expand(Stack stack, std::vector<Stack>& readings) {
  std::vector<Stack> todo = {stack};
  while (!todo.empty()) {
    const Stack top = todo.back();
    todo.pop_back();
    spend(1);
    if (std::exchange(seen_[top], expansion_) == expansion_) continue;
    const auto [below, at] = nodes_[top];
    if (top == 0 || elements_[at].kind != Element::Kind::rule) {
      readings.push_back(top);
      if (readings.size() > kMaxReadings) {
        refuse(cat("a text can be read in more than ", kMaxReadings, " ways"));
      }
      continue;
    }
    const Stack rest = push(below, at + 1);
    const auto& starts = alternatives_[elements_[at].value];
    spend(starts.size());
    for (const std::uint32_t start : starts) todo.push_back(push(rest, start));
  }
}

GrammarReader::Set GrammarReader::number_of(std::vector<Stack> readings) {
  spend(readings.size());
  std::sort(readings.begin(), readings.end());
  const auto [it, fresh] =
      numbers_.try_emplace(std::move(readings), static_cast<Set>(sets_.size()));
  if (!fresh) return it->second;
  spend(kEntryCost);
  held_ += 1 + it->first.size();
  auto& [list, next] = sets_.emplace_back(Stacks{&it->first, {}});
  for (const Stack stack : *list) {
    const Element& element = elements_[nodes_[stack].element];
    if (stack == 0 || element.kind != Element::Kind::characters) continue;
    if (element.inverse) next.set();
    for (std::size_t i = element.from; i < element.to && !next.test(128); ++i) {
      for (auto c = ranges_[i].low; c <= std::min(ranges_[i].high, 128U); ++c) next.set(c);
      next[128] = next[128] || ranges_[i].high >= 128;
    }
  }
  return it->second;
}

GrammarReader::Set GrammarReader::step(Set set, std::uint32_t character) {
  if (!sets_[set].next.test(std::min(character, 128U))) return 0;
  const std::uint64_t key = key_of(set, character);
  if (const auto known = steps_.find(key); known != steps_.end()) return known->second;
  std::vector<Stack> readings;
  ++expansion_;
  spend(sets_[set].list->size() + kEntryCost);
  for (const Stack stack : *sets_[set].list) {
    const auto [below, at] = nodes_[stack];
    const Element& element = elements_[at];
    if (stack == 0 || element.kind != Element::Kind::characters) continue;
    if (matches(element, {character, character})) expand(push(below, at + 1), readings);
  }
  const Set next = number_of(std::move(readings));
  steps_.emplace(key, next);
  ++held_;
  return next;
}

// False where no text goes on like that.
bool GrammarReader::advance(Place& place, unsigned char byte) {
  if (place.missing > 0) {
    if ((byte & 0xC0) != 0x80) return false;
    place.bits = place.bits << 6 | (byte & 0x3F);
    --place.missing;
  } else if (byte < 0x80) {
    if (byte == 0) return false;
    place.bits = byte;
  } else {
    place.missing = byte >= 0xF8 ? 0 : byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
    if (place.missing == 0) return false;
    place.bits = byte & (0x3FU >> place.missing);
  }
  if (place.missing == 0) place.set = step(place.set, place.bits);
  return place.set != 0;
}

bool GrammarReader::follow(Place& place, std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return advance(place, static_cast<unsigned char>(c));
  }) && can_stop(place);
}

// Whether the last character is whole, or the grammar allows one that begins like that.
bool GrammarReader::can_stop(const Place& place) {
  if (place.missing == 0) return true;
  if (place.missing == 1 && place.bits < 2) return false;  // a longer form of an ASCII character
  const int shift = 6 * place.missing;
  const std::uint32_t least = place.missing == 3 ? 0x10000 : place.missing == 2 ? 0x800 : 0;
  const std::uint32_t low = place.bits << shift;
  const Range some{low == 0 ? least : low, low | ((1U << shift) - 1)};
  spend(sets_[place.set].list->size());
  return std::any_of(
      sets_[place.set].list->begin(), sets_[place.set].list->end(), [&](Stack stack) {
        const Element& element = elements_[nodes_[stack].element];
        return stack != 0 && element.kind == Element::Kind::characters && matches(element, some);
      });
}

// Of a token that the grammar names by its number.
std::vector<GrammarReader::Stack> GrammarReader::readings_after(Token token) {
  std::vector<Stack> readings;
  ++expansion_;
  spend(sets_[place_.set].list->size());
  for (const Stack stack : *sets_[place_.set].list) {
    const auto [below, at] = nodes_[stack];
    const Element& element = elements_[at];
    if (stack == 0 || element.kind != Element::Kind::token) continue;
    if ((element.value == std::uint32_t(token)) != element.inverse) {
      expand(push(below, at + 1), readings);
    }
  }
  return readings;
}

bool GrammarReader::may_end() const {
  const std::vector<Stack>& readings = *sets_[place_.set].list;
  return place_.missing == 0 && !readings.empty() && readings.front() == 0;
}

bool GrammarReader::allows(Token token, std::string_view text) {
  Place place = place_;
  return follow(place, text) || !readings_after(token).empty();
}

std::vector<bool> GrammarReader::allowed(const TokenTexts& tokens) {
  std::vector<bool> found(tokens.text.size());
  for (const Stack stack : *sets_[place_.set].list) {
    const Element& element = elements_[nodes_[stack].element];
    if (stack == 0 || element.kind != Element::Kind::token) continue;
    if (!element.inverse) {
      if (element.value < found.size()) found[element.value] = !tokens.text[element.value].empty();
      continue;
    }
    spend(tokens.sorted.size());
    for (const Token token : tokens.sorted) {
      if (element.value != std::uint32_t(token)) {
        found[std::size_t(token)] = true;
      }
    }
  }
  // path[i] is the place after i bytes of `before`; all of it, or up to where it cannot go on.
  std::vector<Place> path = {place_};
  std::string_view before;
  for (const Token token : tokens.sorted) {
    const std::string_view text = tokens.text[std::size_t(token)];
    const std::size_t same = common_prefix(before, text);
    if (same >= path.size()) continue;
    path.resize(same + 1);
    before = text;
    Place place = path.back();
    for (std::size_t i = same; i < text.size(); ++i) {
      if (!advance(place, static_cast<unsigned char>(text[i]))) break;
      path.push_back(place);
    }
    if (path.size() == text.size() + 1 && can_stop(place)) {
      found[std::size_t(token)] = true;
    }
  }
  return found;
}

void GrammarReader::accept(Token token, std::string_view text) {
  std::vector<Stack> readings = readings_after(token);
  Place place = place_;
  if (!follow(place, text)) place = Place();
  readings.insert(readings.end(), sets_[place.set].list->begin(), sets_[place.set].list->end());
  std::sort(readings.begin(), readings.end());
  readings.erase(std::unique(readings.begin(), readings.end()), readings.end());
  if (readings.empty()) {
    throw Error(ErrorKind::usage, cat("the grammar does not allow '", text, "' here"),
                "give one that describes what the prompt has begun");
  }
  place.set = number_of(std::move(readings));
  place_ = place;
  compact();
}

// Keeps only what the readings of this place need.
void GrammarReader::compact() {
  if (held_ < kMaxEntries + 2 * held_after_compact_) return;
  const std::vector<Stack> readings = *sets_[place_.set].list;
  const std::vector<Node> nodes = std::move(nodes_);
  forget_stacks();
  std::vector<Stack> moved(nodes.size());
  std::vector<Stack> kept, path;
  for (const Stack stack : readings) {
    for (Stack at = stack; at != 0 && moved[at] == 0; at = nodes[at].below) path.push_back(at);
    for (; !path.empty(); path.pop_back()) {
      const Node& node = nodes[path.back()];
      moved[path.back()] = push(moved[node.below], node.element);
    }
    kept.push_back(moved[stack]);
  }
  place_.set = number_of(std::move(kept));
  held_after_compact_ = held_;
}

}  // namespace mrrope::engine
