// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/files/source.h"
#include "base/text.h"
#include "base/utf8.h"
#include "engine/llama/choose.h"
#include "engine/llama/local_model.h"

namespace mrrope::engine {

namespace {

[[noreturn]] void refuse_nan(std::int64_t position) {
  throw NanLogits(cat("the engine computed NaN logits after position ", position),
                  "try -fa off, -ctk f32 -ctv f32, or -ngl 0 to find the part that overflows");
}

// In memory a state begins with a mark and a sequence number.
constexpr std::size_t kStateMark = 2 * sizeof(std::uint32_t);

// By token of an append: whether an observer sees the logits after it.
std::vector<char> flags_of(std::span<const std::size_t> wanted, std::size_t count) {
  std::vector<char> flags(count, 0);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    refuse_if(wanted[i] >= count || (i > 0 && wanted[i] <= wanted[i - 1]),
              cat("logits wanted after token ", wanted[i], " of ", count,
                  ": the list must ascend and stay inside the appended tokens"));
    flags[wanted[i]] = 1;
  }
  return flags;
}

// After the decode of a chunk, which begins with token `first` of the append.
void show(const LocalModel& model, const LocalModel::Chunk& chunk, std::size_t first,
          const std::vector<char>& flags, const LogitObserver& observer) {
  for (std::size_t i = 0; i < chunk.tokens.size(); ++i) {
    if (flags[first + i] == 0) continue;
    const std::span<const float> row = model.row(i);
    if (!top_two(row).valid) refuse_nan(chunk.position + std::int64_t(i));
    observer(first + i, row);
  }
}

// A whole file in memory; changes stay there. Throws Error (failed).
struct MappedFile {
  void* data = MAP_FAILED;
  std::size_t size = 0;

  explicit MappedFile(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about {};
    const bool opened = file >= 0 && ::fstat(file, &about) == 0;
    size = std::size_t(about.st_size);
    if (size > 0) data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    const std::string why = opened && size == 0 ? "it is empty" : strerror(errno);
    if (file >= 0) ::close(file);
    fail_if(data == MAP_FAILED, cat("cannot read ", path.string(), ": ", why),
            "give another --session");
  }
  ~MappedFile() { ::munmap(data, size); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
};

}  // namespace

LocalTimeline::LocalTimeline(LocalModel& model)
    : model_(model), sequence_(model.take_sequence()), past_(std::make_shared<Past>()) {}

LocalTimeline::~LocalTimeline() {
  llama_memory_seq_rm(model_.memory(), sequence_, -1, -1);
  model_.give_back(sequence_);
}

void LocalTimeline::climb(std::int64_t length) {
  catch_up();
  const std::size_t rung = model_.rung_at(length);
  if (rung == past_->rung) return;
  if (past_.use_count() > 1) leave_shared_keys();
  if (!cells_.empty()) model_.turn(cells_, past_->rung, rung);
  past_->rung = rung;
}

// The others stay where they are.
void LocalTimeline::leave_shared_keys() {
  if (tokens_.empty()) {
    past_ = std::make_shared<Past>();
    return;
  }
  if (auto cells = model_.copy_cells(sequence_, cells_)) {
    past_ = std::make_shared<Past>(*past_);
    cells_ = std::move(*cells);
    return;
  }
  read_again(tokens_);
}

void LocalTimeline::keep(std::span<const Token> tokens, std::span<const std::int32_t> cells) {
  if (!model_.unified() && !cells.empty() &&
      cells.front() != model_.first_cell(sequence_) + std::int32_t(length())) {
    fail(cat("libllama keeps token ", length(), " of sequence ", sequence_, " in cell ",
             cells.front()));
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  cells_.insert(cells_.end(), cells.begin(), cells.end());
}

void LocalTimeline::number_cells(std::size_t count) {
  cells_.resize(count);
  std::iota(cells_.begin(), cells_.end(), model_.unified() ? 0 : model_.first_cell(sequence_));
}

LocalModel::Chunk LocalTimeline::begin_shared(std::span<const Token> tokens) {
  const std::int64_t end = length() + std::int64_t(tokens.size());
  model_.check_length(end);
  climb(length() + 1);
  refuse_if(end > model_.end_of_rung(past_->rung),
            cat("tokens ", length(), " to ", end, " are on two rungs"));
  last_logits_.clear();
  return {sequence_, tokens, length(), past_->rung};
}

void LocalTimeline::drop_unkept() {
  // A recurrent state cannot go back.
  stale_ = !llama_memory_seq_rm(model_.memory(), sequence_, llama_pos(length()), -1);
}

void LocalTimeline::catch_up() {
  if (stale_) read_again(tokens_);
}

void LocalTimeline::read_again(std::vector<Token> tokens) {
  forget();
  try {
    append(tokens);
  } catch (...) {
    forget();
    tokens_ = std::move(tokens);
    stale_ = true;
    throw;
  }
}

void LocalTimeline::forget() {
  llama_memory_seq_rm(model_.memory(), sequence_, -1, -1);
  tokens_.clear();
  cells_.clear();
  last_logits_.clear();
  past_ = std::make_shared<Past>();
  stale_ = false;
}

void LocalTimeline::extend(const std::vector<Token>& tokens, const Compute& compute) {
  model_.check_length(length() + std::int64_t(tokens.size()));
  const std::int64_t begin = length();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t first = 0; first < tokens.size();) {
    climb(length() + 1);
    const std::int64_t room = model_.end_of_rung(past_->rung) - length();
    const std::size_t count = std::min({model_.batch(), tokens.size() - first, std::size_t(room)});
    last_logits_.clear();
    const std::span<const Token> part = std::span(tokens).subspan(first, count);
    try {
      compute(first, {sequence_, part, length(), past_->rung});
    } catch (...) {
      drop_unkept();
      throw;
    }
    keep(part, model_.cells());
    first += count;
    if (first == tokens.size()) {
      const std::span<const float> row = model_.row(count - 1);
      last_logits_.assign(row.begin(), row.end());
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  model_.meter().add(begin, length() - begin, took.count());
}

std::vector<double> LocalTimeline::read(std::span<const Token> given,
                                        std::span<const std::size_t> wanted,
                                        const LogitObserver& observer, bool scored) {
  const std::vector<Token> tokens(given.begin(), given.end());
  const std::vector<char> flags = flags_of(wanted, tokens.size());
  std::vector<double> scores(scored ? tokens.size() : 0, std::numeric_limits<double>::quiet_NaN());
  if (tokens.empty()) return scores;
  if (scored && length() > 0) {
    ensure_logits();
    model_.check_token(tokens[0]);
    scores[0] = log_probability(last_logits_, std::size_t(tokens[0]));
    if (std::isnan(scores[0])) refuse_nan(length() - 1);
  }
  extend(tokens, [&](std::size_t first, const LocalModel::Chunk& chunk) {
    if (scored) {
      // What follows each token of the chunk, which ends in the next one; the very last is followed
      // by nothing known.
      const std::size_t rows = std::min(chunk.tokens.size(), tokens.size() - first - 1);
      const std::span<const Token> targets = std::span(tokens).subspan(first + 1, rows);
      for (const Token target : targets) model_.check_token(target);
      const std::span<double> part = std::span(scores).subspan(first + 1, rows);
      model_.decode_scored(chunk, targets, part);
      for (std::size_t i = 0; i < rows; ++i) {
        if (std::isnan(part[i])) refuse_nan(length() + std::int64_t(i));
      }
    } else {
      const auto begin = flags.begin() + std::ptrdiff_t(first);
      std::vector<char> own(begin, begin + std::ptrdiff_t(chunk.tokens.size()));
      own.back() = 1;
      model_.decode(chunk, own);
    }
    show(model_, chunk, first, flags, observer);
  });
  // An observer has seen those that matter.
  if ((scored || !observer) && !top_two(last_logits_).valid) refuse_nan(length() - 1);
  return scores;
}

std::unique_ptr<Timeline> LocalTimeline::fork() {
  catch_up();
  auto other = std::make_unique<LocalTimeline>(model_);
  other->tokens_ = tokens_;
  if (model_.unified()) {
    llama_memory_seq_cp(model_.memory(), sequence_, other->sequence_, -1, -1);
    other->past_ = past_;
    other->cells_ = cells_;
  } else {
    model_.copy_sequence(sequence_, other->sequence_);
    *other->past_ = *past_;
    other->number_cells(cells_.size());
  }
  other->last_logits_ = last_logits_;
  return other;
}

void LocalTimeline::truncate(std::int64_t length) {
  refuse_if(length < 0 || length > this->length(),
            cat("cannot truncate ", this->length(), " tokens to ", length));
  if (length == this->length()) return;
  last_logits_.clear();
  const llama_memory_t memory = model_.memory();
  // A cache of sliding windows has dropped what was before its window; a state cannot go back.
  const std::int64_t window = llama_model_n_swa(model_.llama());
  const std::int64_t oldest = llama_memory_seq_pos_min(memory, sequence_);
  // Keys that were turned and turned back would no longer be those of the untouched model.
  const bool exact = !model_.has_near_part() || past_->rung == 0 || model_.rung_at(length) > 0;
  const bool reaches_back =
      exact && (window == 0 || oldest <= std::max<std::int64_t>(0, length - window));
  if (length > 0 && reaches_back && llama_memory_seq_rm(memory, sequence_, llama_pos(length), -1)) {
    tokens_.resize(std::size_t(length));
    if (!cells_.empty()) cells_.resize(tokens_.size());
    return;
  }
  read_again({tokens_.begin(), tokens_.begin() + length});
}

Generation LocalTimeline::generate(const GenerateOptions& options) {
  Generation result;
  TextStream stream(options.stop);
  Chooser chooser(options.sampling, model_);
  chooser.read(tokens_);
  float smallest_gap = std::numeric_limits<float>::infinity();
  result.finish = "length";
  const std::int64_t room = model_.longest() - length();
  const auto most = std::min<std::int64_t>(options.max_tokens, room);
  ensure_logits();
  while (std::int64_t(result.tokens.size()) < most) {
    const auto [token, gap] = chooser.choose(last_logits_, length() - 1);
    smallest_gap = std::min(smallest_gap, gap);
    if (model_.ends_text(token)) {
      result.finish = "stop";
      break;
    }
    result.tokens.push_back(token);
    extend({token}, [&](std::size_t, const LocalModel::Chunk& chunk) {
      const char wanted = 1;
      model_.decode(chunk, {&wanted, 1});
    });
    const std::string fresh = stream.add(model_.piece(token));
    result.text += fresh;
    if (!fresh.empty() && options.on_text && !options.on_text(fresh)) {
      result.finish = "cancelled";
      break;
    }
    if (stream.stopped()) {
      result.finish = "stop";
      break;
    }
  }
  const std::string rest = stream.finish();
  result.text += rest;
  if (!rest.empty() && options.on_text && result.finish != "cancelled") options.on_text(rest);
  if (chooser.greedy() && std::isfinite(smallest_gap)) result.smallest_gap = smallest_gap;
  return result;
}

void LocalTimeline::save(const std::filesystem::path& path) const {
  fail_if(stale_, "a sequence whose last tokens failed cannot be saved", "continue it first");
  // Restored cells are taken to lie in the order of their positions.
  unsupported_if(!std::ranges::is_sorted(cells_),
                 "the sequence lies scattered in a cache that it shares with others",
                 "give --no-kv-unified");
  take_llama_log();
  if (llama_state_seq_save_file(model_.context(), path.c_str(), sequence_, tokens_.data(),
                                tokens_.size()) == 0) {
    fail(cat("cannot save the sequence to ", path.string(), ": ", take_llama_log()));
  }
}

// libllama takes the positions of cells as they are, and never removes one at a negative position:
// all that are read later would attend to it. Returns why a state cannot be that of so many tokens.
std::string LocalTimeline::trouble_with_cells(std::span<const std::uint8_t> state,
                                              std::size_t tokens) const try {
  const std::size_t streams = model_.unified() ? 1 : std::size_t(model_.timelines());
  char text[64];
  llama_model_meta_val_str(model_.llama(), "general.architecture", text, sizeof text);
  const std::string latent = cat(text, ".attention.key_length_mla");
  const bool keys_only =
      llama_model_meta_val_str(model_.llama(), latent.c_str(), text, sizeof text) > 0;
  const auto rope = llama_model_rope_type(model_.llama());
  const bool planar = rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE;
  const auto size = [&](llama_state_seq_flags flags) {
    return llama_state_seq_get_size_ext(model_.context(), sequence_, flags);
  };
  // Of an empty sequence every cache says only that its streams have no cells. Recurrent states
  // come last.
  const std::size_t after =
      model_.recurrent() ? size(LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) : kStateMark;
  const std::size_t caches = (size(0) - after) / (4 * (1 + streams));
  const Source source = Source::memory(std::as_bytes(state), "the state");
  Reader reader(source);
  const auto number = [&] { return std::size_t(reader.u32("a number")); };
  const auto skip_rows = [&](std::uint64_t count, std::uint64_t bytes) {
    const std::uint64_t most = reader.remaining() + 1;  // the product may not fit
    reader.skip(bytes > 0 && count > most / bytes ? most : count * bytes, "a layer");
  };
  for (std::size_t cache = 0; cache < caches; ++cache) {
    if (number() != streams) return "it is of another number of sequences";
    std::size_t cells = 0;
    for (std::size_t stream = 0; stream < streams; ++stream) {
      const std::size_t own = number();
      if (own == 0) continue;
      if (cells > 0) return "it has cells of several sequences";
      cells = own;
      // A sliding window keeps the last ones only.
      if (cells > tokens || (cache == 0 && cells < tokens)) return "it has other cells than tokens";
      std::vector<bool> seen(cells);
      for (std::size_t cell = 0; cell < cells; ++cell) {
        const auto position = std::int32_t(number());
        const std::int64_t index = position - std::int64_t(tokens - cells);
        if (index < 0 || index >= std::int64_t(cells) || seen[std::size_t(index)]) {
          return cat("a cell is at position ", position);
        }
        seen[std::size_t(index)] = true;
        if (number() != 1) return "a cell is of several sequences";
        if (planar) reader.skip(3 * sizeof(std::int32_t), "a position");
        number();  // the sequence it was
      }
      if (cache + 1 == caches && stream + 1 == streams && !model_.recurrent()) return {};
      const bool turned = number() != 0;  // values by row, not by cell
      const std::size_t layers = number();
      for (std::size_t i = 0; i < (keys_only ? 1 : 2) * layers; ++i) {
        number();  // type
        if (turned && i >= layers) {
          const std::size_t bytes = number();
          skip_rows(cells * number(), bytes);
        } else {
          skip_rows(cells, reader.u64("a size"));
        }
      }
    }
    if (cache == 0 && cells < tokens) return "it has fewer cells than tokens";
  }
  if (!model_.recurrent()) return {};
  // libllama asserts that a sequence has one recurrent cell: its position, and no sequences.
  const std::size_t states = number();
  if (states != (tokens > 0 ? 1 : 0)) return cat("it has ", states, " recurrent states");
  if (states > 0 && (number() != tokens - 1 || number() != 0)) {
    return "its recurrent state is of another position";
  }
  return {};
} catch (const Error& error) {
  return error.what();
}

void LocalTimeline::load(const std::filesystem::path& path, std::size_t rung) {
  take_llama_log();
  const auto refuse = [&](const std::string& why) {
    throw Error(
        ErrorKind::corrupt, cat("cannot restore a sequence from ", path.string(), ": ", why),
        "give the flags it was saved with (-fa, -ub), a larger --ctx, or another --session");
  };
  // Not through libllama's own reader of files, which aborts on a file that ends early.
  const MappedFile file(path);
  std::span<std::uint8_t> rest(static_cast<std::uint8_t*>(file.data), file.size);
  const auto number = [&](std::size_t index) {
    std::uint32_t value = 0;
    std::memcpy(&value, rest.data() + index * sizeof value, sizeof value);
    return value;
  };
  constexpr std::size_t kHead = 3 * sizeof(std::uint32_t);
  if (rest.size() < kHead || number(0) != LLAMA_STATE_SEQ_MAGIC ||
      number(1) != LLAMA_STATE_SEQ_VERSION) {
    refuse("it was not saved by this version of libllama");
  }
  const std::size_t count = number(2);
  rest = rest.subspan(kHead);
  if (count > rest.size() / sizeof(Token)) refuse("it ends early");
  if (std::int64_t(count) > model_.longest()) {
    refuse(cat(count, " tokens do not fit in a context of ", model_.longest()));
  }
  std::vector<Token> tokens(count);
  if (count > 0) std::memcpy(tokens.data(), rest.data(), count * sizeof(Token));
  rest = rest.subspan(count * sizeof(Token));
  for (const Token token : tokens) {
    if (token < 0 || token >= model_.vocabulary()) {
      refuse(cat("token ", token, " is outside the vocabulary of ", model_.vocabulary()));
    }
  }
  // The mark and the number are those of an empty sequence. They take the place of what was read
  // last.
  if (const std::string why = trouble_with_cells(rest, count); !why.empty()) refuse(why);
  std::vector<std::uint8_t> empty(llama_state_seq_get_size(model_.context(), sequence_));
  llama_state_seq_get_data(model_.context(), empty.data(), empty.size(), sequence_);
  std::uint8_t* const state = rest.data() - kStateMark;
  std::memcpy(state, empty.data(), kStateMark);
  if (llama_state_seq_set_data(model_.context(), state, rest.size() + kStateMark, sequence_) == 0) {
    refuse(take_llama_log());
  }
  const auto begin = llama_memory_seq_pos_min(model_.memory(), sequence_);
  const auto end = llama_memory_seq_pos_max(model_.memory(), sequence_);
  if (end + 1 != llama_pos(count) || (count > 0 && begin < 0)) {
    llama_memory_seq_rm(model_.memory(), sequence_, -1, -1);
    throw Error(ErrorKind::corrupt,
                cat(path.string(), " has ", count, " tokens and a cache of ", end + 1),
                "delete it to start again");
  }
  tokens_ = std::move(tokens);
  past_->rung = rung;
  // libllama puts a restored sequence into the first free cells, in order: all are free.
  if (model_.grows()) number_cells(count);
}

void LocalTimeline::ensure_logits() {
  if (!last_logits_.empty()) return;
  refuse_if(tokens_.empty(), "there is no token to predict from", "append a token first");
  catch_up();
  if (!last_logits_.empty()) return;
  const Token last = tokens_.back();
  truncate(length() - 1);
  append(std::span(&last, 1));
}

}  // namespace mrrope::engine
