// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "base/files/output_file.h"
#include "base/text.h"
#include "formats/gguf/gguf.h"

namespace mrrope {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kRowBuffer = std::size_t{1} << 20;

template <typename T>
std::string le(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) bytes.assign(bytes.rbegin(), bytes.rend());
  return bytes;
}

std::string type_of(GgufType type) { return le(std::uint32_t(type)); }

std::uint64_t aligned(std::uint64_t size, std::uint32_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

std::uint64_t header_size(const GgufFileOut& file) {
  std::uint64_t size = 4 + 4 + 8 + 8;
  for (const GgufKeyOut& kv : file.keys) {
    size += 8 + kv.key.size() + (kv.record ? kv.record->size : kv.bytes.size());
  }
  for (const GgufTensorOut& tensor : file.tensors) {
    size += 8 + tensor.name.size() + 4 + 8 * tensor.dims.size() + 4 + 8;
  }
  return size;
}

// Sources stay open while their file is copied.
struct Sources {
  std::map<const GgufPart*, Source> open;

  const Source& of(const GgufPart& part) {
    const auto found = open.find(&part);
    if (found != open.end()) return found->second;
    Source source = Source::open(part.path);
    fail_if(source.size() != part.file_size,
            cat(shown(part.name()), " had ", part.file_size, " bytes and now has ", source.size()),
            "wait until it is fully written, then try again");
    return open.emplace(&part, std::move(source)).first->second;
  }
};

void write_reordered(OutputFile& out, const Source& source, const GgufTensorOut& tensor) {
  // A bias has one dimension; each of its elements belongs to one row of the matrix.
  const std::uint64_t row_bytes = tensor.size / tensor.dims[tensor.dims.size() == 1 ? 0 : 1];
  const RowOrder& order = tensor.rows;
  const std::uint64_t half = order.head / 2;
  std::vector<std::byte> first;
  std::vector<std::byte> second;
  const std::uint64_t most = std::max<std::uint64_t>(1, kRowBuffer / row_bytes);
  for (std::uint64_t head = 0; head < order.heads; ++head) {
    const std::uint64_t start = tensor.offset + head * order.head * row_bytes;
    for (std::uint64_t i = 0; i < half;) {
      const std::uint64_t count = std::min(most, half - i);
      first.resize(std::size_t(count * row_bytes));
      second.resize(first.size());
      source.read(start + i * row_bytes, first);
      source.read(start + (half + i) * row_bytes, second);
      for (std::size_t at = 0; at < first.size(); at += std::size_t(row_bytes)) {
        out.write(std::span(first).subspan(at, std::size_t(row_bytes)));
        out.write(std::span(second).subspan(at, std::size_t(row_bytes)));
      }
      i += count;
    }
  }
  const std::uint64_t done = order.heads * order.head * row_bytes;
  out.copy(source, tensor.offset + done, tensor.size - done);
}

}  // namespace

GgufKeyOut copied(const GgufPart& part, const GgufKeyValue& record, std::string key) {
  return {std::move(key), {}, &part, &record};
}

GgufKeyOut text_key(std::string key, std::string_view value) {
  return {std::move(key),
          type_of(GgufType::string) + le(std::uint64_t{value.size()}) + std::string(value)};
}

GgufKeyOut f32_key(std::string key, float value) {
  return {std::move(key), type_of(GgufType::f32) + le(value)};
}

GgufKeyOut integer_key(std::string key, GgufType type, std::uint64_t value) {
  const bool has_sign = type == GgufType::i32 || type == GgufType::i64;
  const std::size_t bytes = type == GgufType::u16                            ? 2
                            : type == GgufType::u32 || type == GgufType::i32 ? 4
                            : type == GgufType::u64 || type == GgufType::i64 ? 8
                                                                             : 0;
  unsupported_if(bytes == 0,
                 cat(key, " is of the type ", to_string(type), ", in which no length is written"),
                 "convert the model again");
  refuse_if(value > UINT64_MAX >> (64 - 8 * bytes + (has_sign ? 1 : 0)),
            cat(key, " is of the type ", to_string(type), ", which cannot hold ", value),
            "give a smaller --ctx");
  return {std::move(key), type_of(type) + le(value).substr(0, bytes)};
}

GgufTensorOut copied(const GgufPart& part, const GgufTensor& tensor) { return {tensor, {}, &part}; }

GgufTensorOut f32_tensor(std::string name, const std::vector<float>& values) {
  std::string bytes;
  for (const float v : values) bytes += le(v);
  return {{std::move(name), {values.size()}, kGgmlF32, 0, bytes.size()}, bytes};
}

std::uint64_t GgufFileOut::size() const {
  std::uint64_t total = aligned(header_size(*this), alignment);
  for (const GgufTensorOut& tensor : tensors) total += aligned(tensor.size, alignment);
  return total;
}

void write_gguf(const GgufFileOut& file, const BytesWritten& progress) {
  OutputFile out(file.path);
  out.on_bytes = progress;
  Sources sources;
  out.write("GGUF" + le(kVersion) + le(std::uint64_t{file.tensors.size()}) +
            le(std::uint64_t{file.keys.size()}));
  for (const GgufKeyOut& kv : file.keys) {
    out.write(le(std::uint64_t{kv.key.size()}) + kv.key);
    if (kv.record) {
      out.copy(sources.of(*kv.part), kv.record->offset, kv.record->size);
    } else {
      out.write(kv.bytes);
    }
  }
  std::uint64_t offset = 0;
  for (const GgufTensorOut& tensor : file.tensors) {
    out.write(le(std::uint64_t{tensor.name.size()}) + tensor.name +
              le(std::uint32_t(tensor.dims.size())));
    for (const std::uint64_t d : tensor.dims) out.write(le(d));
    out.write(le(tensor.type) + le(offset));
    offset += aligned(tensor.size, file.alignment);
  }
  for (const GgufTensorOut& tensor : file.tensors) {
    out.zeros(aligned(out.position(), file.alignment) - out.position());
    if (!tensor.part) {
      out.write(tensor.bytes);
    } else if (tensor.rows.head == 0) {
      out.copy(sources.of(*tensor.part), tensor.offset, tensor.size);
    } else {
      write_reordered(out, sources.of(*tensor.part), tensor);
    }
  }
  out.zeros(aligned(out.position(), file.alignment) - out.position());
  out.finish();
}

}  // namespace mrrope
