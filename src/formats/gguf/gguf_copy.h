// SPDX-License-Identifier: Apache-2.0
// Writes a GGUF file out of pieces of others: what is not new is copied byte for byte, so that
// nothing is quantised again and no vocabulary passes through memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"

namespace mrrope {

// One key-value to write: type and value as bytes, or copied from a record of a file.
struct GgufKeyOut {
  std::string key;
  std::string bytes;                     // type and value; empty: copied
  const GgufPart* part = nullptr;        // where from
  const GgufKeyValue* record = nullptr;  // of that part
};

GgufKeyOut copied(const GgufPart& part, const GgufKeyValue& record, std::string key);
GgufKeyOut text_key(std::string key, std::string_view value);
GgufKeyOut f32_key(std::string key, float value);
// Throws Error (usage) where the value does not fit the type.
GgufKeyOut integer_key(std::string key, GgufType type, std::uint64_t value);

// Rows of heads, taken from pairs of halves to interleaved pairs: row i of the first half of a head
// becomes row 2i, row i of the second half row 2i + 1.
struct RowOrder {
  std::uint64_t head = 0;   // rows of one head; even; 0: rows stay as they are
  std::uint64_t heads = 0;  // this many heads from the first row on; rows after them stay
};

// One tensor to write.
struct GgufTensorOut {
  std::string name;
  std::vector<std::uint64_t> dims;
  std::uint32_t type = kGgmlF32;
  std::uint64_t size = 0;          // bytes
  std::string bytes;               // the data; empty: copied
  const GgufPart* part = nullptr;  // where from
  std::uint64_t offset = 0;        // in that file
  RowOrder rows;
};

GgufTensorOut copied(const GgufPart& part, const GgufTensor& tensor);
GgufTensorOut f32_tensor(std::string name, const std::vector<float>& values);

struct GgufFileOut {
  std::filesystem::path path;
  std::uint32_t alignment = 32;
  std::vector<GgufKeyOut> keys;
  std::vector<GgufTensorOut> tensors;

  std::uint64_t size() const;  // bytes of the whole file
};

// Called now and then with the bytes written since the last call; may throw to give up.
using BytesWritten = std::function<void(std::uint64_t)>;

// Creates the files, none of which may exist, and flushes them to the disk. Every range was checked
// when the parts were read; a source that changed since is refused. Throws Error (failed); the file
// that could not be completed is removed.
void write_gguf(const std::vector<GgufFileOut>& files, const BytesWritten& progress);

}  // namespace mrrope
