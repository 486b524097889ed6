// SPDX-License-Identifier: Apache-2.0
// Launch shapes side by side, to choose those of rotary_launch.cuh: every shape at decode and
// prefill sizes, checked against the reference before it is timed.
//
//   nvcc -DMRROPE_SCAN_F32=0|1 ...   one type of elements per program, f16 or f32
//   rotary_cuda_scan
//
// A shape is written heads/bytes/threads/blocks, as in Shape<>, with an s where the kernel starts
// only after the one before it has ended.
#include "kernels/cuda/rotary_launch.cuh"
#include "rotary_cuda_bench.h"

namespace {

using mrrope::cuda::Launch;
template <int heads, int bytes, int threads, int blocks>
using S = mrrope::cuda::Shape<heads, bytes, threads, blocks>;

#if MRROPE_SCAN_F32
using T = float;
constexpr Element kElement = Element::f32;
#else
using T = __half;
constexpr Element kElement = Element::f16;
#endif

struct Candidate {
  std::string name;
  bool few;     // tried at decode sizes
  bool many;    // and at prefill sizes
  bool strict;  // starts after the kernel before it has ended
  cudaError_t (*launch)(const Launch&, cudaStream_t);
};

template <typename X>
Candidate candidate(bool few, bool many, bool strict = false) {
  return {
      mrrope::cat(X::kHeads, "/", X::kBytes, "/", X::kThreads, "/", X::kBlocks, strict ? "s" : ""),
      few, many, strict, &mrrope::cuda::launch_vectors<T, X>};
}

const std::vector<Candidate> kCandidates = {
#if !MRROPE_SCAN_F32  // a pair of neighbours in f32 takes 8 bytes
    candidate<S<1, 4, 128, 8>>(true, false),
#endif
    candidate<S<1, 8, 64, 8>>(true, false),         candidate<S<1, 8, 128, 8>>(true, false),
    candidate<S<1, 8, 128, 8>>(true, false, true),  candidate<S<1, 8, 256, 4>>(true, false),
    candidate<S<1, 16, 64, 16>>(true, true),        candidate<S<2, 16, 128, 8>>(true, true),
    candidate<S<4, 16, 64, 12>>(false, true),       candidate<S<4, 16, 128, 6>>(true, true),
    candidate<S<4, 16, 128, 6>>(false, true, true), candidate<S<4, 16, 128, 5>>(false, true),
    candidate<S<8, 16, 128, 4>>(false, true),
};

void scan(std::int64_t tokens, bool many) {
  if (many) {
    std::printf("\n%lld tokens, out of place: time of a device copy over time of the rotation\n",
                static_cast<long long>(tokens));
  } else {
    std::printf("\n%lld tokens, in place: time of a launch over time of an empty kernel\n",
                static_cast<long long>(tokens));
  }
  std::printf("%-6s %-5s %-12s %-8s", "heads", "type", "pairing", "angles");
  for (const Candidate& c : kCandidates) {
    if (many ? c.many : c.few) std::printf(" %12s", c.name.c_str());
  }
  std::printf("\n");
  for (const Shape& shape : kShapes) {
    const Buffers buffers(shape, tokens, kElement, std::size_t(many ? 1024 : 64) << 20);
    const int nodes =
        many ? std::max(4, std::min(128, int((std::size_t(2) << 30) / buffers.bytes))) : 256;
    const auto at = [&](int i) { return std::size_t(i) % buffers.from.size(); };
    const Graph base(nodes, [&](int i) {
      if (many) {
        must(cudaMemcpyAsync(buffers.to[at(i)], buffers.from[at(i)], buffers.bytes,
                             cudaMemcpyDeviceToDevice, stream));
      } else {
        empty_kernel<<<1, 256, 0, stream>>>();
      }
    });
    for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
      const mrrope::Plan plan = plan_of(shape, pairing);
      const mrrope::RotaryTable rows(plan, 0, tokens);
      for (const auto angles :
           {CudaRotaryTable::Angles::computed, CudaRotaryTable::Angles::stored}) {
        const CudaRotaryTable table(rows, angles);
        std::vector<std::unique_ptr<Graph>> graphs;
        for (const Candidate& c : kCandidates) {
          if (!(many ? c.many : c.few)) continue;
          const auto run = [&](const Batch& batch) {
            Launch launch = mrrope::cuda::checked_launch(table, batch);
            if (c.strict) launch.early = false;
            must(c.launch(launch, stream));
          };
          check(plan, run, buffers, shape, tokens, kElement);
          graphs.push_back(std::make_unique<Graph>(
              nodes, [&](int i) { run(buffers.batch(shape, tokens, kElement, i, !many)); }));
        }
        std::vector<std::vector<double>> ratios(graphs.size());
        for (int r = 0; r <= 9; ++r) {
          const double empty = base.time();
          for (std::size_t k = 0; k < graphs.size(); ++k) {
            const double time = graphs[k]->time();
            if (r > 0) ratios[k].push_back(many ? empty / time : time / empty);
          }
        }
        std::printf("%2d+%-3d %-5s %-12s %-8s", shape.queries, shape.keys, to_string(kElement),
                    to_string(pairing),
                    angles == CudaRotaryTable::Angles::computed ? "computed" : "stored");
        for (const auto& r : ratios) std::printf(" %12.3f", median(r));
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace

int main() {
  start();
  try {
    for (const std::int64_t tokens : {1, 16, 64, 256, 1024}) scan(tokens, false);
    for (const std::int64_t tokens : {1024, 8192, 65536}) scan(tokens, true);
  } catch (const mrrope::Error& e) {
    std::printf("%s (%s)\n", e.what(), e.hint().c_str());
    return 1;
  }
}
