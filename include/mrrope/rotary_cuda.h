// SPDX-License-Identifier: Apache-2.0
// Rotation on NVIDIA GPUs, in the library mrrope_cuda. A stream is a cudaStream_t; every pointer of
// a batch, its positions included, is memory of the device.
#pragma once

#include <memory>
#include <span>

#include "mrrope/rotary.h"

namespace mrrope {

// A table on the device that was current when it was made.
class CudaRotaryTable {
 public:
  enum class Angles {
    // Cosines and sines are made where they are used: no memory is read for them, any position is
    // allowed. docs/design/numerics.md has the error.
    computed,
    // The rows of the table, copied to the device.
    stored,
  };
  // Throws Error: failed if CUDA does, out_of_memory if the rows do not fit.
  explicit CudaRotaryTable(const RotaryTable& table, Angles angles = Angles::computed);
  ~CudaRotaryTable();
  CudaRotaryTable(CudaRotaryTable&&) noexcept;
  CudaRotaryTable& operator=(CudaRotaryTable&&) noexcept;

  // The host cannot see positions that are on the device: a token whose position is outside the
  // stored rows is not written. This waits for the stream and throws Error (usage) if a launch
  // since the last call met one.
  void check(void* stream) const;

  struct Device;
  const Device& device() const noexcept { return *device_; }

 private:
  std::unique_ptr<Device> device_;
};

// Rotates queries and keys in one launch. Throws as the rotate() of the CPU does, before the
// launch; allocates nothing, waits for nothing, and may be captured into a CUDA graph. The table
// must outlive the work.
void rotate(const CudaRotaryTable& table, const Batch& batch, void* stream);

// Several batches in one call, for callers that keep nothing on the device: angles are computed,
// positions are in the memory of the host, and the default stream of the device has done its work
// when this returns. The current device stays what it was.
void rotate_and_wait(const RotaryTable& table, std::span<const Batch> batches, int device);

}  // namespace mrrope
