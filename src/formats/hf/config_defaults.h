// SPDX-License-Identifier: Apache-2.0
// What transformers 5 assumes where a config.json is silent. Only what differs from the rule
// (theta 10000, whole head rotated, head = hidden / heads), and for models that are commonly nested
// in another one, whose config holds differences only, the shape as well.
#pragma once

#include <array>
#include <string_view>

namespace mrrope {

struct ConfigDefaults {
  std::string_view model_type;
  double theta = 10000;
  double windowed_theta = 0;  // of sliding-window layers; 0: the same
  double partial = 1;         // of the head that is rotated
  int head = 0;               // 0: hidden / heads
  int window = -1;            // sliding_window; -1: none
  // The shape; used only for nested text models.
  int hidden = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int context = 0;
  int vocabulary = 0;
};

// clang-format off
constexpr std::array kConfigDefaults{
    //              model_type          theta  windowed partial head window hidden layers heads kv  context vocabulary
    ConfigDefaults{"llama",             1e4,   0,   1,     0,   -1,   4096, 32, 32, 32, 2048,   32000},
    ConfigDefaults{"mistral",           1e4,   0,   1,     0,   -1,   4096, 32, 32, 8,  131072, 32000},
    ConfigDefaults{"qwen2",             1e4,   0,   1,     0,   -1,   4096, 32, 32, 32, 32768,  151936},
    ConfigDefaults{"qwen3",             1e4,   0,   1,     128, -1,   4096, 32, 32, 32, 32768,  151936},
    ConfigDefaults{"gemma",             1e4,   0,   1,     256, -1,   3072, 28, 16, 16, 8192,   256000},
    ConfigDefaults{"gemma2",            1e4,   0,   1,     256, 4096, 2304, 26, 8,  4,  8192,   256000},
    ConfigDefaults{"gemma3_text",       1e6,   1e4, 1,     256, 4096, 2304, 26, 8,  4,  131072, 262208},
    ConfigDefaults{"gemma3n_text",      1e6,   1e4, 1,     256, 512,  2048, 35, 8,  2,  32768,  262400},
    ConfigDefaults{"gemma4_text",       1e6,   1e4, 1,     256, 512,  2304, 30, 8,  4,  131072, 262144},
    ConfigDefaults{"llama4_text",       5e5,   0,   1,     128, 8192, 5120, 48, 40, 8,  131072, 202048},
    ConfigDefaults{"ministral3",        1e6,   0,   1,     128, -1,   4096, 34, 32, 8,  262144, 131072},
    ConfigDefaults{"qwen2_vl_text",     1e6,   0,   1,     0,   -1,   8192, 80, 64, 8,  32768,  152064},
    ConfigDefaults{"qwen2_5_vl_text",   1e6,   0,   1,     0,   -1,   8192, 80, 64, 8,  32768,  152064},
    ConfigDefaults{"qwen3_vl_text",     5e5,   0,   1,     128, -1,   4096, 32, 32, 32, 128000, 151936},
    ConfigDefaults{"qwen3_vl_moe_text", 5e5,   0,   1,     128, -1,   2048, 24, 16, 16, 128000, 151936},
    ConfigDefaults{"mixtral",           1e6},
    ConfigDefaults{"apertus",           1.2e7},
    ConfigDefaults{"bitnet",            5e5},
    ConfigDefaults{"cohere",            5e5},
    ConfigDefaults{"ernie4_5",          5e5,   0,   1,     128},
    ConfigDefaults{"ernie4_5_moe",      5e5},
    ConfigDefaults{"gpt_oss",           1.5e5, 0,   1,     64,  128},
    ConfigDefaults{"lfm2",              1e6},
    ConfigDefaults{"lfm2_moe",          1e6},
    ConfigDefaults{"llama4",            5e5,   0,   1,     128, 8192},
    ConfigDefaults{"minimax",           1e6},
    ConfigDefaults{"minimax_m2",        5e6,   0,   1,     128},
    ConfigDefaults{"olmo3",             5e5,   0,   1,     0,   4096},
    ConfigDefaults{"phimoe",            1e6},
    ConfigDefaults{"smollm3",           2e6},
    ConfigDefaults{"mimo_v2_flash",     5e6,   1e4, 0.334, 192},
    ConfigDefaults{"chatglm",           1e4,   0,   0.5},
    ConfigDefaults{"glm",               1e4,   0,   0.5,   128},
    ConfigDefaults{"glm4",              1e4,   0,   0.5,   128},
    ConfigDefaults{"glm4_moe",          1e4,   0,   0.5},
    ConfigDefaults{"glm4v_moe_text",    1e4,   0,   0.5},
    ConfigDefaults{"gpt_neox",          1e4,   0,   0.25},
    ConfigDefaults{"nemotron",          1e4,   0,   0.5},
    ConfigDefaults{"persimmon",         1e4,   0,   0.5},
    ConfigDefaults{"phi",               1e4,   0,   0.5},
    ConfigDefaults{"stablelm",          1e4,   0,   0.25},
    ConfigDefaults{"qwen3_next",        1e4,   0,   0.25,  256},
    ConfigDefaults{"qwen3_5_text",      1e4,   0,   0.25,  256},
    ConfigDefaults{"qwen3_5_moe_text",  1e4,   0,   0.25,  256},
    ConfigDefaults{"seed_oss",          1e4,   0,   1,     128},
};
// clang-format on

inline ConfigDefaults config_defaults(std::string_view model_type) {
  for (const ConfigDefaults& row : kConfigDefaults) {
    if (row.model_type == model_type) return row;
  }
  return {};
}

}  // namespace mrrope
