// SPDX-License-Identifier: Apache-2.0
#include "formats/architectures.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "base/words.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

using enum FactorSupport;
using enum Pairing;
using enum Trait;

constexpr Architecture no_plan(std::string_view name, std::string_view huggingface,
                               std::string_view reason) {
  return {.name = name, .huggingface = huggingface, .unsupported = reason};
}

constexpr int most_layers = 512;  // llama.cpp's own limit

// clang-format off
// Reasons, each the end of "architecture NAME cannot be extended: ...".
constexpr std::string_view alibi = "positions are ALiBi biases, there is no rotation to change";
constexpr std::string_view learned = "positions are a learned table, there is no rotation to change";
constexpr std::string_view buckets = "positions are relative-distance biases, there is no rotation to change";
constexpr std::string_view stateful = "it keeps a recurrent state instead of positions, there is no rotation to change";
constexpr std::string_view unrotated = "its attention layers use no positions, there is no rotation to change";
constexpr std::string_view windows_only = "only its sliding-window layers rotate, and they never see more than their window";
constexpr std::string_view fixed = "llama.cpp rotates it with constants that no setting changes";
constexpr std::string_view encoder = "it encodes a whole text at once and predicts no next token";
constexpr std::string_view diffusion = "it generates by diffusion over a whole text and predicts no next token";
constexpr std::string_view draft = "it is a draft model that runs only together with its target";
constexpr std::string_view speech = "it predicts sound, not text";
// clang-format on

// Layer rules that several rows share.
constexpr LayerRule hybrid{.recurrence = Recurrence::without_kv_heads};
constexpr LayerRule delta_net{.recurrence = Recurrence::between};
constexpr LayerRule switchable{.rope_switch = true};
constexpr LayerRule listed{.windows = Windows::listed};
constexpr LayerRule rotated_windows{
    .windows = Windows::always, .period = 4, .windows_follow = true, .only_windows_rotate = true};

// In the order of llama.cpp's own list, but for those at the end.
// clang-format off
constexpr Architecture table[] = {
    {"llama", "llama code_llama mistral mixtral internlm3 iquestcoder", interleaved, halves, used},
    {"llama4", "llama4_text llama4", interleaved, interleaved, used, {.windows = Windows::unless_zero, .period = 4, .default_window = 8192, .unrotated_period = 4}},
    {"deci", "nemotron-nas deci", interleaved, halves, used, hybrid},
    {"falcon", "falcon RefinedWeb RefinedWebModel", halves, halves, refused, {}, multi_query},
    {"grok", "grok-1 grok", halves, halves, refused, {}, reads_yarn_betas | reads_yarn_mix},
    {"gptneox", "gpt_neox", halves, halves},
    {"baichuan", "baichuan", interleaved, halves, refused, {.rotates_at_depth = 32}, like_llama},
    {"stablelm", "stablelm stablelm_epoch", halves, halves},
    {"qwen", "qwen", halves, halves},
    {"qwen2", "qwen2 kormo", halves, halves, refused, {}, like_llama},
    {"qwen2moe", "qwen2_moe", halves, halves},
    {"qwen2vl", "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text", halves, halves, refused, {}, mrope},
    {"qwen3", "qwen3", halves, halves},
    {"qwen3moe", "qwen3_moe", halves, halves},
    {"qwen3next", "qwen3_next", halves, halves, refused, delta_net},
    {"qwen3vl", "qwen3_vl qwen3_vl_text", halves, halves, refused, {}, mrope},
    {"qwen3vlmoe", "qwen3_vl_moe qwen3_vl_moe_text qwen3_omni_moe_text", halves, halves, refused, {}, mrope},
    {"qwen35", "qwen3_5 qwen3_5_text", halves, halves, refused, delta_net, mrope},
    {"qwen35moe", "qwen3_5_moe qwen3_5_moe_text", halves, halves, refused, delta_net, mrope},
    {"qwen4exp", "qwen4_exp qwen4_exp_text", halves, halves, refused, {.recurrence = Recurrence::between, .indexer = Indexer::listed}, mrope},
    {"phi2", "phi phi-msft", halves, halves},
    {"phi3", "phi3", halves, halves, long_short},
    {"phimoe", "phimoe", halves, halves, long_short},
    {"plamo", "plamo", halves, halves},
    {"plamo2", "plamo2", halves, halves, refused, hybrid},
    {"plamo3", "plamo3", halves, halves, refused, {.windows = Windows::if_stated, .period = 8}},
    {"codeshell", "codeshell kclgpt", halves, halves},
    {"orion", "orion", halves, halves},
    {"internlm2", "internlm2", interleaved, halves, refused, {}, like_llama},
    {"minicpm", "minicpm", interleaved, halves, used},
    {"minicpm3", "minicpm3", halves, halves, long_short},
    {"gemma", "gemma", halves, halves},
    {"gemma2", "gemma2", halves, halves, refused, {.windows = Windows::always, .period = 2, .default_window = 4096}, keys_reach_windows},
    {"gemma3", "gemma3 gemma3_text", halves, halves, refused, {.windows = Windows::if_stated, .period = 6}},
    {"gemma3n", "gemma3n gemma3n_text", halves, halves, refused, {.windows = Windows::always, .period = 5, .kv_layers = 20}},
    {"gemma4", "gemma4 gemma4_text gemma4_unified gemma4_unified_text", halves, halves, used, listed},
    {"starcoder2", "starcoder2", halves, halves},
    {"falcon-h1", "falcon_h1", halves, halves, ignored}, // every layer has attention and a state
    {"xverse", "xverse", interleaved, halves, refused, {}, like_llama},
    {"command-r", "cohere", interleaved, interleaved},
    {"cohere2", "cohere2", interleaved, interleaved, refused, rotated_windows},
    {"cohere2moe", "cohere2_moe", interleaved, interleaved, refused, {.windows = Windows::always, .period = 4, .full_first = true, .windows_follow = true, .only_windows_rotate = true, .dense_rotates = true}},
    {"dbrx", "dbrx", halves, halves},
    {"olmo", "olmo hf_olmo", interleaved, halves},
    {"olmo2", "olmo2 olmo3", halves, halves, refused, {.windows = Windows::if_stated, .period = 4}},
    {"olmoe", "olmoe", halves, halves},
    {"openelm", "openelm", halves, halves},
    {"arctic", "arctic", interleaved, halves},
    {"deepseek", "deepseek", interleaved, halves},
    {"deepseek2", "deepseek_v2 deepseek_v3 kimi_k2 glm4_moe_lite youtu", interleaved, interleaved, refused, {}, latent_attention | scale_in_scores | multiplier_cancels},
    {"deepseek32", "deepseek_v32", interleaved, interleaved, refused, {.indexer = Indexer::every}, latent_attention | scale_in_scores | multiplier_tenth},
    {"chatglm", "chatglm glm", interleaved, interleaved},
    {"glm4", "glm4 glm4v_text glm_ocr_text", interleaved, interleaved, refused, {}, mrope},
    {"glm4moe", "glm4_moe glm4v_moe_text solar_open", halves, halves, refused, {}, mrope},
    {"glm-dsa", "glm_moe_dsa", interleaved, interleaved, refused, {.indexer = Indexer::listed_or_every}, latent_attention | scale_in_scores},
    {"bitnet", "bitnet", halves, halves},
    {"jais2", "jais2", halves, halves},
    {"nemotron", "nemotron", halves, halves},
    {"exaone", "exaone", halves, halves, used},
    {"exaone4", "exaone4 exaone4_5_text", halves, halves, used, {.windows = Windows::always, .period = 4, .windows_at_depth = 64, .default_window = 4096, .windows_follow = true, .only_windows_rotate = true}},
    {"exaone-moe", "exaone_moe", halves, halves, used, rotated_windows},
    {"granite", "granite", interleaved, halves, used, switchable},
    {"granitemoe", "granitemoe granitemoeshared", interleaved, halves, used},
    {"granitehybrid", "granitemoehybrid bamba", interleaved, halves, used, {.rope_switch = true, .recurrence = Recurrence::without_kv_heads}},
    {"graniteswitch", "granite_switch", interleaved, halves, refused, switchable},
    {"granite_swa", "granite_swa granitemoe_swa", interleaved, halves, used, {.windows = Windows::listed, .windows_follow = true}},
    {"chameleon", "chameleon", interleaved, halves},
    {"bailingmoe", "bailing_moe", interleaved, halves},
    {"bailingmoe2", "bailing_moe_v2 sarvam_moe", halves, halves},
    {"bailingmoe3", "bailing_moe_v3", interleaved, interleaved, refused, hybrid, latent_attention | mrope},
    {"dots1", "dots1", halves, halves},
    {"dots3note", "dots3_note dots3_note_text", interleaved, interleaved, refused, {.windows = Windows::listed, .windows_follow = true, .indexer = Indexer::unwindowed}, latent_attention},
    {"arcee", "arcee", interleaved, halves, used},
    {"afmoe", "afmoe", halves, halves, refused, {.windows = Windows::always, .period = 4, .unrotated_period = 4}, keys_reach_windows},
    {"laguna", "laguna", halves, halves, refused, {.windows = Windows::if_stated, .period = 4, .full_first = true}},
    {"ernie4_5", "ernie4_5", interleaved, interleaved, refused, {}, like_llama},
    {"ernie4_5-moe", "ernie4_5_moe", interleaved, interleaved},
    {"hunyuan-moe", "hunyuan_v1_moe hunyuan", halves, halves},
    {"hunyuan-dense", "hunyuan_v1_dense", halves, halves},
    {"hunyuan_vl", "hunyuan_vl hunyuan_vl_text", halves, halves, refused, {}, mrope | alpha_in_base},
    {"hy_v3", "hy_v3", halves, halves},
    // llama.cpp and transformers rotate the same weights in different pairs.
    {"hy_v4", "hy_v4", interleaved, halves, refused, {.indexer = Indexer::listed}, latent_attention},
    {"smollm3", "smollm3", interleaved, halves, refused, {.unrotated_period = 4}},
    {"gpt-oss", "gpt_oss", halves, halves, refused, {.windows = Windows::always, .period = 2}, keys_reach_windows},
    {"lfm2", "lfm2", halves, halves, refused, {.windows = Windows::if_stated, .windows_follow = true, .recurrence = Recurrence::without_kv_heads}},
    {"lfm2moe", "lfm2_moe", halves, halves, refused, hybrid},
    {"smallthinker", "smallthinker", halves, halves, refused, {.windows = Windows::if_stated, .period = 4, .full_first = true, .only_windows_rotate = true}, keys_reach_windows},
    {"seed_oss", "seed_oss", halves, halves, refused, {}, like_llama | norm_renamed | reads_scale},
    {"grovemoe", "grove_moe", halves, halves},
    {"apertus", "apertus", halves, halves, used},
    {"minimax-01", "minimax minimax_text_01 minimax_m1", halves, halves, refused, {.recurrence = Recurrence::between, .attention_period = 8}},
    {"hrm_text", "hrm_text", halves, halves},
    {"minimax-m2", "minimax_m2", halves, halves},
    {"minimax-m3", "minimax_m3_vl minimax_m3_vl_text", halves, halves, refused, {.indexer = Indexer::after_dense}},
    {"pangu-embedded", "PanguEmbedded", halves, halves, ignored, {}, like_llama | reads_output_bias},
    {"mistral3", "ministral3 mistral3", interleaved, halves, used, {}, reads_yarn_betas},
    {"mistral4", "mistral4", interleaved, interleaved, refused, {}, latent_attention | scale_in_scores},
    {"paddleocr", "paddleocr_vl paddleocr_vl_text", halves, halves, refused, {}, mrope},
    {"mimo2", "mimo_v2 mimo_v2_flash", halves, halves, refused, listed},
    // Step 3.5 counts the dimensions of its windowed layers; the others rotate half as many.
    {"step35", "step3p5 step3p7", halves, halves, used, listed, none, {}, 2},
    {"spark2_5", "spark2_5", halves, halves, refused, listed, keys_reach_windows},
    {"maincoder", "maincoder", interleaved, halves},
    {"talkie", "talkie", halves, halves},
    {"mellum", "mellum", halves, halves, refused, {.windows = Windows::if_stated, .period = 4}, keys_reach_windows},
    {"nanbeige", "nanbeige", interleaved, halves, used},

    // Those that no plan can extend, by the reason.
    no_plan("clip", "", "it encodes pictures and predicts no text"),
    no_plan("gpt2", "gpt2", learned), no_plan("starcoder", "gpt_bigcode", learned),
    no_plan("gptj", "gptj", "llama.cpp knows its name but cannot run it"),
    no_plan("mpt", "mpt", alibi), no_plan("refact", "gpt_refact", alibi), no_plan("bloom", "bloom", alibi), no_plan("jais", "jais", alibi),
    no_plan("bert", "bert roberta xlm-roberta camembert distilbert", encoder), no_plan("modern-bert", "modernbert", encoder),
    no_plan("nomic-bert", "nomic_bert", encoder), no_plan("nomic-bert-moe", "", encoder), no_plan("neo-bert", "neobert", encoder),
    no_plan("jina-bert-v2", "", encoder), no_plan("jina-bert-v3", "", encoder), no_plan("eurobert", "eurobert", encoder),
    no_plan("gemma-embedding", "", encoder), no_plan("llama-embed", "", encoder),
    no_plan("gemma4-assistant", "gemma4_assistant", draft), no_plan("eagle3", "", draft), no_plan("dflash", "", draft),
    no_plan("mamba", "mamba falcon_mamba", stateful), no_plan("mamba2", "mamba2", stateful), no_plan("rwkv6", "rwkv6", stateful),
    no_plan("rwkv6qwen2", "rwkv6qwen2", stateful), no_plan("rwkv7", "rwkv7", stateful), no_plan("arwkv7", "rwkv_hybrid", stateful),
    no_plan("maple", "maple", windows_only), no_plan("muse-glimmer", "muse_glimmer muse_glimmer_text", windows_only),
    no_plan("jamba", "jamba", unrotated), no_plan("nemotron_h", "nemotron_h", unrotated), no_plan("nemotron_h_moe", "", unrotated),
    no_plan("kimi-linear", "kimi_linear", unrotated), no_plan("kimi-k3", "kimi_k3", unrotated),
    no_plan("glm5-next", "glm5_next glm5_next_text", unrotated),
    no_plan("deepseek2-ocr", "", fixed), no_plan("cogvlm", "cogvlm", fixed),
    no_plan("deepseek4", "deepseek_v4", "its layers rotate at compressed positions, each kind with its own base"),
    no_plan("t5", "t5 mt5 umt5", buckets), no_plan("t5encoder", "", buckets),
    no_plan("wavtokenizer-dec", "", speech), no_plan("qwen3tts", "qwen3_tts", speech), no_plan("pockettts", "", speech),
    no_plan("plm", "plm", "llama.cpp 0.5.0 aborts on it with flash attention, which is its default"),
    no_plan("dream", "Dream", diffusion), no_plan("llada", "llada", diffusion), no_plan("llada-moe", "llada_moe", diffusion),
    no_plan("rnd1", "rnd1", diffusion),
};
// clang-format on

[[noreturn]] void cannot_extend(const Architecture& architecture, std::string_view reason) {
  throw Error(ErrorKind::unsupported,
              cat("architecture ", architecture.name, " cannot be extended: ", reason));
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

std::span<const Architecture> architectures() { return table; }

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& candidate : table) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

const Architecture* find_huggingface(std::string_view model_type) {
  for (const Architecture& candidate : table) {
    if (has_word(candidate.huggingface, model_type)) return &candidate;
  }
  return nullptr;
}

Pairing gguf_pairing(const Architecture& architecture, bool has_mrope_sections) {
  return architecture.has(mrope) && has_mrope_sections ? Pairing::halves : architecture.pairing;
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
