// SPDX-License-Identifier: Apache-2.0
#include "eval/text/documents.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/utf8.h"
#include "eval/text/word_list.h"

namespace mrrope::eval {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBlock = 1 << 16;
// What a decoder may use for its own window: xz -9 needs 65 MiB, zstd --ultra -22 128 MiB.
constexpr std::uint64_t kDecoderMemory = std::uint64_t(512) << 20;
constexpr int kZstdWindowLog = 29;

constexpr std::uint64_t kMaxLineBytes = std::uint64_t(64) << 20;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t(4) << 30;
constexpr std::size_t kMaxFileValues = 20'000'000;  // HotpotQA has half a million

// The compressed file, in pieces.
class Input {
 public:
  explicit Input(const fs::path& path) : source_(Source::open(path)) { fill(); }

  const std::string& path() const { return source_.name(); }
  std::string_view rest() const { return {buffer_.data() + at_, size_ - at_}; }
  void consume(std::size_t bytes) { at_ += bytes; }

  // Makes rest() non-empty unless the file is at its end.
  bool more() {
    if (at_ == size_) fill();
    return at_ < size_;
  }

  [[noreturn]] void corrupt(const std::string& what) const {
    damaged_data(path() + ": " + what, "fetch or compress the file again");
  }

 private:
  void fill() {
    at_ = 0;
    size_ = std::size_t(std::min<std::uint64_t>(buffer_.size(), source_.size() - offset_));
    source_.read(offset_, std::as_writable_bytes(std::span(buffer_).first(size_)));
    offset_ += size_;
  }

  Source source_;
  std::uint64_t offset_ = 0;  // of what comes after the buffer
  std::array<char, kBlock> buffer_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
};

void check_decoder(bool made, const char* name) {
  throw_if(!made, ErrorKind::out_of_memory, cat("no memory for the ", name, " decoder"),
           "unpack the file first");
}

// Takes bytes of the input and writes up to `size` to `to`; returns how many it wrote. inside: in
// the middle of an archive.
using Decode = std::function<std::size_t(Input& input, char* to, std::size_t size, bool& inside)>;

std::size_t copy(Input& input, char* to, std::size_t size, bool&) {
  const std::size_t taken = std::min(size, input.rest().size());
  std::memcpy(to, input.rest().data(), taken);
  input.consume(taken);
  return taken;
}

Decode gunzip() {
  const std::shared_ptr<z_stream> stream(new z_stream{}, [](z_stream* s) {
    inflateEnd(s);
    delete s;
  });
  check_decoder(inflateInit2(stream.get(), 15 + 16) == Z_OK, "gzip");
  return [stream](Input& input, char* to, std::size_t size, bool& inside) -> std::size_t {
    const std::string_view rest = input.rest();
    if (!inside && rest[0] == '\0') {  // zeros that tapes and some tools append
      input.consume(1);
      return 0;
    }
    if (!inside) inflateReset(stream.get());
    stream->next_out = reinterpret_cast<Bytef*>(to);
    stream->avail_out = uInt(size);
    stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream->avail_in = uInt(rest.size());
    const int status = inflate(stream.get(), Z_NO_FLUSH);
    input.consume(rest.size() - stream->avail_in);
    inside = status != Z_STREAM_END;
    if (inside && status != Z_OK && status != Z_BUF_ERROR) {
      input.corrupt(cat("damaged gzip archive: ", stream->msg ? stream->msg : "bad data"));
    }
    return size - stream->avail_out;
  };
}

Decode unxz() {
  const std::shared_ptr<lzma_stream> stream(new lzma_stream(LZMA_STREAM_INIT), [](lzma_stream* s) {
    lzma_end(s);
    delete s;
  });
  check_decoder(lzma_stream_decoder(stream.get(), kDecoderMemory, LZMA_CONCATENATED) == LZMA_OK,
                "xz");
  return [stream](Input& input, char* to, std::size_t size, bool& inside) -> std::size_t {
    const std::string_view rest = input.rest();
    stream->next_out = reinterpret_cast<std::uint8_t*>(to);
    stream->avail_out = size;
    stream->next_in = reinterpret_cast<const std::uint8_t*>(rest.data());
    stream->avail_in = rest.size();
    const lzma_ret status = lzma_code(stream.get(), rest.empty() ? LZMA_FINISH : LZMA_RUN);
    input.consume(rest.size() - stream->avail_in);
    inside = status != LZMA_STREAM_END;
    throw_if(status == LZMA_MEMLIMIT_ERROR, ErrorKind::out_of_memory,
             input.path() + ": this xz archive needs more than 512 MiB to unpack",
             "compress it with xz -9 or less");
    if (inside && status != LZMA_OK && status != LZMA_BUF_ERROR) {
      input.corrupt(cat("damaged xz archive (code ", int(status), ")"));
    }
    return size - stream->avail_out;
  };
}

Decode unzstd() {
  const std::shared_ptr<ZSTD_DStream> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  check_decoder(stream && !ZSTD_isError(ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax,
                                                               kZstdWindowLog)),
                "zstd");
  return [stream](Input& input, char* to, std::size_t size, bool& inside) -> std::size_t {
    ZSTD_outBuffer out{to, size, 0};
    ZSTD_inBuffer in{input.rest().data(), input.rest().size(), 0};
    const std::size_t status = ZSTD_decompressStream(stream.get(), &out, &in);
    input.consume(in.pos);
    if (ZSTD_isError(status)) {
      input.corrupt(cat("damaged zstd archive: ", ZSTD_getErrorName(status)));
    }
    inside = status != 0;
    return out.pos;
  };
}

struct Packing {
  const char* name;
  std::string_view suffix, magic;
  Decode (*decoder)();
};
const std::array<Packing, 3> kPackings = {{{"gzip", ".gz", "\x1f\x8b", gunzip},
                                           {"xz", ".xz", {"\xfd\x37\x7a\x58\x5a\0", 6}, unxz},
                                           {"zstd", ".zst", "\x28\xb5\x2f\xfd", unzstd}}};

// By its first bytes; null: it is plain.
const Packing* packing_of(const Input& input, const fs::path& path) {
  const std::string_view head = input.rest();
  const auto* packing =
      find_by(kPackings, [&](const Packing& p) { return head.starts_with(p.magic); });
  if (packing == nullptr && inner_name(path) != path.filename() && !head.empty()) {
    input.corrupt(cat("named ", path.extension().string(), ", but its content is not that"));
  }
  return packing;
}

// Calls take(bytes) with block after block of the unpacked file until it returns false; then false.
bool each_block(const fs::path& path, const std::function<bool(std::string_view)>& take) {
  Input input(path);
  const Packing* packing = packing_of(input, path);
  const Decode decode = packing != nullptr ? packing->decoder() : copy;
  std::string block(kBlock, '\0');
  for (bool inside = false;;) {
    const bool more = input.more();
    if (!more && !inside) return true;
    // A decoder may hold output after the end of its input.
    const std::size_t written = decode(input, block.data(), block.size(), inside);
    if (written > 0 && !take({block.data(), written})) return false;
    if (written == 0 && !more && inside) {
      input.corrupt(cat("the ", packing->name, " archive is cut off"));
    }
  }
}

// Adds bytes to `pending`, and calls line() whenever that holds a whole one, until it returns
// false; then false.
bool add_lines(std::string& pending, std::string_view bytes, const std::function<bool()>& line) {
  for (std::size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1)) {
    pending += bytes.substr(0, end);
    if (!line()) return false;
    pending.clear();
  }
  pending += bytes;
  return true;
}

// Calls take(bytes) with all blocks. Returns the digest of all.
std::string digest_of(const fs::path& path, const std::function<void(std::string_view)>& take) {
  Sha256 digest;
  std::uint64_t total = 0;
  each_block(path, [&](std::string_view bytes) {
    total += bytes.size();
    throw_if(total > kMaxFileBytes, ErrorKind::out_of_memory,
             cat(path.filename().string(), " unpacks to more than ", kMaxFileBytes, " bytes"),
             "give a smaller file");
    digest.update(bytes);
    take(bytes);
    return true;
  });
  return digest.hex();
}

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
  fail_if(bool(error), cat("cannot list ", folder.string(), ": ", error.message()),
          "check the folder given to --text");
  std::sort(found.begin(), found.end());
  for (const fs::path& path : found) files.push_back({folder / path, path.generic_string()});
  if (!found.empty()) return;
  refuse(folder.string() + " has no file with text",
         "give a folder with texts, or name the files to read; .json is not taken for text in "
         "a folder");
}

std::vector<TextFile> list_files(const std::vector<fs::path>& paths) {
  std::vector<TextFile> files;
  for (const fs::path& path : paths) {
    if (!folder_exists(path)) {
      files.push_back({path, path.filename().string()});
      continue;
    }
    refuse_if(path_exists(path / "config.json"),
              path.string() + " is the folder of a model (it has config.json), not of texts",
              "give a folder with texts, or name the files to read");
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
      damaged_data(cat(file.label, " is not a text: NUL at byte ", nul),
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
      std::vector<std::string> keys;
      for (const auto& [key, value] : json.items()) {
        if (json.is_object() && value.is_string()) keys.push_back(key);
      }
      damaged_data(cat(label, " has no text in field '", options_.field, "'"),
                   keys.empty() ? "give the name of the field with --field"
                                : "--field NAME with one of: " + joined(keys, ", "));
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
  set.documents = mapped(chosen, [&](std::size_t i) { return std::move(set.documents[i]); });
}

std::string join(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  if (names.size() <= kShown) return joined(names, ", ");
  return cat(joined({names.begin(), names.begin() + kShown}, ", "), " and ", names.size() - kShown,
             " more");
}

std::string counted(std::size_t n) { return n == 1 ? "1 document" : cat(n, " documents"); }

}  // namespace

void damaged_data(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::corrupt, message, hint);
}

std::string inner_name(const fs::path& path) {
  const bool packed = find_by(kPackings, &Packing::suffix, path.extension().string()) != nullptr;
  return (packed ? path.stem() : path.filename()).string();
}

bool holds_json_lines(const fs::path& path) {
  const std::string name = inner_name(path);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

std::string read_jsonl(const fs::path& path, const JsonLine& line) {
  const std::string file = printable(path.filename().string());
  std::string pending;
  std::size_t number = 0;
  const auto finish = [&] {
    const std::string name = cat(file, ":", ++number);
    if (pending.find_first_not_of(" \t\r") == std::string::npos) return true;
    const nlohmann::json object = parse_json(pending, name, {.bytes = kMaxLineBytes});
    if (!object.is_object()) damaged_data(cat(name, " is not a JSON object"));
    line(name, object);
    return true;
  };
  std::string digest = digest_of(path, [&](std::string_view bytes) {
    add_lines(pending, bytes, finish);
    throw_if(pending.size() > kMaxLineBytes, ErrorKind::corrupt,
             cat(file, ":", number + 1, " is longer than ", kMaxLineBytes, " bytes"),
             "one line holds one sample: check the file's line ends");
  });
  if (!pending.empty()) finish();
  return digest;
}

JsonFile read_json_file(const fs::path& path) {
  std::string text;
  std::string digest = digest_of(path, [&](std::string_view bytes) { text += bytes; });
  return {parse_json(text, printable(path.filename().string()),
                     {.bytes = kMaxFileBytes, .values = kMaxFileValues}),
          std::move(digest)};
}

std::string file_digest(const fs::path& path) {
  return digest_of(path, [](std::string_view) {});
}

std::string text_field(const nlohmann::json& object, const char* field, const std::string& name) {
  const auto found = object.find(field);
  if (found == object.end()) {
    std::string keys;
    for (const auto& [key, value] : object.items()) {
      keys += cat(keys.empty() ? "" : ", ", printable(key.substr(0, 40)));
      if (keys.size() > 200) break;
    }
    damaged_data(cat(name, " has no field '", field, "'; it has: ", keys));
  }
  const bool text = found->is_string();
  if (!text) damaged_data(cat(name, ": field '", field, "' is not text but ", found->type_name()));
  return found->get<std::string>();
}

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
  refuse_if(paths.empty(), "no text to evaluate on", "give --text FILE or a folder");
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
    if (set.skipped.empty()) refuse(why, "give other texts");
    refuse(cat(why, "; the longest has ", set.longest_skipped, " tokens, and ", options.min_tokens,
               " are needed"),
           "give longer texts, or ask for fewer tokens");
  }
  return set;
}

}  // namespace mrrope::eval
