// SPDX-License-Identifier: Apache-2.0
#include "eval/text/jsonl.h"

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "eval/text/text_source.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace {

constexpr const char* kHint = "download the file again, or correct this line";

// Calls take(bytes) with block after block. Returns the digest of all.
template <typename Take>
std::string read_blocks(const std::filesystem::path& path, const Take& take) {
  const auto source = open_text(path);
  std::string block(1 << 16, '\0');
  Sha256 digest;
  std::uint64_t total = 0;
  while (const std::size_t size = source->read(block.data(), block.size())) {
    total += size;
    if (total > kMaxFileBytes) {
      throw Error(ErrorKind::out_of_memory,
                  cat(path.filename().string(), " unpacks to more than ", kMaxFileBytes, " bytes"),
                  "give a smaller file");
    }
    const std::string_view bytes(block.data(), size);
    digest.update(bytes);
    take(bytes);
  }
  return digest.hex();
}

}  // namespace

std::string read_jsonl(const std::filesystem::path& path, const JsonLine& line) {
  const std::string file = printable(path.filename().string());
  std::string pending;
  std::size_t number = 0;
  const auto finish = [&] {
    const std::string name = cat(file, ":", ++number);
    if (pending.find_first_not_of(" \t\r") != std::string::npos) {
      JsonLimits limits;
      limits.bytes = kMaxLineBytes;
      const nlohmann::json object = parse_json(pending, name, limits);
      if (!object.is_object()) {
        throw Error(ErrorKind::corrupt, cat(name, " is not a JSON object"), kHint);
      }
      line(name, object);
    }
    pending.clear();
  };
  std::string digest = read_blocks(path, [&](std::string_view bytes) {
    for (std::size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1)) {
      pending += bytes.substr(0, end);
      finish();
    }
    pending += bytes;
    if (pending.size() > kMaxLineBytes) {
      throw Error(ErrorKind::corrupt,
                  cat(file, ":", number + 1, " is longer than ", kMaxLineBytes, " bytes"),
                  "one line holds one sample: check the file's line ends");
    }
  });
  if (!pending.empty()) finish();
  return digest;
}

JsonFile read_json_file(const std::filesystem::path& path) {
  std::string text;
  JsonFile file;
  file.sha256 = read_blocks(path, [&](std::string_view bytes) { text += bytes; });
  JsonLimits limits;
  limits.bytes = kMaxFileBytes;
  limits.values = kMaxFileValues;
  file.content = parse_json(text, printable(path.filename().string()), limits);
  return file;
}

std::string file_digest(const std::filesystem::path& path) {
  return read_blocks(path, [](std::string_view) {});
}

std::string text_field(const nlohmann::json& object, const char* field, const std::string& name) {
  const auto found = object.find(field);
  if (found == object.end()) {
    std::string keys;
    for (const auto& [key, value] : object.items()) {
      keys += cat(keys.empty() ? "" : ", ", printable(key.substr(0, 40)));
      if (keys.size() > 200) break;
    }
    throw Error(ErrorKind::corrupt, cat(name, " has no field '", field, "'; it has: ", keys),
                kHint);
  }
  if (!found->is_string()) {
    throw Error(ErrorKind::corrupt,
                cat(name, ": field '", field, "' is not text but ", found->type_name()), kHint);
  }
  return found->get<std::string>();
}

}  // namespace mrrope::eval
