// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/text.h"
#include "engine/llama/devices.h"
#include "engine/llama/graph/inject.h"
#include "engine/llama/loader.h"
#include "formats/facts.h"

namespace mrrope::engine {

// A layer with a query and a key that follow plans, by the numbers of their rotations.
struct WatchedLayer {
  int layer;
  std::size_t query;
  std::size_t key;
};

// A model whose queries and keys are read, and what it reads.
struct OpenedModel {
  const Model facts;
  LlamaPtr<llama_model> model;
  llama_context_params params;  // one sequence of as many tokens
  std::vector<Token> text;      // with BOS
  std::vector<Rotation> rotations;
  std::vector<WatchedLayer> layers;
};

namespace {

// In ascending order.
std::vector<WatchedLayer> rotating_layers(const std::vector<Rotation>& rotations) {
  std::map<int, std::size_t> first[2];  // of keys, of queries, by layer
  for (std::size_t i = 0; i < rotations.size(); ++i) {
    const Operand o = operand_of(rotations[i].name);
    if (rotations[i].takes_plan && o.layer >= 0) first[o.query].emplace(o.layer, i);
  }
  std::vector<WatchedLayer> both;
  for (const auto& [layer, query] : first[1]) {
    const auto key = first[0].find(layer);
    if (key != first[0].end()) both.push_back({layer, query, key->second});
  }
  return both;
}

// The wanted ones; none wanted: four, evenly spread. Throws Error: unsupported (there are none),
// usage (a layer that is not there).
std::vector<WatchedLayer> chosen_layers(const std::vector<WatchedLayer>& there,
                                        const std::vector<int>& wanted) {
  unsupported_if(there.empty(),
                 "no layer of this model rotates a query and a key under a name that is known",
                 "the other figures need no captured queries: mrrope theory bound MODEL");
  std::vector<WatchedLayer> chosen;
  const std::size_t count = wanted.empty() ? std::min<std::size_t>(4, there.size()) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    chosen.push_back(there[count == 1 ? 0 : i * (there.size() - 1) / (count - 1)]);
  }
  for (const int layer : wanted) {
    if (find_by(chosen, &WatchedLayer::layer, layer) != nullptr) continue;
    const WatchedLayer* const one = find_by(there, &WatchedLayer::layer, layer);
    refuse_if(one == nullptr, cat("layer ", layer, " does not rotate queries and keys here"),
              cat("give layers from ", there.front().layer, " to ", there.back().layer));
    chosen.push_back(*one);
  }
  return chosen;
}

// Throws Error: unsupported, failed, usage (layers as above).
OpenedModel open_to_read(const Model& model, const LocalOptions& options, std::vector<Token> text,
                         const std::vector<int>& layers) {
  unsupported_if(model.format != "gguf", cat(model.path.string(), " is not a GGUF file"),
                 "give a GGUF file: the figure runs the model");
  OpenedModel out{model,
                  load_model(model.files, options.gpu_layers, chosen_devices(options)),
                  context_params(options, options.context),
                  std::move(text),
                  {},
                  {}};
  out.params.n_seq_max = 1;
  out.params.swa_full = keeps_windows_whole(options);
  out.rotations = probe_rotations(out.model.get(), out.params);
  check_rotations(out.rotations, model);
  out.layers = chosen_layers(rotating_layers(out.rotations), layers);
  for (const WatchedLayer& l : out.layers) {
    const Rotation& q = out.rotations[l.query];
    const Rotation& k = out.rotations[l.key];
    unsupported_if(q.row != k.row || k.heads < 1 || q.heads % k.heads != 0,
                   cat("layer ", l.layer, " has ", q.heads, " queries of ", q.row, " numbers and ",
                       k.heads, " keys of ", k.row, " in the graph: not what is expected"),
                   "choose other --layers");
  }
  return out;
}

// A head vector to keep.
struct WantedRow {
  std::int64_t position = 0;
  int head = 0;
  std::vector<float>* to = nullptr;
};

// Sees what rotations of a decode make, by their numbers.
struct Watch {
  Injector& plan;
  std::vector<bool> wanted{};  // per rotation
  std::function<void(std::size_t rotation, const ggml_tensor* vectors)> see{};
  std::size_t next = 0;  // rotation of this decode
  std::string failure{};

  static bool callback(ggml_tensor* node, bool ask, void* data) noexcept {
    auto& self = *static_cast<Watch*>(data);
    Injector::callback(node, ask, &self.plan);
    // libllama does not pass a declined node again, so each one is counted here.
    const bool rotates = node->op == GGML_OP_ROPE;
    if (rotates && ask) ++self.next;
    const bool wanted =
        rotates && self.next > 0 && self.next <= self.wanted.size() && self.wanted[self.next - 1];
    if (wanted && !ask) self.keep(node);
    return !ask || wanted;
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

std::vector<Token> first_tokens(const Tokenizer& vocabulary, std::string_view text,
                                std::int64_t wanted) {
  // More bytes than the wanted tokens could have need no reading.
  text = text.substr(0, std::size_t(std::min<std::int64_t>(wanted * 64, std::int64_t(1) << 30)));
  std::vector<Token> tokens = vocabulary.tokenize(text, true, false);
  const auto count = std::int64_t(tokens.size());
  refuse_if(count < wanted, cat("the text has ", count, " tokens, and ", wanted, " are needed"),
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

PairReader::PairReader(const Model& model, const LocalOptions& given, std::vector<Token> text,
                       const std::vector<int>& layers) {
  LocalOptions options = given;
  options.context = std::int64_t(text.size());
  options.timelines = 1;
  prepare(model, options);
  opened_ = std::make_shared<OpenedModel>(open_to_read(model, options, std::move(text), layers));
  for (const WatchedLayer& l : opened_->layers) {
    layers_.push_back({l.layer, opened_->rotations[l.query].heads});
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
    const WatchedLayer& l = *find_by(loaded.layers, &WatchedLayer::layer, p.layer);
    const int shared = loaded.rotations[l.query].heads / loaded.rotations[l.key].heads;
    wanted[l.query].push_back({p.query, p.head, &out[i].query});
    wanted[l.key].push_back({p.key, p.head / shared, &out[i].key});
  }
  Watch watch{injector};
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
