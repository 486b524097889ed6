// SPDX-License-Identifier: Apache-2.0
#include "formats/model_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/plan_file.h"

namespace mrrope {

const char* to_string(LayerKind kind) noexcept {
  switch (kind) {
    case LayerKind::full:
      return "full";
    case LayerKind::windowed:
      return "windowed";
    case LayerKind::unrotated:
      return "unrotated";
    case LayerKind::recurrent:
      return "recurrent";
  }
  return "full";
}

std::map<std::string, int> layer_counts(const Model& model) {
  std::map<std::string, int> counts;
  for (const Layer& layer : model.layers) ++counts[to_string(layer.kind)];
  return counts;
}

nlohmann::ordered_json model_json(const Model& model, std::int64_t ctx) {
  nlohmann::ordered_json out;
  out["path"] = model.path.string();
  out["format"] = model.format;
  out["name"] = model.name;
  out["architecture"] = model.architecture;
  out["embedding"] = model.embedding;
  out["layers"] = model.layers.size();
  out["layer_kinds"] = layer_counts(model);
  out["layer_list"] = nlohmann::ordered_json::array();
  for (const Layer& layer : model.layers) out["layer_list"].push_back(to_string(layer.kind));
  out["heads"] = model.heads;
  out["kv_heads"] = model.kv_heads;
  out["key_length"] = model.key_length;
  out["value_length"] = model.value_length;
  out["vocabulary"] = model.vocabulary;
  out["sliding_window"] = model.sliding_window;
  out["latent_attention"] = model.latent_attention;
  out["mrope_sections"] = model.mrope_sections;
  out["geometry"] = geometry_json(model.geometry);
  out["scaling"] = {{"type", model.scaling.type.empty() ? "none" : model.scaling.type},
                    {"factor", model.scaling.factor},
                    {"original_length", model.scaling.original_length},
                    {"trained", model.scaling.trained}};
  out["weight_bytes"] = model.weight_bytes;
  out["files"] = nlohmann::ordered_json::array();
  for (const auto& file : model.files) out["files"].push_back(file.string());
  out["ctx"] = ctx;
  out["scale"] = std::max(1.0, double(ctx) / double(model.geometry.train_length));
  out["kv_bytes"] = {{"f16", kv_bytes(model, ctx, kBitsF16)},
                     {"q8_0", kv_bytes(model, ctx, kBitsQ8)}};
  return out;
}

}  // namespace mrrope
