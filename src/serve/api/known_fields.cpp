// SPDX-License-Identifier: Apache-2.0
// Every field of OpenAI, llama-server and vLLM that would change the answer and is not supported.
// docs/serve.md lists those that change nothing; they appear in the answer as ignored.
#include "serve/api/sampling_fields.h"

namespace mrrope::serve {

namespace {

struct Unsupported {
  const char* name;
  ordered_json neutral;  // null and empty strings, lists and objects pass as well
  const char* why;
};

// Companions that mean nothing without them (mirostat_tau, dry_base, ...) are ignored.
const std::vector<Unsupported>& unsupported() {
  constexpr const char* kPenalties =
      "use frequency_penalty, presence_penalty or repeat_penalty against repetition";
  constexpr const char* kSamplers = "use temperature, top_k, top_p, min_p and typical_p";
  constexpr const char* kLogits = "use logit_bias to change logits";
  constexpr const char* kGuided = "use response_format, json_schema or grammar";
  constexpr const char* kTemplate = "chats use the model's template as it is";
  constexpr const char* kEnds = "an answer ends at the model's end of text, 'stop' or max_tokens";
  constexpr const char* kText = "only text is supported";
  constexpr const char* kModel = "the model is served as it is";
  constexpr const char* kThinking = "reasoning is as long as the model makes it";
  constexpr const char* kInside = "it is for llama-server's own use; send tools instead";
  static const std::vector<Unsupported> list = {
      {"dry_multiplier", 0, kPenalties},
      {"no_repeat_ngram_size", 0, kPenalties},
      {"repetition_detection", nullptr, kPenalties},
      {"mirostat", 0, kSamplers},
      {"tfs_z", 1, kSamplers},
      {"top_a", 0, kSamplers},
      {"top_n_sigma", -1, kSamplers},
      {"xtc_probability", 0, kSamplers},
      {"dynatemp_range", 0, kSamplers},
      {"adaptive_target", -1, kSamplers},
      {"min_keep", 0, kSamplers},
      {"samplers", nullptr, kSamplers},
      {"use_beam_search", false, kSamplers},
      {"length_penalty", 1, kSamplers},
      {"allowed_token_ids", nullptr, kLogits},
      {"bad_words", nullptr, kLogits},
      {"logits_processors", nullptr, kLogits},
      {"vllm_xargs", nullptr, kLogits},
      {"guided_json", nullptr, kGuided},
      {"guided_regex", nullptr, kGuided},
      {"guided_choice", nullptr, kGuided},
      {"guided_grammar", nullptr, kGuided},
      {"structured_outputs", nullptr, kGuided},
      {"structural_tag", nullptr, kGuided},
      {"grammar_lazy", false, kInside},
      {"grammar_triggers", nullptr, kInside},
      {"preserved_tokens", nullptr, kInside},
      {"generation_prompt", "", kInside},
      {"chat_parser", "", kInside},
      {"parse_tool_calls", true, kInside},
      {"min_tokens", 0, kEnds},
      {"stop_token_ids", nullptr, kEnds},
      {"t_max_predict_ms", -1, kEnds},
      {"t_max_prompt_ms", -1, kEnds},
      {"n_indent", 0, kEnds},
      {"include_stop_str_in_output", false, "an answer ends before the stop string"},
      {"skip_special_tokens", true, "control tokens have no text"},
      {"spaces_between_special_tokens", true, "control tokens have no text"},
      {"return_tokens_as_token_ids", false, "log-probabilities name tokens by their text"},
      {"return_token_ids", false, "use /tokenize, or return_tokens of /completion"},
      {"post_sampling_probs", false, "log-probabilities are those of the model"},
      {"prompt_logprobs", nullptr, "log-probabilities are those of the answer"},
      {"truncate_prompt_tokens", nullptr, "prompts are not truncated"},
      {"n_cache_reuse", 0, "only a common prefix is reused"},
      {"lora", nullptr, kModel},
      {"lora_adapters", nullptr, kModel},
      {"prompt_embeds", nullptr, kText},
      {"image_data", nullptr, kText},
      {"multimodal_data", nullptr, kText},
      {"mm_processor_kwargs", nullptr, kText},
      {"audio", nullptr, kText},
      {"modalities", ordered_json::array({"text"}), kText},
      {"chat_template", nullptr, kTemplate},
      {"documents", nullptr, kTemplate},
      {"add_special_tokens", nullptr, kTemplate},
      {"include_reasoning", true, "use reasoning_format none to have it in the content"},
      {"reasoning_budget_tokens", -1, kThinking},
      {"thinking_budget_tokens", -1, kThinking},
      {"thinking_token_budget", nullptr, kThinking},
      {"reasoning_control", false, kThinking},
      {"verbosity", "medium", kThinking},
      {"functions", nullptr, "use tools"},
      {"function_call", "auto", "use tools and tool_choice"},
      {"web_search_options", nullptr, "nothing is searched"},
      {"kv_transfer_params", nullptr, "the cache stays here"},
      {"suffix", "", "text can only be continued at its end"}};
  return list;
}

}  // namespace

void check_known_fields(Fields& fields) {
  for (const auto& [name, neutral, why] : unsupported()) fields.only(name, neutral, why);
}

}  // namespace mrrope::serve
