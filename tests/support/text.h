// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace mrrope::test {

inline testing::AssertionResult contains(std::string_view text, std::string_view part) {
  return testing::AssertionResult(text.find(part) != std::string_view::npos)
         << "looked for \"" << part << "\" in: " << text;
}

// Lines of text, no two of them alike.
inline std::string lemmas(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    text += "Lemma " + std::to_string(i) + ". Let $x$ be an element of the group $G$. Then $x^{" +
            std::to_string(i * 37 % 101) + "} = 1$ if and only if $x$ is trivial.\n";
  }
  return text;
}

}  // namespace mrrope::test
