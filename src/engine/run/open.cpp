// SPDX-License-Identifier: Apache-2.0
#include "engine/run/open.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "base/files/output_file.h"
#include "base/files/source.h"
#include "base/text.h"
#include "base/words.h"
#include "formats/facts.h"
#include "formats/gguf/gguf.h"
#include "mrrope/error.h"

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
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored)) {
      throw Error(ErrorKind::usage,
                  cat("cannot write ", path, ": there is no folder ", folder.string()),
                  cat("create it: mkdir -p ", shell_word(folder.string())));
    }
    check_writable(path);
  }
}

std::unique_ptr<TimelineModel> open_checked(const Model& model, const LocalOptions& options,
                                            const std::vector<const Ladder*>& ladders,
                                            const Places& places) {
  check_before_loading(model, ladders, places);
  return open_local(model, options);
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

ReadingSpeed reading_speed(const Model& model, std::int64_t chunk, double second, double third) {
  double products = 0;  // of attention, for a token and one before it
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::windowed || layer.kind == LayerKind::recurrent) continue;
    products += double(model.heads) * (model.key_length + model.value_length);
  }
  // One of them takes at most as long as those of 8 bytes of weights.
  const double n = double(chunk);
  const double max =
      second / n * 8 * products / double(std::max<std::uint64_t>(model.weight_bytes, 1));
  const double slope = std::clamp((third - second) / (n * n), 0.0, max);
  return {std::max(second / n - slope * 1.5 * n, second / n / 10), slope};
}

ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model, std::int64_t longest,
                           const std::function<void(const std::string&)>& note) {
  // llama.cpp rounds contexts up.
  const std::int64_t chunk =
      std::min<std::int64_t>(512, std::min(longest, timelines.context_length()) / 3);
  if (chunk < 1) throw Error(ErrorKind::usage, "the context is too short to estimate the time");
  note(cat("timing the model on ", 3 * chunk, " tokens"));
  const std::vector<Token> tokens(std::size_t(chunk), timelines.bos().value_or(0));
  const auto timeline = timelines.timeline();
  double seconds[3] = {};  // the first one warms up
  for (double& s : seconds) {
    const auto start = std::chrono::steady_clock::now();
    timeline->append_scored(tokens);
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return reading_speed(model, chunk, seconds[1], seconds[2]);
}

double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths) {
  double total = 0;
  for (const std::int64_t length : lengths) {
    total += double(length) * (speed.start + speed.slope * double(length) / 2);
  }
  return total;
}

std::string time_text(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths,
                      const char* ending) {
  const double seconds = seconds_to_read(speed, lengths);
  double tokens = 0;
  for (const std::int64_t length : lengths) tokens += double(length);
  return cat("about ", duration_text(seconds), ending, ", at ",
             significant(seconds > 0 ? tokens / seconds : 1 / speed.start, 3),
             " tokens/s (timed just now; other work on this machine makes it slower)");
}

}  // namespace mrrope::engine
