// SPDX-License-Identifier: Apache-2.0
// A GGUF of an architecture whose graph is llama's, as one of architecture llama.
#pragma once

#include "formats/architectures.h"
#include "formats/gguf/gguf_copy.h"
#include "mrrope/model.h"

namespace mrrope {

// Throws Error (unsupported) that names the key or tensor that llama would read in another way, or
// not at all.
void check_relabel(const Gguf& gguf, const Model& model, const Architecture& from);

// The tensor under llama's name, its rows in llama's order.
GgufTensorOut relabelled(GgufTensorOut tensor, const Model& model, const Architecture& from);

}  // namespace mrrope
