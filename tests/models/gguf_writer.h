// SPDX-License-Identifier: Apache-2.0
// Writes small GGUF files for tests, right or wrong on purpose.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mrrope::test {

// The little-endian bytes of a number.
template <typename T>
std::string le(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) bytes.assign(bytes.rbegin(), bytes.rend());
  return bytes;
}

inline std::string gguf_string(std::string_view text) {
  return le<std::uint64_t>(text.size()).append(text);
}

class GgufWriter {
 public:
  // Overrides for broken files; the real numbers otherwise.
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t extra_key_values = 0;
  std::uint64_t extra_tensors = 0;
  std::uint32_t alignment = 32;

  GgufWriter& raw(std::string_view key, std::uint32_t type, std::string_view value) {
    key_values_ += gguf_string(key) + le(type) + std::string(value);
    ++key_value_count_;
    return *this;
  }
  GgufWriter& u16(std::string_view key, std::uint16_t v) { return raw(key, 2, le(v)); }
  GgufWriter& u32(std::string_view key, std::uint32_t v) { return raw(key, 4, le(v)); }
  GgufWriter& i32(std::string_view key, std::int32_t v) { return raw(key, 5, le(v)); }
  GgufWriter& f32(std::string_view key, float v) { return raw(key, 6, le(v)); }
  GgufWriter& boolean(std::string_view key, bool v) {
    return raw(key, 7, le<std::uint8_t>(v ? 1 : 0));
  }
  GgufWriter& text(std::string_view key, std::string_view v) { return raw(key, 8, gguf_string(v)); }
  GgufWriter& u64(std::string_view key, std::uint64_t v) { return raw(key, 10, le(v)); }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& list) {
    std::string bytes = le<std::uint32_t>(8) + le<std::uint64_t>(list.size());
    for (const std::string& s : list) bytes += gguf_string(s);
    return raw(key, 9, bytes);
  }
  template <typename T>
  GgufWriter& array(std::string_view key, std::uint32_t element, const std::vector<T>& list) {
    std::string bytes = le(element) + le<std::uint64_t>(list.size());
    for (const T v : list) bytes += le(v);
    return raw(key, 9, bytes);
  }

  // The tensor's record as given; its data goes to the offset only if it is the next one.
  GgufWriter& tensor_at(std::string_view name, const std::vector<std::uint64_t>& dims,
                        std::uint32_t type, std::uint64_t offset) {
    tensors_ += gguf_string(name) + le(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t d : dims) tensors_ += le(d);
    tensors_ += le(type) + le(offset);
    ++tensor_count_;
    return *this;
  }
  GgufWriter& tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                     std::uint32_t type, std::string_view data) {
    pad(data_);
    tensor_at(name, dims, type, data_.size());
    data_ += data;
    return *this;
  }
  GgufWriter& floats(std::string_view name, const std::vector<float>& values) {
    std::string data;
    for (const float v : values) data += le(v);
    return tensor(name, {values.size()}, 0, data);
  }

  std::string header() const {
    return magic + le(version) + le(tensor_count_ + extra_tensors) +
           le(key_value_count_ + extra_key_values) + key_values_ + tensors_;
  }
  std::string bytes() const {
    std::string out = header();
    if (data_.empty()) return out;
    pad(out);
    return out + data_;
  }

 private:
  void pad(std::string& bytes) const {
    while (bytes.size() % alignment != 0) bytes += '\0';
  }

  std::string key_values_;
  std::string tensors_;
  std::string data_;
  std::uint64_t key_value_count_ = 0;
  std::uint64_t tensor_count_ = 0;
};

// The keys of a small llama; a test adds or breaks some.
struct LlamaKeys {
  std::string architecture = "llama";
  std::uint32_t context = 4096;
  std::uint32_t embedding = 64;
  std::uint32_t layers = 2;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t rotary_dim = 16;
  float base = 10000;
};

inline GgufWriter llama_gguf(const LlamaKeys& keys = {}) {
  GgufWriter out;
  const std::string name = keys.architecture + ".";
  out.text("general.architecture", keys.architecture)
      .text("general.name", "Small Llama")
      .u32(name + "context_length", keys.context)
      .u32(name + "embedding_length", keys.embedding)
      .u32(name + "block_count", keys.layers)
      .u32(name + "attention.head_count", keys.heads)
      .u32(name + "attention.head_count_kv", keys.kv_heads)
      .u32(name + "rope.dimension_count", keys.rotary_dim)
      .f32(name + "rope.freq_base", keys.base)
      .strings("tokenizer.ggml.tokens", {"a", "b", "c"});
  return out;
}

}  // namespace mrrope::test
