// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "mrrope/version.h"
#include "serve/api/fields.h"
#include "serve/http/http_server.h"

namespace mrrope::serve {

namespace {

using httplib::Request, httplib::Response;

constexpr std::chrono::milliseconds kIdlePoll{50};
constexpr std::chrono::seconds kDrainTimeout{3};  // of answers, when the server shuts down
constexpr int kSpareConnections = 192;            // in addition to those that wait for an answer
constexpr std::size_t kTotalBodyBytes = std::size_t{64} << 20;
constexpr int kClientGone = 499;
constexpr std::size_t kShownRoute = 200;  // bytes of an address, in an error

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void reply(Response& response, ordered_json body, int status = 200) {
  const Releaser end{body};
  response.status = status;
  response.set_content(json_text(body), "application/json");
}

bool is_ollama(const Request& request) { return request.path.rfind("/api/", 0) == 0; }

bool is_anthropic(const Request& request) { return request.path.rfind("/v1/messages", 0) == 0; }

ordered_json error_body(const Request& from, const ApiError& error) {
  if (is_ollama(from)) return {{"error", error.what()}};
  return is_anthropic(from) ? anthropic_error_json(error) : error_json(error);
}

void refuse(const Request& from, Response& response, const ApiError& error) {
  if (error.status == 429 || error.status == 503) response.set_header("Retry-After", "1");
  reply(response, error_body(from, error), error.status);
}

// Without a JSON value: each needs memory.
void refuse_for_memory(const Request& from, Response& response) {
  response.status = 503;
  response.set_header("Retry-After", "1");
  const char* body = R"({"error":{"message":"out of memory: try again later",)"
                     R"("type":"server_error","param":null,"code":"busy"}})";
  if (is_ollama(from)) body = R"({"error":"out of memory: try again later"})";
  if (is_anthropic(from)) {
    body = R"({"type":"error","error":{"type":"overloaded_error",)"
           R"("message":"out of memory: try again later"}})";
  }
  response.set_content(body, "application/json");
}

// The three that are most like what was asked for.
std::string nearest(const std::string& wanted, const std::vector<std::string>& routes) {
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const std::string& route : routes) order.emplace_back(edit_distance(wanted, route), route);
  std::ranges::sort(order);
  return cat(order.at(0).second, ", ", order.at(1).second, " and ", order.at(2).second);
}

// What a request has used, kept with its response until that is logged.
Progress& use_of(Response& response) {
  response.user_data.set("use", Progress());
  return *response.user_data.get<Progress>("use");
}

GiveUp disconnect_check(const Request& from) {
  return [&from] { return HttpServer::client_is_gone(from); };
}

// Every failure becomes an error for the client.
template <typename Act>
void guarded(const Request& from, Response& response, const Act& act) {
  try {
    act();
  } catch (const ApiError& error) {
    refuse(from, response, error);
  } catch (const Error& error) {
    const int status = error.kind() == ErrorKind::usage           ? 400
                       : error.kind() == ErrorKind::out_of_memory ? 503
                                                                  : 500;
    refuse(from, response, ApiError(status, error.what()));
  } catch (const std::bad_alloc&) {
    refuse_for_memory(from, response);
  } catch (const std::exception& error) {
    refuse(from, response, ApiError(500, error.what()));
  }
}

struct ApiServer {
  const Service& service;
  Scheduler scheduler;
  BodyBudget bodies;
  HttpServer& http;
  const AccessRules access;
  const Clock::time_point started = Clock::now();
  std::atomic<int> streams = 0;     // being sent
  std::vector<std::string> routes;  // "GET /health"

  std::mutex mutex;  // guards what follows
  std::map<int, std::uint64_t> responses;
  std::mt19937_64 random{std::random_device{}()};

  ApiServer(const Service& s, const Listener& listener)
      : service(s),
        scheduler(s.model, s.ladder, s.settings),
        bodies(std::ptrdiff_t(std::max(kTotalBodyBytes, 2 * s.limits.bytes))),
        http(*listener.http),
        access{listener.loopback, s.settings.key, s.settings.cors} {
    configure();
    add_routes();
  }

  std::uint64_t number() {
    const std::lock_guard lock(mutex);
    return random();
  }

  // When a request has ended. Called where nothing may be thrown.
  void log(const Request& from, const Progress& use, int status) noexcept {
    if (!service.settings.on_request) return;
    try {
      const bool slot = from.path.starts_with("/slots/");
      std::string verb = from.method;
      if (verb == "HEAD") verb = "GET";
      std::string route = cat(verb, " ", slot ? "/slots/{id}" : from.path);
      if (!has(routes, route)) route = "- (no route)";
      const std::chrono::duration<double, std::milli> took = Clock::now() - from.start_time_;
      service.settings.on_request(
          log_line(use, route, took.count(), status, service.settings.json_log));
    } catch (const std::exception&) {  // no memory: the answer matters more
    }
  }

  void answer_in_chunks(const Request& from, const CompletionRequest& request,
                        std::vector<PendingAnswer> pending, Response& response) {
    const auto stream = std::make_shared<EventStream>(service, std::move(pending),
                                                      make_format({service, request, number()}));
    ++streams;
    response.set_header("Cache-Control", "no-store");
    // HTTP/1.0 has no chunks: there the end of the connection is the end of the answer.
    const bool chunks = from.version != "HTTP/1.0";
    // Many clients hang up as soon as they have read the last event.
    const auto sent = std::make_shared<bool>(false);
    const auto more = [stream, sent, chunks](std::size_t, httplib::DataSink& sink) {
      std::string out;
      const bool complete = stream->next(out, kDisconnectPoll);
      // A client that has closed its sending side may still read, or be gone: writing tells.
      if (out.empty() && HttpServer::client_is_half_closed()) out = stream->format().nothing();
      if (out.empty() ? !sink.is_writable() : !sink.write(out.data(), out.size())) {
        stream->cancel();
        return false;
      }
      *sent = complete;
      if (complete) sink.done();
      return chunks || !complete;
    };
    response.user_data.set("streams", true);  // logged at its end
    const auto end = [this, stream, sent, &from](bool whole) {
      stream->cancel();
      --streams;
      log(from, stream->use(), whole || *sent ? stream->status() : kClientGone);
    };
    const char* const type = stream->format().stream_type();
    if (chunks) return response.set_chunked_content_provider(type, more, end);
    response.set_header("Connection", "close");
    response.set_content_provider(type, more, end);
  }

  void complete(const Request& from, Body body, Route route, Response& response) {
    CompletionRequest request;
    std::vector<PendingAnswer> pending;
    {
      const Body held = std::move(body);  // its share of memory, up to here
      request = parse_request(held.text, route, service.limits);
      if (request.load_only) {
        check_model(service, request.model);
        reply(response, make_format({service, request, number()})->whole({}));
        return;
      }
      if (!request.has_seed) request.sampling.seed = std::uint32_t(number());
      pending = submit(service, scheduler, prepare_jobs(service, request, disconnect_check(from)),
                       request.answers, number());
      request.prompts.clear();
      request.conversation = {};
    }
    if (request.stream) return answer_in_chunks(from, request, std::move(pending), response);
    const auto answers =
        take_whole(service, std::move(pending), disconnect_check(from), &use_of(response));
    reply(response, make_format({service, request, number()})->whole(answers));
  }

  // A route that gets the body of its request. shown: the path in the list of routes.
  void post(const char* path, const std::function<void(const Request&, Body, Response&)>& handler,
            const char* shown = nullptr) {
    routes.push_back(cat("POST ", shown != nullptr ? shown : path));
    http.Post(path, [this, handler](const Request& request, Response& response,
                                    const httplib::ContentReader& reader) {
      guarded(request, response, [&] {
        Body body = read_body(request, response, reader, bodies, service.limits.bytes);
        HttpServer::request_is_complete();
        handler(request, std::move(body), response);
      });
    });
  }

  void get(const char* path, const std::function<void(Response&)>& handler) {
    routes.push_back(cat("GET ", path));
    http.Get(path, [handler](const Request& request, Response& response) {
      HttpServer::request_is_complete();
      guarded(request, response, [&] { handler(response); });
    });
  }

  void add_page() {
    const auto text = [this](const char* path, const std::string& content, const char* type) {
      get(path, [content, type](Response& response) {
        response.set_header("Content-Security-Policy", kPolicy);
        response.set_header("X-Content-Type-Options", "nosniff");
        response.set_header("Referrer-Policy", "no-referrer");
        response.set_content(content, type);
      });
    };
    text("/", serve_page(service), "text/html; charset=utf-8");
    text("/page.css", serve_style(), "text/css; charset=utf-8");
    text("/page.js", serve_script(), "text/javascript; charset=utf-8");
  }

  void add_routes() {
    using From = const Request&;
    add_page();
    for (const char* path : {"/health", "/v1/health"}) {
      get(path, [](Response& r) { reply(r, {{"status", "ok"}}); });
    }
    for (const char* path : {"/models", "/v1/models"}) {
      get(path, [this](Response& r) { reply(r, models_reply(service)); });
    }
    get("/props", [this](Response& r) { reply(r, props_reply(service)); });
    get("/slots", [this](Response& r) { reply(r, slots_reply(service, scheduler.slots())); });
    get("/api/tags", [this](Response& r) { reply(r, ollama_tags_reply(service)); });
    get("/api/ps", [this](Response& r) { reply(r, ollama_ps_reply(service)); });
    get("/api/version", [](Response& r) { reply(r, {{"version", version()}}); });
    get("/metrics", [this](Response& r) {
      const SchedulerCounts counts = scheduler.counts();
      const double uptime = std::chrono::duration<double>(Clock::now() - started).count();
      const std::lock_guard lock(mutex);
      r.set_content(metrics_text(counts, responses, uptime),
                    "text/plain; version=0.0.4; charset=utf-8");
    });
    constexpr std::pair<const char*, Route> kAnswers[] = {
        {"/v1/completions", Route::completion},    {"/v1/chat/completions", Route::chat},
        {"/chat/completions", Route::chat},        {"/v1/responses", Route::responses},
        {"/responses", Route::responses},          {"/completion", Route::llama_completion},
        {"/completions", Route::llama_completion}, {"/api/chat", Route::ollama_chat},
        {"/api/generate", Route::ollama_generate}, {"/v1/messages", Route::messages}};
    for (const auto& [path, route] : kAnswers) {
      post(path, [this, way = route](From from, Body body, Response& r) {
        complete(from, std::move(body), way, r);
      });
    }
    constexpr std::pair<const char*, Route> kEmbeddings[] = {
        {"/v1/embeddings", Route::embeddings},
        {"/api/embed", Route::ollama_embed},
        {"/api/embeddings", Route::ollama_embeddings}};
    for (const auto& [path, route] : kEmbeddings) {
      post(path, [this, way = route](From from, const Body& body, Response& r) {
        reply(r, embeddings_reply(service, scheduler, way, body.text, disconnect_check(from),
                                  use_of(r)));
      });
    }
    post("/apply-template", [this](From from, const Body& body, Response& r) {
      reply(r, apply_template_reply(service, body.text, disconnect_check(from)));
    });
    post("/v1/messages/count_tokens", [this](From from, const Body& body, Response& r) {
      reply(r, count_tokens_reply(service, body.text, disconnect_check(from)));
    });
    post("/tokenize", [this](From from, const Body& body, Response& r) {
      reply(r, tokenize_reply(service, body.text, disconnect_check(from)));
    });
    post("/detokenize", [this](From, const Body& body, Response& r) {
      reply(r, detokenize_reply(service, body.text));
    });
    post("/api/show", [this](From, const Body& body, Response& r) {
      reply(r, ollama_show_reply(service, body.text));
    });
    post(R"(/slots/([^/]*))",
         [this](From from, const Body& body, Response& r) {
           reply(r, slot_action_reply(service, scheduler, from.matches[1],
                                      from.get_param_value("action"), body.text,
                                      disconnect_check(from)));
         },
         "/slots/{id}");
  }

  void configure() {
    http.set_payload_max_length(service.limits.bytes);
    http.set_tcp_nodelay(true);
    http.set_pre_routing_handler([this](const Request& request, Response& response) {
      allow_origin(access, request, response);
      if (const auto error = denied(access, request)) {
        refuse(request, response, *error);
      } else if (is_preflight(access, request)) {
        response.status = 204;
      } else {
        return httplib::Server::HandlerResponse::Unhandled;
      }
      return httplib::Server::HandlerResponse::Handled;
    });
    // What httplib refuses by itself arrives here without a body.
    http.set_error_handler([this](const Request& request, Response& response) {
      if (!response.body.empty()) return;
      std::string why = "the request could not be read";
      if (response.status == 404) {
        const std::string asked = cat(request.method, " ", request.path).substr(0, kShownRoute);
        why = cat("there is no ", asked, "; the nearest are ", nearest(asked, routes));
      }
      if (response.status == 414) why = "the address is too long";
      refuse(request, response, ApiError(response.status, why));
    });
    http.set_logger([this](const Request& request, const Response& response) {
      {
        const std::lock_guard lock(mutex);
        ++responses[response.status];
      }
      if (response.user_data.has("streams")) return;
      const auto* const use = response.user_data.get<Progress>("use");
      log(request, use != nullptr ? *use : Progress(), response.status);
    });
  }
};

}  // namespace

Listener listen_on(const ServerSettings& s) {
  Listener listener{
      std::make_shared<HttpServer>(std::size_t(s.slots + s.queue + kSpareConnections))};
  HttpServer& http = *listener.http;
  // A port that another server uses is not shared with it.
  http.set_socket_options(
      [](socket_t socket) { httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1); });
  if (s.port == 0) {
    listener.port = http.bind_to_any_port(s.host);
  } else if (http.bind_to_port(s.host, s.port)) {
    listener.port = s.port;
  }
  listener.loopback = is_loopback_host(http.bound_address());
  if (listener.port > 0) return listener;
  fail(cat("cannot listen on ", s.host, " port ", s.port),
       "the port may be in use: give another --port (0 for any free one) or --host");
}

void run_server(const Service& service, const Listener& bound,
                const std::function<bool()>& enough) {
  ApiServer s(service, bound);
  install_memory_reserve();
  std::thread listener([&] { s.http.listen_after_bind(); });
  std::thread watch([&] {
    while (!enough()) std::this_thread::sleep_for(kIdlePoll);
    s.scheduler.refuse_new();
    s.http.begin_shutdown();
    while (!s.scheduler.idle()) std::this_thread::sleep_for(kIdlePoll);
    // All answers are computed. Stopping the listener breaks off streams, so clients get some time
    // to read the rest, but cannot hold the server up.
    const auto until = Clock::now() + kDrainTimeout;
    while (s.streams > 0 && Clock::now() < until) std::this_thread::sleep_for(kIdlePoll);
    s.http.stop();
    s.http.close_connections(until);
    s.scheduler.stop();
  });
  s.scheduler.work();
  watch.join();
  listener.join();
}

}  // namespace mrrope::serve
