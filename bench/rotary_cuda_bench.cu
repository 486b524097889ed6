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
#include "rotary_cuda_bench.h"

namespace {

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
        std::vector<double> times[6], ratios[4];
        for (int r = 0; r <= rounds; ++r) {  // the first round warms up
          double t[6] = {memcpys.time(), copies.time()};
          for (int k = 0; k < 4; ++k) t[2 + k] = graphs[k]->time();
          if (r == 0) continue;
          for (int k = 0; k < 6; ++k) times[k].push_back(t[k]);
          for (int k = 0; k < 4; ++k) ratios[k].push_back(std::min(t[0], t[1]) / t[2 + k]);
        }
        const auto speed = [&](int k) { return 2e-3 * double(buffers.bytes) / median(times[k]); };
        std::printf("%2d+%-3d %-5s %-12s %7.0f %7.0f", shape.queries, shape.keys,
                    to_string(element), to_string(pairing), speed(0), speed(1));
        for (int k = 0; k < 4; ++k) std::printf(" | %9.0f %6.3f", speed(2 + k), median(ratios[k]));
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
}

// Queries and keys of a decoded token come from a kernel that has just written them, so they are in
// the cache: 8 MiB of buffers. Next to it, 256 different ones, which do not all fit at 16 tokens and
// more.
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
            std::vector<double> times[3], ratios[2];
            for (int r = 0; r <= rounds; ++r) {
              const double t[3] = {empty.time(), graphs[0]->time(), graphs[1]->time()};
              if (r == 0) continue;
              for (int k = 0; k < 3; ++k) times[k].push_back(t[k]);
              for (int k = 0; k < 2; ++k) ratios[k].push_back(t[1 + k] / t[0]);
            }
            std::printf(" | %7.2f %8.2f %6.2f", median(times[0]), median(times[1]),
                        median(ratios[0]));
            if (pool == 0) std::printf(" %8.2f", median(times[2]));
            std::printf(" %6.2f", median(ratios[1]));
            worst[pool] = std::max(worst[pool], median(ratios[0]));
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
