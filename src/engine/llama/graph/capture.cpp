// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "base/text.h"
#include "engine/llama/devices.h"
#include "engine/llama/graph/inject.h"
#include "engine/llama/loader.h"
#include "engine/llama/tokenize.h"
#include "formats/facts.h"

namespace mrrope::engine {

// A model whose queries and keys are read, and what it reads.
struct OpenedModel {
  const Model facts;
  LlamaPtr<llama_model> model;
  llama_context_params params;  // one sequence of as many tokens
  std::vector<Token> text;      // with BOS
  std::vector<Rotation> rotations;
  std::vector<int> layers;
};

namespace {

// Layers with a query and a key that follow plans, in ascending order.
std::vector<int> rotating_layers(const std::vector<Rotation>& rotations) {
  std::set<int> layers[2];  // of keys, of queries
  for (const Rotation& r : rotations) {
    const Operand o = operand_of(r.name);
    if (r.takes_plan && o.layer >= 0) layers[o.query].insert(o.layer);
  }
  std::vector<int> both;
  std::set_intersection(layers[0].begin(), layers[0].end(), layers[1].begin(), layers[1].end(),
                        std::back_inserter(both));
  return both;
}

// The wanted ones; none wanted: four, evenly spread. Throws Error: unsupported (there are none),
// usage (a layer that is not there).
std::vector<int> chosen_layers(const std::vector<int>& there, std::vector<int> wanted) {
  unsupported_if(there.empty(),
                 "no layer of this model rotates a query and a key under a name that is known",
                 "the other figures need no captured queries: mrrope theory bound MODEL");
  if (wanted.empty()) {
    const std::size_t count = std::min<std::size_t>(4, there.size());
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back(there[count == 1 ? 0 : i * (there.size() - 1) / (count - 1)]);
    }
  }
  for (const int layer : wanted) {
    if (has(there, layer)) continue;
    refuse(cat("layer ", layer, " does not rotate queries and keys here"),
           cat("give layers from ", there.front(), " to ", there.back()));
  }
  return wanted;
}

// Throws Error: unsupported, failed, usage (a text of fewer tokens, layers as above).
OpenedModel open_to_read(const Model& model, const LocalOptions& options, bool whole_windows,
                         std::string_view text, std::int64_t tokens, std::vector<int> layers) {
  unsupported_if(model.format != "gguf", cat(model.path.string(), " is not a GGUF file"),
                 "give a GGUF file: the figure runs the model");
  OpenedModel out{model,
                  load_model(model.files, options.gpu_layers, chosen_devices(options)),
                  context_params(options, tokens),
                  {},
                  {},
                  {}};
  out.text = first_tokens(out.model.get(), model.path.filename().string(), text, tokens);
  out.params.n_seq_max = 1;
  out.params.swa_full = whole_windows;
  out.rotations = probe_rotations(out.model.get(), out.params);
  check_rotations(out.rotations, model);
  out.layers = chosen_layers(rotating_layers(out.rotations), std::move(layers));
  return out;
}

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

// Sees rotations of a decode, by their numbers: what they turn or, under a plan, what becomes of
// it.
struct Watch {
  std::vector<bool> wanted;  // per rotation
  std::function<void(std::size_t rotation, const ggml_tensor* vectors)> see;
  Injector* plan = nullptr;
  std::size_t next = 0;  // rotation of this decode
  std::string failure;

  static bool callback(ggml_tensor* node, bool ask, void* data) noexcept {
    auto& self = *static_cast<Watch*>(data);
    if (self.plan != nullptr) Injector::callback(node, ask, self.plan);
    // libllama does not pass a declined node again, so each one is counted here.
    const bool rotates = node->op == GGML_OP_ROPE;
    if (rotates && ask) ++self.next;
    const bool wanted =
        rotates && self.next > 0 && self.next <= self.wanted.size() && self.wanted[self.next - 1];
    // A rotation may overwrite what it turns, so that is seen before. It is computed by then: where
    // operands are seen, libllama computes node by node.
    const bool operands = self.plan == nullptr;
    if (wanted && ask == operands) self.keep(operands ? node->src[0] : node);
    return operands || !ask || wanted;
  }

  void keep(const ggml_tensor* vectors) noexcept {
    try {
      unsupported_if(vectors->type != GGML_TYPE_F32,
                     cat("queries are kept as ", ggml_type_name(vectors->type), " in this graph"));
      see(next - 1, vectors);
    } catch (const std::exception& e) {
      if (failure.empty()) failure = e.what();
    }
  }
};

// Elements of one head of one token.
void read_vector(const ggml_tensor* vectors, std::size_t token, std::size_t head, float* to) {
  ggml_backend_tensor_get(vectors, to, token * vectors->nb[2] + head * vectors->nb[1],
                          std::size_t(vectors->ne[0]) * sizeof(float));
}

}  // namespace

std::vector<Token> first_tokens(const llama_model* model, const std::string& file,
                                std::string_view text, std::int64_t wanted) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  // More bytes than the wanted tokens could have need no reading.
  text = text.substr(0, std::size_t(std::min<std::int64_t>(wanted * 64, std::int64_t(1) << 30)));
  std::vector<Token> tokens = tokens_of(vocab, file, text, false);
  if (const auto bos = bos_of(vocab)) tokens.insert(tokens.begin(), *bos);
  const auto count = std::int64_t(tokens.size());
  refuse_if(count < wanted, cat("the text has ", count, " tokens, and --length asks for ", wanted),
            "give a longer --text, or a smaller --length");
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
  refuse_if(tokens < 2 || tokens > 65536, cat(tokens, " tokens cannot be captured at once"),
            "give --length from 2 to 65536");
  options.ubatch = int(tokens);
  OpenedModel opened = open_to_read(model, options, true, text, tokens, std::move(layers));
  std::map<int, CapturedLayer> captured;
  Watch watch;
  for (const Rotation& r : opened.rotations) {
    const auto& chosen = opened.layers;
    watch.wanted.push_back(r.takes_plan && has(chosen, operand_of(r.name).layer));
  }
  watch.see = [&](std::size_t rotation, const ggml_tensor* vectors) {
    const Operand operand = operand_of(opened.rotations[rotation].name);
    CapturedLayer& layer = captured[operand.layer];
    layer.layer = operand.layer;
    layer.row = int(vectors->ne[0]);
    const auto row = std::size_t(vectors->ne[0]);
    const auto heads = std::size_t(vectors->ne[1]);
    const auto count = std::size_t(vectors->ne[2]);
    (operand.query ? layer.heads : layer.kv_heads) = int(heads);
    std::vector<float>& out = operand.query ? layer.queries : layer.keys;
    out.resize(count * heads * row);
    for (std::size_t i = 0; i < count * heads; ++i) {
      read_vector(vectors, i / heads, i % heads, out.data() + i * row);
    }
  };
  opened.params.cb_eval = Watch::callback;
  opened.params.cb_eval_user_data = &watch;
  const LlamaPtr<llama_context> context = make_context(opened.model.get(), opened.params);
  const int code =
      llama_decode(context.get(), llama_batch_get_one(opened.text.data(), int(tokens)));
  if (code != 0 || !watch.failure.empty()) {
    fail(cat("reading ", tokens, " tokens failed: ", watch.failure, take_llama_log()),
         "give a smaller --length");
  }
  Capture capture;
  capture.tokens = tokens;
  for (auto& [layer, content] : captured) {
    const auto size = std::size_t(tokens) * std::size_t(content.row);
    const bool whole = content.heads > 0 && content.kv_heads > 0 &&
                       content.heads % content.kv_heads == 0 &&
                       content.row >= model.geometry.rotary_dim &&
                       content.queries.size() == size * std::size_t(content.heads) &&
                       content.keys.size() == size * std::size_t(content.kv_heads);
    unsupported_if(
        !whole,
        cat("layer ", layer, " has ", content.heads, " query and ", content.kv_heads,
            " key heads of ", content.row, " numbers in the graph: not what is expected"),
        "choose other --layers");
    capture.layers.push_back(std::move(content));
  }
  fail_if(capture.layers.size() != opened.layers.size(),
          cat("only ", capture.layers.size(), " of ", opened.layers.size(),
              " layers were seen in the graph"));
  return capture;
}

PairReader::PairReader(const Model& model, const LocalOptions& given, std::string_view text,
                       std::int64_t tokens, std::vector<int> layers) {
  LocalOptions options = given;
  options.context = tokens;
  options.timelines = 1;
  prepare(model, options);
  opened_ = std::make_shared<OpenedModel>(
      open_to_read(model, options, keeps_windows_whole(options), text, tokens, std::move(layers)));
  const OpenedModel& loaded = *opened_;
  for (const int layer : loaded.layers) {
    const Rotation& q = loaded.rotations[rotation_of(loaded.rotations, layer, true)];
    const Rotation& k = loaded.rotations[rotation_of(loaded.rotations, layer, false)];
    unsupported_if(q.row != k.row || k.heads < 1 || q.heads % k.heads != 0,
                   cat("layer ", layer, " has ", q.heads, " queries of ", q.row, " numbers and ",
                       k.heads, " keys of ", k.row, " in the graph: not what is expected"),
                   "choose other --layers");
    layers_.push_back({layer, q.heads});
  }
}

std::vector<RotatedPair> PairReader::read(const Plan& plan, std::span<const PairPlace> places,
                                          std::int64_t tokens) {
  OpenedModel& loaded = *opened_;
  check_made_for(plan.geometry(), loaded.facts);
  Injector injector(loaded.rotations);
  injector.add(make_setting(loaded.rotations, plan, !loaded.facts.scaling.short_factor.empty()));
  std::vector<RotatedPair> out(places.size());
  std::vector<std::vector<WantedRow>> wanted(loaded.rotations.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const PairPlace& p = places[i];
    const std::size_t q = rotation_of(loaded.rotations, p.layer, true);
    const std::size_t k = rotation_of(loaded.rotations, p.layer, false);
    const int shared = loaded.rotations.at(q).heads / loaded.rotations.at(k).heads;
    wanted[q].push_back({p.query, p.head, &out[i].query});
    wanted[k].push_back({p.key, p.head / shared, &out[i].key});
  }
  Watch watch;
  watch.plan = &injector;
  for (std::vector<WantedRow>& rows : wanted) {
    std::ranges::stable_sort(
        rows, [](const WantedRow& a, const WantedRow& b) { return a.position < b.position; });
    watch.wanted.push_back(!rows.empty());
  }
  std::int64_t begin = 0;  // position of the first token of a decode
  watch.see = [&](std::size_t rotation, const ggml_tensor* vectors) {
    const std::vector<WantedRow>& rows = wanted[rotation];
    auto at = std::lower_bound(rows.begin(), rows.end(), begin,
                               [](const WantedRow& r, std::int64_t p) { return r.position < p; });
    for (; at != rows.end() && at->position < begin + vectors->ne[2]; ++at) {
      at->to->resize(std::size_t(vectors->ne[0]));
      read_vector(vectors, std::size_t(at->position - begin), std::size_t(at->head),
                  at->to->data());
    }
  };
  llama_context_params params = loaded.params;
  params.cb_eval = Watch::callback;
  params.cb_eval_user_data = &watch;
  const LlamaPtr<llama_context> context = make_context(loaded.model.get(), params);
  const std::int64_t step = llama_n_ubatch(context.get());
  tokens = std::min(tokens, std::int64_t(loaded.text.size()));
  for (; begin < tokens; begin += step) {
    const auto count = int(std::min(step, tokens - begin));
    watch.next = 0;
    injector.begin(0, {}, false);
    const int code =
        llama_decode(context.get(), llama_batch_get_one(loaded.text.data() + begin, count));
    if (code != 0 || !watch.failure.empty()) {
      fail(cat("reading tokens ", begin, " to ", begin + count - 1, " failed: ", watch.failure,
               take_llama_log()));
    }
    injector.finish();
  }
  return out;
}

}  // namespace mrrope::engine
