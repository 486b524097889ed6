// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/local.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "base/text.h"
#include "engine/llama/devices.h"
#include "engine/llama/loader.h"
#include "engine/llama/local_model.h"
#include "engine/llama/tokenize.h"

namespace mrrope::engine {

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Empty for a missing file and for a word such as "max".
std::optional<std::uint64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// The value of a line "key value", as memory.stat and meminfo have them.
std::uint64_t field(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  for (std::string word; file >> word;) {
    if (word == key && file >> value) return value;
  }
  return 0;
}

// What a control group still allows. Version 1 has other names.
std::uint64_t allowed_by(const std::filesystem::path& group, bool old) {
  const auto limit = number_in(group / (old ? "memory.limit_in_bytes" : "memory.max"));
  const auto used = number_in(group / (old ? "memory.usage_in_bytes" : "memory.current"));
  if (!limit || !used) return kNoLimit;
  const auto stat = [&](const char* key) {
    return field(group / "memory.stat", cat(old ? "total_" : "", key));
  };
  const std::uint64_t cached = std::min(*used, stat("inactive_file") + stat("active_file"));
  const std::uint64_t taken = *used - cached;
  return taken < *limit ? *limit - taken : 0;
}

std::uint64_t allowed_by_groups(const std::filesystem::path& root) {
  std::uint64_t allowed = kNoLimit;
  // Lines "number:controllers:path"; version 2 has number 0 and no controllers.
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string number, controllers, path; std::getline(file, number, ':');) {
    if (!std::getline(file, controllers, ':') || !std::getline(file, path)) break;
    const bool old = !controllers.empty();
    if (old && cat(",", controllers, ",").find(",memory,") == std::string::npos) continue;
    const auto mount = root / (old ? "sys/fs/cgroup/memory" : "sys/fs/cgroup");
    // A group and all that it is part of, up to the mounted root. In a container the root may be
    // the process's own group while /proc names it as seen from outside: a missing folder is
    // skipped.
    for (auto group = std::filesystem::path(path).relative_path();; group = group.parent_path()) {
      allowed = std::min(allowed, allowed_by(mount / group, old));
      if (group.empty()) break;
    }
  }
  return allowed;
}

std::int64_t context_of(const Model& model, const LocalOptions& options) {
  return options.context > 0 ? options.context : model.geometry.train_length;
}

// What one timeline can have of it. libllama rounds shares up.
std::int64_t share_of(const Model& model, const LocalOptions& options) {
  const std::int64_t all = context_of(model, options);
  return options.unified ? all : (all / options.timelines + 255) / 256 * 256;
}

std::uint64_t available_on_accelerators(const LocalOptions& options) {
  std::uint64_t available = 0;
  for (const ggml_backend_dev_t device : devices_in_use(options)) {
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
  const double tokens = std::min(double(std::max(options.ubatch, options.timelines)),
                                 double(context_of(model, options)));
  const auto context = double(share_of(model, options));
  const double stream = 4 * tokens * model.embedding;
  const double logits = 4 * tokens * model.vocabulary;
  const double mask = tokens * context * (flash ? 2 : 4);
  const double scores = flash ? 0 : 4 * tokens * context * model.heads;
  return std::uint64_t(std::max(mask + scores + 12 * stream, logits + 2 * stream) + logits);
}

// libllama gives a windowed layer room for its window and one ubatch.
Model with_cached_windows(Model model, const LocalOptions& options) {
  const std::int64_t context = context_of(model, options);
  const std::int64_t wanted =
      keeps_windows_whole(options) ? context : std::int64_t{model.sliding_window} + options.ubatch;
  if (model.sliding_window > 0) {
    model.sliding_window = int(std::min(context, (wanted + 255) / 256 * 256));
  }
  return model;
}

std::string gib(std::uint64_t bytes) {
  return fixed(double(bytes) / (1024.0 * 1024 * 1024), 2) + " GiB";
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

void check_format(const Model& model) {
  if (model.format == "gguf") return;
  const bool is_file = model.path.has_extension() && !std::filesystem::is_directory(model.path);
  const std::string folder =
      (is_file ? model.path.parent_path() / "" : model.path).lexically_normal().string();
  unsupported(cat(model.path.string(),
                  " is a Hugging Face checkpoint, and the local engine runs GGUF files"),
              cat("convert it with llama.cpp's script: python convert_hf_to_gguf.py ", folder,
                  " --outfile model.gguf --outtype q8_0"));
}

}  // namespace

std::uint64_t available_memory(const std::filesystem::path& root) {
  std::uint64_t available = field(root / "proc/meminfo", "MemAvailable:") * 1024;
  if (available == 0) {
    available = std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE));
  }
  return std::min(available, allowed_by_groups(root));
}

bool keeps_windows_whole(const LocalOptions& options) noexcept {
  return options.swa_full || options.timelines > 1;
}

MemoryPlan plan_memory(const Model& model, const LocalOptions& options) {
  start_llama();
  const auto bits_of = [](ggml_type type) {
    return 8.0 * double(ggml_type_size(type)) / double(ggml_blck_size(type));
  };
  const double bits =
      (bits_of(cache_type(options.type_k, "-ctk")) + bits_of(cache_type(options.type_v, "-ctv"))) /
      2;
  MemoryPlan plan;
  plan.weights = model.weight_bytes;
  const std::int64_t context = share_of(model, options) * (options.unified ? 1 : options.timelines);
  plan.kv = kv_bytes(with_cached_windows(model, options), context, bits);
  plan.compute = compute_bytes(model, options, options.flash_attention != "off");
  const std::uint64_t accelerators = available_on_accelerators(options);
  const bool partly = options.gpu_layers > 0 && options.gpu_layers < int(model.layers.size());
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
  if (hint.empty()) hint = "use a smaller quantization of the model, or a larger machine";
  throw Error(
      ErrorKind::out_of_memory,
      cat("a context of ", context_of(model, options), " tokens needs ", gib(plan.total()),
          " (weights ", gib(plan.weights), ", key-value cache ", gib(plan.kv), ", buffers about ",
          gib(plan.compute), "), but only ", gib(plan.available), " are free"),
      hint);
}

std::unique_ptr<Tokenizer> open_vocabulary(const std::filesystem::path& file) {
  return std::make_unique<WithTokenizer<Tokenizer>>(load_vocabulary(file), file);
}

std::vector<std::vector<float>> stock_logits(const std::filesystem::path& file,
                                             const std::vector<Token>& tokens,
                                             const std::vector<std::size_t>& wanted,
                                             const LocalOptions& options,
                                             const std::function<void(std::int64_t)>& on_tokens) {
  const LlamaPtr<llama_model> model =
      load_model({file}, options.gpu_layers, chosen_devices(options));
  llama_context_params params = context_params(options, options.context);
  params.swa_full = false;
  const LlamaPtr<llama_context> context = make_context(model.get(), params);
  const auto vocabulary = std::size_t(llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
  const std::size_t ubatch = llama_n_ubatch(context.get());
  std::vector<Token> own = tokens;  // libllama does not take constant ones
  std::vector<std::int8_t> flags(tokens.size(), 0);
  for (const std::size_t i : wanted) flags.at(i) = 1;
  std::vector<std::vector<float>> rows;
  for (std::size_t first = 0; first < tokens.size(); first += ubatch) {
    const std::size_t count = std::min(ubatch, tokens.size() - first);
    std::vector<std::int8_t> outputs(flags.data() + first, flags.data() + first + count);
    outputs.back() = 1;  // some graphs need one
    llama_batch batch = llama_batch_get_one(own.data() + first, int32_t(count));
    batch.logits = outputs.data();
    const int result = llama_decode(context.get(), batch);
    if (result != 0) {
      fail(cat("libllama failed with ", result, " at position ", first, ": ", take_llama_log()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (flags[first + i] == 0) continue;
      const float* row = llama_get_logits_ith(context.get(), int32_t(i));
      if (row == nullptr) fail(cat("no logits at position ", first + i));
      rows.emplace_back(row, row + vocabulary);
    }
    if (on_tokens) on_tokens(std::int64_t(count));
  }
  return rows;
}

void prepare(const Model& model, const LocalOptions& options) {
  start_llama();
  const auto refuse = [](const char* flag, auto value, const char* range) {
    mrrope::refuse(cat(flag, " ", value, " is not ", range),
                   cat("remove ", flag, " to use the default"));
  };
  if (options.context < 0 || options.context > INT32_MAX) {
    refuse("-c", options.context, "a number of tokens below 2^31");
  }
  if (options.ubatch < 1) refuse("-ub", options.ubatch, "at least 1");
  if (options.gpu_layers < -1) refuse("-ngl", options.gpu_layers, "at least -1 (all)");
  const auto most = int(llama_max_parallel_sequences());
  refuse_if(options.timelines < 1 || options.timelines > most,
            cat(options.timelines, " sequences at once: libllama has 1 to ", most),
            cat("ask for at most ", most));
  add_rpc_servers(options.rpc);
  check_memory(model, options);
}

std::unique_ptr<Tokenizer> open_vocabulary(const Model& model) {
  check_format(model);
  return open_vocabulary(model.path);
}

std::unique_ptr<TimelineModel> open_local(const Model& model, const LocalOptions& options) {
  check_format(model);
  prepare(model, options);
  const auto files = model.files.empty() ? std::vector{model.path} : model.files;
  return std::make_unique<LocalModel>(
      load_model(files, options.gpu_layers, chosen_devices(options)), model, options);
}

}  // namespace mrrope::engine
