// SPDX-License-Identifier: Apache-2.0
// Text files and data files of benchmarks: plain, gzip, xz or zstd, recognized by the first bytes.
// Archives of several members are read to the end; a truncated or damaged one is an error, never a
// shorter text. Every error names the file, and the line where there are lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mrrope::eval {

// Writes up to `size` more bytes to `to`; 0 at the end. Throws Error: failed (cannot be read),
// corrupt.
using TextSource = std::function<std::size_t(char* to, std::size_t size)>;

// Throws Error: failed (cannot be opened), corrupt (the name says .gz, .xz or .zst and the content
// does not).
TextSource open_text(const std::filesystem::path& path);

// Calls take(bytes) with block after block until it returns false; then false.
bool each_block(const std::filesystem::path& path,
                const std::function<bool(std::string_view)>& take);

// Adds bytes to `pending`, and calls line() whenever that holds a whole one, until it returns
// false; then false.
bool add_lines(std::string& pending, std::string_view bytes, const std::function<bool()>& line);

// The file's name without .gz, .xz or .zst; whether it says that every line is a JSON object.
std::string inner_name(const std::filesystem::path& path);
bool holds_json_lines(const std::filesystem::path& path);

// name: "passkey.jsonl:3", for messages.
using JsonLine = std::function<void(const std::string& name, const nlohmann::json& object)>;

// Skips empty lines. Returns the SHA-256 of the unpacked bytes. Throws Error: failed, corrupt (a
// line that is not a JSON object, or longer than 64 MiB), out_of_memory (4 GiB in all).
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
