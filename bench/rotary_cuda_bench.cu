// SPDX-License-Identifier: Apache-2.0
// Rotation on the GPU compared with a copy of the same bytes and an empty kernel, in one run.
//
//   rotary_cuda_bench [--quick]
//
// Prefill sizes: the speed of the driver's device copy and of a plain copy kernel, in GB/s read and
// written, and the time of the faster one over the time of the rotation. Decode sizes: the time of
// a launch over that of an empty kernel. Everything runs from CUDA graphs whose nodes go through
// buffers larger than the cache; contestants take turns, and ratios are medians over rounds. Each
// kernel is checked against the reference before it is timed.
#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "mrrope/rotary_cuda.h"
#include "rotary_cases.h"

namespace {

using mrrope::CudaRotaryTable;

void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("CUDA failed: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

cudaStream_t stream;

__global__ void empty_kernel() {}

// A graph of `nodes` calls of work(i), ready to be launched.
class Graph {
 public:
  Graph(int nodes, const std::function<void(int)>& work) : nodes_(nodes) {
    cudaGraph_t graph;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < nodes; ++i) work(i);
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&exec_, graph, 0));
    must(cudaGraphDestroy(graph));
    must(cudaGraphUpload(exec_, stream));
    must(cudaEventCreate(&begin_));
    must(cudaEventCreate(&end_));
  }
  ~Graph() {
    cudaGraphExecDestroy(exec_);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Microseconds of one node.
  double time() const {
    must(cudaEventRecord(begin_, stream));
    must(cudaGraphLaunch(exec_, stream));
    must(cudaEventRecord(end_, stream));
    must(cudaEventSynchronize(end_));
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begin_, end_));
    return 1000.0 * double(ms) / nodes_;
  }

 private:
  int nodes_;
  cudaGraphExec_t exec_;
  cudaEvent_t begin_, end_;
};

// Ends the program with 77 where there is no GPU; else says which, and makes the stream.
void start() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no NVIDIA GPU here\n");
    std::exit(77);
  }
  cudaDeviceProp facts{};
  must(cudaGetDeviceProperties(&facts, 0));
  std::printf("%s, %d multiprocessors, %.0f MiB of L2\n", facts.name, facts.multiProcessorCount,
              double(facts.l2CacheSize) / (1 << 20));
  must(cudaStreamCreate(&stream));
}

struct Buffers {
  std::vector<std::byte*> from, to;  // queries, then keys, of one call
  std::size_t bytes = 0;             // of one of them
  std::byte* all_from = nullptr;
  std::byte* all_to = nullptr;
  std::int32_t* positions = nullptr;

  Buffers(const Shape& shape, std::int64_t tokens, Element element, std::size_t total) {
    const std::size_t vectors = std::size_t(tokens) * (shape.queries + shape.keys);
    bytes = vectors * shape.head_dim * mrrope::bytes_of(element);
    const std::size_t count = std::max<std::size_t>(1, std::min<std::size_t>(256, total / bytes));
    must(cudaMalloc(&all_from, bytes * count));
    must(cudaMalloc(&all_to, bytes * count));
    for (std::size_t i = 0; i < count; ++i) {
      from.push_back(all_from + i * bytes);
      to.push_back(all_to + i * bytes);
    }
    std::vector<std::byte> data(2 << 20);
    fill(data.data(), data.size() / mrrope::bytes_of(element), element);
    for (std::size_t at = 0; at < bytes * count; at += data.size()) {
      must(cudaMemcpy(all_from + at, data.data(), std::min(data.size(), bytes * count - at),
                      cudaMemcpyHostToDevice));
    }
    must(cudaMemcpy(all_to, all_from, bytes * count, cudaMemcpyDeviceToDevice));
    std::vector<std::int32_t> p(static_cast<std::size_t>(tokens));
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::int32_t(i);
    must(cudaMalloc(&positions, 4 * p.size()));
    must(cudaMemcpy(positions, p.data(), 4 * p.size(), cudaMemcpyHostToDevice));
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    cudaFree(all_from);
    cudaFree(all_to);
    cudaFree(positions);
  }

  Batch batch(const Shape& shape, std::int64_t tokens, Element element, int i,
              bool in_place) const {
    const std::size_t at = std::size_t(i) % from.size();
    // In place in `to`, so that `from` stays what the check expects.
    return batch_of(shape, tokens, element, positions, in_place ? to[at] : from[at], to[at]);
  }
};

// Some heads of the result against the reference; ends the program if they disagree.
void check(const mrrope::Plan& plan, const std::function<void(const Batch&)>& rotation,
           const Buffers& buffers, const Shape& shape, std::int64_t tokens, Element element) {
  must(cudaMemset(buffers.to[0], 0xff, buffers.bytes));  // no number
  rotation(buffers.batch(shape, tokens, element, 0, false));
  must(cudaStreamSynchronize(stream));
  check(plan, shape, tokens, element, bound_of(element), "mrrope",
        [&](std::size_t at, std::vector<std::byte>& before, std::vector<std::byte>& after) {
          const std::size_t size = before.size();
          must(cudaMemcpy(before.data(), buffers.from[0] + at, size, cudaMemcpyDeviceToHost));
          must(cudaMemcpy(after.data(), buffers.to[0] + at, size, cudaMemcpyDeviceToHost));
        });
}

mrrope::Plan plan_of(const Shape& shape, Pairing pairing) {
  mrrope::Extension e;  // without an attention scale: repeated in place, numbers would grow
  return make_plan(geometry_of(shape, pairing), e);
}

constexpr Element kElements[] = {Element::f16, Element::bf16, Element::f32};

__global__ void copy_kernel(const uint4* from, uint4* to, std::size_t count) {
  const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
  std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {
    const uint4 a = from[i], b = from[i + stride], c = from[i + 2 * stride],
                d = from[i + 3 * stride];
    to[i] = a, to[i + stride] = b, to[i + 2 * stride] = c, to[i + 3 * stride] = d;
  }
  for (; i < count; i += stride) to[i] = from[i];
}

std::function<void(const Batch&)> rotation(const CudaRotaryTable& table) {
  return [&table](const Batch& batch) { rotate(table, batch, stream); };
}

void prefill(std::int64_t tokens, int rounds) {
  std::printf(
      "\n%lld tokens: GB/s read + written; ratio = time of the faster copy over time of the "
      "rotation\n",
      (long long)tokens);
  std::printf("%-6s %-5s %-12s %7s %7s | %9s %6s | %9s %6s | %9s %6s | %9s %6s\n", "heads", "type",
              "pairing", "memcpy", "copy", "computed", "ratio", "f32 rows", "ratio", "own rows",
              "ratio", "in place", "ratio");
  for (const Shape& shape : kShapes) {
    for (const Element element : kElements) {
      const Buffers buffers(shape, tokens, element, std::size_t(2) << 30);
      const int nodes = std::max(4, std::min(256, int((std::size_t(4) << 30) / buffers.bytes)));
      const auto at = [&](int i) { return std::size_t(i) % buffers.from.size(); };
      const Graph memcpys(nodes, [&](int i) {
        must(cudaMemcpyAsync(buffers.to[at(i)], buffers.from[at(i)], buffers.bytes,
                             cudaMemcpyDeviceToDevice, stream));
      });
      const Graph copies(nodes, [&](int i) {
        const std::size_t count = buffers.bytes / 16;
        const std::size_t wanted = (count + 1023) / 1024;
        copy_kernel<<<unsigned(wanted), 256, 0, stream>>>(
            reinterpret_cast<const uint4*>(buffers.from[at(i)]),
            reinterpret_cast<uint4*>(buffers.to[at(i)]), count);
      });
      for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
        const mrrope::Plan plan = plan_of(shape, pairing);
        const mrrope::RotaryTable rows(plan, 0, tokens);
        const mrrope::RotaryTable own(plan, 0, tokens, element);
        const CudaRotaryTable tables[] = {CudaRotaryTable(rows),
                                          CudaRotaryTable(rows, CudaRotaryTable::Angles::stored),
                                          CudaRotaryTable(own, CudaRotaryTable::Angles::stored)};
        for (const CudaRotaryTable& table : tables) {
          check(plan, rotation(table), buffers, shape, tokens, element);
        }
        const auto graph_of = [&](const CudaRotaryTable& table, bool in_place) {
          return std::make_unique<Graph>(nodes, [&, in_place](int i) {
            rotate(table, buffers.batch(shape, tokens, element, i, in_place), stream);
          });
        };
        const std::unique_ptr<Graph> graphs[] = {
            graph_of(tables[0], false), graph_of(tables[1], false), graph_of(tables[2], false),
            graph_of(tables[0], true)};
        std::vector<std::function<double()>> contestants = {[&] { return memcpys.time(); },
                                                            [&] { return copies.time(); }};
        for (const auto& graph : graphs) contestants.push_back([&] { return graph->time(); });
        const auto times = in_turns(rounds, contestants);
        std::vector<double> faster;
        for (int r = 0; r < rounds; ++r) faster.push_back(std::min(times[0][r], times[1][r]));
        const auto speed = [&](int k) { return 2e-3 * double(buffers.bytes) / median(times[k]); };
        std::printf("%2d+%-3d %-5s %-12s %7.0f %7.0f", shape.queries, shape.keys,
                    to_string(element), to_string(pairing), speed(0), speed(1));
        for (int k = 0; k < 4; ++k)
          std::printf(" | %9.0f %6.3f", speed(2 + k), median_ratio(faster, times[2 + k]));
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
}

// Queries and keys of a decoded token come from a kernel that has just written them, so they are in
// the cache: 8 MiB of buffers. Next to it, 256 different ones, which do not all fit at 16 tokens
// and more.
void decode(int rounds) {
  std::printf(
      "\ndecode, in place: microseconds of a launch inside a graph of 256; ratio to an empty "
      "kernel\n");
  std::printf("%-6s %-5s %-12s %6s | %-37s | %-29s\n", "", "", "", "", "from the cache",
              "from 256 buffers");
  std::printf("%-6s %-5s %-12s %6s | %7s %8s %6s %8s %6s | %7s %8s %6s %6s\n", "heads", "type",
              "pairing", "tokens", "empty", "computed", "ratio", "f32 rows", "ratio", "empty",
              "computed", "ratio", "rows");
  const int nodes = 256;
  const Graph empty(nodes, [&](int) { empty_kernel<<<1, 256, 0, stream>>>(); });
  double worst[2] = {};
  for (const Shape& shape : kShapes) {
    for (const Element element : kElements) {
      for (const std::int64_t tokens : {1, 4, 16, 64}) {
        const Buffers pools[] = {{shape, tokens, element, std::size_t(8) << 20},
                                 {shape, tokens, element, std::size_t(1) << 30}};
        for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
          const mrrope::Plan plan = plan_of(shape, pairing);
          const mrrope::RotaryTable rows(plan, 0, tokens);
          const CudaRotaryTable tables[] = {CudaRotaryTable(rows),
                                            CudaRotaryTable(rows, CudaRotaryTable::Angles::stored)};
          std::printf("%2d+%-3d %-5s %-12s %6lld", shape.queries, shape.keys, to_string(element),
                      to_string(pairing), static_cast<long long>(tokens));
          for (int pool = 0; pool < 2; ++pool) {
            std::unique_ptr<Graph> graphs[2];
            for (int k = 0; k < 2; ++k) {
              check(plan, rotation(tables[k]), pools[pool], shape, tokens, element);
              graphs[k] = std::make_unique<Graph>(nodes, [&](int i) {
                rotate(tables[k], pools[pool].batch(shape, tokens, element, i, true), stream);
              });
            }
            const auto times =
                in_turns(rounds, {[&] { return empty.time(); }, [&] { return graphs[0]->time(); },
                                  [&] { return graphs[1]->time(); }});
            const double ratio = median_ratio(times[1], times[0]);
            std::printf(" | %7.2f %8.2f %6.2f", median(times[0]), median(times[1]), ratio);
            if (pool == 0) std::printf(" %8.2f", median(times[2]));
            std::printf(" %6.2f", median_ratio(times[2], times[0]));
            worst[pool] = std::max(worst[pool], ratio);
          }
          std::printf("\n");
          std::fflush(stdout);
        }
      }
    }
  }
  std::printf("largest ratio with computed angles: %.2f from the cache, %.2f from 256 buffers\n",
              worst[0], worst[1]);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  start();
  try {
    prefill(8192, quick ? 5 : 15);
    if (!quick) prefill(65536, 15);
    decode(quick ? 5 : 15);
  } catch (const mrrope::Error& e) {
    std::printf("%s (%s)\n", e.what(), e.hint().c_str());
    return 1;
  }
}
