// SPDX-License-Identifier: Apache-2.0
// Two processes stand behind a ChatRenderer. The keeper is forked while this process has one thread
// and stays small; for every request it forks a worker, which runs the template and may fail in any
// way it likes.
#include "engine/chat/chat.h"

#include <chat.h>
#include <log.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

using Strings = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

// A worker may take so much more address space than the keeper had, and say so much.
constexpr rlim_t kMemory = rlim_t{4} << 30;
constexpr std::uint64_t kLongest = std::uint64_t{256} << 20;

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// Fails at the end of the stream, and past the deadline where there is one.
bool read_all(int fd, char* data, std::size_t size, std::optional<Clock::time_point> deadline) {
  while (size > 0) {
    if (deadline) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      pollfd wait{fd, POLLIN, 0};
      const int ready = left <= 0 ? 0 : ::poll(&wait, 1, static_cast<int>(left));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
    }
    const ssize_t n = ::read(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// A list of strings: its total size, then every string behind its own.
bool send(int fd, const Strings& strings) {
  std::string bytes(sizeof(std::uint64_t), '\0');
  for (const std::string& s : strings) {
    const std::uint64_t size = s.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(s);
  }
  const std::uint64_t total = bytes.size() - sizeof total;
  std::memcpy(bytes.data(), &total, sizeof total);
  return write_all(fd, bytes.data(), bytes.size());
}

std::optional<Strings> receive(int fd, std::optional<Clock::time_point> deadline = std::nullopt) {
  std::uint64_t total = 0;
  if (!read_all(fd, reinterpret_cast<char*>(&total), sizeof total, deadline)) return std::nullopt;
  if (total > kLongest) return std::nullopt;
  std::string bytes(total, '\0');
  if (!read_all(fd, bytes.data(), bytes.size(), deadline)) return std::nullopt;
  Strings strings;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t size = 0;
    if (bytes.size() - at < sizeof size) return std::nullopt;
    std::memcpy(&size, bytes.data() + at, sizeof size);
    at += sizeof size;
    if (size > bytes.size() - at) return std::nullopt;
    strings.push_back(bytes.substr(at, size));
    at += size;
  }
  return strings;
}

// A request: milliseconds, source, bos, eos, whether BOS is left out; then role and content by
// turns.
constexpr std::size_t kHead = 5;

[[noreturn]] void work(int fd, const Strings& request) {
  rlimit limit{kMemory, kMemory};
  ::setrlimit(RLIMIT_AS, &limit);
  common_log_set_verbosity_thold(-1);
  Strings reply;
  try {
    const ChatTemplate chat{request[1], request[2], request[3], request[4] == "1"};
    std::vector<ChatMessage> messages;
    for (std::size_t i = kHead; i + 1 < request.size(); i += 2) {
      messages.push_back({request[i], request[i + 1]});
    }
    reply = {"done", render_chat(chat, messages)};
  } catch (const std::exception& error) {
    reply = {"failed", error.what()};
  }
  send(fd, reply);
  ::_exit(0);
}

Strings supervise(const Strings& request) {
  const auto limit = std::chrono::milliseconds(std::strtoll(request[0].c_str(), nullptr, 10));
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return {"failed", "no socket"};
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::close(pair[0]);
    work(pair[1], request);
  }
  ::close(pair[1]);
  Strings reply = {"failed", "no process for it"};
  if (worker > 0) {
    const auto deadline = Clock::now() + limit;
    if (auto got = receive(pair[0], deadline); got && got->size() == 2) {
      reply = std::move(*got);
    } else if (Clock::now() >= deadline) {
      reply = {"failed", cat("it ran for more than ", limit.count(), " ms")};
    } else {
      reply = {"failed", "it crashed, or took more memory than it may"};
    }
    ::kill(worker, SIGKILL);
    ::waitpid(worker, nullptr, 0);
  }
  ::close(pair[0]);
  return reply;
}

[[noreturn]] void keep(int fd) {
  // Ctrl-C is meant for the server, which ends this process by closing the socket.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  while (const auto request = receive(fd)) {
    const bool whole = request->size() >= kHead && (request->size() - kHead) % 2 == 0;
    if (!send(fd, whole ? supervise(*request) : Strings{"failed", "not a request"})) break;
  }
  ::_exit(0);
}

}  // namespace

std::string render_chat(const ChatTemplate& chat, std::span<const ChatMessage> messages) {
  try {
    const common_chat_templates_ptr templates =
        common_chat_templates_init(nullptr, chat.source, chat.bos, chat.eos);
    common_chat_templates_inputs inputs;
    for (const ChatMessage& message : messages) {
      common_chat_msg m;
      m.role = message.role;
      m.content = message.content;
      inputs.messages.push_back(std::move(m));
    }
    std::string prompt = common_chat_templates_apply(templates.get(), inputs).prompt;
    if (chat.add_bos && !chat.bos.empty() && prompt.rfind(chat.bos, 0) == 0) {
      prompt.erase(0, chat.bos.size());
    }
    return prompt;
  } catch (const std::exception& error) {
    throw Error(ErrorKind::failed, error.what());
  }
}

ChatRenderer::ChatRenderer() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || (keeper_ = ::fork()) < 0) {
    throw Error(ErrorKind::failed, cat("no process for chat templates: ", std::strerror(errno)));
  }
  if (keeper_ == 0) {
    ::close(pair[0]);
    keep(pair[1]);
  }
  ::close(pair[1]);
  socket_ = pair[0];
}

ChatRenderer::~ChatRenderer() {
  ::close(socket_);
  ::waitpid(keeper_, nullptr, 0);
}

std::string ChatRenderer::render(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                                 std::chrono::milliseconds limit) {
  Strings request = {std::to_string(limit.count()), chat.source, chat.bos, chat.eos,
                     chat.add_bos ? "1" : "0"};
  for (const ChatMessage& message : messages) {
    request.push_back(message.role);
    request.push_back(message.content);
  }
  std::optional<Strings> reply;
  {
    const std::lock_guard lock(mutex_);
    if (send(socket_, request)) reply = receive(socket_);
  }
  if (!reply || reply->size() != 2) {
    throw Error(ErrorKind::failed, "the process for chat templates is gone");
  }
  if (reply->front() != "done") throw Error(ErrorKind::failed, reply->back());
  return reply->back();
}

}  // namespace mrrope
