// SPDX-License-Identifier: Apache-2.0
// The local engine: libllama, unpatched, with the plan written into its graphs; what a model takes
// there; and a file's tokenizer or its logits without a plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/timeline_model.h"

namespace mrrope::engine {

// Names as in llama.cpp's own command line.
struct LocalOptions {
  std::int64_t context = 0;              // -c: tokens the cache can hold, 0: the model's window
  int gpu_layers = -1;                   // -ngl: layers on the accelerator, -1: all
  int threads = 0;                       // -t: 0 means all cores
  int ubatch = 512;                      // -ub: tokens computed at once
  std::string type_k = "f16";            // -ctk: f32, f16, bf16, q8_0, q4_0, ...
  std::string type_v = "f16";            // -ctv
  std::string flash_attention = "auto";  // -fa: on, off, auto
  bool swa_full = false;                 // --swa-full: sliding-window layers keep every token
  // --rpc: host:port of running servers of llama.cpp's RPC backend, commas between. Layers are
  // spread over them, then over local accelerators, by the memory that each has free.
  std::string rpc;
  std::string device;  // --device: names of ggml's devices, commas between; empty: all GPUs
  // One cache that all timelines share, where a timeline can have all that others do not use, and
  // attention reads, masked, what they do use. Otherwise each has context / timelines tokens of its
  // own and costs the others nothing, and forks are whole copies.
  bool unified = true;
  // Alive at the same time, forks included, at most. With more than one, sliding-window layers keep
  // every token anyway: libllama cannot reuse what two of them share.
  int timelines = 16;
  std::string pooling = {};  // --pooling of embeddings: mean, cls, last; empty: as the file says
  bool keep_speed = false;   // what is read is timed, for estimates of later calls (run/speed.h)
};

// Checks options and memory, then loads. Throws Error: unsupported, corrupt, out_of_memory (with
// what would fit), failed. A Hugging Face folder is refused with the conversion command to type.
std::unique_ptr<TimelineModel> open_local(const Model& model, const LocalOptions& options);

// What it takes to run this model, found without loading its weights.
struct MemoryPlan {
  std::uint64_t weights = 0;  // bytes
  std::uint64_t kv = 0;
  std::uint64_t compute = 0;  // estimated
  std::uint64_t available = 0;
  std::uint64_t total() const { return weights + kv + compute; }
};
MemoryPlan plan_memory(const Model& model, const LocalOptions& options);

// How much more memory this process may use on the host, in bytes: the kernel's estimate, or what a
// control group (version 1 or 2) still allows if that is less. Cached pages of files count as free
// in both, since the kernel drops them on demand. root: the folder that has proc and sys/fs/cgroup.
std::uint64_t available_memory(const std::filesystem::path& root = "/");

// Throws Error (out_of_memory) with the figures and with what would fit.
void check_memory(const Model& model, const LocalOptions& options);

// What comes before a model is loaded: libllama is started, options and memory are checked, the
// servers of --rpc added. Throws Error (usage) that names the flag, and as check_memory() does.
void prepare(const Model& model, const LocalOptions& options);

// Whether sliding-window layers keep every token.
bool keeps_windows_whole(const LocalOptions& options) noexcept;

// Unmodified libllama, without a callback or a plan: exports are checked against it. Returns the
// logits after each of the tokens listed in `wanted` (ascending), from a fresh context of
// options.context tokens. Throws Error: unsupported where libllama refuses the file (with its
// words), failed. on_tokens: called with the tokens computed since the last call.
std::vector<std::vector<float>> stock_logits(
    const std::filesystem::path& file, const std::vector<Token>& tokens,
    const std::vector<std::size_t>& wanted, const LocalOptions& options,
    const std::function<void(std::int64_t)>& on_tokens = {});

// Of ggml's code for processors the one that runs here, e.g. "armv8.6_2" or "haswell"; empty in a
// build that has only one. Throws Error (failed): none runs.
std::string processor_code();
// What --device takes, a line for each, and what keeps an add-on from being used.
std::string device_list();
// What to tell a user who names no device: which add-ons are not used, and why.
std::vector<std::string> device_notes(const LocalOptions& options);

// The tokenizer of a GGUF file alone: its weights are not read. Throws Error: unsupported, failed,
// corrupt.
std::unique_ptr<Tokenizer> open_vocabulary(const std::filesystem::path& file);
// The same of a model that open_local() would load: others are refused as there.
std::unique_ptr<Tokenizer> open_vocabulary(const Model& model);

}  // namespace mrrope::engine
