// SPDX-License-Identifier: Apache-2.0
#include "serve/api/service.h"

#include <algorithm>
#include <ctime>
#include <semaphore>

#include "base/text.h"
#include "mrrope/error.h"
#include "mrrope/version.h"

namespace mrrope::serve {

namespace {

constexpr std::chrono::milliseconds kTemplateLimit{2000};
constexpr std::int64_t kCompletionLength = 16;  // OpenAI's own
constexpr std::int64_t kLongestInLimits = std::int64_t{1} << 21;
constexpr std::ptrdiff_t kParsers = 4;

// A token is a number of up to six digits and a comma, or some bytes of text.
BodyLimits limits_of(const ServerSettings& settings) {
  const auto tokens = static_cast<std::size_t>(std::min(settings.context, kLongestInLimits));
  BodyLimits limits;
  limits.bytes = (std::size_t{1} << 20) + 16 * tokens;
  limits.values += tokens;
  return limits;
}

std::counting_semaphore<> parsers{kParsers};

template <typename Parse>
auto one_of_few(const Parse& parse) {
  parsers.acquire();
  struct Release {
    ~Release() { parsers.release(); }
  } release;
  return parse();
}

std::string chat_trouble_of(const std::optional<ChatTemplate>& chat, engine::ChatRenderer& renderer,
                            const std::string& name) {
  if (!chat) return cat(name, " has no chat template: use /v1/completions, or an instruct model");
  try {
    const std::vector<ChatMessage> hello = {{"user", "Hello"}};
    renderer.render(*chat, hello, kTemplateLimit);
    return {};
  } catch (const Error& error) {
    return cat("the chat template of ", name, " cannot be applied: ", error.what());
  }
}

void check_model(const Service& service, const CompletionRequest& request) {
  const std::string& own = service.settings.model_name;
  if (request.model.empty() || request.model == own) return;
  throw ApiError(404,
                 request.model.size() <= 200
                     ? cat("there is no model '", request.model, "' here, only '", own, "'")
                     : cat("the only model here is '", own, "'"),
                 "model", "model_not_found");
}

void check_token(const Service& service, Token token, const char* field) {
  if (token < service.model.vocabulary()) return;
  throw ApiError(400,
                 cat("'", field, "' contains token ", token,
                     "; the last token of the vocabulary is ", service.model.vocabulary() - 1),
                 field);
}

// give_up, and an error when the time for the answer is over.
std::function<bool()> with_deadline(const Service& service, Clock::time_point deadline,
                                    const std::function<bool()>& give_up) {
  return [&service, deadline, give_up] {
    if (Clock::now() > deadline) {
      throw ApiError(504,
                     cat("the text was not tokenized within ", service.settings.timeout.count(),
                         " s; start the server with a larger --timeout"),
                     {}, "timeout");
    }
    return give_up && give_up();
  };
}

std::vector<Token> tokens_of_text(const Service& service, const std::string& text, bool add_bos,
                                  bool special, const std::function<bool()>& give_up) {
  auto tokens = service.model.tokenize_unless(text, add_bos, special, give_up);
  if (!tokens)
    throw ApiError(499, "the request ended while its prompt was tokenized", {}, "cancelled");
  return std::move(*tokens);
}

std::vector<Token> prompt_of(const Service& service, const CompletionRequest& request,
                             const std::function<bool()>& give_up) {
  if (!request.prompt_tokens.empty()) {
    for (const Token token : request.prompt_tokens) check_token(service, token, "prompt");
    return request.prompt_tokens;
  }
  if (!request.chat) return tokens_of_text(service, request.prompt, true, true, give_up);
  if (!service.chat_trouble.empty()) {
    throw ApiError(400, service.chat_trouble, "messages", "no_chat_template");
  }
  std::string text;
  try {
    text = service.renderer.render(*service.chat, request.messages, kTemplateLimit);
  } catch (const Error& error) {
    throw ApiError(400, cat("the model's chat template cannot be applied: ", error.what()),
                   "messages", "chat_template_failed");
  }
  return tokens_of_text(service, text, true, true, give_up);
}

}  // namespace

Service make_service(TimelineModel& model, const Ladder& ladder, engine::ChatRenderer& renderer,
                     const ServerSettings& settings) {
  const auto chat = model.chat_template();
  return {model,
          ladder,
          renderer,
          settings,
          chat,
          chat_trouble_of(chat, renderer, settings.model_name),
          limits_of(settings)};
}

CompletionRequest parse_request(const Service& service, std::string_view body, bool chat) {
  return one_of_few([&] {
    return chat ? parse_chat(body, service.limits) : parse_completion(body, service.limits);
  });
}

Job job_of(const Service& service, const CompletionRequest& request, std::uint32_t seed,
           const std::function<bool()>& give_up) {
  check_model(service, request);
  Job job;
  job.deadline = Clock::now() + service.settings.timeout;
  job.prompt = prompt_of(service, request, with_deadline(service, job.deadline, give_up));
  job.length = request.length.value_or(request.chat ? service.settings.context : kCompletionLength);
  job.sampling = request.sampling;
  if (!request.has_seed) job.sampling.seed = seed;
  job.stop = request.stop;
  job.logprobs = request.logprobs;
  job.reuse = request.cache_prompt;
  return job;
}

AnswerFormat format_of(const Service& service, const CompletionRequest& request,
                       std::uint64_t number) {
  char id[17];
  std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(number));
  return {service.model,
          service.ladder,
          request,
          cat(request.chat ? "chatcmpl-" : "cmpl-", id),
          service.settings.model_name,
          static_cast<std::int64_t>(std::time(nullptr))};
}

std::optional<ApiError> failure_of(const Service& service, const Outcome& outcome) {
  switch (outcome.end) {
    case Outcome::End::failed:
      return ApiError(500, outcome.message, {}, "generation_failed");
    case Outcome::End::timeout:
      return ApiError(504,
                      cat("no complete answer within ", service.settings.timeout.count(),
                          " s; start the server with a larger --timeout"),
                      {}, "timeout");
    case Outcome::End::cancelled:
      return ApiError(499, "the client closed the connection", {}, "cancelled");
    default:
      return std::nullopt;
  }
}

ordered_json tokenize_reply(const Service& service, std::string_view body,
                            const std::function<bool()>& give_up) {
  const TokenizeRequest request = one_of_few([&] { return parse_tokenize(body, service.limits); });
  const auto deadline = Clock::now() + service.settings.timeout;
  return {
      {"tokens", tokens_of_text(service, request.content, request.add_special,
                                request.parse_special, with_deadline(service, deadline, give_up))}};
}

ordered_json detokenize_reply(const Service& service, std::string_view body) {
  const std::vector<Token> tokens =
      one_of_few([&] { return parse_detokenize(body, service.limits); });
  for (const Token token : tokens) check_token(service, token, "tokens");
  return {{"content", service.model.detokenize(tokens)}};
}

ordered_json props_reply(const Service& service) {
  ordered_json rungs = ordered_json::array();
  for (const Rung& rung : service.ladder.rungs()) {
    rungs.push_back({{"length", rung.length}, {"scale", rung.plan.extension().scale}});
  }
  const ServerSettings& settings = service.settings;
  return {
      {"model", settings.model_name},
      {"version", cat("mrrope ", version())},
      {"engine", service.model.description()},
      {"window", service.model.facts().geometry.train_length},
      {"context", settings.context},
      {"method", settings.method},
      {"rungs", rungs},
      {"chat", service.chat_trouble.empty()},
      {"chat_template", service.chat ? ordered_json(service.chat->source) : ordered_json(nullptr)},
      {"total_slots", settings.parallel},
      {"default_generation_settings", {{"n_ctx", settings.context}}}};
}

ordered_json models_reply(const Service& service) {
  return {{"object", "list"},
          {"data",
           {{{"id", service.settings.model_name},
             {"object", "model"},
             {"created", static_cast<std::int64_t>(std::time(nullptr))},
             {"owned_by", "mrrope"},
             {"max_model_len", service.settings.context}}}}};
}

}  // namespace mrrope::serve
