// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/local_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "engine/llama/choose.h"
#include "engine/llama/devices.h"
#include "formats/facts.h"

namespace mrrope::engine {

// Probabilities of tokens computed where the logits are, by a small ggml graph of our own: one
// number per token comes back instead of one per token and word of the vocabulary.
struct LocalModel::DeviceScorer {
  LlamaPtr<ggml_backend> backend;
  LlamaPtr<ggml_gallocr> allocator;

  struct Graph {
    LlamaPtr<ggml_context> context;
    ggml_cgraph* graph = nullptr;
    ggml_tensor* rows = nullptr;
    ggml_tensor* targets = nullptr;
    ggml_tensor* result = nullptr;
  };

  // Row i of the softmax starts at element i * vocabulary, so that a probability is a row of one.
  // The rows are a tensor of their own: a view would bring the model's whole graph along.
  static Graph build(std::int64_t vocabulary, std::size_t count) {
    Graph g;
    g.context.reset(ggml_init({8 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
    ggml_context* c = g.context.get();
    const auto n = std::int64_t(count);
    g.rows = ggml_new_tensor_2d(c, GGML_TYPE_F32, vocabulary, n);
    g.targets = ggml_new_tensor_1d(c, GGML_TYPE_I32, n);
    ggml_set_input(g.targets);
    ggml_tensor* probabilities = ggml_soft_max(c, g.rows);
    g.result = ggml_get_rows(c, ggml_reshape_2d(c, probabilities, 1, vocabulary * n), g.targets);
    ggml_set_output(g.result);
    g.graph = ggml_new_graph(c);
    ggml_build_forward_expand(g.graph, g.result);
    return g;
  }

  // For logits in this kind of memory. False where its device lacks what is needed.
  bool open(ggml_backend_buffer_type_t type) {
    const ggml_backend_dev_t device = device_of(type);
    if (device != nullptr) backend.reset(ggml_backend_dev_init(device, nullptr));
    if (!backend) return false;
    allocator.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.get())));
    const Graph g = build(64, 2);  // what it can do does not depend on sizes
    for (int i = 0; i < ggml_graph_n_nodes(g.graph); ++i) {
      if (!ggml_backend_supports_op(backend.get(), ggml_graph_node(g.graph, i))) return false;
    }
    return true;
  }

  // softmax(row i of logits)[targets[i]] in float; NaN in a row gives NaN or 0. logits is
  // [vocabulary, rows], F32, computed; there is a target for each of the first rows. Waits for the
  // result. False: the device failed.
  bool score(ggml_tensor* logits, std::span<const Token> targets, std::span<float> result) {
    constexpr std::size_t kRows = 64;  // at once: the scratch memory is as many rows
    for (std::size_t first = 0; first < targets.size(); first += kRows) {
      const std::size_t count = std::min(kRows, targets.size() - first);
      const Graph g = build(logits->ne[0], count);
      char* data = static_cast<char*>(logits->data) + first * logits->nb[1];
      if (ggml_backend_tensor_alloc(buffer_of(logits), g.rows, data) != GGML_STATUS_SUCCESS ||
          !ggml_gallocr_alloc_graph(allocator.get(), g.graph)) {
        return false;
      }
      std::vector<std::int32_t> elements(count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto row = std::int64_t(i) * logits->ne[0];
        elements[i] = std::int32_t(row) + targets[first + i];
      }
      ggml_backend_tensor_set(g.targets, elements.data(), 0, count * sizeof(std::int32_t));
      if (ggml_backend_graph_compute(backend.get(), g.graph) != GGML_STATUS_SUCCESS) return false;
      ggml_backend_tensor_get(g.result, result.data() + first, 0, count * sizeof(float));
    }
    return true;
  }
};

LocalModel::LocalModel(LlamaPtr<llama_model> model, Model facts, const LocalOptions& options)
    : WithTokenizer(std::move(model), facts.path),
      facts_(std::move(facts)),
      options_(options),
      vocabulary_(llama_vocab_n_tokens(vocab_)),
      ubatch_(options.ubatch),
      workers_(thread_count(options)) {
  llama_context_params params =
      context_params(options, options.context > 0 ? options.context : facts_.geometry.train_length);
  params.n_seq_max = std::uint32_t(options.timelines);
  params.swa_full = keeps_windows_whole(options);
  injector_ = std::make_unique<Injector>(probe_rotations(model_.get(), params));
  check_rotations(injector_->rotations(), facts_);
  params.cb_eval = Injector::callback;
  params.cb_eval_user_data = injector_.get();
  context_ = make_context(model_.get(), params);
  ubatch_ = int(llama_n_ubatch(context_.get()));
  for (int i = options.timelines; i-- > 0;) free_sequences_.push_back(i);
  use(make_ladder(make_plan(facts_.geometry, {}), context_length()));
}

LocalModel::~LocalModel() {
  const auto speed = options_.keep_speed ? meter_.speed(facts_) : std::nullopt;
  if (speed) engine::keep_speed(facts_, options_, *speed);
}

void LocalModel::use(const Ladder& ladder) {
  refuse_if(int(free_sequences_.size()) != options_.timelines,
            "a model cannot change its plan while it has timelines");
  const Plan& plan = ladder.rungs().front().plan;
  check_made_for(plan.geometry(), facts_);
  if (ladder.near()) check_near(ladder);
  if (ladder.elastic() && !turner_) find_keys();
  injector_->clear();
  far_.clear();
  injector_->watch_keys(ladder.elastic());
  const bool two_lists = !facts_.scaling.short_factor.empty();
  const auto setting_of = [&](const Plan& of, Temperature temperature, double sharpness = 1) {
    return make_setting(injector_->rotations(), of, two_lists, temperature, sharpness);
  };
  const Temperature own = ladder.elastic() ? Temperature::on_queries : Temperature::on_both;
  // Only far keys are under the plans of a ladder with a near part.
  for (const Rung& rung : ladder.rungs()) {
    injector_->add(setting_of(ladder.near() ? plan : rung.plan, own, rung.sharpness));
    if (ladder.near()) far_.push_back(setting_of(rung.plan, Temperature::on_keys));
  }
  ladder_ = ladder;
}

namespace {

// What one turn may add to the error of a key element, as a fraction of the largest: half a unit in
// the last place of its type (tests/integration/elastic_test.cpp).
double rounding_of(ggml_type type) {
  if (type == GGML_TYPE_F32) return 4e-6;
  if (type == GGML_TYPE_F16) return 1.0 / 2048;
  if (type == GGML_TYPE_BF16) return 1.0 / 256;
  if (type == GGML_TYPE_Q8_0) return 1e-2;
  return 1e-1;  // 16 or 32 steps per block
}
constexpr double kMostDrift = 0.3;

// How often a key is turned on the way to the end of a ladder with a near part, at most.
std::size_t turns_of_a_key(const Ladder& ladder) {
  if (!ladder.has_single_factor()) return ladder.rungs().size() - 1;
  const NearPart& near = *ladder.near();
  auto turns = std::size_t(near.length / near.step + 2);  // while it is near
  for (std::size_t r = 1; r < ladder.rungs().size(); ++r) {
    turns += ladder.rungs()[r].plan.factor() != ladder.rungs()[r - 1].plan.factor();
  }
  return turns;
}

}  // namespace

void LocalModel::check_near(const Ladder& ladder) const {
  const std::size_t turns = turns_of_a_key(ladder);
  const double drift = double(turns) * rounding_of(cache_type(options_.type_k, "-ctk"));
  unsupported_if(
      drift > kMostDrift,
      cat("keys of type ", options_.type_k, " would be turned up to ", turns,
          " times on the way to ", ladder.longest(), " tokens, and each turn rounds them"),
      ladder.has_single_factor() ? "give -ctk f16, or -ctk q8_0 with a larger rung_step"
                                 : "give -ctk f16, or --method far:pi, which turns them less");
  const std::int64_t window = llama_model_n_swa(model_.get());
  if (window <= ladder.near()->length) return;
  unsupported(
      cat("layers with a sliding window of ", window, " tokens need a near part of at least ",
          window, " tokens, not ", ladder.near()->length),
      cat("give --near ", window));
}

KeyState LocalModel::key_state(std::size_t rung) const {
  KeyState state;
  state.near = &injector_->setting(rung);
  if (far_.empty()) return state;
  const Rung& r = ladder_.rungs().at(rung);
  state.shift = r.shift;
  state.border = r.border;
  state.far = &far_.at(rung);
  state.anchored = !ladder_.has_single_factor();
  return state;
}

void LocalModel::find_keys() {
  const auto refuse = [&](const std::string& why) {
    unsupported(cat("the context of this ", facts_.architecture, " model cannot grow: ", why),
                "a plan without `elastic:` runs, e.g. --method pro");
  };
  std::size_t expected = 0;
  for (const Layer& layer : facts_.layers) {
    if (layer.rotations > 2) refuse("its layers have indexers with their own keys");
    if (layer.rotations == 2) ++expected;
  }
  {
    const LocalTimeline empty(*this);  // gives its sequence back, whatever happens
    const std::unique_ptr<Injector, void (*)(Injector*)> watching(
        injector_.get(), [](Injector* injector) { injector->watch_keys(false); });
    const Token token = bos().value_or(0);
    const char wanted = 1;
    injector_->watch_keys(true);
    decode({empty.sequence(), {&token, 1}, 0, 0}, {&wanted, 1});
  }
  const std::vector<KeyCache>& caches = injector_->key_caches();
  if (caches.size() != expected) {
    refuse(cat(caches.size(), " of its ", expected,
               " layers store rotated keys as they are; in the others something else happens to "
               "them after the rotation (compressed keys, a norm with weights)"));
  }
  turner_ =
      std::make_unique<KeyTurner>(caches, injector_->rotations(), llama_n_threads(context_.get()));
}

void LocalModel::turn(std::span<const std::int32_t> cells, std::size_t from, std::size_t to) {
  llama_synchronize(context_.get());
  turner_->turn(cells, key_state(from), key_state(to));
}

void LocalModel::copy_sequence(llama_seq_id from, llama_seq_id to) {
  take_llama_log();
  std::vector<std::uint8_t> state(llama_state_seq_get_size(context_.get(), from));
  const std::size_t written =
      llama_state_seq_get_data(context_.get(), state.data(), state.size(), from);
  if (written == 0 || llama_state_seq_set_data(context_.get(), state.data(), written, to) == 0) {
    fail(cat("a sequence cannot be copied: ", take_llama_log()));
  }
}

std::optional<std::vector<std::int32_t>> LocalModel::copy_cells(
    llama_seq_id sequence, std::span<const std::int32_t> cells) {
  llama_context* const context = context_.get();
  llama_synchronize(context);
  std::vector<std::uint8_t> state(llama_state_seq_get_size(context, sequence));
  std::size_t written = 0;
  const auto save = [&] {
    written = llama_state_seq_get_data(context, state.data(), state.size(), sequence);
    return written > 0;
  };
  return cells_after(turner_->caches(), cells, save, [&] {
    return llama_state_seq_set_data(context, state.data(), written, sequence) > 0;
  });
}

std::string LocalModel::description() const {
  const auto name = [](ggml_backend_dev_t d) {
    return std::string(ggml_backend_dev_description(d));
  };
  const std::string devices = joined(mapped(devices_in_use(options_), name), " + ");
  return cat("llama.cpp ", llama_version(), ", ", devices, ", ", llama_n_threads(context_.get()),
             " threads, KV ", options_.type_k, "/", options_.type_v, ", ubatch ", ubatch_);
}

std::string LocalModel::piece(Token token) const {
  if (llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_NONE) return {};  // tokens only
  return piece_of(vocab_, token, false);
}

const TokenTexts* LocalModel::token_texts() const {
  if (llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_NONE) return nullptr;
  std::call_once(texts_made_, [&] {
    std::vector<std::string> texts;
    for (Token token = 0; token < vocabulary_; ++token) {
      texts.push_back(ends_text(token) ? std::string() : piece_of(vocab_, token, true));
    }
    texts_ = TokenTexts(std::move(texts));
  });
  return &texts_;
}

void LocalModel::check_length(std::int64_t length) const {
  const std::int64_t own = llama_n_ctx_seq(context_.get());
  refuse_if(length > own, cat(length, " tokens do not fit in a context of ", own),
            cat("open the model with -c ", unified() ? length : length * timelines()));
  ladder_.rung_at(length);
}

void LocalModel::check_token(Token token) const {
  if (token >= 0 && token < vocabulary_) return;
  refuse(cat("token ", token, " is outside the vocabulary of ", vocabulary_));
}

std::int64_t LocalModel::longest() const {
  return std::min<std::int64_t>(llama_n_ctx_seq(context_.get()), ladder_.longest());
}

std::unique_ptr<Timeline> LocalModel::timeline() { return std::make_unique<LocalTimeline>(*this); }

std::unique_ptr<Timeline> LocalModel::restore(const std::filesystem::path& path, std::size_t rung) {
  // Where libllama puts it among others is not known, and keys are turned by their cells.
  refuse_if(unified() && grows() && int(free_sequences_.size()) != options_.timelines,
            "in a cache that timelines share, one whose keys are turned can only be restored "
            "as the first of them",
            "give --no-kv-unified");
  throw_if(rung >= ladder_.rungs().size(), ErrorKind::corrupt,
           cat("rung ", rung + 1, " of a ladder with ", ladder_.rungs().size()));
  auto timeline = std::make_unique<LocalTimeline>(*this);
  timeline->load(path, rung);
  return timeline;
}

llama_seq_id LocalModel::take_sequence() {
  refuse_if(free_sequences_.empty(), cat("all ", options_.timelines, " timelines are in use"),
            "open the model with room for more of them");
  const llama_seq_id sequence = free_sequences_.back();
  free_sequences_.pop_back();
  return sequence;
}

void LocalModel::decode(std::span<const Chunk> chunks, std::span<const char> wanted) {
  std::vector<Token> tokens;
  std::vector<llama_pos> positions;
  std::vector<std::int32_t> rotated_positions;
  std::vector<llama_seq_id> sequences;
  bool shifted = false;
  for (const Chunk& chunk : chunks) {
    const std::int64_t shift = ladder_.rungs().at(chunk.rung).shift;
    shifted = shifted || shift != 0;
    for (std::size_t i = 0; i < chunk.tokens.size(); ++i) {
      check_token(chunk.tokens[i]);
      tokens.push_back(chunk.tokens[i]);
      positions.push_back(llama_pos(chunk.position + std::int64_t(i)));
      rotated_positions.push_back(std::int32_t(positions.back() - shift));
      sequences.push_back(chunk.sequence);
    }
  }
  const std::size_t count = tokens.size();
  std::vector<int32_t> sequence_counts(count, 1);
  std::vector<llama_seq_id*> sequence_lists;
  for (llama_seq_id& sequence : sequences) sequence_lists.push_back(&sequence);
  std::vector<std::int8_t> outputs(wanted.begin(), wanted.end());
  const std::int64_t position = chunks.front().position;
  const llama_batch batch{.n_tokens = int32_t(count),
                          .token = tokens.data(),
                          .embd = nullptr,
                          .pos = positions.data(),
                          .n_seq_id = sequence_counts.data(),
                          .seq_id = sequence_lists.data(),
                          .logits = outputs.data()};

  take_llama_log();
  // The positions of the decode before must have been read.
  if (ladder_.has_single_factor()) llama_synchronize(context_.get());
  injector_->begin(chunks.front().rung, rotated_positions, shifted);
  const int result = llama_decode(context_.get(), batch);
  if (result == 1) {
    refuse(cat("the context of ", context_length(), " tokens is full: no room for ", count,
               " more at position ", position),
           "open the model with a larger -c, or keep fewer timelines");
  }
  if (result != 0) {
    fail(cat("libllama failed with ", result, " at position ", position, ": ", take_llama_log()));
  }
  injector_->finish();
}

void LocalModel::read_together(std::span<const Reading> readings, const LogitObserver& observer) {
  // Memory with a state per sequence is computed sequence by sequence, which the injector would not
  // recognise as one decode.
  if (recurrent() || readings.empty()) return TimelineModel::read_together(readings, observer);
  std::vector<Chunk> chunks;
  std::size_t count = 0;
  for (const Reading& reading : readings) {
    auto& timeline = static_cast<LocalTimeline&>(*reading.timeline);
    chunks.push_back(timeline.begin_shared(reading.tokens));
    count += reading.tokens.size();
    const bool together = ladder_.can_batch_together(chunks.front().rung, chunks.back().rung);
    refuse_if(!together || count > batch(),
              cat("timelines on rungs ", chunks.front().rung + 1, " and ", chunks.back().rung + 1,
                  ", ", count, " tokens: a batch takes one rung and ", batch(), " tokens"));
  }
  std::vector<std::size_t> order(readings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (unified()) return decode_together(readings, chunks, order, observer);
  // Of caches apart libllama computes neighbours at once, with as many tokens each.
  std::ranges::sort(
      order, [&](std::size_t a, std::size_t b) { return chunks[a].sequence < chunks[b].sequence; });
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() &&
           chunks[order[end]].sequence == chunks[order[end - 1]].sequence + 1 &&
           chunks[order[end]].tokens.size() == chunks[order[first]].tokens.size()) {
      ++end;
    }
    decode_together(readings, chunks, std::span(order).subspan(first, end - first), observer);
    first = end;
  }
}

// One decode of some of the readings.
void LocalModel::decode_together(std::span<const Reading> readings, std::span<const Chunk> chunks,
                                 std::span<const std::size_t> members,
                                 const LogitObserver& observer) {
  std::vector<Chunk> some;
  std::vector<std::size_t> last;  // of each member, within the batch
  std::size_t count = 0;
  for (const std::size_t i : members) {
    some.push_back(chunks[i]);
    count += chunks[i].tokens.size();
    last.push_back(count - 1);
  }
  // The last token of each is wanted: not every architecture runs without any.
  std::vector<char> wanted(count, 0);
  for (const std::size_t i : last) wanted[i] = 1;
  try {
    decode(some, wanted);
  } catch (...) {
    for (const Chunk& chunk : some) {
      llama_memory_seq_rm(memory(), chunk.sequence, llama_pos(chunk.position), -1);
    }
    throw;
  }
  std::span<const std::int32_t> rest = cells();
  for (const std::size_t i : members) {
    const std::size_t own = rest.empty() ? 0 : readings[i].tokens.size();
    static_cast<LocalTimeline&>(*readings[i].timeline).keep(readings[i].tokens, rest.first(own));
    rest = rest.subspan(own);
  }
  for (std::size_t n = 0; n < members.size(); ++n) observer(members[n], row(last[n]));
}

void LocalModel::decode_scored(const Chunk& chunk, std::span<const Token> targets,
                               std::span<double> scores) {
  // Below this a float's probability loses digits, and the logarithm is taken from the logits.
  constexpr float kLeastProbability = 1e-30F;
  // The device's fast exponentials are good to some 1e-5.
  constexpr double kTolerance = 1e-3;
  constexpr std::size_t kCallsPerCheck = 16;

  bool in_place = false;
  if (scoring_ != Scoring::host) {
    injector_->on_logits = [&](ggml_tensor* logits) { in_place = score_in_place(logits, targets); };
  }
  try {
    decode(chunk, std::vector<char>(chunk.tokens.size(), 1));
  } catch (...) {
    injector_->on_logits = nullptr;
    throw;
  }
  injector_->on_logits = nullptr;
  if (!in_place) return score_on_host(targets, scores);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const float probability = probabilities_[i];
    scores[i] = probability > kLeastProbability ? std::log(double(probability))
                                                : log_probability(row(i), std::size_t(targets[i]));
  }
  // A row is sometimes checked against what libllama itself returns. Not always: that waits
  // for all logits to arrive here, while the next chunk could be computing.
  if (!targets.empty() && calls_in_place_++ % kCallsPerCheck == 0) {
    const double expected = log_probability(row(0), std::size_t(targets[0]));
    if (std::abs(scores[0] - expected) > kTolerance * (1 - expected)) {
      scoring_ = Scoring::host;
      score_on_host(targets, scores);
    }
  }
}

bool LocalModel::score_in_place(ggml_tensor* logits, std::span<const Token> targets) {
  if (logits->type != GGML_TYPE_F32 || logits->ne[0] != vocabulary_ ||
      logits->ne[1] < std::int64_t(targets.size()) || !ggml_is_contiguous(logits)) {
    return false;
  }
  const ggml_backend_buffer_t buffer = buffer_of(logits);
  bool able = device_scorer_ != nullptr;
  if (!able && (scoring_ == Scoring::device || !ggml_backend_buffer_is_host(buffer))) {
    device_scorer_ = std::make_unique<DeviceScorer>();
    able = device_scorer_->open(ggml_backend_buffer_get_type(buffer));
    if (!able) device_scorer_.reset();
  }
  probabilities_.resize(targets.size());
  if (able && device_scorer_->score(logits, targets, probabilities_)) return true;
  scoring_ = Scoring::host;  // it can always be done here
  return false;
}

void LocalModel::score_on_host(std::span<const Token> targets, std::span<double> scores) {
  if (targets.empty()) return;
  // libllama keeps wanted rows side by side, and is asked from this thread only.
  const std::span<const float> first = row(0);
  const auto threads = std::size_t(workers_.threads());
  workers_.run(workers_.threads(), [&](int slot) {
    for (std::size_t i = std::size_t(slot); i < targets.size(); i += threads) {
      scores[i] =
          log_probability({first.data() + i * first.size(), first.size()}, std::size_t(targets[i]));
    }
  });
}

std::span<const float> LocalModel::row(std::size_t index) const {
  const float* row = llama_get_logits_ith(context_.get(), int32_t(index));
  if (row == nullptr) fail(cat("libllama has no logits for row ", index));
  return {row, std::size_t(vocabulary_)};
}

}  // namespace mrrope::engine
