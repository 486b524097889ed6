// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/capture.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "engine/llama/graph/inject.h"
#include "engine/llama/graph/operands.h"
#include "engine/llama/loader.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

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

}  // namespace

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

}  // namespace mrrope::engine
