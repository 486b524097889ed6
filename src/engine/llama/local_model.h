// SPDX-License-Identifier: Apache-2.0
// The local engine from inside: one loaded model, one context, one key-value cache shared by all
// timelines.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/llama/graph/device_score.h"
#include "engine/llama/graph/inject.h"
#include "engine/llama/llama_api.h"
#include "engine/llama/local.h"
#include "mrrope/rotary.h"

namespace mrrope::engine {

class LocalModel final : public TimelineModel {
 public:
  // The model must have been loaded from what the facts describe. Makes the context and runs the
  // self-test of the rotations. Throws as open_local().
  LocalModel(LlamaPtr<llama_model> model, Model facts, const LocalOptions& options);
  ~LocalModel() override;

  const Model& facts() const override { return facts_; }
  std::string description() const override;
  std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const override;
  std::optional<std::vector<Token>> tokenize_unless(
      std::string_view text, bool add_bos, bool special,
      const std::function<bool()>& give_up) const override;
  std::string detokenize(std::span<const Token> tokens) const override;
  std::optional<Token> bos() const override;
  int vocabulary() const override { return vocabulary_; }
  std::string apply_chat_template(std::span<const ChatMessage> messages) const override;
  std::optional<ChatTemplate> chat_template() const override;
  bool tokenizer_is_remote() const override { return false; }
  std::string piece(Token token) const override;
  bool ends_text(Token token) const override { return llama_vocab_is_eog(vocab_, token); }
  const TokenTexts* token_texts() const override;
  void use(const Ladder& ladder) override;
  std::int64_t context_length() const override;
  std::unique_ptr<Timeline> timeline() override;
  bool forgets() const override { return !recurrent(); }
  std::size_t batch() const override { return static_cast<std::size_t>(ubatch_); }
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override;
  std::unique_ptr<Timeline> restore(const std::filesystem::path& path, std::size_t rung) override;

  // The rest is for timelines.

  // Sequence numbers of the cache. take_sequence() throws Error (usage) when all are in use.
  llama_seq_id take_sequence();
  void give_back(llama_seq_id sequence);

  // Some tokens of one timeline, at most ubatch() of them, at consecutive positions.
  struct Chunk {
    llama_seq_id sequence;
    std::span<const Token> tokens;
    std::int64_t position;
    std::size_t rung;
  };
  // Computes chunks of different timelines, on rungs that go together and at most ubatch() tokens,
  // numbered from the first token of the first chunk. wanted[i]: the logits that follow token i are
  // kept: row(i) returns them until the next call. Throws Error: usage (the cache is
  // full), failed.
  void decode(std::span<const Chunk> chunks, std::span<const char> wanted);
  void decode(const Chunk& chunk, std::span<const char> wanted) { decode({&chunk, 1}, wanted); }
  // Under a ladder that grows: where the last decode stored its tokens, in their order. Otherwise
  // empty.
  const std::vector<std::int32_t>& cells() const noexcept { return injector_->cells(); }
  std::span<const float> row(std::size_t index) const;

  // Computes tokens as above, all wanted, and the natural logarithm of the probability of
  // targets[i] after tokens[i] into scores[i], for as many targets as there are. NaN where a logit
  // is.
  void decode_scored(const Chunk& chunk, std::span<const Token> targets, std::span<double> scores);

  // Where scores are computed: on the accelerator if the logits are there, or as told, for tests.
  enum class Scoring { automatic, host, device };
  void score_on(Scoring where) noexcept { scoring_ = where; }
  Scoring scoring() const noexcept { return scoring_; }

  // The longest timeline that the cache and the ladder have room for, and the refusal of a longer
  // one: Error (usage).
  std::int64_t longest() const;
  void check_length(std::int64_t length) const;

  // The ladder's: the rung in force at a length, the last length of a rung, and the turn of a
  // timeline's keys from rung to rung. cells[p] is the cell of position p.
  std::size_t rung_at(std::int64_t length) const { return ladder_ ? ladder_->rung_at(length) : 0; }
  std::int64_t end_of_rung(std::size_t rung) const;
  void turn(std::span<const std::int32_t> cells, std::size_t from, std::size_t to);
  // Without a unified cache: copies a sequence, cache included, to an empty one. Throws Error
  // (failed).
  void copy_sequence(llama_seq_id from, llama_seq_id to);
  // Without a unified cache: the first of the cells of a sequence, which lie in the order of its
  // positions.
  std::int32_t first_cell(llama_seq_id sequence) const;
  // Gives a sequence copies of its own of keys and values that it shares; cells[p] is the cell of
  // position p. Returns the new cells, or nothing where there is no room or where layers would keep
  // a token in different cells: the sequence may then be empty and has to be computed again.
  std::optional<std::vector<std::int32_t>> copy_cells(llama_seq_id sequence,
                                                      std::span<const std::int32_t> cells);
  bool unified() const noexcept { return options_.unified; }
  int timelines() const noexcept { return options_.timelines; }
  // Some layers keep a state per sequence in place of keys.
  bool recurrent() const;
  bool grows() const noexcept { return ladder_ && ladder_->elastic(); }
  bool has_near_part() const noexcept { return ladder_ && ladder_->near(); }

  int ubatch() const noexcept { return ubatch_; }
  llama_context* context() const noexcept { return context_.get(); }
  llama_memory_t memory() const noexcept { return llama_get_memory(context_.get()); }
  const llama_model* llama() const noexcept { return model_.get(); }
  const llama_vocab* vocab() const noexcept { return vocab_; }
  const Injector& injector() const noexcept { return *injector_; }

 private:
  void decode_together(std::span<const Reading> readings, std::span<const Chunk> chunks,
                       std::span<const std::size_t> members, const LogitObserver& observer);
  // Finds out where keys are stored, with one token. Throws Error (unsupported).
  void find_keys();
  // Throws Error (unsupported) where a model cannot have a near part.
  void check_near(const Ladder& ladder) const;
  // The injector's setting: of a ladder with a near part one for all rungs, since new tokens are
  // near.
  std::size_t setting_of(std::size_t rung) const { return far_.empty() ? rung : 0; }
  KeyState key_state(std::size_t rung) const;

  // Called with the computed logits inside a decode; whether the probabilities could be computed
  // where they are.
  bool score_in_place(ggml_tensor* logits, std::span<const Token> targets);
  void score_on_host(std::span<const Token> targets, std::span<double> scores);

  Model facts_;
  LocalOptions options_;
  LlamaPtr<llama_model> model_;
  const llama_vocab* vocab_;
  int vocabulary_;
  mutable std::once_flag texts_made_;
  mutable TokenTexts texts_;
  int ubatch_;
  std::unique_ptr<Injector> injector_;  // outlives the context
  LlamaPtr<llama_context> context_;
  std::unique_ptr<KeyTurner> turner_;  // once a ladder that grows was used
  Workers workers_;
  Scoring scoring_ = Scoring::automatic;
  std::unique_ptr<DeviceScorer> device_scorer_;
  std::vector<float> probabilities_;
  std::size_t calls_in_place_ = 0;
  std::optional<Ladder> ladder_;  // empty: the unmodified model
  // With a near part, per rung: the rotation of far keys.
  std::vector<RotarySetting> far_;
  std::vector<llama_seq_id> free_sequences_;
  // The batch being decoded.
  std::vector<Token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<std::int32_t> rotated_positions_;
  std::vector<int32_t> sequence_counts_;
  std::vector<llama_seq_id> sequences_;
  std::vector<llama_seq_id*> sequence_lists_;
  std::vector<std::int8_t> outputs_;
};

}  // namespace mrrope::engine
