// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <unordered_set>

#include "base/files/split_name.h"
#include "base/text.h"

namespace mrrope {
namespace {

constexpr std::uint64_t kMaxKeyValues = 1 << 16;
constexpr std::uint64_t kMaxTensors = 1 << 18;
constexpr std::uint64_t kMaxKey = 65535;        // bytes; the format's own limit
constexpr std::uint64_t kMaxTensorName = 64;    // bytes; the format's own limit
constexpr std::uint64_t kMaxStrings = 1 << 24;  // of one array; the largest vocabularies have 2^18
constexpr std::uint64_t kMaxElements = 1 << 30;
constexpr std::uint64_t kKeptString = 4096;  // bytes
constexpr std::uint64_t kKeptElements = 4096;
constexpr std::uint64_t kMaxParts = 4096;
constexpr std::uint64_t kMaxSmallTensor = 65536;  // elements

// clang-format off
constexpr std::array<GgmlType, 35> kGgmlTypes{{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
}};
// clang-format on

// Bytes of one element; 0 for strings and arrays.
std::uint64_t width(GgufType type) {
  constexpr std::array<std::uint8_t, 13> kWidths{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kWidths[std::size_t(type)];
}

void read_magic(Reader& in, GgufPart& part) {
  const Source& source = in.source();
  corrupt_if(source.size() < 4, source.name(),
             cat("a file of ", source.size(), " bytes is not a GGUF file"),
             "the file is empty or cut short: fetch it again");
  const auto unreadable = [&](const std::string& what, const char* hint) {
    unsupported(cat(source.name(), ": ", what), hint);
  };
  const std::string magic = in.text(4, "the magic");
  if (magic == "PK\x03\x04" || magic.starts_with("\x80\x02")) {
    unreadable("PyTorch checkpoints are not supported",
               "give the folder with its config.json, or convert the model to GGUF");
  }
  if (magic != "GGUF") {
    const bool old = magic == "lmgg" || magic == "tjgg" || magic == "fmgg" || magic == "algg";
    corrupt(source.name(), cat("starts with ", shown(magic), ", not with \"GGUF\""),
            old ? "this is llama.cpp's format from before August 2023: convert the model again"
                : "give a GGUF file, or the folder of a Hugging Face model");
  }
  part.version = in.u32("the version");
  if (part.version != 0 && (part.version & 0xffff) == 0) {
    unreadable(cat("GGUF version bytes ", part.version, " are big-endian; little-endian is read"),
               "convert it with gguf_convert_endian.py FILE little");
  }
  if (part.version == 1) {
    unreadable("GGUF version 1 is not read; versions 2 and 3 are",
               "convert the model again, or rewrite it with a llama.cpp from late 2023");
  }
  if (part.version == 0) corrupt(source.name(), "GGUF version 0 does not exist");
  if (part.version > 3) {
    unreadable(
        cat("GGUF version ", part.version, " is newer than this program, which reads 2 and 3"),
        "get a newer mrrope, or convert the model to version 3");
  }
}

// A count of things that take at least `least` bytes each.
std::uint64_t read_count(Reader& in, std::string_view what, std::uint64_t least,
                         std::uint64_t most) {
  const std::uint64_t count = in.u64(what);
  corrupt_if(count > most || count > in.remaining() / least, in.source().name(),
             cat(what, " is ", count, ", more than a file of ", in.source().size(),
                 " bytes can hold (at most ", most, " are read)"));
  return count;
}

GgufType read_type(Reader& in, const std::string& key) {
  const std::uint32_t id = in.u32("a value's type");
  if (id > std::uint32_t(GgufType::f64)) {
    corrupt(in.source().name(), cat("the key ", shown(key), " has the unknown type ", id));
  }
  return static_cast<GgufType>(id);
}

std::uint64_t string_length(Reader& in, const std::string& key) {
  const std::uint64_t length = in.u64("a string's length");
  if (length > in.remaining()) {
    corrupt(in.source().name(), cat("a string of ", shown(key), " claims ", length,
                                    " bytes, but only ", in.remaining(), " are left in the file"));
  }
  return length;
}

// An integer or a boolean. A number past 2^63 is kept as the largest, which every check of a range
// refuses.
std::int64_t read_integer(Reader& in, GgufType type, const std::string& key) {
  const int unused = 64 - 8 * int(width(type));
  const std::uint64_t bits = in.bits(std::size_t(width(type)), key);
  if (type == GgufType::boolean && bits > 1) {
    corrupt(in.source().name(), cat("the boolean ", shown(key), " is ", bits, ", not 0 or 1"));
  }
  const bool has_sign = type == GgufType::i8 || type == GgufType::i16 || type == GgufType::i32 ||
                        type == GgufType::i64;
  if (has_sign) return std::int64_t(bits << unused) >> unused;
  return std::int64_t(std::min(bits, std::uint64_t{std::numeric_limits<std::int64_t>::max()}));
}

bool is_real(GgufType type) { return type == GgufType::f32 || type == GgufType::f64; }

void read_array(Reader& in, GgufKeyValue& kv) {
  kv.element = read_type(in, kv.key);
  corrupt_if(kv.element == GgufType::array, in.source().name(),
             cat("the key ", shown(kv.key), " is an array of arrays"));
  const bool strings = kv.element == GgufType::string;
  const std::uint64_t least = strings ? 8 : width(kv.element);
  kv.count = read_count(in, cat("the length of ", shown(kv.key)), least,
                        strings ? kMaxStrings : kMaxElements);
  if (strings) {
    for (std::uint64_t i = 0; i < kv.count; ++i) in.skip(string_length(in, kv.key), "a string");
    return;
  }
  if (kv.count > kKeptElements || is_real(kv.element)) {
    in.skip(kv.count * least, kv.key);
    return;
  }
  std::vector<std::int64_t> list(std::size_t(kv.count));
  for (std::int64_t& v : list) v = read_integer(in, kv.element, kv.key);
  kv.value = std::move(list);
}

GgufKeyValue read_key_value(Reader& in) {
  GgufKeyValue kv;
  const std::uint64_t length = in.u64("a key's length");
  if (length == 0 || length > kMaxKey) {
    corrupt(in.source().name(), cat("a key at offset ", in.position() - 8, " claims ", length,
                                    " bytes; 1 to ", kMaxKey, " are allowed"));
  }
  kv.key = in.text(length, "a key");
  kv.offset = in.position();
  kv.type = kv.element = read_type(in, kv.key);
  if (kv.type == GgufType::array) {
    read_array(in, kv);
  } else if (kv.type == GgufType::string) {
    const std::uint64_t bytes = string_length(in, kv.key);
    if (bytes <= kKeptString) {
      kv.value = in.text(bytes, kv.key);
    } else {
      in.skip(bytes, kv.key);
    }
  } else if (is_real(kv.type)) {
    kv.value = kv.type == GgufType::f32 ? double(in.f32(kv.key)) : in.f64(kv.key);
  } else {
    const std::int64_t number = read_integer(in, kv.type, kv.key);
    kv.value = kv.type == GgufType::boolean ? GgufValue(number != 0) : GgufValue(number);
  }
  kv.size = in.position() - kv.offset;
  return kv;
}

std::uint32_t alignment_of(const Source& source, const GgufPart& part) {
  const GgufKeyValue* kv = part.find("general.alignment");
  if (!kv) return 32;
  corrupt_if(kv->type != GgufType::u32, source.name(),
             cat("general.alignment has the type ", to_string(kv->type), ", not u32"));
  const auto value = std::uint64_t(std::get<std::int64_t>(kv->value));
  corrupt_if(!std::has_single_bit(value), source.name(),
             cat("general.alignment is ", value, ", not a power of two"));
  return std::uint32_t(value);
}

// The offset stays relative to the data until the header has been read to its end.
GgufTensor read_tensor(Reader& in, std::uint32_t alignment) {
  GgufTensor tensor;
  const std::uint64_t length = in.u64("a tensor name's length");
  if (length > kMaxTensorName) {
    corrupt(in.source().name(), cat("a tensor name at offset ", in.position() - 8, " claims ",
                                    length, " bytes; at most ", kMaxTensorName, " are allowed"));
  }
  tensor.name = in.text(length, "a tensor name");
  const auto refuse = [&](const auto&... parts) {
    corrupt(in.source().name(), cat("tensor ", shown(tensor.name), " ", parts...));
  };
  const std::uint32_t dims = in.u32("a tensor's dimensions");
  if (dims > 4) refuse("has ", dims, " dimensions; at most 4 are allowed");
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dims; ++i) {
    const std::uint64_t n = in.u64("a tensor's dimension");
    if (n == 0) refuse("has a dimension ", i, " of 0");
    if (n > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ||
        __builtin_mul_overflow(elements, n, &elements)) {
      refuse("has a dimension ", i, " of ", n, ", more elements than can be counted");
    }
    tensor.dims.push_back(n);
  }
  tensor.type = in.u32("a tensor's type");
  const GgmlType* type = find_ggml_type(tensor.type);
  if (!type) refuse("has the unknown type ", tensor.type);
  const std::uint64_t row = tensor.dims.empty() ? 1 : tensor.dims[0];
  if (row % type->block != 0) {
    refuse("has rows of ", row, " elements, not a multiple of ", type->name, "'s block of ",
           type->block);
  }
  if (__builtin_mul_overflow(elements / type->block, type->bytes, &tensor.size)) {
    refuse("has more bytes than can be counted");
  }
  tensor.offset = in.u64("a tensor's offset");
  if (tensor.offset % alignment != 0) {
    refuse("is at offset ", tensor.offset, ", not a multiple of the alignment ", alignment);
  }
  return tensor;
}

void place_tensors(const Source& source, GgufPart& part) {
  if (part.tensors.empty()) return;
  const std::uint64_t header = part.data_offset;
  part.data_offset = (header + part.alignment - 1) / part.alignment * part.alignment;
  std::vector<const GgufTensor*> order;
  for (GgufTensor& tensor : part.tensors) {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    corrupt_if(
        __builtin_add_overflow(tensor.offset, part.data_offset, &start) ||
            __builtin_add_overflow(start, tensor.size, &end) || end > source.size(),
        source.name(),
        cat("tensor ", shown(tensor.name), " of ", tensor.size, " bytes at offset ", tensor.offset,
            " of the data is past the end of the file of ", source.size(), " bytes"),
        "the file is cut short or damaged: fetch it again");
    tensor.offset = start;
    order.push_back(&tensor);
  }
  std::ranges::sort(order,
                    [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    corrupt_if(order[i - 1]->offset + order[i - 1]->size > order[i]->offset, source.name(),
               cat("tensors ", shown(order[i - 1]->name), " and ", shown(order[i]->name),
                   " share bytes at offset ", order[i]->offset));
  }
}

std::uint64_t split_key(const GgufPart& part, std::string_view key, std::uint64_t otherwise) {
  return std::uint64_t(
      part.integer(key, 0, std::int64_t{1} << 32).value_or(std::int64_t(otherwise)));
}

void check_part(const GgufPart& part, std::uint64_t number, std::uint64_t count) {
  const std::string file = part.path.string();
  const std::uint64_t said_count = split_key(part, "split.count", 1);
  const std::uint64_t said_number = split_key(part, "split.no", 0);
  corrupt_if(said_count != count, file,
             cat("split.count is ", said_count, ", but the name says ", count, " parts"),
             "this folder has parts of different models: download them again");
  corrupt_if(
      said_number + 1 != number, file,
      cat("split.no is ", said_number, ", but the name says part ", number, " (counted from 1)"),
      "a part was renamed: give the parts their own names back");
}

void check_whole(const Gguf& model) {
  std::unordered_set<std::string_view> names;
  std::uint64_t tensors = 0;
  for (const GgufPart& part : model.parts) {
    tensors += part.tensors.size();
    for (const GgufTensor& tensor : part.tensors) {
      corrupt_if(!names.insert(tensor.name).second, part.path.string(),
                 cat("the tensor ", shown(tensor.name), " is in another part too"));
    }
  }
  const std::uint64_t said = split_key(model.parts[0], "split.tensors.count", tensors);
  corrupt_if(said != tensors, model.first().name(),
             cat("split.tensors.count is ", said, ", but the parts hold ", tensors, " tensors"));
}

// A value of one type; nullopt where there is no such key.
template <typename T>
std::optional<T> value_as(const GgufPart& part, std::string_view key, const char* wanted) {
  const GgufKeyValue* kv = part.find(key);
  if (!kv) return std::nullopt;
  if (const T* value = std::get_if<T>(&kv->value)) return *value;
  corrupt_if(kv->type == GgufType::string && std::holds_alternative<std::monostate>(kv->value),
             part.name(), cat(key, " is far too long for a name"));
  corrupt(part.name(), cat(shown(key), " has the type ", to_string(kv->type), ", not ", wanted));
}

void check_range(const GgufPart& part, std::string_view key, std::int64_t value, std::int64_t low,
                 std::int64_t high) {
  if (value >= low && value <= high) return;
  corrupt(part.name(), cat(key, " is ", value, ", not between ", low, " and ", high));
}

std::vector<float> read_f32(const Source& source, const GgufTensor& tensor) {
  corrupt_if(tensor.type != kGgmlF32, source.name(),
             cat("tensor ", shown(tensor.name), " has the type ", find_ggml_type(tensor.type)->name,
                 ", not F32"));
  corrupt_if(tensor.dims.empty() || tensor.elements() != tensor.dims[0] ||
                 tensor.elements() > kMaxSmallTensor,
             source.name(),
             cat("tensor ", shown(tensor.name), " has ", tensor.elements(), " elements in ",
                 tensor.dims.size(), " dimensions, not one row of at most ", kMaxSmallTensor));
  Reader in(source, tensor.offset);
  std::vector<float> values(std::size_t(tensor.elements()));
  for (float& v : values) v = in.f32(tensor.name);
  return values;
}

// "PREFIX-00002-of-00005.gguf"; parts are counted from 1.
std::string split_file_name(const std::string& prefix, std::uint64_t part, std::uint64_t count) {
  char tail[64];
  std::snprintf(tail, sizeof tail, "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(part),
                static_cast<unsigned long long>(count));
  return prefix + tail;
}

}  // namespace

const char* to_string(GgufType type) noexcept {
  constexpr std::array kNames{"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                              "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[std::size_t(type)];
}

const GgmlType* find_ggml_type(std::uint32_t id) noexcept {
  return find_by(kGgmlTypes, &GgmlType::id, id);
}

std::uint64_t GgufTensor::elements() const noexcept {
  std::uint64_t n = 1;
  for (const std::uint64_t d : dims) n *= d;
  return n;
}

const GgufKeyValue* GgufPart::find(std::string_view key) const noexcept {
  return find_by(key_values, &GgufKeyValue::key, key);
}

GgufPart read_gguf_part(const Source& source) {
  GgufPart part;
  part.path = source.name();
  part.file_size = source.size();
  Reader in(source);
  read_magic(in, part);
  // The least header bytes: of a tensor length, dimensions, type and offset; of a key-value length,
  // key of 1, type and value of 1.
  const std::uint64_t tensors = read_count(in, "the number of tensors", 24, kMaxTensors);
  const std::uint64_t key_values = read_count(in, "the number of key-values", 14, kMaxKeyValues);
  part.key_values.reserve(std::size_t(key_values));
  std::unordered_set<std::string_view> names;
  const auto check_new = [&](const char* what, const std::string& name) {
    if (names.insert(name).second) return;
    corrupt(source.name(), cat("the ", what, " ", shown(name), " is given twice"));
  };
  for (std::uint64_t i = 0; i < key_values; ++i) {
    part.key_values.push_back(read_key_value(in));
    check_new("key", part.key_values.back().key);
  }
  part.alignment = alignment_of(source, part);
  part.tensors.reserve(std::size_t(tensors));
  names.clear();
  for (std::uint64_t i = 0; i < tensors; ++i) {
    part.tensors.push_back(read_tensor(in, part.alignment));
    check_new("tensor", part.tensors.back().name);
  }
  part.data_offset = in.position();
  place_tensors(source, part);
  for (const GgufTensor& tensor : part.tensors) {
    if (is_rope_list(tensor.name)) part.rope_factors[tensor.name] = read_f32(source, tensor);
  }
  return part;
}

bool is_rope_list(std::string_view tensor) noexcept {
  return tensor == kRopeFreqs || tensor == kRopeLong || tensor == kRopeShort;
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
  corrupt_if(!list, name(),
             cat(key, " has ", kv->count, " elements of the type ", to_string(kv->element),
                 ", not an integer for each layer"));
  for (const std::int64_t v : *list) check_range(*this, key, v, low, high);
  return *list;
}

std::pair<const GgufPart*, const GgufTensor*> Gguf::find_tensor(
    std::string_view wanted) const noexcept {
  for (const GgufPart& part : parts) {
    if (const auto* found = find_by(part.tensors, &GgufTensor::name, wanted)) return {&part, found};
  }
  return {nullptr, nullptr};
}

std::vector<double> Gguf::rope_factors(std::string_view tensor) const {
  for (const GgufPart& part : parts) {
    const auto at = part.rope_factors.find(tensor);
    if (at != part.rope_factors.end()) return {at->second.begin(), at->second.end()};
  }
  return {};
}

Gguf read_gguf(const Source& source) {
  Gguf model;
  model.parts.push_back(read_gguf_part(source));
  const std::uint64_t count = split_key(model.first(), "split.count", 1);
  corrupt_if(count > 1, source.name(),
             cat("split.count is ", count, ", but the file is not named as a part"),
             "give the parts the names NAME-00001-of-00002.gguf, NAME-00002-of-00002.gguf, ...");
  return model;
}

Gguf read_gguf(const std::filesystem::path& path) {
  const SplitName name = split_name(path.stem().string());
  const Source given = Source::open(path);
  // A name alone does not make a split model: engines go by the key.
  const bool part_of_many = path.extension() == ".gguf" && name.count > 1 && name.number >= 1 &&
                            name.number <= name.count && name.count <= kMaxParts;
  if (!part_of_many) return read_gguf(given);
  GgufPart part = read_gguf_part(given);
  if (!part.find("split.count")) return {{std::move(part)}};
  check_part(part, name.number, name.count);
  Gguf model;
  std::error_code error;
  const auto leads_to = std::filesystem::canonical(path, error).parent_path();
  for (std::uint64_t number = 1; number <= name.count; ++number) {
    if (number == name.number) {
      model.parts.push_back(part);
      continue;
    }
    const auto file =
        plain_file_in(path.parent_path(), split_file_name(name.stem, number, name.count), leads_to);
    fail_if(!path_exists(file),
            cat("part ", number, " of ", name.count, " is missing: ", shown(file.string())),
            "put all parts of the model into one folder");
    model.parts.push_back(read_gguf_part(Source::open(file)));
    check_part(model.parts.back(), number, name.count);
  }
  check_whole(model);
  return model;
}

}  // namespace mrrope
