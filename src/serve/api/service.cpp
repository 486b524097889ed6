// SPDX-License-Identifier: Apache-2.0
#include "serve/api/service.h"

#include <algorithm>
#include <thread>

#include "base/json.h"
#include "base/text.h"

namespace mrrope::serve {

namespace {

constexpr std::chrono::milliseconds kTemplateLimit{2000};
constexpr std::int64_t kCompletionLength = 16;  // OpenAI's own
constexpr std::int64_t kMaxContextInLimits = std::int64_t{1} << 21;
// Several answers are looked at in turn.
constexpr std::chrono::milliseconds kRoundRobinWait{10};
// An answer with tools or reasoning is parsed from its beginning every time: not for every token.
constexpr std::chrono::milliseconds kBetweenParses{30};

// A token is a number of up to six digits and a comma, or some bytes of text.
BodyLimits limits_of(const ServerSettings& settings, bool has_template) {
  const auto tokens = static_cast<std::size_t>(std::min(settings.context, kMaxContextInLimits));
  return {(std::size_t{1} << 20) + 16 * tokens, BodyLimits().values + tokens, settings.context,
          has_template};
}

// Empty, or why the template cannot be applied to a message and these tools.
std::string template_error(const ChatTemplate& chat, engine::ChatRenderer& renderer,
                           const char* tools = "") {
  engine::ChatInputs inputs;
  inputs.messages = R"([{"role": "user", "content": "Hello"}])";
  inputs.tools = tools;
  try {
    renderer.prepare(chat, inputs, kTemplateLimit);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void check_token(const Service& service, Token token, const char* field) {
  if (token < service.model.vocabulary()) return;
  throw ApiError(400,
                 cat("'", field, "' contains token ", token,
                     "; the last token of the vocabulary is ", service.model.vocabulary() - 1),
                 field);
}

ApiError gone() {
  return ApiError(499, "the request ended while its prompt was prepared", {}, "cancelled");
}

ApiError too_late(const Service& service, const char* what) {
  return ApiError(504,
                  cat(what, " within ", service.settings.timeout.count(),
                      " s; start the server with a larger --timeout"),
                  {}, "timeout");
}

std::vector<Token> tokens_of_text(const Service& service, const std::string& text, bool add_bos,
                                  bool special, const GiveUp& give_up) {
  auto tokens = service.model.tokenize_unless(text, add_bos, special, give_up);
  if (!tokens) throw gone();
  return std::move(*tokens);
}

}  // namespace

// give_up, and an error when the time for the answer is over.
GiveUp with_deadline(const Service& service, const GiveUp& give_up) {
  return [&service, deadline = Clock::now() + service.settings.timeout, give_up] {
    if (Clock::now() > deadline) throw too_late(service, "the prompt was not ready");
    return give_up && give_up();
  };
}

// Only a text at the beginning gets what the model's texts begin with.
std::vector<Token> tokens_of_prompt(const Service& service, const std::vector<PromptPart>& prompt,
                                    const char* field, const GiveUp& give_up) {
  std::vector<Token> tokens;
  for (const PromptPart& part : prompt) {
    for (const Token token : part.tokens) check_token(service, token, field);
    const std::vector<Token> more =
        part.tokens.empty()
            ? tokens_of_text(service, part.text, &part == prompt.data(), true, give_up)
            : part.tokens;
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

namespace {

std::string text_of_prompt(const Service& service, const std::vector<PromptPart>& prompt) {
  std::string text;
  for (const PromptPart& part : prompt) {
    text += part.tokens.empty() ? part.text : service.model.detokenize(part.tokens);
  }
  return text;
}

// What is done in another process, with errors about one field of the request.
template <typename Act>
auto as_field_error(const char* field, const char* what, const char* code, const Act& act) {
  try {
    return act();
  } catch (const engine::ChatBusy& busy) {
    throw ApiError(429, busy.what(), {}, "queue_full");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw gone();
    if (error.kind() == ErrorKind::out_of_memory) throw;
    throw ApiError(400, cat(what, ": ", error.what()), field, code);
  }
}

std::string schema_grammar(const Service& service, const CompletionRequest& request,
                           const GiveUp& give_up) {
  return as_field_error(
      request.schema_field.c_str(), "the JSON schema cannot be used", "invalid_schema",
      [&] { return service.renderer.schema_grammar(request.schema, kTemplateLimit, give_up); });
}

engine::ChatPrompt chat_prompt(const Service& service, const CompletionRequest& request,
                               const GiveUp& give_up) {
  if (!service.chat_error.empty()) {
    throw ApiError(400, service.chat_error, "messages", "no_chat_template");
  }
  if (!request.schema.empty()) schema_grammar(service, request, give_up);  // for its reason
  engine::ChatInputs inputs = request.conversation;
  inputs.schema = request.schema;
  return as_field_error(
      request.callable.empty() ? "messages" : "tools",
      "the model's chat template cannot be applied", "chat_template_failed",
      [&] { return service.renderer.prepare(*service.chat, inputs, kTemplateLimit, give_up); });
}

// Control tokens that are part of what the answer says, the grammar of its template and what
// triggers it.
void use_template(const Service& service, const engine::ChatPrompt& chat, Job& job) {
  const auto single = [&](const std::string& text) -> std::optional<Token> {
    const std::vector<Token> tokens = service.model.tokenize(text, false, true);
    return tokens.size() == 1 ? std::optional(tokens.front()) : std::nullopt;
  };
  for (const std::string& text : chat.shown) {
    if (const auto token = single(text)) job.shown[*token] = text;
  }
  job.stop.insert(job.stop.end(), chat.stops.begin(), chat.stops.end());
  if (chat.grammar.empty()) return;
  Grammar& grammar = job.sampling.grammar;
  grammar.text = chat.grammar;
  grammar.lazy = chat.lazy;
  grammar.patterns = chat.trigger_patterns;
  for (const auto& [word, pattern] : chat.trigger_words) {
    const auto token = single(word);
    if (token && job.shown.count(*token) != 0) {
      grammar.tokens.push_back(*token);
    } else {
      grammar.patterns.push_back(pattern);
    }
  }
  if (chat.lazy) return;
  grammar.begun = service.model.tokenize(chat.begun, false, true);
  // Some tokenizers put a space before the first one.
  if (!grammar.begun.empty() && chat.begun.front() != ' ' &&
      service.model.piece(grammar.begun.front()) == " ") {
    grammar.begun.erase(grammar.begun.begin());
  }
}

Sampling sampling_of(const Service& service, const CompletionRequest& request,
                     const GiveUp& give_up) {
  Sampling sampling = request.sampling;
  const auto context = static_cast<int>(std::min<std::int64_t>(service.settings.context, 1 << 30));
  sampling.repeat_last_n =
      sampling.repeat_last_n < 0 ? context : std::min(sampling.repeat_last_n, context);
  for (const auto& [token, value] : token_biases(service.model, request)) {
    check_token(service, token, "logit_bias");
    sampling.bias.emplace_back(token, value);
  }
  if (!sampling.grammar.text.empty()) {
    as_field_error("grammar", "the grammar cannot be used", "invalid_grammar", [&] {
      service.renderer.check_grammar(sampling.grammar.text, kTemplateLimit, give_up);
    });
  }
  if (!request.chat && !request.schema.empty()) {
    sampling.grammar.text = schema_grammar(service, request, give_up);
  }
  return sampling;
}

// Throws ApiError unless the answer succeeded.
void check_succeeded(const Service& service, const Outcome& outcome) {
  using End = Outcome::End;
  if (outcome.end == End::refused) throw ApiError(400, outcome.message, {}, "generation_refused");
  if (outcome.end == End::failed) throw ApiError(500, outcome.message, {}, "generation_failed");
  if (outcome.end == End::timeout) throw too_late(service, "no complete answer");
  if (outcome.end == End::cancelled) {
    throw ApiError(499, "the client closed the connection", {}, "cancelled");
  }
}

}  // namespace

std::vector<std::pair<Token, float>> token_biases(const TimelineModel& model,
                                                  const CompletionRequest& request) {
  std::vector<std::pair<Token, float>> biases;
  for (const Bias& bias : request.bias) {
    const std::vector<Token> tokens =
        bias.token ? std::vector<Token>{*bias.token} : model.tokenize(bias.text, false, false);
    for (const Token token : tokens) biases.emplace_back(token, bias.value);
  }
  return biases;
}

Service make_service(TimelineModel& model, const Ladder& ladder, engine::ChatRenderer& renderer,
                     const ServerSettings& settings) {
  const auto chat = model.chat_template();
  const std::string& name = settings.model_name;
  std::string trouble =
      cat(name, " has no chat template: use /v1/completions, or an instruct model");
  if (chat) trouble = template_error(*chat, renderer);
  if (chat && !trouble.empty()) {
    trouble = cat("the chat template of ", name, " cannot be applied: ", trouble);
  }
  constexpr const char* kTool = R"([{"type": "function", "function": {"name": "look",
      "description": "", "parameters": {"type": "object", "properties": {}}}}])";
  const bool tools = trouble.empty() && template_error(*chat, renderer, kTool).empty();
  const BodyLimits limits = limits_of(settings, trouble.empty());
  auto card =
      std::async(std::launch::async, [&model] { return model_card(model.facts()); }).share();
  return {model, ladder, renderer, settings, chat, trouble, tools, limits, std::move(card)};
}

void check_model(const Service& service, const std::string& name) {
  const std::string& own = service.settings.model_name;
  // ollama's clients add the tag.
  if (name.empty() || name == own || name == own + ":latest" || service.settings.any_model) return;
  throw ApiError(404,
                 name.size() <= 200 ? cat("there is no model '", name, "' here, only '", own, "'")
                                    : cat("the only model here is '", own, "'"),
                 "model", "model_not_found");
}

std::vector<PreparedJob> prepare_jobs(const Service& service, const CompletionRequest& request,
                                      const GiveUp& give_up) {
  check_model(service, request.model);
  PreparedJob prepared;
  Job& job = prepared.job;
  static_cast<AnswerSettings&>(job) = request;
  job.deadline = Clock::now() + service.settings.timeout;
  const auto enough = with_deadline(service, give_up);
  job.sampling = sampling_of(service, request, enough);
  job.length = request.length.value_or(request.chat ? service.settings.context : kCompletionLength);
  std::vector<PreparedJob> jobs;
  if (request.chat) {
    const engine::ChatPrompt chat = chat_prompt(service, request, enough);
    use_template(service, chat, job);
    prepared.syntax.syntax = chat.syntax;
    prepared.syntax.continues = request.conversation.continue_final;
    prepared.syntax.tools = request.callable;
    prepared.syntax.parallel = request.conversation.parallel_tool_calls.value_or(true);
    job.prompt = tokens_of_text(service, chat.prompt, true, true, enough);
    jobs.push_back(prepared);
  }
  for (const std::vector<PromptPart>& prompt : request.prompts) {
    jobs.push_back(prepared);
    jobs.back().job.prompt = tokens_of_prompt(service, prompt, "prompt", enough);
    if (request.echo) jobs.back().syntax.echo = text_of_prompt(service, prompt);
  }
  if (!job.sampling.grammar.text.empty() && service.model.token_texts() == nullptr) {
    throw ApiError(400, "this model's answers cannot be constrained to a grammar", "grammar",
                   "unsupported_parameter");
  }
  return jobs;
}

ordered_json tokenize_reply(const Service& service, std::string_view body, const GiveUp& give_up) {
  const TokenizeRequest request = parse_tokenize(body, service.limits);
  const std::vector<Token> tokens =
      tokens_of_text(service, request.content, request.add_special, request.parse_special,
                     with_deadline(service, give_up));
  if (!request.with_pieces) return {{"tokens", tokens}};
  ordered_json list = ordered_json::array();
  const Releaser end{list};
  for (const Token token : tokens) {
    const std::string piece = service.model.piece(token);
    const bool whole = valid_utf8(piece) == piece;  // not part of a character
    list.push_back({{"id", token}, {"piece", whole ? ordered_json(piece) : bytes_json(piece)}});
  }
  return {{"tokens", std::move(list)}};
}

ordered_json detokenize_reply(const Service& service, std::string_view body) {
  const std::vector<Token> tokens = parse_detokenize(body, service.limits);
  for (const Token token : tokens) check_token(service, token, "tokens");
  return {{"content", service.model.detokenize(tokens)}};
}

ordered_json apply_template_reply(const Service& service, std::string_view body,
                                  const GiveUp& give_up) {
  const CompletionRequest request = parse_request(body, Route::chat, service.limits);
  check_model(service, request.model);
  return {{"prompt", chat_prompt(service, request, with_deadline(service, give_up)).prompt}};
}

ordered_json count_tokens_reply(const Service& service, std::string_view body,
                                const GiveUp& give_up) {
  const CompletionRequest request = parse_request(body, Route::count_tokens, service.limits);
  check_model(service, request.model);
  const auto enough = with_deadline(service, give_up);
  const std::string prompt = chat_prompt(service, request, enough).prompt;
  return {{"input_tokens", tokens_of_text(service, prompt, true, true, enough).size()}};
}

std::vector<PendingAnswer> submit(const Service& service, Scheduler& scheduler,
                                  const std::vector<PreparedJob>& jobs, int answers,
                                  std::uint64_t number) {
  const ServerSettings& s = service.settings;
  const std::size_t wanted = jobs.size() * static_cast<std::size_t>(answers);
  if (wanted > static_cast<std::size_t>(s.slots) + static_cast<std::size_t>(s.queue)) {
    throw ApiError(400,
                   cat("the request asks for ", wanted, " answers, and this server has ", s.slots,
                       " slots and a queue of ", s.queue,
                       ": ask for fewer at a time, or start it with a larger --queue"),
                   answers > 1 ? "n" : "prompt");
  }
  std::vector<PendingAnswer> pending;
  for (const PreparedJob& prepared : jobs) {
    for (int i = 0; i < answers; ++i) {
      Job job = prepared.job;
      job.sampling.seed += static_cast<std::uint32_t>(i);
      const auto answer = scheduler.submit(std::move(job));
      pending.push_back({{answer.get(), [answer](Answer*) { answer->cancel(); }},
                         AnswerReader(service.renderer, prepared.syntax, number++)});
    }
  }
  return pending;
}

std::vector<Completion> take_whole(const Service& service, std::vector<PendingAnswer> pending,
                                   const GiveUp& gone, Progress* use) {
  std::vector<Completion> completions;
  for (auto& [answer, reader, complete, tokens, parsed, now] : pending) {
    std::string text;
    while (!complete) {
      Answer::Part part;
      complete = answer->take(part, kDisconnectPoll, Answer::WaitFor::whole);
      text += part.text;
      std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(tokens));
      if (!complete && gone()) answer->cancel();
    }
    if (use != nullptr) add_use(*use, answer->outcome());
    check_succeeded(service, answer->outcome());
    completions.push_back({reader.add(text, true), std::move(tokens), answer->outcome()});
  }
  return completions;
}

EventStream::EventStream(const Service& service, std::vector<PendingAnswer> pending,
                         std::unique_ptr<AnswerFormat> format)
    : service_(service), pending_(std::move(pending)), format_(std::move(format)) {}

Progress EventStream::use() const {
  Progress use;
  for (const PendingAnswer& pending : pending_) add_use(use, pending.now);
  return use;
}

void EventStream::cancel() noexcept {
  for (PendingAnswer& pending : pending_) pending.answer->cancel();
}

void EventStream::next_of(int index, std::string& out, std::chrono::milliseconds patience) {
  auto& [answer, reader, complete, tokens, parsed, now] = pending_[static_cast<std::size_t>(index)];
  if (reader.parses()) std::this_thread::sleep_until(parsed + kBetweenParses);
  Answer::Part part;
  complete = answer->take(part, patience);
  if (part.now.prompt > 0) now = part.now;
  if (complete) now = answer->outcome();
  for (const Progress& report : part.reading) format_->progress(out, index, report);
  std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(tokens));
  if (part.text.empty() && tokens.empty() && !complete) return;
  if (complete) check_succeeded(service_, answer->outcome());
  const Delta delta = reader.add(part.text, complete);
  parsed = Clock::now();
  if (!delta.empty() || (!tokens.empty() && (complete || !reader.parses()))) {
    part.tokens = std::exchange(tokens, {});
    format_->chunk(out, index, delta, part);
  }
  if (complete) format_->closing(out, index, answer->outcome(), reader.has_calls());
}

bool EventStream::advance(std::string& out, std::chrono::milliseconds patience) {
  const int count = static_cast<int>(pending_.size());
  if (!opened_) {
    for (int i = 0; i < count; ++i) format_->opening(out, i);
  }
  opened_ = true;
  for (int i = 0; i < count; ++i) {
    if (pending_[static_cast<std::size_t>(i)].complete) continue;
    next_of(i, out, count == 1 ? patience : std::min(patience, kRoundRobinWait));
  }
  std::vector<Outcome> outcomes;
  for (const PendingAnswer& pending : pending_) {
    if (!pending.complete) return false;
    outcomes.push_back(pending.answer->outcome());
  }
  format_->end(out, outcomes);
  return true;
}

bool EventStream::next(std::string& out, std::chrono::milliseconds patience) {
  try {
    return advance(out, patience);
  } catch (const ApiError& error) {
    status_ = error.status;
    format_->failure(out, error);
  } catch (const std::exception& error) {
    status_ = 500;
    format_->failure(out, ApiError(500, error.what(), {}, "generation_failed"));
  }
  cancel();
  return true;
}

}  // namespace mrrope::serve
