// SPDX-License-Identifier: Apache-2.0
// The local engine from inside: one loaded model, one context, one key-value cache shared by all
// timelines, and these.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/llama/graph/inject.h"
#include "engine/llama/loader.h"
#include "engine/llama/tokenize.h"
#include "engine/run/speed.h"
#include "mrrope/rotary.h"

namespace mrrope::engine {

class LocalModel final : public WithTokenizer<TimelineModel> {
 public:
  // The model must have been loaded from what the facts describe. Makes the context and runs the
  // self-test of the rotations. Throws as open_local().
  LocalModel(LlamaPtr<llama_model> model, Model facts, const LocalOptions& options);
  ~LocalModel() override;

  const Model& facts() const override { return facts_; }
  std::string description() const override;
  int vocabulary() const override { return vocabulary_; }
  std::optional<ChatTemplate> chat_template() const override {
    return chat_template_of(model_.get());
  }
  std::string piece(Token token) const override;
  bool ends_text(Token token) const override { return llama_vocab_is_eog(vocab_, token); }
  const TokenTexts* token_texts() const override;
  void use(const Ladder& ladder) override;
  std::int64_t context_length() const override { return llama_n_ctx(context_.get()); }
  std::unique_ptr<Timeline> timeline() override;
  bool forgets() const override { return !recurrent(); }
  std::size_t batch() const override { return std::size_t(ubatch_); }
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override;
  std::unique_ptr<Timeline> restore(const std::filesystem::path& path, std::size_t rung) override;
  std::optional<Token> text_end() const override {
    return llama_vocab_get_add_eos(vocab_) ? std::optional(llama_vocab_eos(vocab_)) : std::nullopt;
  }
  std::vector<float> embed(std::span<const Token> tokens) override;

  // The rest is for timelines.

  // Sequence numbers of the cache. take_sequence() throws Error (usage) when all are in use.
  llama_seq_id take_sequence();
  void give_back(llama_seq_id sequence) { free_sequences_.push_back(sequence); }

  // Some tokens of one timeline, at most ubatch() of them, at consecutive positions.
  struct Chunk {
    llama_seq_id sequence;
    std::span<const Token> tokens;
    std::int64_t position;
    std::size_t rung;
  };
  // Computes chunks of different timelines, on rungs that go together and at most ubatch() tokens
  // in all. wanted[i]: row(i) returns the logits that follow token i until the next call. Throws
  // Error: usage (the cache is full), failed.
  void decode(std::span<const Chunk> chunks, std::span<const char> wanted);
  void decode(const Chunk& chunk, std::span<const char> wanted) { decode({&chunk, 1}, wanted); }
  // Under a ladder that grows: where the last decode stored its tokens.
  const std::vector<std::int32_t>& cells() const noexcept { return injector_->cells(); }
  std::span<const float> row(std::size_t index) const;

  // The same with all wanted, and the natural logarithm of the probability of targets[i] after
  // tokens[i] in scores[i]; NaN where a logit is.
  void decode_scored(const Chunk& chunk, std::span<const Token> targets, std::span<double> scores);

  // Where scores are computed: on the accelerator if the logits are there, or as told, for tests.
  enum class Scoring { automatic, host, device };
  void score_on(Scoring where) noexcept { scoring_ = where; }
  Scoring scoring() const noexcept { return scoring_; }

  // The longest timeline that there is room for; the others throw Error (usage).
  std::int64_t longest() const;
  void check_length(std::int64_t length) const;
  void check_token(Token token) const;

  // The ladder's. turn() turns the keys of a timeline; cells[p] is the cell of position p.
  std::size_t rung_at(std::int64_t length) const { return ladder_.rung_at(length); }
  std::int64_t end_of_rung(std::size_t rung) const { return ladder_.rungs().at(rung).length; }
  void turn(std::span<const std::int32_t> cells, std::size_t from, std::size_t to);
  // Without a unified cache: copies a sequence to an empty one; the first of the cells of a
  // sequence, which lie in the order of its positions.
  void copy_sequence(llama_seq_id from, llama_seq_id to);
  std::int32_t first_cell(llama_seq_id sequence) const {
    return sequence * std::int32_t(llama_n_ctx_seq(context_.get()));
  }
  // Gives a sequence copies of its own of what it shares. Returns the new cells, or nothing where
  // there is no room or where layers would keep a token in different cells: the sequence may then
  // be empty and has to be computed again.
  std::optional<std::vector<std::int32_t>> copy_cells(llama_seq_id sequence,
                                                      std::span<const std::int32_t> cells);
  bool unified() const noexcept { return options_.unified; }
  int timelines() const noexcept { return options_.timelines; }
  // Some layers keep a state per sequence in place of keys.
  bool recurrent() const {
    return llama_model_is_recurrent(model_.get()) || llama_model_is_hybrid(model_.get());
  }
  bool grows() const noexcept { return ladder_.elastic(); }
  bool has_near_part() const noexcept { return ladder_.near().has_value(); }

  SpeedMeter& meter() noexcept { return meter_; }
  llama_context* context() const noexcept { return context_.get(); }
  llama_memory_t memory() const noexcept { return llama_get_memory(context_.get()); }
  const llama_model* llama() const noexcept { return model_.get(); }
  const Injector& injector() const noexcept { return *injector_; }

 private:
  void decode_together(std::span<const Reading> readings, std::span<const Chunk> chunks,
                       std::span<const std::size_t> members, const LogitObserver& observer);
  // Finds out where keys are stored, with one token.
  void find_keys();
  void check_near(const Ladder& ladder) const;
  KeyState key_state(std::size_t rung) const;
  void make_embedder(std::size_t tokens);

  // Inside a decode: whether the probabilities could be computed where the logits are.
  bool score_in_place(ggml_tensor* logits, std::span<const Token> targets);
  void score_on_host(std::span<const Token> targets, std::span<double> scores);

  Model facts_;
  LocalOptions options_;
  int vocabulary_;
  mutable std::once_flag texts_made_;
  mutable TokenTexts texts_;
  int ubatch_;
  std::unique_ptr<Injector> injector_;  // outlives the context
  LlamaPtr<llama_context> context_;
  LlamaPtr<llama_context> embedder_;   // once something was embedded; without a plan
  std::unique_ptr<KeyTurner> turner_;  // once a ladder that grows was used
  Workers workers_;
  Scoring scoring_ = Scoring::automatic;
  struct DeviceScorer;
  std::unique_ptr<DeviceScorer> device_scorer_;
  std::vector<float> probabilities_;
  std::size_t calls_in_place_ = 0;
  Ladder ladder_;
  // With a near part, per rung: the rotation of far keys.
  std::vector<RotarySetting> far_;
  std::vector<llama_seq_id> free_sequences_;
  SpeedMeter meter_;
};

// A timeline over one sequence of the cache. The model must outlive it.
//
// What is deterministic: an append is cut at multiples of the ubatch counted from where it begins,
// so the same calls on a fresh model give the same bits on the same machine with the same number of
// threads. Another cut, or other timelines in the cache, may move the last bits. Under a ladder
// that grows an append is also cut where a rung ends.
class LocalTimeline final : public Timeline {
 public:
  explicit LocalTimeline(LocalModel& model);
  ~LocalTimeline() override;
  LocalTimeline(const LocalTimeline&) = delete;
  LocalTimeline& operator=(const LocalTimeline&) = delete;

  std::int64_t length() const override { return std::int64_t(tokens_.size()); }
  std::size_t rung() const override { return past_->rung; }
  llama_seq_id sequence() const noexcept { return sequence_; }
  std::unique_ptr<Timeline> fork() override;
  void truncate(std::int64_t length) override;
  Generation generate(const GenerateOptions& options) override;
  std::vector<Token> tokens() const override { return tokens_; }
  void save(const std::filesystem::path& path) const override;

  // For read_together(): puts the keys on the rung of the next token and says what to compute. The
  // tokens must end on the rung they begin on.
  LocalModel::Chunk begin_shared(std::span<const Token> tokens);
  // After a decode: the tokens are part of the timeline.
  void keep(std::span<const Token> tokens, std::span<const std::int32_t> cells);

  // Into an empty timeline; in a unified cache under a ladder that grows, of a model that has no
  // other.
  void load(const std::filesystem::path& path, std::size_t rung);

 protected:
  std::vector<double> read(std::span<const Token> tokens, std::span<const std::size_t> wanted,
                           const LogitObserver& observer, bool scored) override;

 private:
  // The cached keys that a timeline may share with its forks: they are on one rung.
  struct Past {
    std::size_t rung = 0;
  };

  // Decodes one chunk, which begins with token `first` of the append; its last token is always
  // wanted, since not every architecture runs without any (chameleon).
  using Compute = std::function<void(std::size_t first, const LocalModel::Chunk& chunk)>;

  // Computes tokens chunk by chunk; the row of the last one becomes last_logits_. If a chunk fails
  // the timeline ends before it.
  void extend(const std::vector<Token>& tokens, const Compute& compute);
  // Puts the keys on the rung of this length before the next token is read.
  void climb(std::int64_t length);
  // Before the rung changes of keys that forks share: copies them, or computes them again.
  void leave_shared_keys();
  // Where its tokens lie if libllama has put them into the first cells, in order.
  void number_cells(std::size_t count);
  void drop_unkept();  // after a failed decode: what the cache may hold of it
  void catch_up();     // computes the timeline again if the cache does not hold it
  // Replaces what the timeline holds. If that fails it has these tokens, and catch_up() tries
  // again.
  void read_again(std::vector<Token> tokens);
  void forget();  // all, cache included
  // Makes last_logits_ those that follow the last token, computing it again if need be.
  void ensure_logits();
  // For load(): why libllama would abort, or take what cannot be.
  std::string trouble_with_cells(std::span<const std::uint8_t> state, std::size_t tokens) const;

  LocalModel& model_;
  llama_seq_id sequence_;
  std::vector<Token> tokens_;
  std::shared_ptr<Past> past_;
  std::vector<std::int32_t> cells_;  // under a ladder that grows: the cell of each token
  bool stale_ = false;               // the cache does not hold these tokens, or others too
  std::vector<float> last_logits_;   // empty: not known
};

}  // namespace mrrope::engine
