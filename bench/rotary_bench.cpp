// SPDX-License-Identifier: Apache-2.0
// Rotation on the CPU, side by side in one run:
//
//   rotary_bench [--threads 2] [--rounds 9] [--tokens 8192,65536]
//
// copy      memcpy of the same bytes, by the same threads
// mrrope    queries and keys in one call, out of place and in place
// ggml      ggml_rope_ext of the linked libllama, same tensors, same threads (it has no bf16)
// Contestants take turns, because machines drift, and processor time over threads is counted,
// because other programs take turns too; speeds are medians in GB/s read and written, and ratios
// are medians of the ratios of each round. mrrope is checked against the reference before it is
// timed. First the time to build a table.
#include <CLI/CLI.hpp>
#include <cstring>
#include <ctime>
#include <memory>

#include "ggml-cpu.h"
#include "ggml.h"
#include "kernels/rotary_simd.h"
#include "rotary_cases.h"

namespace {

using Bytes = std::unique_ptr<std::byte, decltype(&std::free)>;

Bytes memory(std::size_t size) {
  return {static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)),
          &std::free};
}

// Of the processor, all threads together.
double seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

mrrope::Plan plan_of(const Shape& shape, Pairing pairing) {
  return make_plan(geometry_of(shape, pairing), {.method = "pro", .scale = 8});
}

// Runs part(index, parts) for as many parts as mrrope uses itself.
void in_parts(mrrope::Workers& workers, const std::function<void(int, int)>& part) {
  const int parts = workers.threads() * 8;
  workers.run(parts, [&](int index) { part(index, parts); });
}

// ggml's rotation of the same memory.
class Ggml {
 public:
  Ggml(const Shape& shape, std::int64_t tokens, Element element, const mrrope::Plan& plan,
       std::byte* from, std::byte* to, const std::int32_t* positions, int threads) {
    context_ =
        ggml_init({ggml_tensor_overhead() * 16 + ggml_graph_overhead() + 65536, nullptr, true});
    factors_.assign(plan.factor().begin(), plan.factor().end());
    const ggml_type type = element == Element::f32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
    ggml_tensor* p = ggml_new_tensor_1d(context_, GGML_TYPE_I32, tokens);
    p->data = const_cast<std::int32_t*>(positions);
    ggml_tensor* f = ggml_new_tensor_1d(context_, GGML_TYPE_F32, std::int64_t(factors_.size()));
    f->data = factors_.data();
    graph_ = ggml_new_graph(context_);
    std::size_t at = 0;
    for (const int heads : {shape.queries, shape.keys}) {
      ggml_tensor* x = ggml_new_tensor_3d(context_, type, shape.head_dim, heads, tokens);
      x->data = from + at;
      const bool halves = plan.geometry().pairing == Pairing::halves;
      ggml_tensor* y = ggml_rope_ext(
          context_, x, p, f, shape.head_dim, halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL,
          0, float(plan.geometry().base), 1.0f, 0.0f, float(plan.attention_scale()), 0.0f, 0.0f);
      y->data = to + at;
      at += ggml_nbytes(x);
      ggml_build_forward_expand(graph_, y);
    }
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    pool_ = ggml_threadpool_new(&params);
    plan_ = ggml_graph_plan(graph_, threads, pool_);
    work_.resize(plan_.work_size + 64);
    plan_.work_data = work_.data();
  }
  ~Ggml() {
    ggml_threadpool_free(pool_);
    ggml_free(context_);
  }
  Ggml(const Ggml&) = delete;
  Ggml& operator=(const Ggml&) = delete;
  void run() { ggml_graph_compute(graph_, &plan_); }

 private:
  ggml_context* context_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
  ggml_threadpool* pool_ = nullptr;
  ggml_cplan plan_{};
  std::vector<std::uint8_t> work_;
  std::vector<float> factors_;
};

void compare(const Shape& shape, std::int64_t tokens, Element element, Pairing pairing, int threads,
             int rounds) {
  const mrrope::Plan plan = plan_of(shape, pairing);
  const mrrope::RotaryTable table(plan, 0, tokens);
  const std::size_t count =
      std::size_t(tokens) * std::size_t(shape.queries + shape.keys) * std::size_t(shape.head_dim);
  const std::size_t bytes = count * bytes_of(element);
  const Bytes from = memory(bytes), to = memory(bytes), place = memory(bytes);
  fill(from.get(), count, element);
  std::memcpy(place.get(), from.get(), bytes);
  std::vector<std::int32_t> positions(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = std::int32_t(i);

  const Batch batch = batch_of(shape, tokens, element, positions.data(), from.get(), to.get());
  Batch inside = batch_of(shape, tokens, element, positions.data(), place.get(), place.get());

  mrrope::Workers workers(threads);
  const std::function<void(int, int)> copy = [&](int part, int parts) {
    const std::size_t begin = count * std::size_t(part) / std::size_t(parts) * bytes_of(element);
    const std::size_t end = count * std::size_t(part + 1) / std::size_t(parts) * bytes_of(element);
    std::memcpy(to.get() + begin, from.get() + begin, end - begin);
  };
  std::unique_ptr<Ggml> ggml;
  if (element != Element::bf16) {
    ggml = std::make_unique<Ggml>(shape, tokens, element, plan, from.get(), to.get(),
                                  positions.data(), threads);
  }

  const auto checked = [&](const char* who, double bound, const std::function<void()>& rotation) {
    std::memset(to.get(), 0, bytes);
    rotation();
    check(plan, shape, tokens, element, bound, who,
          [&](std::size_t at, std::vector<std::byte>& before, std::vector<std::byte>& after) {
            std::memcpy(before.data(), from.get() + at, before.size());
            std::memcpy(after.data(), to.get() + at, after.size());
          });
  };
  checked("mrrope", bound_of(element), [&] { rotate(table, batch, workers); });
  // Its angles are floats: off by up to 0.01 radians at 64K.
  if (ggml) checked("ggml", 0.05, [&] { ggml->run(); });

  // Enough calls for the clock.
  const int calls = std::max(1, int(4e6 / double(bytes)));
  const auto time = [&](const std::function<void()>& work) {
    return seconds_of([&] {
             for (int i = 0; i < calls; ++i) work();
           }) /
           calls / threads;
  };
  const auto rotate_inside = [&] {
    const double seconds = time([&] { rotate(table, inside, workers); });
    // In place, numbers would grow with every call.
    if (inside.inverse) std::memcpy(place.get(), from.get(), bytes);
    inside.inverse = !inside.inverse && calls == 1;
    return seconds;
  };
  enum { kCopy, kOut, kIn, kGgml };
  const auto times =
      in_turns(rounds, {[&] { return time([&] { in_parts(workers, copy); }); },
                        [&] { return time([&] { rotate(table, batch, workers); }); }, rotate_inside,
                        [&] { return ggml ? time([&] { ggml->run(); }) : NAN; }});
  const auto speed = [&](int who) { return 2e-9 * double(bytes) / median(times[who]); };
  std::printf("%2d+%d x %-3d %6lld %-5s %-11s %6.1f %6.1f %6.1f %6.1f | %6.2f %6.2f %6.1f\n",
              shape.queries, shape.keys, shape.head_dim, static_cast<long long>(tokens),
              to_string(element), to_string(pairing), speed(kCopy), speed(kOut), speed(kIn),
              ggml ? speed(kGgml) : 0.0, median_ratio(times[kCopy], times[kOut]),
              median_ratio(times[kCopy], times[kIn]),
              ggml ? median_ratio(times[kGgml], times[kOut]) : 0.0);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rotation compared with copy and ggml");
  int threads = 2, rounds = 9;
  std::vector<std::int64_t> sizes = {1, 16, 64, 8192, 65536};
  app.add_option("--threads", threads);
  app.add_option("--rounds", rounds);
  app.add_option("--tokens", sizes)->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i) {
      seconds.push_back(seconds_of([&] {
        const mrrope::RotaryTable table(plan_of(kShapes[0], Pairing::halves), 0, 131072);
        if (table.end() != 131072) std::exit(1);
      }));
    }
    std::printf("a table of 131072 x 64 in f32: %.1f ms on one core (best of 5: %.1f)\n\n",
                1e3 * median(seconds), 1e3 * *std::min_element(seconds.begin(), seconds.end()));
    ggml_cpu_init();
    std::printf("%d threads, %s; GB/s read + written | times over mrrope's out of place\n", threads,
                mrrope::simd_targets().front().c_str());
    std::printf("%-10s %6s %-5s %-11s %6s %6s %6s %6s | %6s %6s %6s\n", "heads", "tokens", "type",
                "pairing", "copy", "mrrope", "inside", "ggml", "copy", "(in)", "ggml");
    for (const std::int64_t tokens : sizes) {
      for (const Shape& shape : kShapes) {
        for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
          for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
            compare(shape, tokens, element, pairing, threads, rounds);
          }
        }
      }
    }
  } catch (const mrrope::Error& e) {
    std::fprintf(stderr, "%s\n%s\n", e.what(), e.hint().c_str());
    return e.exit_code();
  }
}
