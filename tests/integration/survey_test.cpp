// SPDX-License-Identifier: Apache-2.0
// Every architecture that takes plans, opened by the engine and run under `pi`: bit for bit what
// llama.cpp's own linear scaling gives. oracle_test.cpp tests fewer architectures more thoroughly.
#include <llama.h>

#include "engine/llama/local.h"
#include "support/architecture_cases.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr int kUbatch = 32;
constexpr int kTokens = 40;  // one full ubatch and a rest
constexpr double kScale = 4;

std::vector<Token> sequence() {
  std::vector<Token> tokens;
  for (int i = 0; i < kTokens; ++i) tokens.push_back((i * i * 5 + i) % 64);
  return tokens;
}

// libllama on its own. Empty where it does not run.
std::vector<float> reference(const std::filesystem::path& path, float scale) {
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  llama_model* model = llama_model_load_from_file(path.c_str(), model_params);
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 256;
  params.n_batch = params.n_ubatch = kUbatch;
  params.n_threads = params.n_threads_batch = 1;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.kv_unified = true;
  params.swa_full = false;
  if (scale != 1) {
    params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
    params.rope_freq_scale = scale;
  }
  llama_context* context = llama_init_from_model(model, params);
  std::vector<Token> tokens = sequence();
  std::vector<float> last;
  for (int i = 0; context != nullptr && i < kTokens; i += kUbatch) {
    const int count = std::min(kUbatch, kTokens - i);
    if (llama_decode(context, llama_batch_get_one(tokens.data() + i, count)) != 0) break;
    const float* row = llama_get_logits_ith(context, -1);
    last.assign(row, row + llama_vocab_n_tokens(llama_model_get_vocab(model)));
  }
  llama_free(context);
  llama_model_free(model);
  return last;
}

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
  Extension pi{.method = "pi", .scale = kScale};
  const auto last_row = [&](const Extension& extension) {
    model->use(make_ladder(make_plan(model->facts().geometry, extension), 256));
    std::vector<float> last;
    const std::vector<std::size_t> wanted{kTokens - 1};
    model->timeline()->append(sequence(), wanted, [&](std::size_t, std::span<const float> logits) {
      last.assign(logits.begin(), logits.end());
    });
    return last;
  };
  EXPECT_EQ(last_row({}), reference(file.path(), 1));
  const std::vector<float> own = reference(file.path(), 1 / static_cast<float>(kScale));
  // Where scores take the context's scaling into account its own linear scaling is not a plan's.
  if (!row.has(Trait::scale_in_scores)) {
    EXPECT_EQ(last_row(pi), own);
  }
  EXPECT_NE(last_row({}), own) << "the oracle cannot fail";
}

std::vector<ArchitectureCase> cases_with_plans() {
  std::vector<ArchitectureCase> cases = architecture_cases();
  std::erase_if(cases, [](const ArchitectureCase& sample) {
    const Architecture& row = *find_architecture(sample.architecture);
    if (!row.unsupported.empty() || !sample.variant.empty()) return true;
    // Rotating layers that see the last tokens only need no plan, and get none.
    try {
      for (const Layer& layer : layers_of(row, sample.keys)) {
        if (layer.rotations > 0 && !layer.windowed_cache) return false;
      }
    } catch (const Error&) {
    }
    return true;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Rows, Survey, testing::ValuesIn(cases_with_plans()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace mrrope::engine
