// SPDX-License-Identifier: Apache-2.0
#include "engine/remote/http.h"

#include <cpp-httplib/httplib.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/files/source.h"
#include "base/net.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

constexpr const char* kExample = "write it as http://127.0.0.1:8080/v1";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorKind::usage, cat("the endpoint ", shown(text), " ", why), kExample);
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

}  // namespace

bool Url::loopback() const { return is_loopback_host(host); }

Url parse_url(const std::string& text) {
  Url url;
  std::string rest;
  if (text.rfind("http://", 0) == 0) {
    rest = text.substr(7);
    url.port = 80;
  } else if (text.rfind("https://", 0) == 0) {
    rest = text.substr(8);
    url.port = 443;
    url.tls = true;
#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
    throw Error(ErrorKind::unsupported, cat(shown(text), " needs TLS, and this build has none"),
                "install OpenSSL 3 (libssl-dev) and build again");
#endif
  } else {
    refuse(text, "is not an HTTP address");
  }
  // The address is in run.json as typed, so it must not contain a secret.
  if (rest.substr(0, rest.find('/')).find('@') != std::string::npos) {
    throw Error(ErrorKind::usage, "the endpoint contains a name or a password",
                "set the key in the environment: MRROPE_API_KEY=... mrrope eval ...");
  }
  for (const char c : rest) {
    if (c <= ' ' || c > '~' || c == '"' || c == '\\')
      refuse(text, "contains a character that is not allowed in an address");
  }
  if (rest.find_first_of("?#") != std::string::npos) refuse(text, "has a query");
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
      refuse(text, "has no port between 1 and 65535");
    }
    authority.resize(colon);
  }
  if (authority.empty()) refuse(text, "names no host");
  url.host = authority;
  return url;
}

std::unique_ptr<httplib::Client> make_client(const Url& url, double seconds,
                                             const std::string& key) {
  auto client = std::make_unique<httplib::Client>(
      cat(url.tls ? "https://" : "http://", url.host, ":", url.port));
  const auto wait =
      std::chrono::milliseconds(std::max<std::int64_t>(1, std::int64_t(seconds * 1000)));
  client->set_connection_timeout(
      std::min<std::chrono::milliseconds>(wait, std::chrono::seconds(30)));
  client->set_read_timeout(wait);
  client->set_write_timeout(wait);
  client->set_max_timeout(wait);  // a reply that trickles in forever
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  client->set_follow_location(false);
  if (!key.empty()) client->set_bearer_token_auth(key);
  return client;
}

HttpReply exchange(httplib::Client& client, const std::string& path, const std::string& body,
                   std::size_t max_bytes, double seconds) {
  client.set_payload_max_length(max_bytes);
  const auto start = std::chrono::steady_clock::now();
  const httplib::Result result =
      body.empty() ? client.Get(path) : client.Post(path, body, "application/json");
  if (result) {
    return {result->status, {}, result->body, result->get_header_value("Retry-After")};
  }
  HttpReply reply;
  reply.failure = failure_name(result.error());
  // The library calls a read that timed out a failed read.
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (reply.failure == "cut" && took.count() >= 0.99 * seconds) reply.failure = "stalled";
  return reply;
}

}  // namespace mrrope::engine
