// SPDX-License-Identifier: Apache-2.0
// A copy of a GGUF file without some tensors, and with others and more or other keys.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/words.h"
#include "formats/gguf/gguf.h"

namespace mrrope::test {

inline void edit_gguf(const std::filesystem::path& from, const std::filesystem::path& to,
                      const std::function<bool(const std::string&)>& without,
                      std::vector<GgufTensorOut> with = {},
                      const std::vector<GgufKeyOut>& keys = {}) {
  const Gguf source = read_gguf(from);
  GgufFileOut out;
  out.path = to.string() + ".edited";
  out.alignment = source.first().alignment;
  out.keys = keys;
  for (const GgufKeyValue& record : source.first().key_values) {
    if (find_by(keys, &GgufKeyOut::key, record.key)) continue;
    out.keys.push_back(copied(source.first(), record, record.key));
  }
  for (const GgufTensor& tensor : source.first().tensors) {
    if (!without(tensor.name)) out.tensors.push_back(copied(source.first(), tensor));
  }
  std::move(with.begin(), with.end(), std::back_inserter(out.tensors));
  write_gguf(out, {});
  std::filesystem::rename(out.path, to);
}

}  // namespace mrrope::test
