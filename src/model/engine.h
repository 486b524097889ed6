// SPDX-License-Identifier: Apache-2.0
// A language model under a ladder. Behind it stands libllama (local.h); tests have one without
// weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mrrope/error.h"
#include "mrrope/ladder.h"
#include "mrrope/model.h"

namespace mrrope {

using Token = std::int32_t;

// temperature 0 is greedy, and the default: evaluations must repeat.
struct Sampling {
  double temperature = 0;
  int top_k = 40;
  double top_p = 0.95;
  double min_p = 0.05;
  std::uint32_t seed = 1;
};

struct GenerateOptions {
  int max_tokens = 128;
  Sampling sampling;
  std::vector<std::string> stop;  // generation ends before the first of these
  // Called with each new piece of text (whole UTF-8 characters); false stops the generation.
  std::function<bool(std::string_view)> on_text;
};

struct Generation {
  std::string text;
  std::vector<Token> tokens;
  std::string finish;       // "stop" (end of text or a stop string), "length", "cancelled"
  double smallest_gap = 0;  // least difference of the top two logits over all greedy steps
};

// Sees the logits that follow token `index` of the appended span: the scores of token index + 1.
// The span is valid during the call only. Called in order, from one thread.
using LogitObserver = std::function<void(std::size_t index, std::span<const float> logits)>;

// A sequence of tokens with its key-value cache. Forks share what they have in common.
class Timeline {
 public:
  virtual ~Timeline() = default;

  virtual std::int64_t length() const = 0;

  // The rung of the ladder that its keys stand on: that of the last token read.
  virtual std::size_t rung() const { return 0; }

  // Reads tokens. Throws Error (usage) past the end of the context, Error (failed) when the engine
  // reports NaN logits or fails.
  virtual void append(std::span<const Token> tokens) = 0;

  // Reads tokens and returns, for every one of them but the very first of an empty timeline, the
  // natural logarithm of its probability given all before it: result[i] belongs to tokens[i]
  // (NaN for the first token of an empty timeline, which nothing predicts).
  virtual std::vector<double> append_scored(std::span<const Token> tokens) = 0;

  // Reads tokens; the observer sees the logits after each index listed in `wanted` (ascending).
  virtual void append_observed(std::span<const Token> tokens, std::span<const std::size_t> wanted,
                               const LogitObserver& observer) = 0;

  // Both at once: the scores of append_scored, and the logits shown as by append_observed. As
  // written here the tokens are computed twice; an engine that has the logits at hand overrides it.
  virtual std::vector<double> append_scored_observed(std::span<const Token> tokens,
                                                     std::span<const std::size_t> wanted,
                                                     const LogitObserver& observer) {
    fork()->append_observed(tokens, wanted, observer);
    return append_scored(tokens);
  }

  // Another timeline with the same past. It costs no computation, until one of the two leaves the
  // rung they stand on: keys stand on one rung only, so it then computes its past again, unless the
  // other is gone.
  virtual std::unique_ptr<Timeline> fork() = 0;

  // Forgets everything from this length on. Under a ladder the kept keys go back to their rung with
  // the next token. Where the memory cannot forget (recurrent layers) the
  // kept tokens are computed again.
  virtual void truncate(std::int64_t length) = 0;

  // Continues the sequence. The generated tokens become part of the timeline.
  virtual Generation generate(const GenerateOptions& options) = 0;

  // The tokens read so far, and the sequence with its cache written to a file, for
  // LanguageModel::restore(). Not every engine can.
  virtual std::vector<Token> tokens() const { throw cannot_save(); }
  virtual void save(const std::filesystem::path& /*path*/) const { throw cannot_save(); }

 protected:
  static Error cannot_save() {
    return {ErrorKind::unsupported, "this engine cannot save a sequence"};
  }
};

// A whole prompt for an engine that has no timelines.
struct WholePrompt {
  std::vector<Token> tokens;
  std::string text;  // the same for people; may be empty
};

struct WholeAnswer {
  Generation said;
  // Not empty: no answer could be had for this prompt, and why. Others may do better.
  std::string failed;
  // What went wrong on the way, by kind, and how often: "status 429", "cut", "usage", ...
  std::map<std::string, int> troubles;
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

// A model's own chat template, with what it may name. add_bos: a BOS at the front of what it makes
// is left to tokenize().
struct ChatTemplate {
  std::string source;  // Jinja
  std::string bos;
  std::string eos;
  bool add_bos = false;
};

// The tokens that a timeline reads next.
struct Reading {
  Timeline* timeline;
  std::span<const Token> tokens;
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual const Model& facts() const = 0;
  virtual std::string description() const = 0;  // for run.json: engine, version, device

  // add_bos: prepend the model's BOS where it has one and its file asks for it.
  // special: read the text of control tokens as those tokens.
  virtual std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const = 0;
  virtual std::string detokenize(std::span<const Token> tokens) const = 0;
  virtual std::optional<Token> bos() const = 0;
  virtual int vocabulary() const = 0;

  // The prompt that the model's own chat template makes, up to where the assistant speaks. It goes
  // through tokenize(add_bos = true, special = true).
  // Throws Error (unsupported) where the file carries no template.
  virtual std::string apply_chat_template(std::span<const ChatMessage> messages) const = 0;

  // Empty where the file carries none.
  virtual std::optional<ChatTemplate> chat_template() const { return std::nullopt; }

  // The bytes of one token, which need not be whole characters; control tokens have none. Whether a
  // token ends the text.
  virtual std::string piece(Token token) const { return detokenize({&token, 1}); }
  virtual bool ends_text(Token /*token*/) const { return false; }

  // Every timeline made from now on runs under this ladder. Timelines alive must be gone. Throws
  // Error (unsupported) on a ladder that grows where the model's keys cannot be turned.
  virtual void use(const Ladder& ladder) = 0;

  // Tokens the context can hold, over all timelines together.
  virtual std::int64_t context_length() const = 0;

  // An empty timeline. Throws Error (unsupported) where parallel() is above 0.
  virtual std::unique_ptr<Timeline> timeline() = 0;

  // Tokens that are computed at once, at most.
  virtual std::size_t batch() const { return 512; }

  // Reads the tokens of several timelines, no two the same, in one computation where the engine
  // can: batch() tokens in all, and every timeline begins and ends on one and the same rung. The
  // observer sees, per reading, the logits after its last token. Throws as append(); the timelines
  // are then as before, but where a key could not be turned.
  virtual void read_together(std::span<const Reading> readings, const LogitObserver& observer) {
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const std::size_t last = readings[i].tokens.size() - 1;
      readings[i].timeline->append_observed(
          readings[i].tokens, {&last, 1},
          [&](std::size_t, std::span<const float> logits) { observer(i, logits); });
    }
  }

  // Above 0: this engine stands behind a network. It only answers whole prompts, so many at once,
  // each by ask(), which any thread may call. A wait ends early where options.on_text, called with
  // nothing new, returns false. Throws Error where no other prompt would fare better.
  virtual int parallel() const { return 0; }
  virtual WholeAnswer ask(const WholePrompt& /*prompt*/, const GenerateOptions& /*options*/) {
    throw Error(ErrorKind::unsupported, "this engine has timelines");
  }
  // From any thread: ends every ask() that is under way.
  virtual void cancel() {}
  // Whether a call of tokenize() is a message to another machine: better one long text than many
  // words.
  virtual bool far_tokenizer() const { return false; }

  // One that save() wrote while its keys stood on `rung` of the same ladder, as the only timeline
  // of this model. Throws Error: usage (others are alive), corrupt.
  virtual std::unique_ptr<Timeline> restore(const std::filesystem::path& /*path*/,
                                            std::size_t /*rung*/) {
    throw Error(ErrorKind::unsupported, "this engine cannot restore a sequence");
  }
};

}  // namespace mrrope
