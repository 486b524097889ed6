// SPDX-License-Identifier: Apache-2.0
// Models that the local engine refuses to open.

#include "engine/llama/local.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

Error refusal(const Model& facts, const LocalOptions& options) {
  return test::error_of([&] { open_local(facts, options); });
}

LocalOptions on_cpu(std::int64_t context) {
  LocalOptions options;
  options.context = context;
  options.gpu_layers = 0;
  return options;
}

TEST(LocalModel, NamesTheConversionOfACheckpoint) {
  Model facts;
  facts.path = "folder/of/a/model";
  facts.format = "huggingface";
  const Error error = refusal(facts, {});
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_TRUE(contains(error.hint(), "convert_hf_to_gguf.py folder/of/a/model --outfile"))
      << error.hint();
}

TEST(LocalModel, RefusesAModelThatDoesNotFitInMemory) {
  const Error error = refusal(read_model(MRROPE_TINY_MODEL), on_cpu(1 << 30));
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_TRUE(contains(error.hint(), "-c ")) << error.hint();
  EXPECT_TRUE(contains(error.hint(), "q8_0")) << error.hint();
}

TEST(LocalModel, RefusesFactsThatTheGraphContradicts) {
  const Model facts = read_model(MRROPE_TINY_MODEL);
  const auto refused = [&](const std::function<void(Model&)>& change) {
    Model changed = facts;
    change(changed);
    return refusal(changed, on_cpu(2048)).kind();
  };
  EXPECT_EQ(refused([](Model& m) { m.layers.pop_back(); }), ErrorKind::unsupported);
  EXPECT_EQ(refused([](Model& m) { m.geometry.base = 10001; }), ErrorKind::unsupported);
  EXPECT_EQ(refused([](Model& m) { m.geometry.rotary_dim = 64; }), ErrorKind::unsupported);
  EXPECT_EQ(refused([](Model& m) { m.geometry.pairing = Pairing::halves; }),
            ErrorKind::unsupported);
  EXPECT_EQ(refused([](Model& m) { m.geometry.trained_factor.assign(64, 2.0); }),
            ErrorKind::unsupported);
}

}  // namespace
}  // namespace mrrope::engine
