// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/local.h"

#include "base/text.h"
#include "engine/llama/local_model.h"
#include "engine/llama/memory.h"
#include "engine/llama/rpc.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

void check_options(const LocalOptions& options) {
  const auto refuse = [](const char* flag, auto value, const char* range) {
    throw Error(ErrorKind::usage, cat(flag, " ", value, " is not ", range));
  };
  if (options.context < 0 || options.context > INT32_MAX) {
    refuse("-c", options.context, "a number of tokens below 2^31");
  }
  if (options.ubatch < 1) refuse("-ub", options.ubatch, "at least 1");
  if (options.threads < 0) refuse("-t", options.threads, "at least 0");
  if (options.gpu_layers < -1) refuse("-ngl", options.gpu_layers, "at least -1 (all)");
  const auto most = static_cast<int>(llama_max_parallel_sequences());
  if (options.timelines < 1 || options.timelines > most) {
    throw Error(ErrorKind::usage,
                cat(options.timelines, " timelines at once: libllama keeps 1 to ", most));
  }
}

LlamaPtr<llama_model> load(const Model& model, const LocalOptions& options) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = options.gpu_layers;
  std::vector<std::string> names;
  for (const auto& file : model.files) names.push_back(file.string());
  if (names.empty()) names.push_back(model.path.string());
  std::vector<const char*> paths;
  for (const std::string& name : names) paths.push_back(name.c_str());
  take_llama_log();
  LlamaPtr<llama_model> loaded(
      paths.size() == 1 ? llama_model_load_from_file(paths.front(), params)
                        : llama_model_load_from_splits(paths.data(), paths.size(), params));
  if (!loaded) {
    throw Error(ErrorKind::unsupported,
                cat("libllama cannot load ", model.path.string(), ": ", take_llama_log()));
  }
  return loaded;
}

}  // namespace

std::unique_ptr<TimelineModel> open_local(const Model& model, const LocalOptions& options) {
  if (model.format != "gguf") {
    const bool is_file = model.path.has_extension() && !std::filesystem::is_directory(model.path);
    const std::string folder =
        (is_file ? model.path.parent_path() / "" : model.path).lexically_normal().string();
    throw Error(ErrorKind::unsupported,
                cat(model.path.string(),
                    " is a Hugging Face checkpoint, and the local engine runs "
                    "GGUF files"),
                cat("convert it with llama.cpp's script: python convert_hf_to_gguf.py ", folder,
                    " --outfile model.gguf --outtype q8_0"));
  }
  start_llama();
  check_options(options);
  add_rpc_servers(options.rpc);
  check_memory(model, options);
  return std::make_unique<LocalModel>(load(model, options), model, options);
}

}  // namespace mrrope
