// SPDX-License-Identifier: Apache-2.0
// Models that people use, as tools/models/fetch.py brings them into a cache outside the tree.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/output_file.h"

namespace mrrope::test {

// Of tools/models/models.json, smallest first.
inline const char* const kRealModels[] = {"smollm2-135m", "gemma-3-270m", "qwen2.5-coder-0.5b",
                                          "qwen2.5-coder-1.5b"};

inline std::filesystem::path real_model(const std::string& name) {
  const auto models = nlohmann::json::parse(std::ifstream(MRROPE_MODELS_JSON));
  return cache_folder() / "models" / models.at(name).at("file").get<std::string>();
}

// A name for GoogleTest: letters, digits and underscores.
inline std::string plain_name(std::string name) {
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

class RealModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path = real_model(GetParam());
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path.string() << " is missing: type tools/models/fetch.py " << GetParam();
    }
  }
  std::filesystem::path path;
};

}  // namespace mrrope::test

// Runs the cases of a RealModel suite on the given models.
#define MRROPE_REAL_MODELS(suite, ...)               \
  INSTANTIATE_TEST_SUITE_P(Real, suite, __VA_ARGS__, \
                           [](const auto& test) { return mrrope::test::plain_name(test.param); })
