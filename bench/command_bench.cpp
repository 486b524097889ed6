// SPDX-License-Identifier: Apache-2.0
// The whole process, as a user waits for it:
//   plan     `mrrope plan` with several methods; wanted: under 10 ms
//   inspect  `mrrope inspect` of a sparse GGUF of 100 GB with 2000 tensors; wanted: under 50 ms and
//            under 64 MiB of memory (counter peak_MiB)
// and, for comparison, the same library calls inside one process.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mrrope/model.h"
#include "mrrope/plan.h"
#include "support/gguf_writer.h"

extern char** environ;

namespace {

// Runs the command with its output thrown away; returns its peak memory in KiB.
long run(const std::vector<std::string>& arguments, benchmark::State& state) {
  std::vector<char*> argv = {const_cast<char*>(MRROPE_COMMAND)};
  for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  if (status != 0) state.SkipWithError("the command failed");
  return usage.ru_maxrss;
}

void plan_process(benchmark::State& state) {
  for (auto _ : state) {
    run({"plan", "--rotary-dim", "128", "--rope-freq-base", "500000", "--train-ctx", "8192",
         "--methods", "yarn,uni,pro", "--ctx", "128k"},
        state);
  }
}
BENCHMARK(plan_process)->Unit(benchmark::kMillisecond)->UseRealTime();

// 100 GB that take a few MiB of disk, with a vocabulary of 150 000 words in the header.
std::string sparse_model() {
  constexpr std::uint64_t kColumns = 8192;
  constexpr std::uint64_t kRows = 3052;  // 50 MB of F16 each
  std::vector<std::string> words;
  for (int i = 0; i < 150000; ++i) words.push_back("word" + std::to_string(i));
  mrrope::test::GgufWriter file;
  file.text("general.architecture", "llama")
      .u32("llama.block_count", 80)
      .u32("llama.context_length", 8192)
      .u32("llama.embedding_length", 8192)
      .u32("llama.attention.head_count", 64)
      .u32("llama.attention.head_count_kv", 8)
      .u32("llama.rope.dimension_count", 128)
      .f32("llama.rope.freq_base", 500000)
      .strings("tokenizer.ggml.tokens", words);
  std::uint64_t offset = 0;
  for (int i = 0; i < 2000; ++i, offset += kColumns * kRows * 2) {
    file.tensor_at("blk." + std::to_string(i) + ".weight", {kColumns, kRows}, 1, offset);
  }
  const std::string bytes = file.bytes();
  const auto path = std::filesystem::temp_directory_path() /
                    ("mrrope-bench-" + std::to_string(getpid()) + ".gguf");
  std::ofstream(path, std::ios::binary) << bytes;
  std::filesystem::resize_file(path, (bytes.size() + 31) / 32 * 32 + offset);
  return path.string();
}

struct SparseModel {
  std::string path = sparse_model();
  ~SparseModel() { std::filesystem::remove(path); }
};

const std::string& model_path() {
  static const SparseModel model;
  return model.path;
}

void inspect_process(benchmark::State& state) {
  const std::string& path = model_path();
  long peak = 0;
  for (auto _ : state) peak = std::max(peak, run({"inspect", path, "--ctx", "128k"}, state));
  state.counters["file_GB"] = double(std::filesystem::file_size(path)) / 1e9;
  state.counters["peak_MiB"] = double(peak) / 1024;
}
BENCHMARK(inspect_process)->Unit(benchmark::kMillisecond)->UseRealTime();

void read_model_call(benchmark::State& state) {
  const std::string& path = model_path();
  for (auto _ : state) benchmark::DoNotOptimize(mrrope::read_model(path));
}
BENCHMARK(read_model_call)->Unit(benchmark::kMillisecond);

void make_plan_call(benchmark::State& state) {
  const mrrope::Geometry g{.rotary_dim = 128, .base = 5e5, .train_length = 8192};
  for (auto _ : state)
    benchmark::DoNotOptimize(mrrope::make_plan(g, {.method = "pro", .scale = 16}));
}
BENCHMARK(make_plan_call)->Unit(benchmark::kMicrosecond);

}  // namespace
