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
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ggml-cpu.h"
#include "ggml.h"
#include "kernels/half.h"
#include "kernels/rotary_simd.h"
#include "mrrope/error.h"
#include "mrrope/rotary.h"
#include "support/rotary_reference.h"

namespace {

using mrrope::Batch;
using mrrope::Element;
using mrrope::Pairing;
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

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

struct Shape {
  int queries, keys, head_dim;
};

mrrope::Plan plan_of(const Shape& shape, Pairing pairing) {
  return mrrope::make_plan(
      {.rotary_dim = shape.head_dim, .base = 5e5, .train_length = 8192, .pairing = pairing},
      {.method = "pro", .scale = 8});
}

float get(const std::byte* data, std::size_t i, Element element) {
  if (element == Element::f32) return reinterpret_cast<const float*>(data)[i];
  const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(data)[i];
  return element == Element::f16 ? mrrope::float_from_f16(bits) : mrrope::float_from_bf16(bits);
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

// Some heads of `to` against the reference; ends the program if they disagree.
void check(const mrrope::Plan& plan, const Shape& shape, std::int64_t tokens, Element element,
           const std::byte* from, const std::byte* to, double bound, const char* who) {
  for (const std::int64_t token : {std::int64_t(0), tokens / 3, tokens - 1}) {
    for (const int side : {0, 1}) {
      const int heads = side == 0 ? shape.queries : shape.keys;
      const std::size_t at =
          std::size_t((side == 0 ? 0 : tokens * shape.queries) + token * heads + heads - 1) *
          std::size_t(shape.head_dim);
      std::vector<double> x(std::size_t(shape.head_dim), 0);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(get(from, at + i, element));
      rotate_reference(plan, double(token), x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = std::abs(x[i] - double(get(to, at + i, element)));
        if (!(error <= bound)) {
          std::printf("WRONG: %s, token %lld, element %zu: off by %g\n", who,
                      static_cast<long long>(token), i, error);
          std::exit(1);
        }
      }
    }
  }
}

void compare(const Shape& shape, std::int64_t tokens, Element element, Pairing pairing, int threads,
             int rounds) {
  const mrrope::Plan plan = plan_of(shape, pairing);
  const mrrope::RotaryTable table(plan, 0, tokens);
  const std::size_t count =
      std::size_t(tokens) * std::size_t(shape.queries + shape.keys) * std::size_t(shape.head_dim);
  const std::size_t bytes = count * bytes_of(element);
  const Bytes from = memory(bytes), to = memory(bytes), place = memory(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = 0.25f + 0.75f * float((i * 2654435761u) >> 8 & 0xffff) / 65536;
    if (element == Element::f32) {
      reinterpret_cast<float*>(from.get())[i] = value;
    } else {
      reinterpret_cast<std::uint16_t*>(from.get())[i] =
          element == Element::f16 ? mrrope::f16_from(value) : mrrope::bf16_from(value);
    }
  }
  std::memcpy(place.get(), from.get(), bytes);
  std::vector<std::int32_t> positions(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = std::int32_t(i);

  Batch batch;
  batch.element = element;
  batch.head_dim = shape.head_dim;
  batch.tokens = tokens;
  batch.positions = positions.data();
  const std::size_t keys = std::size_t(tokens * shape.queries * shape.head_dim) * bytes_of(element);
  const auto strides = [&](int heads) {
    return mrrope::token_major(tokens, heads, shape.head_dim);
  };
  batch.queries = {shape.queries, from.get(), strides(shape.queries), to.get(),
                   strides(shape.queries)};
  batch.keys = {shape.keys, from.get() + keys, strides(shape.keys), to.get() + keys,
                strides(shape.keys)};
  Batch inside = batch;
  inside.queries = mrrope::in_place(place.get(), shape.queries, strides(shape.queries));
  inside.keys = mrrope::in_place(place.get() + keys, shape.keys, strides(shape.keys));

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

  const double bound = element == Element::f32 ? 2e-6 : element == Element::f16 ? 2e-3 : 1.5e-2;
  std::memset(to.get(), 0, bytes);
  rotate(table, batch, workers);
  check(plan, shape, tokens, element, from.get(), to.get(), bound, "mrrope");
  if (ggml) {
    std::memset(to.get(), 0, bytes);
    ggml->run();
    // Its angles are floats: off by up to 0.01 radians at 64K.
    check(plan, shape, tokens, element, from.get(), to.get(), 0.05, "ggml");
  }

  // Enough calls for the clock.
  const int calls = std::max(1, int(4e6 / double(bytes)));
  const auto time = [&](const std::function<void()>& work) {
    return seconds_of([&] {
             for (int i = 0; i < calls; ++i) work();
           }) /
           calls / threads;
  };
  enum { kCopy, kOut, kIn, kGgml, kAll };
  std::vector<double> times[kAll], ratios[kAll][kAll];
  for (int r = 0; r <= rounds; ++r) {  // the first round warms up
    double t[kAll] = {};
    t[kCopy] = time([&] { in_parts(workers, copy); });
    t[kOut] = time([&] { rotate(table, batch, workers); });
    t[kIn] = time([&] { rotate(table, inside, workers); });
    // In place, numbers would grow with every call.
    if (inside.inverse) std::memcpy(place.get(), from.get(), bytes);
    inside.inverse = !inside.inverse && calls == 1;
    t[kGgml] = ggml ? time([&] { ggml->run(); }) : NAN;
    if (r == 0) continue;
    for (int a = 0; a < kAll; ++a) {
      times[a].push_back(t[a]);
      for (int b = 0; b < kAll; ++b) ratios[a][b].push_back(t[a] / t[b]);
    }
  }
  const auto speed = [&](int who) { return 2e-9 * double(bytes) / median(times[who]); };
  std::printf("%2d+%d x %-3d %6lld %-5s %-11s %6.1f %6.1f %6.1f %6.1f | %6.2f %6.2f %6.1f\n",
              shape.queries, shape.keys, shape.head_dim, static_cast<long long>(tokens),
              to_string(element), to_string(pairing), speed(kCopy), speed(kOut), speed(kIn),
              ggml ? speed(kGgml) : 0.0, median(ratios[kCopy][kOut]), median(ratios[kCopy][kIn]),
              ggml ? median(ratios[kGgml][kOut]) : 0.0);
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
        const mrrope::RotaryTable table(plan_of({32, 8, 128}, Pairing::halves), 0, 131072);
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
      for (const Shape& shape : {Shape{32, 8, 128}, Shape{9, 3, 64}}) {
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
