// SPDX-License-Identifier: Apache-2.0
// The table of architectures against llama.cpp itself: for every row a small model is built from
// metadata alone, and the rotations of one token show which layers rotate, in which pairing, over
// how many dimensions, which of them follow the context's scaling, and how factors are used.
#include "formats/architectures.h"

#include <charconv>

#include "base/text.h"
#include "engine/llama/loader.h"
#include "models/architecture_cases.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr float probe_scale = 0.37f;
constexpr int context_length = ArchitectureCase::kContextLength;

struct Rotation {
  int layer;
  int dims;
  int mode;
  bool takes_plan;
  std::string factors;  // name of the factor tensor, empty: none
};

// What one pass through a model showed.
struct Pass {
  std::vector<Rotation> rotations;
  std::map<int, std::int64_t> cells;  // of the key cache, by layer
  std::vector<float> score_scales;
  int layer = -1;  // of the node seen last
};

// The number at the end of `name` after `mark`, or -1.
int number_after(std::string_view name, std::string_view mark) {
  const auto at = name.rfind(mark);
  if (at == std::string_view::npos) return -1;
  int value = -1;
  std::from_chars(name.data() + at + mark.size(), name.data() + name.size(), value);
  return value;
}

float float_parameter(const ggml_tensor* node, int index) {
  float value;
  std::memcpy(&value, node->op_params + index, sizeof value);
  return value;
}

// llama.cpp asks for every node in order, before it runs; the answer is always "not needed".
bool watch(ggml_tensor* node, bool ask, void* user) {
  if (!ask) return true;
  Pass& pass = *static_cast<Pass*>(user);
  if (const int layer = number_after(node->name, "-"); layer >= 0) pass.layer = layer;
  switch (node->op) {
    case GGML_OP_ROPE:
      pass.rotations.push_back({.layer = pass.layer,
                                .dims = node->op_params[1],
                                .mode = node->op_params[2],
                                .takes_plan = float_parameter(node, 6) == probe_scale,
                                .factors = node->src[2] != nullptr ? node->src[2]->name : ""});
      break;
    case GGML_OP_SET_ROWS:
      if (const int layer = number_after(node->view_src->name, "cache_k_l"); layer >= 0) {
        pass.cells[layer] = node->view_src->ne[1];
      }
      break;
    case GGML_OP_SOFT_MAX:
    case GGML_OP_FLASH_ATTN_EXT:
      pass.score_scales.push_back(float_parameter(node, 0));
      break;
    default:
      break;
  }
  return false;
}

class Probe {
 public:
  explicit Probe(const ArchitectureCase& probe) {
    start_llama();
    take_llama_log();
    const Metadata metadata = probe.metadata();
    llama_model_params parameters = llama_model_default_params();
    parameters.n_gpu_layers = 0;
    model_.reset(llama_model_init_from_user(metadata.get(), &Probe::fill, this, parameters));
  }

  explicit operator bool() const { return model_ != nullptr; }
  const std::vector<std::string>& tensors() const { return tensors_; }

  // One token with the given scale; empty if it did not run.
  std::unique_ptr<Pass> pass(float scale) {
    auto seen = std::make_unique<Pass>();
    llama_context_params parameters =
        context_params(exact_options(context_length, 8, 1, "auto", 1), context_length);
    parameters.swa_full = false;
    parameters.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
    parameters.rope_freq_scale = scale;
    parameters.cb_eval = watch;
    parameters.cb_eval_user_data = seen.get();
    const LlamaPtr<llama_context> running(llama_init_from_model(model_.get(), parameters));
    if (!running) return nullptr;
    llama_token token = 3;
    if (llama_decode(running.get(), llama_batch_get_one(&token, 1)) != 0) return nullptr;
    return seen;
  }

 private:
  // Zeros are enough: which nodes there are does not depend on the weights.
  static void fill(ggml_tensor* tensor, void* user) {
    static_cast<Probe*>(user)->tensors_.emplace_back(tensor->name);
    ggml_backend_tensor_memset(tensor, 0, 0, ggml_nbytes(tensor));
  }

  std::vector<std::string> tensors_;
  LlamaPtr<llama_model> model_;
};

bool is_in_halves(int mode) { return (mode & (GGML_ROPE_TYPE_NEOX | GGML_ROPE_TYPE_MROPE)) != 0; }

FactorSupport factors_seen(const std::vector<std::string>& tensors, const Pass& pass) {
  const auto loads = [&](std::string_view name) { return has(tensors, name); };
  const bool applied = std::ranges::any_of(
      pass.rotations, [](const Rotation& seen) { return !seen.factors.empty(); });
  if (loads("rope_freqs.weight")) return applied ? FactorSupport::used : FactorSupport::ignored;
  return loads("rope_factors_long.weight") && applied ? FactorSupport::long_short
                                                      : FactorSupport::refused;
}

class ArchitectureProbe : public testing::TestWithParam<ArchitectureCase> {};

TEST_P(ArchitectureProbe, AgreesWithTheTable) {
  const ArchitectureCase& sample = GetParam();
  const Architecture& row = *find_architecture(sample.architecture);
  Probe probe(sample);
  ASSERT_TRUE(probe) << take_llama_log();
  const auto seen = probe.pass(probe_scale);
  ASSERT_TRUE(seen) << take_llama_log();

  std::vector<Layer> layers;
  try {
    layers = layers_of(row, sample.keys);
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    for (const Rotation& rotation : seen->rotations) {
      EXPECT_FALSE(rotation.takes_plan) << "layer " << rotation.layer << " takes a plan";
    }
    return;
  }

  std::map<int, std::vector<Rotation>> by_layer;
  for (const Rotation& rotation : seen->rotations) by_layer[rotation.layer].push_back(rotation);
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    SCOPED_TRACE("layer " + std::to_string(i));
    const Layer& layer = layers[i];
    const int queries_and_keys = layer.kv_heads > 0 ? 2 : 1;
    int following = 0, aside = 0, paired = 0;
    for (const Rotation& rotation : by_layer[i]) {
      ++(rotation.takes_plan ? following : aside);
      if (!rotation.takes_plan) continue;
      EXPECT_EQ(rotation.dims, sample.rotary_dim() / row.rotary_divisor);
      const Pairing pairing = is_in_halves(rotation.mode) ? Pairing::halves : Pairing::interleaved;
      paired += pairing == gguf_pairing(row, sample.mrope_sections);
      EXPECT_EQ((rotation.mode & GGML_ROPE_TYPE_MROPE) != 0,
                row.has(Trait::mrope) && sample.mrope_sections);
    }
    EXPECT_EQ(following, layer.rotations);
    EXPECT_EQ(aside, layer.kind == LayerKind::windowed ? queries_and_keys : 0);
    // An indexer may pair in its own way.
    EXPECT_GE(paired, row.layers.indexer == Indexer::none ? following
                      : following > 0                     ? queries_and_keys
                                                          : 0);
    EXPECT_EQ(seen->cells.count(i) != 0, layer.kv_heads > 0);
    if (layer.kv_heads > 0) {
      const bool is_short = layer.windowed_cache && window_of(row, sample.keys) < context_length;
      EXPECT_EQ(seen->cells[i] < context_length, is_short);
    }
    by_layer.erase(i);
  }
  EXPECT_TRUE(by_layer.empty()) << "rotations in layer " << by_layer.begin()->first;
  EXPECT_EQ(factors_seen(probe.tensors(), *seen), row.factors);

  const auto unscaled = probe.pass(1);
  ASSERT_TRUE(unscaled) << take_llama_log();
  EXPECT_EQ(seen->score_scales != unscaled->score_scales, row.has(Trait::scale_in_scores));
}

TEST(ArchitectureProbeList, CoversEveryRowWithPlans) {
  for (const Architecture& row : architectures()) {
    EXPECT_FALSE(has_no_case(row.name) && row.unsupported.empty()) << row.name;
  }
}

std::string test_name(const testing::TestParamInfo<ArchitectureCase>& test) {
  return test.param.name();
}

INSTANTIATE_TEST_SUITE_P(Rows, ArchitectureProbe, testing::ValuesIn(architecture_cases()),
                         test_name);

}  // namespace
}  // namespace mrrope::engine
