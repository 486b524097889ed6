// SPDX-License-Identifier: Apache-2.0
// Embeddings of texts, for clients of OpenAI's API and of ollama.
#include <base64.hpp>

#include "base/json.h"
#include "base/text.h"
#include "serve/api/fields.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxInputs = 2048;  // OpenAI's own

using Rows = std::vector<std::vector<float>>;

PromptPart one_input(const Value& input, bool may_be_tokens) {
  const ordered_json& json = input.json();
  if (json.empty() || json == "") input.refuse("is empty: give a text");
  PromptPart part;
  if (json.is_array() && may_be_tokens) {
    for (const ordered_json& token : json) part.tokens.push_back(token_of(token, "input"));
  } else {
    part.text = input.text();
  }
  return part;
}

// A text, tokens, or a list of those. Only OpenAI's route takes tokens.
std::vector<PromptPart> inputs_of(const Value& input, Route route) {
  const bool tokens = route == Route::embeddings;
  const ordered_json& json = input.json();
  const bool list = json.is_array() && !json.empty() && route != Route::ollama_embeddings &&
                    !(tokens && json.front().is_number());
  if (!list) return {one_input(input, tokens)};
  std::vector<PromptPart> parts;
  for (const Value& one : input.entries(kMaxInputs, "texts")) {
    parts.push_back(one_input(one, tokens));
  }
  return parts;
}

// may_cut: one that is too long loses its end.
std::vector<Token> tokens_of_input(const Service& service, const PromptPart& input, bool may_cut,
                                   const char* field, const GiveUp& give_up) {
  const std::int64_t window = service.model.facts().geometry.train_length;
  std::vector<Token> tokens = tokens_of_prompt(service, {input}, field, give_up);
  const auto end = input.tokens.empty() ? service.model.text_end() : std::nullopt;
  if (end) tokens.push_back(*end);
  if (std::ssize(tokens) <= window) return tokens;
  if (!may_cut) {
    refuse(field,
           cat("has a text of ", tokens.size(), " tokens, and the model's window has ", window,
               ": send it in parts"),
           "context_length_exceeded");
  }
  tokens.resize(std::size_t(window));
  if (end) tokens.back() = *end;
  return tokens;
}

struct EmbedJob {
  std::vector<std::vector<Token>> texts;
  Rows rows;  // so far
  std::promise<Rows> result;
};

// Waits for them.
Rows embedded_rows(const Service& service, Scheduler& scheduler,
                   std::vector<std::vector<Token>> texts, const GiveUp& give_up) {
  auto job = std::make_shared<EmbedJob>();
  job->texts = std::move(texts);
  auto result = job->result.get_future();
  const auto here = std::make_shared<bool>();  // the job outlives a client that does not wait
  scheduler.between_rounds(
      [job = std::move(job), &model = service.model, wanted = std::weak_ptr(here)] {
        if (wanted.expired()) return true;
        try {
          job->rows.push_back(model.embed(job->texts[job->rows.size()]));
          if (job->rows.size() < job->texts.size()) return false;
          job->result.set_value(std::move(job->rows));
        } catch (...) {
          job->result.set_exception(std::current_exception());
        }
        return true;
      });
  try {
    return result_of(std::move(result), give_up);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::usage) throw;
    throw ApiError(400, cat(error.what(), error.hint().empty() ? "" : ": ", error.hint()), {},
                   "not_supported");
  }
}

}  // namespace

ordered_json embeddings_reply(const Service& service, Scheduler& scheduler, Route route,
                              std::string_view body, const GiveUp& give_up, Progress& use) {
  const auto began = Clock::now();
  const bool openai = route == Route::embeddings;
  const char* const field = route == Route::ollama_embeddings ? "prompt" : "input";
  CompletionRequest request;
  std::vector<PromptPart> inputs;
  bool packed = false, may_cut = false;
  {
    const ParsedBody parsed(body, service.limits);
    read_fields(parsed.root(), route, request);
    inputs = inputs_of(parsed.at(field), route);
    const Value format = parsed.at("encoding_format");
    packed = openai && format && format.choice({"float", "base64"}) == "base64";
    may_cut = !openai && parsed.at("truncate").flag_or(true);
  }
  check_model(service, request.model);
  const GiveUp enough = with_deadline(service, give_up);
  std::vector<std::vector<Token>> texts;
  for (const PromptPart& input : inputs) {
    texts.push_back(tokens_of_input(service, input, may_cut, field, enough));
    use.prompt += std::ssize(texts.back());
  }
  const Rows rows = embedded_rows(service, scheduler, std::move(texts), enough);
  if (route == Route::ollama_embeddings) return {{"embedding", rows.front()}};
  ordered_json list = ordered_json::array();
  const Releaser end{list};
  for (const std::vector<float>& row : rows) {
    ordered_json numbers = row;
    if (packed) numbers = base64::encode(reinterpret_cast<const char*>(row.data()), 4 * row.size());
    if (openai) numbers = {{"object", "embedding"}, {"index", list.size()}, {"embedding", numbers}};
    list.push_back(std::move(numbers));
  }
  const ordered_json about = {{"ignored", request.ignored}};
  if (openai) {
    return {{"object", "list"},
            {"data", std::move(list)},
            {"model", service.settings.model_name},
            {"usage", {{"prompt_tokens", use.prompt}, {"total_tokens", use.prompt}}},
            {"mrrope", about}};
  }
  const std::chrono::nanoseconds took = Clock::now() - began;
  return {{"model", service.settings.model_name}, {"embeddings", std::move(list)},
          {"total_duration", took.count()},       {"load_duration", 0},
          {"prompt_eval_count", use.prompt},      {"mrrope", about}};
}

}  // namespace mrrope::serve
