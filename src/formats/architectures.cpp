// SPDX-License-Identifier: Apache-2.0
#include "formats/architectures.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/text.h"

namespace mrrope {
namespace {

constexpr int most_layers = 512;  // llama.cpp's own limit

constexpr const char* windows_only =
    "only its sliding-window layers rotate, and they never see more than their window";

// The value that a column names, or the default.
template <typename Enum>
void read(const nlohmann::json& row, const char* column, std::initializer_list<const char*> names,
          Enum& value) {
  if (!row.contains(column)) return;
  const auto* found = std::find(names.begin(), names.end(), row[column].get<std::string>());
  if (found == names.end()) throw std::logic_error(cat("architectures.json: ", row.dump()));
  value = Enum(found - names.begin());
}
template <typename T>
void read(const nlohmann::json& row, const char* column, T& value) {
  value = row.value(column, value);
}

Architecture read_row(const nlohmann::json& row) {
  Architecture a{row.at("name"), row.at("huggingface")};
  read(row, "pairing", {"halves", "interleaved"}, a.pairing);
  read(row, "huggingface_pairing", {"halves", "interleaved"}, a.huggingface_pairing);
  read(row, "factors", {"used", "long_short", "ignored", "refused"}, a.factors);
  read(row, "rotary_divisor", a.rotary_divisor);
  LayerRule& rule = a.layers;
  read(row, "windows", {"none", "if_stated", "unless_zero", "always", "listed"}, rule.windows);
  read(row, "period", rule.period);
  read(row, "full_first", rule.full_first);
  read(row, "windows_at_depth", rule.windows_at_depth);
  read(row, "default_window", rule.default_window);
  read(row, "windows_follow", rule.windows_follow);
  read(row, "only_windows_rotate", rule.only_windows_rotate);
  read(row, "dense_rotates", rule.dense_rotates);
  read(row, "unrotated_period", rule.unrotated_period);
  read(row, "rotates_at_depth", rule.rotates_at_depth);
  read(row, "rope_switch", rule.rope_switch);
  read(row, "recurrence", {"none", "without_kv_heads", "between"}, rule.recurrence);
  read(row, "attention_period", rule.attention_period);
  read(row, "kv_layers", rule.kv_layers);
  read(row, "indexer", {"none", "every", "listed", "listed_or_every", "unwindowed", "after_dense"},
       rule.indexer);
  unsigned bit = 1;  // in the order of Trait
  for (const char* trait :
       {"latent_attention", "mrope", "scale_in_scores", "keys_reach_windows", "like_llama",
        "norm_renamed", "reads_output_bias", "reads_scale", "reads_yarn_betas", "reads_yarn_mix",
        "multiplier_cancels", "multiplier_tenth", "alpha_in_base", "multi_query"}) {
    if (has_word(row.value("traits", ""), trait)) a.traits = a.traits | Trait(bit);
    bit <<= 1;
  }
  return a;
}

const std::vector<Architecture>& table() {
  static const std::vector<Architecture> rows = [] {
    const auto file = nlohmann::json::parse(embedded::architectures_json);
    std::vector<Architecture> read;
    for (const auto& row : file.at("extended")) read.push_back(read_row(row));
    for (const auto& [reason, names] : file.at("unsupported").items()) {
      for (const auto& pair : names) {
        read.push_back({.name = pair.at(0), .huggingface = pair.at(1), .unsupported = reason});
      }
    }
    return read;
  }();
  return rows;
}

[[noreturn]] void cannot_extend(const Architecture& architecture, std::string_view reason) {
  unsupported(cat("architecture ", architecture.name, " cannot be extended: ", reason));
}

// The rule of one architecture together with the keys of one file.
struct LayerReader {
  const Architecture& architecture;
  const LayerKeys& keys;
  const LayerRule& rule = architecture.layers;
  const int count = std::max(keys.layers, 0) - std::max(keys.draft_layers, 0);
  const bool has_windows = windows_exist();

  void check() const {
    const auto contradict = [&](const auto&... parts) {
      throw Error(ErrorKind::corrupt, cat("architecture ", architecture.name, ": ", parts...));
    };
    if (!architecture.unsupported.empty()) cannot_extend(architecture, architecture.unsupported);
    if (count <= 0 || keys.draft_layers < 0 || keys.loops < 1 || keys.loops > most_layers / count) {
      contradict(keys.layers, " layers, of them ", keys.draft_layers, " to draft, run ", keys.loops,
                 " times");
    }
    if (rule.rotates_at_depth != 0 && rule.rotates_at_depth != count) {
      cannot_extend(
          architecture,
          "only the model with the other number of layers rotates, this one uses ALiBi biases");
    }
    if (rule.rope_switch && !keys.rope_finetuned)
      cannot_extend(architecture, "this file switches the rotation off");
    const auto check_length = [&](std::size_t size, bool needed, std::string_view name) {
      if ((size == 0 && !needed) || size >= std::size_t(count)) return;
      contradict(name, " has ", size, " entries for ", count, " layers");
    };
    if (keys.kv_heads.size() != 1) {
      check_length(keys.kv_heads.size(), true, "attention.head_count_kv");
    }
    check_length(keys.windowed.size(), rule.windows == Windows::listed,
                 "attention.sliding_window_pattern");
    check_length(keys.rotated.size(), false, "attention.rope_pattern");
    check_length(keys.recurrent.size(), false, "attention.recurrent_layers");
    check_length(keys.indexed.size(), false, "attention.indexer.types");
    if (rule.windows == Windows::unless_zero && !has_windows) {
      cannot_extend(architecture,
                    "llama.cpp 0.5.0 aborts on those of its files that have no sliding window");
    }
  }

  Layer layer(int i) const {
    if (recurrent(i)) return {.kind = LayerKind::recurrent};
    const bool owns_keys =
        i < (rule.kv_layers > 0 ? rule.kv_layers : count - keys.shared_kv_layers);
    Layer layer{.kv_heads = owns_keys ? kv_heads(i) : 0, .windowed_cache = windowed(i)};
    if (!rotated(i)) {
      layer.kind = LayerKind::unrotated;
    } else if (windowed(i) && !rule.windows_follow) {
      layer.kind = LayerKind::windowed;
    } else {
      layer.rotations = (owns_keys ? 2 : 1) + (indexed(i) ? 2 : 0);
    }
    return layer;
  }

  bool windows_exist() const {
    if (rule.windows == Windows::if_stated) return keys.sliding_window > 0;
    if (rule.windows == Windows::unless_zero) return keys.sliding_window != 0;
    if (rule.windows_at_depth != 0) return rule.windows_at_depth == count;
    return rule.windows != Windows::none;
  }

  int kv_heads(int i) const { return keys.kv_heads[keys.kv_heads.size() == 1 ? 0 : i]; }

  bool windowed(int i) const {
    if (!has_windows) return false;
    if (!keys.windowed.empty()) return keys.windowed[i];
    const int period = keys.window_period >= 0 ? keys.window_period : rule.period;
    return period == 0 || i % period != (rule.full_first ? 0 : period - 1);
  }

  bool rotated(int i) const {
    if (!keys.rotated.empty()) return keys.rotated[i];
    if (rule.dense_rotates && i < keys.leading_dense) return true;
    if (rule.only_windows_rotate && has_windows) return windowed(i);
    if (rule.unrotated_period == 0) return true;
    const int stated = keys.unrotated_period;
    return (i + 1) % (stated > 0 ? stated : rule.unrotated_period) != 0;
  }

  bool recurrent(int i) const {
    if (rule.recurrence == Recurrence::none) return false;
    if (rule.recurrence == Recurrence::without_kv_heads) return kv_heads(i) == 0;
    if (!keys.recurrent.empty()) return keys.recurrent[i];
    const int stated = keys.attention_period;
    return (i + 1) % (stated > 0 ? stated : rule.attention_period) != 0;
  }

  bool indexed(int i) const {
    if (rule.indexer == Indexer::none) return false;
    if (rule.indexer == Indexer::every) return true;
    if (rule.indexer == Indexer::unwindowed) return !windowed(i);
    if (rule.indexer == Indexer::after_dense) return i >= keys.leading_dense;
    if (!keys.indexed.empty()) return keys.indexed[i];
    if (rule.indexer == Indexer::listed) return false;
    return keys.train_length < 1048576 || i < 2 || i % 4 == 2;
  }
};

}  // namespace

std::span<const Architecture> architectures() { return table(); }

const Architecture* find_architecture(std::string_view name) {
  return find_by(table(), &Architecture::name, name);
}

const Architecture* find_huggingface(std::string_view model_type) {
  return find_by(table(),
                 [&](const Architecture& a) { return has_word(a.huggingface, model_type); });
}

Pairing gguf_pairing(const Architecture& architecture, bool has_mrope_sections) {
  return architecture.has(Trait::mrope) && has_mrope_sections ? Pairing::halves
                                                              : architecture.pairing;
}

int window_of(const Architecture& architecture, const LayerKeys& keys) {
  const LayerReader reader{architecture, keys};
  reader.check();
  if (!reader.has_windows) return 0;
  return keys.sliding_window > 0 ? keys.sliding_window : architecture.layers.default_window;
}

std::vector<Layer> layers_of(const Architecture& architecture, const LayerKeys& keys) {
  const LayerReader reader{architecture, keys};
  reader.check();
  std::vector<Layer> layers;
  bool takes_plan = false;
  for (int i = 0; i < keys.loops * reader.count; ++i) {
    layers.push_back(reader.layer(i % reader.count));
    takes_plan = takes_plan || layers.back().kind == LayerKind::full;
  }
  if (!takes_plan) cannot_extend(architecture, windows_only);
  return layers;
}

}  // namespace mrrope
