// SPDX-License-Identifier: Apache-2.0
// Files that libllama would load and then abort on.
#include "engine/llama/loader.h"

#include "formats/gguf/gguf.h"
#include "models/gguf_edit.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

class Loader : public testing::Test {
 protected:
  Loader() { std::filesystem::copy_file(MRROPE_TINY_MODEL, path_); }

  void refused(const std::string& word) {
    EXPECT_TRUE(test::throws_error([&] { load_model({path_}, 0); }, ErrorKind::corrupt, {word}));
    EXPECT_TRUE(test::throws_error([&] { load_vocabulary(path_); }, ErrorKind::corrupt, {word}));
  }

  test::TempFolder folder_;
  std::filesystem::path path_ = folder_ / "model.gguf";
};

TEST_F(Loader, RefusesAnEpsilonBelowZero) {
  std::string bytes = test::read_file(path_);
  const Gguf gguf = read_gguf(path_);
  const GgufKeyValue* epsilon = gguf.first().find("llama.attention.layer_norm_rms_epsilon");
  ASSERT_NE(epsilon, nullptr);
  for (const float value : {-1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    std::memcpy(bytes.data() + epsilon->offset + epsilon->size - 4, &value, 4);
    test::write_file(path_, bytes);
    refused("layer_norm_rms_epsilon is");
  }
}

TEST_F(Loader, RefusesATokenThatOccursTwice) {
  std::string bytes = test::read_file(path_);
  // A length of 1 and the letter, in a list of strings.
  const std::string token("\1\0\0\0\0\0\0\0Q", 9);
  const std::size_t at = bytes.find(token);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 8] = 'R';
  test::write_file(path_, bytes);
  refused("repeats an earlier one");
}

TEST_F(Loader, RefusesANormThatIsNotF32) {
  GgufTensorOut norm;
  norm.name = "output_norm.weight";
  norm.dims = {512};
  norm.type = 1;  // f16
  norm.size = 1024;
  norm.bytes = std::string(1024, '\0');
  test::edit_gguf(MRROPE_TINY_MODEL, path_,
                  [&](const std::string& name) { return name == norm.name; }, {norm});
  refused("output_norm.weight is of type f16");
}

}  // namespace
}  // namespace mrrope::engine
