// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

[[noreturn]] void refuse_nan(std::int64_t position) {
  throw NanLogits(cat("the engine computed NaN logits after position ", position),
                  "try -fa off, -ctk f32 -ctv f32, or -ngl 0 to find out which part overflows");
}

void check_wanted(std::span<const std::size_t> wanted, std::size_t count) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < count && (i == 0 || wanted[i] > wanted[i - 1])) continue;
    throw Error(ErrorKind::usage,
                cat("logits wanted after token ", wanted[i], " of ", count,
                    ": the list must ascend and stay inside the appended tokens"));
  }
}

}  // namespace

LocalTimeline::LocalTimeline(LocalModel& model)
    : model_(model), sequence_(model.take_sequence()), past_(std::make_shared<Past>()) {}

LocalTimeline::~LocalTimeline() {
  llama_memory_seq_rm(model_.memory(), sequence_, -1, -1);
  model_.give_back(sequence_);
}

void LocalTimeline::check_token(Token token) const {
  if (token >= 0 && token < model_.vocabulary()) return;
  throw Error(ErrorKind::usage,
              cat("token ", token, " is outside the vocabulary of ", model_.vocabulary()));
}

void LocalTimeline::climb(std::int64_t length) {
  const std::size_t rung = model_.rung_at(length);
  if (rung == past_->rung) return;
  if (!tokens_.empty() && past_.use_count() > 1) {
    // The others stay where they are.
    const std::vector<Token> again = tokens_;
    forget();
    append(again);
  }
  if (!cells_.empty()) model_.turn(cells_, past_->rung, rung);
  past_->rung = rung;
}

void LocalTimeline::keep(std::span<const Token> tokens, std::span<const std::int32_t> cells) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  cells_.insert(cells_.end(), cells.begin(), cells.end());
}

LocalModel::Chunk LocalTimeline::begin_shared(std::span<const Token> tokens) {
  const std::int64_t end = length() + static_cast<std::int64_t>(tokens.size());
  model_.check_length(end);
  climb(length() + 1);
  if (end > model_.end_of_rung(past_->rung)) {
    throw Error(ErrorKind::usage, cat("tokens ", length(), " to ", end, " lie on two rungs"));
  }
  last_logits_.clear();
  return {sequence_, tokens, length(), past_->rung};
}

void LocalTimeline::end_shared(std::span<const Token> tokens, std::span<const std::int32_t> cells) {
  keep(tokens, cells);
}

void LocalTimeline::forget() {
  llama_memory_seq_rm(model_.memory(), sequence_, -1, -1);
  tokens_.clear();
  cells_.clear();
  last_logits_.clear();
  past_ = std::make_shared<Past>();
}

void LocalTimeline::extend(std::span<const Token> tokens, const Compute& compute) {
  const std::int64_t end = length() + static_cast<std::int64_t>(tokens.size());
  model_.check_length(end);
  const auto ubatch = static_cast<std::size_t>(model_.ubatch());
  std::size_t cut = 0;  // chunks end here, whatever the rungs
  for (std::size_t first = 0; first < tokens.size();) {
    if (first == cut) cut = std::min(first + ubatch, tokens.size());
    std::size_t count = cut - first;
    climb(model_.climbs_last() ? end : length() + 1);
    const std::int64_t room = model_.end_of_rung(past_->rung) - length();
    count = std::min(count, static_cast<std::size_t>(room));
    last_logits_.clear();
    const std::span<const Token> part = tokens.subspan(first, count);
    try {
      compute(first, {sequence_, part, length(), past_->rung});
    } catch (...) {
      // The cache may hold some of the chunk; the timeline does not.
      llama_memory_seq_rm(model_.memory(), sequence_, static_cast<llama_pos>(length()), -1);
      throw;
    }
    keep(part, model_.cells());
    first += count;
    if (first == tokens.size()) {
      const std::span<const float> row = model_.row(count - 1);
      last_logits_.assign(row.begin(), row.end());
    }
  }
}

std::span<const float> LocalTimeline::step(Token token) {
  model_.check_length(length() + 1);
  climb(length() + 1);
  last_logits_.clear();
  const char wanted = 1;
  model_.decode({sequence_, {&token, 1}, length(), past_->rung}, {&wanted, 1});
  keep({&token, 1}, model_.cells());
  return model_.row(0);
}

void LocalTimeline::append(std::span<const Token> tokens) {
  extend(tokens, [&](std::size_t, const LocalModel::Chunk& chunk) {
    std::vector<char> wanted(chunk.tokens.size(), 0);
    wanted.back() = 1;
    model_.decode(chunk, wanted);
  });
  if (!tokens.empty() && !top_two(last_logits_).valid) refuse_nan(length() - 1);
}

std::vector<double> LocalTimeline::append_scored(std::span<const Token> tokens) {
  return append_scored_observed(tokens, {}, {});
}

std::vector<double> LocalTimeline::append_scored_observed(std::span<const Token> tokens,
                                                          std::span<const std::size_t> wanted,
                                                          const LogitObserver& observer) {
  check_wanted(wanted, tokens.size());
  std::size_t next = 0;
  std::vector<double> scores(tokens.size(), std::numeric_limits<double>::quiet_NaN());
  if (tokens.empty()) return scores;
  if (length() > 0) {
    ensure_logits();
    check_token(tokens[0]);
    scores[0] = log_probability(last_logits_, static_cast<std::size_t>(tokens[0]));
    if (std::isnan(scores[0])) refuse_nan(length() - 1);
  }
  extend(tokens, [&](std::size_t first, const LocalModel::Chunk& chunk) {
    // What follows each token of the chunk, which ends in the next one; the very last is followed
    // by nothing known.
    const std::size_t rows = std::min(chunk.tokens.size(), tokens.size() - first - 1);
    const std::span<const Token> targets = tokens.subspan(first + 1, rows);
    for (const Token target : targets) check_token(target);
    const std::span<double> part = std::span(scores).subspan(first + 1, rows);
    model_.decode_scored(chunk, targets, part);
    for (std::size_t i = 0; i < rows; ++i) {
      if (std::isnan(part[i])) refuse_nan(length() + static_cast<std::int64_t>(i));
    }
    for (; next < wanted.size() && wanted[next] < first + chunk.tokens.size(); ++next) {
      const std::size_t index = wanted[next] - first;
      const std::span<const float> row = model_.row(index);
      if (!top_two(row).valid) refuse_nan(length() + static_cast<std::int64_t>(index));
      observer(wanted[next], row);
    }
  });
  if (!top_two(last_logits_).valid) refuse_nan(length() - 1);
  return scores;
}

void LocalTimeline::append_observed(std::span<const Token> tokens,
                                    std::span<const std::size_t> wanted,
                                    const LogitObserver& observer) {
  check_wanted(wanted, tokens.size());
  std::size_t next = 0;
  extend(tokens, [&](std::size_t first, const LocalModel::Chunk& chunk) {
    std::vector<char> flags(chunk.tokens.size(), 0);
    std::size_t end = next;
    for (; end < wanted.size() && wanted[end] < first + chunk.tokens.size(); ++end) {
      flags[wanted[end] - first] = 1;
    }
    flags.back() = 1;
    model_.decode(chunk, flags);
    for (; next < end; ++next) {
      const std::size_t index = wanted[next] - first;
      const std::span<const float> row = model_.row(index);
      if (!top_two(row).valid) refuse_nan(length() + static_cast<std::int64_t>(index));
      observer(wanted[next], row);
    }
  });
}

std::unique_ptr<Timeline> LocalTimeline::fork() {
  auto other = std::make_unique<LocalTimeline>(model_);
  llama_memory_seq_cp(model_.memory(), sequence_, other->sequence_, -1, -1);
  other->tokens_ = tokens_;
  other->past_ = past_;
  other->cells_ = cells_;
  other->last_logits_ = last_logits_;
  return other;
}

void LocalTimeline::truncate(std::int64_t length) {
  if (length < 0 || length > this->length()) {
    throw Error(ErrorKind::usage,
                cat("cannot cut a timeline of ", this->length(), " tokens to ", length));
  }
  if (length == this->length()) return;
  last_logits_.clear();
  const llama_memory_t memory = model_.memory();
  // A cache of sliding windows has forgotten what lay before its window; a state cannot go back.
  const std::int64_t window = llama_model_n_swa(model_.llama());
  const std::int64_t oldest = llama_memory_seq_pos_min(memory, sequence_);
  const bool reaches_back = window == 0 || oldest <= std::max<std::int64_t>(0, length - window);
  if (length > 0 && reaches_back &&
      llama_memory_seq_rm(memory, sequence_, static_cast<llama_pos>(length), -1)) {
    tokens_.resize(static_cast<std::size_t>(length));
    if (!cells_.empty()) cells_.resize(tokens_.size());
    return;
  }
  const std::vector<Token> kept(tokens_.begin(), tokens_.begin() + length);
  forget();
  append(kept);
}

void LocalTimeline::save(const std::filesystem::path& path) const {
  take_llama_log();
  if (llama_state_seq_save_file(model_.context(), path.c_str(), sequence_, tokens_.data(),
                                tokens_.size()) == 0) {
    throw Error(ErrorKind::failed,
                cat("cannot save the sequence to ", path.string(), ": ", take_llama_log()));
  }
}

void LocalTimeline::load(const std::filesystem::path& path, std::size_t rung) {
  take_llama_log();
  std::vector<Token> tokens(static_cast<std::size_t>(model_.longest()));
  std::size_t count = 0;
  if (llama_state_seq_load_file(model_.context(), path.c_str(), sequence_, tokens.data(),
                                tokens.size(), &count) == 0) {
    throw Error(ErrorKind::corrupt,
                cat("cannot restore a sequence from ", path.string(), ": ", take_llama_log()),
                "begin anew without it, or give a larger --ctx");
  }
  tokens.resize(count);
  for (const Token token : tokens) check_token(token);
  const auto end = llama_memory_seq_pos_max(model_.memory(), sequence_);
  if (end + 1 != static_cast<llama_pos>(count)) {
    throw Error(ErrorKind::corrupt,
                cat(path.string(), " holds ", count, " tokens and a cache of ", end + 1),
                "begin anew without it");
  }
  tokens_ = std::move(tokens);
  past_->rung = rung;
  if (!model_.grows()) return;
  // libllama puts a restored sequence into the first free cells, in order: all are free.
  cells_.resize(count);
  std::iota(cells_.begin(), cells_.end(), 0);
}

void LocalTimeline::ensure_logits() {
  if (!last_logits_.empty()) return;
  if (tokens_.empty()) {
    throw Error(ErrorKind::usage, "an empty timeline predicts nothing", "append a token first");
  }
  const Token last = tokens_.back();
  truncate(length() - 1);
  append(std::span(&last, 1));
}

}  // namespace mrrope
