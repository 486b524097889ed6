// SPDX-License-Identifier: Apache-2.0
// Data files of benchmarks: one JSON object per line, or one JSON document, plain or compressed.
// Every error names the file and the line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace mrrope::eval {

constexpr std::uint64_t kMaxLineBytes = std::uint64_t(64) << 20;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t(4) << 30;
constexpr std::size_t kMaxFileValues = 20'000'000;  // HotpotQA has half a million

// name: "passkey.jsonl:3", for messages.
using JsonLine = std::function<void(const std::string& name, const nlohmann::json& object)>;

// Skips empty lines. Returns the SHA-256 of the unpacked bytes. Throws Error: failed, corrupt (a
// line that is not a JSON object, or longer than kMaxLineBytes).
std::string read_jsonl(const std::filesystem::path& path, const JsonLine& line);

// A whole JSON file, with the SHA-256 of its unpacked bytes.
struct JsonFile {
  nlohmann::json content;
  std::string sha256;
};
JsonFile read_json_file(const std::filesystem::path& path);

// Only the SHA-256 of its unpacked bytes.
std::string file_digest(const std::filesystem::path& path);

// The member `field` of an object as text. Throws Error (corrupt) if it is missing or not text.
std::string text_field(const nlohmann::json& object, const char* field, const std::string& name);

}  // namespace mrrope::eval
