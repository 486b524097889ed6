// SPDX-License-Identifier: Apache-2.0
// Which part of a split model a file is, by its name without .gguf: STEM-00002-of-00005. Any other
// is a whole one.
#pragma once

#include <cstdint>
#include <regex>
#include <string>

namespace mrrope {

struct SplitName {
  std::string stem;
  std::uint64_t number = 1;  // as in the name: from 1
  std::uint64_t count = 1;
};

inline SplitName split_name(const std::string& name) {
  static const std::regex pattern("(.+)-([0-9]{5})-of-([0-9]{5})");
  std::smatch found;
  if (!std::regex_match(name, found, pattern)) return {name};
  return {found[1], std::stoull(found[2]), std::stoull(found[3])};
}

}  // namespace mrrope
