// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <regex>

#include "base/text.h"
#include "export/gguf_export.h"
#include "mrrope/error.h"

namespace mrrope::exporting {
namespace {

[[noreturn]] void cannot_relabel(const Architecture& from, const std::string& what) {
  throw Error(ErrorKind::unsupported,
              cat("a file of architecture ", from.name,
                  " can be written as architecture llama, but this one ", what),
              "add --approximate to write the nearest YaRN instead; it prints the error");
}

// "blk.12.attn_q.weight" as 12 and "attn_q.weight"; other names as -1 and themselves.
std::pair<int, std::string> layer_and_name(const std::string& name) {
  static const std::regex pattern("blk[.](0|[1-9][0-9]{0,4})[.](.*)");
  std::smatch found;
  if (!std::regex_match(name, found, pattern)) return {-1, name};
  return {std::stoi(found[1]), found[2]};
}

std::string llama_name(const std::string& name, const Architecture& from) {
  const auto [layer, rest] = layer_and_name(name);
  if (from.has(Trait::norm_renamed) && layer >= 0 && rest == "post_attention_norm.weight") {
    return cat("blk.", layer, ".ffn_norm.weight");
  }
  return name;
}

// What both graphs read in the same place.
bool is_shared(const std::string& name, const Architecture& from) {
  constexpr std::array kOutside{"token_embd.weight", "output_norm.weight", "output.weight"};
  constexpr std::array kLayer{"attn_norm.weight",   "attn_q.weight",   "attn_k.weight",
                              "attn_v.weight",      "attn_qkv.weight", "attn_q.bias",
                              "attn_k.bias",        "attn_v.bias",     "attn_qkv.bias",
                              "attn_output.weight", "ffn_norm.weight", "ffn_gate.weight",
                              "ffn_up.weight",      "ffn_down.weight"};
  const auto [layer, rest] = layer_and_name(name);
  if (layer < 0) return std::find(kOutside.begin(), kOutside.end(), name) != kOutside.end();
  if (rest == "attn_output.bias") return from.has(Trait::reads_output_bias);
  return std::find(kLayer.begin(), kLayer.end(), rest) != kLayer.end();
}

bool is_part(const std::string& name, const char* part) {
  const auto [layer, rest] = layer_and_name(name);
  return layer >= 0 && rest.rfind(part, 0) == 0;
}
bool is_fused(const std::string& name) { return is_part(name, "attn_qkv."); }
// Whether its rows are queries or keys, or begin with them.
bool is_rotated(const std::string& name) {
  return is_part(name, "attn_q.") || is_part(name, "attn_k.") || is_fused(name);
}

// Rows of a matrix, elements of a bias; 0 if it is neither.
std::uint64_t rows_of(const std::vector<std::uint64_t>& dims) {
  if (dims.empty() || dims.size() > 2) return 0;
  return dims.back();
}

// Heads of queries and keys at the front of the rows of a tensor that is_rotated().
std::uint64_t rotated_heads(const std::string& name, std::uint64_t rows, const Model& model) {
  if (is_fused(name)) {
    return std::uint64_t(model.heads) + std::uint64_t(model.kv_heads);
  }
  return rows / std::uint64_t(model.key_length);
}

}  // namespace

void check_relabel(const Gguf& gguf, const Model& model, const Architecture& from) {
  if (model.geometry.rotary_dim != model.key_length || model.key_length != model.value_length) {
    cannot_relabel(from, cat("rotates ", model.geometry.rotary_dim, " of ", model.key_length,
                             " elements of a head, and llama rotates all"));
  }
  const std::string prefix = cat(from.name, ".");
  // Keys that llama's graph reads and this one does not.
  const bool scale = gguf.first().find(prefix + "attention.scale") != nullptr;
  if (scale && !from.has(Trait::reads_scale))
    cannot_relabel(from, cat("has a key ", prefix, "attention.scale"));
  if (gguf.first().integer(prefix + "expert_count", 0, 1 << 20).value_or(0) > 0) {
    cannot_relabel(from, cat("has a key ", prefix, "expert_count"));
  }
  for (const GgufPart& part : gguf.parts) {
    for (const GgufTensor& tensor : part.tensors) {
      if (is_rope_list(tensor.name)) continue;  // replaced
      const std::string name = llama_name(tensor.name, from);
      if (!is_shared(name, from)) cannot_relabel(from, cat("has a tensor ", shown(tensor.name)));
      if (name != tensor.name && gguf.find_tensor(name).second) {
        cannot_relabel(from, cat("has both ", shown(tensor.name), " and ", shown(name)));
      }
      if (!is_rotated(tensor.name)) continue;
      const std::uint64_t rows = rows_of(tensor.dims);
      const std::uint64_t heads = rotated_heads(tensor.name, rows, model);
      const auto head = std::uint64_t(model.key_length);
      if (rows == 0 || rows % head != 0 || heads * head > rows) {
        corrupt(part.name(),
                cat("tensor ", shown(tensor.name), " has ", tensor.dims.size(), " dimensions and ",
                    rows, " rows, not whole heads of ", head, " rows"));
      }
      if (is_fused(tensor.name) && rows != (heads + std::uint64_t(model.kv_heads)) * head) {
        cannot_relabel(from, cat("has a tensor ", shown(tensor.name), " of ", rows, " rows"));
      }
      if (tensor.dims.size() == 1 && find_ggml_type(tensor.type)->block != 1) {
        cannot_relabel(from, cat("has a quantised bias ", shown(tensor.name)));
      }
    }
  }
}

GgufTensorOut relabelled(GgufTensorOut tensor, const Model& model, const Architecture& from) {
  if (model.geometry.pairing == Pairing::halves && is_rotated(tensor.name)) {
    tensor.rows = {std::uint64_t(model.key_length),
                   rotated_heads(tensor.name, rows_of(tensor.dims), model)};
  }
  tensor.name = llama_name(tensor.name, from);
  return tensor;
}

}  // namespace mrrope::exporting
