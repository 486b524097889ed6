// SPDX-License-Identifier: Apache-2.0
// Tier 3, the launcher's inside: a checked batch and a shape become one kernel.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cuda/rotary_kernel.cuh"
#include "mrrope/rotary_cuda.h"

namespace mrrope::cuda {

// What a launch needs to know of a table and a batch that passed the checks.
struct Launch {
  const Batch* batch;
  Angles angles;
  bool interleaved;
  std::uint32_t tokens;  // of all sequences
  bool early;            // the kernels wait by themselves for what came before

  std::uint32_t heads() const {
    return std::uint32_t(batch->queries.count) + std::uint32_t(batch->keys.count);
  }
  // Elements past rotary_dim; in place they need not be moved.
  std::uint32_t tail() const {
    const auto copies = [](const Heads& heads) {
      return heads.count > 0 && heads.from != heads.to;
    };
    if (!copies(batch->queries) && !copies(batch->keys)) return 0;
    return std::uint32_t(batch->head_dim) - 2 * angles.pairs;
  }
  Places places() const {
    return {batch->positions, std::int32_t(batch->first_position), std::uint32_t(batch->tokens)};
  }
};

// Throws Error (usage) as rotate() does; `launch.tokens` may be 0.
Launch checked_launch(const CudaRotaryTable& table, const Batch& batch);

// Whether vectors of 16 bytes reach every head, and rows of them stay within a block. Narrower
// vectors then do too.
template <typename S>
bool vectors_fit(const Launch& launch) {
  const Batch& batch = *launch.batch;
  const std::int64_t lanes = 16 / std::int64_t(bytes_of(batch.element));
  const std::int64_t rotary_dim = 2 * std::int64_t(launch.angles.pairs);
  if (rotary_dim % (2 * lanes) != 0 || batch.head_dim % lanes != 0) return false;
  if (rotary_dim * std::int64_t(bytes_of(batch.element)) / (2 * S::kBytes) > S::kThreads) {
    return false;
  }
  const auto fits = [&](std::int64_t stride, std::int64_t size) {
    // In vectors of 4 bytes, the narrowest, a stride must be an int.
    return size <= 1 || (stride % lanes == 0 && std::abs(stride) < (std::int64_t(1) << 30));
  };
  for (const Heads* heads : {&batch.queries, &batch.keys}) {
    if (heads->count == 0) continue;
    for (const Strides* strides : {&heads->from_strides, &heads->to_strides}) {
      if (!fits(strides->sequence, batch.sequences) || !fits(strides->token, batch.tokens) ||
          !fits(strides->head, heads->count)) {
        return false;
      }
    }
    for (const void* data : {heads->from, static_cast<const void*>(heads->to)}) {
      if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) return false;
    }
  }
  return launch.tokens <= std::numeric_limits<std::int32_t>::max() / launch.heads();
}

// n / d == (high word of n * factor, plus n) >> shift for n below 2^31.
inline Divisor divisor(std::uint32_t d) {
  std::uint32_t shift = 0;
  while ((std::uint64_t(1) << shift) < d) ++shift;
  const std::uint64_t factor = (std::uint64_t(1) << 32) * ((std::uint64_t(1) << shift) - d) / d + 1;
  return {std::uint32_t(factor), shift};
}

// vectors_fit<S>() holds.
template <typename T, typename S>
cudaError_t launch_vectors(const Launch& launch, cudaStream_t stream) {
  constexpr std::int64_t kCount = S::kBytes / sizeof(T);
  const Batch& batch = *launch.batch;
  VectorWork work{};
  work.places = launch.places();
  work.angles = launch.angles;
  work.heads = launch.heads();
  work.queries = std::uint32_t(batch.queries.count);
  work.slots = (work.heads + S::kHeads - 1) / S::kHeads;
  work.by_slots = divisor(work.slots);
  work.rows = launch.tokens * work.slots;
  work.tail = launch.tail() / std::uint32_t(kCount);
  const auto in_vectors = [&](const Strides& strides, int heads) {
    const auto one = [&](std::int64_t stride, std::int64_t size) {
      return size > 1 ? std::int32_t(stride / kCount) : 0;
    };
    return VectorStrides{one(strides.sequence, batch.sequences), one(strides.token, batch.tokens),
                         one(strides.head, heads)};
  };
  for (const int side : {0, 1}) {
    const Heads& heads = side == 0 ? batch.queries : batch.keys;
    if (heads.count == 0) continue;
    work.from[side] = heads.from;
    work.to[side] = heads.to;
    work.from_strides[side] = in_vectors(heads.from_strides, heads.count);
    work.to_strides[side] = in_vectors(heads.to_strides, heads.count);
  }

  const auto lanes = std::uint32_t(launch.angles.pairs / kCount);
  const std::uint32_t most = std::max<std::uint32_t>(1, S::kThreads / lanes);
  const std::uint32_t high = std::min(most, work.rows);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3((work.rows + high - 1) / high);
  config.blockDim = dim3(lanes, high);
  config.stream = stream;
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  if (launch.early) {
    config.attrs = &early;
    config.numAttrs = 1;
  }
  const bool computed = !launch.angles.table;
  if (launch.interleaved) {
    return cudaLaunchKernelEx(&config,
                              computed ? rotate_vectors<T, Pairing::interleaved, true, S>
                                       : rotate_vectors<T, Pairing::interleaved, false, S>,
                              work);
  }
  return cudaLaunchKernelEx(&config,
                            computed ? rotate_vectors<T, Pairing::halves, true, S>
                                     : rotate_vectors<T, Pairing::halves, false, S>,
                            work);
}

template <typename T>
cudaError_t launch_pairs(const Launch& launch, cudaStream_t stream) {
  const Batch& batch = *launch.batch;
  PairWork work{};
  work.queries = batch.queries;
  work.keys = batch.keys;
  work.places = launch.places();
  work.angles = launch.angles;
  work.tokens = launch.tokens;
  work.tail = launch.tail();
  work.interleaved = launch.interleaved;
  const std::uint64_t count =
      std::uint64_t(launch.tokens) * launch.heads() * (launch.angles.pairs + work.tail);
  const std::uint64_t blocks = (count + kPairThreads - 1) / kPairThreads;
  rotate_pairs<T>
      <<<unsigned(std::min<std::uint64_t>(blocks, 1 << 16)), kPairThreads, 0, stream>>>(work);
  return cudaGetLastError();
}

// Chosen by a scan of such shapes on an H200, by elements and their size. Few: as many threads
// as the chip holds, each with little to do. Many: several loads are in flight in each thread
// before it uses the first, and its cosines serve several heads. Roomy: the same with the registers
// that two runs of computed angles need.
using Few = Shape<1, 8, 128, 8>;
using Some = Shape<1, 16, 64, 16>;
template <typename T>
using Many = std::conditional_t<sizeof(T) == 4, Shape<2, 16, 128, 8>, Shape<4, 16, 128, 6>>;
using Roomy = Shape<4, 16, 128, 5>;

template <typename T>
cudaError_t launch_best(const Launch& launch, cudaStream_t stream) {
  const std::int64_t elements =
      std::int64_t(launch.tokens) * launch.heads() * 2 * launch.angles.pairs;
  if (elements <= 1 << 19 && vectors_fit<Few>(launch)) {
    return launch_vectors<T, Few>(launch, stream);
  }
  if constexpr (sizeof(T) == 2) {
    const bool two_runs = launch.interleaved && !launch.angles.table;
    if (elements <= (two_runs ? 1 << 23 : 1 << 22) && vectors_fit<Some>(launch)) {
      return launch_vectors<T, Some>(launch, stream);
    }
    if (two_runs && vectors_fit<Roomy>(launch)) return launch_vectors<T, Roomy>(launch, stream);
  }
  if (vectors_fit<Many<T>>(launch)) return launch_vectors<T, Many<T>>(launch, stream);
  return launch_pairs<T>(launch, stream);
}

}  // namespace mrrope::cuda
