// SPDX-License-Identifier: Apache-2.0
// Every architecture that takes plans, opened by the engine and run under `pi`: bit for bit what
// llama.cpp's own linear scaling gives. oracle_test.cpp tests fewer architectures more thoroughly.
#include "engine/llama/local.h"
#include "models/architecture_cases.h"
#include "models/stock_rows.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr int kUbatch = 32;
constexpr int kTokens = 40;  // one full ubatch and a rest
constexpr double kScale = 4;

// Rows that the engine refuses though a plan could be thought of:
// - dots3note: windowed layers follow the context's scaling from a base of their own, so that one
//   plan would mean two things;
// - minimax-m3: without flash attention its graph lacks the indexer that the table expects.
bool is_refused(std::string_view name) { return name == "dots3note" || name == "minimax-m3"; }

class Survey : public testing::TestWithParam<ArchitectureCase> {};

TEST_P(Survey, RunsUnderAPlan) {
  const Architecture& row = *find_architecture(GetParam().architecture);
  const RandomModel file(GetParam().metadata(), 7);
  const LocalOptions options = exact_options(256, kUbatch, 1, "off", 1);
  if (is_refused(row.name)) {
    const Error error = test::error_of([&] { open_local(read_model(file.path()), options); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    return;
  }
  const auto model = open_local(read_model(file.path()), options);
  const std::vector<Token> tokens = test::words(kTokens, 64);
  const auto rows = [&](const Extension& extension) {
    model->use(make_ladder(make_plan(model->facts().geometry, extension), 256));
    return test::observe(*model->timeline(), tokens);
  };
  const test::Rows plain = rows({});
  EXPECT_EQ(plain, test::stock_rows(file.path(), options, tokens));
  const test::Rows own =
      test::stock_rows(file.path(), options, tokens, [](llama_context_params& params) {
        params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
        params.rope_freq_scale = 1 / static_cast<float>(kScale);
      });
  // Where scores take the context's scaling into account its own linear scaling is not a plan's.
  if (!row.has(Trait::scale_in_scores)) {
    EXPECT_EQ(rows({.method = "pi", .scale = kScale}), own);
  }
  EXPECT_NE(plain, own) << "the oracle cannot fail";
}

INSTANTIATE_TEST_SUITE_P(Rows, Survey, testing::ValuesIn(cases_with_plans()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace mrrope::engine
