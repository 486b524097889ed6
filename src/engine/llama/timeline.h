// SPDX-License-Identifier: Apache-2.0
// A timeline over one sequence of the cache. The model must outlive it.
//
// What is deterministic: an append is cut at multiples of the ubatch counted from where it begins,
// so the same calls on a fresh model give the same bits on the same machine with the same number of
// threads. Another cut, or other timelines in the cache, may move the last bits. Under a ladder
// that grows an append is also cut where a rung ends.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/llama/local_model.h"

namespace mrrope::engine {

class LocalTimeline final : public Timeline {
 public:
  explicit LocalTimeline(LocalModel& model);
  ~LocalTimeline() override;
  LocalTimeline(const LocalTimeline&) = delete;
  LocalTimeline& operator=(const LocalTimeline&) = delete;

  std::int64_t length() const override { return static_cast<std::int64_t>(tokens_.size()); }
  std::size_t rung() const override { return past_->rung; }
  llama_seq_id sequence() const noexcept { return sequence_; }
  void append(std::span<const Token> tokens) override;
  std::vector<double> append_scored(std::span<const Token> tokens) override;
  void append_observed(std::span<const Token> tokens, std::span<const std::size_t> wanted,
                       const LogitObserver& observer) override;
  std::vector<double> append_scored_observed(std::span<const Token> tokens,
                                             std::span<const std::size_t> wanted,
                                             const LogitObserver& observer) override;
  std::unique_ptr<Timeline> fork() override;
  void truncate(std::int64_t length) override;
  Generation generate(const GenerateOptions& options) override;
  std::vector<Token> tokens() const override { return tokens_; }
  void save(const std::filesystem::path& path) const override;

  // For a decode of several timelines (LocalModel::read_together): puts the keys on the rung of the
  // next token and says what to compute; then takes what was computed. The tokens must end on the
  // rung they begin on.
  LocalModel::Chunk begin_shared(std::span<const Token> tokens);
  void end_shared(std::span<const Token> tokens, std::span<const std::int32_t> cells);

  // Into an empty timeline; in a unified cache under a ladder that grows, of a model that has no
  // other.
  void load(const std::filesystem::path& path, std::size_t rung);

 private:
  // The cached keys that a timeline may share with its forks: they are on one rung.
  struct Past {
    std::size_t rung = 0;
  };

  // Decodes one chunk; its last token is always wanted, since not every architecture runs without
  // any (chameleon). first: the index of the chunk's first token within the append.
  using Compute = std::function<void(std::size_t first, const LocalModel::Chunk& chunk)>;

  // Computes tokens chunk by chunk; the row of the last one becomes last_logits_. If a chunk fails
  // the timeline ends before it.
  void extend(const std::vector<Token>& tokens, const Compute& compute);
  // Puts the keys on the rung of this length before the next token is read.
  void climb(std::int64_t length);
  // Before the rung changes of keys that forks share: copies them, or computes them again.
  void leave_shared_keys();
  // After a decode: the tokens are part of the timeline.
  void keep(std::span<const Token> tokens, std::span<const std::int32_t> cells);
  // Where its tokens lie if libllama has put them into the first cells, in order.
  void number_cells(std::size_t count);
  // After a failed decode: the cache may hold some of its tokens, the timeline does not.
  void drop_unkept();
  // Computes the timeline again if the cache does not hold it.
  void catch_up();
  // Replaces what the timeline holds. If that fails it has these tokens, and catch_up() tries
  // again.
  void read_again(std::vector<Token> tokens);
  // Empties the timeline, cache included.
  void forget();
  // Computes one more token without keeping its logits: they are valid until the next decode.
  std::span<const float> step(Token token);
  // Makes last_logits_ those that follow the last token, computing it again if need be.
  void ensure_logits();
  void check_token(Token token) const;
  // For load(): throws where libllama would abort. The timeline is empty before and after.
  void check_recurrent_state(std::span<const std::uint8_t> state, std::span<const Token> tokens);
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
