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

}  // namespace mrrope::eval
