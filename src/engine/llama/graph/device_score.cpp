// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/device_score.h"

#include <algorithm>
#include <vector>

#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

// Rows normalised at once: the scratch memory is as many rows of the vocabulary.
constexpr std::size_t kRows = 64;

struct Graph {
  LlamaPtr<ggml_context> context;
  ggml_cgraph* graph = nullptr;
  ggml_tensor* rows = nullptr;
  ggml_tensor* targets = nullptr;
  ggml_tensor* result = nullptr;
};

// Row i of the softmax starts at element i * vocabulary, so that a probability is a row of one. The
// rows are a tensor of their own: a view would bring the model's whole graph along.
Graph build(std::int64_t vocabulary, std::size_t count) {
  Graph g;
  g.context.reset(ggml_init({8 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
  ggml_context* c = g.context.get();
  const auto n = static_cast<std::int64_t>(count);
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

}  // namespace

DeviceScorer::~DeviceScorer() = default;

std::unique_ptr<DeviceScorer> DeviceScorer::make(ggml_backend_buffer_type_t type) {
  const ggml_backend_dev_t device = device_of(type);
  if (device == nullptr) return nullptr;
  std::unique_ptr<DeviceScorer> scorer(new DeviceScorer);
  scorer->backend_.reset(ggml_backend_dev_init(device, nullptr));
  if (!scorer->backend_) return nullptr;
  // What it can do does not depend on sizes.
  const Graph g = build(64, 2);
  for (int i = 0; i < ggml_graph_n_nodes(g.graph); ++i) {
    if (!ggml_backend_supports_op(scorer->backend_.get(), ggml_graph_node(g.graph, i))) {
      return nullptr;
    }
  }
  scorer->allocator_.reset(
      ggml_gallocr_new(ggml_backend_get_default_buffer_type(scorer->backend_.get())));
  return scorer;
}

void DeviceScorer::score(ggml_tensor* logits, std::span<const std::int32_t> targets,
                         std::span<float> result) {
  for (std::size_t first = 0; first < targets.size(); first += kRows) {
    const std::size_t count = std::min(kRows, targets.size() - first);
    if (!run(logits, first, targets.subspan(first, count), result.subspan(first, count))) {
      throw Error(ErrorKind::failed, "the accelerator cannot compute log-probabilities");
    }
  }
}

bool DeviceScorer::run(ggml_tensor* logits, std::size_t first,
                       std::span<const std::int32_t> targets, std::span<float> result) {
  const Graph g = build(logits->ne[0], targets.size());
  char* data = static_cast<char*>(logits->data) + first * logits->nb[1];
  if (ggml_backend_tensor_alloc(buffer_of(logits), g.rows, data) != GGML_STATUS_SUCCESS)
    return false;
  if (!ggml_gallocr_alloc_graph(allocator_.get(), g.graph)) return false;
  std::vector<std::int32_t> elements(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    elements[i] =
        static_cast<std::int32_t>(static_cast<std::int64_t>(i) * logits->ne[0]) + targets[i];
  }
  ggml_backend_tensor_set(g.targets, elements.data(), 0, elements.size() * sizeof(std::int32_t));
  if (ggml_backend_graph_compute(backend_.get(), g.graph) != GGML_STATUS_SUCCESS) return false;
  ggml_backend_tensor_get(g.result, result.data(), 0, result.size() * sizeof(float));
  return true;
}

}  // namespace mrrope::engine
