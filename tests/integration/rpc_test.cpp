// SPDX-License-Identifier: Apache-2.0
// A model whose layers are on two RPC servers, real processes on loopback: under plans and ladders
// it computes what one process does.
#include <ggml-rpc.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/llama/devices.h"
#include "engine/llama/local.h"
#include "engine/llama/local_model.h"
#include "models/random_model.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

// A socket on a free port of this machine.
struct Bound {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  std::string endpoint;

  Bound() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    endpoint = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Bound() { ::close(socket); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
};

// The backend's own server in a separate process; this one has no thread yet.
class RpcServer {
 public:
  RpcServer() : endpoint_(Bound().endpoint) {
    process_ = ::fork();
    if (process_ == 0) {
      if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(1);
      ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
      load_processor();
      const auto start = reinterpret_cast<decltype(&ggml_backend_rpc_start_server)>(
          ggml_backend_reg_get_proc_address(ggml_backend_reg_by_name("RPC"),
                                            "ggml_backend_rpc_start_server"));
      start(endpoint_.c_str(), nullptr, 1, 1, &device);
      ::_exit(1);
    }
  }
  ~RpcServer() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;
  const std::string& endpoint() const noexcept { return endpoint_; }

 private:
  std::string endpoint_;
  pid_t process_ = -1;
};

struct Seen {
  Rows rows;
  std::vector<double> scores;
  std::vector<Token> said;
  std::set<std::string> places;  // where cached keys are
};

Seen run(TimelineModel& model, const Ladder& ladder) {
  const std::vector<Token> tokens = words(300);
  Seen seen;
  model.use(ladder);
  {
    const auto timeline = model.timeline();
    const std::vector<std::size_t> wanted = {0, 63, 64, 150, 299};
    timeline->append(tokens, wanted, [&](std::size_t, std::span<const float> row) {
      seen.rows.emplace_back(row.begin(), row.end());
    });
    GenerateOptions options;
    options.max_tokens = 8;
    seen.said = timeline->generate(options).tokens;
  }
  seen.scores = model.timeline()->append_scored(tokens);
  for (const KeyCache& cache : dynamic_cast<LocalModel&>(model).injector().key_caches()) {
    seen.places.insert(ggml_backend_buffer_name(cache.tensor->buffer));
  }
  return seen;
}

// Both compute on the same kind of processor; what may differ is the order of sums over threads.
void expect_same(const Seen& here, const Seen& there) {
  const double most = largest_difference(here.rows, there.rows);
  std::printf("largest difference of logits: %g\n", most);
  EXPECT_LT(most, 1e-3);
  for (std::size_t i = 1; i < here.scores.size(); ++i) {
    EXPECT_NEAR(here.scores[i], there.scores[i], 1e-3);
  }
  EXPECT_EQ(here.said, there.said);
}

TEST(Rpc, PlansAndLaddersReachLayersOnTwoServers) {
  const RpcServer first;
  const RpcServer second;
  const Metadata metadata = small_metadata("llama", {.layers = 6, .window = 64});
  const RandomModel file(metadata, 5);  // weights in f32
  const Model facts = read_model(file.path());
  LocalOptions options = exact_options(512, 512, 2, "off", 1);  // products in f16 would differ more
  Extension e{.method = "pro", .scale = 8};
  const Ladder ladders[] = {make_ladder(make_plan(facts.geometry, {}), 512),
                            make_ladder(make_plan(facts.geometry, e), 512),
                            make_ladder(facts.geometry, parse_method("elastic:pro"), 512)};
  std::vector<Seen> here;
  {
    const auto model = open_local(facts, options);
    for (const Ladder& ladder : ladders) here.push_back(run(*model, ladder));
  }
  options.gpu_layers = -1;
  options.rpc = first.endpoint() + "," + second.endpoint();
  std::unique_ptr<TimelineModel> model;
  for (int tries = 0; !model; ++tries) {
    try {
      model = open_local(facts, options);
    } catch (const Error& error) {  // the servers are just starting
      ASSERT_LT(tries, 200) << error.what();
      ASSERT_EQ(error.kind(), ErrorKind::failed) << error.what();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    const Seen there = run(*model, ladders[i]);
    expect_same(here[i], there);
    EXPECT_GT(std::abs(here[i].scores.back() - here[(i + 1) % 3].scores.back()), 1e-3);
    if (i == 2) {
      EXPECT_EQ(there.places.size(), 2u);  // half the layers in each
    }
  }
}

TEST(Rpc, RefusesAddressesThatAreNotServersByName) {
  const Model facts = read_model(MRROPE_TINY_MODEL);
  const auto refused = [&](const std::string& list, ErrorKind kind, const std::string& words) {
    LocalOptions options;
    options.rpc = list;
    const Error error = test::error_of([&] { open_local(facts, options); });
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_TRUE(contains(error.what(), words));
    EXPECT_FALSE(error.hint().empty());
  };
  for (const char* bad : {"host", ":50052", "host:", "host:0", "host:70000", "a:1x", ","}) {
    refused(bad, ErrorKind::usage, "is not host:port");
  }
  refused(Bound().endpoint, ErrorKind::failed, "cannot connect");
  // A server that closes the connection.
  const Bound server;
  ASSERT_EQ(::listen(server.socket, 1), 0);
  for (const bool other_version : {false, true}) {
    std::thread peer([&] {
      const int c = ::accept(server.socket, nullptr, nullptr);
      char hello[33];
      EXPECT_GT(::recv(c, hello, sizeof hello, MSG_WAITALL), 0);
      std::vector<char> reply(8 + 28);
      reply[0] = 28;
      reply[8] = 1;  // version 1
      if (other_version) {
        EXPECT_EQ(::send(c, reply.data(), reply.size(), 0), 36);
      }
      ::close(c);
    });
    refused(server.endpoint, other_version ? ErrorKind::unsupported : ErrorKind::failed,
            other_version ? "has version 1.0" : "is not an RPC server");
    peer.join();
  }
}

}  // namespace
}  // namespace mrrope::engine
