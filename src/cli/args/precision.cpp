// SPDX-License-Identifier: Apache-2.0
#include "cli/args/precision.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/presets.h"
#include "formats/gguf/gguf.h"

namespace mrrope::cli {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return out;
}

std::string weight_types(const Model& model) {
  if (model.format != "gguf") return "unknown";
  std::map<std::string, std::uint64_t> bytes;
  for (const GgufPart& part : read_gguf(model.path).parts) {
    for (const GgufTensor& tensor : part.tensors) {
      const GgmlType* type = find_ggml_type(tensor.type);
      if (tensor.dims.size() > 1 && type != nullptr) bytes[lower(type->name)] += tensor.size;
    }
  }
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [name, size] : bytes) order.emplace_back(size, name);
  std::sort(order.rbegin(), order.rend());
  std::string text;
  for (const auto& [size, name] : order) text += (text.empty() ? "" : " + ") + name;
  return text.empty() ? "unknown" : text;
}

}  // namespace

nlohmann::ordered_json precision_of(const Model& model, const engine::LocalOptions& options) {
  return {{"weights", weight_types(model)},
          {"keys", lower(options.type_k)},
          {"values", lower(options.type_v)}};
}

void note_precision(const Model& model, const engine::LocalOptions& options) {
  if (chosen_preset() == nullptr || !chosen_preset()->float32) return;
  const nlohmann::ordered_json types = precision_of(model, options);
  for (const auto& [what, type] : types.items()) {
    if (type == "f32") continue;
    note(
        cat("the paper measured in float32; this run uses ", types["weights"].get<std::string>(),
            " weights, ", types["keys"].get<std::string>(), " keys and ",
            types["values"].get<std::string>(),
            " values. For float32, use an F32 GGUF (convert_hf_to_gguf.py --outtype f32) with -ctk "
            "f32 -ctv f32"));
    return;
  }
}

}  // namespace mrrope::cli
