// SPDX-License-Identifier: Apache-2.0
// --device: what each GPU computes, compared with the CPU, and names that no device has.
#include <gguf.h>

#include <list>

#include "engine/llama/devices.h"
#include "engine/llama/loader.h"
#include "engine/llama/local.h"
#include "models/random_model.h"
#include "support/observe.h"
#include "support/test.h"

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
  options.context = 1024;
  options.ubatch = 256;
  options.timelines = 1;
  options.device = device;
  return options;
}

// The bundled model with the same weights in f32.
void write_f32(const std::filesystem::path& path) {
  ggml_context* tensors = nullptr;
  gguf_context* from = gguf_init_from_file(MRROPE_TINY_MODEL, {.no_alloc = false, .ctx = &tensors});
  gguf_context* to = gguf_init_empty();
  gguf_set_kv(to, from);
  std::list<std::vector<float>> all;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(from); ++i) {
    const char* name = gguf_get_tensor_name(from, i);
    const ggml_tensor* tensor = ggml_get_tensor(tensors, name);
    gguf_add_tensor(to, tensor);
    if (!ggml_is_quantized(tensor->type)) continue;
    std::vector<float>& values = all.emplace_back(std::size_t(ggml_nelements(tensor)));
    ggml_get_type_traits(tensor->type)
        ->to_float(tensor->data, values.data(), std::int64_t(values.size()));
    gguf_set_tensor_type(to, name, GGML_TYPE_F32);
    gguf_set_tensor_data(to, name, values.data());
  }
  EXPECT_TRUE(gguf_write_to_file(to, path.c_str(), false));
  gguf_free(to);
  gguf_free(from);
  ggml_free(tensors);
}

// Logits inside the window, past its first turns, and at the end. The window is a short one.
std::vector<float> logits(const std::filesystem::path& path, const LocalOptions& options,
                          const std::string& method) {
  Model facts = read_model(path);
  facts.geometry.train_length = 256;
  const auto model = open_local(facts, options);
  model->use(method == "none" ? make_ladder(make_plan(facts.geometry, {}), 1024)
                              : make_ladder(facts.geometry, parse_method(method), 1024));
  const std::vector<std::size_t> wanted = {0, 100, 255, 300, 450, 599};
  std::vector<float> out;
  model->timeline()->append(test::words(600), wanted, [&](std::size_t, std::span<const float> row) {
    out.insert(out.end(), row.begin(), row.end());
  });
  return out;
}

// The difference as a fraction of the logits, as root mean squares.
double apart(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double squares = 0;
  double difference = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    squares += double(a[i]) * a[i];
    difference += std::pow(double(a[i]) - double(b[i]), 2);
  }
  return std::sqrt(difference / squares);
}

class OnDevice : public testing::TestWithParam<const char*> {};

// Weights are q8_0 and the cache is f16. What is exact multiplies the same weights in f32. From
// that the CPU is off by its rounding of activations to 8 bits, CUDA likewise, Vulkan by less
// (f16). So the bound is what the CPU is off by, and half of it for chance.
TEST_P(OnDevice, LogitsAreAsExactAsThoseOfTheCpu) {
  if (gpus().empty()) {
    ASSERT_EQ(std::getenv("MRROPE_TEST_GPU"), nullptr) << "no GPU here";
    GTEST_SKIP() << "no GPU here";
  }
  const test::TempFolder folder;
  write_f32(folder / "f32.gguf");
  const auto exact = logits(folder / "f32.gguf", exact_options(1024, 256), GetParam());
  const auto cpu = logits(MRROPE_TINY_MODEL, options_on("CPU"), GetParam());
  for (const std::string& device : gpus()) {
    const auto gpu = logits(MRROPE_TINY_MODEL, options_on(device), GetParam());
    std::cout << device << " " << GetParam() << ": off by " << apart(exact, gpu) << ", the CPU by "
              << apart(exact, cpu) << ", apart " << apart(cpu, gpu) << std::endl;
    EXPECT_LT(apart(exact, gpu), 1.5 * apart(exact, cpu)) << device;
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

// So the engine finds the kernels of the add-on for CUDA. The CPU's code is a library where add-ons
// are possible.
TEST(Device, SymbolsAreThoseOfTheBackendsLibrary) {
  start_llama();
  const ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  EXPECT_EQ(symbol_of(cpu, "ggml_backend_init") != nullptr, !processor_code().empty());
  EXPECT_EQ(symbol_of(cpu, "no_such_symbol"), nullptr);
}

}  // namespace
}  // namespace mrrope::engine
