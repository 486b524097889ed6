// SPDX-License-Identifier: Apache-2.0
// The whole server on a loopback port, over a model without weights.
#include "serve/server.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "support/processes.h"
#include "support/raw_client.h"
#include "support/scripted.h"

namespace mrrope::serve {
namespace {

using test::get_request;
using test::post_request;
using test::RawClient;

// Writes until its context is full; waits while `held`, and takes its time if `slow`.
class EndlessModel : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  bool ends_text(Token) const override { return false; }
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    while (held) std::this_thread::yield();
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ScriptedModel::read_together(readings, observer);
  }
  // With a message that takes forever.
  std::optional<ChatTemplate> chat_template() const override {
    if (!chats) return std::nullopt;
    return ChatTemplate{
        "{% for m in messages %}{{ m['content'] }}{% if 'forever' in m['content'] %}"
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{% endif %}"
        "{% endfor %}",
        "", "", false};
  }
  std::atomic<bool> held = false;
  std::atomic<bool> slow = false;
  bool chats = false;
};

struct Running {
  explicit Running(const std::string& key = {}, const std::string& cors = {}, bool chats = false)
      : model(ScriptedOptions{}),
        ladder(make_ladder(make_plan(model.facts().geometry, Extension{}), 4000)) {
    model.chats = chats;
    model.use(ladder);
    ServerSettings s;
    s.port = 0;
    s.slots = 2;
    s.queue = 20;
    s.context = 4000;
    s.key = key;
    s.cors = cors;
    s.model_name = "scripted";
    s.on_request = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    server = std::make_unique<ApiServer>(model, ladder, renderer, s, listen_on(s));
    done = std::async(std::launch::async, [this] { server->run([this] { return stop.load(); }); });
  }
  ~Running() {
    model.held = false;
    stop = true;
  }
  std::string ask(const std::string& request) {
    RawClient client(server->listener().port);
    client.send(request);
    client.close_sending();
    return client.read_until();
  }
  std::vector<std::string> lines() {  // of the log
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  double metric(const std::string& name) {
    const std::string text = ask(get_request("/metrics", "Connection: close\r\n"));
    const std::size_t at = text.find("\nmrrope_" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 9));
  }
  EndlessModel model;
  Ladder ladder;
  engine::ChatRenderer renderer;
  std::unique_ptr<ApiServer> server;
  std::atomic<bool> stop = false;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::future<void> done;  // last: waits for the server to end
};

bool has(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

TEST(Server, AnswersRequests) {
  Running s;
  EXPECT_TRUE(s.server->listener().loopback);
  EXPECT_TRUE(has(s.ask(get_request("/health")), "{\"status\":\"ok\"}"));
  EXPECT_TRUE(has(s.ask(get_request("/")), "<!doctype html>"));
  const std::string whole =
      s.ask(post_request("/v1/completions", R"({"prompt": "abc", "max_tokens": 5})"));
  EXPECT_TRUE(has(whole, "200 OK") && has(whole, "\"completion_tokens\":5")) << whole;
  const std::string stream = s.ask(
      post_request("/v1/completions", R"({"prompt": "abc", "max_tokens": 5, "stream": true})"));
  EXPECT_TRUE(has(stream, "data: [DONE]")) << stream;
  EXPECT_TRUE(has(s.ask(post_request("/tokenize", R"({"content": "a"})")), "{\"tokens\":[97]}"));
}

TEST(Server, RefusesBadRequests) {
  Running s("sesame");
  const auto error = [&](const std::string& request, const char* status) {
    const std::string said = s.ask(request);
    EXPECT_TRUE(has(said, std::string("HTTP/1.1 ") + status)) << said;
    EXPECT_TRUE(has(said, "{\"error\":{\"message\":")) << said;
    EXPECT_TRUE(has(said, "Connection: close")) << said;
  };
  const std::string key = "Authorization: Bearer sesame\r\n";
  error(get_request("/props"), "401");
  error(get_request("/health", "Host: evil.example\r\n"), "400");
  error("GET /health HTTP/1.1\r\nHost: 127.evil.example\r\n\r\n", "403");
  error(get_request("/nothing", key), "404");
  error("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + key +
            "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 3\r\n\r\nabc",
        "415");
  error("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + key +
            "Content-Length: 99999999\r\n\r\nabc",
        "413");
  error("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + key +
            "Content-Length: 100\r\n\r\nabc",
        "400");
  error(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + key + "Content-Length: 3\r\n\r\n[],",
      "400");
}

std::string chat_request(const std::string& content) {
  return post_request(
      "/v1/chat/completions",
      R"({"max_tokens": 3, "messages": [{"role": "user", "content": ")" + content + "\"}]}");
}

// 40 clients send what takes its whole 2 s, and hang up after half a second.
TEST(Server, AChatDoesNotWaitForThoseThatHaveGone) {
  Running s({}, {}, true);
  {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 40; ++i) {
      clients.push_back(std::make_unique<RawClient>(s.server->listener().port));
      clients.back()->send(chat_request("forever"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const auto began = std::chrono::steady_clock::now();
  const std::string said = s.ask(chat_request("hello"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_TRUE(has(said, "200 OK") && has(said, "\"completion_tokens\":3")) << said;
}

TEST(Server, ChatsGoOnWhenTheirProcessIsKilled) {
  const auto before = test::children_of(getpid());
  Running s({}, {}, true);
  const auto keeper = test::new_children(before);
  ASSERT_EQ(keeper.size(), 1U);
  ::kill(keeper.begin()->first, SIGKILL);
  const std::string said = s.ask(chat_request("hello"));
  EXPECT_TRUE(has(said, "200 OK")) << said;
  for (const auto& child : test::new_children(before)) EXPECT_NE(child.second, 'Z');
}

TEST(Server, SlotActionsNeedAFolder) {
  Running s;
  const std::string said = s.ask(post_request("/slots/0?action=save", R"({"filename": "a"})"));
  EXPECT_TRUE(has(said, "501") && has(said, "--slot-save-path")) << said;
  EXPECT_TRUE(has(s.ask(post_request("/slots/0/more?action=save", "{}")), "404"));
}

TEST(Server, HasTheRoutesOfLlamaServerAndOllama) {
  Running s;
  const std::string native =
      s.ask(post_request("/completion", R"({"prompt": "abc", "n_predict": 5})"));
  EXPECT_TRUE(has(native, "\"stop_type\":\"limit\"")) << native;
  const std::string lines = s.ask(post_request(
      "/api/generate", R"({"model": "scripted", "prompt": "abc", "options": {"num_predict": 3}})"));
  EXPECT_TRUE(has(lines, "application/x-ndjson") && has(lines, "\"done\":true")) << lines;
  EXPECT_TRUE(has(s.ask(get_request("/api/tags")), "\"models\":[{\"name\":\"scripted\""));
  EXPECT_TRUE(has(s.ask(get_request("/api/version")), "\"version\""));
  const std::string slots = s.ask(get_request("/slots"));
  EXPECT_TRUE(has(slots, "\"id\":1") && has(slots, "\"n_remain\":-1,\"n_decoded\":0")) << slots;
  EXPECT_TRUE(has(slots, "\"is_processing\":false")) << slots;
  // No template: chats and the prompt of one are refused with the reason, ollama's with its shape.
  const std::string chat = R"({"messages": [{"role": "user", "content": "x"}]})";
  EXPECT_TRUE(has(s.ask(post_request("/apply-template", chat)), "no chat template"));
  EXPECT_TRUE(has(s.ask(post_request("/api/chat", chat)), "{\"error\":\"scripted has no chat"));
  EXPECT_TRUE(has(s.ask(post_request("/api/show", R"({"model": "x"})")), "404 Not Found"));
  const std::string loaded = s.ask(post_request("/api/generate", R"({"model": "scripted"})"));
  EXPECT_TRUE(has(loaded, "200 OK") && has(loaded, "\"done_reason\":\"load\"")) << loaded;
  EXPECT_TRUE(has(s.ask(post_request("/api/generate", R"({"model": "x"})")), "404 Not Found"));
  const std::string ps = s.ask(get_request("/api/ps"));
  EXPECT_TRUE(has(ps, "\"context_length\":4000") && has(ps, "\"expires_at\":\"2286")) << ps;
  EXPECT_TRUE(has(ps, "\"digest\":\"e3b0c442")) << ps;  // of no files
  EXPECT_TRUE(has(s.ask(post_request("/api/embed", R"({"input": "a"})")),
                  "{\"error\":\"this model has no embeddings\"}"));
}

TEST(Server, NamesTheNearestRoutes) {
  Running s;
  const std::string typo = s.ask(post_request("/v1/chat/completion", "{}"));
  EXPECT_TRUE(has(typo, "404 Not Found") && has(typo,
                                                "no POST /v1/chat/completion; the nearest "
                                                "are POST /v1/chat/completions, POST "))
      << typo;
  const std::string method = s.ask(get_request("/v1/embeddings"));
  EXPECT_TRUE(has(method, "the nearest are POST /v1/embeddings, ")) << method;
  EXPECT_FALSE(has(s.ask(get_request("/" + std::string(3000, 'x'))), std::string(300, 'x')));
}

TEST(Server, LogsEveryRequestWithoutItsContent) {
  Running s("sesame");
  const std::string key = "Authorization: Bearer sesame\r\nConnection: close\r\n";
  const auto post = [&](const std::string& path, const std::string& body) {
    return s.ask("POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + key +
                 "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  s.ask(get_request("/health", key));
  post("/v1/completions", R"({"prompt": "secret", "max_tokens": 5})");
  post("/v1/completions", R"({"prompt": "secret", "max_tokens": 6, "stream": true})");
  post("/v1/completions", R"({"prompt": "secret", "secret": 1, "temperature": "secret"})");
  post("/v1/secret", "{}");
  s.ask(post_request("/v1/completions", "{}"));  // without the key
  post("/slots/secret?action=save", "{}");
  while (s.lines().size() < 7) std::this_thread::yield();
  std::string all;
  for (const std::string& line : s.lines()) all += line.substr(20) + "\n";
  const auto at = [&](const std::string& text) { return has(all, text); };
  EXPECT_TRUE(at(" GET /health: 200, ")) << all;
  EXPECT_TRUE(at(" ms, 7 tokens in, 0 cached, 5 out, rung 1\n")) << all;
  EXPECT_TRUE(at(" ms, 7 tokens in, 6 cached, 6 out, rung 1\n")) << all;
  EXPECT_TRUE(at(" POST /v1/completions: 400, ")) << all;
  EXPECT_TRUE(at(" - (no route): 404, ")) << all;
  EXPECT_TRUE(at(" POST /v1/completions: 401, ")) << all;
  EXPECT_TRUE(at(" POST /slots/{id}: 501, ")) << all;
  EXPECT_FALSE(at("secret") || at("sesame")) << all;
}

TEST(Server, LogsAStreamWhoseClientIsGone) {
  Running s;
  s.model.slow = true;
  {
    RawClient client(s.server->listener().port);
    client.send(post_request("/v1/completions",
                             R"({"prompt": "abc", "max_tokens": 3000, "stream": true})"));
    client.read_until("data: ");
  }
  while (s.lines().empty()) std::this_thread::yield();
  EXPECT_TRUE(has(s.lines().front(), " POST /v1/completions: 499, ")) << s.lines().front();
  EXPECT_TRUE(has(s.lines().front(), " 4 tokens in, 0 cached, ")) << s.lines().front();
}

TEST(Server, HasAnthropicsMessages) {
  Running s("sesame", {}, true);
  const std::string key = "X-Api-Key: sesame\r\n";
  const auto ask = [&](const std::string& path, const std::string& body) {
    return s.ask(post_request(path, body, key));
  };
  const std::string turn = R"("messages": [{"role": "user", "content": "abc"}])";
  const std::string whole = ask("/v1/messages?beta=true", R"({"max_tokens": 5, )" + turn + "}");
  EXPECT_TRUE(has(whole, "200 OK") && has(whole, "\"stop_reason\":\"max_tokens\"")) << whole;
  EXPECT_TRUE(has(ask("/v1/messages/count_tokens", "{" + turn + "}"), "{\"input_tokens\":4}"));
  const std::string shape = R"({"type":"error","error":{"type":")";
  const std::string missing = ask("/v1/messages", "{" + turn + "}");
  EXPECT_TRUE(has(missing, "400 Bad Request")) << missing;
  EXPECT_TRUE(has(missing, shape + "invalid_request_error\",\"message\":\"'max_tokens'"))
      << missing;
  const std::string long_turn = R"("messages": [{"role": "user", "content": ")";
  EXPECT_TRUE(has(
      ask("/v1/messages", R"({"max_tokens": 5, )" + long_turn + std::string(4000, 'x') + R"("}]})"),
      "prompt is too long: 4001 tokens > 3999 maximum"));
  const std::string stranger = s.ask(post_request("/v1/messages", "{}"));
  EXPECT_TRUE(has(stranger, "401") && has(stranger, shape + "authentication_error")) << stranger;
  EXPECT_TRUE(has(ask("/v1/messages/batches", "{}"), shape + "not_found_error"));
}

TEST(Server, ShowsASlotAtWork) {
  Running s;
  s.model.slow = true;
  RawClient client(s.server->listener().port);
  client.send(
      post_request("/v1/completions", R"({"prompt": "abc", "max_tokens": 3000, "stream": true})"));
  std::string slots;
  while (!has(slots, "\"has_next_token\":true")) slots = s.ask(get_request("/slots"));
  EXPECT_TRUE(has(slots, "\"is_processing\":true")) << slots;
  EXPECT_TRUE(has(slots, "\"prefill\":{\"read\":4,\"total\":4")) << slots;
  client.close();
  while (has(slots, "\"is_processing\":true")) slots = s.ask(get_request("/slots"));
}

TEST(Server, PagesOfTheGivenOriginMayUseIt) {
  Running s("sesame", "http://app.example");
  const std::string origin = "Origin: http://app.example\r\n";
  const std::string asked =
      s.ask("OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n" + origin + "\r\n");
  EXPECT_TRUE(has(asked, "204") && has(asked, "Allow-Headers: Authorization")) << asked;
  // Clients send headers of their own.
  const std::string more = "Access-Control-Request-Headers: authorization,x-stainless-lang\r\n";
  EXPECT_TRUE(
      has(s.ask("OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n" + origin + more + "\r\n"),
          "Allow-Headers: authorization,x-stainless-lang"));
  const std::string got =
      s.ask(get_request("/v1/models", origin + "Authorization: Bearer sesame\r\n"));
  EXPECT_TRUE(has(got, "200 OK") && has(got, "Allow-Origin: http://app.example")) << got;
  EXPECT_TRUE(has(s.ask(get_request("/v1/models", origin)), "401"));
  const std::string other = s.ask(get_request("/v1/models", "Origin: http://other.example\r\n"));
  EXPECT_TRUE(has(other, "403") && !has(other, "Allow-Origin")) << other;
  EXPECT_TRUE(has(s.ask("OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                        "Origin: http://other.example\r\n\r\n"),
                  "403"));
}

TEST(Server, HalfClosedClientGetsItsAnswerAndDisconnectedOneDoesNot) {
  Running s;
  for (const char* stream : {"false", "true"}) {
    const std::string body =
        std::string(R"({"prompt": "abc", "max_tokens": 5, "stream": )") + stream + "}";
    s.model.held = true;
    RawClient client(s.server->listener().port);
    client.send(post_request("/v1/completions", body));
    client.close_sending();
    // The server has noticed: it checks whether the client still reads.
    client.read_until(std::string(stream) == "true" ? ": waiting" : "100 Continue");
    s.model.held = false;
    EXPECT_TRUE(has(client.read_until(), "\"finish_reason\":\"length\"")) << stream;

    // A disconnected client is not answered; an answer of this length takes seconds.
    const double before = s.metric("answers_total{end=\"cancelled\"}");
    s.model.slow = true;
    RawClient gone(s.server->listener().port);
    gone.send(post_request("/v1/completions", std::string(R"({"prompt": "abc", "stream": )") +
                                                  stream + R"(, "max_tokens": 3900})"));
    while (s.metric("slots_busy") == 0) std::this_thread::yield();
    gone.close();
    while (s.metric("slots_busy") > 0) std::this_thread::yield();
    EXPECT_EQ(s.metric("answers_total{end=\"cancelled\"}"), before + 1) << stream;
    s.model.slow = false;
  }
}

// Lines of JSON have no comments: a blank tells whether the client still reads.
TEST(Server, NoticesThatAClientOfOllamasRoutesIsGone) {
  Running s;
  s.model.held = true;
  RawClient client(s.server->listener().port);
  client.send(post_request("/api/generate", R"({"prompt": "abc", "options": {"num_predict": 3}})"));
  client.read_until("\r\n\r\n");
  client.close();
  while (s.metric("slots_busy") == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::seconds(1));  // the server looks several times
  s.model.held = false;
  while (s.metric("slots_busy") > 0) std::this_thread::yield();
  EXPECT_EQ(s.metric("answers_total{end=\"cancelled\"}"), 1);
}

TEST(Server, RefusesMoreAnswersThanItCanHold) {
  Running s;
  const std::string said =
      s.ask(post_request("/v1/completions", R"({"prompt": ["a", "b"], "n": 16})"));
  EXPECT_TRUE(has(said, "400 Bad Request") && has(said, "32 answers") && has(said, "--queue"))
      << said;
}

// A client that reads nothing must not delay a server that is shutting down.
TEST(Server, StopsEvenIfAClientReadsNothing) {
  Running s;
  RawClient client(s.server->listener().port, 4096);
  client.send(
      post_request("/v1/completions",
                   R"({"prompt": "abc", "max_tokens": 3900, "logprobs": 20, "stream": true})"));
  while (s.metric("slots_busy") + s.metric("completion_tokens_total") == 0) {
    std::this_thread::yield();
  }
  s.stop = true;
  // Writing to it would be tried for half a minute.
  EXPECT_EQ(s.done.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace mrrope::serve
