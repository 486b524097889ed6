// SPDX-License-Identifier: Apache-2.0
// The whole server on a loopback port, over a model without weights.
#include "serve/server.h"

#include <future>

#include "support/processes.h"
#include "support/raw_client.h"
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

// A message that takes forever.
constexpr const char* kForever =
    "{% for m in messages %}{{ m['content'] }}{% if 'forever' in m['content'] %}"
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{% endif %}"
    "{% endfor %}";

// Over a model that writes until its context is full.
struct Running {
  explicit Running(const std::string& key = {}, const std::string& cors = {}, bool chats = false)
      : model({}, chats ? kForever : ""),
        ladder(make_ladder(make_plan(model.facts().geometry, Extension{}), 4000)) {
    model.endless = true;
    model.use(ladder);
    ServerSettings s = scripted_settings();
    s.port = 0;
    s.queue = 20;
    s.context = 4000;
    s.key = key;
    s.cors = cors;
    s.on_request = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    listener = listen_on(s);
    service.emplace(make_service(model, ladder, renderer, s));
    done = std::async(std::launch::async,
                      [this] { run_server(*service, listener, [this] { return stop.load(); }); });
  }
  ~Running() {
    model.held = false;
    stop = true;
  }
  std::string ask(const std::string& request) {
    RawClient client(listener.port);
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
  PacedModel model;
  Ladder ladder;
  engine::ChatRenderer renderer;
  Listener listener;
  std::optional<Service> service;
  std::atomic<bool> stop = false;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::future<void> done;  // last: waits for the server to end
};

// "SERVER METHOD PATH [HEADER; HEADER] [BODY]" as a request of its own.
std::string reply(std::map<std::string, std::unique_ptr<Running>>& servers,
                  const std::string& input) {
  std::istringstream words(input);
  std::string server, method, path, rest;
  std::getline(words >> server >> method >> path >> std::ws, rest);
  const std::size_t at = std::min(rest.find('{'), rest.size());
  const std::string body = rest.substr(at);
  std::string headers = std::regex_replace(rest.substr(0, at), std::regex("; *"), "\r\n");
  if (!body.empty()) headers += cat("Content-Length: ", body.size(), "\r\n");
  if (headers.find("Host:") == std::string::npos) headers += "Host: localhost\r\n";
  std::string said = servers.at(server)->ask(
      cat(method, " ", path, " HTTP/1.1\r\n", headers, "Connection: close\r\n\r\n", body));
  // A slow machine says in between that it is still there.
  for (const char* waiting : {"HTTP/1.1 100 Continue\r\n\r\n", ": waiting\n\n"}) {
    said = std::regex_replace(said, std::regex(waiting), "");
  }
  // The status, headers for pages of others, and the content: of a page its beginning, of a
  // stream how it ends.
  const std::size_t content = std::min(said.find("\r\n\r\n"), said.size());
  std::string out = said.substr(9, said.find("\r\n") - 9);
  static const std::regex shown(R"((Content-Type|Access-Control-Allow-[A-Za-z]+): ([^\r]*))");
  for (std::sregex_iterator it(said.begin(), said.begin() + std::ptrdiff_t(content), shown), end;
       it != end; ++it) {
    out += "\n" + it->str();
  }
  std::string text = said.substr(std::min(content + 4, said.size()));
  if (text.size() > 3000) text = text.substr(0, 15) + "...";
  text = std::regex_replace(text, std::regex(R"("id":"[a-z]+[-_][^"]*")"), R"("id":"ID")");
  text = std::regex_replace(timeless(text), std::regex("(^|\r\n)[0-9a-f]+\r\n"),
                            "");  // sizes of chunks
  return out + "\n" + text.substr(0, text.find_last_not_of("\r\n ") + 1);
}

TEST(Server, AnswersOrRefusesEveryRoute) {
  std::map<std::string, std::unique_ptr<Running>> servers;
  servers["plain"] = std::make_unique<Running>();
  servers["keyed"] = std::make_unique<Running>("sesame", "http://app.example");
  servers["chats"] = std::make_unique<Running>("sesame", "", true);
  test::expect_transcript("routes", [&](const std::string& in) { return reply(servers, in); });
}

TEST(Server, RefusesBodiesThatAreNotWhatTheirHeadSays) {
  Running s("sesame");
  const auto error = [&](const std::string& head, const char* status) {
    const std::string said = s.ask(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        "Authorization: Bearer sesame\r\n" +
        head);
    EXPECT_TRUE(contains(said, std::string("HTTP/1.1 ") + status)) << said;
    EXPECT_TRUE(contains(said, "{\"error\":{\"message\":")) << said;
    EXPECT_TRUE(contains(said, "Connection: close")) << said;
  };
  error("Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 3\r\n\r\nabc", "415");
  error("Content-Length: 99999999\r\n\r\nabc", "413");
  error("Content-Length: 100\r\n\r\nabc", "400");
  error("Content-Length: 3\r\n\r\n[],", "400");
  EXPECT_FALSE(contains(s.ask(get_request("/" + std::string(3000, 'x'))), std::string(300, 'x')));
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
      clients.push_back(std::make_unique<RawClient>(s.listener.port));
      clients.back()->send(chat_request("forever"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const auto began = std::chrono::steady_clock::now();
  const std::string said = s.ask(chat_request("hello"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_TRUE(contains(said, "200 OK") && contains(said, "\"completion_tokens\":3")) << said;
}

TEST(Server, ChatsGoOnWhenTheirProcessIsKilled) {
  const auto before = test::children_of(getpid());
  Running s({}, {}, true);
  const auto keeper = test::new_children(before);
  ASSERT_EQ(keeper.size(), 1U);
  ::kill(keeper.begin()->first, SIGKILL);
  const std::string said = s.ask(chat_request("hello"));
  EXPECT_TRUE(contains(said, "200 OK")) << said;
  for (const auto& child : test::new_children(before)) EXPECT_NE(child.second, 'Z');
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
  const auto at = [&](const std::string& text) { return contains(all, text); };
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
    RawClient client(s.listener.port);
    client.send(post_request("/v1/completions",
                             R"({"prompt": "abc", "max_tokens": 3000, "stream": true})"));
    client.read_until("data: ");
  }
  while (s.lines().empty()) std::this_thread::yield();
  EXPECT_TRUE(contains(s.lines().front(), " POST /v1/completions: 499, ")) << s.lines().front();
  EXPECT_TRUE(contains(s.lines().front(), " 4 tokens in, 0 cached, ")) << s.lines().front();
}

TEST(Server, ShowsASlotAtWork) {
  Running s;
  s.model.slow = true;
  RawClient client(s.listener.port);
  client.send(
      post_request("/v1/completions", R"({"prompt": "abc", "max_tokens": 3000, "stream": true})"));
  std::string slots;
  while (!contains(slots, "\"has_next_token\":true")) slots = s.ask(get_request("/slots"));
  EXPECT_TRUE(contains(slots, "\"is_processing\":true")) << slots;
  EXPECT_TRUE(contains(slots, "\"prefill\":{\"read\":4,\"total\":4")) << slots;
  client.close();
  while (contains(slots, "\"is_processing\":true")) slots = s.ask(get_request("/slots"));
}

TEST(Server, HalfClosedClientGetsItsAnswerAndDisconnectedOneDoesNot) {
  Running s;
  for (const char* stream : {"false", "true"}) {
    const std::string body =
        std::string(R"({"prompt": "abc", "max_tokens": 5, "stream": )") + stream + "}";
    s.model.held = true;
    RawClient client(s.listener.port);
    client.send(post_request("/v1/completions", body));
    client.close_sending();
    // The server has noticed: it checks whether the client still reads.
    client.read_until(std::string(stream) == "true" ? ": waiting" : "100 Continue");
    s.model.held = false;
    EXPECT_TRUE(contains(client.read_until(), "\"finish_reason\":\"length\"")) << stream;

    // A disconnected client is not answered; an answer of this length takes seconds.
    const double before = s.metric("answers_total{end=\"cancelled\"}");
    s.model.slow = true;
    RawClient gone(s.listener.port);
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
  RawClient client(s.listener.port);
  client.send(post_request("/api/generate", R"({"prompt": "abc", "options": {"num_predict": 3}})"));
  client.read_until("\r\n\r\n");
  client.close();
  while (s.metric("slots_busy") == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::seconds(1));  // the server looks several times
  s.model.held = false;
  while (s.metric("slots_busy") > 0) std::this_thread::yield();
  EXPECT_EQ(s.metric("answers_total{end=\"cancelled\"}"), 1);
}

// A client that reads nothing must not delay a server that is shutting down.
TEST(Server, StopsEvenIfAClientReadsNothing) {
  Running s;
  RawClient client(s.listener.port, 4096);
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
