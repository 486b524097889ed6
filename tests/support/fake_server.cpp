// SPDX-License-Identifier: Apache-2.0
#include "support/fake_server.h"

#include <cpp-httplib/httplib.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace mrrope::test {

using nlohmann::json;

namespace {

constexpr int kFirstByte = 3;  // token of byte 0; 1 is BOS

void say(httplib::Response& response, const json& body) {
  response.set_content(body.dump(-1, ' ', false, json::error_handler_t::replace),
                       "application/json");
}

std::size_t hash(const std::string& text) {
  std::size_t h = 1469598103934665603u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h >> 20;
}

// The last run of five digits or more, and how long the prompt is.
std::string answer_to(const std::string& prompt) {
  std::string best = "none";
  std::string run;
  for (const char c : prompt + " ") {
    if (c >= '0' && c <= '9') {
      run += c;
      continue;
    }
    if (run.size() >= 5) best = run;
    run.clear();
  }
  return " " + best + ", said after " + std::to_string(prompt.size()) + " bytes.";
}

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

FakeServer::FakeServer(const FakeServerOptions& given)
    : options(given), server_(std::make_unique<httplib::Server>()) {
  server_->new_task_queue = [] { return new httplib::ThreadPool(64); };
  server_->set_pre_routing_handler([this](const httplib::Request& q, httplib::Response& r) {
    if (options.key.empty() || q.get_header_value("Authorization") == "Bearer " + options.key) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    r.status = 401;
    // As some servers do: the error message contains the key.
    say(r, {{"error", {{"message", "wrong key: " + q.get_header_value("Authorization")}}}});
    return httplib::Server::HandlerResponse::Handled;
  });
  server_->Get("/v1/models", [this](const httplib::Request&, httplib::Response& r) {
    json list = json::array();
    for (int i = 0; i < options.models; ++i) {
      list.push_back({{"id", i == 0 ? "fake" : "fake" + std::to_string(i)},
                      {"owned_by", "llamacpp"},
                      {"meta", {{"n_ctx_train", 4096}}}});
    }
    say(r, {{"data", list}});
  });
  server_->Get("/props", [this](const httplib::Request&, httplib::Response& r) {
    say(r, {{"default_generation_settings", {{"n_ctx", options.context}}}});
  });
  if (options.tokenizer) {
    server_->Post("/tokenize", [](const httplib::Request& q, httplib::Response& r) {
      const json body = json::parse(q.body);
      json tokens = json::array();
      if (body.value("add_special", false)) tokens.push_back(1);
      for (const char c : body.at("content").get<std::string>()) {
        tokens.push_back(int(static_cast<unsigned char>(c)) + kFirstByte);
      }
      say(r, {{"tokens", tokens}});
    });
    server_->Post("/detokenize", [](const httplib::Request& q, httplib::Response& r) {
      std::string text;
      const json body = json::parse(q.body);
      for (const json& t : body.at("tokens")) text += char(t.get<int>() - kFirstByte);
      say(r, {{"content", text}});
    });
  }
  server_->Post("/v1/completions",
                [this](const httplib::Request& q, httplib::Response& r) { complete(q, r, false); });
  server_->Post("/v1/chat/completions",
                [this](const httplib::Request& q, httplib::Response& r) { complete(q, r, true); });
  port_ = server_->bind_to_any_port("127.0.0.1");
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  server_->wait_until_ready();
}

FakeServer::~FakeServer() {
  server_->stop();
  thread_.join();
}

std::string FakeServer::url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

void FakeServer::wait_until_idle() const {
  while (under_way_ > 0) wait(0.002);
}

std::set<std::string> FakeServer::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

std::string FakeServer::last_body() const {
  const std::lock_guard lock(mutex_);
  return last_body_;
}

bool FakeServer::misbehave(const std::string& prompt, httplib::Response& response) {
  int attempt = 0;
  {
    const std::lock_guard lock(mutex_);
    attempt = tries_[prompt]++;
  }
  if (attempt > 0) return false;
  const std::size_t kind = hash(prompt) % 7;
  const char* names[] = {"429", "500", "cut", "half", "shape", "stall", "huge"};
  {
    const std::lock_guard lock(mutex_);
    faults_.insert(names[kind]);
  }
  switch (kind) {
    case 0:
      response.status = 429;
      response.set_header("Retry-After", "1");
      return true;
    case 1:
      response.status = 500;
      response.set_content("<html>oops \x1b[31m</html>", "text/html");
      return true;
    case 2:  // the connection ends in the middle
      response.set_content_provider(1000, "application/json",
                                    [](std::size_t offset, std::size_t, httplib::DataSink& sink) {
                                      if (offset > 0) return false;
                                      sink.write("{\"choices\": [", 13);
                                      return true;
                                    });
      return true;
    case 3:
      response.set_content("{\"choices\": [{\"text\": \"12345", "application/json");
      return true;
    case 4:
      response.set_content("{\"choices\": {\"text\": 5}}", "application/json");
      return true;
    case 5:
      wait(options.stall);
      return false;
    default:
      response.set_content("{\"choices\": [{\"text\": \"" + std::string(9 << 20, 'x') + "\"}]}",
                           "application/json");
      return true;
  }
}

void FakeServer::complete(const httplib::Request& request, httplib::Response& response, bool chat) {
  const int now = ++under_way_;
  int most = most_;
  while (now > most && !most_.compare_exchange_weak(most, now)) {
  }
  const json body = json::parse(request.body);
  std::string prompt;
  std::size_t tokens = 0;
  if (chat) {
    prompt = body.at("messages").at(0).at("content").get<std::string>();
    tokens = prompt.size() + 11;  // the template
  } else {
    for (const json& t : body.at("prompt")) {
      const int id = t.get<int>();
      if (id != 1) prompt += char(id - kFirstByte);
      ++tokens;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    last_body_ = request.body;
  }
  const auto start = std::chrono::steady_clock::now();
  while (most_ < options.gate &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
    wait(0.002);
  }
  wait(options.seconds);
  if (options.refuses_one && hash(prompt) % 4 == 0) {
    response.status = 400;
    say(response, {{"error", {{"message", "this prompt is not liked"}}}});
  } else if (!options.faulty || !misbehave(prompt, response)) {
    json choice = {{"index", 0}, {"finish_reason", "stop"}};
    if (chat) {
      choice["message"] = {{"role", "assistant"}, {"content", answer_to(prompt)}};
    } else {
      choice["text"] = answer_to(prompt);
    }
    say(response,
        {{"choices", json::array({choice})},
         {"usage", {{"prompt_tokens", options.lies ? 7 : tokens}, {"completion_tokens", 5}}}});
    ++answered_;
  }
  --under_way_;
}

}  // namespace mrrope::test
