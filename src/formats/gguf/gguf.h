// SPDX-License-Identifier: Apache-2.0
// Strict reader of GGUF headers, versions 2 and 3, in one file or split into parts. Nothing is
// believed before it is checked against the size of the file: a Gguf that exists has unique keys
// and tensor names, and tensor data inside the file, without overlaps.
//
// Kept in memory: scalars, strings up to 4 KiB and arrays of up to 4096 integers. Of the rest
// (vocabularies, chat templates) only type, count and place are kept, so that an exporter can copy
// them byte for byte.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/files/source.h"

namespace mrrope {

// Numbered as in the files.
// clang-format off
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
// clang-format on
const char* to_string(GgufType type) noexcept;

// What is kept of a value; monostate: nothing but its place.
using GgufValue = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                               std::vector<std::int64_t>>;

struct GgufKeyValue {
  std::string key;
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  // of an array; else the same as type
  std::uint64_t count = 1;          // elements of an array; else 1
  std::uint64_t offset = 0;         // bytes in the file: type and value
  std::uint64_t size = 0;
  GgufValue value;
};

struct GgmlType {
  std::uint32_t id = 0;
  std::string_view name;
  std::uint32_t block = 0;  // elements per block
  std::uint32_t bytes = 0;  // per block
};

// nullptr where ggml has no such type (or no longer has it).
const GgmlType* find_ggml_type(std::uint32_t id) noexcept;

constexpr std::uint32_t kGgmlF32 = 0;

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // fastest first, at most 4; each at least 1
  std::uint32_t type = 0;           // see find_ggml_type
  std::uint64_t offset = 0;         // bytes from the start of the file
  std::uint64_t size = 0;           // bytes
  std::uint64_t elements() const noexcept;
};

// One file.
struct GgufPart {
  std::filesystem::path path;
  std::uint64_t file_size = 0;
  std::uint32_t version = 0;
  std::uint32_t alignment = 32;
  std::uint64_t data_offset = 0;  // bytes from the start of the file
  std::vector<GgufKeyValue> key_values;
  std::vector<GgufTensor> tensors;
  // The data of the tensors that hold rope factors (rope_freqs.weight and its like), by name.
  std::map<std::string, std::vector<float>, std::less<>> rope_factors;

  std::string name() const { return path.string(); }

  const GgufKeyValue* find(std::string_view key) const noexcept;

  // Typed access, each an Error (corrupt) that names key and value if the type does not fit or the
  // number is out of [low, high]. Absent keys give nullopt or an empty list.
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low,
                                      std::int64_t high) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  // A scalar counts as a list of one; booleans as 0 and 1.
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t low,
                                     std::int64_t high) const;
};

// Throws Error: corrupt, or unsupported for versions and byte orders that are not read.
GgufPart read_gguf_part(const Source& source);

// A model of one or more parts; the first holds its key-values.
struct Gguf {
  std::vector<GgufPart> parts;

  const GgufPart& first() const noexcept { return parts[0]; }
  // {part, tensor}, or nullptrs.
  std::pair<const GgufPart*, const GgufTensor*> find_tensor(std::string_view name) const noexcept;
  // Empty if there is no such tensor.
  std::vector<double> rope_factors(std::string_view tensor) const;
};

// Tensors that hold divisors of theta.
inline constexpr const char* kRopeFreqs = "rope_freqs.weight";
inline constexpr const char* kRopeLong = "rope_factors_long.weight";
inline constexpr const char* kRopeShort = "rope_factors_short.weight";
bool is_rope_list(std::string_view tensor) noexcept;

// Any part of a split file opens all of them; their names are derived from this one's.
Gguf read_gguf(const std::filesystem::path& path);

// From one source; a part of a split model is refused.
Gguf read_gguf(const Source& source);

// A GGUF file is written out of pieces of others: what is not new is copied byte for byte, so that
// nothing is quantised again and no vocabulary passes through memory.

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
struct GgufTensorOut : GgufTensor {
  std::string bytes;               // the data; empty: copied
  const GgufPart* part = nullptr;  // where from
  RowOrder rows = {};
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

// Creates the file, which must not exist, and flushes it to the disk. Every range was checked when
// the parts were read; a source that changed since is refused. Throws Error (failed); a file that
// could not be completed is removed.
void write_gguf(const GgufFileOut& file, const BytesWritten& progress);

}  // namespace mrrope
