// SPDX-License-Identifier: Apache-2.0
// A ChatRenderer has two kinds of child process. The keeper is forked once, while this process has
// one thread, and stays small. For every request it forks a worker, which does what chat_work.h
// says and may crash, hang or run out of memory without harm.
#include "engine/chat/chat.h"

#include <fcntl.h>
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
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/text.h"
#include "engine/chat/chat_work.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

using nlohmann::ordered_json;
using Strings = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

constexpr rlim_t kMemory = rlim_t{4} << 30;                   // of a worker, beyond the keeper's
constexpr std::uint64_t kLongest = std::uint64_t{256} << 20;  // bytes of a request or a reply

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

// Fails at the end of the stream and past the deadline.
bool read_all(int fd, char* data, std::size_t size, std::optional<Clock::time_point> deadline) {
  while (size > 0) {
    if (deadline) {
      // Rounded up: a poll that ends early would make a slow template look like a crash.
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
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

// A list of strings: the total size, then each string after its own size.
std::uint64_t size_of(const Strings& strings) {
  std::uint64_t total = 0;
  for (const std::string& s : strings) total += sizeof(std::uint64_t) + s.size();
  return total;
}

bool send(int fd, const Strings& strings) {
  const std::uint64_t total = size_of(strings);
  std::string bytes(reinterpret_cast<const char*>(&total), sizeof total);
  for (const std::string& s : strings) {
    const std::uint64_t size = s.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(s);
  }
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

// The limit counts from what the process already maps: device drivers reserve far more than any
// template needs.
void limit_resources() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = kMemory + rlim_t{pages} * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  const rlimit memory{most, most};
  ::setrlimit(RLIMIT_AS, &memory);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

// A dying template must not write to the user's terminal, nor start a debugger for its backtrace.
void be_silent() {
  ::setenv("GGML_NO_BACKTRACE", "1", 1);
  const int nowhere = ::open("/dev/null", O_RDWR);
  if (nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  common_log_set_verbosity_thold(-1);
}

// A request: milliseconds, then what do_chat_work() takes.
[[noreturn]] void work(int fd, const Strings& request) {
  limit_resources();
  be_silent();
  Strings reply;
  try {
    reply = {"done", do_chat_work({request.begin() + 1, request.end()})};
  } catch (const std::exception& error) {
    reply = {"failed", error.what()};
  }
  send(fd, reply);
  ::_exit(0);
}

Strings supervise(const Strings& request) {
  const auto limit = std::chrono::milliseconds(std::strtoll(request[0].c_str(), nullptr, 10));
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return {"failed", "there is no socket for it"};
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::close(pair[0]);
    work(pair[1], request);
  }
  ::close(pair[1]);
  Strings reply = {"failed", "there is no process for it"};
  if (worker > 0) {
    const auto deadline = Clock::now() + limit;
    if (auto got = receive(pair[0], deadline); got && got->size() == 2) {
      reply = std::move(*got);
    } else if (Clock::now() >= deadline) {
      reply = {"failed", cat("it ran for more than ", limit.count(), " ms")};
    } else {
      reply = {"failed", "it crashed or used too much memory"};
    }
    ::kill(worker, SIGKILL);
    ::waitpid(worker, nullptr, 0);
  }
  ::close(pair[0]);
  return reply;
}

[[noreturn]] void keep(int fd) {
  // Ctrl-C is for the parent, which ends this process by closing the socket.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  while (const auto request = receive(fd)) {
    const bool whole = request->size() >= 2;
    if (!send(fd, whole ? supervise(*request) : Strings{"failed", "not a request"})) break;
  }
  ::_exit(0);
}

Strings head(const char* kind, const ChatTemplate& chat, std::chrono::milliseconds limit) {
  return {std::to_string(limit.count()), kind, chat.source, chat.bos, chat.eos,
          chat.add_bos ? "1" : "0"};
}

// What a worker replied. It has run a stranger's program: it need not be what it should.
ordered_json parsed(const std::string& reply) {
  const ordered_json value = ordered_json::parse(reply, nullptr, false);
  if (!value.is_object()) throw Error(ErrorKind::failed, "the worker's reply cannot be read");
  return value;
}

}  // namespace

ChatRenderer::ChatRenderer() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    throw Error(ErrorKind::failed, cat("no socket for chat templates: ", std::strerror(errno)));
  }
  keeper_ = ::fork();
  if (keeper_ < 0) {
    const int error = errno;
    ::close(pair[0]);
    ::close(pair[1]);
    throw Error(ErrorKind::failed, cat("no process for chat templates: ", std::strerror(error)));
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

std::string ChatRenderer::ask(const Strings& request) {
  if (size_of(request) > kLongest) {
    throw Error(ErrorKind::failed, cat("the messages have ", size_of(request), " bytes, at most ",
                                       kLongest, " are allowed"));
  }
  std::optional<Strings> reply;
  {
    const std::lock_guard lock(mutex_);
    if (send(socket_, request)) reply = receive(socket_);
  }
  if (!reply || reply->size() != 2) {
    throw Error(ErrorKind::failed, "the process for chat templates has died");
  }
  if (reply->front() != "done") throw Error(ErrorKind::failed, reply->back());
  return std::move(reply->back());
}

std::string ChatRenderer::render(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                                 Limit limit) {
  Strings request = head("render", chat, limit);
  for (const ChatMessage& message : messages) {
    request.push_back(message.role);
    request.push_back(message.content);
  }
  return ask(request);
}

ChatPrompt ChatRenderer::prepare(const ChatTemplate& chat, const ChatInputs& inputs, Limit limit) {
  ordered_json given = {{"messages", inputs.messages},
                        {"tools", inputs.tools},
                        {"tool_choice", inputs.tool_choice},
                        {"schema", inputs.schema},
                        {"variables", inputs.variables},
                        {"add_generation_prompt", inputs.add_generation_prompt},
                        {"continue_final", inputs.continue_final},
                        {"thinking", inputs.thinking},
                        {"split_reasoning", inputs.split_reasoning}};
  if (inputs.parallel_tool_calls) given["parallel"] = *inputs.parallel_tool_calls;
  Strings request = head("prepare", chat, limit);
  request.push_back(given.dump());
  const ordered_json made = parsed(ask(request));
  ChatPrompt prompt;
  made.at("prompt").get_to(prompt.prompt);
  made.at("grammar").get_to(prompt.grammar);
  made.at("lazy").get_to(prompt.lazy);
  made.at("words").get_to(prompt.trigger_words);
  made.at("patterns").get_to(prompt.trigger_patterns);
  made.at("begun").get_to(prompt.begun);
  made.at("shown").get_to(prompt.shown);
  made.at("stops").get_to(prompt.stops);
  made.at("syntax").get_to(prompt.syntax);
  return prompt;
}

ParsedAnswer ChatRenderer::parse(const std::string& syntax, const std::string& text, bool partial,
                                 Limit limit) {
  const ordered_json said = parsed(
      ask({std::to_string(limit.count()), "parse", syntax, partial ? "partial" : "whole", text}));
  ParsedAnswer answer;
  said.at("content").get_to(answer.content);
  said.at("reasoning").get_to(answer.reasoning);
  for (const ordered_json& call : said.at("calls")) {
    answer.calls.push_back({call.at("id"), call.at("name"), call.at("arguments")});
  }
  return answer;
}

void ChatRenderer::check_grammar(const std::string& grammar, Limit limit) {
  ask({std::to_string(limit.count()), "grammar", grammar});
}

std::string ChatRenderer::schema_grammar(const std::string& schema, Limit limit) {
  return ask({std::to_string(limit.count()), "schema", schema});
}

ChatRenderer& chat_renderer() {
  static ChatRenderer instance;
  return instance;
}

}  // namespace mrrope::engine
