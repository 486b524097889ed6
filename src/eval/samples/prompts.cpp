// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/prompts.h"

#include <set>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "eval/text/documents.h"
#include "eval/text/word_list.h"

namespace mrrope::eval {

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

// Drafts that are never asked, to find the fit.
constexpr std::size_t kTrial = SIZE_MAX / 2;

class Fitter {
 public:
  Fitter(const SampleSet& set, std::uint64_t seed, Drafter drafter, const PromptFrame& frame,
         TokenCounter& counter)
      : set_(set), seed_(seed), drafter_(std::move(drafter)), frame_(frame), counter_(counter) {
    const std::int64_t smallest = least_tokens() + set.answer_tokens;
    if (set.length < smallest) {
      // Other lengths draw other words, which may take a few tokens more.
      const std::int64_t enough = (smallest + smallest / 8 + 63) / 64 * 64;
      refuse(cat(set_.task, " cannot be made at ", set_.length,
                 " tokens: with this model's tokenizer and prompt it takes about ", smallest),
             cat("give --lengths of ", enough, " or more, or choose other --tasks"));
    }
  }

  Sample make(std::size_t index) {
    // All questions about a text have the same one: the largest that leaves room for each.
    const std::size_t text = index / drafter_.questions;
    if (text != fitted_text_) {
      fitted_units_ = this->units();
      if (drafter_.questions > 1) {
        for (std::size_t q = 0; q < drafter_.questions; ++q) {
          fit(text * drafter_.questions + q, fitted_units_);
        }
      }
      fitted_text_ = text;
    }
    return fit(index, fitted_units_);
  }

 private:
  Draft draft(std::int64_t units, std::size_t index) const {
    Random random = random_for(seed_, set_.task.substr(set_.task.find('/') + 1),
                               std::uint64_t(set_.length), index / drafter_.questions);
    return drafter_.draft(units, index, random);
  }

  // Lowers `units` until the sample fits.
  Sample fit(std::size_t index, std::int64_t& units) {
    for (;;) {
      Draft draft = this->draft(units, index);
      Sample sample;
      sample.text = frame_.text(draft.body, draft.prefix);
      sample.prompt = tokens_of(sample.text);
      const auto tokens = std::int64_t(sample.prompt.size());
      if (tokens <= room_) {
        sample.id = cat(index);
        sample.expected = std::move(draft.expected);
        sample.more = std::move(draft.more);
        return sample;
      }
      refuse_if(units == drafter_.min,
                cat("sample ", index, " of ", set_.task, " takes ", tokens,
                    " tokens at its smallest, and ", set_.length, " leave room for ", room_),
                "give longer --lengths");
      const double per_unit = double(tokens) / double(units);
      const auto over = std::int64_t(std::ceil(double(tokens - room_) / per_unit));
      const std::int64_t steps = (over + drafter_.grain - 1) / drafter_.grain;
      units = std::max(drafter_.min, units - steps * drafter_.grain);
    }
  }

  std::string whole(std::int64_t units, std::size_t index) const {
    const Draft draft = this->draft(units, index);
    return frame_.text(draft.body, draft.prefix);
  }

  // The tokens of the whole text. Counted word by word if that gave the same for the first text.
  std::vector<Token> tokens_of(const std::string& text) {
    if (!word_by_word_) {
      std::vector<Token> tokens = frame_.tokens(text);
      word_by_word_ = tokens == frame_.with_bos(counter_.tokens(text));
      return tokens;
    }
    return *word_by_word_ ? frame_.with_bos(counter_.tokens(text)) : frame_.tokens(text);
  }

  // What the longest of all samples takes at its smallest; where the first one leaves room for four
  // of its kind, that one.
  std::int64_t least_tokens() {
    const auto tokens = [&](std::size_t i) {
      return std::int64_t(frame_.tokens(whole(drafter_.min, i)).size());
    };
    const std::int64_t first = tokens(0);
    if (4 * first < room_) return first;
    std::int64_t max = 0;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < set_.count; ++i) {
      const std::int64_t counted = counter_.count(whole(drafter_.min, i));
      if (counted > max) max = counted, longest = i;
    }
    return std::max(first, tokens(longest));
  }

  std::int64_t units() {
    if (units_) return *units_;
    double ratio = 1;  // of tokens to those counted word by word
    std::int64_t best = 0;
    for (int round = 0; round < 4; ++round) {
      const auto fits = [&](std::int64_t steps) {
        return ratio * double(counter_.count(whole(at(steps), kTrial))) <= double(room_);
      };
      std::int64_t low = 0;  // fits, or is the least there is
      std::int64_t high = 1;
      const std::int64_t last =
          (std::min(drafter_.max, drafter_.min + set_.length) - drafter_.min) / drafter_.grain;
      while (high <= last && fits(high)) low = high, high *= 2;
      high = std::min(high, last + 1);
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
      }
      best = low;
      const std::string text = whole(at(best), kTrial);
      const double before = ratio;
      ratio = double(frame_.tokens(text).size()) / double(counter_.count(text));
      if (std::abs(ratio - before) < 2e-4) break;
    }
    return *(units_ = at(best));
  }

  std::int64_t at(std::int64_t steps) const { return drafter_.min + steps * drafter_.grain; }

  const SampleSet set_;
  const std::int64_t room_ = set_.length - set_.answer_tokens;
  const std::uint64_t seed_;
  Drafter drafter_;
  const PromptFrame& frame_;
  TokenCounter& counter_;
  std::optional<std::int64_t> units_;
  std::optional<std::size_t> fitted_text_;
  std::int64_t fitted_units_ = 0;
  std::optional<bool> word_by_word_;
};

// A sample of at most `room` tokens.
Sample cut_sample(const Draft& draft, const PromptFrame& frame, std::int64_t room) {
  Sample sample{draft.id, frame.text(draft.body, draft.prefix), {}, draft.expected, draft.more};
  sample.prompt = frame.tokens(sample.text);
  const auto whole = std::int64_t(sample.prompt.size());
  if (whole <= room) return sample;
  const std::vector<Token> all = frame.model().tokenize(draft.body, false, false);
  // Where the two halves meet, tokenizing again may give a few more tokens.
  for (std::int64_t keep = room - whole + std::int64_t(all.size()); keep >= 2; keep -= 8) {
    const auto half = std::size_t(keep / 2);
    const std::span<const Token> tokens(all);
    sample.text = frame.text(
        frame.model().detokenize(tokens.first(half)) + frame.model().detokenize(tokens.last(half)),
        draft.prefix);
    sample.prompt = frame.tokens(sample.text);
    const auto kept = std::int64_t(sample.prompt.size());
    if (kept > room) continue;
    sample.more["truncated"] = whole - kept;
    return sample;
  }
  refuse(cat(room, " tokens are too few for any prompt"), "give a longer --ctx");
}

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
    damaged_data(cat(name, ": ", message), hint);
  };
  if (!file.is_object()) corrupt("not a JSON object", "see data/prompts.json for its form");
  Prompts prompts = builtin_prompts();
  for (const auto& [key, value] : file.items()) {
    const auto known = prompts.find(key);
    if (known == prompts.end()) {
      corrupt(cat("there is no prompt ", shown(key)),
              cat("the names are ", joined(mapped(prompts, &Prompts::value_type::first), ", ")));
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
    const std::string list =
        joined(mapped(allowed, [](const auto& place) { return "{" + place + "}"; }), ", ");
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
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view name = place_at(text, i);
    const auto* value = name.empty() ? nullptr : find_by(values, &Fill::value_type::first, name);
    out += value != nullptr ? value->second : text.substr(i, 1);
    i += value != nullptr ? name.size() + 2 : 1;
  }
  return out;
}

std::pair<std::string, std::string> around_mark(const std::string& prompt) {
  const std::size_t at = prompt.find(kChatMark);
  unsupported_if(at == std::string::npos, "the chat template drops the user's text",
                 "give --form completion");
  return {prompt.substr(0, at), prompt.substr(at + kChatMark.size())};
}

PromptFrame::PromptFrame(const Tokenizer& model, const FrameOptions& options)
    : model_(model), options_(options) {
  if (options.chat == "off") return;
  const ChatMessage message{"user", std::string(kChatMark)};
  std::string prompt;
  try {
    prompt = model.apply_chat_template({&message, 1});
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported || options.chat == "on") throw;
    return;
  }
  chat_ = true;
  std::tie(before_, after_) = around_mark(prompt);
}

std::string PromptFrame::text(const std::string& body, const std::string& prefix) const {
  return before_ + body + after_ + (options_.prefix ? prefix : "");
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

ordered_json PromptFrame::identity() const {
  return {{"chat", chat_},
          {"chat_before", before_},
          {"chat_after", after_},
          {"answer_prefix", options_.prefix},
          {"bos", options_.bos && model_.bos().has_value()}};
}

// A word begins with a single blank between two letters or signs. Line ends stay inside, since some
// vocabularies join them with what comes before.
std::vector<Token> TokenCounter::tokens(std::string_view text) {
  if (model_.tokenizer_is_remote()) return model_.tokenize(text, false, special_);
  constexpr std::size_t kMaxWords = 1 << 20;
  std::vector<Token> all;
  all.reserve(text.size() / 3);
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  std::string key;
  const auto word = [&](std::string_view part) {
    key.assign(part);
    if (known_.size() > kMaxWords) known_.clear();
    auto known = known_.find(key);
    if (known == known_.end()) {
      known = known_.emplace(key, model_.tokenize(key, false, special_)).first;
    }
    extend(all, known->second);
  };
  std::size_t begin = 0;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != ' ' || blank(text[i - 1]) || blank(text[i + 1])) continue;
    word(text.substr(begin, i - begin));
    begin = i;
  }
  if (begin < text.size()) word(text.substr(begin));
  return all;
}

SampleSet fitted_set(SampleSet set, std::uint64_t seed, Drafter drafter, const PromptFrame& frame,
                     TokenCounter& counter) {
  set.questions = drafter.questions;
  const auto fitter = std::make_shared<Fitter>(set, seed, std::move(drafter), frame, counter);
  set.make = [fitter](std::size_t index) { return fitter->make(index); };
  return set;
}

SampleSet cut_set(SampleSet set, std::vector<Draft> drafts, std::size_t count, Random random,
                  const PromptFrame& frame, ordered_json& ids) {
  const auto chosen = std::make_shared<std::vector<Draft>>();
  if (count == 0 || count > drafts.size()) {
    *chosen = std::move(drafts);
  } else {
    for (const std::size_t i : choose(drafts.size(), count, random)) {
      chosen->push_back(std::move(drafts[i]));
    }
  }
  ids = mapped(*chosen, &Draft::id);
  set.count = chosen->size();
  set.make = [chosen, &frame, room = set.length - set.answer_tokens](std::size_t i) {
    return cut_sample((*chosen)[i], frame, room);
  };
  return set;
}

}  // namespace mrrope::eval
