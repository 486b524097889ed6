// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "base/text.h"
#include "mrrope/error.h"
#include "mrrope/version.h"
#include "serve/api/format.h"
#include "serve/api/request.h"
#include "serve/embedded.h"
#include "serve/http/connection.h"
#include "serve/page/page.h"
#include "serve/schedule/scheduler.h"

namespace mrrope {

namespace {

constexpr std::chrono::milliseconds kTemplateLimit{2000};
constexpr std::chrono::milliseconds kLook{200};  // how often a waiting answer looks for its client
constexpr int kSpareThreads = 192;               // connections beside those that wait for an answer
constexpr std::int64_t kCompletionLength = 16;   // OpenAI's own

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Takes the same time wherever the two differ.
bool same_secret(const std::string& given, const std::string& secret) {
  unsigned char differs = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    differs = static_cast<unsigned char>(differs | (c ^ secret[i]));
  }
  return differs == 0;
}

std::string host_of(const std::string& authority) {
  if (!authority.empty() && authority.front() == '[') {
    return authority.substr(0, authority.find(']') + 1);
  }
  return authority.substr(0, authority.find(':'));
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.rfind("127.", 0) == 0;
}

}  // namespace

struct ApiServer::State {
  TimelineModel& model;
  const Ladder ladder;
  ChatRenderer& renderer;
  const ServerSettings settings;
  const std::optional<ChatTemplate> chat;
  std::string chat_trouble;
  const std::size_t largest;  // bytes of a body
  std::string page;
  Scheduler scheduler;
  HttpServer http;
  int port = 0;
  const Clock::time_point started = Clock::now();
  std::atomic<int> streams = 0;  // being sent

  std::mutex mutex;  // guards what follows
  std::map<int, std::uint64_t> responses;
  std::mt19937_64 random{std::random_device{}()};

  State(TimelineModel& m, const Ladder& l, ChatRenderer& r, const ServerSettings& s)
      : model(m),
        ladder(l),
        renderer(r),
        settings(s),
        chat(m.chat_template()),
        largest((std::size_t{1} << 20) + 16 * static_cast<std::size_t>(s.context)),
        scheduler(m, l, {s.parallel, s.queue, s.context}) {}

  std::uint64_t number() {
    const std::lock_guard lock(mutex);
    return random();
  }

  void check_chat() {
    if (!chat) {
      chat_trouble = cat(settings.model_name,
                         " carries no chat template: use /v1/completions, or an instruct model");
      return;
    }
    try {
      const std::vector<ChatMessage> hello = {{"user", "Hello"}};
      renderer.render(*chat, hello, kTemplateLimit);
    } catch (const Error& error) {
      chat_trouble =
          cat("the chat template of ", settings.model_name, " cannot be applied: ", error.what());
    }
  }

  void check_model(const CompletionRequest& request) const {
    if (request.model.empty() || request.model == settings.model_name) return;
    const std::string shown = request.model.size() <= 200 ? request.model : "that is this long";
    throw ApiError(404,
                   cat("there is no model '", shown, "' here, only '", settings.model_name, "'"),
                   "model", "model_not_found");
  }

  std::vector<Token> prompt_of(const CompletionRequest& request) const {
    if (!request.prompt_tokens.empty()) {
      for (const Token token : request.prompt_tokens) check_token(token, "prompt");
      return request.prompt_tokens;
    }
    if (!request.chat) return model.tokenize(request.prompt, true, true);
    if (!chat_trouble.empty()) throw ApiError(400, chat_trouble, "messages", "no_chat_template");
    std::string text;
    try {
      text = renderer.render(*chat, request.messages, kTemplateLimit);
    } catch (const Error& error) {
      throw ApiError(400, cat("the model's chat template cannot be applied: ", error.what()),
                     "messages", "chat_template_failed");
    }
    return model.tokenize(text, true, true);
  }

  void check_token(Token token, const char* field) const {
    if (token < model.vocabulary()) return;
    throw ApiError(400,
                   cat("'", field, "' holds token ", token, ", and the vocabulary ends at ",
                       model.vocabulary() - 1),
                   field);
  }

  std::shared_ptr<Answer> submit(CompletionRequest& request) {
    check_model(request);
    Job job;
    job.prompt = prompt_of(request);
    job.length = request.length.value_or(request.chat ? settings.context : kCompletionLength);
    job.sampling = request.sampling;
    if (!request.has_seed) job.sampling.seed = static_cast<std::uint32_t>(number());
    job.stop = request.stop;
    job.logprobs = request.logprobs;
    job.deadline = Clock::now() + settings.timeout;
    return scheduler.submit(std::move(job));
  }

  AnswerFormat format(const CompletionRequest& request) {
    char id[17];
    std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(number()));
    return {model,
            ladder,
            request,
            cat(request.chat ? "chatcmpl-" : "cmpl-", id),
            settings.model_name,
            static_cast<std::int64_t>(std::time(nullptr))};
  }

  // Nothing where the answer is one.
  std::optional<ApiError> failure_of(const Outcome& outcome) const {
    switch (outcome.end) {
      case Outcome::End::failed:
        return ApiError(500, outcome.message, {}, "generation_failed");
      case Outcome::End::timeout:
        return ApiError(504,
                        cat("no complete answer within ", settings.timeout.count(),
                            " s; start the server with a larger --timeout"),
                        {}, "timeout");
      case Outcome::End::cancelled:
        return ApiError(499, "the client went away", {}, "cancelled");
      default:
        return std::nullopt;
    }
  }

  void answer_whole(const httplib::Request& from, CompletionRequest& request,
                    httplib::Response& response) {
    const auto answer = submit(request);
    std::string text;
    std::vector<ChosenToken> tokens;
    for (bool complete = false; !complete;) {
      Answer::Part part;
      complete = answer->take(part, kLook, Answer::Wish::whole);
      text += part.text;
      std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(tokens));
      if (!complete && from.is_connection_closed()) answer->cancel();
    }
    if (const auto failure = failure_of(answer->outcome())) throw ApiError(*failure);
    reply(response, format(request).whole(text, tokens, answer->outcome()));
  }

  void answer_in_chunks(CompletionRequest& request, httplib::Response& response) {
    struct Stream {
      std::shared_ptr<Answer> answer;
      AnswerFormat format;
      bool usage;
      bool opened;
    };
    auto stream = std::make_shared<Stream>(
        Stream{submit(request), format(request), request.stream_usage, !request.chat});
    ++streams;
    response.set_header("Cache-Control", "no-store");
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, stream](std::size_t, httplib::DataSink& sink) {
          Answer::Part part;
          const bool complete = stream->answer->take(part, kLook);
          std::string out;
          const auto event = [&](const ordered_json& data) {
            out += cat("data: ", to_text(data), "\n\n");
          };
          if (!stream->opened) event(stream->format.opening());
          stream->opened = true;
          if (!part.text.empty() || !part.tokens.empty()) event(stream->format.chunk(part));
          if (complete) {
            const Outcome& outcome = stream->answer->outcome();
            if (const auto failure = failure_of(outcome)) {
              event(error_json(*failure));
            } else {
              event(stream->format.closing(outcome));
              if (stream->usage) event(stream->format.usage_chunk(outcome));
            }
            out += "data: [DONE]\n\n";
          }
          if (out.empty() ? !sink.is_writable() : !sink.write(out.data(), out.size())) {
            stream->answer->cancel();
            return false;
          }
          if (complete) sink.done();
          return true;
        },
        [this, stream](bool) {
          stream->answer->cancel();
          --streams;
        });
  }

  static void reply(httplib::Response& response, const ordered_json& body, int status = 200) {
    response.status = status;
    response.set_content(to_text(body), "application/json");
  }

  static void refuse(httplib::Response& response, const ApiError& error) {
    reply(response, error_json(error), error.status);
  }

  // Every failure becomes an error in OpenAI's shape.
  template <typename Handler>
  httplib::Server::Handler guarded(Handler handler) {
    return [handler](const httplib::Request& request, httplib::Response& response) {
      try {
        handler(request, response);
      } catch (const ApiError& error) {
        refuse(response, error);
      } catch (const Error& error) {
        refuse(response, ApiError(error.kind() == ErrorKind::usage ? 400 : 500, error.what()));
      } catch (const std::exception& error) {
        refuse(response, ApiError(500, error.what()));
      }
    };
  }

  // Who may ask at all. A page of another site must not speak to a server on this machine, neither
  // directly nor under a name that it has made to point here.
  std::optional<ApiError> turned_away(const httplib::Request& request) const {
    const std::string host = request.get_header_value("Host");
    if (is_loopback(settings.host) && !host.empty() && !is_loopback(host_of(host))) {
      return ApiError(403, "this server answers on the loopback address only", {}, "wrong_host");
    }
    const std::string origin = request.get_header_value("Origin");
    if (!origin.empty() && origin != cat("http://", host) && origin != cat("https://", host)) {
      return ApiError(403, "pages of other sites may not use this server", {}, "wrong_origin");
    }
    static const std::vector<std::string> open = {"/", "/page.css", "/page.js", "/chart.js",
                                                  "/health"};
    if (settings.key.empty() || std::find(open.begin(), open.end(), request.path) != open.end()) {
      return std::nullopt;
    }
    const std::string given = request.get_header_value("Authorization");
    if (given.rfind("Bearer ", 0) == 0 && same_secret(given.substr(7), settings.key)) {
      return std::nullopt;
    }
    return ApiError(401, "this server asks for its API key: Authorization: Bearer KEY", {},
                    "invalid_api_key");
  }

  ordered_json props() const {
    ordered_json rungs = ordered_json::array();
    for (const Rung& rung : ladder.rungs()) {
      rungs.push_back({{"length", rung.length}, {"scale", rung.plan.extension().scale}});
    }
    return {{"model", settings.model_name},
            {"version", cat("mrrope ", version())},
            {"engine", model.description()},
            {"window", model.facts().geometry.train_length},
            {"context", settings.context},
            {"method", settings.method},
            {"rungs", rungs},
            {"chat", chat_trouble.empty()},
            {"chat_template", chat ? ordered_json(chat->source) : ordered_json(nullptr)},
            {"total_slots", settings.parallel},
            {"default_generation_settings", {{"n_ctx", settings.context}}}};
  }

  ordered_json models() const {
    return {{"object", "list"},
            {"data",
             {{{"id", settings.model_name},
               {"object", "model"},
               {"created", static_cast<std::int64_t>(std::time(nullptr))},
               {"owned_by", "mrrope"},
               {"max_model_len", settings.context}}}}};
  }

  std::string metrics() {
    const SchedulerCounts c = scheduler.counts();
    std::string out;
    const auto head = [&](const char* name, const char* type, const char* help) {
      out += cat("# HELP mrrope_", name, " ", help, "\n# TYPE mrrope_", name, " ", type, "\n");
    };
    const auto one = [&](const char* name, const char* type, const char* help, auto value) {
      head(name, type, help);
      out += cat("mrrope_", name, " ", value, "\n");
    };
    head("http_responses_total", "counter", "Responses by status.");
    {
      const std::lock_guard lock(mutex);
      for (const auto& [status, count] : responses) {
        out += cat("mrrope_http_responses_total{code=\"", status, "\"} ", count, "\n");
      }
    }
    head("answers_total", "counter", "Answers by how they ended.");
    static constexpr std::pair<Outcome::End, const char*> kEnds[] = {
        {Outcome::End::stop, "stop"},
        {Outcome::End::length, "length"},
        {Outcome::End::cancelled, "cancelled"},
        {Outcome::End::timeout, "timeout"},
        {Outcome::End::failed, "failed"}};
    for (const auto& [end, name] : kEnds) {
      const auto it = c.ended.find(end);
      out += cat("mrrope_answers_total{end=\"", name, "\"} ", it == c.ended.end() ? 0 : it->second,
                 "\n");
    }
    one("prompt_tokens_total", "counter", "Tokens of prompts that were computed.", c.prompt_tokens);
    one("cached_tokens_total", "counter", "Tokens of prompts that were cached.", c.cached_tokens);
    one("completion_tokens_total", "counter", "Tokens written.", c.written_tokens);
    one("computations_total", "counter", "Batches computed.", c.computations);
    one("computed_tokens_total", "counter", "Tokens in them.", c.computed_tokens);
    one("rung_turns_total", "counter", "Times that cached keys were turned to another rung.",
        c.turns);
    one("busy_seconds_total", "counter", "Seconds with something to compute.", c.busy_seconds);
    one("slots", "gauge", "Conversations at the same time, at most.", c.slots);
    one("slots_busy", "gauge", "Conversations being computed.", c.slots_busy);
    one("queue", "gauge", "Requests that wait for a slot.", c.queued);
    one("uptime_seconds", "gauge", "Seconds since the start.",
        std::chrono::duration<double>(Clock::now() - started).count());
    return out;
  }

  void add_routes() {
    http.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          if (const auto error = turned_away(request)) {
            refuse(response, *error);
            return httplib::Server::HandlerResponse::Handled;
          }
          return httplib::Server::HandlerResponse::Unhandled;
        });
    // What httplib refuses by itself comes here without a body.
    http.set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      std::string why = "the request could not be read";
      if (response.status == 404) why = cat("there is no ", request.method, " ", request.path);
      if (response.status == 413) {
        why = cat("the body is larger than ", largest, " bytes, which ", settings.context,
                  " tokens never need");
      }
      if (response.status == 414) why = "the address is too long";
      refuse(response, ApiError(response.status, why));
    });
    http.set_logger([this](const httplib::Request&, const httplib::Response& response) {
      const std::lock_guard lock(mutex);
      ++responses[response.status];
    });
    const auto text = [this](const char* path, const std::string& content, const char* type) {
      http.Get(path, [content, type](const httplib::Request&, httplib::Response& response) {
        response.set_header("Content-Security-Policy", kPolicy);
        response.set_header("X-Content-Type-Options", "nosniff");
        response.set_header("Referrer-Policy", "no-referrer");
        response.set_content(content, type);
      });
    };
    text("/", page, "text/html; charset=utf-8");
    text("/page.css", serve_style(), "text/css; charset=utf-8");
    text("/page.js", embedded::serve_js, "text/javascript; charset=utf-8");
    text("/chart.js", serve_chart_script(), "text/javascript; charset=utf-8");
    const auto get = [this](const char* path, auto handler) {
      http.Get(path, guarded([handler](const httplib::Request&, httplib::Response& response) {
                 reply(response, handler());
               }));
    };
    get("/health", [] { return ordered_json{{"status", "ok"}}; });
    get("/v1/health", [] { return ordered_json{{"status", "ok"}}; });
    get("/v1/models", [this] { return models(); });
    get("/models", [this] { return models(); });
    get("/props", [this] { return props(); });
    http.Get("/metrics", guarded([this](const httplib::Request&, httplib::Response& response) {
               response.set_content(metrics(), "text/plain; version=0.0.4; charset=utf-8");
             }));
    const auto post = [this](const char* path, auto handler) {
      http.Post(path,
                guarded([handler](const httplib::Request& request, httplib::Response& response) {
                  handler(request, response);
                }));
    };
    const auto complete = [this](auto parse) {
      return [this, parse](const httplib::Request& from, httplib::Response& response) {
        CompletionRequest request = parse(from.body, largest);
        if (request.stream) return answer_in_chunks(request, response);
        answer_whole(from, request, response);
      };
    };
    post("/v1/completions", complete(parse_completion));
    post("/v1/chat/completions", complete(parse_chat));
    post("/tokenize", [this](const httplib::Request& from, httplib::Response& response) {
      const TokenizeRequest request = parse_tokenize(from.body, largest);
      reply(response, {{"tokens", model.tokenize(request.content, request.add_special,
                                                 request.parse_special)}});
    });
    post("/detokenize", [this](const httplib::Request& from, httplib::Response& response) {
      const std::vector<Token> tokens = parse_detokenize(from.body, largest);
      for (const Token token : tokens) check_token(token, "tokens");
      reply(response, {{"content", model.detokenize(tokens)}});
    });
  }
};

ApiServer::ApiServer(TimelineModel& model, const Ladder& ladder, ChatRenderer& renderer,
                     const ServerSettings& settings)
    : state_(std::make_unique<State>(model, ladder, renderer, settings)) {
  State& s = *state_;
  s.check_chat();
  s.page = serve_page({settings.model_name, settings.method, settings.context,
                       model.facts().geometry.train_length, s.chat_trouble.empty()},
                      ladder);
  const auto threads = static_cast<std::size_t>(settings.parallel + settings.queue + kSpareThreads);
  s.http.new_task_queue = [threads] { return new ConnectionThreads(threads); };
  s.http.set_payload_max_length(s.largest);
  s.http.set_tcp_nodelay(true);
  s.add_routes();
  // A port that another server holds is not shared with it.
  s.http.set_socket_options(
      [](socket_t socket) { httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1); });
  s.port = settings.port == 0 ? s.http.bind_to_any_port(settings.host)
           : s.http.bind_to_port(settings.host, settings.port) ? settings.port
                                                               : -1;
  if (s.port <= 0) {
    throw Error(
        ErrorKind::failed, cat("cannot listen on ", settings.host, " port ", settings.port),
        "it may be in use: give another --port (0 takes any that is free), or another --host");
  }
}

ApiServer::~ApiServer() = default;

int ApiServer::port() const { return state_->port; }
const std::string& ApiServer::chat_trouble() const { return state_->chat_trouble; }

void ApiServer::run(const std::function<bool()>& enough) {
  State& s = *state_;
  constexpr std::chrono::milliseconds kPause{50};
  std::thread listener([&] { s.http.listen_after_bind(); });
  std::thread watch([&] {
    while (!enough()) std::this_thread::sleep_for(kPause);
    s.scheduler.refuse_new();
    // To stop listening breaks streams off; all else is sent to its end.
    while (!s.scheduler.idle() || s.streams > 0) std::this_thread::sleep_for(kPause);
    s.http.stop();
    s.scheduler.stop();
  });
  s.scheduler.work();
  watch.join();
  listener.join();
}

}  // namespace mrrope
