// SPDX-License-Identifier: Apache-2.0
#include "models/random_model.h"

#include <gguf.h>
#include <llama.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>

#include "engine/llama/loader.h"
#include "support/text.h"

namespace mrrope {

namespace {

using test::contains;

void fill(const std::string& name, const ggml_tensor* tensor, std::uint32_t seed,
          std::vector<float>& values) {
  const auto count = static_cast<double>(values.size());
  const bool is_long = contains(name, "rope_factors_long");
  if (is_long || contains(name, "rope_factors_short") || contains(name, "rope_freqs")) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double part = static_cast<double>(i) / std::max(1.0, count - 1);
      values[i] = static_cast<float>(is_long ? 2 + 9 * part : 1 + 7 * part);
    }
    return;
  }
  std::mt19937 random(static_cast<std::uint32_t>(std::hash<std::string>{}(name)) ^ seed);
  std::normal_distribution<double> normal;
  if (contains(name, "scale")) {  // of quantised weights, mostly
    values.assign(values.size(), 1.0F);
    return;
  }
  const bool vector = ggml_n_dims(tensor) == 1;
  double mean = 0;
  double deviation = vector ? 0.1 : 1 / std::sqrt(static_cast<double>(tensor->ne[0]));
  if (contains(name, "norm") && contains(name, ".weight")) mean = 1;
  if (!vector && (contains(name, "attn_q") || contains(name, "attn_k"))) deviation *= 1.6;
  for (float& value : values) value = static_cast<float>(mean + deviation * normal(random));
}

// What the callback of libllama collects.
struct Collected {
  std::uint32_t seed;
  const std::string& broken;
  gguf_context* file;
  std::vector<ggml_context*> contexts;

  static void set(ggml_tensor* tensor, void* data) {
    auto& self = *static_cast<Collected*>(data);
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)));
    fill(tensor->name, tensor, self.seed, values);
    if (tensor->name == self.broken) values.assign(values.size(), std::nanf(""));
    ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
    // Layers may share a tensor; a file names it once.
    if (gguf_find_tensor(self.file, tensor->name) >= 0) return;
    ggml_context* context =
        ggml_init({ggml_tensor_overhead() + ggml_nbytes(tensor) + 64, nullptr, false});
    ggml_tensor* copy = ggml_new_tensor(context, tensor->type, GGML_MAX_DIMS, tensor->ne);
    ggml_set_name(copy, tensor->name);
    std::memcpy(copy->data, values.data(), ggml_nbytes(copy));
    gguf_add_tensor(self.file, copy);
    self.contexts.push_back(context);
  }
};

}  // namespace

void Metadata::Free::operator()(gguf_context* owned) const { gguf_free(owned); }

Metadata::Metadata(std::string_view architecture)
    : context_(gguf_init_empty()), architecture_(architecture) {
  gguf_set_val_str(get(), "general.architecture", architecture_.c_str());
  gguf_set_val_str(get(), "tokenizer.ggml.model", "none");
}

void Metadata::set_text(const std::string& key, const std::string& text) {
  const auto value = nlohmann::json::parse(text);
  const std::string full = architecture_ + "." + key;
  const char* name = full.c_str();
  if (value.is_boolean()) {
    gguf_set_val_bool(get(), name, value.get<bool>());
  } else if (value.is_number_integer()) {
    gguf_set_val_u32(get(), name, static_cast<std::uint32_t>(value.get<int>()));
  } else if (value.is_number_float()) {
    gguf_set_val_f32(get(), name, value.get<float>());
  } else if (value.is_string()) {
    gguf_set_val_str(get(), name, value.get<std::string>().c_str());
  } else if (!value.empty() && value[0].is_boolean()) {
    const auto bytes = value.get<std::vector<std::int8_t>>();
    gguf_set_arr_data(get(), name, GGUF_TYPE_BOOL, bytes.data(), bytes.size());
  } else {
    const auto numbers = value.get<std::vector<std::int32_t>>();
    gguf_set_arr_data(get(), name, GGUF_TYPE_INT32, numbers.data(), numbers.size());
  }
}

Metadata small_metadata(std::string_view architecture, const SmallModel& size) {
  Metadata m(architecture);
  m.set("block_count", size.layers);
  m.set("vocab_size", size.vocabulary);
  m.set("context_length", size.window);
  m.set("embedding_length", size.heads * size.head);
  m.set("feed_forward_length", 192);
  m.set("attention.head_count", size.heads);
  m.set("attention.head_count_kv", size.kv_heads);
  m.set("attention.key_length", size.head);
  m.set("attention.value_length", size.head);
  m.set("attention.layer_norm_epsilon", 1e-5F);
  m.set("attention.layer_norm_rms_epsilon", 1e-5F);
  m.set("rope.dimension_count", size.rotated);
  return m;
}

engine::LocalOptions exact_options(std::int64_t context, int ubatch, int timelines,
                                   const char* flash_attention, int threads) {
  engine::LocalOptions options;
  options.context = context;
  options.gpu_layers = 0;
  options.threads = threads;
  options.ubatch = ubatch;
  options.type_k = options.type_v = "f32";
  options.flash_attention = flash_attention;
  options.timelines = timelines;
  return options;
}

RandomModel::RandomModel(const Metadata& metadata, std::uint32_t seed, const std::string& broken) {
  engine::start_llama();
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> file(gguf_init_empty(), gguf_free);
  gguf_set_kv(file.get(), metadata.get());
  Collected collected{seed, broken, file.get(), {}};
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = 0;
  llama_model* model =
      llama_model_init_from_user(metadata.get(), Collected::set, &collected, params);
  if (model == nullptr) {
    throw std::runtime_error("libllama refuses " + metadata.architecture() + ": " +
                             engine::take_llama_log());
  }
  llama_model_free(model);
  static int counter = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("mrrope-" + metadata.architecture() + "-" + std::to_string(getpid()) + "-" +
           std::to_string(counter++) + ".gguf");
  const bool written = gguf_write_to_file(file.get(), path_.c_str(), false);
  for (ggml_context* context : collected.contexts) ggml_free(context);
  if (!written) throw std::runtime_error("cannot write " + path_.string());
}

RandomModel::~RandomModel() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace mrrope
