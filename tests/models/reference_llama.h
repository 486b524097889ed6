// SPDX-License-Identifier: Apache-2.0
// A plain transformer in double, for files with F32 weights of the shape that Llama, Qwen2 and
// Phi-3 share. Attention is computed from its definition: the caller says at which angle query i
// sees key j.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mrrope/model.h"

namespace mrrope::test {

class ReferenceLlama {
 public:
  explicit ReferenceLlama(const std::filesystem::path& path);

  // Of query i and key j in pair p, in radians; and what their rotated part is multiplied by.
  using Angle = std::function<double(std::size_t i, std::size_t j, std::size_t p)>;
  using Weight = std::function<double(std::size_t i, std::size_t j)>;

  // Logits after every token.
  std::vector<std::vector<double>> logits(const std::vector<std::int32_t>& tokens,
                                          const Angle& angle, const Weight& weight) const;

 private:
  const std::vector<float>& tensor(const std::string& name) const;
  std::vector<double> times(const std::string& name, const std::vector<double>& x) const;
  std::vector<double> norm(const std::string& name, const std::vector<double>& x) const;

  Model facts_;
  std::size_t layers_ = 0;
  std::size_t heads_ = 0;
  std::size_t kv_heads_ = 0;
  std::size_t head_ = 0;
  double epsilon_ = 0;
  std::map<std::string, std::vector<float>> tensors_;
};

}  // namespace mrrope::test
