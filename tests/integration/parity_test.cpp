// SPDX-License-Identifier: Apache-2.0
// The whole way from a plan to log-probabilities against transformers in fp32, as recorded by
// tools/record_logprobs.py on the bundled model's own checkpoint.
//
// What differs: the checkpoint's weights are f16, the file's Q8_0 (8-bit blocks, activations too).
// A single token may move by half a nat where the model is unsure; the mean over a band of 256 does
// not move by more than kBandTolerance, and the mean of all not by more than kMeanTolerance.
// Another method moves bands by kLeastSignal or more.

#include "engine/llama/local.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr double kBandTolerance = 0.02;
constexpr double kMeanTolerance = 0.005;
constexpr double kValueTolerance = 0.5;
constexpr double kLeastSignal = 0.05;

TEST(Parity, LogProbabilitiesMatchTransformers) {
  std::ifstream file(MRROPE_GOLDEN_DIR "/tiny_logprobs.json");
  const auto golden = nlohmann::json::parse(file);
  LocalOptions options;
  options.context = golden["length"];
  options.gpu_layers = 0;
  options.type_k = options.type_v = "f32";
  options.timelines = 1;
  const auto model = open_local(read_model(MRROPE_TINY_MODEL), options);
  const std::vector<Token> tokens = model->tokenize(golden["text"].get<std::string>(), true, false);
  ASSERT_EQ(tokens.size(), golden["length"]);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sum += (static_cast<std::int64_t>(i) + 1) * tokens[i];
  }
  ASSERT_EQ(sum % (std::int64_t{1} << 31), golden["token_sum"]);

  const std::size_t band = golden["band"];
  for (const auto& [method, expected] : golden["methods"].items()) {
    SCOPED_TRACE(method);
    model->use(make_ladder(
        make_plan(model->facts().geometry, {.method = method, .scale = golden["scale"]}),
        options.context));
    const std::vector<double> scores = model->timeline()->append_scored(tokens);

    double mean_apart = 0;
    double signal = 0;
    for (std::size_t b = 0; b < expected["bands"].size(); ++b) {
      const std::size_t first = std::max<std::size_t>(1, b * band);
      double total = 0;
      for (std::size_t i = first; i < (b + 1) * band; ++i) total += scores[i];
      const double mean = total / static_cast<double>((b + 1) * band - first);
      const double apart = mean - expected["bands"][b].get<double>();
      EXPECT_NEAR(apart, 0, kBandTolerance) << "band " << b;
      mean_apart += apart / static_cast<double>(expected["bands"].size());
      const auto& other = golden["methods"][method == "uni" ? "pro" : "uni"]["bands"][b];
      signal = std::max(signal, std::abs(mean - other.get<double>()));
    }
    EXPECT_NEAR(mean_apart, 0, kMeanTolerance);
    EXPECT_GT(signal, kLeastSignal) << "the test is too weak to fail";
    double largest = 0;
    double squares = 0;
    for (std::size_t i = 0; i < golden["positions"].size(); ++i) {
      const std::size_t position = golden["positions"][i];
      const double apart = scores[position] - expected["values"][i].get<double>();
      EXPECT_NEAR(apart, 0, kValueTolerance) << "position " << position;
      largest = std::max(largest, std::abs(apart));
      squares += apart * apart;
    }
    RecordProperty(method + "_mean", std::to_string(mean_apart));
    RecordProperty(method + "_signal", std::to_string(signal));
    RecordProperty(method + "_largest", std::to_string(largest));
    RecordProperty(method + "_rms",
                   std::to_string(std::sqrt(squares / golden["positions"].size())));
  }
}

}  // namespace
}  // namespace mrrope::engine
