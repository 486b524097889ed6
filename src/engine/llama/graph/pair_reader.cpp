// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/pair_reader.h"

#include <algorithm>

#include "base/text.h"
#include "engine/llama/graph/inject.h"
#include "engine/llama/graph/operands.h"
#include "engine/llama/loader.h"
#include "engine/llama/memory.h"
#include "engine/llama/rpc.h"
#include "formats/facts.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

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

struct PairReader::Loaded : Opened {
  Model facts;
};

PairReader::~PairReader() = default;

PairReader::PairReader(const Model& model, const LocalOptions& given, std::string_view text,
                       std::int64_t tokens, std::vector<int> layers) {
  LocalOptions options = given;
  options.context = tokens;
  options.timelines = 1;
  start_llama();
  check_options(options);
  add_rpc_servers(options.rpc);
  check_memory(model, options);
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
