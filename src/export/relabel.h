// SPDX-License-Identifier: Apache-2.0
// Turns a GGUF of an architecture whose graph is llama's into one of architecture llama.
#pragma once

#include "formats/architectures.h"
#include "formats/gguf/gguf_copy.h"
#include "mrrope/model.h"

namespace mrrope::exporting {

// Throws Error (unsupported) that names a key or tensor that llama would read differently or not at
// all, and Error (corrupt) where the rows of queries or keys are not whole heads.
void check_relabel(const Gguf& gguf, const Model& model, const Architecture& from);

// The tensor under llama's name, its rows in llama's order.
GgufTensorOut relabelled(GgufTensorOut tensor, const Model& model, const Architecture& from);

}  // namespace mrrope::exporting
