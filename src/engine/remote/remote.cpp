// SPDX-License-Identifier: Apache-2.0
#include "engine/remote/remote.h"

#include <cpp-httplib/httplib.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>

#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/llama/local.h"
#include "formats/plan_file.h"

namespace mrrope::engine {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{8} << 20;
constexpr std::size_t kMaxTokensBytes = std::size_t{256} << 20;
constexpr double kMaxPause = 30;
constexpr std::size_t kMaxPieces = 1 << 20;  // cached texts of tokens

constexpr const char* kResume = "rerun the command to resume";

using Clock = std::chrono::steady_clock;
using Poll = std::function<bool(std::string_view)>;  // false: give up

// What became of a request after all tries.
template <typename T>
struct ServerCall {
  T value{};
  std::string failed = {};  // empty: the reply was read
  bool for_all = false;     // every other request would fail in the same way
  std::map<std::string, int> retry_counts = {};

  bool met(std::initializer_list<const char*> failures) const {
    return std::ranges::any_of(
        failures, [&](const char* failure) { return retry_counts.count(failure) > 0; });
  }
  // Throws Error unless the reply was read.
  T& must(const std::string& hint) {
    if (!failed.empty()) throw Error(ErrorKind::failed, failed, hint);
    return value;
  }
};

[[noreturn]] void refuse_endpoint(const std::string& text, const std::string& why) {
  refuse(cat("the endpoint ", shown(text), " ", why), "write it as http://127.0.0.1:8080/v1");
}

const char* failure_name(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::BindIPAddress:
    case httplib::Error::ProxyConnection:
      return "refused";
    case httplib::Error::ConnectionTimeout:
    case httplib::Error::Timeout:
      return "stalled";
    case httplib::Error::ExceedMaxPayloadSize:
      return "too large";
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLLoadingCerts:
    case httplib::Error::SSLServerVerification:
    case httplib::Error::SSLServerHostnameVerification:
      return "certificate";
    default:
      return "cut";
  }
}

// Connections to one server, and the retries. The HTTP library is the one that llama.cpp brings
// along; TLS is the system's OpenSSL.
class Server {
 public:
  explicit Server(const RemoteOptions& options) : options_(options), url_(parse_url(options.url)) {
    const auto odd = [](char c) { return c <= ' ' || c > '~'; };
    refuse_if(std::ranges::any_of(options.key, odd),
              "the API key contains a blank or a control character",
              "set MRROPE_API_KEY to the key alone");
    refuse_if(!url_.path.ends_with("/v1"),
              cat("the endpoint ", shown(options.url), " does not end in /v1"),
              cat("write it as ", scheme(), address(), url_.path, "/v1"));
    root_ = url_.path.substr(0, url_.path.size() - 3);
  }

  // The path comes after what precedes /v1 in the address. An empty body: GET. read: makes a value
  // of the reply, and throws Error (corrupt) if that is not there: then it is tried again.
  template <typename Read>
  auto call(const std::string& path, const std::string& body, std::size_t most, const Read& read,
            const Poll& poll = {}, std::optional<int> given_retries = {}) {
    ServerCall<std::invoke_result_t<Read, const std::string&>> call;
    const int retries = given_retries.value_or(options_.retries);
    const auto give_back = [this](httplib::Client* client) {
      const std::lock_guard lock(mutex_);
      idle_.push_back(client);
    };
    const std::unique_ptr<httplib::Client, decltype(give_back)> client(idle_client(), give_back);
    for (int attempt = 0;; ++attempt) {
      call.failed = "stopped";
      call.for_all = true;
      ++requests_;
      if (stopped_) {  // either this sees that stop() was called, or that sees this request
        --requests_;
        return call;
      }
      client->set_payload_max_length(most);
      const auto start = Clock::now();
      const httplib::Result reply = body.empty()
                                        ? client->Get(root_ + path)
                                        : client->Post(root_ + path, body, "application/json");
      --requests_;
      const std::chrono::duration<double> took = Clock::now() - start;
      const int status = reply ? reply->status : 0;
      std::string failure = reply ? "" : failure_name(reply.error());
      // The library calls a read that timed out a failed read.
      if (failure == "cut" && took.count() >= 0.99 * options_.seconds) failure = "stalled";
      std::string text;
      if (status == 200) {
        try {
          call.value = read(reply->body);
          call.failed.clear();
          return call;
        } catch (const Error& e) {
          failure = "garbage";
          text = e.what();
        }
      } else if (status != 0) {
        failure = cat("status ", status);
        text = without_key(error_text(reply->body));
      }
      if (stopped_) return call;
      ++call.retry_counts[failure];
      const bool may_pass = status == 0 ? failure != "certificate"
                                        : status == 200 || status == 408 || status == 425 ||
                                              status == 429 || status >= 500;
      if (!may_pass || attempt >= retries) {
        call.failed = cat(describe(failure), text.empty() ? "" : ": ", text);
        if (attempt > 0) call.failed += cat(", after ", attempt + 1, " tries");
        call.for_all = failure == "certificate" || status == 401 || status == 403 || status == 404;
        return call;
      }
      const std::string header = reply ? reply->get_header_value("Retry-After") : "";
      if (!pause(attempt, retry_after_seconds(header, std::time(nullptr)), poll)) return call;
    }
  }

  // A request that has begun may not have reached its connection yet, where it can be stopped: that
  // takes microseconds, so it is tried for a while.
  void stop() {
    stopped_ = true;
    for (int i = 0; i < 50; ++i) {
      {
        const std::lock_guard lock(mutex_);
        for (const auto& client : clients_) client->stop();
      }
      if (requests_ == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::string address() const { return cat(url_.host, ":", url_.port); }

 private:
  const char* scheme() const { return url_.tls ? "https://" : "http://"; }

  // A connection, kept alive; for one thread at a time.
  std::unique_ptr<httplib::Client> make_client() const {
    auto client = std::make_unique<httplib::Client>(cat(scheme(), address()));
    const auto wait =
        std::chrono::milliseconds(std::max<std::int64_t>(1, std::int64_t(options_.seconds * 1000)));
    client->set_connection_timeout(
        std::min<std::chrono::milliseconds>(wait, std::chrono::seconds(30)));
    client->set_read_timeout(wait);
    client->set_write_timeout(wait);
    client->set_max_timeout(wait);  // a reply that trickles in forever
    client->set_keep_alive(true);
    client->set_tcp_nodelay(true);
    client->set_follow_location(false);
    if (!options_.key.empty()) client->set_bearer_token_auth(options_.key);
    return client;
  }

  httplib::Client* idle_client() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      clients_.push_back(make_client());
      return clients_.back().get();
    }
    httplib::Client* const client = idle_.back();
    idle_.pop_back();
    return client;
  }

  std::string describe(const std::string& failure) const {
    if (failure == "refused") return cat("cannot connect to ", address());
    if (failure == "stalled")
      return cat("no reply from ", address(), " in ", options_.seconds, " s");
    if (failure == "cut") return cat(address(), " closed the connection");
    if (failure == "too large") return cat("the reply of ", address(), " is too large");
    if (failure == "certificate") return cat("the certificate of ", address(), " is not valid");
    if (failure == "garbage") return cat(address(), " sent an unreadable reply");
    return cat(address(), " answers with ", failure);
  }

  // A server may repeat the key in its error message.
  std::string without_key(const std::string& text) const {
    return options_.key.empty() ? text : replaced(text, options_.key, "...");
  }

  bool pause(int attempt, double asked, const Poll& poll) {
    thread_local std::mt19937 random{std::random_device{}()};
    const double jitter = std::uniform_real_distribution<>(0.75, 1.25)(random);
    const double own = std::min(kMaxPause, options_.first_wait * std::pow(2.0, attempt)) * jitter;
    const auto until = Clock::now() + std::chrono::duration<double>(std::max(own, asked));
    while (Clock::now() < until) {
      if (stopped_ || (poll && !poll({}))) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return !stopped_;
  }

  const RemoteOptions& options_;
  Url url_;
  std::string root_;  // the path before /v1
  std::mutex mutex_;
  std::vector<std::unique_ptr<httplib::Client>> clients_;
  std::vector<httplib::Client*> idle_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> requests_{0};  // sent and not yet answered
};

// /tokenize and /detokenize as llama-server, vLLM and SGLang have them: the keys of all three are
// sent.
class ServerTokenizer final : public Tokenizer {
 public:
  ServerTokenizer(Server& server, std::string model) : server_(server), model_(std::move(model)) {}

  // Whether the server has one; finds out whether it adds a BOS.
  bool open() {
    auto first =
        server_.call("/tokenize", request("a b", false, false), kMaxTokensBytes, parse_tokens);
    if (first.met({"status 404", "status 405", "status 501"}) && !first.failed.empty())
      return false;
    const std::vector<Token>& bare = first.must("see the log of the server");
    const std::vector<Token> with = tokens(request("a b", true, false));
    if (with.size() == bare.size() + 1 && std::equal(bare.begin(), bare.end(), with.begin() + 1)) {
      bos_ = with.front();
    } else if (with != bare) {
      unsupported("the server's tokenizer adds more to a text than one BOS in front",
                  "give a local vocabulary instead: --vocab FILE.gguf");
    }
    return true;
  }

  std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const override {
    std::vector<Token> list;
    if (!text.empty()) list = tokens(request(text, false, special));
    if (add_bos && bos_) list.insert(list.begin(), *bos_);
    return list;
  }
  bool tokenizer_is_remote() const override { return true; }
  std::string detokenize(std::span<const Token> list) const override {
    if (list.empty()) return {};
    // Texts are searched token by token for the ends of sentences: ask for each token once.
    if (list.size() == 1) {
      const std::lock_guard lock(mutex_);
      const auto known = pieces_.find(list.front());
      if (known != pieces_.end()) return known->second;
    }
    const json body = {{"model", model_}, {"tokens", std::vector<Token>(list.begin(), list.end())}};
    std::string text =
        server_.call("/detokenize", body.dump(), kMaxTokensBytes, parse_text).must(kResume);
    const std::lock_guard lock(mutex_);
    if (list.size() == 1 && pieces_.size() < kMaxPieces) pieces_[list.front()] = text;
    return text;
  }
  std::optional<Token> bos() const override { return bos_; }
  std::string apply_chat_template(std::span<const ChatMessage> messages) const override {
    json body = {{"messages", json::array()}};
    for (const ChatMessage& m : messages) {
      body["messages"].push_back({{"role", m.role}, {"content", m.content}});
    }
    const auto call = server_.call("/apply-template", body.dump(), kMaxAnswerBytes, parse_text);
    if (call.failed.empty()) return call.value;
    unsupported(cat("the server does not apply its chat template (", call.failed, ")"),
                "give --endpoint URL/chat/completions to let it use the template itself, or "
                "--vocab FILE.gguf");
  }

 private:
  std::string request(std::string_view text, bool bos, bool special) const {
    return json_text(json{{"model", model_},
                          {"content", text},
                          {"prompt", text},
                          {"add_special", bos},
                          {"add_special_tokens", bos},
                          {"parse_special", special}});
  }

  std::vector<Token> tokens(const std::string& body) const {
    return server_.call("/tokenize", body, kMaxTokensBytes, parse_tokens).must(kResume);
  }

  Server& server_;
  std::string model_;
  std::optional<Token> bos_;
  mutable std::mutex mutex_;  // of pieces_
  mutable std::unordered_map<Token, std::string> pieces_;
};

class RemoteModel final : public PromptModel {
 public:
  explicit RemoteModel(const RemoteOptions& options) : options_(options), server_(options_) {
    choose_model();
    if (!options_.vocabulary.empty()) {
      tokenizer_ = open_vocabulary(options_.vocabulary);
      tokenizer_name_ = "vocabulary " + model_digest({options_.vocabulary});
      trained_ = trained_ > 0 ? trained_ : read_model(options_.vocabulary).geometry.train_length;
    } else {
      auto tokenizer = std::make_unique<ServerTokenizer>(server_, name_);
      refuse_if(!tokenizer->open(), cat(server_.address(), " has no tokenizer endpoint"),
                "give a GGUF file of the same model, of any quantization: --vocab FILE.gguf");
      tokenizer_ = std::move(tokenizer);
    }
    if (owner_ == "llamacpp") {
      const auto call = server_.call("/props", {}, kMaxAnswerBytes, parse_props_context);
      if (call.failed.empty()) context_ = call.value;
    }
    if (context_ == 0) context_ = options_.context;
    if (options_.chat) measure_template();
  }

  std::string name() const override { return name_; }
  std::string description() const override {
    return cat("endpoint", owner_.empty() ? "" : " of ", owner_, ", ",
               options_.chat ? "chats" : "completions of token ids", ", ", tokenizer_name_);
  }

  std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const override {
    return tokenizer_->tokenize(text, add_bos && !options_.chat, special);
  }
  std::string detokenize(std::span<const Token> tokens) const override {
    return tokenizer_->detokenize(tokens);
  }
  // In a chat it is the server's.
  std::optional<Token> bos() const override {
    return options_.chat ? std::nullopt : tokenizer_->bos();
  }
  std::string apply_chat_template(std::span<const ChatMessage> messages) const override {
    if (!options_.chat) return tokenizer_->apply_chat_template(messages);
    std::string text;
    for (const ChatMessage& m : messages) text += m.content;
    return text;
  }
  std::int64_t context_length() const override { return context_; }
  std::int64_t train_length() const override { return trained_ > 0 ? trained_ : context_; }
  bool tokenizer_is_remote() const override { return tokenizer_->tokenizer_is_remote(); }
  int parallel() const override { return options_.parallel; }
  void cancel() override { server_.stop(); }

  WholeAnswer ask(const WholePrompt& prompt, const GenerateOptions& options) override {
    auto call = complete(prompt, options);
    if (call.for_all && call.failed != "stopped") {
      call.must("correct the address or MRROPE_API_KEY; finished work is kept");
    }
    WholeAnswer answer{{}, call.failed, call.retry_counts};
    if (!call.failed.empty()) return answer;
    const RemoteAnswer& said = call.value;
    answer.said.text = said.text;
    answer.said.finish = said.finish;
    answer.said.smallest_gap = std::nan("");  // not reported
    const auto read = std::int64_t(prompt.tokens.size()) + overhead_.value_or(0);
    const bool known = !options_.chat || overhead_.has_value();
    if ((known && said.prompt_tokens && *said.prompt_tokens != read) ||
        (said.answer_tokens &&
         (*said.answer_tokens < 0 || *said.answer_tokens > options.max_tokens))) {
      ++answer.troubles["usage"];
    }
    return answer;
  }

 private:
  ServerCall<RemoteAnswer> complete(const WholePrompt& prompt, const GenerateOptions& options) {
    json body = {{"model", name_},
                 {"max_tokens", options.max_tokens},
                 {"temperature", options.sampling.temperature},
                 {"stream", false}};
    if (!options.stop.empty()) body["stop"] = options.stop;
    if (options_.chat) {
      const std::string text = prompt.text.empty() ? detokenize(prompt.tokens) : prompt.text;
      body["messages"] = json::array({{{"role", "user"}, {"content", text}}});
    } else {
      body["prompt"] = prompt.tokens;
    }
    return server_.call(
        options_.chat ? "/v1/chat/completions" : "/v1/completions", json_text(body),
        kMaxAnswerBytes,
        [&](const std::string& reply) { return parse_answer(reply, options_.chat); },
        options.on_text);
  }

  void choose_model() {
    auto call = server_.call("/v1/models", {}, kMaxAnswerBytes, parse_models, {}, 2);
    const char* hint = "check that the server is running and that this is its address";
    if (call.met({"status 401", "status 403"}))
      hint = "set the key in the environment: MRROPE_API_KEY=...";
    if (call.met({"certificate"})) {
      hint = "if you trust who signed it: SSL_CERT_FILE=authority.pem mrrope eval ...";
    }
    const std::vector<RemoteModelInfo>& models = call.must(hint);
    const RemoteModelInfo* chosen = models.size() == 1 ? &models.front() : nullptr;
    const bool named = !options_.model.empty();
    if (named) chosen = find_by(models, &RemoteModelInfo::name, options_.model);
    const auto name_of = [](const RemoteModelInfo& m) { return printable(m.name); };
    const std::string names = joined(mapped(models, name_of), ", ");
    refuse_if(named && chosen == nullptr,
              cat(server_.address(), " has no model ", shown(options_.model)),
              cat("it has: ", names.substr(0, 500)));
    refuse_if(chosen == nullptr, cat(server_.address(), " has ", models.size(), " models"),
              cat("name one of them before --endpoint: ", names.substr(0, 500)));
    name_ = chosen->name;
    owner_ = chosen->owner;
    context_ = chosen->context;
    trained_ = chosen->trained;
  }

  // The tokens that the server's template adds to a message: its count less ours.
  void measure_template() {
    const std::string word = "x";
    const RemoteAnswer said =
        complete({{}, word}, {.max_tokens = 1, .sampling = {}, .stop = {}, .on_text = {}})
            .must("give --api completions, or see the log of the server");
    if (!said.prompt_tokens || *said.prompt_tokens < 1) return;
    overhead_ = *said.prompt_tokens - std::int64_t(tokenizer_->tokenize(word, false, false).size());
    if (*overhead_ < 0) overhead_.reset();
    if (overhead_ && context_ > *overhead_) context_ -= *overhead_;
  }

  RemoteOptions options_;
  Server server_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string tokenizer_name_ = "tokenizer of the server";
  std::string name_;
  std::string owner_;
  std::int64_t context_ = 0;
  std::int64_t trained_ = 0;
  std::optional<std::int64_t> overhead_;
};

}  // namespace

bool Url::loopback() const { return is_loopback_host(host); }

Url parse_url(const std::string& text) {
  Url url;
  url.tls = text.starts_with("https://");
  url.port = url.tls ? 443 : 80;
  if (!url.tls && !text.starts_with("http://")) refuse_endpoint(text, "is not an HTTP address");
#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
  unsupported_if(url.tls, cat(shown(text), " needs TLS, and this build has none"),
                 "install OpenSSL 3 (libssl-dev) and build again");
#endif
  const std::string rest = text.substr(url.tls ? 8 : 7);
  // The address is in run.json as typed, so it must not contain a secret.
  refuse_if(rest.substr(0, rest.find('/')).find('@') != std::string::npos,
            "the endpoint contains a name or a password",
            "set the key in the environment: MRROPE_API_KEY=... mrrope eval ...");
  for (const char c : rest) {
    if (c <= ' ' || c > '~' || c == '"' || c == '\\')
      refuse_endpoint(text, "contains a character that is not allowed in an address");
  }
  if (rest.find_first_of("?#") != std::string::npos) refuse_endpoint(text, "has a query");
  const std::size_t slash = rest.find('/');
  std::string authority = rest.substr(0, slash);
  if (slash != std::string::npos) url.path = rest.substr(slash);
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    const char* begin = authority.data() + colon + 1;
    const char* end = authority.data() + authority.size();
    const auto [at, error] = std::from_chars(begin, end, url.port);
    if (error != std::errc() || at != end || url.port < 1 || url.port > 65535) {
      refuse_endpoint(text, "has no port between 1 and 65535");
    }
    authority.resize(colon);
  }
  if (authority.empty()) refuse_endpoint(text, "names no host");
  url.host = authority;
  return url;
}

std::unique_ptr<PromptModel> open_remote(const RemoteOptions& options) {
  refuse_if(options.parallel < 1 || options.parallel > 1024,
            cat("--parallel ", options.parallel, " is not between 1 and 1024"),
            "give as many as the server answers at the same time, e.g. --parallel 32");
  refuse_if(!(options.seconds > 0),
            cat("--timeout ", options.seconds, " is not a number of seconds above 0"),
            "give --timeout 600");
  return std::make_unique<RemoteModel>(options);
}

}  // namespace mrrope::engine
