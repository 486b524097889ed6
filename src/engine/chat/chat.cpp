// SPDX-License-Identifier: Apache-2.0
// A ChatRenderer has two kinds of child process. The fork server is forked while this process has
// one thread, and stays small. For every request it forks a worker, which does what do_chat_work()
// says and may crash, hang or run out of memory without harm. The fork server is sent one end of a
// socket pair; request and reply pass over the other.
#include "engine/chat/chat.h"

#include <dirent.h>
#include <fcntl.h>
#include <log.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"

namespace mrrope::engine {

namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr rlim_t kMaxWorkerMemory = rlim_t{4} << 30;    // beyond the fork server's
constexpr std::uint64_t kMaxMessageBytes = 256U << 20;  // of a request or a reply
constexpr milliseconds kGiveUpPoll{100};                // how often give_up is called
// Of a processor. After kOwnTime a worker is nice to others, as an agent's thirty tools take 50 ms;
// after kNiceTime more it runs only when nobody else does.
constexpr milliseconds kOwnTime{20};
constexpr milliseconds kNiceTime{480};
constexpr milliseconds kKillTimeout{5000};  // beyond its limit, for a worker to start and be killed

[[noreturn]] void fail(const char* what, const std::string& why) {
  throw Error(ErrorKind::out_of_memory, cat("no ", what, " for chat templates: ", why));
}

// Both ends are closed where this process starts another program.
void open_pair(int (&pair)[2]) {
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("socket", std::strerror(errno));
  for (const int fd : pair) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Does something at the end of a scope.
template <typename Action>
struct Finally {
  Action action;
  ~Finally() { action(); }
};
template <typename Action>
Finally(Action) -> Finally<Action>;

bool ready(int fd, short what, Clock::time_point deadline) {
  for (;;) {
    // Rounded up: a poll that ends early would make a slow template look like a crash.
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd wait{fd, what, 0};
    const int n = left <= 0 ? 0 : ::poll(&wait, 1, int(left));
    if (n < 0 && errno == EINTR) continue;
    return n > 0;
  }
}

// Sends (POLLOUT) or receives (POLLIN) all of it. Fails at the end of the stream and past the
// deadline.
bool transfer(int fd, short direction, char* data, std::size_t size, Clock::time_point deadline) {
  while (size > 0) {
    if (!ready(fd, direction, deadline)) return false;
    const ssize_t n = direction == POLLIN ? ::read(fd, data, size)
                                          : ::send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    if (n <= 0) return false;
    data += n;
    size -= std::size_t(n);
  }
  return true;
}

// Bytes, after their number.
bool send(int fd, const std::string& bytes, Clock::time_point deadline) {
  std::uint64_t size = bytes.size();
  return transfer(fd, POLLOUT, reinterpret_cast<char*>(&size), sizeof size, deadline) &&
         transfer(fd, POLLOUT, const_cast<char*>(bytes.data()), bytes.size(), deadline);
}

std::optional<std::string> receive(int fd, Clock::time_point deadline) {
  std::uint64_t size = 0;
  if (!transfer(fd, POLLIN, reinterpret_cast<char*>(&size), sizeof size, deadline) ||
      size > kMaxMessageBytes) {
    return std::nullopt;
  }
  std::string bytes(size, '\0');
  if (!transfer(fd, POLLIN, bytes.data(), bytes.size(), deadline)) return std::nullopt;
  return bytes;
}

// What a reply begins with. The rest of it is text, whatever the worker has become.
constexpr char kDone = 'd', kFailed = 'f', kNoProcess = 'n';

// The limit counts from what the process already maps: device drivers reserve far more than any
// template needs.
void limit_resources() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most =
      kMaxWorkerMemory + rlim_t{pages} * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  const rlimit memory{most, most};
  ::setrlimit(RLIMIT_AS, &memory);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

// A dying template must not write to the user's terminal, nor start a debugger for its backtrace.
void silence_output() {
  ::setenv("GGML_NO_BACKTRACE", "1", 1);
  const int nowhere = ::open("/dev/null", O_RDWR);
  if (nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  common_log_set_verbosity_thold(-1);
}

// What the fork server is sent for a request: the worker's end of a socket pair, and its limit.
struct WorkerStart {
  int fd = -1;
  std::int64_t limit = 0;  // milliseconds
};

// Sends a start, without waiting, since the fork server takes every one at once; or receives one.
// The limit is data, the socket goes beside it. False: the other process has ended.
bool pass_start(int fd, WorkerStart& start, bool sending) {
  iovec data{&start.limit, sizeof start.limit};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  if (sending) {
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof start.fd);
    std::memcpy(CMSG_DATA(header), &start.fd, sizeof start.fd);
    return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof start.limit;
  }
  ssize_t n = -1;
  do {
    n = ::recvmsg(fd, &message, 0);
  } while (n < 0 && errno == EINTR);
  const cmsghdr* const header = n == sizeof start.limit ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  std::memcpy(&start.fd, CMSG_DATA(header), sizeof start.fd);
  return true;
}

void be_nice() { ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + 5); }

// Linux places the model's threads on a processor that runs only idle work as if it were free, and
// beside nice work it does not.
void run_when_idle() {
#ifdef SCHED_IDLE
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_IDLE, &none);
#else
  ::setpriority(PRIO_PROCESS, 0, 19);
#endif
}

// The timer is first: what follows may hang.
[[noreturn]] void work(const WorkerStart& start) {
  std::signal(SIGALRM, SIG_DFL);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(start.limit / 1000);
  timer.it_value.tv_usec = static_cast<suseconds_t>(start.limit % 1000 * 1000);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  std::signal(SIGPROF, [](int) {
    static volatile std::sig_atomic_t times = 0;
    times == 0 ? be_nice() : run_when_idle();
    times = 1;
  });
  timer.it_value = {0, static_cast<suseconds_t>(1000 * kOwnTime.count())};
  timer.it_interval = {0, static_cast<suseconds_t>(1000 * kNiceTime.count())};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
  limit_resources();
  silence_output();
  const auto deadline = Clock::now() + milliseconds(start.limit);
  const std::optional<std::string> request = receive(start.fd, deadline);
  if (!request) ::_exit(1);
  std::string reply;
  try {
    reply = kDone + do_chat_work(json::from_msgpack(*request).get<Strings>());
  } catch (const std::exception& error) {
    reply = kFailed + std::string(error.what());
  }
  send(start.fd, reply, deadline);
  ::_exit(0);
}

// Connections and files of a process that has been at work for a while are not the fork server's.
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

[[noreturn]] void serve_forks(int fd) {
  close_all_but(fd);
  // Ctrl-C is for the parent, which ends this process by closing the socket.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGCHLD, SIG_IGN);  // workers leave no zombies
  for (WorkerStart start; pass_start(fd, start, false); ::close(start.fd)) {
    const pid_t worker = ::fork();
    if (worker == 0) {
      ::close(fd);
      work(start);
    }
    if (worker < 0) {
      const std::string why = std::strerror(errno);
      send(start.fd, kNoProcess + why, Clock::now() + kGiveUpPoll);
    }
  }
  ::_exit(0);
}

Strings head(const char* kind, const ChatTemplate& chat) {
  return {kind, chat.source, chat.bos, chat.eos, chat.add_bos ? "1" : "0"};
}

}  // namespace

// Where requests wait for a worker, first come, first served.
struct WorkQueue {
  int free;  // workers
  std::size_t max_waiting;
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::set<std::uint64_t> waiting = {};
  std::uint64_t last = 0;

  void enter(const ChatRenderer::GiveUp& give_up) {
    std::unique_lock lock(mutex);
    if (waiting.size() >= max_waiting) {
      throw ChatBusy(
          ErrorKind::failed,
          cat(waiting.size(), " chats, schemas and grammars are waiting: try again later"));
    }
    const std::uint64_t own = ++last;
    waiting.insert(own);
    const Finally leave_line{[&] {
      waiting.erase(own);
      changed.notify_all();
    }};
    const auto is_next = [&] { return free > 0 && *waiting.begin() == own; };
    while (!changed.wait_for(lock, kGiveUpPoll, is_next)) {
      if (give_up && give_up()) throw Error(ErrorKind::interrupted, "the request was given up");
    }
    --free;
  }

  void leave() {
    const std::lock_guard lock(mutex);
    ++free;
    changed.notify_all();
  }
};

struct ChatRenderer::State {
  // What clients send takes its time; answers that are being written must not wait for it.
  WorkQueue requests{.free = 3, .max_waiting = 128};
  WorkQueue answers{.free = 2, .max_waiting = std::numeric_limits<std::size_t>::max()};
  std::mutex mutex;
  int socket = -1;
  pid_t server = -1;  // the fork server

  State() { start_fork_server(); }
  ~State() { end_fork_server(); }

  // Later, when the first fork server was killed, this process is large and has threads: the new
  // one then holds on to the memory of that moment, which costs a copy of each page that changes.
  void start_fork_server() {
    int pair[2];
    open_pair(pair);
    server = ::fork();
    if (server == 0) {
      ::close(pair[0]);
      serve_forks(pair[1]);
    }
    const int error = errno;
    ::close(pair[1]);
    socket = pair[0];
    if (server < 0) fail("process", std::strerror(error));
  }

  void end_fork_server() {
    ::close(socket);
    if (server > 0) ::waitpid(server, nullptr, 0);
    server = socket = -1;
  }

  // A socket to a new worker, and its fork server.
  std::pair<int, pid_t> start_worker(Limit limit) {
    int pair[2];
    open_pair(pair);
    const Finally close{[&] {
      ::close(pair[0]);
      ::close(pair[1]);
    }};
    const std::lock_guard lock(mutex);
    WorkerStart start{pair[1], limit.count()};
    if (!pass_start(socket, start, true)) {
      if (server > 0) ::kill(server, SIGKILL);  // it is dead, or stuck
      end_fork_server();
      start_fork_server();
      pass_start(socket, start, true);
    }
    return {std::exchange(pair[0], -1), server};
  }

  // Whether this fork server is gone, so that it may never have made the worker.
  bool died(pid_t fork_server) {
    const std::lock_guard lock(mutex);
    pollfd wait{socket, 0, 0};
    return server != fork_server || ::poll(&wait, 1, 0) > 0;
  }

  std::string run(WorkQueue& queue, const Strings& request, Limit limit, const GiveUp& give_up) {
    std::string packed;
    json::to_msgpack(request, packed);
    throw_if(packed.size() > kMaxMessageBytes, ErrorKind::failed,
             cat("the messages have ", packed.size(), " bytes, at most ", kMaxMessageBytes,
                 " are allowed"));
    queue.enter(give_up);
    const Finally leave{[&] { queue.leave(); }};
    for (int attempt = 1;; ++attempt) {
      const auto began = Clock::now();
      const auto [fd, fork_server] = start_worker(limit);
      const Finally close{[open = fd] { ::close(open); }};
      const auto deadline = began + limit + kKillTimeout;
      std::optional<std::string> reply;
      if (send(fd, packed, deadline)) reply = receive(fd, deadline);
      if (!reply || reply->empty()) {
        if (died(fork_server) && attempt == 1) continue;
        throw Error(ErrorKind::failed, Clock::now() - began >= limit
                                           ? cat("it ran for more than ", limit.count(), " ms")
                                           : "it crashed or used too much memory");
      }
      const char kind = reply->front();
      reply->erase(0, 1);
      if (kind == kDone) return std::move(*reply);
      if (kind == kFailed) throw Error(ErrorKind::failed, *reply);
      fail("process", *reply);
    }
  }
};

ChatRenderer::ChatRenderer() : state_(std::make_shared<State>()) {}

std::string ChatRenderer::render(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                                 Limit limit) {
  Strings request = head("render", chat);
  for (const ChatMessage& message : messages) {
    request.push_back(message.role);
    request.push_back(message.content);
  }
  return state_->run(state_->requests, request, limit, {});
}

ChatPrompt ChatRenderer::prepare(const ChatTemplate& chat, const ChatInputs& inputs, Limit limit,
                                 const GiveUp& give_up) {
  json given = inputs;
  if (inputs.parallel_tool_calls) given["parallel"] = *inputs.parallel_tool_calls;
  Strings request = head("prepare", chat);
  request.push_back(given.dump());
  return read_reply<ChatPrompt>(state_->run(state_->requests, request, limit, give_up));
}

ParsedAnswer ChatRenderer::parse(const std::string& syntax, const std::string& text, bool partial,
                                 Limit limit, const GiveUp& give_up) {
  return read_reply<ParsedAnswer>(state_->run(
      state_->answers, {"parse", syntax, partial ? "partial" : "whole", text}, limit, give_up));
}

void ChatRenderer::check_grammar(const std::string& grammar, Limit limit, const GiveUp& give_up) {
  state_->run(state_->requests, {"grammar", grammar}, limit, give_up);
}

std::string ChatRenderer::schema_grammar(const std::string& schema, Limit limit,
                                         const GiveUp& give_up) {
  return state_->run(state_->requests, {"schema", schema}, limit, give_up);
}

ChatRenderer& chat_renderer() {
  static ChatRenderer instance;
  return instance;
}

}  // namespace mrrope::engine
