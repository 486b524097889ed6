// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <concepts>
#include <string>
#include <string_view>

namespace mrrope::test {

// For texts it takes the place of contains() of base/words.h, which is for lists.
template <std::convertible_to<std::string_view> Text, std::convertible_to<std::string_view> Part>
testing::AssertionResult contains(const Text& text, const Part& part) {
  const std::string_view all = text, wanted = part;
  return testing::AssertionResult(all.find(wanted) != std::string_view::npos)
         << "looked for \"" << wanted << "\" in: " << all;
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
