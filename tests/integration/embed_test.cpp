// SPDX-License-Identifier: Apache-2.0
// Embeddings against libllama called directly, which computes and pools a text at once.

#include "engine/llama/local_model.h"
#include "models/architecture_cases.h"
#include "models/gguf_edit.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

std::vector<float> stock_embedding(const std::filesystem::path& file, std::vector<Token> tokens,
                                   enum llama_pooling_type pooling, const LocalOptions& options) {
  const LlamaPtr<llama_model> model = load_model({file}, 0);
  llama_context_params params = context_params(options, 1024);
  params.n_batch = params.n_ubatch = 1024;
  params.embeddings = true;
  params.pooling_type = pooling;
  const LlamaPtr<llama_context> context = make_context(model.get(), params);
  const auto count = static_cast<int32_t>(tokens.size());
  EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(tokens.data(), count)), 0);
  const float* const row = llama_get_embeddings_seq(context.get(), 0);
  std::vector<float> out(row, row + llama_model_n_embd_out(model.get()));
  double square = 0;
  for (const float value : out) square += double(value) * double(value);
  for (float& value : out) value = float(double(value) / std::sqrt(square));
  return out;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected,
                 double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], tolerance) << i;
}

class EmbedArchitecture : public testing::TestWithParam<ArchitectureCase> {};

// In parts of 16 tokens.
TEST_P(EmbedArchitecture, IsWhatLibllamaPools) {
  const RandomModel file(GetParam().metadata(), 11);
  LocalOptions options = exact_options(512, 16, 2, "auto");
  options.pooling = "last";
  std::unique_ptr<TimelineModel> model;
  try {
    model = open_local(read_model(file.path()), options);
  } catch (const Error& error) {  // no model of ours, see architectures_test.cpp
    ASSERT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    return;
  }
  const std::vector<Token> tokens = test::words(40, 64);
  if (GetParam().architecture == "qwen4exp") {
    EXPECT_EQ(test::error_of([&] { model->embed(tokens); }).kind(), ErrorKind::unsupported);
    return;
  }
  // The linear attention of minimax-01 rounds differently from part to part.
  expect_near(model->embed(tokens),
              stock_embedding(file.path(), tokens, LLAMA_POOLING_TYPE_LAST, options),
              GetParam().architecture == "minimax-01" ? 1e-3 : 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, EmbedArchitecture, testing::ValuesIn(architecture_cases()),
                         [](const auto& sample) { return sample.param.name(); });

// A copy of the bundled model that says how it pools.
std::unique_ptr<TimelineModel> pooled(const std::filesystem::path& path, std::uint64_t type,
                                      const LocalOptions& options) {
  std::filesystem::remove(path);
  test::edit_gguf(MRROPE_TINY_MODEL, path, [](const std::string&) { return false; }, {},
                  {integer_key("llama.pooling_type", GgufType::u32, type)});
  return open_local(read_model(path), options);
}

TEST(Embed, PoolsAsTheFileSays) {
  const test::TempFolder folder;
  const auto path = folder.path() / "pooled.gguf";
  LocalOptions options = exact_options(1024, 512);
  for (const auto type :
       {LLAMA_POOLING_TYPE_MEAN, LLAMA_POOLING_TYPE_CLS, LLAMA_POOLING_TYPE_LAST}) {
    const auto model = pooled(path, static_cast<std::uint64_t>(type), options);
    model->use(make_ladder(model->facts().geometry, parse_method("elastic:pro"), 1024));
    // A longer text needs another context; a shorter one after it does not see what that left.
    for (const std::size_t size : {100, 500, 7}) {
      const std::vector<Token> tokens = test::words(size, 200);
      expect_near(model->embed(tokens), stock_embedding(path, tokens, type, options));
    }
    const auto scores = [&](bool embeds) {  // of a timeline, which does not notice
      const auto timeline = model->timeline();
      timeline->append(test::words(20, 200));
      if (embeds) model->embed(test::words(30, 200));
      return timeline->append_scored(test::words(10, 100));
    };
    EXPECT_EQ(scores(true), scores(false));
  }
}

TEST(Embed, PoolsAsTheFlagSays) {
  const test::TempFolder folder;
  const auto path = folder.path() / "pooled.gguf";
  LocalOptions options = exact_options(1024, 512);
  options.pooling = "mean";  // the file says: none
  const std::vector<Token> tokens = test::words(30, 200);
  const auto model = pooled(path, 0, options);  // first: it writes the file
  expect_near(model->embed(tokens),
              stock_embedding(path, tokens, LLAMA_POOLING_TYPE_MEAN, options));
}

TEST(Embed, RefusesWhatItCannot) {
  const test::TempFolder folder;
  const auto path = folder.path() / "pooled.gguf";
  LocalOptions options = exact_options(1024, 512);
  for (const std::uint64_t type : {0, 4}) {  // none, and a ranking
    const auto model = pooled(path, type, options);
    EXPECT_ERROR(model->embed(test::words(5, 64)), unsupported, "pooling_type");
  }
  {  // llama-server has none of a model whose file states nothing
    const auto model = open_local(read_model(MRROPE_TINY_MODEL), options);
    EXPECT_ERROR(model->embed(test::words(5, 64)), unsupported, "states no llama.pooling_type");
  }
  options.pooling = "last";
  const auto model = open_local(read_model(MRROPE_TINY_MODEL), options);
  const auto kind = [&](const std::vector<Token>& tokens) {
    return test::error_of([&] { model->embed(tokens); }).kind();
  };
  EXPECT_EQ(kind({}), ErrorKind::usage);
  EXPECT_EQ(kind({-1}), ErrorKind::usage);
  EXPECT_EQ(kind({model->vocabulary()}), ErrorKind::usage);
  EXPECT_EQ(kind(std::vector<Token>(1025, 5)), ErrorKind::usage);
  EXPECT_EQ(model->embed(std::vector<Token>(1024, 5)).size(),
            static_cast<std::size_t>(model->facts().embedding));
}

}  // namespace
}  // namespace mrrope::engine
