// SPDX-License-Identifier: Apache-2.0
// What the benches of the GPU share: graphs that are timed, buffers larger than the cache, and the
// check against the reference.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/text.h"
#include "kernels/half.h"
#include "mrrope/error.h"
#include "mrrope/rotary_cuda.h"

namespace {

using mrrope::Batch;
using mrrope::CudaRotaryTable;
using mrrope::Element;
using mrrope::Pairing;

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

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

struct Shape {
  int queries, keys, head_dim;
};

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
    // Numbers between 0.25 and 1, so that no value is special.
    std::vector<std::uint16_t> half(1 << 20);
    std::vector<float> single(1 << 19);
    for (std::size_t i = 0; i < half.size(); ++i) {
      const float value = 0.25f + 0.75f * float((i * 2654435761u) >> 8 & 0xffff) / 65536;
      half[i] = element == Element::f16 ? mrrope::f16_from(value) : mrrope::bf16_from(value);
      if (i < single.size()) single[i] = value;
    }
    const void* data = element == Element::f32 ? static_cast<const void*>(single.data())
                                               : static_cast<const void*>(half.data());
    for (std::size_t at = 0; at < bytes * count; at += 2 << 20) {
      must(cudaMemcpy(all_from + at, data, std::min<std::size_t>(2 << 20, bytes * count - at),
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
    Batch b;
    b.element = element;
    b.head_dim = shape.head_dim;
    b.tokens = tokens;
    b.positions = positions;
    const std::size_t at = std::size_t(i) % from.size();
    const std::size_t keys =
        std::size_t(tokens) * shape.queries * shape.head_dim * mrrope::bytes_of(element);
    const auto strides = [&](int heads) {
      return mrrope::token_major(tokens, heads, shape.head_dim);
    };
    // In place in `to`, so that `from` stays what the check expects.
    std::byte* in = in_place ? to[at] : from[at];
    std::byte* out = to[at];
    b.queries = {shape.queries, in, strides(shape.queries), out, strides(shape.queries)};
    b.keys = {shape.keys, in + keys, strides(shape.keys), out + keys, strides(shape.keys)};
    return b;
  }
};

double number(const std::vector<std::byte>& data, std::size_t i, Element element) {
  if (element == Element::f32) {
    float value;
    std::memcpy(&value, &data[4 * i], 4);
    return double(value);
  }
  std::uint16_t bits;
  std::memcpy(&bits, &data[2 * i], 2);
  return double(element == Element::f16 ? mrrope::float_from_f16(bits)
                                        : mrrope::float_from_bf16(bits));
}

// Some heads of the result against the reference; ends the program if they disagree.
void check(const mrrope::Plan& plan, const std::function<void(const Batch&)>& rotation,
           const Buffers& buffers, const Shape& shape, std::int64_t tokens, Element element) {
  must(cudaMemset(buffers.to[0], 0xff, buffers.bytes));  // no number
  rotation(buffers.batch(shape, tokens, element, 0, false));
  must(cudaStreamSynchronize(stream));
  const std::size_t head_bytes = shape.head_dim * mrrope::bytes_of(element);
  const double bound = element == Element::f32 ? 2e-6 : element == Element::f16 ? 2e-3 : 1.5e-2;
  for (const std::int64_t token : {std::int64_t(0), tokens / 3, tokens - 1}) {
    for (const int side : {0, 1}) {
      const int heads = side == 0 ? shape.queries : shape.keys;
      const std::size_t at = (side == 0 ? 0 : std::size_t(tokens) * shape.queries * head_bytes) +
                             (std::size_t(token) * heads + heads - 1) * head_bytes;
      std::vector<std::byte> before(head_bytes), after(head_bytes);
      must(cudaMemcpy(before.data(), buffers.from[0] + at, head_bytes, cudaMemcpyDeviceToHost));
      must(cudaMemcpy(after.data(), buffers.to[0] + at, head_bytes, cudaMemcpyDeviceToHost));
      std::vector<double> x(shape.head_dim);
      for (int i = 0; i < shape.head_dim; ++i) x[i] = number(before, i, element);
      mrrope::rotate_reference(plan, double(token), x);
      for (int i = 0; i < shape.head_dim; ++i) {
        const double error = std::abs(x[i] - number(after, i, element));
        if (!(error <= bound)) {
          std::printf("WRONG: token %lld element %d: off by %g\n", (long long)token, i, error);
          std::exit(1);
        }
      }
    }
  }
}

mrrope::Plan plan_of(const Shape& shape, Pairing pairing) {
  mrrope::Extension e;  // without an attention scale: repeated in place, numbers would grow
  return make_plan(
      {.rotary_dim = shape.head_dim, .base = 5e5, .train_length = 8192, .pairing = pairing}, e);
}

constexpr Shape kShapes[] = {{32, 8, 128}, {9, 3, 64}};
constexpr Element kElements[] = {Element::f16, Element::bf16, Element::f32};

}  // namespace
