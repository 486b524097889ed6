// SPDX-License-Identifier: Apache-2.0
// A ChatRenderer has two kinds of child process. The keeper is forked while this process has one
// thread, and stays small. For every request it forks a worker, which does what chat_work.h says
// and may crash, hang or run out of memory without harm. The keeper is sent one end of a socket
// pair; request and reply pass over the other.
#include "engine/chat/chat.h"

#include <dirent.h>
#include <fcntl.h>
#include <log.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
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
#include <vector>

#include "base/text.h"
#include "engine/chat/chat_work.h"

namespace mrrope::engine {

namespace {

using nlohmann::ordered_json;
using Strings = std::vector<std::string>;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr rlim_t kMemory = rlim_t{4} << 30;                   // of a worker, beyond the keeper's
constexpr std::uint64_t kLongest = std::uint64_t{256} << 20;  // bytes of a request or a reply
constexpr milliseconds kLook{100};                            // how often give_up is called
constexpr milliseconds kGrace{5000};  // beyond its limit, for a worker to start and to be killed

// Both ends are closed where this process starts another program.
bool open_pair(int (&pair)[2]) {
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return false;
  for (const int fd : pair) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return true;
}

struct Closer {
  int fd;
  ~Closer() { ::close(fd); }
};

bool ready(int fd, short what, Clock::time_point deadline) {
  for (;;) {
    // Rounded up: a poll that ends early would make a slow template look like a crash.
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd wait{fd, what, 0};
    const int n = left <= 0 ? 0 : ::poll(&wait, 1, static_cast<int>(left));
    if (n < 0 && errno == EINTR) continue;
    return n > 0;
  }
}

bool write_all(int fd, const char* data, std::size_t size, Clock::time_point deadline) {
  while (size > 0) {
    const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && ready(fd, POLLOUT, deadline))
      continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// Fails at the end of the stream and past the deadline.
bool read_all(int fd, char* data, std::size_t size, Clock::time_point deadline) {
  while (size > 0) {
    if (!ready(fd, POLLIN, deadline)) return false;
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

bool send(int fd, const Strings& strings, Clock::time_point deadline) {
  const std::uint64_t total = size_of(strings);
  std::string bytes(reinterpret_cast<const char*>(&total), sizeof total);
  for (const std::string& s : strings) {
    const std::uint64_t size = s.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(s);
  }
  return write_all(fd, bytes.data(), bytes.size(), deadline);
}

std::optional<Strings> receive(int fd, Clock::time_point deadline) {
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

// What the keeper is sent for a request: the worker's end of a socket pair, and its limit.
struct Order {
  int fd = -1;
  std::int64_t limit = 0;  // milliseconds
};

union Ancillary {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int))];
};

// Does not wait: the keeper takes every order at once.
bool send_order(int keeper, Order order) {
  iovec data{&order.limit, sizeof order.limit};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes;
  message.msg_controllen = sizeof ancillary.bytes;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof order.fd);
  std::memcpy(CMSG_DATA(header), &order.fd, sizeof order.fd);
  return ::sendmsg(keeper, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof order.limit;
}

// nullopt: the other process has ended.
std::optional<Order> receive_order(int fd) {
  Order order;
  iovec data{&order.limit, sizeof order.limit};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes;
  message.msg_controllen = sizeof ancillary.bytes;
  ssize_t n = -1;
  do {
    n = ::recvmsg(fd, &message, 0);
  } while (n < 0 && errno == EINTR);
  const cmsghdr* const header = n == sizeof order.limit ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return std::nullopt;
  std::memcpy(&order.fd, CMSG_DATA(header), sizeof order.fd);
  return order;
}

// The timer is first: what follows may hang.
[[noreturn]] void work(const Order& order) {
  std::signal(SIGALRM, SIG_DFL);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(order.limit / 1000);
  timer.it_value.tv_usec = static_cast<suseconds_t>(order.limit % 1000 * 1000);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  limit_resources();
  be_silent();
  const auto deadline = Clock::now() + milliseconds(order.limit);
  const std::optional<Strings> request = receive(order.fd, deadline);
  if (!request) ::_exit(1);
  Strings reply;
  try {
    reply = {"done", do_chat_work(*request)};
  } catch (const std::exception& error) {
    reply = {"failed", error.what()};
  }
  send(order.fd, reply, deadline);
  ::_exit(0);
}

// Connections and files of a process that has been at work for a while are not the keeper's.
void close_all_but(int own) {
  std::vector<int> others;
  if (DIR* const open = ::opendir("/dev/fd")) {
    while (const dirent* entry = ::readdir(open)) {
      const int fd = std::atoi(entry->d_name);
      if (fd > STDERR_FILENO && fd != own) others.push_back(fd);
    }
    ::closedir(open);
  }
  for (const int fd : others) ::close(fd);
}

[[noreturn]] void keep(int fd) {
  close_all_but(fd);
  // Ctrl-C is for the parent, which ends this process by closing the socket.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGCHLD, SIG_IGN);  // workers leave no zombies
  while (const auto order = receive_order(fd)) {
    const pid_t worker = ::fork();
    if (worker == 0) {
      ::close(fd);
      work(*order);
    }
    if (worker < 0) send(order->fd, {"no process", std::strerror(errno)}, Clock::now());
    ::close(order->fd);
  }
  ::_exit(0);
}

Strings head(const char* kind, const ChatTemplate& chat) {
  return {kind, chat.source, chat.bos, chat.eos, chat.add_bos ? "1" : "0"};
}

}  // namespace

ChatRenderer::ChatRenderer() { start_keeper(); }

ChatRenderer::~ChatRenderer() { end_keeper(); }

// Later, when the first keeper was killed, this process is large and has threads: the new one then
// holds on to the memory of that moment, which costs a copy of each page that changes.
void ChatRenderer::start_keeper() {
  int pair[2];
  if (!open_pair(pair)) {
    throw Error(ErrorKind::out_of_memory,
                cat("no socket for chat templates: ", std::strerror(errno)));
  }
  keeper_ = ::fork();
  if (keeper_ == 0) {
    ::close(pair[0]);
    keep(pair[1]);
  }
  const int error = errno;
  ::close(pair[1]);
  socket_ = pair[0];
  if (keeper_ < 0) {
    throw Error(ErrorKind::out_of_memory,
                cat("no process for chat templates: ", std::strerror(error)));
  }
}

void ChatRenderer::end_keeper() {
  ::close(socket_);
  if (keeper_ > 0) ::waitpid(keeper_, nullptr, 0);
  keeper_ = socket_ = -1;
}

// A socket to a new worker, and its keeper.
std::pair<int, pid_t> ChatRenderer::hire(Limit limit) {
  int pair[2];
  if (!open_pair(pair)) {
    throw Error(ErrorKind::out_of_memory,
                cat("no socket for chat templates: ", std::strerror(errno)));
  }
  const std::lock_guard lock(keeper_mutex_);
  try {
    if (!send_order(socket_, {pair[1], limit.count()})) {
      if (keeper_ > 0) ::kill(keeper_, SIGKILL);  // it is dead, or stuck
      end_keeper();
      start_keeper();
      send_order(socket_, {pair[1], limit.count()});
    }
  } catch (...) {
    ::close(pair[0]);
    ::close(pair[1]);
    throw;
  }
  ::close(pair[1]);
  return {pair[0], keeper_};
}

// Whether this keeper is gone, so that it may never have made the worker.
bool ChatRenderer::died(pid_t keeper) {
  const std::lock_guard lock(keeper_mutex_);
  pollfd wait{socket_, 0, 0};
  return keeper_ != keeper || ::poll(&wait, 1, 0) > 0;
}

void ChatRenderer::Line::enter(const GiveUp& give_up) {
  std::unique_lock lock(mutex);
  if (waiting.size() >= most_waiting) {
    throw ChatBusy(
        ErrorKind::failed,
        cat(waiting.size(), " chats, schemas and grammars are waiting: try again later"));
  }
  const std::uint64_t own = ++last;
  waiting.insert(own);
  const auto turn = [&] { return free > 0 && *waiting.begin() == own; };
  try {
    while (!changed.wait_for(lock, kLook, turn)) {
      if (give_up && give_up()) throw Error(ErrorKind::interrupted, "nobody waits for it any more");
    }
    --free;
  } catch (...) {
    waiting.erase(own);
    changed.notify_all();
    throw;
  }
  waiting.erase(own);
  changed.notify_all();
}

void ChatRenderer::Line::leave() {
  const std::lock_guard lock(mutex);
  ++free;
  changed.notify_all();
}

std::string ChatRenderer::ask(Line& line, const Strings& request, Limit limit,
                              const GiveUp& give_up) {
  if (size_of(request) > kLongest) {
    throw Error(ErrorKind::failed, cat("the messages have ", size_of(request), " bytes, at most ",
                                       kLongest, " are allowed"));
  }
  line.enter(give_up);
  struct Leave {
    Line& line;
    ~Leave() { line.leave(); }
  } leave{line};
  for (int attempt = 1;; ++attempt) {
    const auto began = Clock::now();
    const auto [fd, keeper] = hire(limit);
    const Closer closer{fd};
    std::optional<Strings> reply;
    if (send(fd, request, began + limit + kGrace)) reply = receive(fd, began + limit + kGrace);
    if (!reply || reply->size() != 2) {
      if (died(keeper) && attempt == 1) continue;
      throw Error(ErrorKind::failed, Clock::now() - began >= limit
                                         ? cat("it ran for more than ", limit.count(), " ms")
                                         : "it crashed or used too much memory");
    }
    if (reply->front() == "done") return std::move(reply->back());
    throw Error(reply->front() == "failed" ? ErrorKind::failed : ErrorKind::out_of_memory,
                reply->front() == "failed" ? reply->back()
                                           : cat("no process for chat templates: ", reply->back()));
  }
}

std::string ChatRenderer::render(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                                 Limit limit) {
  Strings request = head("render", chat);
  for (const ChatMessage& message : messages) {
    request.push_back(message.role);
    request.push_back(message.content);
  }
  return ask(others_, request, limit, {});
}

ChatPrompt ChatRenderer::prepare(const ChatTemplate& chat, const ChatInputs& inputs, Limit limit,
                                 const GiveUp& give_up) {
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
  Strings request = head("prepare", chat);
  request.push_back(given.dump());
  return read_chat_prompt(ask(others_, request, limit, give_up));
}

ParsedAnswer ChatRenderer::parse(const std::string& syntax, const std::string& text, bool partial,
                                 Limit limit, const GiveUp& give_up) {
  return read_answer(
      ask(answers_, {"parse", syntax, partial ? "partial" : "whole", text}, limit, give_up));
}

void ChatRenderer::check_grammar(const std::string& grammar, Limit limit, const GiveUp& give_up) {
  ask(others_, {"grammar", grammar}, limit, give_up);
}

std::string ChatRenderer::schema_grammar(const std::string& schema, Limit limit,
                                         const GiveUp& give_up) {
  return ask(others_, {"schema", schema}, limit, give_up);
}

ChatRenderer& chat_renderer() {
  static ChatRenderer instance;
  return instance;
}

}  // namespace mrrope::engine
