// SPDX-License-Identifier: Apache-2.0
// Strict reader of safetensors headers, and of the index that names the files of a split model.
// What is read is believed only if shapes, types and offsets fit each other and fill the file
// exactly.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/source.h"

namespace mrrope {

// The bytes of all tensors. Throws Error (corrupt).
std::uint64_t safetensors_bytes(const Source& source);

// The files of a model.safetensors.index.json, each a plain name, sorted and without repetition.
std::vector<std::string> read_safetensors_index(const Source& source);

// Bytes of weights of the model in this folder, and its files: model.safetensors, or those of the
// index. 0 and no files if there are no weights; Error (failed) if only some are there.
struct Weights {
  std::uint64_t bytes = 0;
  std::vector<std::filesystem::path> files;
};
Weights find_weights(const std::filesystem::path& folder);

}  // namespace mrrope
