// SPDX-License-Identifier: Apache-2.0
// HTTP to one server: bounded bodies, bounded waiting, no exceptions for what a server does. The
// library behind it is the one that llama.cpp brings along; TLS is the system's OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace httplib {
class Client;
}

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
  std::string failure;  // then: "refused", "stalled", "cut", "too large", "certificate"
  std::string body;
  std::string retry_after;  // the header, as it is
};

// A connection, kept alive; for one thread at a time. seconds: for the connection, for each pause
// of the server, and for a whole reply. key: sent as "Authorization: Bearer", where not empty.
std::unique_ptr<httplib::Client> make_client(const Url& url, double seconds,
                                             const std::string& key);

// The path starts with a slash and counts from the root. An empty body: GET. A reply larger than
// `max_bytes` is cut off.
HttpReply exchange(httplib::Client& client, const std::string& path, const std::string& body,
                   std::size_t max_bytes, double seconds);

}  // namespace mrrope::engine
