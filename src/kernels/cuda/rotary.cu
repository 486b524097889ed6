// SPDX-License-Identifier: Apache-2.0
// Tier 3, the launcher: checks on the host, then one kernel.
#include <cuda_runtime.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kernels/batch.h"
#include "kernels/cuda/rotary_launch.cuh"
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
  int pairs = 0;
  Pairing pairing = Pairing::halves;
  double scale = 1;
  Element element = Element::f32;
  std::int64_t first = 0;
  std::int64_t end = 0;
  DeviceArray<std::uint64_t> turns;  // per position, then, unless all are 0, the phases
  bool phases = false;
  DeviceArray<std::byte> rows;  // null: computed
  DeviceArray<int> bad;
  // Whether kernels may start before the one ahead of them in the stream has ended. Only code made
  // for compute capability 9.0 or later waits by itself; older code may run on such a device too.
  bool early = false;
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
  for (const double theta : table.angles().theta) turns.push_back(fixed_turns(theta));
  for (const double phase : table.angles().phase) {
    turns.push_back(fixed_turns(phase));
    d.phases = d.phases || phase != 0;
  }
  d.turns = on_device(turns.data(), turns.size(), "angles of a table");
  const int fine = 0;
  d.bad = on_device(&fine, 1, "a flag");
  cudaFuncAttributes code{};
  must(cudaFuncGetAttributes(&code, cuda::rotate_vectors<float, Pairing::halves, true, cuda::Few>),
       "no kernel for this device");
  d.early = code.ptxVersion >= 90;
  if (angles == Angles::stored) {
    const std::size_t row = 2 * std::size_t(d.pairs) * bytes_of(d.element);
    // A table without rows has one on the device, which replaces missing ones.
    const std::vector<std::byte> none(row);
    d.rows = d.end == d.first ? on_device(none.data(), row, "rows of a table")
                              : on_device(static_cast<const std::byte*>(table.row(d.first)),
                                          std::size_t(d.end - d.first) * row, "rows of a table");
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
  refuse(cat("a position on the device is not in the table of ", device_->first, " to ",
             device_->end - 1, "; its token was left alone"),
         "make a table for these positions, or one with Angles::computed");
}

cuda::Launch cuda::checked_launch(const CudaRotaryTable& table, const Batch& batch) {
  const CudaRotaryTable::Device& d = table.device();
  check_batch(batch, 2 * d.pairs);
  const std::int64_t last = std::numeric_limits<std::int32_t>::max();
  if (!batch.positions && batch.sequences > 0) {
    check_range(batch.first_position, batch.tokens, d.rows ? d.first : -last,
                d.rows ? d.end : last + 1);
  }
  const std::int64_t tokens = batch.sequences * batch.tokens;
  if (tokens > last) {
    refuse(cat(tokens, " tokens in one launch"), "rotate fewer tokens at a time");
  }
  int device = 0;
  must(cudaGetDevice(&device), "no device");
  if (device != d.device) {
    refuse(cat("the table is on device ", d.device, ", and device ", device, " is current"),
           "call cudaSetDevice() first, or make a table for every device");
  }

  cuda::Angles angles{};
  angles.turns = d.turns.get();
  angles.phases = d.phases ? d.turns.get() + d.pairs : nullptr;
  angles.table = d.rows.get();
  angles.pairs = std::uint32_t(d.pairs);
  angles.element = d.element;
  angles.first = std::int32_t(d.first);
  angles.rows = std::uint32_t(d.end - d.first);
  // Rows hold the scale already; the inverse divides by it instead.
  const double gain = d.rows ? (batch.inverse ? 1 / (d.scale * d.scale) : 1)
                             : (batch.inverse ? 1 / d.scale : d.scale);
  angles.cos_gain = float(gain);
  angles.sin_gain = float(batch.inverse ? -gain : gain);
  angles.bad = d.bad.get();
  return {&batch, angles, d.pairing == Pairing::interleaved, std::uint32_t(tokens), d.early};
}

void rotate(const CudaRotaryTable& table, const Batch& batch, void* stream) {
  const cuda::Launch launch = cuda::checked_launch(table, batch);
  if (launch.tokens == 0 || launch.heads() == 0) return;
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
