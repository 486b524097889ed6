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

std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 300000; ++i) text += std::to_string(i * i) + " lemma\n";
  return text;
}

DocumentSet read(const std::vector<std::filesystem::path>& paths, DocumentOptions options = {}) {
  return read_documents(paths, options);
}

std::string label(const Document& document) {
  return document.id.substr(0, document.id.rfind('#'));
}

TEST(Documents, PlainFileIsOneDocument) {
  const TempFolder dir;
  write_file(dir / "a.txt", "\xef\xbb\xbfone\ntwo\n");
  const DocumentSet set = read({dir / "a.txt"});
  ASSERT_EQ(set.documents.size(), 1u);
  EXPECT_EQ(set.documents[0].text, "one\ntwo\n");
  EXPECT_EQ(label(set.documents[0]), "a.txt");
  EXPECT_EQ(set.documents[0].id.size(), std::string("a.txt#").size() + 12);
  EXPECT_TRUE(set.notes().empty());
}

TEST(Documents, ReadsJsonLines) {
  const TempFolder dir;
  write_file(dir / "a.jsonl", "{\"text\": \"one\"}\r\n\n{\"text\": \"tw\\u00f6\", \"x\": 1}");
  const DocumentSet set = read({dir / "a.jsonl"});
  ASSERT_EQ(set.documents.size(), 2u);
  EXPECT_EQ(label(set.documents[1]), "a.jsonl:3");
  EXPECT_EQ(set.documents[1].text, "tw\xc3\xb6");
}

TEST(Documents, ReadsAnotherFieldAndHintsAtIt) {
  const TempFolder dir;
  write_file(dir / "a.jsonl", "{\"body\": \"one\", \"n\": 3}\n");
  DocumentOptions options{.field = "body"};
  EXPECT_EQ(read({dir / "a.jsonl"}, options).documents[0].text, "one");
  const Error e = test::error_of([&] { read({dir / "a.jsonl"}); });
  EXPECT_EQ(e.kind(), ErrorKind::corrupt);
  EXPECT_TRUE(contains(e.what(), "a.jsonl:1"));
  EXPECT_TRUE(contains(e.hint(), "body"));
}

TEST(Documents, BrokenJsonIsNamedByLine) {
  const TempFolder dir;
  write_file(dir / "a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"tw");
  EXPECT_ERROR(read({dir / "a.jsonl"}), corrupt, "a.jsonl:2");
  write_file(dir / "b.jsonl", "[1, 2]\n");
  EXPECT_ERROR(read({dir / "b.jsonl"}), corrupt, "b.jsonl:1");
  write_file(dir / "c.jsonl", std::string(100000, '['));
  EXPECT_ERROR(read({dir / "c.jsonl"}), corrupt, "c.jsonl:1: nested deeper");
  std::string wide = "{\"text\": [";
  for (int i = 0; i < 5'000'000; ++i) wide += "[],";
  write_file(dir / "d.jsonl", wide + "0]}");
  EXPECT_ERROR(read({dir / "d.jsonl"}), corrupt, "d.jsonl:1: more than");
}

TEST(Documents, ReadsEveryKindOfArchive) {
  const TempFolder dir;
  const std::string text = long_text();
  write_file(dir / "g.txt.gz", gzip(text));
  write_file(dir / "x.txt.xz", xz(text));
  write_file(dir / "z.txt.zst", zst(text));
  write_file(dir / "unnamed", zst(text));
  for (const char* name : {"g.txt.gz", "x.txt.xz", "z.txt.zst", "unnamed"}) {
    EXPECT_EQ(read({dir / name}).documents.at(0).text, text) << name;
  }
}

TEST(Documents, ReadsArchivesWithSeveralMembers) {
  const TempFolder dir;
  write_file(dir / "g.gz", gzip("one ") + gzip("two") + std::string(3, '\0'));
  write_file(dir / "x.xz", xz("one ") + xz("two"));
  write_file(dir / "z.zst", zst("one ") + zst("two"));
  for (const char* name : {"g.gz", "x.xz", "z.zst"}) {
    EXPECT_EQ(read({dir / name}).documents.at(0).text, "one two") << name;
  }
}

TEST(Documents, DetectsEveryTruncationOfAnArchive) {
  const TempFolder dir;
  std::string text;
  for (int i = 0; i < 60; ++i) text += std::to_string(i * 7919);
  const std::pair<const char*, std::string> archives[] = {
      {"a.gz", gzip(text)}, {"a.xz", xz(text)}, {"a.zst", zst(text)}};
  for (const auto& [name, whole] : archives) {
    for (std::size_t size = 1; size < whole.size(); ++size) {
      write_file(dir / name, whole.substr(0, size));
      expect_error(ErrorKind::corrupt, name, [&, n = std::string(name)] { read({dir / n}); });
    }
  }
}

TEST(Documents, DetectsDamageInsideAnArchive) {
  const TempFolder dir;
  const std::string text = long_text();
  const std::pair<const char*, std::string> archives[] = {{"a.gz", gzip(text)}, {"a.xz", xz(text)}};
  for (const auto& [name, whole] : archives) {
    std::string bad = whole;
    bad[bad.size() / 2] = char(bad[bad.size() / 2] ^ 0x55);
    write_file(dir / name, bad);
    expect_error(ErrorKind::corrupt, name, [&, n = std::string(name)] { read({dir / n}); });
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

TEST(Documents, ReadsFoldersInNameOrder) {
  const TempFolder dir;
  write_file(dir / "t/b.txt", "b");
  write_file(dir / "t/a/z.txt", "z");
  write_file(dir / "t/a.txt", "a");
  write_file(dir / "t/.hidden", "h");
  std::string order;
  for (const Document& d : read({dir / "t"}).documents) order += label(d) + " ";
  EXPECT_EQ(order, "a/z.txt a.txt b.txt ");
  std::filesystem::create_directory(dir / "empty");
  EXPECT_ERROR(read({dir / "empty"}), usage, "empty");
  // Settings are not texts, and what lies beside config.json is of a model.
  write_file(dir / "t/c.json", "{}");
  EXPECT_EQ(read({dir / "t"}).documents.size(), 3u);
  write_file(dir / "settings/c.json", "{}");
  EXPECT_ERROR(read({dir / "settings"}), usage, "no file with text");
  EXPECT_EQ(read({dir / "settings/c.json"}).documents.size(), 1u);
  write_file(dir / "hf/config.json", "{}");
  write_file(dir / "hf/merges.txt", "a b");
  EXPECT_ERROR(read({dir / "hf"}), usage, "folder of a model");
}

TEST(Documents, RefusesWhatIsNotAFile) {
  const TempFolder dir;
  ASSERT_EQ(mkfifo((dir / "pipe.txt").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", dir / "zero.txt");
  for (const char* name : {"pipe.txt", "zero.txt", "."}) {
    EXPECT_ERROR(open_text(dir / name), failed, "not a regular file");
  }
}

TEST(Documents, InvalidUtf8IsReplacedAndCounted) {
  const TempFolder dir;
  // Latin-1, an overlong form, a surrogate, past U+10FFFF, a cut character; then good ones.
  const std::string bad = "\xe9|\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82";
  write_file(dir / "a.txt", bad);
  const DocumentSet set = read({dir / "a.txt"});
  EXPECT_EQ(set.replaced_bytes, 1u + 2 + 3 + 4 + 2);
  EXPECT_EQ(set.documents[0].text.substr(0, 4), "\xef\xbf\xbd|");
  EXPECT_EQ(set.notes().size(), 1u);
  write_file(dir / "b.txt", "\xe2\x82\xac \xf0\x9f\x98\x80 \xc3\xa9");
  EXPECT_EQ(read({dir / "b.txt"}).replaced_bytes, 0u);
  write_file(dir / "c.jsonl", "{\"text\": \"caf\xe9\"}\n");
  EXPECT_EQ(read({dir / "c.jsonl"}).documents[0].text, "caf\xef\xbf\xbd");
}

TEST(Documents, NamesBinaryMissingAndEmptyFiles) {
  const TempFolder dir;
  write_file(dir / "a.bin", std::string("ab\0c", 4));
  EXPECT_ERROR(read({dir / "a.bin"}), corrupt, "a.bin");
  EXPECT_ERROR(read({dir / "nowhere.txt"}), failed, "nowhere.txt");
  write_file(dir / "zero.txt", "");
  write_file(dir / "zero.gz", "");
  EXPECT_ERROR(read({dir / "zero.txt"}), usage, "zero.txt");
  write_file(dir / "full.txt", "x");
  const DocumentSet set = read({dir / "zero.txt", dir / "full.txt", dir / "zero.gz"});
  EXPECT_EQ(set.documents.size(), 1u);
  EXPECT_EQ(set.empty, (std::vector<std::string>{"zero.txt", "zero.gz"}));
  EXPECT_ERROR(read({}), usage, "no text");
}

TEST(Documents, ReadsAFileGivenTwiceOnce) {
  const TempFolder dir;
  write_file(dir / "a.txt", "x");
  const DocumentSet set = read({dir / "a.txt", dir / "a.txt"});
  EXPECT_EQ(set.documents.size(), 1u);
  EXPECT_EQ(set.duplicates, 1u);
}

class ChooseDocuments : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 20; ++i) {
      lines +=
          "{\"text\": \"" + std::string(std::size_t(i % 5 + 1), 'x') + std::to_string(i) + "\"}\n";
    }
    write_file(dir_ / "a.jsonl", lines);
  }
  std::vector<std::string> labels(const DocumentOptions& options) const {
    std::vector<std::string> result;
    for (const Document& d : read({dir_ / "a.jsonl"}, options).documents) {
      result.push_back(label(d).substr(8));
    }
    return result;
  }
  TempFolder dir_;
};

TEST_F(ChooseDocuments, FirstDocuments) {
  DocumentOptions options{.samples = 3};
  EXPECT_EQ(labels(options), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(read({dir_ / "a.jsonl"}, options).seen, 3u);  // the rest is not even read
}

TEST_F(ChooseDocuments, FirstDocumentsThatAreLongEnough) {
  DocumentOptions options{.samples = 2, .min_tokens = 5, .tokens = [](const Document& d) {
                            return std::count(d.text.begin(), d.text.end(), 'x');
                          }};
  EXPECT_EQ(labels(options), (std::vector<std::string>{"5", "10"}));
  EXPECT_EQ(read({dir_ / "a.jsonl"}, options).skipped.size(), 8u);
  options.min_tokens = 7;
  for (const Select select : {Select::first, Select::random}) {
    options.select = select;
    EXPECT_ERROR(labels(options), usage, "the longest has 5 tokens, and 7 are needed");
  }
}

TEST_F(ChooseDocuments, RandomChoiceRepeatsWithItsSeed) {
  DocumentOptions options{.samples = 5, .select = Select::random};
  const auto one = labels(options);
  EXPECT_EQ(one.size(), 5u);
  EXPECT_EQ(std::set<std::string>(one.begin(), one.end()).size(), 5u);
  EXPECT_EQ(one, labels(options));
  options.seed = 2;
  EXPECT_NE(one, labels(options));
  options.samples = 100;
  EXPECT_EQ(labels(options).size(), 20u);
}

}  // namespace
}  // namespace mrrope::eval
