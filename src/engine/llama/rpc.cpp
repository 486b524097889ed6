// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/rpc.h"

#include <ggml-rpc.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/files/source.h"
#include "base/text.h"
#include "engine/llama/llama_api.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

constexpr int kPatience = 10000;  // milliseconds
constexpr const char* kHint =
    "start llama.cpp's RPC server (version 0.5.0) there, in a network you trust: ggml-rpc-server "
    "--host "
    "ADDRESS --port N";

// The start of the protocol: command 14, which does not change between versions; the size of what
// follows; what the connection supports in addition to TCP: nothing.
constexpr std::uint8_t kHello = 14;
constexpr std::uint64_t kCapabilities = 24;
constexpr std::uint64_t kReply = 4 + kCapabilities;  // version (3 bytes), padding, capabilities

class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int number() const noexcept { return number_; }

 private:
  int number_;
};

void set_patience(int number) {
  const timeval wait{kPatience / 1000, 0};
  ::setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  ::setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);  // connect() obeys it, too
}

bool read_all(int number, std::uint8_t* into, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(number, into, size, 0);
    if (got <= 0) return false;
    into += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void check_server(const std::string& name, const std::string& host, const std::string& port) {
  const auto unreachable = [&] {
    return Error(ErrorKind::failed, cat("cannot connect to --rpc ", name), kHint);
  };
  addrinfo wanted{};
  wanted.ai_family = AF_INET;  // as the backend does
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0 || found == nullptr) {
    throw unreachable();
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> address(found, ::freeaddrinfo);
  const Socket socket(::socket(found->ai_family, found->ai_socktype, found->ai_protocol));
  if (socket.number() < 0) throw unreachable();
  set_patience(socket.number());
  if (::connect(socket.number(), found->ai_addr, found->ai_addrlen) != 0) throw unreachable();

  std::array<std::uint8_t, 1 + sizeof kCapabilities + kCapabilities> hello{};
  hello[0] = kHello;
  std::memcpy(hello.data() + 1, &kCapabilities, sizeof kCapabilities);
  std::uint64_t size = 0;
  std::array<std::uint8_t, kReply> reply{};
  if (::send(socket.number(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(hello.size()) ||
      !read_all(socket.number(), reinterpret_cast<std::uint8_t*>(&size), sizeof size) ||
      size != kReply || !read_all(socket.number(), reply.data(), reply.size())) {
    throw Error(ErrorKind::failed, cat("--rpc ", name, " is not an RPC server"), kHint);
  }
  if (reply[0] != RPC_PROTO_MAJOR_VERSION || reply[1] > RPC_PROTO_MINOR_VERSION) {
    throw Error(ErrorKind::unsupported,
                cat("the RPC server at ", name, " has version ", int(reply[0]), ".", int(reply[1]),
                    ", this build has ", RPC_PROTO_MAJOR_VERSION, ".", RPC_PROTO_MINOR_VERSION),
                kHint);
  }
}

}  // namespace

void add_rpc_servers(const std::string& list) {
  for (std::size_t start = 0; !list.empty() && start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string server = list.substr(start, comma - start);
    start = comma + 1;
    const std::size_t colon = server.rfind(':');
    const std::string port = colon == std::string::npos ? "" : server.substr(colon + 1);
    if (colon == 0 || port.empty() || port.size() > 5 ||
        port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) < 1 ||
        std::stoi(port) > 65535) {
      throw Error(ErrorKind::usage, cat("--rpc ", shown(server), " is not host:port"),
                  "write --rpc 10.0.0.2:50052,10.0.0.3:50052");
    }
    check_server(server, server.substr(0, colon), port);
    ggml_backend_reg_t added = ggml_backend_rpc_add_server(server.c_str());
    if (added == nullptr) {
      throw Error(ErrorKind::failed, cat("the RPC server at ", server, " has no device"), kHint);
    }
    ggml_backend_register(added);  // once, however often it is named
  }
}

}  // namespace mrrope::engine
