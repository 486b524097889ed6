// SPDX-License-Identifier: Apache-2.0
// Small models with random weights, of any architecture, built by libllama from metadata alone and
// written to a file that it loads like any other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/llama/local.h"

struct gguf_context;

namespace mrrope {

// The keys of a file; names are given without the architecture in front.
class Metadata {
 public:
  explicit Metadata(std::string_view architecture);

  gguf_context* get() const { return context_.get(); }
  const std::string& architecture() const { return architecture_; }

  // By the type of the value: u32, f32, a truth, a text, or a list of i32 or of truths. As text
  // between the sources: some of them see libllama's own version of nlohmann_json.
  void set(const std::string& key, const nlohmann::json& value) { set_text(key, value.dump()); }

 private:
  void set_text(const std::string& key, const std::string& text);

  struct Free {
    void operator()(gguf_context* owned) const;
  };

  std::unique_ptr<gguf_context, Free> context_;
  std::string architecture_;
};

// What most architectures ask for; of the elements of a head, `rotated` rotate.
struct SmallModel {
  int layers = 2, vocabulary = 128, window = 100, heads = 2, kv_heads = 2, head = 64, rotated = 64;
};
Metadata small_metadata(std::string_view architecture, const SmallModel& size);

// On the CPU with a cache in f32, where results agree however they are computed.
engine::LocalOptions exact_options(std::int64_t context, int ubatch, int timelines = 1,
                                   const char* flash_attention = "off", int threads = 2);

// A file that is removed with this object.
class RandomModel {
 public:
  // Norms are 1 + 0.1 N, matrices N / sqrt(fan-in), those of queries and keys 1.6 times that:
  // enough for a wrong rotation to show. Lists of rotary factors rise from 1 to 8 (short) or 2 to
  // 11 (long), scales are 1. The same name and seed give the same weights. Every weight of `broken`
  // is NaN.
  RandomModel(const Metadata& metadata, std::uint32_t seed, const std::string& broken = {});
  ~RandomModel();
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace mrrope
