// SPDX-License-Identifier: Apache-2.0
// llama-server's own /completion: the fields that its clients read.
#include "base/text.h"
#include "serve/dialects/dialects.h"

namespace mrrope::serve {

namespace {

class LlamaFormat final : public AnswerFormat {
 public:
  LlamaFormat(const AnswerFacts& facts, const CompletionRequest& request)
      : facts_(facts),
        logprobs_(request.logprobs.has_value()),
        tokens_(request.return_tokens),
        progress_(request.return_progress),
        settings_{{"temperature", request.sampling.temperature},
                  {"top_k", request.sampling.top_k},
                  {"top_p", request.sampling.top_p},
                  {"min_p", request.sampling.min_p},
                  {"typical_p", request.sampling.typical_p},
                  {"repeat_last_n", request.sampling.repeat_last_n},
                  {"repeat_penalty", request.sampling.repeat_penalty},
                  {"presence_penalty", request.sampling.presence_penalty},
                  {"frequency_penalty", request.sampling.frequency_penalty},
                  {"stop", request.stop},
                  {"stream", request.stream}},
        ignored_(request.ignored) {}

  const char* stream_type() const override { return "text/event-stream"; }
  void opening(std::string&, int) override {}

  void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) override {
    ordered_json chunk = {{"index", index},
                          {"content", delta.content},
                          {"tokens", tokens(part.tokens)},
                          {"stop", false},
                          {"id_slot", -1},
                          {"tokens_predicted", part.written},
                          {"tokens_evaluated", part.length - part.written}};
    if (logprobs_) chunk["completion_probabilities"] = probabilities(part.tokens);
    chunk["mrrope"] = place_json(facts_.ladder, part.rung, part.length);
    event(out, chunk);
  }

  void progress(std::string& out, int index, const Answer::Part& part) override {
    if (!progress_) {
      out += ": reading the prompt\n\n";
      return;
    }
    event(out, {{"index", index},
                {"content", ""},
                {"tokens", ordered_json::array()},
                {"stop", false},
                {"prompt_progress", progress_json(*part.prefill)}});
  }

  void closing(std::string& out, int index, const Outcome& outcome, bool) override {
    event(out, last(index, "", {}, outcome));
  }
  void failure(std::string& out, const ApiError& error) override { event(out, error_json(error)); }
  void end(std::string&, const std::vector<Outcome>&) override {}

  ordered_json whole(const std::vector<WholeAnswer>& answers) override {
    const WholeAnswer& answer = answers.front();
    ordered_json out = last(0, answer.said.content, answer.tokens, answer.outcome);
    if (logprobs_) out["completion_probabilities"] = probabilities(answer.tokens);
    return out;
  }

 private:
  static void event(std::string& out, const ordered_json& data) {
    out += cat("data: ", to_text(data), "\n\n");
  }

  ordered_json tokens(const std::vector<ChosenToken>& chosen) const {
    ordered_json list = ordered_json::array();
    if (!tokens_) return list;
    for (const ChosenToken& one : chosen) list.push_back(one.token);
    return list;
  }

  ordered_json probabilities(const std::vector<ChosenToken>& chosen) const {
    ordered_json list = ordered_json::array();
    const auto entry = [&](Token token, double logprob) {
      const std::string piece = facts_.model.piece(token);
      ordered_json bytes = ordered_json::array();
      for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
      return ordered_json{{"id", token}, {"token", piece}, {"bytes", bytes}, {"logprob", logprob}};
    };
    for (const ChosenToken& one : chosen) {
      ordered_json item = entry(one.token, one.logprob);
      item["top_logprobs"] = ordered_json::array();
      for (const auto& [token, logprob] : one.top) {
        item["top_logprobs"].push_back(entry(token, logprob));
      }
      list.push_back(std::move(item));
    }
    return list;
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
            {"model", facts_.model_name},
            {"tokens_predicted", outcome.written},
            {"tokens_evaluated", outcome.prompt},
            {"tokens_cached", outcome.length},
            {"generation_settings", settings_},
            {"truncated", false},
            {"stop_type", how},
            {"stopping_word", outcome.stop_string},
            {"timings", timings_json(outcome)},
            {"mrrope", about_json(facts_.ladder, outcome, ignored_)}};
  }

  AnswerFacts facts_;
  bool logprobs_;
  bool tokens_;
  bool progress_;
  ordered_json settings_;
  std::vector<std::string> ignored_;
};

}  // namespace

std::unique_ptr<AnswerFormat> make_llama_format(const AnswerFacts& facts,
                                                const CompletionRequest& request) {
  return std::make_unique<LlamaFormat>(facts, request);
}

}  // namespace mrrope::serve
