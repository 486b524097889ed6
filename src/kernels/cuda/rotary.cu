// SPDX-License-Identifier: Apache-2.0
// Tier 3, the launcher: checks on the host, then one kernel.
#include <cuda_runtime.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "core/text.h"
#include "kernels/batch.h"
#include "kernels/cuda/rotary_kernel.cuh"
#include "mrrope/error.h"
#include "mrrope/rotary_cuda.h"

namespace mrrope {

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

// Radians as a fraction of a full turn, in units of 2^-64.
std::uint64_t fixed_turns(double theta) {
  const long double turns = theta / (2 * std::numbers::pi_v<long double>);
  const long double scaled = (turns - std::floor(turns)) * 0x1p32L;
  const long double high = std::floor(scaled);
  const auto low = static_cast<std::uint64_t>((scaled - high) * 0x1p32L);
  return (static_cast<std::uint64_t>(high) << 32) + low;
}

}  // namespace

struct CudaRotaryTable::Device {
  int device = 0;
  int pairs = 0;
  Pairing pairing = Pairing::halves;
  double scale = 1;
  Element element = Element::f32;
  std::int64_t first = 0;
  std::int64_t end = 0;
  DeviceArray<std::uint64_t> turns;
  DeviceArray<std::byte> rows;  // null: computed
  DeviceArray<int> bad;
};

CudaRotaryTable::CudaRotaryTable(const RotaryTable& table, Angles angles)
    : device_(std::make_unique<Device>()) {
  Device& d = *device_;
  must(cudaGetDevice(&d.device), "no device");
  d.pairs = table.pairs();
  d.pairing = table.pairing();
  d.scale = table.scale();
  d.element = table.element();
  d.first = table.first();
  d.end = table.end();
  std::vector<std::uint64_t> turns;
  for (const double theta : table.theta()) turns.push_back(fixed_turns(theta));
  d.turns = on_device(turns.data(), turns.size(), "angles of a table");
  const int fine = 0;
  d.bad = on_device(&fine, 1, "a flag");
  if (angles == Angles::stored) {
    const std::size_t bytes =
        std::size_t(d.end - d.first) * 2 * std::size_t(d.pairs) * bytes_of(d.element);
    d.rows = on_device(static_cast<const std::byte*>(table.row(d.first)), bytes, "rows of a table");
  }
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
  throw Error(ErrorKind::usage,
              cat("a position on the device is not in the table of ", device_->first, " to ",
                  device_->end - 1, "; its token was left alone"),
              "make a table for these positions, or one with Angles::computed");
}

namespace {

// Whether 16-byte vectors reach every head.
bool vectors_fit(const Batch& batch, int rotary_dim) {
  const std::int64_t lanes = 16 / std::int64_t(bytes_of(batch.element));
  if (rotary_dim % (2 * lanes) != 0 || batch.head_dim % lanes != 0) return false;
  if (rotary_dim / (2 * lanes) > cuda::kThreads) return false;
  for (const Heads* heads : {&batch.queries, &batch.keys}) {
    if (heads->count == 0) continue;
    for (const Strides* strides : {&heads->from_strides, &heads->to_strides}) {
      if (batch.sequences > 1 && strides->sequence % lanes != 0) return false;
      if (batch.tokens > 1 && strides->token % lanes != 0) return false;
      if (heads->count > 1 && strides->head % lanes != 0) return false;
    }
    for (const void* data : {heads->from, static_cast<const void*>(heads->to)}) {
      if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) return false;
    }
  }
  return true;
}

template <typename T>
void launch(cuda::Work work, const Batch& batch, std::uint32_t tokens, cudaStream_t stream) {
  const std::uint32_t rotary_dim = 2 * work.pairs;
  const bool copies = (batch.queries.count > 0 && batch.queries.from != batch.queries.to) ||
                      (batch.keys.count > 0 && batch.keys.from != batch.keys.to);
  const std::uint32_t tail = copies ? std::uint32_t(batch.head_dim) - rotary_dim : 0;
  const std::uint32_t heads = std::uint32_t(batch.queries.count + batch.keys.count);
  if (!vectors_fit(batch, int(rotary_dim))) {
    work.rows = tokens;
    work.tail = tail;
    const std::uint64_t count = std::uint64_t(tokens) * heads * (work.pairs + tail);
    const std::uint64_t blocks = (count + cuda::kThreads - 1) / cuda::kThreads;
    cuda::rotate_pairs<T>
        <<<unsigned(std::min<std::uint64_t>(blocks, 1 << 16)), cuda::kThreads, 0, stream>>>(work);
    return;
  }
  work.lanes = rotary_dim / (2 * cuda::kLanes<T>);
  work.tail = tail / cuda::kLanes<T>;
  work.slots = (heads + cuda::kHeadsPerThread - 1) / cuda::kHeadsPerThread;
  const std::uint64_t rows = std::uint64_t(tokens) * work.slots;
  const std::uint64_t rows_in_block = cuda::kThreads / work.lanes;
  const std::uint64_t blocks = (rows + rows_in_block - 1) / rows_in_block;
  if (rows > std::numeric_limits<std::uint32_t>::max() || blocks > (1u << 31) - 1) {
    throw Error(ErrorKind::usage, cat(tokens, " tokens of ", heads, " heads in one launch"),
                "rotate fewer tokens at a time");
  }
  work.rows = std::uint32_t(rows);
  const auto go = [&](auto kernel) {
    kernel<<<unsigned(blocks), cuda::kThreads, 0, stream>>>(work);
  };
  if (work.interleaved) {
    go(work.table ? cuda::rotate_vectors<T, Pairing::interleaved, false>
                  : cuda::rotate_vectors<T, Pairing::interleaved, true>);
  } else {
    go(work.table ? cuda::rotate_vectors<T, Pairing::halves, false>
                  : cuda::rotate_vectors<T, Pairing::halves, true>);
  }
}

}  // namespace

void rotate(const CudaRotaryTable& table, const Batch& batch, void* stream) {
  const CudaRotaryTable::Device& d = table.device();
  check_batch(batch, 2 * d.pairs);
  const std::int64_t last = std::numeric_limits<std::int32_t>::max();
  if (!batch.positions && batch.sequences > 0) {
    check_range(batch.first_position, batch.tokens, d.rows ? d.first : -last,
                d.rows ? d.end : last + 1);
  }
  const std::int64_t tokens = batch.sequences * batch.tokens;
  if (tokens > last) {
    throw Error(ErrorKind::usage, cat(tokens, " tokens in one launch"),
                "rotate fewer tokens at a time");
  }
  if (tokens == 0 || (batch.queries.count == 0 && batch.keys.count == 0)) return;
  int device = 0;
  must(cudaGetDevice(&device), "no device");
  if (device != d.device) {
    throw Error(ErrorKind::usage,
                cat("the table lies on device ", d.device, ", and device ", device, " is current"),
                "call cudaSetDevice() first, or make a table for every device");
  }

  cuda::Work work{};
  work.queries = batch.queries;
  work.keys = batch.keys;
  work.positions = batch.positions;
  work.first_position = std::int32_t(batch.first_position);
  work.tokens = std::uint32_t(batch.tokens);
  work.pairs = std::uint32_t(d.pairs);
  work.interleaved = d.pairing == Pairing::interleaved;
  work.turns = d.turns.get();
  work.table = d.rows.get();
  work.table_element = d.element;
  work.table_first = std::int32_t(d.first);
  work.table_end = d.end;
  // Rows hold the scale already; the inverse divides by it instead.
  const double gain = d.rows ? (batch.inverse ? 1 / (d.scale * d.scale) : 1)
                             : (batch.inverse ? 1 / d.scale : d.scale);
  work.cos_gain = float(gain);
  work.sin_gain = float(batch.inverse ? -gain : gain);
  work.bad = d.bad.get();

  const auto s = static_cast<cudaStream_t>(stream);
  switch (batch.element) {
    case Element::f32:
      launch<float>(work, batch, std::uint32_t(tokens), s);
      break;
    case Element::f16:
      launch<__half>(work, batch, std::uint32_t(tokens), s);
      break;
    case Element::bf16:
      launch<__nv_bfloat16>(work, batch, std::uint32_t(tokens), s);
      break;
  }
  must(cudaGetLastError(), "a rotation did not start");
}

}  // namespace mrrope
