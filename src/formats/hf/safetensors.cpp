// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "formats/facts.h"

namespace mrrope {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // bytes; the format's own limit
constexpr JsonLimits kHeaderLimits{kMaxHeader, 8};
constexpr JsonLimits kIndexLimits{std::uint64_t{128} << 20, 8};
constexpr std::size_t kMaxShape = 64;

constexpr std::pair<std::string_view, unsigned> kDtypes[] = {
    // name, bits
    {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"U16", 16},    {"I16", 16},
    {"F16", 16},    {"BF16", 16},       {"U32", 32},        {"I32", 32},    {"F32", 32},
    {"U64", 64},    {"I64", 64},        {"F64", 64},        {"C64", 64},    {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"C128", 128},
};

std::uint64_t whole(const std::string& file, const std::string& tensor, const json& value) {
  if (!value.is_number_unsigned()) {
    corrupt(file, cat("tensor ", shown(tensor), " has ", shown(value.dump()),
                      " where a count is expected"));
  }
  return value.get<std::uint64_t>();
}

struct Tensor {
  std::string name;
  std::uint64_t offset = 0;  // bytes from the end of the header
  std::uint64_t size = 0;    // bytes
};

Tensor read_tensor(const std::string& file, const std::string& name, const json& value) {
  const auto refuse = [&](const auto&... parts) {
    corrupt(file, cat("tensor ", shown(name), " ", parts...));
  };
  const bool complete = value.is_object() && value.contains("dtype") && value.contains("shape") &&
                        value.contains("data_offsets") && value.size() == 3;
  if (!complete) refuse("does not have exactly dtype, shape and data_offsets");
  const json& dtype = value["dtype"];
  const json& shape = value["shape"];
  const json& offsets = value["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2 ||
      shape.size() > kMaxShape) {
    refuse("has a dtype, shape or data_offsets of the wrong kind");
  }
  const auto type = dtype.get<std::string>();
  const auto* known = find_by(kDtypes, [&](const auto& d) { return d.first == type; });
  if (!known) refuse("has the unknown dtype ", shown(type));
  std::uint64_t bits = known->second;
  for (const json& n : shape) {
    const std::uint64_t size = whole(file, name, n);
    if (__builtin_mul_overflow(bits, size, &bits)) {
      refuse("has a dimension of ", size, ", more elements than can be counted");
    }
  }
  const std::uint64_t start = whole(file, name, offsets[0]);
  const std::uint64_t end = whole(file, name, offsets[1]);
  if (end < start) refuse("ends at ", end, ", before it starts at ", start);
  if (bits % 8 != 0 || bits / 8 != end - start) {
    refuse("has ", end - start, " bytes, but its shape needs ", bits, " bits");
  }
  return {name, start, end - start};
}

// Where the file may lie besides its folder. An exported folder links to the weights of the folder
// it was made from, which has a config.json; the Hugging Face cache links each file of a snapshot
// to ../../blobs.
std::filesystem::path linked_folder(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  std::filesystem::path from = folder;
  const auto target = std::filesystem::read_symlink(folder / name, error);
  if (!error && target.filename() == name) {
    const auto other = (folder / target).parent_path();
    if (file_exists(other / "config.json")) from = other;
  }
  from = std::filesystem::canonical(from, error);
  if (from.parent_path().filename() != "snapshots") return from;
  return from.parent_path().parent_path() / "blobs";
}

}  // namespace

std::uint64_t safetensors_bytes(const Source& source) {
  const std::string& file = source.name();
  Reader in(source);
  const std::uint64_t length = in.u64("the header's length");
  corrupt_if(length > kMaxHeader || length > in.remaining() || length < 2, file,
             cat("claims a header of ", length, " bytes in a file of ", source.size(), " (at most ",
                 kMaxHeader, " are allowed)"));
  const std::string header = in.text(length, "the header");
  if (header[0] != '{') corrupt(file, cat("its header starts with ", shown(header.substr(0, 1))));
  const std::uint64_t bytes = in.remaining();
  std::vector<Tensor> tensors;
  const json entries = parse_json(header, file, kHeaderLimits);
  for (const auto& [key, value] : entries.items()) {
    if (key != "__metadata__") {
      tensors.push_back(read_tensor(file, key, value));
      continue;
    }
    const bool texts =
        value.is_object() &&
        std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); });
    if (!texts) corrupt(file, "its __metadata__ is not a list of texts");
  }
  std::ranges::sort(tensors, [](const Tensor& a, const Tensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
  });
  std::uint64_t expected = 0;
  for (const Tensor& tensor : tensors) {
    corrupt_if(tensor.offset != expected, file,
               cat("tensor ", shown(tensor.name), " starts at ", tensor.offset, " where ", expected,
                   " is due: tensors overlap or leave a gap"));
    expected += tensor.size;
    corrupt_if(expected > bytes, file,
               cat("tensor ", shown(tensor.name), " ends at ", expected, ", past the ", bytes,
                   " bytes of data"));
  }
  corrupt_if(expected != bytes, file,
             cat("its tensors take ", expected, " of ", bytes, " bytes of data"));
  return bytes;
}

std::vector<std::string> read_safetensors_index(const Source& source) {
  const std::string& file = source.name();
  const json index = parse_json(read_text(source, kIndexLimits), file, kIndexLimits);
  const bool is_index = index.is_object() && index.contains("weight_map");
  corrupt_if(!is_index || !index["weight_map"].is_object(), file, "has no object \"weight_map\"",
             "the file is damaged or is something else: fetch it again");
  std::set<std::string> files;
  for (const auto& [key, value] : index["weight_map"].items()) {
    corrupt_if(!value.is_string(), file,
               cat("the weight_map of ", shown(key), " is not a file name"));
    check_plain_name(file, value.get_ref<const std::string&>());
    files.insert(value);
  }
  return {files.begin(), files.end()};
}

Weights find_weights(const std::filesystem::path& folder) {
  Weights weights;
  std::vector<std::string> names;
  if (path_exists(folder / "model.safetensors")) {
    names = {"model.safetensors"};
  } else if (const auto index = folder / "model.safetensors.index.json"; path_exists(index)) {
    names = read_safetensors_index(Source::open(index));
  }
  std::string missing;
  for (const std::string& name : names) {
    const auto path = plain_file_in(folder, name, linked_folder(folder, name));
    if (!path_exists(path)) {
      if (missing.empty()) missing = path.string();
      continue;
    }
    weights.files.push_back(path);
  }
  if (weights.files.empty()) return weights;
  fail_if(!missing.empty(),
          cat(shown(missing), " is missing: ", weights.files.size(), " of ", names.size(),
              " files of the model are there"),
          "fetch the missing files, or remove the others to look at config.json alone");
  for (const auto& path : weights.files) weights.bytes += safetensors_bytes(Source::open(path));
  return weights;
}

}  // namespace mrrope
