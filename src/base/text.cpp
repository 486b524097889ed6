// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <arpa/inet.h>
#include <time.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/utf8.h"

namespace mrrope {
namespace {

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Length of the longest end of text that is the beginning of a stop string.
std::size_t possible_stop(std::string_view text, const std::vector<std::string>& stop) {
  std::size_t longest = 0;
  for (const std::string& s : stop) {
    for (std::size_t n = std::min(s.size() - 1, text.size()); n > longest; --n) {
      if (text.substr(text.size() - n) == std::string_view(s).substr(0, n)) {
        longest = n;
        break;
      }
    }
  }
  return longest;
}

}  // namespace

std::string aligned(const std::vector<TextRow>& rows, const std::vector<std::size_t>& left) {
  std::vector<std::size_t> width;
  for (const TextRow& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string blanks(width[i] - row[i].size(), ' ');
      const bool to_left = has(left, i);
      line += to_left ? row[i] + blanks : blanks + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    line += csv_cell(cells[i]);
  }
  line += '\n';
  return line;
}

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: row i holds the distances of a's first i letters.
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = row;
  }
  return last.back();
}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 64;  // nothing is spelled like a longer one
  if (word.empty() || word.size() > kLongest) return {};
  const std::string wanted = lower_case(word);
  std::size_t best = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string found = closest(word, candidates);
  return found.empty() ? "" : "did you mean " + found + "? ";
}

bool is_loopback_host(std::string_view host) {
  const std::string name = lower_case(host);
  if (name == "localhost" || name == "::1" || name == "[::1]") return true;
  // Four decimal numbers without leading zeros: other spellings mean different addresses to
  // different readers.
  in_addr address{};
  return name.find('\0') == std::string::npos &&
         ::inet_pton(AF_INET, name.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

std::string host_of_authority(std::string_view authority) {
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    return std::string(authority.substr(0, end == std::string_view::npos ? end : end + 1));
  }
  return std::string(authority.substr(0, authority.find(':')));
}

std::size_t character_size(char first) noexcept {
  const auto lead = static_cast<unsigned char>(first);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

Utf8Character first_character(std::string_view text) noexcept {
  if (text.empty()) return {};
  const std::size_t size = character_size(text[0]);
  if (size == 0 || size > text.size()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (size == 1) return {lead, 1};
  char32_t code = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return {};
    code = code << 6 | (next & 0x3fU);
  }
  const char32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, size};
}

void append_character(std::string& text, char32_t code) {
  if (code < 0x80) {
    text.push_back(char(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  text.push_back(char(((0xff00U >> (more + 1)) & 0xffU) | (code >> (6 * more))));
  for (int k = more; k-- > 0;) text.push_back(char(0x80U | ((code >> (6 * k)) & 0x3fU)));
}

std::size_t whole_characters(std::string_view text) noexcept {
  // Only the last character can be unfinished, and it has at most three bytes so far.
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (continues(c)) continue;
    return character_size(c) > back ? text.size() - back : text.size();
  }
  return text.size();
}

TextStream::TextStream(std::vector<std::string> stop) : stop_(std::move(stop)) {
  stop_.erase(std::remove(stop_.begin(), stop_.end(), std::string()), stop_.end());
}

std::string TextStream::add(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t first = std::string::npos;
  for (const std::string& s : stop_) {
    const std::size_t at = held_.find(s);
    if (at < first) found_ = s;
    first = std::min(first, at);
  }
  if (first != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, {}).substr(0, first);
  }
  const std::size_t ready =
      std::min(whole_characters(held_), held_.size() - possible_stop(held_, stop_));
  // A stop string may begin inside a character's bytes: cut at a character again.
  const std::size_t cut = whole_characters(std::string_view(held_).substr(0, ready));
  std::string text = held_.substr(0, cut);
  held_.erase(0, cut);
  return text;
}

std::string TextStream::finish() { return std::exchange(held_, {}); }

}  // namespace mrrope
