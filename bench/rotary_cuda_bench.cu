// SPDX-License-Identifier: Apache-2.0
// Rotation on the GPU beside a copy of the same bytes and an empty kernel, in one run.
//
//   rotary_cuda_bench [--quick]
//
// Prefill sizes: the speed of the driver's device copy and of a plain copy kernel, in GB/s read and
// written, and the time of the faster one over the time of the rotation. Decode sizes: the time of
// a launch over that of an empty kernel. Everything runs out of CUDA graphs whose nodes go through
// buffers larger than the cache; contestants take turns, and ratios are medians over rounds. Each
// kernel is held against the reference before it is timed.
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

void decode(int rounds) {
  std::printf(
      "\ndecode: microseconds of a launch inside a graph of 256; ratio to an empty kernel\n");
  std::printf("%-6s %-5s %-12s %6s | %7s | %9s %6s | %9s %6s\n", "heads", "type", "pairing",
              "tokens", "empty", "computed", "ratio", "f32 rows", "ratio");
  const int nodes = 256;
  const Graph empty(nodes, [&](int) { empty_kernel<<<1, 256, 0, stream>>>(); });
  double worst = 0;
  for (const Shape& shape : kShapes) {
    for (const Element element : kElements) {
      for (const std::int64_t tokens : {1, 4, 16, 64}) {
        const Buffers buffers(shape, tokens, element, std::size_t(64) << 20);
        for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
          const mrrope::Plan plan = plan_of(shape, pairing);
          const mrrope::RotaryTable rows(plan, 0, tokens);
          const CudaRotaryTable tables[] = {CudaRotaryTable(rows),
                                            CudaRotaryTable(rows, CudaRotaryTable::Angles::stored)};
          std::unique_ptr<Graph> graphs[2];
          for (int k = 0; k < 2; ++k) {
            check(plan, rotation(tables[k]), buffers, shape, tokens, element);
            graphs[k] = std::make_unique<Graph>(nodes, [&](int i) {
              rotate(tables[k], buffers.batch(shape, tokens, element, i, true), stream);
            });
          }
          std::vector<double> times[3], ratios[2];
          for (int r = 0; r <= rounds; ++r) {
            const double t[3] = {empty.time(), graphs[0]->time(), graphs[1]->time()};
            if (r == 0) continue;
            for (int k = 0; k < 3; ++k) times[k].push_back(t[k]);
            for (int k = 0; k < 2; ++k) ratios[k].push_back(t[1 + k] / t[0]);
          }
          std::printf("%2d+%-2d  %-5s %-12s %6lld | %7.2f", shape.queries, shape.keys,
                      to_string(element), to_string(pairing), (long long)tokens, median(times[0]));
          for (int k = 0; k < 2; ++k) {
            std::printf(" | %9.2f %6.2f", median(times[1 + k]), median(ratios[k]));
            worst = std::max(worst, median(ratios[k]));
          }
          std::printf("\n");
          std::fflush(stdout);
        }
      }
    }
  }
  std::printf("largest ratio: %.2f\n", worst);
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
