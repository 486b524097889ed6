// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/loader.h"

#include <ggml-rpc.h>
#include <gguf.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_set>

#include "base/files/source.h"
#include "base/text.h"
#include "engine/chat/chat.h"
#include "engine/llama/devices.h"
#include "mrrope/rotary.h"

namespace mrrope::engine {

namespace {

constexpr std::size_t kLinesKept = 6;

struct Log {
  std::mutex mutex;
  std::deque<std::string> lines;
  bool keeping = false;  // whether the line now being written is one to keep
};

Log& log() {
  static Log instance;
  return instance;
}

// libllama writes a line in one or several calls; continuations have a level of their own.
void keep(ggml_log_level level, const char* text, void*) {
  Log& l = log();
  const std::lock_guard lock(l.mutex);
  if (level != GGML_LOG_LEVEL_CONT) {
    l.keeping = level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR;
    if (l.keeping) l.lines.emplace_back();
  }
  if (!l.keeping || l.lines.empty()) return;
  l.lines.back() += text;
  if (l.lines.size() > kLinesKept) l.lines.pop_front();
}

// libllama ends the process where it cannot go on. Without this it prints a stack of its own.
[[noreturn]] void give_up(const char* message) {
  std::fprintf(
      stderr,
      "mrrope: llama.cpp cannot go on: %s\n"
      "  the model may be damaged or of a kind that this llama.cpp cannot run: check it with "
      "mrrope inspect\n",
      message);
  std::_Exit(int(ErrorKind::failed));
}

constexpr timeval kPatience{10, 0};  // seconds
constexpr const char* kHint =
    "start llama.cpp's RPC server (version 0.5.0) there, in a network you trust: ggml-rpc-server "
    "--host "
    "ADDRESS --port N";

// The start of the protocol: command 14, which does not change between versions; the size of what
// follows; what the connection supports in addition to TCP: nothing.
constexpr std::uint8_t kHello = 14;
constexpr std::uint64_t kCapabilities = 24;
constexpr std::uint64_t kReply = 4 + kCapabilities;  // version (3 bytes), padding, capabilities

struct Socket {
  const int number;
  ~Socket() { ::close(number); }
};

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
  const Socket socket{::socket(found->ai_family, found->ai_socktype, found->ai_protocol)};
  if (socket.number < 0) throw unreachable();
  ::setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  // connect() obeys this one, too.
  ::setsockopt(socket.number, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(socket.number, found->ai_addr, found->ai_addrlen) != 0) throw unreachable();

  std::array<std::uint8_t, 1 + sizeof kCapabilities + kCapabilities> hello{};
  hello[0] = kHello;
  std::memcpy(hello.data() + 1, &kCapabilities, sizeof kCapabilities);
  std::uint64_t size = 0;
  std::array<std::uint8_t, kReply> reply{};
  const auto receive = [&](void* into, std::size_t count) {
    return ::recv(socket.number, into, count, MSG_WAITALL) == ssize_t(count);
  };
  fail_if(
      ::send(socket.number, hello.data(), hello.size(), MSG_NOSIGNAL) != ssize_t(hello.size()) ||
          !receive(&size, sizeof size) || size != kReply || !receive(reply.data(), reply.size()),
      cat("--rpc ", name, " is not an RPC server"), kHint);
  unsupported_if(reply[0] != RPC_PROTO_MAJOR_VERSION || reply[1] > RPC_PROTO_MINOR_VERSION,
                 cat("the RPC server at ", name, " has version ", int(reply[0]), ".", int(reply[1]),
                     ", this build has ", RPC_PROTO_MAJOR_VERSION, ".", RPC_PROTO_MINOR_VERSION),
                 kHint);
}

constexpr int kMostThreads = GGML_MAX_N_THREADS;

llama_flash_attn_type flash_attention(const std::string& name) {
  if (name == "on") return LLAMA_FLASH_ATTN_TYPE_ENABLED;
  if (name == "off") return LLAMA_FLASH_ATTN_TYPE_DISABLED;
  if (name == "auto") return LLAMA_FLASH_ATTN_TYPE_AUTO;
  refuse(cat("-fa ", name, " is not on, off or auto"), "give -fa on, -fa off or -fa auto");
}

// With this pre-tokenizer, which belongs to models of embeddings, libllama aborts on a text with
// two blanks in a row.
void check_tokenizer(const llama_model* model, const std::string& file) {
  char pre[32] = "";
  llama_model_meta_val_str(model, "tokenizer.ggml.pre", pre, sizeof pre);
  if (std::string_view(pre) != "whitespace") return;
  unsupported(cat("the tokenizer of ", file, " (whitespace) is not supported"),
              "use a model that generates text");
}

struct FreeGguf {
  void operator()(gguf_context* owned) const { gguf_free(owned); }
};

// Values that libllama takes from a file and later asserts on.
void check_asserted(const std::filesystem::path& file) {
  const std::unique_ptr<gguf_context, FreeGguf> gguf(gguf_init_from_file(file.c_str(), {true, {}}));
  if (!gguf) return;  // libllama says why
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::corrupt, cat(file.string(), ": ", what),
                "download or convert the model again");
  };
  for (std::int64_t i = 0; i < gguf_get_n_kv(gguf.get()); ++i) {
    const std::string_view key = gguf_get_key(gguf.get(), i);
    if (!key.ends_with("epsilon") || gguf_get_kv_type(gguf.get(), i) != GGUF_TYPE_FLOAT32) continue;
    const float epsilon = gguf_get_val_f32(gguf.get(), i);
    if (!(epsilon >= 0)) refuse(cat(key, " is ", double(epsilon), ", below 0"));
  }
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) {
    const std::string_view name = gguf_get_tensor_name(gguf.get(), i);
    const ggml_type type = gguf_get_tensor_type(gguf.get(), i);
    if (type == GGML_TYPE_F32 || !(name.ends_with("norm.weight") || name.ends_with("norm.bias")))
      continue;
    refuse(cat(name, " is of type ", ggml_type_name(type), ", but norms are f32"));
  }
  const std::int64_t tokens = gguf_find_key(gguf.get(), "tokenizer.ggml.tokens");
  if (tokens < 0 || gguf_get_kv_type(gguf.get(), tokens) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(gguf.get(), tokens) != GGUF_TYPE_STRING) {
    return;
  }
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < gguf_get_arr_n(gguf.get(), tokens); ++i) {
    const std::string_view token = gguf_get_arr_str(gguf.get(), tokens, i);
    if (token.empty() || seen.insert(token).second) continue;  // empty ones get names of their own
    refuse(cat("token ", i, " of the vocabulary repeats an earlier one"));
  }
}

LlamaPtr<llama_model> load(const std::vector<std::filesystem::path>& files,
                           const llama_model_params& params, const char* what,
                           const std::string& hint) {
  start_llama();
  for (const auto& file : files) check_asserted(file);
  std::vector<const char*> paths;
  for (const auto& file : files) paths.push_back(file.c_str());
  take_llama_log();
  LlamaPtr<llama_model> model(
      paths.size() == 1 ? llama_model_load_from_file(paths.front(), params)
                        : llama_model_load_from_splits(paths.data(), paths.size(), params));
  const std::string name = files.front().string();
  if (!model) unsupported(cat("libllama cannot ", what, " ", name, ": ", take_llama_log()), hint);
  check_tokenizer(model.get(), name);
  return model;
}

}  // namespace

void start_llama() {
  static const bool started = [] {
    chat_renderer();  // forks, which must come before devices are initialised and threads start
    ggml_set_abort_callback(give_up);
    load_processor();
    load_add_ons();
    llama_backend_init();
    return true;
  }();
  static_cast<void>(started);
}

void keep_llama_log() { llama_log_set(keep, nullptr); }

std::string take_llama_log() {
  Log& l = log();
  const std::lock_guard lock(l.mutex);
  std::string text;
  for (std::string& line : l.lines) {
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    if (!text.empty()) text += "; ";
    text += line;
  }
  l.lines.clear();
  return text;
}

void add_rpc_servers(const std::string& list) {
  if (list.empty()) return;
  // The backend may be a library that was loaded at start.
  const ggml_backend_reg_t rpc = ggml_backend_reg_by_name("RPC");
  fail_if(rpc == nullptr, "this installation has no code for --rpc", "install mrrope again");
  const auto add_server = reinterpret_cast<decltype(&ggml_backend_rpc_add_server)>(
      ggml_backend_reg_get_proc_address(rpc, "ggml_backend_rpc_add_server"));
  for (const std::string& server : split_list(list)) {
    const std::size_t colon = server.rfind(':');
    const std::string port = colon == std::string::npos ? "" : server.substr(colon + 1);
    refuse_if(colon == 0 || port.find_first_not_of("0123456789") != std::string::npos ||
                  parse_length(port).value_or(65536) > 65535,
              cat("--rpc ", shown(server), " is not host:port"),
              "write --rpc 10.0.0.2:50052,10.0.0.3:50052");
    check_server(server, server.substr(0, colon), port);
    ggml_backend_reg_t added = add_server(server.c_str());
    fail_if(added == nullptr, cat("the RPC server at ", server, " has no device"), kHint);
    ggml_backend_register(added);  // once, however often it is named
  }
}

LlamaPtr<llama_model> load_model(const std::vector<std::filesystem::path>& files, int gpu_layers,
                                 std::vector<ggml_backend_dev_t> devices) {
  llama_model_params params = llama_model_default_params();
  if (!devices.empty()) params.devices = devices.data();
  params.n_gpu_layers = gpu_layers;
  return load(files, params, "load",
              cat("check the file with mrrope inspect; this is llama.cpp ", llama_version()));
}

LlamaPtr<llama_model> load_vocabulary(const std::filesystem::path& file) {
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  return load({file}, params, "read the vocabulary of",
              "give --vocab a GGUF file of the served model, of any quantization");
}

llama_context_params context_params(const LocalOptions& options, std::int64_t tokens) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = std::uint32_t(tokens);
  params.n_ubatch = std::uint32_t(options.ubatch);
  params.n_batch = std::uint32_t(std::max(options.ubatch, options.timelines));  // rows of logits
  params.n_threads = thread_count(options);
  params.n_threads_batch = params.n_threads;
  params.flash_attn_type = flash_attention(options.flash_attention);
  params.type_k = cache_type(options.type_k, "-ctk");
  params.type_v = cache_type(options.type_v, "-ctv");
  params.kv_unified = options.unified;
  params.no_perf = true;
  return params;
}

LlamaPtr<llama_context> make_context(llama_model* model, const llama_context_params& params) {
  take_llama_log();
  LlamaPtr<llama_context> context(llama_init_from_model(model, params));
  if (!context) {
    fail(cat("libllama cannot make a context of ", params.n_ctx, " tokens: ", take_llama_log()));
  }
  return context;
}

ggml_type cache_type(const std::string& name, const char* flag) {
  for (const ggml_type type :
       {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q5_1,
        GGML_TYPE_Q5_0, GGML_TYPE_Q4_1, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL}) {
    if (name == ggml_type_name(type)) return type;
  }
  refuse(cat(flag, " ", name, " is not a type of a key-value cache"),
         "give f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl");
}

int thread_count(const LocalOptions& options) {
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  if (options.threads == 0) return std::min(cores, kMostThreads);
  refuse_if(options.threads < 0 || options.threads > kMostThreads,
            cat("-t ", options.threads, " is not between 0 and ", kMostThreads),
            "remove -t to use all cores");
  // libllama starts its threads and mrrope as many for scores; libllama ends the process if one of
  // them does not start.
  if (options.threads > cores) Workers trial(2 * options.threads);
  return options.threads;
}

}  // namespace mrrope::engine
