// SPDX-License-Identifier: Apache-2.0
// HTTP to one server: bounded bodies, bounded waiting, no exceptions for what a server does. The
// library behind it is the one that llama.cpp brings along; TLS is the system's OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace mrrope::engine {

struct Url {
  bool tls = false;
  std::string host;
  int port = 0;
  std::string path;  // "/v1": no slash at its end; empty for the root
  bool loopback() const;
};

// http://host:port/path. Throws Error (usage): another scheme, a name and a password (they would
// appear in run.json), a query; unsupported: https in a build without TLS.
Url parse_url(const std::string& text);

struct HttpReply {
  int status = 0;       // 0: no whole reply came
  std::string trouble;  // then: "refused", "stalled", "cut", "too large", "certificate"
  std::string body;
  std::string retry_after;  // the header, as it is
};

// One connection, kept alive; for one thread at a time.
class HttpClient {
 public:
  // seconds: for the connection, for each pause of the server, and for a whole reply.
  // key: sent as "Authorization: Bearer", where not empty.
  HttpClient(const Url& url, double seconds, const std::string& key);
  ~HttpClient();

  // Paths start with a slash and count from the root. A body larger than `most` is cut off.
  HttpReply get(const std::string& path, std::size_t most);
  HttpReply post(const std::string& path, const std::string& body, std::size_t most);

  // From another thread: ends the request in progress.
  void stop();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace mrrope::engine
