// SPDX-License-Identifier: Apache-2.0
#include "eval/text/documents.h"

#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "support/test.h"

namespace mrrope::eval {
namespace {

std::string gzip(const std::string& text) {
  std::string out(compressBound(uLong(text.size())) + 64, '\0');
  z_stream s{};
  deflateInit2(&s, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  s.avail_in = uInt(text.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = uInt(out.size());
  deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

std::string xz(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                          reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                          reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size());
  out.resize(size);
  return out;
}

std::string zst(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

DocumentSet read(const std::vector<std::filesystem::path>& paths, DocumentOptions options = {}) {
  return read_documents(paths, options);
}

void set(DocumentOptions& options, const std::string& name, const std::string& value) {
  const auto number = [&] { return std::size_t(std::stoul(value)); };
  if (name == "field") options.field = value;
  if (name == "samples") options.samples = number();
  if (name == "select") options.select = value == "random" ? Select::random : Select::first;
  if (name == "seed") options.seed = number();
  if (name != "min_tokens") return;
  options.min_tokens = std::stol(value);
  options.tokens = [](const Document& d) { return std::count(d.text.begin(), d.text.end(), 'x'); };
}

// "read PATH ... name=value ..." after files "NAME=content": a line per document, without the
// digest of its content, then what there is to say.
std::string read_answer(const test::Arguments& arguments) {
  const TempFolder dir;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::size_t at = arguments[i].find('=');
    write_file(dir / arguments[i].substr(0, at), arguments[i].substr(at + 1));
  }
  std::vector<std::filesystem::path> paths;
  DocumentOptions options;
  std::istringstream words(arguments[0]);
  for (std::string word; words >> word;) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos) {
      paths.push_back(dir / word);
    } else {
      set(options, word.substr(0, at), word.substr(at + 1));
    }
  }
  const std::string said = test::or_error([&] {
    const DocumentSet found = read(paths, options);
    std::string out = "seen " + std::to_string(found.seen);
    if (found.duplicates > 0) out += ", duplicates " + std::to_string(found.duplicates);
    if (found.replaced_bytes > 0) out += ", replaced " + std::to_string(found.replaced_bytes);
    if (!found.skipped.empty()) out += ", skipped " + std::to_string(found.skipped.size());
    for (const std::string& name : found.empty) out += ", empty " + name;
    for (const Document& d : found.documents) {
      EXPECT_EQ(d.id.size() - d.id.rfind('#'), 13u);
      out += "\n" + d.id.substr(0, d.id.rfind('#')) + ": " + d.text;
    }
    for (const std::string& note : found.notes()) out += "\nnote: " + note;
    return out;
  });
  return std::regex_replace(said, std::regex(dir.path().string() + "/?"), "");
}

TEST(Documents, AreReadOrRefused) {
  // "choose" reads lines of 1 to 5 letters x.
  std::string lines = "a.jsonl=";
  for (int i = 0; i < 20; ++i) {
    lines +=
        "{\"text\": \"" + std::string(std::size_t(i % 5 + 1), 'x') + std::to_string(i) + "\"}\n";
  }
  test::expect_functions("documents",
                         {{"read", read_answer}, {"choose", [&](auto& a) {
                                                    return read_answer({"a.jsonl " + a[0], lines});
                                                  }}});
}

struct Archive {
  const char* name;
  std::string (*pack)(const std::string&);
};
constexpr Archive kArchives[] = {{"a.txt.gz", gzip}, {"a.txt.xz", xz}, {"a.txt.zst", zst}};

TEST(Documents, ReadsEveryKindOfArchive) {
  const TempFolder dir;
  const std::string text = lemmas(1, 3000);
  for (const auto& [name, pack] : kArchives) {
    write_file(dir / name, pack(text));
    EXPECT_EQ(read({dir / name}).documents.at(0).text, text) << name;
    write_file(dir / name, pack("one ") + pack("two") + std::string(pack == gzip ? 3 : 0, '\0'));
    EXPECT_EQ(read({dir / name}).documents.at(0).text, "one two") << name;
  }
  write_file(dir / "unnamed", zst(text));
  EXPECT_EQ(read({dir / "unnamed"}).documents.at(0).text, text);
}

TEST(Documents, DetectsEveryTruncationOfAnArchive) {
  const TempFolder dir;
  std::string text;
  for (int i = 0; i < 60; ++i) text += std::to_string(i * 7919);
  for (const auto& [name, pack] : kArchives) {
    const std::string whole = pack(text);
    for (std::size_t size = 1; size < whole.size(); ++size) {
      write_file(dir / name, whole.substr(0, size));
      expect_error(ErrorKind::corrupt, name, [&, file = dir / name] { read({file}); });
    }
  }
}

TEST(Documents, DetectsDamageInsideAnArchive) {
  const TempFolder dir;
  const std::string text = lemmas(1, 3000);
  for (const auto& [name, pack] : kArchives) {
    if (pack == zst) continue;  // which has no checksum unless it is asked for
    std::string bad = pack(text);
    bad[bad.size() / 2] = char(bad[bad.size() / 2] ^ 0x55);
    write_file(dir / name, bad);
    expect_error(ErrorKind::corrupt, name, [&, file = dir / name] { read({file}); });
  }
  write_file(dir / "b.gz", gzip("one") + "garbage");
  EXPECT_ERROR(read({dir / "b.gz"}), corrupt, "b.gz");
  write_file(dir / "c.gz", "plain text");
  EXPECT_ERROR(read({dir / "c.gz"}), corrupt, "c.gz");
}

TEST(Documents, RefusesDecompressionBombs) {
  const TempFolder dir;
  write_file(dir / "bomb.gz", gzip(std::string(10 << 20, 'a')));
  DocumentOptions options{.max_document_bytes = 1 << 20};
  EXPECT_ERROR(read({dir / "bomb.gz"}, options), out_of_memory, "bomb.gz");
  options.max_document_bytes = 100 << 20;
  options.max_total_bytes = 1 << 20;
  EXPECT_ERROR(read({dir / "bomb.gz"}, options), out_of_memory, "bomb.gz");
}

TEST(Documents, RefusesWhatIsNotAFile) {
  const TempFolder dir;
  ASSERT_EQ(mkfifo((dir / "pipe.txt").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", dir / "zero.txt");
  for (const char* name : {"pipe.txt", "zero.txt", "."}) {
    EXPECT_ERROR(file_digest(dir / name), failed, "not a regular file");
  }
}

}  // namespace
}  // namespace mrrope::eval
