// SPDX-License-Identifier: Apache-2.0
#include "formats/architectures.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

using enum FactorSupport;
using enum Trait;

// Halves in a GGUF and in the Hugging Face checkpoint.
constexpr Architecture halves(std::string_view name, std::string_view huggingface,
                              FactorSupport factors = refused, const LayerRule& layers = {},
                              Trait traits = Trait::none) {
  return {name, huggingface, Pairing::halves, Pairing::halves, factors, layers, traits};
}

// Halves in the checkpoint; the converter reorders queries and keys into interleaved pairs.
constexpr Architecture reordered(std::string_view name, std::string_view huggingface,
                                 FactorSupport factors = refused, const LayerRule& layers = {},
                                 Trait traits = Trait::none) {
  return {name, huggingface, Pairing::interleaved, Pairing::halves, factors, layers, traits};
}

// Interleaved in both.
constexpr Architecture interleaved(std::string_view name, std::string_view huggingface,
                                   FactorSupport factors = refused, const LayerRule& layers = {},
                                   Trait traits = Trait::none) {
  return {name, huggingface, Pairing::interleaved, Pairing::interleaved, factors, layers, traits};
}

constexpr Architecture no_plan(std::string_view name, std::string_view huggingface,
                               std::string_view reason, FactorSupport factors = refused) {
  return {.name = name, .huggingface = huggingface, .factors = factors, .unsupported = reason};
}

constexpr int most_layers = 512;  // llama.cpp's own limit

// Reasons, each the end of "architecture NAME cannot be extended: ...".
constexpr std::string_view alibi = "positions are ALiBi biases, there is no rotation to change";
constexpr std::string_view learned =
    "positions are a learned table, there is no rotation to change";
constexpr std::string_view buckets =
    "positions are relative-distance biases, there is no rotation to change";
constexpr std::string_view stateful =
    "it keeps a recurrent state instead of positions, there is no rotation to change";
constexpr std::string_view unrotated =
    "its attention layers use no positions, there is no rotation to change";
constexpr std::string_view windows_only =
    "only its sliding-window layers rotate, and they never see more than their window";
constexpr std::string_view fixed = "llama.cpp rotates it with constants that no setting changes";
constexpr std::string_view encoder = "it encodes a whole text at once and predicts no next token";
constexpr std::string_view diffusion =
    "it generates by diffusion over a whole text and predicts no next token";
constexpr std::string_view draft = "it is a draft model that runs only together with its target";
constexpr std::string_view speech = "it predicts sound, not text";
constexpr std::string_view compressed =
    "its layers rotate at compressed positions, each kind with its own base";
constexpr std::string_view unknown = "llama.cpp knows its name but cannot run it";
constexpr std::string_view aborts =
    "llama.cpp 0.5.0 aborts on it with flash attention, which is its default";
constexpr std::string_view aborts_without_windows =
    "llama.cpp 0.5.0 aborts on those of its files that have no sliding window";
constexpr std::string_view switched_off = "this file switches the rotation off";
constexpr std::string_view other_depth =
    "only the model with the other number of layers rotates, this one uses ALiBi biases";

// Layer rules that several rows share.
constexpr LayerRule hybrid{.recurrence = Recurrence::without_kv_heads};
constexpr LayerRule delta_net{.recurrence = Recurrence::between};
constexpr LayerRule switchable{.rope_switch = true};
constexpr LayerRule listed{.windows = Windows::listed};
constexpr LayerRule rotated_windows{
    .windows = Windows::always, .period = 4, .windows_follow = true, .only_windows_rotate = true};

// Step 3.5 counts the dimensions of its windowed layers; the others rotate half as many.
constexpr Architecture step35() {
  Architecture step = halves("step35", "step3p5 step3p7", used, listed);
  step.rotary_divisor = 2;
  return step;
}

// In the order of llama.cpp's own list.
constexpr std::array table{
    no_plan("clip", "", "it encodes pictures and predicts no text"),
    reordered("llama", "llama code_llama mistral mixtral internlm3 iquestcoder", used),
    interleaved("llama4", "llama4_text llama4", used,
                {.windows = Windows::unless_zero,
                 .period = 4,
                 .default_window = 8192,
                 .unrotated_period = 4}),
    reordered("deci", "nemotron-nas deci", used, hybrid),
    halves("falcon", "falcon RefinedWeb RefinedWebModel", refused, {}, multi_query),
    halves("grok", "grok-1 grok", refused, {}, reads_yarn_betas | reads_yarn_mix),
    no_plan("gpt2", "gpt2", learned),
    no_plan("gptj", "gptj", unknown),
    halves("gptneox", "gpt_neox"),
    no_plan("mpt", "mpt", alibi),
    reordered("baichuan", "baichuan", refused, {.rotates_at_depth = 32}, like_llama),
    no_plan("starcoder", "gpt_bigcode", learned),
    no_plan("refact", "gpt_refact", alibi, ignored),
    no_plan("bert", "bert roberta xlm-roberta camembert distilbert", encoder),
    no_plan("modern-bert", "modernbert", encoder),
    no_plan("nomic-bert", "nomic_bert", encoder),
    no_plan("nomic-bert-moe", "", encoder),
    no_plan("neo-bert", "neobert", encoder),
    no_plan("jina-bert-v2", "", encoder),
    no_plan("jina-bert-v3", "", encoder),
    no_plan("eurobert", "eurobert", encoder),
    no_plan("bloom", "bloom", alibi),
    halves("stablelm", "stablelm stablelm_epoch"),
    halves("qwen", "qwen"),
    halves("qwen2", "qwen2 kormo", refused, {}, like_llama),
    halves("qwen2moe", "qwen2_moe"),
    halves("qwen2vl", "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text",
           refused, {}, mrope),
    halves("qwen3", "qwen3"),
    halves("qwen3moe", "qwen3_moe"),
    halves("qwen3next", "qwen3_next", refused, delta_net),
    halves("qwen3vl", "qwen3_vl qwen3_vl_text", refused, {}, mrope),
    halves("qwen3vlmoe", "qwen3_vl_moe qwen3_vl_moe_text qwen3_omni_moe_text", refused, {}, mrope),
    halves("qwen35", "qwen3_5 qwen3_5_text", refused, delta_net, mrope),
    halves("qwen35moe", "qwen3_5_moe qwen3_5_moe_text", refused, delta_net, mrope),
    halves("qwen4exp", "qwen4_exp qwen4_exp_text", refused,
           {.recurrence = Recurrence::between, .indexer = Indexer::listed}, mrope),
    halves("phi2", "phi phi-msft"),
    halves("phi3", "phi3", long_short),
    halves("phimoe", "phimoe", long_short),
    halves("plamo", "plamo"),
    halves("plamo2", "plamo2", refused, hybrid),
    halves("plamo3", "plamo3", refused, {.windows = Windows::if_stated, .period = 8}),
    halves("codeshell", "codeshell kclgpt"),
    halves("orion", "orion"),
    reordered("internlm2", "internlm2", refused, {}, like_llama),
    reordered("minicpm", "minicpm", used),
    halves("minicpm3", "minicpm3", long_short),
    halves("gemma", "gemma"),
    halves("gemma2", "gemma2", refused,
           {.windows = Windows::always, .period = 2, .default_window = 4096}, keys_reach_windows),
    halves("gemma3", "gemma3 gemma3_text", refused, {.windows = Windows::if_stated, .period = 6}),
    halves("gemma3n", "gemma3n gemma3n_text", refused,
           {.windows = Windows::always, .period = 5, .kv_layers = 20}),
    halves("gemma4", "gemma4 gemma4_text gemma4_unified gemma4_unified_text", used, listed),
    no_plan("gemma4-assistant", "gemma4_assistant", draft, used),
    no_plan("gemma-embedding", "", encoder),
    halves("starcoder2", "starcoder2"),
    no_plan("mamba", "mamba falcon_mamba", stateful),
    no_plan("mamba2", "mamba2", stateful),
    no_plan("maple", "maple", windows_only),
    no_plan("jamba", "jamba", unrotated),
    halves("falcon-h1", "falcon_h1", ignored),  // every layer has attention and a state
    reordered("xverse", "xverse", refused, {}, like_llama),
    interleaved("command-r", "cohere"),
    interleaved("cohere2", "cohere2", refused, rotated_windows),
    interleaved("cohere2moe", "cohere2_moe", refused,
                {.windows = Windows::always,
                 .period = 4,
                 .full_first = true,
                 .windows_follow = true,
                 .only_windows_rotate = true,
                 .dense_rotates = true}),
    halves("dbrx", "dbrx"),
    reordered("olmo", "olmo hf_olmo"),
    halves("olmo2", "olmo2 olmo3", refused, {.windows = Windows::if_stated, .period = 4}),
    halves("olmoe", "olmoe"),
    no_plan("muse-glimmer", "muse_glimmer muse_glimmer_text", windows_only),
    halves("openelm", "openelm"),
    reordered("arctic", "arctic"),
    reordered("deepseek", "deepseek"),
    interleaved("deepseek2", "deepseek_v2 deepseek_v3 kimi_k2 glm4_moe_lite youtu", refused, {},
                latent_attention | scale_in_scores | multiplier_cancels),
    no_plan("deepseek2-ocr", "", fixed),
    interleaved("deepseek32", "deepseek_v32", refused, {.indexer = Indexer::every},
                latent_attention | scale_in_scores | multiplier_tenth),
    no_plan("deepseek4", "deepseek_v4", compressed),
    interleaved("chatglm", "chatglm glm"),
    interleaved("glm4", "glm4 glm4v_text glm_ocr_text", refused, {}, mrope),
    halves("glm4moe", "glm4_moe glm4v_moe_text solar_open", refused, {}, mrope),
    interleaved("glm-dsa", "glm_moe_dsa", refused, {.indexer = Indexer::listed_or_every},
                latent_attention | scale_in_scores),
    halves("bitnet", "bitnet"),
    no_plan("t5", "t5 mt5 umt5", buckets),
    no_plan("t5encoder", "", buckets),
    no_plan("jais", "jais", alibi),
    halves("jais2", "jais2"),
    halves("nemotron", "nemotron"),
    no_plan("nemotron_h", "nemotron_h", unrotated),
    no_plan("nemotron_h_moe", "", unrotated),
    halves("exaone", "exaone", used),
    halves("exaone4", "exaone4 exaone4_5_text", used,
           {.windows = Windows::always,
            .period = 4,
            .windows_at_depth = 64,
            .default_window = 4096,
            .windows_follow = true,
            .only_windows_rotate = true}),
    halves("exaone-moe", "exaone_moe", used, rotated_windows),
    no_plan("rwkv6", "rwkv6", stateful),
    no_plan("rwkv6qwen2", "rwkv6qwen2", stateful),
    no_plan("rwkv7", "rwkv7", stateful),
    no_plan("arwkv7", "rwkv_hybrid", stateful),
    reordered("granite", "granite", used, switchable),
    reordered("granitemoe", "granitemoe granitemoeshared", used),
    reordered("granitehybrid", "granitemoehybrid bamba", used,
              {.rope_switch = true, .recurrence = Recurrence::without_kv_heads}),
    reordered("graniteswitch", "granite_switch", refused, switchable),
    reordered("granite_swa", "granite_swa granitemoe_swa", used,
              {.windows = Windows::listed, .windows_follow = true}),
    reordered("chameleon", "chameleon"),
    no_plan("wavtokenizer-dec", "", speech),
    no_plan("plm", "plm", aborts),
    reordered("bailingmoe", "bailing_moe"),
    halves("bailingmoe2", "bailing_moe_v2 sarvam_moe"),
    interleaved("bailingmoe3", "bailing_moe_v3", refused, hybrid, latent_attention | mrope),
    halves("dots1", "dots1"),
    interleaved(
        "dots3note", "dots3_note dots3_note_text", refused,
        {.windows = Windows::listed, .windows_follow = true, .indexer = Indexer::unwindowed},
        latent_attention),
    reordered("arcee", "arcee", used),
    halves("afmoe", "afmoe", refused,
           {.windows = Windows::always, .period = 4, .unrotated_period = 4}, keys_reach_windows),
    halves("laguna", "laguna", refused,
           {.windows = Windows::if_stated, .period = 4, .full_first = true}),
    interleaved("ernie4_5", "ernie4_5", refused, {}, like_llama),
    interleaved("ernie4_5-moe", "ernie4_5_moe"),
    halves("hunyuan-moe", "hunyuan_v1_moe hunyuan"),
    halves("hunyuan-dense", "hunyuan_v1_dense"),
    halves("hunyuan_vl", "hunyuan_vl hunyuan_vl_text", refused, {}, mrope | alpha_in_base),
    halves("hy_v3", "hy_v3"),
    // llama.cpp and transformers rotate the same weights in different pairs.
    reordered("hy_v4", "hy_v4", refused, {.indexer = Indexer::listed}, latent_attention),
    reordered("smollm3", "smollm3", refused, {.unrotated_period = 4}),
    halves("gpt-oss", "gpt_oss", refused, {.windows = Windows::always, .period = 2},
           keys_reach_windows),
    halves("lfm2", "lfm2", refused,
           {.windows = Windows::if_stated,
            .windows_follow = true,
            .recurrence = Recurrence::without_kv_heads}),
    halves("lfm2moe", "lfm2_moe", refused, hybrid),
    no_plan("dream", "Dream", diffusion),
    halves("smallthinker", "smallthinker", refused,
           {.windows = Windows::if_stated,
            .period = 4,
            .full_first = true,
            .only_windows_rotate = true},
           keys_reach_windows),
    no_plan("llada", "llada", diffusion, ignored),
    no_plan("llada-moe", "llada_moe", diffusion),
    halves("seed_oss", "seed_oss", refused, {}, like_llama | norm_renamed | reads_scale),
    halves("grovemoe", "grove_moe"),
    halves("apertus", "apertus", used),
    halves("minimax-01", "minimax minimax_text_01 minimax_m1", refused,
           {.recurrence = Recurrence::between, .attention_period = 8}),
    halves("hrm_text", "hrm_text"),
    halves("minimax-m2", "minimax_m2"),
    halves("minimax-m3", "minimax_m3_vl minimax_m3_vl_text", refused,
           {.indexer = Indexer::after_dense}),
    no_plan("cogvlm", "cogvlm", fixed, ignored),
    no_plan("rnd1", "rnd1", diffusion),
    halves("pangu-embedded", "PanguEmbedded", ignored, {}, like_llama | reads_output_bias),
    reordered("mistral3", "ministral3 mistral3", used, {}, reads_yarn_betas),
    no_plan("eagle3", "", draft, used),
    no_plan("dflash", "", draft, used),
    interleaved("mistral4", "mistral4", refused, {}, latent_attention | scale_in_scores),
    halves("paddleocr", "paddleocr_vl paddleocr_vl_text", refused, {}, mrope),
    halves("mimo2", "mimo_v2 mimo_v2_flash", refused, listed),
    step35(),
    halves("spark2_5", "spark2_5", refused, listed, keys_reach_windows),
    no_plan("llama-embed", "", encoder, used),
    reordered("maincoder", "maincoder"),
    no_plan("kimi-linear", "kimi_linear", unrotated),
    no_plan("kimi-k3", "kimi_k3", unrotated),
    no_plan("glm5-next", "glm5_next glm5_next_text", unrotated),
    halves("talkie", "talkie"),
    halves("mellum", "mellum", refused, {.windows = Windows::if_stated, .period = 4},
           keys_reach_windows),
    reordered("nanbeige", "nanbeige", used),
    no_plan("qwen3tts", "qwen3_tts", speech),
    no_plan("pockettts", "", speech),
};

[[noreturn]] void cannot_extend(const Architecture& architecture, std::string_view reason) {
  throw Error(ErrorKind::unsupported,
              cat("architecture ", architecture.name, " cannot be extended: ", reason));
}

[[noreturn]] void contradict(const Architecture& architecture, const std::string& what) {
  throw Error(ErrorKind::corrupt, cat("architecture ", architecture.name, ": ", what));
}

// The rule of one architecture together with the keys of one file.
class LayerReader {
 public:
  LayerReader(const Architecture& architecture, const LayerKeys& keys)
      : rule_(architecture.layers),
        keys_(keys),
        count_(std::max(keys.layers, 0) - std::max(keys.draft_layers, 0)) {
    check(architecture);
    has_windows_ = windows_exist();
    unrotated_period_ = rule_.unrotated_period;
    if (unrotated_period_ > 0 && keys.unrotated_period > 0) {
      unrotated_period_ = keys.unrotated_period;
    }
    if (rule_.windows == Windows::unless_zero && !has_windows_) {
      cannot_extend(architecture, aborts_without_windows);
    }
  }

  int count() const { return count_; }

  int window() const {
    if (!has_windows_) return 0;
    return keys_.sliding_window > 0 ? keys_.sliding_window : rule_.default_window;
  }

  Layer layer(int i) const {
    if (recurrent(i)) return {.kind = LayerKind::recurrent};
    Layer layer;
    layer.windowed_cache = windowed(i);
    layer.kv_heads = owns_keys(i) ? kv_heads(i) : 0;
    if (!rotated(i)) {
      layer.kind = LayerKind::unrotated;
    } else if (windowed(i) && !rule_.windows_follow) {
      layer.kind = LayerKind::windowed;
    } else {
      layer.rotations = (owns_keys(i) ? 2 : 1) + (indexed(i) ? 2 : 0);
    }
    return layer;
  }

 private:
  void check(const Architecture& architecture) const {
    if (count_ <= 0 || keys_.draft_layers < 0 || keys_.loops < 1 ||
        keys_.loops > most_layers / count_) {
      contradict(architecture, cat(keys_.layers, " layers, of them ", keys_.draft_layers,
                                   " to draft, run ", keys_.loops, " times"));
    }
    if (rule_.rotates_at_depth != 0 && rule_.rotates_at_depth != count_) {
      cannot_extend(architecture, other_depth);
    }
    if (rule_.rope_switch && !keys_.rope_finetuned) cannot_extend(architecture, switched_off);
    const auto check_length = [&](const auto& values, std::string_view name) {
      if (values.size() >= std::size_t(count_)) return;
      contradict(architecture,
                 cat(name, " has ", values.size(), " entries for ", count_, " layers"));
    };
    const auto check_flags = [&](const std::vector<bool>& flags, std::string_view name) {
      if (!flags.empty()) check_length(flags, name);
    };
    if (keys_.kv_heads.size() != 1) check_length(keys_.kv_heads, "attention.head_count_kv");
    if (rule_.windows == Windows::listed) {
      check_length(keys_.windowed, "attention.sliding_window_pattern");
    }
    check_flags(keys_.windowed, "attention.sliding_window_pattern");
    check_flags(keys_.rotated, "attention.rope_pattern");
    check_flags(keys_.recurrent, "attention.recurrent_layers");
    check_flags(keys_.indexed, "attention.indexer.types");
  }

  bool windows_exist() const {
    switch (rule_.windows) {
      case Windows::none:
        return false;
      case Windows::if_stated:
        return keys_.sliding_window > 0;
      case Windows::unless_zero:
        return keys_.sliding_window != 0;
      case Windows::always:
        return rule_.windows_at_depth == 0 || rule_.windows_at_depth == count_;
      case Windows::listed:
        break;
    }
    return true;
  }

  int kv_heads(int i) const { return keys_.kv_heads[keys_.kv_heads.size() == 1 ? 0 : i]; }

  bool owns_keys(int i) const {
    return i < (rule_.kv_layers > 0 ? rule_.kv_layers : count_ - keys_.shared_kv_layers);
  }

  bool windowed(int i) const {
    if (!has_windows_) return false;
    if (!keys_.windowed.empty()) return keys_.windowed[i];
    const int period = keys_.window_period >= 0 ? keys_.window_period : rule_.period;
    if (period == 0) return true;
    return rule_.full_first ? i % period != 0 : i % period != period - 1;
  }

  bool rotated(int i) const {
    if (!keys_.rotated.empty()) return keys_.rotated[i];
    if (rule_.dense_rotates && i < keys_.leading_dense) return true;
    if (rule_.only_windows_rotate && has_windows_) return windowed(i);
    return unrotated_period_ == 0 || (i + 1) % unrotated_period_ != 0;
  }

  bool recurrent(int i) const {
    switch (rule_.recurrence) {
      case Recurrence::none:
        return false;
      case Recurrence::without_kv_heads:
        return kv_heads(i) == 0;
      case Recurrence::between:
        break;
    }
    if (!keys_.recurrent.empty()) return keys_.recurrent[i];
    const int period = keys_.attention_period > 0 ? keys_.attention_period : rule_.attention_period;
    return (i + 1) % period != 0;
  }

  bool indexed(int i) const {
    switch (rule_.indexer) {
      case Indexer::none:
        return false;
      case Indexer::every:
        return true;
      case Indexer::listed:
        return !keys_.indexed.empty() && keys_.indexed[i];
      case Indexer::unwindowed:
        return !windowed(i);
      case Indexer::after_dense:
        return i >= keys_.leading_dense;
      case Indexer::listed_or_every:
        break;
    }
    if (!keys_.indexed.empty()) return keys_.indexed[i];
    return keys_.train_length < 1048576 || i < 2 || i % 4 == 2;
  }

  const LayerRule& rule_;
  const LayerKeys& keys_;
  const int count_;
  bool has_windows_ = false;
  int unrotated_period_ = 0;
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
  if (model_type.empty() || model_type.find(' ') != std::string_view::npos) return nullptr;
  const std::string word = cat(" ", model_type, " ");
  for (const Architecture& candidate : table) {
    if (cat(" ", candidate.huggingface, " ").find(word) != std::string::npos) return &candidate;
  }
  return nullptr;
}

Pairing gguf_pairing(const Architecture& architecture, bool has_mrope_sections) {
  return architecture.has(mrope) && has_mrope_sections ? Pairing::halves : architecture.pairing;
}

int window_of(const Architecture& architecture, const LayerKeys& keys) {
  if (!architecture.unsupported.empty()) cannot_extend(architecture, architecture.unsupported);
  return LayerReader(architecture, keys).window();
}

std::vector<Layer> layers_of(const Architecture& architecture, const LayerKeys& keys) {
  if (!architecture.unsupported.empty()) cannot_extend(architecture, architecture.unsupported);
  const LayerReader reader(architecture, keys);
  std::vector<Layer> layers;
  bool takes_plan = false;
  for (int loop = 0; loop < keys.loops; ++loop) {
    for (int i = 0; i < reader.count(); ++i) {
      layers.push_back(reader.layer(i));
      takes_plan = takes_plan || layers.back().kind == LayerKind::full;
    }
  }
  if (!takes_plan) cannot_extend(architecture, windows_only);
  return layers;
}

}  // namespace mrrope
