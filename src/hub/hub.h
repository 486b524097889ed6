// SPDX-License-Identifier: Apache-2.0
// Models by name: those in the caches of llama.cpp, Hugging Face and ollama, and downloads into the
// cache that llama.cpp shares with Hugging Face's own programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace mrrope::hub {

struct LocalModel {
  std::string name;            // "qwen2.5:7b" (ollama), "user/repo:Q4_K_M", "user/repo" (a folder)
  std::filesystem::path path;  // the GGUF file, the first of its parts, or the folder
  std::string problem{};       // why there is no path
};

// All that is on this machine, by name. What a cache says of its files is not trusted: a manifest
// that is damaged, or leads out of its store, becomes a model with a problem.
std::vector<LocalModel> local_models();

// Where local_models() looks, whether it exists or not.
std::vector<std::filesystem::path> model_folders();

// The path of a model: `name` itself if there is such a file or folder, else a local model of that
// name. ":latest" may be left out, and of a repository the quantization. Throws Error: failed, with
// the nearest names.
std::filesystem::path find_model(const std::string& name);

// Called with what happens to which file, such as "downloading model.gguf", and how far it is.
using OnBytes =
    std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)>;

// The model of a repository, "user/repo" or "user/repo:Q4_K_M", downloaded unless it is in the
// cache. Every file is checked against the SHA-256 that the server lists. A download that ends
// early, also by a signal, is continued by the next call. HF_ENDPOINT is the server, HF_TOKEN the
// key to it. Throws Error.
std::filesystem::path download(const std::string& repo_and_quant, const OnBytes& on_bytes = {});

}  // namespace mrrope::hub
