// SPDX-License-Identifier: Apache-2.0
// A language model under a ladder, token by token. libllama is behind it (engine/llama/local.h);
// tests have one without weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/prompt_model.h"
#include "mrrope/error.h"
#include "mrrope/ladder.h"
#include "mrrope/model.h"

namespace mrrope {

// The engine computed NaN logits: a property of the plan and the precision, not a fault of the
// machine.
class NanLogits : public Error {
 public:
  explicit NanLogits(const std::string& message, std::string hint = {})
      : Error(ErrorKind::failed, message, std::move(hint)) {}
};

// Sees the logits that follow token `index` of the appended span: the scores of token index + 1.
// The span is valid during the call only. Called in order, from one thread.
using LogitObserver = std::function<void(std::size_t index, std::span<const float> logits)>;

// A sequence of tokens with its key-value cache. Forks share what they have in common.
class Timeline {
 public:
  virtual ~Timeline() = default;

  virtual std::int64_t length() const = 0;

  // The rung of the ladder that its keys are on: that of the last token read.
  virtual std::size_t rung() const = 0;

  // Reads tokens; the observer sees the logits after each index listed in `wanted` (ascending). It
  // may change what the spans refer to: both are copied. Throws Error (usage) past the end of the
  // context, NanLogits, or Error (failed) when the engine fails.
  void append(std::span<const Token> tokens, std::span<const std::size_t> wanted = {},
              const LogitObserver& observer = {}) {
    read(tokens, wanted, observer, false);
  }
  // The same; result[i] is the natural logarithm of the probability of tokens[i] given all before
  // it (NaN for the first token of an empty timeline, which nothing predicts).
  std::vector<double> append_scored(std::span<const Token> tokens,
                                    std::span<const std::size_t> wanted = {},
                                    const LogitObserver& observer = {}) {
    return read(tokens, wanted, observer, true);
  }

  // Another timeline with the same past. It costs nothing until one of the two leaves their rung:
  // that one then gets a copy of its past. Where an engine cannot copy, it computes the past again.
  virtual std::unique_ptr<Timeline> fork() = 0;

  // Forgets everything from this length on. If the memory cannot forget (recurrent layers) the kept
  // tokens are computed again.
  virtual void truncate(std::int64_t length) = 0;

  // Continues the sequence. The generated tokens become part of the timeline.
  virtual Generation generate(const GenerateOptions& options) = 0;

  // The tokens read so far, and the sequence with its cache written to a file, for
  // TimelineModel::restore().
  virtual std::vector<Token> tokens() const = 0;
  virtual void save(const std::filesystem::path& path) const = 0;

 protected:
  // append(), and append_scored() where the result is wanted; otherwise it is not used.
  virtual std::vector<double> read(std::span<const Token> tokens,
                                   std::span<const std::size_t> wanted,
                                   const LogitObserver& observer, bool scored) = 0;
};

// A model's own chat template, with the tokens that it may use. add_bos: tokenize() adds the BOS,
// so it is removed from the front of the prompt.
struct ChatTemplate {
  std::string source;  // Jinja
  std::string bos;
  std::string eos;
  bool add_bos = false;
};

// The bytes of all tokens, those of control tokens included. Tokens that end a text have none.
struct TokenTexts {
  explicit TokenTexts(std::vector<std::string> texts = {}) : text(std::move(texts)) {
    const auto of = [&](Token token) -> const std::string& { return text[std::size_t(token)]; };
    for (Token token = 0; token < Token(text.size()); ++token) {
      if (!of(token).empty()) sorted.push_back(token);
    }
    std::ranges::sort(sorted, {}, of);
  }
  std::vector<std::string> text;  // by token
  std::vector<Token> sorted;      // by text, without those that have none
};

// The tokens that a timeline reads next.
struct Reading {
  Timeline* timeline;
  std::span<const Token> tokens;
};

class TimelineModel : public Tokenizer {
 public:
  virtual const Model& facts() const = 0;
  virtual std::string description() const = 0;  // for run.json: engine, version, device
  virtual int vocabulary() const = 0;

  // Empty if the file has none.
  virtual std::optional<ChatTemplate> chat_template() const = 0;

  // The bytes of one token, which need not be whole characters; control tokens have none.
  virtual std::string piece(Token token) const = 0;
  virtual bool ends_text(Token token) const = 0;

  // What is needed to follow a grammar; null where the engine does not know. From any thread.
  virtual const TokenTexts* token_texts() const { return nullptr; }

  // Every timeline made from now on runs under this ladder. No timeline may exist. Throws Error
  // (unsupported) on a ladder that grows if the model's keys cannot be turned.
  virtual void use(const Ladder& ladder) = 0;

  // Tokens the context can hold, over all timelines together.
  virtual std::int64_t context_length() const = 0;

  // An empty timeline.
  virtual std::unique_ptr<Timeline> timeline() = 0;

  // Whether a timeline can be cut without being computed again.
  virtual bool forgets() const { return true; }

  // The most tokens that are computed at once.
  virtual std::size_t batch() const = 0;

  // Reads the tokens of several timelines, no two the same, in one computation where the engine
  // can: batch() tokens in all, and every timeline begins and ends on one rung, all on the same or
  // on rungs that go together (Ladder::together). The observer sees, per reading, the logits after
  // its last token, when that timeline has read its tokens: it may end the timeline or free the
  // tokens. Throws as append(); the timelines are then as before, unless a key could not be turned.
  // This default reads one after the other.
  virtual void read_together(std::span<const Reading> readings, const LogitObserver& observer) {
    std::vector<float> row;
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const std::size_t last = readings[i].tokens.size() - 1;
      readings[i].timeline->append(readings[i].tokens, {&last, 1},
                                   [&](std::size_t, std::span<const float> logits) {
                                     row.assign(logits.begin(), logits.end());
                                   });
      observer(i, row);
    }
  }

  // One that save() wrote while its keys were on `rung` of the same ladder. Throws Error: corrupt,
  // usage (the engine can restore only the first of its timelines, and others exist).
  virtual std::unique_ptr<Timeline> restore(const std::filesystem::path& path,
                                            std::size_t rung) = 0;

  // The token that a text to embed ends with, where the model was trained so.
  virtual std::optional<Token> text_end() const { return std::nullopt; }

  // The embedding of a text by the unmodified model: pooled as its file says, of length 1. Not
  // while anything else is computed. Throws Error: unsupported (the model has none), usage (more
  // tokens than its window), out_of_memory, failed.
  virtual std::vector<float> embed(std::span<const Token> /*tokens*/) {
    throw Error(ErrorKind::unsupported, "this model has no embeddings");
  }
};

// A query and an earlier key of one layer, by their positions; head is the query's.
struct PairPlace {
  int layer = 0;
  int head = 0;
  std::int64_t query = 0;
  std::int64_t key = 0;
};
// Their head vectors after rotation, as the model computes them.
struct RotatedPair {
  std::vector<float> query, key;
};
struct LayerHeads {
  int layer = 0;
  int heads = 0;  // of queries
};

}  // namespace mrrope
