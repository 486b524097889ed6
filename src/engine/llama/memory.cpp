// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/memory.h"

#include <algorithm>

#include "base/text.h"
#include "engine/host/host_memory.h"
#include "engine/llama/llama_api.h"
#include "engine/llama/loader.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

double bits_of(ggml_type type) {
  return 8.0 * static_cast<double>(ggml_type_size(type)) /
         static_cast<double>(ggml_blck_size(type));
}

std::int64_t context_of(const Model& model, const LocalOptions& options) {
  return options.context > 0 ? options.context : model.geometry.train_length;
}

// What one timeline can have of it. libllama rounds shares up.
std::int64_t share_of(const Model& model, const LocalOptions& options) {
  const std::int64_t all = context_of(model, options);
  return options.unified ? all : (all / options.timelines + 255) / 256 * 256;
}

std::uint64_t available_on_accelerators() {
  std::uint64_t available = 0;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_GPU) continue;
    std::size_t free = 0;
    std::size_t total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    available += free;
  }
  return available;
}

// The largest graph has one ubatch of tokens over a full cache, and memory is used again as soon as
// it is free. Either the attention is the widest part: the mask (f16 with flash attention, else
// f32), without flash attention the scores of every head, and some widths of the residual stream
// for the layer around it; or the end is: the logits. Then the logits once more, for the host.
// Checked against the real buffers in tests/integration/memory_test.cpp.
std::uint64_t compute_bytes(const Model& model, const LocalOptions& options, bool flash) {
  const auto tokens = static_cast<double>(options.ubatch);
  const auto context = static_cast<double>(share_of(model, options));
  const double stream = 4 * tokens * model.embedding;
  const double logits = 4 * tokens * model.vocabulary;
  const double mask = tokens * context * (flash ? 2 : 4);
  const double scores = flash ? 0 : 4 * tokens * context * model.heads;
  return static_cast<std::uint64_t>(std::max(mask + scores + 12 * stream, logits + 2 * stream) +
                                    logits);
}

// libllama gives a windowed layer room for its window and one ubatch.
Model with_cached_windows(Model model, const LocalOptions& options) {
  const std::int64_t context = context_of(model, options);
  const std::int64_t wanted =
      keeps_windows_whole(options) ? context : std::int64_t{model.sliding_window} + options.ubatch;
  if (model.sliding_window > 0) {
    model.sliding_window = static_cast<int>(std::min(context, (wanted + 255) / 256 * 256));
  }
  return model;
}

std::string gib(std::uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / (1024.0 * 1024 * 1024), 2) + " GiB";
}

// The longest context that fits, in steps of 1024 tokens; 0 if none does.
std::int64_t longest_fit(const Model& model, LocalOptions options) {
  std::int64_t fits = 0;
  for (std::int64_t step = context_of(model, options) / 1024; step > 0; step /= 2) {
    while (true) {
      options.context = fits + step * 1024;
      const MemoryPlan plan = plan_memory(model, options);
      if (plan.total() > plan.available) break;
      fits = options.context;
    }
  }
  return fits;
}

}  // namespace

bool keeps_windows_whole(const LocalOptions& options) noexcept {
  return options.swa_full || options.timelines > 1;
}

MemoryPlan plan_memory(const Model& model, const LocalOptions& options) {
  start_llama();
  const ggml_type key = cache_type(options.type_k, "-ctk");
  const ggml_type value = cache_type(options.type_v, "-ctv");
  MemoryPlan plan;
  plan.weights = model.weight_bytes;
  const double bits = (bits_of(key) + bits_of(value)) / 2;
  const std::int64_t context = share_of(model, options) * (options.unified ? 1 : options.timelines);
  plan.kv = kv_bytes(with_cached_windows(model, options), context, bits);
  plan.compute = compute_bytes(model, options, options.flash_attention != "off");
  const std::uint64_t accelerators = options.gpu_layers == 0 ? 0 : available_on_accelerators();
  const bool partly =
      options.gpu_layers > 0 && options.gpu_layers < static_cast<int>(model.layers.size());
  plan.available = accelerators == 0 ? available_memory() : accelerators;
  if (accelerators > 0 && partly) plan.available += available_memory();
  return plan;
}

void check_memory(const Model& model, const LocalOptions& options) {
  const MemoryPlan plan = plan_memory(model, options);
  if (plan.total() <= plan.available) return;
  std::string hint;
  LocalOptions smaller = options;
  const std::int64_t fits = longest_fit(model, smaller);
  if (fits > 0) hint = cat("-c ", fits, " would fit");
  smaller.type_k = smaller.type_v = "q8_0";
  const std::int64_t fits_q8 = longest_fit(model, smaller);
  if (fits_q8 > fits) {
    hint += cat(hint.empty() ? "" : ", or ", "-ctk q8_0 -ctv q8_0 with -c ", fits_q8,
                hint.empty() ? " would fit" : "");
  }
  if (hint.empty()) hint = "use a smaller quantisation of the model, or a larger machine";
  throw Error(
      ErrorKind::out_of_memory,
      cat("a context of ", context_of(model, options), " tokens needs ", gib(plan.total()),
          " (weights ", gib(plan.weights), ", key-value cache ", gib(plan.kv), ", buffers about ",
          gib(plan.compute), "), but only ", gib(plan.available), " are free"),
      hint);
}

}  // namespace mrrope::engine
