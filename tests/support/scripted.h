// SPDX-License-Identifier: Apache-2.0
// A language model without weights, for tests: byte tokens, and logits that are a pure function of
// (seed, the numbers of the plan in force, the last tokens). It forks, truncates and fails as a
// real one may, and counts what it computed: it reads the caller's tokens again after the observers
// ran, climbs the rungs of its ladder, and a call that fails in the middle leaves the timeline as
// it was.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/timeline_model.h"

namespace mrrope {

struct ScriptedOptions {
  std::uint64_t seed = 1;
  std::int64_t train_length = 64;
  std::int64_t context = 4096;  // of each timeline
  bool has_bos = true;

  // The logits that follow this position (0-based) and every later one are NaN, under plans of
  // nan_method only where that is set.
  std::optional<std::int64_t> nan_at{};
  std::string nan_method{};
  // After this position every token but the first of the vocabulary has probability 0, under plans
  // of certain_method only where that is set.
  std::optional<std::int64_t> certain_at{};
  std::string certain_method{};
  // The computation of this token (1-based, counted over the life of the model) fails.
  std::optional<std::int64_t> fail_at{};
  // A text that ends in `question` is continued with `answer` and the end of text.
  std::string question{};
  std::string answer{};
  // Answers every prompt, given as text with ^ for BOS; what is said does not become part of the
  // timeline.
  std::function<std::string(const std::string& prompt)> reader{};
};

class ScriptedModel : public TimelineModel {
 public:
  static constexpr Token kBos = 256;
  static constexpr Token kEnd = 257;

  explicit ScriptedModel(const ScriptedOptions& options);

  // Tokens computed so far by all timelines.
  std::int64_t computed() const noexcept { return *computed_; }

  const Model& facts() const override { return facts_; }
  std::string description() const override;
  std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const override;
  std::string detokenize(std::span<const Token> tokens) const override;
  std::optional<Token> bos() const override;
  int vocabulary() const override { return 258; }
  std::string apply_chat_template(std::span<const ChatMessage> messages) const override;
  bool tokenizer_is_remote() const override { return false; }
  std::optional<ChatTemplate> chat_template() const override { return std::nullopt; }
  std::string piece(Token token) const override { return detokenize({&token, 1}); }
  bool ends_text(Token token) const override { return token == kEnd; }
  void use(const Ladder& ladder) override { ladder_ = ladder; }
  std::int64_t context_length() const override { return options_.context; }
  std::unique_ptr<Timeline> timeline() override;
  std::size_t batch() const override { return 512; }
  std::unique_ptr<Timeline> restore(const std::filesystem::path& path, std::size_t rung) override;

 private:
  ScriptedOptions options_;
  Model facts_;
  Ladder ladder_;
  std::shared_ptr<std::int64_t> computed_;
};

}  // namespace mrrope
