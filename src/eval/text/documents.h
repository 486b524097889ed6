// SPDX-License-Identifier: Apache-2.0
// Texts to evaluate on. A file is one document, unless it is named .jsonl: then every line is one,
// read from a field. Any of them may be compressed. Folders are walked in the order of their names.
//
// Bytes that are not UTF-8 are replaced by U+FFFD and counted; a file with NUL bytes is refused as
// binary; empty texts are skipped and named; a document that is given twice is read once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mrrope::eval {

struct Document {
  // FILE:LINE#DIGEST. FILE has no folders (below a given folder: the path from there), LINE is for
  // .jsonl only, DIGEST is the first 12 digits of the text's SHA-256.
  std::string id;
  std::string text;
};

enum class Select { first, random };

struct DocumentOptions {
  std::string field = "text";
  std::size_t samples = 0;  // 0: all
  Select select = Select::first;
  std::uint64_t seed = 1;
  // Documents with fewer tokens are skipped; --documents counts the others. (The paper uses the
  // first 10 documents that reach the longest length.)
  std::int64_t min_tokens = 0;
  std::function<std::int64_t(const Document&)> tokens{};  // for that
  std::uint64_t max_document_bytes = std::uint64_t(256) << 20;
  std::uint64_t max_total_bytes = std::uint64_t(4) << 30;  // after decompression
};

struct DocumentSet {
  std::vector<Document> documents;  // in the order of the files, also when chosen at random
  std::size_t seen = 0;             // documents read before the choice
  std::uint64_t replaced_bytes = 0;
  std::size_t duplicates = 0;
  std::vector<std::string> empty;    // ids
  std::vector<std::string> skipped;  // ids: fewer tokens than the least
  std::int64_t longest_skipped = 0;  // tokens

  // One line for each thing that the user should know.
  std::vector<std::string> notes() const;
};

// Throws Error: failed (cannot be read), corrupt (archive, JSON, binary), usage (nothing left),
// out_of_memory (over the limits).
DocumentSet read_documents(const std::vector<std::filesystem::path>& paths,
                           const DocumentOptions& options);

// Text files and data files of benchmarks: plain, gzip, xz or zstd, recognized by the first bytes.
// Archives of several members are read to the end; a truncated or damaged one is an error, never a
// shorter text. Every error names the file, and the line where there are lines.

// Throws Error (corrupt): a data file is not what it should be.
[[noreturn]] void damaged_data(
    const std::string& message,
    const std::string& hint = "download the file again, or correct this line");

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
