// SPDX-License-Identifier: Apache-2.0
#include "engine/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

[[noreturn]] void refuse_nan(std::int64_t position) {
  throw Error(ErrorKind::failed, cat("the engine computed NaN logits after position ", position),
              "try -fa off, -ctk f32 -ctv f32, or -ngl 0 to find out which part overflows");
}

}  // namespace

LocalTimeline::LocalTimeline(LocalModel& model) : model_(model), sequence_(model.take_sequence()) {}

LocalTimeline::~LocalTimeline() {
  llama_memory_seq_rm(model_.memory(), sequence_, -1, -1);
  model_.give_back(sequence_);
}

void LocalTimeline::keep_last(std::span<const float> row) {
  last_logits_.assign(row.begin(), row.end());
}

void LocalTimeline::extend(std::span<const Token> tokens, const Mark& mark, const Visit& visit) {
  model_.check_length(length() + static_cast<std::int64_t>(tokens.size()));
  const auto ubatch = static_cast<std::size_t>(model_.ubatch());
  std::vector<char> wanted(std::min(ubatch, tokens.size()));
  for (Chunk chunk; chunk.first < tokens.size(); chunk.first += chunk.count) {
    chunk.count = std::min(ubatch, tokens.size() - chunk.first);
    const bool last = chunk.first + chunk.count == tokens.size();
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const std::size_t index = chunk.first + i;
      wanted[i] = mark(index) || index + 1 == tokens.size() ? 1 : 0;
    }
    const std::span<const Token> part = tokens.subspan(chunk.first, chunk.count);
    last_logits_.clear();
    try {
      model_.decode(sequence_, part, length(), std::span(wanted).first(chunk.count));
    } catch (...) {
      // The cache may hold some of the chunk; the timeline does not.
      llama_memory_seq_rm(model_.memory(), sequence_, static_cast<llama_pos>(length()), -1);
      throw;
    }
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    if (last) keep_last(model_.row(chunk.count - 1));
    visit(chunk);
  }
}

void LocalTimeline::append(std::span<const Token> tokens) {
  extend(
      tokens, [](std::size_t) { return false; }, [](const Chunk&) {});
  if (!tokens.empty() && !top_two(last_logits_).valid) refuse_nan(length() - 1);
}

std::vector<double> LocalTimeline::append_scored(std::span<const Token> tokens) {
  std::vector<double> scores(tokens.size(), std::numeric_limits<double>::quiet_NaN());
  if (tokens.empty()) return scores;
  const std::int64_t start = length();
  if (start > 0) {
    ensure_logits();
    scores[0] = log_probability(last_logits_, static_cast<std::size_t>(tokens[0]));
    if (std::isnan(scores[0])) refuse_nan(start - 1);
  }
  extend(
      tokens, [](std::size_t) { return true; },
      [&](const Chunk& chunk) {
        const std::size_t rows =
            chunk.first + chunk.count == tokens.size() ? chunk.count - 1 : chunk.count;
        // libllama keeps wanted rows side by side, and is asked from this thread only.
        const std::span<const float> first = model_.row(0);
        model_.workers().run(rows, [&](std::size_t i) {
          const std::size_t next = chunk.first + i + 1;
          scores[next] = log_probability({first.data() + i * first.size(), first.size()},
                                         static_cast<std::size_t>(tokens[next]));
        });
        for (std::size_t i = 0; i < rows; ++i) {
          const std::size_t next = chunk.first + i + 1;
          if (std::isnan(scores[next])) refuse_nan(start + static_cast<std::int64_t>(next) - 1);
        }
      });
  return scores;
}

void LocalTimeline::append_observed(std::span<const Token> tokens,
                                    std::span<const std::size_t> wanted,
                                    const LogitObserver& observer) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] >= tokens.size() || (i > 0 && wanted[i] <= wanted[i - 1])) {
      throw Error(ErrorKind::usage,
                  cat("logits wanted after token ", wanted[i], " of ", tokens.size(),
                      ": the list must ascend and stay inside the appended tokens"));
    }
  }
  const std::int64_t start = length();
  std::size_t marked = 0;
  std::size_t seen = 0;
  extend(
      tokens,
      [&](std::size_t index) {
        const bool hit = marked < wanted.size() && wanted[marked] == index;
        if (hit) ++marked;
        return hit;
      },
      [&](const Chunk& chunk) {
        for (; seen < wanted.size() && wanted[seen] < chunk.first + chunk.count; ++seen) {
          const std::span<const float> row = model_.row(wanted[seen] - chunk.first);
          if (!top_two(row).valid) {
            refuse_nan(start + static_cast<std::int64_t>(wanted[seen]));
          }
          observer(wanted[seen], row);
        }
      });
}

std::unique_ptr<Timeline> LocalTimeline::fork() {
  auto other = std::make_unique<LocalTimeline>(model_);
  llama_memory_seq_cp(model_.memory(), sequence_, other->sequence_, -1, -1);
  other->tokens_ = tokens_;
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
    return;
  }
  std::vector<Token> kept(tokens_.begin(), tokens_.begin() + length);
  llama_memory_seq_rm(memory, sequence_, -1, -1);
  tokens_.clear();
  append(kept);
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
