// SPDX-License-Identifier: Apache-2.0
// --device: what each GPU computes, compared with the CPU, and names that no device has.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "engine/llama/devices.h"
#include "engine/llama/loader.h"
#include "engine/llama/local.h"
#include "support/expect_error.h"
#include "support/observe.h"

namespace mrrope::engine {
namespace {

std::vector<std::string> gpus() {
  start_llama();
  std::vector<std::string> out;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    const ggml_backend_dev_t device = ggml_backend_dev_get(i);
    if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) continue;
    out.emplace_back(ggml_backend_dev_name(device));
  }
  return out;
}

LocalOptions options_on(const std::string& device) {
  LocalOptions options;
  options.context = 4096;
  options.ubatch = 256;
  options.timelines = 1;
  options.device = device;
  return options;
}

// Logits of the bundled model inside the window, past its first turns, and at the end.
test::Rows rows_on(const std::string& device, const std::string& method) {
  const Model facts = read_model(MRROPE_TINY_MODEL);
  const auto model = open_local(facts, options_on(device));
  model->use(method == "none" ? make_ladder(make_plan(facts.geometry, {}), 4096)
                              : make_ladder(facts.geometry, parse_method(method), 4096));
  const std::vector<std::size_t> wanted = {0, 500, 1023, 1100, 1800, 2599};
  test::Rows rows;
  model->timeline()->append_observed(
      test::words(2600), wanted,
      [&](std::size_t, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
  return rows;
}

class OnDevice : public testing::TestWithParam<const char*> {};

// The weights are q8_0 and the cache is f16; the CPU rounds activations to 8 bits as well, GPUs to
// f16. The same model on the CPU with a cache in f32 moves its logits by as much.
TEST_P(OnDevice, LogitsAreThoseOfTheCpu) {
  if (gpus().empty()) GTEST_SKIP() << "no GPU here";
  const test::Rows here = rows_on("CPU", GetParam());
  for (const std::string& device : gpus()) {
    const test::Rows there = rows_on(device, GetParam());
    ASSERT_EQ(here.size(), there.size());
    double squares = 0;
    double difference = 0;
    for (std::size_t r = 0; r < here.size(); ++r) {
      ASSERT_EQ(here[r].size(), there[r].size());
      for (std::size_t i = 0; i < here[r].size(); ++i) {
        squares += double(here[r][i]) * here[r][i];
        difference += std::pow(double(here[r][i]) - double(there[r][i]), 2);
      }
    }
    const double relative = std::sqrt(difference / squares);
    std::printf("  %s %s: %.2e of the logits\n", device.c_str(), GetParam(), relative);
    EXPECT_LT(relative, 0.02) << device;
  }
}
INSTANTIATE_TEST_SUITE_P(Methods, OnDevice,
                         testing::Values("none", "pro", "elastic:pro", "far:pi"));

TEST(Device, UnknownNamesAreRefusedWithTheKnownOnes) {
  const Model facts = read_model(MRROPE_TINY_MODEL);
  EXPECT_TRUE(test::throws_error([&] { open_local(facts, options_on("Nope0")); }, ErrorKind::usage,
                                 {"no device", "Nope0", "CPU"}));
  EXPECT_TRUE(test::throws_error([&] { open_local(facts, options_on("CPU,")); }, ErrorKind::usage,
                                 {"no device"}));
}

TEST(Device, TheCpuAloneIsADevice) {
  const Model facts = read_model(MRROPE_TINY_MODEL);
  const auto model = open_local(facts, options_on("cpu"));
  EXPECT_EQ(devices_in_use(options_on("cpu")).size(), 1U);
  EXPECT_NE(device_list().find("CPU: "), std::string::npos);
}

}  // namespace
}  // namespace mrrope::engine
