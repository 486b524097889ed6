// SPDX-License-Identifier: Apache-2.0
// The launcher: checks on the host, then a batch and a shape become one kernel.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kernels/cuda/rotary_kernel.cuh"
#include "kernels/cuda/turn_keys.h"
#include "kernels/rotary_simd.h"
#include "mrrope/error.h"
#include "mrrope/rotary_cuda.h"

namespace mrrope {

namespace cuda {
namespace {

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
  const PairWork work{launch.batch->queries, launch.batch->keys, launch.places(),   launch.angles,
                      launch.tokens,         launch.tail(),      launch.interleaved};
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

}  // namespace
}  // namespace cuda

namespace {

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(status == cudaErrorMemoryAllocation ? ErrorKind::out_of_memory : ErrorKind::failed,
              cat("CUDA: ", what, ": ", cudaGetErrorString(status)),
              "nvidia-smi shows the devices and their memory");
}

struct DeviceFree {
  void operator()(void* memory) const noexcept { cudaFree(memory); }
};
template <typename T>
using DeviceArray = std::unique_ptr<T, DeviceFree>;

template <typename T>
DeviceArray<T> on_device(const T* data, std::size_t count, const char* what) {
  void* memory = nullptr;
  must(cudaMalloc(&memory, std::max<std::size_t>(1, count * sizeof(T))), what);
  DeviceArray<T> array(static_cast<T*>(memory));
  must(cudaMemcpy(memory, data, count * sizeof(T), cudaMemcpyHostToDevice), what);
  return array;
}

// Makes a device current, and the one before it afterwards.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    must(cudaGetDevice(&before_), "no device");
    must(cudaSetDevice(device), "this device cannot be used");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

// Radians as a fraction of a full turn, in units of 2^-64.
std::uint64_t fixed_turns(double theta) {
  const long double turns = theta / (2 * std::numbers::pi_v<long double>);
  const long double scaled = (turns - std::floor(turns)) * 0x1p32L;
  const long double high = std::floor(scaled);
  const auto low = std::uint64_t((scaled - high) * 0x1p32L);
  return (std::uint64_t(high) << 32) + low;
}

}  // namespace

struct CudaRotaryTable::Device {
  int device = 0;
  Pairing pairing = Pairing::halves;
  double scale = 1;
  std::int64_t first = 0;
  std::int64_t end = 0;
  DeviceArray<std::uint64_t> turns;  // per position, then the phases
  DeviceArray<std::byte> rows;       // null: computed
  DeviceArray<int> bad;
  cuda::Angles angles{};  // all of it but the gains
  // Whether kernels may start before the one ahead of them in the stream has ended. Only code made
  // for compute capability 9.0 or later waits by itself; older code may run on such a device too.
  bool early = false;
};

CudaRotaryTable::CudaRotaryTable(const RotaryTable& table, Angles angles)
    : device_(std::make_unique<Device>()) {
  Device& d = *device_;
  must(cudaGetDevice(&d.device), "no device");
  d.pairing = table.pairing();
  d.scale = table.scale();
  d.first = table.first();
  d.end = table.end();
  std::vector<std::uint64_t> turns;
  for (const double theta : table.angles().theta) turns.push_back(fixed_turns(theta));
  bool phases = false;
  for (const double phase : table.angles().phase) {
    turns.push_back(fixed_turns(phase));
    phases = phases || phase != 0;
  }
  d.turns = on_device(turns.data(), turns.size(), "angles of a table");
  const int fine = 0;
  d.bad = on_device(&fine, 1, "a flag");
  cudaFuncAttributes code{};
  must(cudaFuncGetAttributes(&code, cuda::rotate_vectors<float, Pairing::halves, true, cuda::Few>),
       "no kernel for this device");
  d.early = code.ptxVersion >= 90;
  if (angles == Angles::stored) {
    const std::size_t row = 2 * std::size_t(table.pairs()) * bytes_of(table.element());
    // A table without rows has one on the device, which replaces missing ones.
    const std::vector<std::byte> none(row);
    d.rows = d.end == d.first ? on_device(none.data(), row, "rows of a table")
                              : on_device(static_cast<const std::byte*>(table.row(d.first)),
                                          std::size_t(d.end - d.first) * row, "rows of a table");
  }
  d.angles.turns = d.turns.get();
  d.angles.phases = phases ? d.turns.get() + table.pairs() : nullptr;
  d.angles.table = d.rows.get();
  d.angles.pairs = std::uint32_t(table.pairs());
  d.angles.element = table.element();
  d.angles.first = std::int32_t(d.first);
  d.angles.rows = std::uint32_t(d.end - d.first);
  d.angles.bad = d.bad.get();
}

CudaRotaryTable::~CudaRotaryTable() = default;
CudaRotaryTable::CudaRotaryTable(CudaRotaryTable&&) noexcept = default;
CudaRotaryTable& CudaRotaryTable::operator=(CudaRotaryTable&&) noexcept = default;

void CudaRotaryTable::check(void* stream) const {
  const auto s = static_cast<cudaStream_t>(stream);
  int bad = 0;
  must(cudaMemcpyAsync(&bad, device_->bad.get(), sizeof bad, cudaMemcpyDeviceToHost, s), "a flag");
  must(cudaMemsetAsync(device_->bad.get(), 0, sizeof bad, s), "a flag");
  must(cudaStreamSynchronize(s), "a rotation");
  if (bad == 0) return;
  refuse(cat("a position on the device is not in the table of ", device_->first, " to ",
             device_->end - 1, "; its token was left alone"),
         "make a table for these positions, or one with Angles::computed");
}

void rotate(const CudaRotaryTable& table, const Batch& batch, void* stream) {
  const CudaRotaryTable::Device& d = table.device();
  check_batch(batch, 2 * int(d.angles.pairs));
  const std::int64_t last = std::numeric_limits<std::int32_t>::max();
  if (!batch.positions && batch.sequences > 0) {
    check_range(batch.first_position, batch.tokens, d.rows ? d.first : -last,
                d.rows ? d.end : last + 1);
  }
  const std::int64_t tokens = batch.sequences * batch.tokens;
  if (tokens > last) refuse(cat(tokens, " tokens in one launch"), "rotate fewer tokens at a time");
  int device = 0;
  must(cudaGetDevice(&device), "no device");
  if (device != d.device) {
    refuse(cat("the table is on device ", d.device, ", and device ", device, " is current"),
           "call cudaSetDevice() first, or make a table for every device");
  }

  cuda::Launch launch{&batch, d.angles, d.pairing == Pairing::interleaved, std::uint32_t(tokens),
                      d.early};
  if (tokens == 0 || launch.heads() == 0) return;
  // Rows hold the scale already; the inverse divides by it instead.
  const double gain = d.rows ? (batch.inverse ? 1 / (d.scale * d.scale) : 1)
                             : (batch.inverse ? 1 / d.scale : d.scale);
  launch.angles.cos_gain = float(gain);
  launch.angles.sin_gain = float(batch.inverse ? -gain : gain);
  const auto s = static_cast<cudaStream_t>(stream);
  const char* failed = "a rotation did not start";
  switch (batch.element) {
    case Element::f32:
      return must(cuda::launch_best<float>(launch, s), failed);
    case Element::f16:
      return must(cuda::launch_best<__half>(launch, s), failed);
    case Element::bf16:
      return must(cuda::launch_best<__nv_bfloat16>(launch, s), failed);
  }
}

void rotate_and_wait(const RotaryTable& table, std::span<const Batch> batches, int device) {
  const CurrentDevice current(device);
  const CudaRotaryTable copy(table);
  std::vector<DeviceArray<std::int32_t>> positions;
  for (Batch batch : batches) {
    if (batch.positions) {
      check_batch(batch, 2 * table.pairs());  // the number of positions among other things
      positions.push_back(
          on_device(batch.positions, std::size_t(batch.sequences * batch.tokens), "positions"));
      batch.positions = positions.back().get();
    }
    rotate(copy, batch, nullptr);
  }
  copy.check(nullptr);
}

}  // namespace mrrope

void mrrope_turn_keys(const mrrope::RotaryAngles& angles, std::span<const mrrope::Batch> batches,
                      int device) {
  rotate_and_wait(mrrope::RotaryTable(angles, 0, 0), batches, device);
}
