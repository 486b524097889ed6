// SPDX-License-Identifier: Apache-2.0
#include "export/relabel.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

[[noreturn]] void refuse(const Architecture& from, const std::string& what) {
  throw Error(
      ErrorKind::unsupported,
      cat("a file of architecture ", from.name, " can become one of llama, but this one ", what),
      "--approximate writes the nearest YaRN instead, with its error");
}

// "blk.12.attn_q.weight" as 12 and "attn_q.weight"; other names as -1 and themselves.
std::pair<int, std::string> layer_and_name(const std::string& name) {
  if (name.rfind("blk.", 0) != 0) return {-1, name};
  const std::size_t dot = name.find('.', 4);
  const std::string digits = name.substr(4, dot == std::string::npos ? dot : dot - 4);
  const bool number = !digits.empty() && digits.size() <= 5 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  if (dot == std::string::npos || !number) return {-1, name};
  return {std::stoi(digits), name.substr(dot + 1)};
}

std::string llama_name(const std::string& name, const Architecture& from) {
  const auto [layer, rest] = layer_and_name(name);
  if (from.name == "seed_oss" && layer >= 0 && rest == "post_attention_norm.weight") {
    return cat("blk.", layer, ".ffn_norm.weight");
  }
  return name;
}

// What both graphs read, in the same place. Biases of the output projection are llama's too, but
// of these architectures only Pangu's graph adds them.
bool is_shared(const std::string& name, const Architecture& from) {
  constexpr std::array kOutside{"token_embd.weight", "output_norm.weight", "output.weight"};
  constexpr std::array kLayer{"attn_norm.weight",   "attn_q.weight",   "attn_k.weight",
                              "attn_v.weight",      "attn_qkv.weight", "attn_q.bias",
                              "attn_k.bias",        "attn_v.bias",     "attn_qkv.bias",
                              "attn_output.weight", "ffn_norm.weight", "ffn_gate.weight",
                              "ffn_up.weight",      "ffn_down.weight"};
  const auto [layer, rest] = layer_and_name(name);
  if (layer < 0) return std::find(kOutside.begin(), kOutside.end(), name) != kOutside.end();
  if (rest == "attn_output.bias") return from.name == "pangu-embedded";
  return std::find(kLayer.begin(), kLayer.end(), rest) != kLayer.end();
}

bool is_rope_list(const std::string& name) {
  return name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
         name == "rope_factors_short.weight";
}

// Heads of queries and keys at the front of this tensor's rows; 0 where it holds neither.
std::uint64_t rotated_heads(const GgufTensorOut& tensor, const Model& model) {
  const std::string rest = layer_and_name(tensor.name).second;
  const auto is = [&](const char* part) { return rest.rfind(part, 0) == 0; };
  const std::uint64_t rows = tensor.dims.size() == 1 ? tensor.dims[0] : tensor.dims[1];
  const auto head = static_cast<std::uint64_t>(model.key_length);
  if (is("attn_q.") || is("attn_k.")) return rows / head;
  if (is("attn_qkv.")) return static_cast<std::uint64_t>(model.heads + model.kv_heads);
  return 0;
}

}  // namespace

void check_relabel(const Gguf& gguf, const Model& model, const Architecture& from) {
  if (model.geometry.rotary_dim != model.key_length || model.key_length != model.value_length) {
    refuse(from, cat("rotates ", model.geometry.rotary_dim, " of ", model.key_length,
                     " elements of a head, and llama rotates all"));
  }
  const std::string prefix = cat(from.name, ".");
  // Keys that llama's graph listens to and this one does not.
  const bool scale = gguf.first().find(prefix + "attention.scale") != nullptr;
  if (scale && from.name != "seed_oss") refuse(from, cat("has a key ", prefix, "attention.scale"));
  if (gguf.first().integer(prefix + "expert_count", 0, 1 << 20).value_or(0) > 0) {
    refuse(from, cat("has a key ", prefix, "expert_count"));
  }
  for (const GgufPart& part : gguf.parts) {
    for (const GgufTensor& tensor : part.tensors) {
      if (is_rope_list(tensor.name)) continue;  // written anew
      const std::string name = llama_name(tensor.name, from);
      if (!is_shared(name, from)) refuse(from, cat("has a tensor ", shown(tensor.name)));
      if (name != tensor.name && gguf.find_tensor(name).second) {
        refuse(from, cat("has both ", shown(tensor.name), " and ", shown(name)));
      }
      const GgufTensorOut out = copied(part, tensor);
      const std::uint64_t heads = rotated_heads(out, model);
      if (heads == 0) continue;
      const std::uint64_t rows = tensor.dims.size() == 1 ? tensor.dims[0] : tensor.dims.at(1);
      const auto head = static_cast<std::uint64_t>(model.key_length);
      if (tensor.dims.size() > 2 || rows % head != 0 || heads * head > rows) {
        throw Error(ErrorKind::corrupt,
                    cat(part.name(), ": tensor ", shown(tensor.name), " has ", rows,
                        " rows, which are no heads of ", head),
                    "the file is damaged: fetch it again");
      }
      const bool fused = layer_and_name(tensor.name).second.rfind("attn_qkv.", 0) == 0;
      if (fused && rows != (heads + static_cast<std::uint64_t>(model.kv_heads)) * head) {
        refuse(from, cat("has a tensor ", shown(tensor.name), " of ", rows, " rows"));
      }
      if (tensor.dims.size() == 1 && find_ggml_type(tensor.type)->block != 1) {
        refuse(from, cat("has a quantised bias ", shown(tensor.name)));
      }
    }
  }
}

GgufTensorOut relabelled(GgufTensorOut tensor, const Model& model, const Architecture& from) {
  if (model.geometry.pairing == Pairing::halves) {
    const std::uint64_t heads = rotated_heads(tensor, model);
    if (heads > 0) tensor.rows = {static_cast<std::uint64_t>(model.key_length), heads};
  }
  tensor.name = llama_name(tensor.name, from);
  return tensor;
}

}  // namespace mrrope
