// SPDX-License-Identifier: Apache-2.0
#include "engine/run/open.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/files/output_file.h"
#include "base/files/source.h"
#include "base/text.h"
#include "formats/facts.h"
#include "formats/gguf/gguf.h"

namespace mrrope::engine {

namespace {

std::string weight_types(const Model& model) {
  if (model.format != "gguf") return "unknown";
  std::map<std::string, std::uint64_t> bytes;
  for (const GgufPart& part : read_gguf(model.path).parts) {
    for (const GgufTensor& tensor : part.tensors) {
      const GgmlType* type = find_ggml_type(tensor.type);
      if (tensor.dims.size() > 1 && type != nullptr) bytes[lower_case(type->name)] += tensor.size;
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

void check_before_loading(const Model& model, const std::vector<const Ladder*>& ladders,
                          const Places& places) {
  for (const std::string& path : places.reads) {
    if (!path.empty()) check_readable(path);
  }
  for (const Ladder* ladder : ladders) {
    check_made_for(ladder->rungs().front().plan.geometry(), model);
  }
  for (const std::string& path : places.folders) {
    if (!path.empty()) check_folder(path);
  }
  for (const std::string& path : places.writes) {
    if (path.empty() || path == "-") continue;
    const std::filesystem::path folder = folder_of(path);
    refuse_if(!folder_exists(folder),
              cat("cannot write ", path, ": there is no folder ", folder.string()),
              cat("create it: mkdir -p ", shell_word(folder.string())));
    check_writable(path);
  }
}

std::unique_ptr<TimelineModel> open_checked(const Model& model, const LocalOptions& options,
                                            const std::vector<const Ladder*>& ladders,
                                            const Places& places) {
  check_before_loading(model, ladders, places);
  LocalOptions kept = options;
  kept.keep_speed = true;
  return open_local(model, kept);
}

std::string memory_text(const Model& model, const LocalOptions& options) {
  const MemoryPlan plan = plan_memory(model, options);
  return cat("memory ", bytes_text(double(plan.total())), " (weights ",
             bytes_text(double(plan.weights)), ", KV cache ", bytes_text(double(plan.kv)),
             ", compute about ", bytes_text(double(plan.compute)), ") of ",
             bytes_text(double(plan.available)), " available\n");
}

void check_fits_memory(const Model& model, const LocalOptions& options) {
  try {
    check_memory(model, options);
  } catch (const Error& error) {
    throw Error(ErrorKind::failed, cat("does not fit: ", error.what()), error.hint());
  }
}

nlohmann::ordered_json precision_of(const Model& model, const LocalOptions& options) {
  return {{"weights", weight_types(model)},
          {"keys", lower_case(options.type_k)},
          {"values", lower_case(options.type_v)}};
}

}  // namespace mrrope::engine
