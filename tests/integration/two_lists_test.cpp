// SPDX-License-Identifier: Apache-2.0
// Files with LongRoPE's two lists under elastic:vendor, their default: stock llama.cpp's short list
// inside the original window, and beyond it the long one, with the keys turned at the border.

#include "engine/llama/local.h"
#include "formats/gguf/gguf.h"
#include "models/random_model.h"
#include "models/reference_llama.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr std::size_t kWindow = 256;  // libllama's contexts are multiples of it
constexpr std::size_t kTokens = 330;
constexpr std::int64_t kLongest = 1024;
constexpr float kAttention = 1.19F;
// f32 keys: sums in another order, and angles of up to a few hundred radians in float.
constexpr double kNoise = 2e-3;

LocalOptions options_for(std::int64_t context) { return exact_options(context, 64); }

class TwoLists : public testing::TestWithParam<const char*> {
 protected:
  static Metadata small_model(int layers = 2) {
    Metadata m = small_metadata(
        GetParam(),
        {.layers = layers, .window = int(kLongest), .heads = 2, .head = 32, .rotated = 32});
    m.set("rope.scaling.type", "longrope");
    m.set("rope.scaling.original_context_length", int(kWindow));
    m.set("rope.scaling.attn_factor", kAttention);
    return m;
  }

  // Under auto in a context of the vendor's longest length.
  static Rows by_default(const std::filesystem::path& path) {
    const auto model = open_local(read_model(path), options_for(kLongest));
    const Ladder ladder = make_ladder(model->facts().geometry, {.name = "auto"}, kLongest);
    EXPECT_EQ(ladder.extension().method, "vendor");
    EXPECT_EQ(ladder.growth(), Growth::elastic);
    EXPECT_EQ(ladder.rungs().size(), 2U);
    model->use(ladder);
    const auto timeline = model->timeline();
    Rows rows = observe(*timeline, words(kTokens));
    EXPECT_EQ(timeline->rung(), 1U);
    return rows;
  }

  // Of stock llama.cpp, whose context decides which list it takes.
  static Rows stock(const std::filesystem::path& path, std::int64_t context, std::size_t tokens) {
    std::vector<std::size_t> wanted(tokens);
    std::iota(wanted.begin(), wanted.end(), 0U);
    return stock_logits(path, words(tokens), wanted, options_for(context));
  }

  // A transformer in double, with the numbers of the file: queries from `border` on take the long
  // list.
  static std::vector<std::vector<double>> by_definition(const std::filesystem::path& path,
                                                        std::size_t border) {
    const Gguf file = read_gguf(path);
    const std::vector<double> lists[] = {file.rope_factors(kRopeShort),
                                         file.rope_factors(kRopeLong)};
    const auto angle = [&](std::size_t i, std::size_t j, std::size_t p) {
      return double(i - j) * std::pow(1e4, -double(p) / 16) / lists[i < border ? 0 : 1].at(p);
    };
    const auto weight = [](std::size_t, std::size_t) { return double(kAttention) * kAttention; };
    return test::ReferenceLlama(path).logits(words(kTokens), angle, weight);
  }
};

INSTANTIATE_TEST_SUITE_P(Files, TwoLists, testing::Values("phi3", "llama"),
                         [](const auto& sample) { return std::string(sample.param); });

TEST_P(TwoLists, MatchATransformerInDouble) {
  const RandomModel file(small_model(), 5);
  const Rows rows = by_default(file.path());
  const auto expected = by_definition(file.path(), kWindow);
  EXPECT_LE(largest_difference(rows, expected), kNoise);
  // The test can fail: either list alone is far away.
  const double with_short =
      largest_difference(rows.back(), by_definition(file.path(), kTokens).back());
  const double with_long =
      largest_difference(rows[kWindow / 2], by_definition(file.path(), 0)[kWindow / 2]);
  EXPECT_GT(with_short, 20 * kNoise);
  EXPECT_GT(with_long, 20 * kNoise);
  std::printf("  worst difference %.1e, of the short list %.1e, of the long one %.1e\n",
              largest_difference(rows, expected), with_short, with_long);
}

TEST_P(TwoLists, InsideTheWindowAreLlamaCppsShortListBitForBit) {
  const RandomModel file(small_model(), 6);
  const Rows rows = by_default(file.path());
  const Rows expected = stock(file.path(), kWindow, kWindow);
  for (std::size_t i = 0; i < kWindow; ++i) ASSERT_EQ(rows[i], expected[i]) << i;
  // What it does in a long context.
  const Rows harmed = stock(file.path(), kLongest, kWindow);
  EXPECT_GT(largest_difference(harmed[kWindow / 2], expected[kWindow / 2]), 20 * kNoise);
}

// In a model of one layer keys and values do not depend on the list, so that what follows the
// border is what llama.cpp computes with the long list from the start.
TEST_P(TwoLists, BeyondTheWindowAreLlamaCppsLongList) {
  const RandomModel file(small_model(1), 7);
  const Rows rows = by_default(file.path());
  const Rows expected = stock(file.path(), kLongest, kTokens);
  for (std::size_t i = kWindow; i < kTokens; ++i) {
    ASSERT_LE(largest_difference(rows[i], expected[i]), 2e-4) << i;
  }
  EXPECT_GT(largest_difference(rows[kWindow - 1], expected[kWindow - 1]), 1e-2);
}

// Static, as where keys cannot be turned: llama.cpp in a long context, bit for bit.
TEST_P(TwoLists, StaticAreLlamaCppsLongListBitForBit) {
  const RandomModel file(small_model(), 8);
  const auto model = open_local(read_model(file.path()), options_for(kLongest));
  model->use(make_ladder(model->facts().geometry, {.name = "vendor"}, kLongest));
  const Rows rows = observe(*model->timeline(), words(kTokens));
  EXPECT_EQ(rows, stock(file.path(), kLongest, kTokens));
}

}  // namespace
}  // namespace mrrope::engine
