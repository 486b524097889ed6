// SPDX-License-Identifier: Apache-2.0
// The scheduler over models with recurrent layers: their sequences are computed one by one, and
// what they have read is recomputed where a conversation goes back.
#include "models/random_model.h"
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

constexpr std::int64_t kContext = 512;

// A separate model for each answer that must be independent of the others.
struct Server : LocalTrial {
  explicit Server(const std::filesystem::path& file)
      : LocalTrial(read_model(file), exact_caches_apart(2, kContext),
                   make_ladder(make_plan(read_model(file).geometry, Extension{}), kContext),
                   {2, 8, kContext}) {}
};

class HybridScheduler : public testing::TestWithParam<const char*> {};

TEST_P(HybridScheduler, ResumingFromAPrefixEqualsAFreshStart) {
  const RandomModel file(metadata_of(GetParam()), 7);
  const std::vector<Token> prompt = random_words(300);
  Server warm(file.path());
  // The answer ends while the model still holds the prompt.
  const Said one = warm.ask(prompt, 1);
  ASSERT_EQ(one.outcome.end, Outcome::End::length) << one.outcome.message;
  ASSERT_EQ(one.tokens.size(), 1U);
  // Goes back to what both have in common.
  std::vector<Token> other(prompt.begin(), prompt.begin() + 290);
  other.push_back(5);
  const Said shared = warm.ask(other, 12);
  ASSERT_EQ(shared.outcome.end, Outcome::End::length) << shared.outcome.message;
  EXPECT_EQ(shared.outcome.cached, 290);
  // And into the middle of what was written.
  std::vector<Token> middle = other;
  middle.insert(middle.end(), shared.tokens.begin(), shared.tokens.begin() + 6);
  const Said again = warm.ask(middle, 6);
  ASSERT_EQ(again.outcome.end, Outcome::End::length) << again.outcome.message;
  EXPECT_GE(again.outcome.cached, 290);

  EXPECT_EQ(Server(file.path()).ask(other, 12).tokens, shared.tokens);
  EXPECT_EQ(Server(file.path()).ask(middle, 6).tokens, again.tokens);
}

// docs/guide/serve.md: a cached prefix changes the shapes of the batches and with them the
// rounding. With weights in F32 that is some 1e-6; quantized ones round activations to 8 bits,
// which magnifies it.
TEST(CachedScheduler, CachedPrefixChangesOnlyTheRounding) {
  const RandomModel file(metadata_of("llama"), 7);
  Server server(file.path());
  const std::vector<Token> prompt = random_words(300);
  const Said cold = server.ask(prompt, 20);
  const Said cached = server.ask(prompt, 20);
  const Said again = server.ask(prompt, 20, false);
  EXPECT_EQ(cold.outcome.cached, 0);
  EXPECT_EQ(cached.outcome.cached, 299);
  EXPECT_EQ(again.outcome.cached, 0);
  ASSERT_EQ(cold.tokens.size(), 20U);
  EXPECT_EQ(cached.tokens, cold.tokens);
  for (std::size_t i = 0; i < cold.logprobs.size(); ++i) {
    EXPECT_NEAR(cached.logprobs[i], cold.logprobs[i], 1e-4) << i;
  }
  // Computed as the first time, in the same cells: the same to the last bit.
  EXPECT_EQ(again.tokens, cold.tokens);
  EXPECT_EQ(again.logprobs, cold.logprobs);
}

INSTANTIATE_TEST_SUITE_P(Architectures, HybridScheduler,
                         testing::Values("granitehybrid", "qwen3next"));

}  // namespace
}  // namespace mrrope::serve
