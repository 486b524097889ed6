// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/local.h"

#include "base/text.h"
#include "engine/llama/loader.h"
#include "engine/llama/local_model.h"
#include "engine/llama/memory.h"
#include "engine/llama/rpc.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

std::vector<std::filesystem::path> files_of(const Model& model) {
  return model.files.empty() ? std::vector{model.path} : model.files;
}

}  // namespace

void check_options(const LocalOptions& options) {
  const auto refuse = [](const char* flag, auto value, const char* range) {
    throw Error(ErrorKind::usage, cat(flag, " ", value, " is not ", range),
                cat("remove ", flag, " to use the default"));
  };
  if (options.context < 0 || options.context > INT32_MAX) {
    refuse("-c", options.context, "a number of tokens below 2^31");
  }
  if (options.ubatch < 1) refuse("-ub", options.ubatch, "at least 1");
  if (options.gpu_layers < -1) refuse("-ngl", options.gpu_layers, "at least -1 (all)");
  const auto most = static_cast<int>(llama_max_parallel_sequences());
  if (options.timelines < 1 || options.timelines > most) {
    throw Error(ErrorKind::usage,
                cat(options.timelines, " sequences at once: libllama has 1 to ", most),
                cat("ask for at most ", most));
  }
}

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
  return std::make_unique<LocalModel>(load_model(files_of(model), options.gpu_layers), model,
                                      options);
}

}  // namespace mrrope::engine
