// SPDX-License-Identifier: Apache-2.0
// --deterministic on a quantized model, where the shape of a batch changes log-probabilities by
// hundredths: the same request gets the same bits alone, in a crowd, and with whatever is cached.
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

constexpr std::int64_t kContext = 1024;
constexpr int kSlots = 3;

Model with_rungs() {
  Model facts = read_model(MRROPE_TINY_MODEL);
  facts.geometry.train_length = 256;  // so that there are rungs beyond it
  return facts;
}

struct Server : LocalTrial {
  explicit Server(bool deterministic)
      : LocalTrial(
            with_rungs(), caches_apart(kSlots, kContext), growing(with_rungs().geometry, kContext),
            {.slots = kSlots, .queue = 8, .context = kContext, .deterministic = deterministic}) {}
  std::shared_ptr<Answer> begin(const std::vector<Token>& prompt, std::int64_t length) {
    Job job = greedy(prompt, length);
    job.sampling.ignore_end = true;
    return scheduler->submit(std::move(job));
  }
  Said ask(const std::vector<Token>& prompt, std::int64_t length) {
    return finish(*begin(prompt, length));
  }
};

std::vector<Token> words(std::size_t count, std::size_t seed) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<Token>(300 + ((i + seed) * (i + 3 * seed) * 7 + i / 3 * 11) % 500));
  }
  return tokens;
}

std::vector<Token> joined(std::vector<Token> a, const std::vector<Token>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// All answers to one prompt: in a crowd, cached, after others with the same beginning, and as the
// continuation of a conversation.
std::vector<Said> many_ways(Server& server, const std::vector<Token>& prompt, std::size_t length) {
  std::vector<Said> said;
  const auto answers = {server.begin(words(50, 5), 40), server.begin(words(133, 6), 20),
                        server.begin(prompt, std::int64_t(length)), server.begin(words(40, 7), 15)};
  for (const auto& answer : answers) {
    const Said one = finish(*answer);
    if (one.outcome.prompt == std::int64_t(prompt.size())) said.push_back(one);
  }
  said.push_back(server.ask(prompt, std::int64_t(length)));
  const std::vector<Token> start(prompt.begin(), prompt.end() - 50);
  server.ask(joined(start, words(30, 8)), 20);
  said.push_back(server.ask(prompt, std::int64_t(length)));
  server.ask(start, 90);  // across a rung, and back
  said.push_back(server.ask(prompt, std::int64_t(length)));
  return said;
}

void compare(const std::vector<Token>& prompt, bool grows) {
  constexpr std::size_t kLength = 16;
  const Said alone = Server(true).ask(prompt, kLength);
  ASSERT_EQ(alone.tokens.size(), kLength);
  EXPECT_EQ(alone.outcome.rung > 0, grows);
  Server busy(true);
  std::int64_t cached = 0;
  for (const Said& said : many_ways(busy, prompt, kLength)) {
    EXPECT_EQ(said.tokens, alone.tokens);
    EXPECT_EQ(said.logprobs, alone.logprobs);
    cached += said.outcome.cached;
  }
  EXPECT_EQ(cached > 0, !grows);  // keys that were turned further are not used again

  // The conversation goes on as it would without a cache, although what was written is cached.
  const std::vector<Token> next = joined(joined(prompt, alone.tokens), words(20, 9));
  const Said on = busy.ask(next, kLength);
  const Said cold = Server(true).ask(next, kLength);
  EXPECT_EQ(cold.outcome.cached, 0);
  EXPECT_EQ(on.tokens, cold.tokens);
  EXPECT_EQ(on.logprobs, cold.logprobs);

  if (grows) return;
  // Without it the last bits differ, or this test says nothing.
  Server free(false);
  bool differs = false;
  for (const Said& said : many_ways(free, prompt, kLength)) {
    differs = differs || said.logprobs != alone.logprobs;
  }
  EXPECT_TRUE(differs);
}

TEST(Deterministic, SameBitsHoweverTheServerIsUsed) { compare(words(220, 1), false); }
TEST(Deterministic, SameBitsBeyondTheWindow) { compare(words(300, 1), true); }

}  // namespace
}  // namespace mrrope::serve
