// SPDX-License-Identifier: Apache-2.0
// Prompts are data: a text with placeholders, and the beginning of the answer. The built-in ones
// (data/prompts.json) are written for this project; a file of the same form replaces any of them:
//   {"ruler/vt": {"text": "... {context} ... {value} ...", "prefix": " ..."}, ...}
// A frame is what surrounds them: BOS, the model's chat template, the beginning of the answer.
#pragma once

#include <unordered_map>

#include "base/random.h"
#include "eval/samples/sample.h"

namespace mrrope::eval {

struct Prompt {
  std::string text;
  std::string prefix;  // the beginning of the answer; --without prefix removes it
};

using Prompts = std::map<std::string, Prompt>;

const Prompts& builtin_prompts();

// The built-in prompts, with those of the file in place of theirs. A replacement may use only the
// placeholders of the built-in prompt, and must use those without which it does not ask anything:
// all but {type}, {count}, {i} and one of {input} and {target}. Throws Error: failed, corrupt.
// sha256: that of the file's bytes, if asked for.
Prompts read_prompts(const std::filesystem::path& path, std::string* sha256 = nullptr);

// For a run's identity: the prompts whose names begin so.
ordered_json prompts_identity(const Prompts& prompts, std::string_view beginning);

using Fill = std::vector<std::pair<std::string_view, std::string_view>>;

// Replaces every {name} in one pass: inserted text is not searched again.
std::string fill(std::string_view text, const Fill& values);

// Each can be switched off and is part of the run's identity.
struct FrameOptions {
  std::string chat = "auto";  // on, off, auto: if the model has a template
  bool prefix = true;
  bool bos = true;
};

// Where the task's words go while a chat template is at work, and what that puts before and after
// them. Throws Error (unsupported) if it drops the mark.
constexpr std::string_view kChatMark = "[[mrrope-body]]";
std::pair<std::string, std::string> around_mark(const std::string& prompt);

class PromptFrame {
 public:
  // Throws Error: unsupported (chat = on and the model has no template), usage (an unknown word).
  PromptFrame(const Tokenizer& model, const FrameOptions& options);

  // The whole prompt. With a chat template the prefix follows the assistant's header.
  std::string text(const std::string& body, const std::string& prefix) const;

  // Its tokens, with exactly one BOS if the model has one and it is switched on. Control tokens are
  // read as such if a chat template wrote them, or the text includes a template (`controls`).
  std::vector<Token> tokens(const std::string& text, bool controls = false) const;

  // The same, from the tokens of the text.
  std::vector<Token> with_bos(std::vector<Token> tokens) const;

  const Tokenizer& model() const noexcept { return model_; }
  bool chat() const noexcept { return chat_; }
  ordered_json identity() const;

 private:
  const Tokenizer& model_;
  FrameOptions options_;
  bool chat_ = false;
  std::string before_;
  std::string after_;
};

// Tokenizes generated texts quickly. Such texts repeat their words: each is tokenized once, with
// the blank before it, and remembered (not if the tokenizer is remote). If no token of the
// vocabulary crosses the start of a word, which is true for nearly all, the result is that of the
// whole text; fitted_set() checks this.
class TokenCounter {
 public:
  // special: the text of control tokens is read as those tokens.
  explicit TokenCounter(const Tokenizer& model, bool special = false)
      : model_(model), special_(special) {}

  std::vector<Token> tokens(std::string_view text);  // without BOS
  std::int64_t count(std::string_view text) { return std::int64_t(tokens(text).size()); }

 private:
  const Tokenizer& model_;
  bool special_;
  std::unordered_map<std::string, std::vector<Token>> known_;
};

// Samples fitted to a length. A drafter writes a prompt of a given number of units (words, lines,
// documents). The largest number is used for which the whole prompt, including template and BOS,
// and the answer fit into N tokens. A sample that is longer than the one that was tried loses as
// many units as necessary. A prompt that was read from a file is cut in the middle instead.
struct Draft {
  std::string body;
  std::string prefix;
  std::vector<std::string> expected;
  ordered_json more = ordered_json::object();
  std::string id{};  // of a draft that was read
};

struct Drafter {
  std::int64_t min = 1;    // the fewest with which the task works
  std::int64_t grain = 1;  // units are min + k * grain
  std::int64_t max = INT64_MAX;
  std::size_t questions = 1;  // so many consecutive drafts ask about one text
  // A pure function. More units give a longer text. Drafts about one text get equal numbers.
  std::function<Draft(std::int64_t units, std::size_t index, Random& random)> draft{};
};

// The set with samples of a drafter, whose random numbers depend on the seed, the task and the
// length. Throws Error (usage) that names the smallest possible length if the set's is below it.
// The fit is found when the first sample is made. The frame and the counter must outlive the set.
SampleSet fitted_set(SampleSet set, std::uint64_t seed, Drafter drafter, const PromptFrame& frame,
                     TokenCounter& counter);

// The set with `count` of these drafts (0, or more than there are: all), chosen at random. A longer
// one keeps the first and the last part of its body, half of the room each; template, prefix and
// BOS are kept, and it is marked. As in the original benchmarks, the halves are turned into text,
// which is tokenized again. ids: of those chosen. The frame must outlive the set.
SampleSet cut_set(SampleSet set, std::vector<Draft> drafts, std::size_t count, Random random,
                  const PromptFrame& frame, ordered_json& ids);

}  // namespace mrrope::eval
