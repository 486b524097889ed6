// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/prompts.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "eval/embedded.h"
#include "eval/text/text_source.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The name in braces that begins at `at`, or empty.
std::string_view place_at(std::string_view text, std::size_t at) {
  if (text[at] != '{') return {};
  std::size_t end = at + 1;
  while (end < text.size() && is_name(text[end])) ++end;
  if (end == at + 1 || end == text.size() || text[end] != '}') return {};
  return text.substr(at + 1, end - at - 1);
}

std::set<std::string> places(const Prompt& prompt) {
  std::set<std::string> found;
  for (const std::string* text : {&prompt.text, &prompt.prefix}) {
    for (std::size_t i = 0; i < text->size(); ++i) {
      const std::string_view name = place_at(*text, i);
      if (!name.empty()) found.insert(std::string(name));
    }
  }
  return found;
}

// Words of a prompt that it asks its question without.
bool may_be_left_out(const std::string& place, const std::set<std::string>& used) {
  if (place == "input") return used.count("target") > 0;
  if (place == "target") return used.count("input") > 0;
  return place == "type" || place == "count" || place == "i";
}

// Where the task's words go while a chat template is at work.
constexpr std::string_view kMark = "[[mrrope-body]]";

}  // namespace

const Prompts& builtin_prompts() {
  static const Prompts prompts = [] {
    Prompts all;
    const auto file = nlohmann::json::parse(embedded::prompts_json);
    for (const auto& [name, prompt] : file.items()) {
      all[name] = {prompt.at("text").get<std::string>(), prompt.value("prefix", "")};
    }
    return all;
  }();
  return prompts;
}

Prompts read_prompts(const std::filesystem::path& path, std::string* sha256) {
  const JsonFile read = read_json_file(path);
  const nlohmann::json& file = read.content;
  if (sha256 != nullptr) *sha256 = read.sha256;
  const std::string name = path.filename().string();
  const auto corrupt = [&](const std::string& message, const std::string& hint) {
    throw Error(ErrorKind::corrupt, cat(name, ": ", message), hint);
  };
  if (!file.is_object()) corrupt("not a JSON object", "see docs/benchmarks.md for its form");
  Prompts prompts = builtin_prompts();
  for (const auto& [key, value] : file.items()) {
    const auto known = prompts.find(key);
    if (known == prompts.end()) {
      std::string names;
      for (const auto& [k, v] : prompts) names += cat(names.empty() ? "" : ", ", k);
      corrupt(cat("there is no prompt ", shown(key)), cat("the names are ", names));
    }
    if (!value.is_object() || !value.contains("text")) {
      corrupt(cat("prompt ", key, " has no text"),
              R"(give {"text": "... {context} ...", "prefix": " ..."})");
    }
    Prompt prompt;
    for (const auto& [part, text] : value.items()) {
      if (!text.is_string() || (part != "text" && part != "prefix")) {
        corrupt(cat("prompt ", key, " has a part ", shown(part)),
                "a prompt has two parts, both text: text and prefix");
      }
      (part == "text" ? prompt.text : prompt.prefix) = text.get<std::string>();
    }
    const std::set<std::string> allowed = places(known->second);
    const std::set<std::string> used = places(prompt);
    std::string list;
    for (const std::string& place : allowed) list += cat(list.empty() ? "{" : ", {", place, "}");
    for (const std::string& place : used) {
      if (allowed.count(place) == 0) {
        corrupt(cat("prompt ", key, " has no placeholder {", place, "}"), cat("it may use ", list));
      }
    }
    for (const std::string& place : allowed) {
      if (used.count(place) > 0 || may_be_left_out(place, used)) continue;
      corrupt(cat("prompt ", key, " does not use {", place, "}"),
              cat("put {", place, "} where ", place == "context" ? "the text" : "it",
                  " belongs; the prompt may use ", list));
    }
    known->second = std::move(prompt);
  }
  return prompts;
}

ordered_json prompts_identity(const Prompts& prompts, std::string_view beginning) {
  ordered_json json = ordered_json::object();
  for (const auto& [name, prompt] : prompts) {
    if (name.compare(0, beginning.size(), beginning) != 0) continue;
    json[name] = {{"text", prompt.text}, {"prefix", prompt.prefix}};
  }
  return json;
}

std::string fill(std::string_view text, const Fill& values) {
  std::size_t size = text.size();
  for (const auto& [name, value] : values) size += value.size();
  std::string out;
  out.reserve(size);
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view name = place_at(text, i);
    const auto value = std::find_if(values.begin(), values.end(), [&](const auto& v) {
      return !name.empty() && v.first == name;
    });
    out += value != values.end() ? value->second : text.substr(i, 1);
    i += value != values.end() ? name.size() + 2 : 1;
  }
  return out;
}

PromptFrame::PromptFrame(const Tokenizer& model, const FrameOptions& options)
    : model_(model), options_(options) {
  if (options.chat == "off") return;
  const ChatMessage message{"user", std::string(kMark)};
  std::string prompt;
  try {
    prompt = model.apply_chat_template({&message, 1});
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported || options.chat == "on") throw;
    return;
  }
  const std::size_t at = prompt.find(kMark);
  if (at == std::string::npos) {
    throw Error(ErrorKind::unsupported, "the chat template drops the user's text",
                "give --form completion");
  }
  chat_ = true;
  before_ = prompt.substr(0, at);
  after_ = prompt.substr(at + kMark.size());
}

std::string PromptFrame::text(const std::string& body, const std::string& prefix) const {
  std::string whole;
  whole.reserve(before_.size() + body.size() + after_.size() + prefix.size());
  whole.append(before_).append(body).append(after_);
  if (options_.prefix) whole += prefix;
  return whole;
}

std::vector<Token> PromptFrame::tokens(const std::string& text, bool controls) const {
  return with_bos(model_.tokenize(text, false, chat_ || controls));
}

std::vector<Token> PromptFrame::with_bos(std::vector<Token> tokens) const {
  const std::optional<Token> bos = model_.bos();
  if (bos && options_.bos) tokens.insert(tokens.begin(), *bos);
  // A template may spell a BOS of its own.
  while (bos && tokens.size() > 1 && tokens[0] == *bos && tokens[1] == *bos) {
    tokens.erase(tokens.begin());
  }
  return tokens;
}

nlohmann::ordered_json PromptFrame::identity() const {
  return {{"chat", chat_},
          {"chat_before", before_},
          {"chat_after", after_},
          {"answer_prefix", options_.prefix},
          {"bos", options_.bos && model_.bos().has_value()}};
}

// A word begins with a single blank between two letters or signs. Line ends stay inside, since some
// vocabularies join them with what comes before.
template <typename Take>
void TokenCounter::each_word(std::string_view text, const Take& take) {
  constexpr std::size_t kMaxWords = 1 << 20;
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  std::string key;
  const auto word = [&](std::string_view part) {
    key.assign(part);
    if (known_.size() > kMaxWords) known_.clear();
    auto known = known_.find(key);
    if (known == known_.end()) {
      known = known_.emplace(key, model_.tokenize(key, false, special_)).first;
    }
    take(known->second);
  };
  std::size_t begin = 0;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != ' ' || blank(text[i - 1]) || blank(text[i + 1])) continue;
    word(text.substr(begin, i - begin));
    begin = i;
  }
  if (begin < text.size()) word(text.substr(begin));
}

std::int64_t TokenCounter::count(std::string_view text) {
  if (model_.tokenizer_is_remote()) return std::int64_t(tokens(text).size());
  std::int64_t total = 0;
  each_word(text, [&](const std::vector<Token>& word) { total += std::int64_t(word.size()); });
  return total;
}

std::vector<Token> TokenCounter::tokens(std::string_view text) {
  if (model_.tokenizer_is_remote()) return model_.tokenize(text, false, special_);
  std::vector<Token> all;
  all.reserve(text.size() / 3);
  each_word(text, [&](const std::vector<Token>& word) {
    all.insert(all.end(), word.begin(), word.end());
  });
  return all;
}

}  // namespace mrrope::eval
