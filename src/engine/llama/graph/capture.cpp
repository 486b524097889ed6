// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/text.h"
#include "engine/llama/graph/inject.h"
#include "engine/llama/loader.h"
#include "engine/llama/tokenize.h"
#include "formats/facts.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

// Layers with a query and a key that follow plans, in ascending order.
std::vector<int> rotating_layers(const std::vector<Rotation>& rotations) {
  std::vector<int> queries;
  std::vector<int> keys;
  for (const Rotation& r : rotations) {
    const Operand o = operand_of(r.name);
    if (r.takes_plan && o.layer >= 0) (o.query ? queries : keys).push_back(o.layer);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<int> both;
  for (const int layer : queries) {
    if (std::binary_search(keys.begin(), keys.end(), layer)) both.push_back(layer);
  }
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  return both;
}

// The wanted ones; none wanted: four, evenly spread. Throws Error: unsupported (there are none),
// usage (a layer that is not there).
std::vector<int> chosen_layers(const std::vector<int>& there, std::vector<int> wanted) {
  if (there.empty()) {
    throw Error(ErrorKind::unsupported,
                "no layer of this model rotates a query and a key under a name that is known",
                "the other figures need no captured queries: mrrope theory bound MODEL");
  }
  if (wanted.empty()) {
    const std::size_t count = std::min<std::size_t>(4, there.size());
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back(there[count == 1 ? 0 : i * (there.size() - 1) / (count - 1)]);
    }
  }
  for (const int layer : wanted) {
    if (std::find(there.begin(), there.end(), layer) != there.end()) continue;
    throw Error(ErrorKind::usage, cat("layer ", layer, " does not rotate queries and keys here"),
                cat("give layers from ", there.front(), " to ", there.back()));
  }
  return wanted;
}

// A model whose queries and keys are read, and what it reads.
struct Opened {
  LlamaPtr<llama_model> model;
  llama_context_params params;  // one sequence of as many tokens
  std::vector<Token> text;      // with BOS
  std::vector<Rotation> rotations;
  std::vector<int> layers;
};
// Throws Error: unsupported, failed, usage (a text of fewer tokens, layers as above).
Opened open_to_read(const Model& model, const LocalOptions& options, bool whole_windows,
                    std::string_view text, std::int64_t tokens, std::vector<int> layers) {
  if (model.format != "gguf") {
    throw Error(ErrorKind::unsupported, cat(model.path.string(), " is not a GGUF file"),
                "give a GGUF file: the figure runs the model");
  }
  Opened out{
      load_model(model.files, options.gpu_layers), context_params(options, tokens), {}, {}, {}};
  out.text = first_tokens(out.model.get(), model.path.filename().string(), text, tokens);
  out.params.n_seq_max = 1;
  out.params.swa_full = whole_windows;
  out.rotations = probe_rotations(out.model.get(), out.params);
  check_rotations(out.rotations, model);
  out.layers = chosen_layers(rotating_layers(out.rotations), std::move(layers));
  return out;
}

// Sees every node of a graph in order: once to learn which nodes feed a rotation, once to read
// them. A rotation may overwrite what it turns, so its operand is read before.
class Watcher {
 public:
  Watcher(const std::vector<Rotation>& rotations, std::vector<int> layers)
      : rotations_(rotations), layers_(std::move(layers)) {}

  static bool callback(ggml_tensor* node, bool ask, void* data) noexcept {
    auto& self = *static_cast<Watcher*>(data);
    try {
      return ask ? self.asked(node) : self.computed(node);
    } catch (const std::exception& e) {
      if (self.failure_.empty()) self.failure_ = e.what();
      return !ask;
    }
  }

  void begin(bool reading) {
    reading_ = reading;
    index_ = 0;
    rotation_ = 0;
    seen_.clear();
  }

  const std::string& failure() const { return failure_; }
  std::size_t found() const { return operands_.size(); }
  std::map<int, CapturedLayer>& captured() { return captured_; }

 private:
  bool asked(ggml_tensor* node) {
    const std::size_t index = index_++;
    if (reading_) {
      current_ = index;
      return operands_.count(index) > 0;
    }
    seen_[node] = index;
    if (node->op == GGML_OP_ROPE) {
      const std::size_t number = rotation_++;
      if (number >= rotations_.size() || !rotations_[number].takes_plan) return false;
      const Operand operand = operand_of(rotations_[number].name);
      if (std::find(layers_.begin(), layers_.end(), operand.layer) == layers_.end()) return false;
      const auto source = seen_.find(node->src[0]);
      if (source == seen_.end()) {
        throw Error(ErrorKind::unsupported, cat("the operand of ", rotations_[number].name,
                                                " is not computed in the graph"));
      }
      operands_[source->second] = operand;
    }
    return false;
  }

  bool computed(ggml_tensor* node) {
    const auto at = operands_.find(current_);
    if (!reading_ || at == operands_.end()) return true;
    if (node->type != GGML_TYPE_F32) {
      throw Error(ErrorKind::unsupported,
                  cat("queries are kept as ", ggml_type_name(node->type), " in this graph"));
    }
    CapturedLayer& layer = captured_[at->second.layer];
    layer.layer = at->second.layer;
    layer.row = int(node->ne[0]);
    const auto heads = std::size_t(node->ne[1]);
    const auto tokens = std::size_t(node->ne[2]);
    (at->second.query ? layer.heads : layer.kv_heads) = int(heads);
    std::vector<float>& out = at->second.query ? layer.queries : layer.keys;
    const auto row = std::size_t(node->ne[0]);
    out.resize(tokens * heads * row);
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t h = 0; h < heads; ++h) {
        ggml_backend_tensor_get(node, out.data() + (t * heads + h) * row,
                                t * node->nb[2] + h * node->nb[1], row * sizeof(float));
      }
    }
    return true;
  }

  const std::vector<Rotation>& rotations_;
  std::vector<int> layers_;
  bool reading_ = false;
  std::size_t index_ = 0;
  std::size_t current_ = 0;
  std::size_t rotation_ = 0;
  std::map<const ggml_tensor*, std::size_t> seen_;
  std::map<std::size_t, Operand> operands_;  // by the number of the node
  std::map<int, CapturedLayer> captured_;
  std::string failure_;
};

// A head vector to keep.
struct WantedRow {
  std::int64_t position = 0;
  int head = 0;
  std::vector<float>* to = nullptr;
};

// The rotation of a layer's queries or keys, or the number of rotations.
std::size_t rotation_of(const std::vector<Rotation>& rotations, int layer, bool query) {
  std::size_t i = 0;
  for (; i < rotations.size(); ++i) {
    const Operand o = operand_of(rotations[i].name);
    if (rotations[i].takes_plan && o.layer == layer && o.query == query) break;
  }
  return i;
}

// Applies the plan before a rotation is computed and reads its result after.
struct Watch {
  Injector& injector;
  std::vector<std::vector<WantedRow>> wanted;  // per rotation, by position
  std::size_t next = 0;                        // rotation of this decode
  std::int64_t begin = 0;                      // position of its first token
  std::string failure;

  static bool callback(ggml_tensor* node, bool ask, void* data) noexcept {
    auto& self = *static_cast<Watch*>(data);
    const bool other = Injector::callback(node, ask, &self.injector);
    if (node->op != GGML_OP_ROPE) return other;
    try {
      // libllama does not pass a declined node again, so each one is counted here.
      if (ask) return self.next++ < self.wanted.size() && !self.wanted[self.next - 1].empty();
      self.keep(node);
    } catch (const std::exception& e) {
      if (self.failure.empty()) self.failure = e.what();
    }
    return true;
  }

  void keep(const ggml_tensor* node) {
    if (next == 0 || next > wanted.size()) return;
    if (node->type != GGML_TYPE_F32) {
      throw Error(ErrorKind::unsupported,
                  cat("rotated vectors are ", ggml_type_name(node->type), " in this graph"));
    }
    const std::vector<WantedRow>& rows = wanted[next - 1];
    const auto row = std::size_t(node->ne[0]);
    auto at = std::lower_bound(rows.begin(), rows.end(), begin,
                               [](const WantedRow& r, std::int64_t p) { return r.position < p; });
    for (; at != rows.end() && at->position < begin + node->ne[2]; ++at) {
      at->to->resize(row);
      ggml_backend_tensor_get(
          node, at->to->data(),
          std::size_t(at->position - begin) * node->nb[2] + std::size_t(at->head) * node->nb[1],
          row * sizeof(float));
    }
  }
};

}  // namespace

std::vector<Token> first_tokens(const llama_model* model, const std::string& file,
                                std::string_view text, std::int64_t wanted) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  // More bytes than the wanted tokens could have need no reading.
  text = text.substr(0, std::size_t(std::min<std::int64_t>(wanted * 64, std::int64_t(1) << 30)));
  std::vector<Token> tokens = tokens_of(vocab, file, text, false);
  if (const auto bos = bos_of(vocab)) tokens.insert(tokens.begin(), *bos);
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count < wanted) {
    throw Error(ErrorKind::usage,
                cat("the text has ", count, " tokens, and --length asks for ", wanted),
                "give a longer --text, or a smaller --length");
  }
  tokens.resize(std::size_t(wanted));
  return tokens;
}

Operand operand_of(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (name.empty() || dash == std::string::npos) return {};
  const char first = name.front();
  if (first != 'Q' && first != 'q' && first != 'K' && first != 'k') return {};
  return {std::atoi(name.c_str() + dash + 1), first == 'Q' || first == 'q'};
}

Capture capture_attention(const Model& model, LocalOptions options, std::string_view text,
                          std::int64_t tokens, std::vector<int> layers) {
  if (tokens < 2 || tokens > 65536) {
    throw Error(ErrorKind::usage, cat(tokens, " tokens cannot be captured at once"),
                "give --length from 2 to 65536");
  }
  options.ubatch = int(tokens);
  Opened opened = open_to_read(model, options, true, text, tokens, std::move(layers));
  Watcher watcher(opened.rotations, opened.layers);
  opened.params.cb_eval = Watcher::callback;
  opened.params.cb_eval_user_data = &watcher;
  const LlamaPtr<llama_context> context = make_context(opened.model.get(), opened.params);
  for (const bool reading : {false, true}) {
    watcher.begin(reading);
    llama_memory_clear(llama_get_memory(context.get()), true);
    const int code =
        llama_decode(context.get(), llama_batch_get_one(opened.text.data(), int(tokens)));
    if (code != 0 || !watcher.failure().empty()) {
      throw Error(ErrorKind::failed,
                  cat("reading ", tokens, " tokens failed: ", watcher.failure(), take_llama_log()),
                  "give a smaller --length");
    }
  }
  Capture capture;
  capture.tokens = tokens;
  for (auto& [layer, content] : watcher.captured()) {
    const auto size = std::size_t(tokens) * std::size_t(content.row);
    const bool whole = content.heads > 0 && content.kv_heads > 0 &&
                       content.heads % content.kv_heads == 0 &&
                       content.row >= model.geometry.rotary_dim &&
                       content.queries.size() == size * std::size_t(content.heads) &&
                       content.keys.size() == size * std::size_t(content.kv_heads);
    if (!whole) {
      throw Error(ErrorKind::unsupported,
                  cat("layer ", layer, " has ", content.heads, " query and ", content.kv_heads,
                      " key heads of ", content.row, " numbers in the graph: not what is expected"),
                  "choose other --layers");
    }
    capture.layers.push_back(std::move(content));
  }
  if (capture.layers.size() != opened.layers.size()) {
    throw Error(ErrorKind::failed, cat("only ", capture.layers.size(), " of ", opened.layers.size(),
                                       " layers were seen in the graph"));
  }
  return capture;
}

struct PairReader::Loaded : Opened {
  Model facts;
};

PairReader::~PairReader() = default;

PairReader::PairReader(const Model& model, const LocalOptions& given, std::string_view text,
                       std::int64_t tokens, std::vector<int> layers) {
  LocalOptions options = given;
  options.context = tokens;
  options.timelines = 1;
  prepare(model, options);
  loaded_.reset(new Loaded{
      open_to_read(model, options, keeps_windows_whole(options), text, tokens, std::move(layers)),
      model});
  const Loaded& loaded = *loaded_;
  for (const int layer : loaded.layers) {
    const Rotation& q = loaded.rotations[rotation_of(loaded.rotations, layer, true)];
    const Rotation& k = loaded.rotations[rotation_of(loaded.rotations, layer, false)];
    if (q.row != k.row || k.heads < 1 || q.heads % k.heads != 0) {
      throw Error(ErrorKind::unsupported,
                  cat("layer ", layer, " has ", q.heads, " queries of ", q.row, " numbers and ",
                      k.heads, " keys of ", k.row, " in the graph: not what is expected"),
                  "choose other --layers");
    }
    layers_.push_back({layer, q.heads});
  }
}

std::vector<RotatedPair> PairReader::read(const Plan& plan, std::span<const PairPlace> places,
                                          std::int64_t tokens) {
  Loaded& loaded = *loaded_;
  check_made_for(plan.geometry(), loaded.facts);
  Injector injector(loaded.rotations);
  injector.add(make_setting(loaded.rotations, plan, !loaded.facts.scaling.short_factor.empty()));
  std::vector<RotatedPair> out(places.size());
  Watch watch{injector, std::vector<std::vector<WantedRow>>(loaded.rotations.size()), 0, 0, {}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const PairPlace& p = places[i];
    const std::size_t q = rotation_of(loaded.rotations, p.layer, true);
    const std::size_t k = rotation_of(loaded.rotations, p.layer, false);
    const int shared = loaded.rotations.at(q).heads / loaded.rotations.at(k).heads;
    watch.wanted[q].push_back({p.query, p.head, &out[i].query});
    watch.wanted[k].push_back({p.key, p.head / shared, &out[i].key});
  }
  for (std::vector<WantedRow>& rows : watch.wanted) {
    std::stable_sort(rows.begin(), rows.end(), [](const WantedRow& a, const WantedRow& b) {
      return a.position < b.position;
    });
  }
  llama_context_params params = loaded.params;
  params.cb_eval = Watch::callback;
  params.cb_eval_user_data = &watch;
  const LlamaPtr<llama_context> context = make_context(loaded.model.get(), params);
  const std::int64_t step = llama_n_ubatch(context.get());
  tokens = std::min(tokens, std::int64_t(loaded.text.size()));
  for (std::int64_t begin = 0; begin < tokens; begin += step) {
    const auto count = int(std::min(step, tokens - begin));
    watch.begin = begin;
    watch.next = 0;
    injector.begin(0, {}, false);
    const int code =
        llama_decode(context.get(), llama_batch_get_one(loaded.text.data() + begin, count));
    if (code != 0 || !watch.failure.empty()) {
      throw Error(ErrorKind::failed, cat("reading tokens ", begin, " to ", begin + count - 1,
                                         " failed: ", watch.failure, take_llama_log()));
    }
    injector.finish();
  }
  return out;
}

}  // namespace mrrope::engine
