// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels against the reference, on whatever GPU is present. A separate program, without
// gtest, so that a bare GPU machine can build it. Exit code 77: no GPU, nothing was tested.
#include "mrrope/rotary_cuda.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "models/rotary_trial.h"
#include "mrrope/error.h"

namespace mrrope::test {
namespace {

int failures = 0;
int checks = 0;

void expect(bool good, const std::string& what) {
  ++checks;
  if (good) return;
  ++failures;
  if (failures <= 20) std::printf("FAILED: %s\n", what.c_str());
}

void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("CUDA failed: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

// A copy of host memory on the device at the same alignment, brought back by back().
class OnDevice {
 public:
  explicit OnDevice(Numbers& numbers) : numbers_(numbers) {
    shift_ = reinterpret_cast<std::uintptr_t>(numbers.data()) % 64;
    must(cudaMalloc(&memory_, numbers.bytes() + 64));
    must(cudaMemcpy(data(), numbers.data(), numbers.bytes(), cudaMemcpyHostToDevice));
  }
  ~OnDevice() { cudaFree(memory_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_) + shift_; }
  void back() {
    must(cudaMemcpy(numbers_.data(), data(), numbers_.bytes(), cudaMemcpyDeviceToHost));
  }

 private:
  Numbers& numbers_;
  void* memory_ = nullptr;
  std::size_t shift_ = 0;
};

// The trial's numbers on the device, and its batch with them.
struct TrialOnDevice {
  TrialOnDevice(Trial& trial, const TrialSetup& setup)
      : from_q(trial.from[0]),
        from_k(trial.from[1]),
        to_q(trial.to[0]),
        to_k(trial.to[1]),
        batch(trial.batch) {
    batch.queries.from = setup.in_place ? to_q.data() : from_q.data();
    batch.queries.to = to_q.data();
    batch.keys.from = setup.in_place ? to_k.data() : from_k.data();
    batch.keys.to = to_k.data();
  }
  void back() {
    to_q.back();
    to_k.back();
  }
  OnDevice from_q, from_k, to_q, to_k;
  Batch batch;
};

// What `work` puts on the stream becomes a graph, which is launched that many times.
void replay(cudaStream_t stream, int times, const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  work();
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < times; ++i) must(cudaGraphLaunch(exec, stream));
  must(cudaStreamSynchronize(stream));
  must(cudaGraphExecDestroy(exec));
  must(cudaGraphDestroy(graph));
}

// Rotates the trial's batch on the device and brings the result back; with `times`, through a
// captured graph that is launched that many times.
void on_device(const CudaRotaryTable& table, Trial& trial, const TrialSetup& setup, int times = 0) {
  TrialOnDevice there(trial, setup);
  Batch& batch = there.batch;
  std::int32_t* positions = nullptr;
  if (batch.positions) {
    const std::size_t bytes = setup.positions.size() * sizeof(std::int32_t);
    must(cudaMalloc(&positions, bytes));
    must(cudaMemcpy(positions, batch.positions, bytes, cudaMemcpyHostToDevice));
    batch.positions = positions;
  }
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream));
  if (times == 0) {
    rotate(table, batch, stream);
  } else {
    replay(stream, times, [&] { rotate(table, batch, stream); });
  }
  must(cudaStreamSynchronize(stream));
  there.back();
  must(cudaStreamDestroy(stream));
  cudaFree(positions);
}

// What a trial is judged by, see there.
struct Wanted {
  Pairing pairing;
  int rotary_dim;
  double angles;
  Trial::Unit unit;
};

void judge(const char* what, const Trial& trial, const Wanted& wanted, double* worst = nullptr) {
  const std::string complaint =
      trial.judge(wanted.pairing, wanted.rotary_dim, wanted.angles, wanted.unit, worst);
  expect(complaint.empty(), cat(what, ": ", complaint));
}

void rotate_and_judge(const char* what, const CudaRotaryTable& table, const TrialSetup& setup,
                      const Wanted& wanted, double* worst = nullptr, unsigned seed = 1,
                      int times = 0) {
  Trial trial(setup, seed);
  on_device(table, trial, setup, times);
  judge(what, trial, wanted, worst);
}

void every_kernel_agrees() {
  double worst = 0;
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    for (const int rotary_dim : {128, 64, 80, 6}) {
      const Plan plan = trial_plan(rotary_dim, pairing);
      for (const Element rows : {Element::f32, Element::f16, Element::bf16}) {
        // f16 and bf16 rows are optional; one size shows that they are read.
        if (rows != Element::f32 && rotary_dim != 128) continue;
        const RotaryTable near(plan, 0, 131072, rows);
        const RotaryTable far(plan, kFar - 8, kFar + 1, rows);
        const CudaRotaryTable stored(near, CudaRotaryTable::Angles::stored);
        const CudaRotaryTable stored_far(far, CudaRotaryTable::Angles::stored);
        const CudaRotaryTable computed(near);
        for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
          unsigned seed = 0;
          for (const TrialSetup& setup : trial_setups(element, rotary_dim, 16)) {
            const auto check = [&](const char* what, const CudaRotaryTable& table,
                                   const TrialSetup& at, double angles) {
              rotate_and_judge(what, table, at,
                               {pairing, rotary_dim, angles, rotated_unit(plan, setup.inverse)},
                               &worst, seed);
            };
            check("stored", stored, setup, rounding(rows));
            check("stored, far", stored_far, far_away(setup), rounding(rows));
            if (rows == Element::f32) {
              check("computed", computed, setup, kComputedAngles);
              check("computed, far", computed, far_away(setup), kComputedAngles);
            }
            ++seed;
          }
        }
      }
    }
  }
  std::printf("every kernel: largest error over its bound %.3f\n", worst);
}

// Some MiB and more than 16 MiB, which take other shapes of launch than the small batches above.
void large_batches_agree() {
  double worst = 0;
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    const Plan plan = trial_plan(128, pairing);
    const RotaryTable host(plan, 0, 4096);
    const CudaRotaryTable computed(host);
    const CudaRotaryTable stored(host, CudaRotaryTable::Angles::stored);
    for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
      for (const bool variant : {false, true}) {
        TrialSetup setup{.element = element, .queries = 9, .keys = 2, .sequences = 2};
        setup.tokens = 1200;
        setup.head_dim = variant ? 144 : 128;
        setup.in_place = setup.inverse = variant;
        setup.head_major = !variant;
        setup.first_position = 1234;
        rotate_and_judge("large", variant ? computed : stored, setup,
                         {pairing, 128, variant ? kComputedAngles : rounding(Element::f32),
                          rotated_unit(plan, setup.inverse)},
                         &worst, variant);
      }
      // Partial rotation out of place: what is past rotary_dim is copied.
      TrialSetup partial{.element = element, .head_dim = 160, .queries = 9, .keys = 0};
      partial.tokens = 7400;
      partial.in_place = false;
      rotate_and_judge("large, partial", computed, partial,
                       {pairing, 128, kComputedAngles, rotated_unit(plan)}, &worst);
    }
  }
  std::printf("large batches: largest error over its bound %.3f\n", worst);
}

// The largest error of computed and stored cosines and sines: docs/design/numerics.md quotes it.
void errors_by_position() {
  const Plan plan = trial_plan(128, Pairing::halves, "none", 1);
  std::printf("largest error of a turned pair of length 1, f32, 64 pairs, base 500000:\n");
  std::printf("%10s %12s %12s\n", "position", "computed", "stored f32");
  for (const std::int32_t p :
       {0, 1, 4095, 39001, 131071, 1000000, kFar, 16777216, 2147483647 - 8}) {
    const RotaryTable table(plan, p, std::int64_t(p) + 1);
    double worst[2] = {};
    for (int k = 0; k < 2; ++k) {
      TrialSetup setup{.queries = 64, .keys = 64, .tokens = 1, .first_position = p};
      Trial trial(setup);
      for (std::size_t i = 0; i < trial.from[0].size(); ++i) {
        const double angle = double(i) * 0.7;
        const float value = float(i % 128 < 64 ? std::cos(angle) : std::sin(angle - 0.7 * 64));
        for (int side = 0; side < 2; ++side) {
          trial.from[side].set(i, value);
          trial.to[side].set(i, value);
        }
      }
      on_device(CudaRotaryTable(table, k == 0 ? CudaRotaryTable::Angles::computed
                                              : CudaRotaryTable::Angles::stored),
                trial, setup);
      std::vector<double> x(128);
      for (int head = 0; head < 64; ++head) {
        for (int i = 0; i < 128; ++i) x[i] = trial.from[0].at(std::size_t(head * 128 + i));
        rotate_reference(plan, double(p), x);
        for (int i = 0; i < 128; ++i) {
          worst[k] =
              std::max(worst[k], std::abs(x[i] - trial.to[0].at(std::size_t(head * 128 + i))));
        }
      }
      expect(worst[k] < 1e-6, "an error of 1e-6 or more");
    }
    std::printf("%10d %12.3g %12.3g\n", p, worst[0], worst[1]);
  }
}

void properties() {
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    const Plan plan = trial_plan(128, pairing);
    const Plan other = trial_plan(128, pairing, "yarn", 16);
    const RotaryTable host(plan, 0, 4096);
    const CudaRotaryTable table(host);

    // Turning a cache to another plan equals rotating under it.
    TrialSetup setup{.tokens = 8, .positions = kPositions};
    const auto wanted = [&](const Trial::Unit& unit) {
      return Wanted{pairing, 128, kComputedAngles, unit};
    };
    rotate_and_judge("turning", CudaRotaryTable(RotaryTable::turning(plan, other, 0, 0)), setup,
                     wanted(turned_unit(plan, other)));

    // A phase of five positions is what five positions more are.
    RotaryAngles angles = RotaryTable(plan, 0, 0).angles();
    for (std::size_t i = 0; i < angles.theta.size(); ++i) angles.phase[i] = 5 * angles.theta[i];
    rotate_and_judge("phases", CudaRotaryTable(RotaryTable(angles, 0, 0)), setup,
                     wanted([at = rotated_unit(plan)](std::int64_t p) { return at(p + 5); }));

    // One call, with positions of the host and a table without rows.
    Trial waited(setup);
    TrialOnDevice there(waited, setup);
    rotate_and_wait(RotaryTable(plan, 0, 0), {&there.batch, 1}, 0);
    there.back();
    judge("in one call", waited, wanted(rotated_unit(plan)));
    bool refused = false;
    try {
      rotate_and_wait(RotaryTable(plan, 0, 0), {&there.batch, 1}, 1000);
    } catch (const Error&) {
      refused = true;
    }
    expect(refused, "device 1000 was not refused");

    const std::string complaint = judge_properties(
        plan, [&](Trial& trial, const TrialSetup& one) { on_device(table, trial, one); }, 4e-6);
    expect(complaint.empty(), complaint);

    // A captured graph replays the rotation: four times in place is a turn by four times the angle.
    const auto unmodified = trial_plan(128, pairing, "none", 1);
    rotate_and_judge("graph", CudaRotaryTable(RotaryTable(unmodified, 0, 64)),
                     {.queries = 2, .keys = 1, .tokens = 3, .first_position = 5},
                     {pairing, 128, 8 * kComputedAngles,
                      [at = rotated_unit(unmodified)](std::int64_t p) { return at(4 * p); }},
                     nullptr, 1, 4);
  }
}

// A launch may begin before the one ahead of it has ended: none may read what it has yet to write.
// Hundreds of turns there and back, and a copy and a turn in a graph, launched again and again.
void order_is_kept() {
  const Plan plan = trial_plan(128, Pairing::halves);
  const CudaRotaryTable table(RotaryTable(plan, 0, 128));
  TrialSetup setup{.queries = 32, .keys = 8, .tokens = 64};
  Trial trial(setup);
  TrialOnDevice there(trial, setup);
  Batch& batch = there.batch;
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream));
  for (int i = 0; i < 400; ++i) {
    batch.inverse = i % 2 == 1;
    rotate(table, batch, stream);
  }
  must(cudaStreamSynchronize(stream));
  there.to_q.back();
  const double worst = largest_difference(trial.to[0], trial.from[0]);
  expect(worst < 1e-3, cat("400 turns there and back miss by ", worst));

  batch.inverse = false;
  const auto copy = [&](const OnDevice& to, const OnDevice& from, std::size_t bytes) {
    must(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream));
  };
  replay(stream, 20, [&] {
    copy(there.to_q, there.from_q, trial.from[0].bytes());
    copy(there.to_k, there.from_k, trial.from[1].bytes());
    rotate(table, batch, stream);
  });
  must(cudaStreamDestroy(stream));
  there.back();
  judge("a copy and a turn", trial, {Pairing::halves, 128, kComputedAngles, rotated_unit(plan)});
}

// The action throws an Error of kind usage whose message holds the word.
template <typename Action>
void refuses(const char* word, Action action) {
  try {
    action();
    expect(false, cat("not refused: ", word));
  } catch (const Error& e) {
    expect(e.kind() == ErrorKind::usage && std::string(e.what()).find(word) != std::string::npos &&
               !e.hint().empty(),
           cat("refused with: ", e.what(), ", not with: ", word));
  }
}

void misuse() {
  const Plan plan = trial_plan(128, Pairing::halves);
  const RotaryTable host(plan, 0, 100);
  const CudaRotaryTable stored(host, CudaRotaryTable::Angles::stored);
  const CudaRotaryTable computed(host);
  void* memory = nullptr;
  must(cudaMalloc(&memory, 1 << 20));
  Batch good;
  good.head_dim = 128;
  good.tokens = 4;
  good.queries = in_place(memory, 2, token_major(4, 2, 128));
  Batch batch = good;
  batch.queries.from = nullptr;
  refuses("null", [&] { rotate(stored, batch, nullptr); });
  batch = good;
  batch.head_dim = 64;
  refuses("rotary_dim 128", [&] { rotate(stored, batch, nullptr); });
  batch = good;
  batch.first_position = 97;
  refuses("in the table of 0 to 99", [&] { rotate(stored, batch, nullptr); });
  rotate(computed, batch, nullptr);  // knows no end
  batch.tokens = 0;
  rotate(stored, batch, nullptr);
  batch = good;
  batch.queries.count = 0;
  rotate(stored, batch, nullptr);
  must(cudaDeviceSynchronize());

  // A position on the device that has no row: its token is unchanged, and check() reports it once.
  TrialSetup setup{.tokens = 3, .positions = {5, 100, 6}};
  Trial trial(setup);
  on_device(stored, trial, setup);
  expect(!trial.untouched(), "the good tokens were left alone too");
  for (int side = 0; side < 2; ++side) {
    const std::size_t token = std::size_t(side == 0 ? 3 : 2) * 128;
    expect(std::memcmp(trial.to[side].data() + 4 * token, trial.from[side].data() + 4 * token,
                       4 * token) == 0,
           "a token without a row was written");
  }
  refuses("left alone", [&] { stored.check(nullptr); });
  stored.check(nullptr);
  Trial nowhere(setup);
  const CudaRotaryTable empty(RotaryTable(plan, 7, 7), CudaRotaryTable::Angles::stored);
  on_device(empty, nowhere, setup);
  expect(nowhere.untouched(), "a table without rows wrote something");
  refuses("left alone", [&] { empty.check(nullptr); });
  must(cudaFree(memory));
}

int run() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf(
        "SKIPPED: no NVIDIA GPU here; the CUDA kernels were compiled and linked, not run\n");
    return 77;
  }
  cudaDeviceProp facts{};
  must(cudaGetDeviceProperties(&facts, 0));
  std::printf("on %s, compute capability %d.%d\n", facts.name, facts.major, facts.minor);
  try {
    every_kernel_agrees();
    large_batches_agree();
    errors_by_position();
    properties();
    order_is_kept();
    misuse();
  } catch (const Error& e) {
    std::printf("FAILED: %s (%s)\n", e.what(), e.hint().c_str());
    return 1;
  }
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mrrope::test

int main() { return mrrope::test::run(); }
