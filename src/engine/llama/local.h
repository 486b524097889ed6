// SPDX-License-Identifier: Apache-2.0
// The local engine: libllama, unpatched, with the plan written into its graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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
  // One cache that all timelines share, where a timeline can have all that others do not use, and
  // attention reads, masked, what they do use. Otherwise each has context / timelines tokens of its
  // own and costs the others nothing, and forks are whole copies.
  bool unified = true;
  // Alive at the same time, forks included, at most. With more than one, sliding-window layers keep
  // every token anyway: libllama cannot reuse what two of them share.
  int timelines = 16;
};

// Throws Error (usage) that names the flag of a number that is out of range.
void check_options(const LocalOptions& options);

// Checks the header with our own reader first, then memory, then loads. Throws Error: unsupported,
// corrupt, out_of_memory (with what would fit), failed. A Hugging Face folder is refused with the
// conversion command to type.
std::unique_ptr<TimelineModel> open_local(const Model& model, const LocalOptions& options);

}  // namespace mrrope::engine
