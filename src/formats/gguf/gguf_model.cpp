// SPDX-License-Identifier: Apache-2.0
// A GGUF model as a whole: typed access to its keys, its small tensors, and its parts.
#include <cstdio>
#include <regex>
#include <unordered_set>

#include "base/text.h"
#include "formats/gguf/gguf.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

constexpr std::uint64_t kMaxParts = 4096;
constexpr std::uint64_t kMaxSmallTensor = 65536;  // elements

// NAME-00002-of-00005.gguf
struct SplitName {
  std::string prefix;
  std::uint64_t number = 0;  // from 1
  std::uint64_t count = 0;
};

std::optional<SplitName> parse_split_name(const std::string& file) {
  static const std::regex pattern("(.+)-([0-9]{5})-of-([0-9]{5})[.]gguf");
  std::smatch found;
  if (!std::regex_match(file, found, pattern)) return std::nullopt;
  const SplitName name{found[1], std::stoull(found[2]), std::stoull(found[3])};
  if (name.number < 1 || name.number > name.count || name.count > kMaxParts) return std::nullopt;
  return name;
}

std::uint64_t split_key(const GgufPart& part, std::string_view key, std::uint64_t otherwise) {
  const auto value = part.integer(key, 0, std::int64_t{1} << 32);
  return value ? std::uint64_t(*value) : otherwise;
}

void check_part(const GgufPart& part, std::uint64_t number, std::uint64_t count) {
  const std::string file = part.path.string();
  const std::uint64_t said_count = split_key(part, "split.count", 1);
  const std::uint64_t said_number = split_key(part, "split.no", 0);
  if (said_count != count) {
    corrupt(file, cat("split.count is ", said_count, ", but the name says ", count, " parts"),
            "this folder has parts of different models: download them again");
  }
  if (said_number + 1 != number) {
    corrupt(
        file,
        cat("split.no is ", said_number, ", but the name says part ", number, " (counted from 1)"),
        "a part was renamed: give the parts their own names back");
  }
}

void check_whole(const Gguf& model) {
  std::unordered_set<std::string_view> names;
  std::uint64_t tensors = 0;
  for (const GgufPart& part : model.parts) {
    tensors += part.tensors.size();
    for (const GgufTensor& tensor : part.tensors) {
      if (!names.insert(tensor.name).second) {
        corrupt(part.path.string(),
                cat("the tensor ", shown(tensor.name), " is in another part too"));
      }
    }
  }
  const std::uint64_t said = split_key(model.parts[0], "split.tensors.count", tensors);
  if (said != tensors) {
    corrupt(model.first().name(),
            cat("split.tensors.count is ", said, ", but the parts hold ", tensors, " tensors"));
  }
}

[[noreturn]] void wrong_type(const GgufPart& part, const GgufKeyValue& kv, const char* wanted) {
  corrupt(part.name(), cat(shown(kv.key), " has the type ", to_string(kv.type), ", not ", wanted));
}

// A value of one type; nullopt where there is no such key.
template <typename T>
std::optional<T> value_as(const GgufPart& part, std::string_view key, const char* wanted) {
  const GgufKeyValue* kv = part.find(key);
  if (!kv) return std::nullopt;
  if (const T* value = std::get_if<T>(&kv->value)) return *value;
  if (kv->type == GgufType::string && std::holds_alternative<std::monostate>(kv->value)) {
    corrupt(part.name(), cat(key, " is far too long for a name"));
  }
  wrong_type(part, *kv, wanted);
}

void check_range(const GgufPart& part, std::string_view key, std::int64_t value, std::int64_t low,
                 std::int64_t high) {
  if (value >= low && value <= high) return;
  corrupt(part.name(), cat(key, " is ", value, ", not between ", low, " and ", high));
}

}  // namespace

bool is_rope_list(std::string_view tensor) noexcept {
  return tensor == kRopeFreqs || tensor == kRopeLong || tensor == kRopeShort;
}

std::string split_file_name(const std::string& prefix, std::uint64_t part, std::uint64_t count) {
  char tail[64];
  std::snprintf(tail, sizeof tail, "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(part),
                static_cast<unsigned long long>(count));
  return prefix + tail;
}

std::optional<std::int64_t> GgufPart::integer(std::string_view key, std::int64_t low,
                                              std::int64_t high) const {
  const auto value = value_as<std::int64_t>(*this, key, "an integer");
  if (value) check_range(*this, key, *value, low, high);
  return value;
}

std::optional<double> GgufPart::real(std::string_view key) const {
  const GgufKeyValue* kv = find(key);
  if (kv && std::holds_alternative<std::int64_t>(kv->value)) {
    return double(std::get<std::int64_t>(kv->value));
  }
  return value_as<double>(*this, key, "a number");
}

std::optional<bool> GgufPart::boolean(std::string_view key) const {
  return value_as<bool>(*this, key, "bool");
}

std::optional<std::string> GgufPart::text(std::string_view key) const {
  return value_as<std::string>(*this, key, "string");
}

std::vector<std::int64_t> GgufPart::integers(std::string_view key, std::int64_t low,
                                             std::int64_t high) const {
  const GgufKeyValue* kv = find(key);
  if (!kv) return {};
  if (const bool* flag = std::get_if<bool>(&kv->value)) return {*flag ? 1 : 0};
  if (kv->type != GgufType::array) return {*integer(key, low, high)};
  const auto* list = std::get_if<std::vector<std::int64_t>>(&kv->value);
  if (!list) {
    corrupt(name(), cat(key, " has ", kv->count, " elements of the type ", to_string(kv->element),
                        ", not an integer for each layer"));
  }
  for (const std::int64_t v : *list) check_range(*this, key, v, low, high);
  return *list;
}

std::pair<const GgufPart*, const GgufTensor*> Gguf::find_tensor(
    std::string_view wanted) const noexcept {
  for (const GgufPart& part : parts) {
    for (const GgufTensor& tensor : part.tensors) {
      if (tensor.name == wanted) return {&part, &tensor};
    }
  }
  return {nullptr, nullptr};
}

std::uint64_t Gguf::tensor_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const GgufPart& part : parts) {
    for (const GgufTensor& tensor : part.tensors) sum += tensor.size;
  }
  return sum;
}

std::vector<double> Gguf::rope_factors(std::string_view tensor) const {
  for (const GgufPart& part : parts) {
    const auto at = part.rope_factors.find(tensor);
    if (at != part.rope_factors.end()) return {at->second.begin(), at->second.end()};
  }
  return {};
}

std::vector<float> read_f32(const Source& source, const GgufTensor& tensor) {
  if (tensor.type != kGgmlF32) {
    corrupt(source.name(), cat("tensor ", shown(tensor.name), " has the type ",
                               find_ggml_type(tensor.type)->name, ", not F32"));
  }
  if (tensor.dims.empty() || tensor.elements() != tensor.dims[0] ||
      tensor.elements() > kMaxSmallTensor) {
    corrupt(source.name(),
            cat("tensor ", shown(tensor.name), " has ", tensor.elements(), " elements in ",
                tensor.dims.size(), " dimensions, not one row of at most ", kMaxSmallTensor));
  }
  Reader in(source, tensor.offset);
  std::vector<float> values(std::size_t(tensor.elements()));
  for (float& v : values) v = in.f32(tensor.name);
  return values;
}

Gguf read_gguf(const Source& source) {
  Gguf model;
  model.parts.push_back(read_gguf_part(source));
  const std::uint64_t count = split_key(model.first(), "split.count", 1);
  if (count > 1) {
    corrupt(source.name(), cat("split.count is ", count, ", but the file is not named as a part"),
            "give the parts the names NAME-00001-of-00002.gguf, NAME-00002-of-00002.gguf, ...");
  }
  return model;
}

Gguf read_gguf(const std::filesystem::path& path) {
  const auto name = parse_split_name(path.filename().string());
  const Source given = Source::open(path);
  // A name alone does not make a split model: engines go by the key.
  if (!name || name->count == 1) return read_gguf(given);
  GgufPart part = read_gguf_part(given);
  if (!part.find("split.count")) {
    return {{std::move(part)}};
  }
  check_part(part, name->number, name->count);
  Gguf model;
  std::error_code error;
  const auto leads_to = std::filesystem::canonical(path, error).parent_path();
  for (std::uint64_t number = 1; number <= name->count; ++number) {
    if (number == name->number) {
      model.parts.push_back(part);
      continue;
    }
    const auto file = plain_file_in(path.parent_path(),
                                    split_file_name(name->prefix, number, name->count), leads_to);
    if (!std::filesystem::exists(file, error)) {
      throw Error(ErrorKind::failed,
                  cat("part ", number, " of ", name->count, " is missing: ", shown(file.string())),
                  "put all parts of the model into one folder");
    }
    model.parts.push_back(read_gguf_part(Source::open(file)));
    check_part(model.parts.back(), number, name->count);
  }
  check_whole(model);
  return model;
}

}  // namespace mrrope
