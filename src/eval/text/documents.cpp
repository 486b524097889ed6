// SPDX-License-Identifier: Apache-2.0
#include "eval/text/documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/utf8.h"
#include "eval/text/text_source.h"
#include "eval/text/words.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace fs = std::filesystem;

namespace {

struct TextFile {
  fs::path path;
  std::string label;  // what the id shows
};

// The texts below a folder, in the order of their names. Hidden files and folders are not texts,
// nor are settings and tables in .json.
void walk(const fs::path& folder, std::vector<TextFile>& files) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string()[0] == '.') {
      it.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (it->is_regular_file(ignored) && it->path().extension() != ".json") {
      found.push_back(it->path().lexically_relative(folder));
    }
  }
  if (error) {
    throw Error(ErrorKind::failed, cat("cannot list ", folder.string(), ": ", error.message()),
                "check the folder given to --text");
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) files.push_back({folder / path, path.generic_string()});
  if (!found.empty()) return;
  throw Error(ErrorKind::usage, folder.string() + " has no file with text",
              "give a folder with texts, or name the files to read; .json is not taken for text in "
              "a folder");
}

std::vector<TextFile> list_files(const std::vector<fs::path>& paths) {
  std::vector<TextFile> files;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back({path, path.filename().string()});
      continue;
    }
    if (fs::exists(path / "config.json", error)) {
      throw Error(ErrorKind::usage,
                  path.string() + " is the folder of a model (it has config.json), not of texts",
                  "give a folder with texts, or name the files to read");
    }
    walk(path, files);
  }
  return files;
}

// Replaces every byte that is not part of a character. Returns how many.
std::uint64_t repair_utf8(std::string& text) {
  std::string repaired;
  std::uint64_t replaced = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t size = first_character(rest).size;
    if (size == 0) ++replaced;
    repaired += size == 0 ? "\xef\xbf\xbd" : rest.substr(0, size);
    rest.remove_prefix(std::max<std::size_t>(size, 1));
  }
  text = std::move(repaired);
  return replaced;
}

// Whether it has too few tokens; then it is recorded as skipped.
bool too_short(const Document& document, const DocumentOptions& options, DocumentSet& set) {
  if (options.min_tokens == 0) return false;
  const std::int64_t tokens = options.tokens(document);
  if (tokens >= options.min_tokens) return false;
  set.skipped.push_back(document.id);
  set.longest_skipped = std::max(set.longest_skipped, tokens);
  return true;
}

class DocumentReader {
 public:
  DocumentReader(const DocumentOptions& options, DocumentSet& set) : options_(options), set_(set) {}

  // False: enough has been read.
  bool file(const TextFile& file) {
    const bool lines = holds_json_lines(file.path);
    std::string pending;
    std::size_t line = 0;
    bool first = true;
    const bool more = each_block(file.path, [&](std::string_view fresh) {
      total_ += fresh.size();
      if (total_ > options_.max_total_bytes)
        too_large(file, "all texts together", options_.max_total_bytes);
      if (std::exchange(first, false) && fresh.starts_with("\xef\xbb\xbf")) fresh.remove_prefix(3);
      if (!lines) {
        pending += fresh;
      } else if (!add_lines(pending, fresh, [&] { return json_line(file, ++line, pending); })) {
        return false;
      }
      if (pending.size() > options_.max_document_bytes) {
        too_large(file, "one document", options_.max_document_bytes);
      }
      return true;
    });
    if (!more) return false;
    if (lines) return pending.empty() || json_line(file, ++line, pending);
    if (const std::size_t nul = pending.find('\0'); nul != pending.npos) {
      throw Error(ErrorKind::corrupt, cat(file.label, " is not a text: NUL at byte ", nul),
                  "give --text text files, .jsonl, or those packed as .gz .xz .zst");
    }
    set_.replaced_bytes += repair_utf8(pending);
    return document(file.label, std::move(pending));
  }

 private:
  [[noreturn]] void too_large(const TextFile& file, const char* what, std::uint64_t limit) const {
    throw Error(ErrorKind::out_of_memory,
                cat(file.label, ": ", what, " would take more than ", limit, " bytes unpacked"),
                "give fewer or smaller texts");
  }

  bool json_line(const TextFile& file, std::size_t line, std::string& bytes) {
    if (bytes.find_first_not_of(" \t\r") == std::string::npos) return true;
    const std::string label = cat(file.label, ":", line);
    set_.replaced_bytes += repair_utf8(bytes);
    const nlohmann::json json = parse_json(bytes, label, {.bytes = options_.max_document_bytes});
    const auto field = json.is_object() ? json.find(options_.field) : json.end();
    if (!json.is_object() || field == json.end() || !field->is_string()) {
      std::string keys;
      if (json.is_object()) {
        for (const auto& [key, value] : json.items()) {
          if (value.is_string()) keys += (keys.empty() ? "" : ", ") + key;
        }
      }
      throw Error(ErrorKind::corrupt, cat(label, " has no text in field '", options_.field, "'"),
                  keys.empty() ? "give the name of the field with --field"
                               : "--field NAME with one of: " + keys);
    }
    return document(label, field->get<std::string>());
  }

  bool document(const std::string& label, std::string text) {
    Document document{label + "#" + sha256(text).substr(0, 12), std::move(text)};
    if (document.text.empty()) {
      set_.empty.push_back(label);
      return true;
    }
    if (!ids_.insert(document.id).second) {
      ++set_.duplicates;
      return true;
    }
    ++set_.seen;
    if (options_.select == Select::first && too_short(document, options_, set_)) return true;
    set_.documents.push_back(std::move(document));
    return options_.select != Select::first || options_.samples == 0 ||
           set_.documents.size() < options_.samples;
  }

  const DocumentOptions& options_;
  DocumentSet& set_;
  std::uint64_t total_ = 0;
  std::unordered_set<std::string> ids_;
};

void choose_at_random(const DocumentOptions& options, DocumentSet& set) {
  std::vector<std::size_t> order(set.documents.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  Random random(options.seed);
  shuffle(order, random);
  std::vector<std::size_t> chosen;
  for (const std::size_t i : order) {
    if (options.samples != 0 && chosen.size() == options.samples) break;
    if (!too_short(set.documents[i], options, set)) chosen.push_back(i);
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<Document> documents;
  for (const std::size_t i : chosen) documents.push_back(std::move(set.documents[i]));
  set.documents = std::move(documents);
}

std::string join(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kShown ? cat(text, " and ", names.size() - kShown, " more") : text;
}

std::string counted(std::size_t n) { return n == 1 ? "1 document" : cat(n, " documents"); }

}  // namespace

std::vector<std::string> DocumentSet::notes() const {
  std::vector<std::string> lines;
  if (!empty.empty())
    lines.push_back(
        cat("skipped ", empty.size(),
            empty.size() == 1 ? " empty document: " : " empty documents: ", join(empty)));
  if (duplicates > 0) lines.push_back(cat(counted(duplicates), " given twice, read once"));
  if (!skipped.empty()) {
    lines.push_back(
        cat("skipped ", counted(skipped.size()),
            skipped.size() == 1 ? " that is too short: " : " that are too short: ", join(skipped)));
  }
  if (replaced_bytes > 0) {
    lines.push_back(cat(replaced_bytes, " bytes were not UTF-8 and were replaced by U+FFFD"));
  }
  return lines;
}

DocumentSet read_documents(const std::vector<fs::path>& paths, const DocumentOptions& options) {
  if (paths.empty()) {
    throw Error(ErrorKind::usage, "no text to evaluate on", "give --text FILE or a folder");
  }
  DocumentSet set;
  DocumentReader reader(options, set);
  std::vector<TextFile> files = list_files(paths);
  for (TextFile& file : files) {
    repair_utf8(file.label);  // it becomes part of ids, which end up in JSON
    if (!reader.file(file)) break;
  }
  if (options.select == Select::random) choose_at_random(options, set);
  if (set.documents.empty()) {
    std::string why = "no document to evaluate on";
    for (const std::string& note : set.notes()) why += "; " + note;
    if (set.skipped.empty()) throw Error(ErrorKind::usage, why, "give other texts");
    throw Error(ErrorKind::usage,
                cat(why, "; the longest has ", set.longest_skipped, " tokens, and ",
                    options.min_tokens, " are needed"),
                "give longer texts, or ask for fewer tokens");
  }
  return set;
}

}  // namespace mrrope::eval
