// SPDX-License-Identifier: Apache-2.0
// read_model(): which reader a path goes to. How declared scaling becomes geometry: scaling.cpp.
#include "mrrope/model.h"

#include <algorithm>
#include <cmath>

#include "base/files/output_file.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/facts.h"
#include "formats/gguf/gguf.h"
#include "formats/hf/safetensors.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

namespace fs = std::filesystem;

Model read_huggingface(const fs::path& folder, const fs::path& config, bool replace_scaling) {
  Facts facts = config_facts(read_json(config), config.string());
  const Weights weights = find_weights(folder);
  facts.model.weight_bytes = weights.bytes;
  facts.model.files = weights.files;
  facts.model.files.insert(facts.model.files.begin(), config);
  return finish_model(std::move(facts), replace_scaling);
}

Model read_folder(const fs::path& folder, bool replace_scaling) {
  const fs::path config = folder / "config.json";
  std::error_code error;
  if (fs::exists(config, error)) return read_huggingface(folder, config, replace_scaling);
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gguf" && (found.empty() || entry.path().string() < found)) {
      found = entry.path().string();
    }
  }
  throw Error(ErrorKind::failed, cat("the folder ", shown(folder.string()), " has no config.json"),
              found.empty() ? "give a GGUF file, or the folder of a Hugging Face model"
                            : cat("give the GGUF file itself: ", found));
}

bool starts_with(const Source& source, std::string_view text) {
  if (source.size() < text.size()) return false;
  std::string start(text.size(), '\0');
  source.read(0, std::as_writable_bytes(std::span(start)));
  return start == text;
}

// Where only windowed layers rotate, no distance ever grows past the window: nothing to extend.
void refuse_windowed_only(const Model& model) {
  const auto extends = [](const Layer& layer) {
    return layer.kind == LayerKind::full && !layer.windowed_cache;
  };
  if (std::any_of(model.layers.begin(), model.layers.end(), extends)) return;
  throw Error(ErrorKind::unsupported,
              cat(shown(model.path.string()), ": ", model.architecture,
                  " rotates only in layers that see the last ", model.sliding_window,
                  " tokens, so no rotation ever leaves what it was trained for"),
              "its other layers have no positions and need no plan: run it as it is, with a longer "
              "context");
}

}  // namespace

Model read_model(const fs::path& path, bool replace_scaling) {
  std::error_code error;
  Model model;
  if (fs::is_directory(path, error)) {
    model = read_folder(path, replace_scaling);
  } else if (path.filename() == "config.json") {
    model = read_huggingface(folder_of(path), path, replace_scaling);
  } else if (path.extension() == ".safetensors" ||
             path.filename() == "model.safetensors.index.json") {
    if (path.extension() == ".safetensors") safetensors_bytes(Source::open(path));
    model = read_folder(folder_of(path), replace_scaling);
  } else if (path.extension() == ".json") {
    // Under another name it is only a config; weights in the same folder may belong to another
    // model.
    Facts facts = config_facts(read_json(path), path.string());
    facts.model.files = {path};
    model = finish_model(std::move(facts), replace_scaling);
  } else {
    const Source source = Source::open(path);
    if (starts_with(source, "PK\x03\x04") || starts_with(source, "\x80\x02")) {
      throw Error(ErrorKind::unsupported,
                  cat(path.string(), ": PyTorch checkpoints are not supported"),
                  "give the folder with its config.json, or convert the model to GGUF");
    }
    model = finish_model(gguf_facts(read_gguf(path)), replace_scaling);
  }
  model.path = path;
  refuse_windowed_only(model);
  return model;
}

const Architecture& supported(const Architecture* found, const std::string& where, const char* kind,
                              const std::string& name) {
  if (!found) {
    throw Error(ErrorKind::unsupported,
                cat(where, ": the ", kind, " ", shown(name), " is not known"),
                "plan from numbers instead: --rotary-dim N --rope-freq-base B --train-ctx LENGTH");
  }
  if (!found->unsupported.empty()) {
    throw Error(
        ErrorKind::unsupported,
        cat(where, ": architecture ", found->name, " cannot be extended: ", found->unsupported),
        "only models that turn queries and keys (RoPE) can be extended");
  }
  return *found;
}

void check_made_for(const Geometry& made_for, const Model& model) {
  if (made_for == model.geometry) return;
  refuse(cat("the plan was made for ", describe(made_for), "; this model has ",
             describe(model.geometry)),
         "make the plan from this model: mrrope plan MODEL ... (with --replace-scaling on "
         "both or on neither)");
}

bool has_windows_apart(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& layer) { return layer.kind == LayerKind::windowed; });
}

std::uint64_t kv_bytes(const Model& model, std::int64_t tokens, double bits_per_element) {
  if (tokens < 0 || !(bits_per_element > 0) || bits_per_element > 64) {
    refuse(cat("a cache of ", tokens, " tokens at ", bits_per_element,
               " bits per element is not possible"),
           "give a positive length, and 16 bits for f16 or 8.5 for q8_0");
  }
  // MLA caches one vector per token, whose front serves as the value.
  const double width = model.latent_attention
                           ? double(model.key_length)
                           : double(model.key_length) + double(model.value_length);
  double elements = 0;
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::recurrent) continue;
    const bool capped = layer.windowed_cache && model.sliding_window > 0;
    const std::int64_t kept =
        capped ? std::min<std::int64_t>(tokens, model.sliding_window) : tokens;
    elements += double(kept) * double(layer.kv_heads) * width;
  }
  const double bytes = std::ceil(elements * bits_per_element / 8);
  // 2^63 bytes and more do not fit anywhere.
  return bytes < 9.2e18 ? std::uint64_t(bytes) : UINT64_MAX;
}

}  // namespace mrrope
