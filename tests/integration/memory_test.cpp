// SPDX-License-Identifier: Apache-2.0
// The memory planned before loading, compared with what libllama then reports.
#include "engine/llama/loader.h"
#include "engine/llama/local.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// Sums up the buffers that libllama reports while it makes a context.
struct Report {
  double kv = 0;
  double compute = 0;

  static void read(ggml_log_level, const char* text, void* data) {
    auto& report = *static_cast<Report*>(data);
    const char* size = std::strstr(text, "buffer size = ");
    if (size == nullptr) return;
    const double mib = std::atof(size + std::strlen("buffer size = "));
    if (std::strstr(text, "KV buffer size") != nullptr) report.kv += mib;
    if (std::strstr(text, "compute buffer size") != nullptr) report.compute += mib;
  }
};

Report report_of(const LocalOptions& options) {
  const LlamaPtr<llama_model> model = load_model({MRROPE_TINY_MODEL}, options.gpu_layers);
  llama_context_params params = context_params(options, options.context);
  params.n_seq_max = static_cast<std::uint32_t>(options.timelines);
  Report report;
  llama_log_set(Report::read, &report);
  make_context(model.get(), params);
  keep_llama_log();
  return report;
}

TEST(Memory, PlanMatchesAllocation) {
  const Model facts = read_model(MRROPE_TINY_MODEL);
  const auto compare = [&](const LocalOptions& options) {
    const MemoryPlan plan = plan_memory(facts, options);
    const Report taken = report_of(options);
    EXPECT_NEAR(static_cast<double>(plan.kv) / kMiB, taken.kv, 0.1);
    // The plan also counts the copy of the logits that the host gets.
    const double copy = 4.0 * options.ubatch * facts.vocabulary / kMiB;
    const double planned = static_cast<double>(plan.compute) / kMiB - copy;
    EXPECT_NEAR(planned / taken.compute, 1, 0.25) << planned << " against " << taken.compute;
    return plan;
  };
  for (const char* flash : {"on", "off"}) {
    for (const std::int64_t context : {2048, 16384}) {
      for (const int ubatch : {128, 512}) {
        LocalOptions options;
        options.context = context;
        options.ubatch = ubatch;
        options.flash_attention = flash;
        options.gpu_layers = 0;
        SCOPED_TRACE(std::string(flash) + " " + std::to_string(context) + " " +
                     std::to_string(ubatch));
        const MemoryPlan plan = compare(options);
        EXPECT_GT(plan.available, 0U);
        EXPECT_NEAR(static_cast<double>(plan.weights) / kMiB, 34.2, 0.5);
      }
    }
  }
  LocalOptions apart;
  apart.context = 8 * 4096;
  apart.timelines = 8;
  apart.unified = false;
  apart.gpu_layers = 0;
  apart.flash_attention = "on";
  compare(apart);
  LocalOptions options;
  options.context = 4096;
  options.type_k = options.type_v = "q8_0";
  EXPECT_NEAR(static_cast<double>(plan_memory(facts, options).kv) / kMiB, report_of(options).kv,
              0.1);
}

// libllama computes no more tokens at once than the context has, and has a row of logits for each
// timeline.
TEST(Memory, BatchesAreAtMostTheContextAndAtLeastTheTimelines) {
  const Model facts = read_model(MRROPE_TINY_MODEL);
  const auto compute = [&](int ubatch, int timelines) {
    LocalOptions options;
    options.context = 2048;
    options.gpu_layers = 0;
    options.ubatch = ubatch;
    options.timelines = timelines;
    return plan_memory(facts, options).compute;
  };
  EXPECT_EQ(compute(1 << 30, 4), compute(2048, 4));
  EXPECT_EQ(compute(2, 16), compute(16, 16));
}

}  // namespace
}  // namespace mrrope::engine
