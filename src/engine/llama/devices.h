// SPDX-License-Identifier: Apache-2.0
// What runs a model: the code for this processor, GPUs, and the add-ons that bring them.
#pragma once

#include <ggml-backend.h>

#include <string>
#include <vector>

#include "engine/llama/local.h"

namespace mrrope::engine {

// The address of a symbol in the library of the device's backend. Null: there is no such symbol, or
// the backend is part of the program.
void* symbol_of(ggml_backend_dev_t device, const char* name);

// Where ggml's libraries are files (MRROPE_ANY_PROCESSOR), loads the code for this processor, once;
// then what add-ons have put beside it. An add-on that cannot be used is remembered. Throws Error
// (failed): no code for this processor.
void load_processor();
void load_add_ons();

// --device as llama_model_params takes it: null at the end. Empty: as llama.cpp chooses. Throws
// Error: usage (no such device), failed (its add-on cannot be used).
std::vector<ggml_backend_dev_t> chosen_devices(const LocalOptions& options);

// Those that hold layers or compute with these options, the CPU last. Throws as above.
std::vector<ggml_backend_dev_t> devices_in_use(const LocalOptions& options);

}  // namespace mrrope::engine
