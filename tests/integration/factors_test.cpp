// SPDX-License-Identifier: Apache-2.0
// What stock llama.cpp does with factors in a file, determined by loading one: for every row of the
// table that takes plans, a small random model with and without them.

#include "engine/llama/local.h"
#include "formats/architectures.h"
#include "models/architecture_cases.h"
#include "models/gguf_edit.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::exporting {
namespace {

bool is_list(const std::string& name) { return name.rfind("rope_f", 0) == 0; }

using Row = std::vector<float>;

// Logits after a few tokens; empty where libllama refuses the file.
Row last_logits(const std::filesystem::path& file) {
  const engine::LocalOptions options = exact_options(256, 16, 16, "off", 1);
  try {
    return stock_logits(file, test::words(12, 64), {11}, options).at(0);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    EXPECT_TRUE(contains(error.what(), "wrong number of tensors"));
    return {};
  }
}

std::vector<float> list(int pairs, bool rising) {
  std::vector<float> out;
  for (int i = 0; i < pairs; ++i) out.push_back(rising ? 1 + 7.0F * float(i) / float(pairs) : 1.0F);
  return out;
}

class Factors : public testing::TestWithParam<ArchitectureCase> {};

TEST_P(Factors, AreUsedIgnoredOrRefusedAsInTheTable) {
  const Architecture& row = *find_architecture(GetParam().architecture);
  const test::TempFolder folder(test::fast_place());
  const RandomModel model(GetParam().metadata(), 7);
  const int pairs = GetParam().rotary_dim() / 2;
  const auto with = [&](std::initializer_list<const char*> names, bool rising) {
    std::vector<GgufTensorOut> tensors;
    for (const char* name : names) tensors.push_back(f32_tensor(name, list(pairs, rising)));
    edit_gguf(model.path(), folder / "edited.gguf", is_list, std::move(tensors));
    return last_logits(folder / "edited.gguf");
  };
  FactorSupport found = FactorSupport::refused;
  const Row ones = with({"rope_freqs.weight"}, false);
  if (!ones.empty()) {
    found =
        with({"rope_freqs.weight"}, true) != ones ? FactorSupport::used : FactorSupport::ignored;
  } else {
    const auto both = {"rope_factors_long.weight", "rope_factors_short.weight"};
    const Row pair = with(both, false);
    if (!pair.empty()) {
      found = with(both, true) != pair ? FactorSupport::long_short : FactorSupport::ignored;
    }
    EXPECT_FALSE(with({}, false).empty()) << "refused even without a list";
  }
  EXPECT_EQ(found, row.factors);
}

// One case per row that is supported: its default.
INSTANTIATE_TEST_SUITE_P(Rows, Factors, testing::ValuesIn(supported_cases()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace mrrope::exporting
