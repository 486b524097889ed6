// SPDX-License-Identifier: Apache-2.0
// llama-server's own /completion: the fields that its clients read.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "serve/api/fields.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

// Every token that is changed; null: never.
ordered_json biases_json(const TimelineModel& model, const CompletionRequest& request) {
  ordered_json list = ordered_json::array();
  const auto add = [&](Token token, float bias) {
    list.push_back({{"token", token},
                    {"bias", std::isinf(bias) ? ordered_json(nullptr) : ordered_json(bias)}});
  };
  for (const auto& [token, bias] : token_biases(model, request)) add(token, bias);
  if (!request.sampling.ignore_end) return list;
  for (Token token = 0; token < model.vocabulary(); ++token) {
    if (model.ends_text(token)) add(token, -INFINITY);
  }
  return list;
}

ordered_json settings_json(const TimelineModel& model, const CompletionRequest& request) {
  const Sampling& s = request.sampling;
  return {{"n_predict", request.length && *request.length < kMaxTokens ? *request.length : -1},
          {"seed", s.seed},
          {"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"typical_p", s.typical_p},
          {"repeat_last_n", s.repeat_last_n},
          {"repeat_penalty", s.repeat_penalty},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"ignore_eos", s.ignore_end},
          {"logit_bias", biases_json(model, request)},
          {"n_probs", request.logprobs.value_or(0)},
          {"grammar", s.grammar.text},
          {"stop", request.stop},
          {"stream", request.stream}};
}

class LlamaFormat final : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  // One event for each token, however many came at once.
  void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) override {
    look_for_new_line(index, delta.content);
    std::string rest = delta.content;
    const std::size_t count = std::max<std::size_t>(1, part.tokens.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto later = std::int64_t(count - 1 - i);
      Progress now = part.now;
      now.written -= later;
      now.length -= later;
      std::string text = rest;
      std::vector<ChosenToken> token;
      if (!part.tokens.empty()) token.push_back(part.tokens[i]);
      if (later > 0) text.resize(std::min(text.size(), token.front().text.size()));
      rest.erase(0, text.size());
      ordered_json chunk = {{"index", index},
                            {"content", text},
                            {"tokens", tokens(token)},
                            {"stop", false},
                            {"id_slot", -1},
                            {"tokens_predicted", now.written},
                            {"tokens_evaluated", now.length - now.written}};
      if (request_.logprobs) chunk["completion_probabilities"] = token_list(token, true);
      chunk["mrrope"] = place_json(service_.ladder, now);
      event(out, chunk);
    }
  }

  void progress_event(std::string& out, int index, const Progress& now) override {
    event(out, {{"index", index},
                {"content", ""},
                {"tokens", ordered_json::array()},
                {"stop", false},
                {"prompt_progress", progress_json(now)}});
  }

  void closing(std::string& out, int index, const Outcome& outcome, bool) override {
    event(out, last(index, "", {}, outcome));
  }

  // A list where there are several prompts.
  ordered_json whole(const std::vector<Completion>& answers) override {
    ordered_json list = ordered_json::array();
    for (const Completion& answer : answers) {
      const int index = int(list.size());
      look_for_new_line(index, answer.delta.content);
      list.push_back(last(index, answer.delta.content, answer.tokens, answer.outcome));
      if (request_.logprobs)
        list.back()["completion_probabilities"] = token_list(answer.tokens, true);
    }
    return answers.size() == 1 ? list.front() : list;
  }

 private:
  void look_for_new_line(int index, const std::string& text) {
    if (text.find('\n') != std::string::npos) new_lines_.insert(index);
  }

  ordered_json tokens(const std::vector<ChosenToken>& chosen) const {
    if (!request_.return_tokens) return ordered_json::array();
    return mapped(chosen, &ChosenToken::token);
  }

  ordered_json last(int index, const std::string& text, const std::vector<ChosenToken>& chosen,
                    const Outcome& outcome) const {
    const bool word = !outcome.stop_string.empty();
    const char* how = word ? "word" : "eos";
    if (outcome.end == Outcome::End::length) how = "limit";
    return {{"index", index},
            {"content", text},
            {"tokens", tokens(chosen)},
            {"id_slot", -1},
            {"stop", true},
            {"model", service_.settings.model_name},
            {"tokens_predicted", outcome.written},
            {"tokens_evaluated", outcome.prompt},
            {"tokens_cached", outcome.length},
            {"generation_settings", settings_json(service_.model, request_)},
            {"has_new_line", new_lines_.count(index) != 0},
            // By the end of the context.
            {"truncated",
             outcome.end == Outcome::End::length && outcome.length >= service_.settings.context},
            {"stop_type", how},
            {"stopping_word", outcome.stop_string},
            {"timings", timings_json(outcome)},
            {"mrrope", about(outcome)}};
  }

  std::set<int> new_lines_;  // answers that have one
};

}  // namespace

std::unique_ptr<AnswerFormat> make_llama_format(const AnswerFormat::Basis& basis) {
  return std::make_unique<LlamaFormat>(basis);
}

}  // namespace mrrope::serve
