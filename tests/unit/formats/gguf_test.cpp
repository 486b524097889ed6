// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf.h"

#include <limits>

#include "support/expect_error.h"
#include "support/gguf_writer.h"
#include "support/temp_folder.h"

namespace mrrope {
namespace {

using test::gguf_string;
using test::GgufWriter;
using test::le;
using test::TempFolder;

GgufPart read(const std::string& bytes) {
  return read_gguf_part(Source::memory(std::as_bytes(std::span(bytes)), "x.gguf"));
}
GgufPart read(const GgufWriter& writer) { return read(writer.bytes()); }

GgufWriter sample() {
  GgufWriter out;
  out.text("general.architecture", "llama")
      .u32("a.u32", 7)
      .i32("a.i32", -7)
      .u64("a.u64", std::uint64_t{1} << 63)
      .f32("a.f32", 0.5f)
      .boolean("a.yes", true)
      .array<std::int32_t>("a.list", 5, {1, -2, 3})
      .array<float>("a.reals", 6, {0.5f, 1.5f})
      .array<std::uint8_t>("a.flags", 7, {1, 0})
      .strings("a.words", {"one", "", "three"})
      .text("a.long", std::string(5000, 'x'))
      .array<std::uint8_t>("a.many", 0, std::vector<std::uint8_t>(5000, 1))
      .floats("rope_freqs.weight", {1, 2, 4, 8})
      .tensor("blk.0.q", {64, 2}, 2, std::string(72, 'q'));
  return out;
}

TEST(Gguf, ReadsEveryKindOfValue) {
  const GgufPart part = read(sample());
  EXPECT_EQ(part.version, 3u);
  EXPECT_EQ(part.text("general.architecture"), "llama");
  EXPECT_EQ(part.integer("a.u32", 0, 100), 7);
  EXPECT_EQ(part.integer("a.i32", -100, 100), -7);
  EXPECT_EQ(part.real("a.f32"), 0.5);
  EXPECT_EQ(part.boolean("a.yes"), true);
  EXPECT_EQ(part.integers("a.list", -10, 10), (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(part.integers("a.u32", 0, 10), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(part.integers("a.flags", 0, 1), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(part.find("a.reals")->count, 2u);
  EXPECT_EQ(part.integer("absent", 0, 1), std::nullopt);
  EXPECT_EQ(part.find("absent"), nullptr);
}

TEST(Gguf, RemembersTheOffsetOfSkippedValues) {
  const std::string bytes = sample().bytes();
  const GgufPart part = read(bytes);
  const GgufKeyValue& words = *part.find("a.words");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(words.value));
  EXPECT_EQ(words.element, GgufType::string);
  EXPECT_EQ(words.count, 3u);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(part.find("a.long")->value));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(part.find("a.many")->value));
  // Type and value follow the key's length and text, without a gap.
  std::uint64_t at = 24;
  for (const GgufKeyValue& kv : part.key_values) {
    EXPECT_EQ(kv.offset, at + 8 + kv.key.size()) << kv.key;
    at = kv.offset + kv.size;
  }
  EXPECT_EQ(words.size, 4 + 4 + 8 + (8 + 3) + 8 + (8 + 5u));
}

TEST(Gguf, LocatesTensors) {
  const std::string bytes = sample().bytes();
  const GgufPart part = read(bytes);
  ASSERT_EQ(part.tensors.size(), 2u);
  EXPECT_EQ(part.data_offset % 32, 0u);
  const GgufTensor& quantised = part.tensors[1];
  EXPECT_EQ(quantised.size, 2 * 2 * 18u);
  EXPECT_EQ(quantised.elements(), 128u);
  EXPECT_EQ(bytes.substr(quantised.offset, quantised.size), std::string(72, 'q'));
  EXPECT_EQ(part.rope_factors.at("rope_freqs.weight"), (std::vector<float>{1, 2, 4, 8}));
}

TEST(Gguf, ReadsVersion2AndAFileWithoutTensors) {
  GgufWriter two = sample();
  two.version = 2;
  EXPECT_EQ(read(two).version, 2u);
  GgufWriter empty;
  empty.u32("a", 1);
  EXPECT_TRUE(read(empty).tensors.empty());
  EXPECT_TRUE(read(GgufWriter()).key_values.empty());
}

TEST(Gguf, RefusesEveryTruncation) {
  const std::string bytes = sample().bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_ERROR(read(bytes.substr(0, n)), corrupt, "x.gguf");
  }
}

TEST(Gguf, RefusesOtherMagicsAndVersions) {
  GgufWriter w = sample();
  w.magic = "GGUX";
  EXPECT_ERROR(read(w), corrupt, "GGUX");
  w.magic = "lmgg";
  EXPECT_ERROR(read(w), corrupt, "lmgg");
  w = sample();
  w.version = 0;
  EXPECT_ERROR(read(w), corrupt, "version 0");
  w.version = 1;
  EXPECT_ERROR(read(w), unsupported, "version 1");
  w.version = 4;
  EXPECT_ERROR(read(w), unsupported, "version 4");
  w.version = 3u << 24;
  EXPECT_ERROR(read(w), unsupported, "big-endian");
}

TEST(Gguf, LimitsCountsByTheFileSize) {
  for (const std::uint64_t count : {std::uint64_t{1} << 63, std::uint64_t{100'000},
                                    std::numeric_limits<std::uint64_t>::max() - 20}) {
    GgufWriter w = sample();
    w.extra_key_values = count;
    EXPECT_ERROR(read(w), corrupt, "number of key-values", std::to_string(12 + count));
    w = sample();
    w.extra_tensors = count;
    EXPECT_ERROR(read(w), corrupt, "number of tensors", std::to_string(2 + count));
  }
  GgufWriter w = sample();
  w.extra_key_values = 1;
  EXPECT_ERROR(read(w), corrupt);
}

TEST(Gguf, RefusesStringsAndArraysPastTheEnd) {
  const std::uint64_t huge = std::uint64_t{1} << 62;
  EXPECT_ERROR(read(GgufWriter().raw("k", 8, le(huge))), corrupt, "\"k\"", "4611686018427387904");
  EXPECT_ERROR(read(GgufWriter().raw("k", 8, le(UINT64_MAX) + "abc")), corrupt, "\"k\"");
  EXPECT_ERROR(read(GgufWriter().raw("k", 9, le<std::uint32_t>(4) + le(huge))), corrupt, "\"k\"",
               "4611686018427387904");
  EXPECT_ERROR(
      read(GgufWriter().raw(
          "k", 9, le<std::uint32_t>(8) + le<std::uint64_t>(2) + gguf_string("ok") + le(huge))),
      corrupt, "\"k\"");
  const std::string long_key = le(huge) + "k";
  EXPECT_ERROR(read("GGUF" + le<std::uint32_t>(3) + le<std::uint64_t>(0) + le<std::uint64_t>(1) +
                    long_key + std::string(100, 'x')),
               corrupt, "key", "4611686018427387904");
}

TEST(Gguf, RefusesTypesItDoesNotKnow) {
  EXPECT_ERROR(read(GgufWriter().raw("k", 13, "1234")), corrupt, "\"k\"", "13");
  EXPECT_ERROR(read(GgufWriter().raw("k", 0xffffffff, "1234")), corrupt, "4294967295");
  EXPECT_ERROR(read(GgufWriter().raw("k", 9, le<std::uint32_t>(9) + le<std::uint64_t>(1))), corrupt,
               "array of arrays");
  EXPECT_ERROR(read(GgufWriter().raw("k", 9, le<std::uint32_t>(13) + le<std::uint64_t>(1))),
               corrupt, "13");
  EXPECT_ERROR(read(GgufWriter().raw("k", 7, "\x02")), corrupt, "boolean", "2");
}

TEST(Gguf, RefusesDuplicateEmptyAndOverlongKeys) {
  EXPECT_ERROR(read(GgufWriter().u32("k", 1).u32("k", 2)), corrupt, "\"k\"", "twice");
  EXPECT_ERROR(read(GgufWriter().u32("", 1).u32("x", 1)), corrupt, "0");
  EXPECT_ERROR(read(GgufWriter().u32(std::string(70'000, 'k'), 1)), corrupt, "70000");
}

TEST(Gguf, RefusesAnAlignmentThatIsNotAPowerOfTwo) {
  for (const std::uint32_t alignment : {0u, 3u, 48u, 0xffffffffu}) {
    GgufWriter w;
    w.u32("general.alignment", alignment);
    EXPECT_ERROR(read(w), corrupt, "general.alignment", std::to_string(alignment));
  }
  EXPECT_ERROR(read(GgufWriter().u64("general.alignment", 32)), corrupt, "u64");
  GgufWriter w;
  w.alignment = 64;
  w.u32("general.alignment", 64).floats("a", {1}).floats("b", {2});
  EXPECT_EQ(read(w).tensors[1].offset % 64, 0u);
  // The largest power of two leaves no room for data.
  EXPECT_ERROR(read(GgufWriter().u32("general.alignment", 1u << 31).floats("a", {1})), corrupt,
               "\"a\"");
}

TEST(Gguf, RefusesImpossibleShapes) {
  const auto with = [](const std::vector<std::uint64_t>& dims, std::uint32_t type = 0) {
    return GgufWriter().tensor("t", dims, type, std::string(64, 'x'));
  };
  EXPECT_ERROR(read(with({0})), corrupt, "\"t\"", "dimension 0 of 0");
  EXPECT_ERROR(read(with({4, 0})), corrupt, "dimension 1 of 0");
  EXPECT_ERROR(read(with({1, 1, 1, 1, 1})), corrupt, "5 dimensions");
  EXPECT_ERROR(read(with({std::uint64_t(-4)})), corrupt, "18446744073709551612");
  EXPECT_ERROR(read(with({std::uint64_t{1} << 62, 8})), corrupt, "dimension 1 of 8");
  EXPECT_ERROR(read(with({std::uint64_t{1} << 62, 2}, 28)), corrupt, "\"t\"");
  EXPECT_ERROR(read(with({33}, 2)), corrupt, "33", "Q4_0", "32");
  EXPECT_ERROR(read(with({4}, 4)), corrupt, "unknown type 4");
  EXPECT_ERROR(read(with({4}, 31)), corrupt, "unknown type 31");
  EXPECT_ERROR(read(with({4}, 43)), corrupt, "unknown type 43");
  EXPECT_ERROR(read(GgufWriter().tensor(std::string(65, 't'), {1}, 0, "1234")), corrupt, "65");
}

TEST(Gguf, RefusesDataOutsideTheFileOrShared) {
  EXPECT_ERROR(read(GgufWriter().floats("a", {1, 2}).tensor_at("b", {8}, 0, 32)), corrupt, "\"b\"",
               "past the end");
  EXPECT_ERROR(read(GgufWriter().floats("a", {1, 2}).tensor_at("b", {1}, 0, UINT64_MAX - 31)),
               corrupt, "\"b\"", "past the end");
  EXPECT_ERROR(read(GgufWriter().floats("a", {1, 2}).tensor_at("b", {1}, 0, 8)), corrupt, "\"b\"",
               "alignment");
  EXPECT_ERROR(read(GgufWriter().floats("a", {1, 2}).tensor_at("b", {2}, 0, 0)), corrupt, "\"a\"",
               "\"b\"", "share");
  EXPECT_ERROR(read(GgufWriter().floats("a", {1}).floats("a", {2})), corrupt, "\"a\"", "twice");
}

TEST(Gguf, RefusesRopeFactorsThatAreNotOneRow) {
  EXPECT_ERROR(read(GgufWriter().tensor("rope_freqs.weight", {2, 2}, 0, std::string(16, '\0'))),
               corrupt, "rope_freqs.weight", "2 dimensions");
  EXPECT_ERROR(read(GgufWriter().tensor("rope_freqs.weight", {4}, 1, std::string(8, '\0'))),
               corrupt, "rope_freqs.weight", "F16");
}

TEST(Gguf, NamesTheKeyAndValueOfABadNumber) {
  const GgufPart part = read(sample());
  EXPECT_ERROR(part.integer("a.u32", 8, 10), corrupt, "a.u32", "7", "8", "10");
  EXPECT_ERROR(part.integer("a.u64", 0, 10), corrupt, "a.u64", "9223372036854775807");
  EXPECT_ERROR(part.integer("a.f32", 0, 10), corrupt, "a.f32", "f32");
  EXPECT_ERROR(part.integer("a.yes", 0, 10), corrupt, "bool");
  EXPECT_ERROR(part.real("general.architecture"), corrupt, "string");
  EXPECT_ERROR(part.text("a.u32"), corrupt, "u32");
  EXPECT_ERROR(part.text("a.long"), corrupt, "a.long");
  EXPECT_ERROR(part.boolean("a.u32"), corrupt, "u32");
  EXPECT_ERROR(part.integers("a.list", 0, 10), corrupt, "a.list", "-2");
  EXPECT_ERROR(part.integers("a.words", 0, 10), corrupt, "a.words");
  EXPECT_ERROR(part.integers("a.reals", 0, 10), corrupt, "a.reals");
  EXPECT_ERROR(part.integers("a.many", 0, 10), corrupt, "5000");
}

GgufWriter split_part(int number, int count, int tensors) {
  GgufWriter out;
  if (number == 0) out.text("general.architecture", "llama");
  out.u16("split.no", static_cast<std::uint16_t>(number))
      .u16("split.count", static_cast<std::uint16_t>(count))
      .i32("split.tensors.count", tensors);
  if (number > 0) out.floats("t" + std::to_string(number), {1, 2});
  return out;
}

TEST(SplitGguf, AnyPartOpensAllParts) {
  const TempFolder folder;
  for (int i = 0; i < 3; ++i) {
    folder.write("m-0000" + std::to_string(i + 1) + "-of-00003.gguf", split_part(i, 3, 2).bytes());
  }
  for (const char* name : {"m-00001-of-00003.gguf", "m-00003-of-00003.gguf"}) {
    const Gguf model = read_gguf(folder.path() / name);
    ASSERT_EQ(model.parts.size(), 3u);
    EXPECT_EQ(model.first().text("general.architecture"), "llama");
    EXPECT_EQ(model.find_tensor("t2").first->path.filename(), "m-00003-of-00003.gguf");
    EXPECT_EQ(model.find_tensor("t9").second, nullptr);
  }
}

TEST(SplitGguf, NamesTheMissingPart) {
  const TempFolder folder;
  const auto path = folder.write("m-00001-of-00002.gguf", split_part(0, 2, 1).bytes());
  EXPECT_ERROR(read_gguf(path), failed, "part 2 of 2", "m-00002-of-00002.gguf");
}

TEST(SplitGguf, RefusesPartsThatDoNotMatch) {
  const TempFolder folder;
  const auto path = folder.write("m-00001-of-00002.gguf", split_part(0, 2, 1).bytes());
  folder.write("m-00002-of-00002.gguf", split_part(0, 2, 1).bytes());
  EXPECT_ERROR(read_gguf(path), corrupt, "split.no is 0", "part 2");
  folder.write("m-00002-of-00002.gguf", split_part(1, 3, 1).bytes());
  EXPECT_ERROR(read_gguf(path), corrupt, "split.count is 3", "2 parts");
  folder.write("m-00002-of-00002.gguf", split_part(1, 2, 5).bytes());
  EXPECT_NO_THROW(read_gguf(path));  // the first part's count is the one that holds
  folder.write("m-00001-of-00002.gguf", split_part(0, 2, 7).bytes());
  EXPECT_ERROR(read_gguf(path), corrupt, "split.tensors.count is 7", "1 tensors");
  GgufWriter twice = split_part(0, 2, 2);
  folder.write("m-00001-of-00002.gguf", twice.floats("t1", {1, 2}).bytes());
  EXPECT_ERROR(read_gguf(path), corrupt, "\"t1\"", "another part");
}

TEST(SplitGguf, NeedsBothTheKeyAndTheName) {
  const TempFolder folder;
  EXPECT_ERROR(read_gguf(folder.write("m.gguf", split_part(0, 2, 1).bytes())), corrupt,
               "split.count is 2", "not named");
  EXPECT_ERROR(read_gguf(folder.write("m-00001-of-00004.gguf", split_part(0, 2, 1).bytes())),
               corrupt, "split.count is 2", "4 parts");
  EXPECT_EQ(read_gguf(folder.write("n-00001-of-00004.gguf", sample().bytes())).parts.size(), 1u);
  EXPECT_EQ(
      read_gguf(folder.write("o-00001-of-00001.gguf", split_part(0, 1, 0).bytes())).parts.size(),
      1u);
}

TEST(SplitGguf, DoesNotFollowLinksOutOfTheFolder) {
  const TempFolder folder;
  const auto path = folder.write("a/m-00001-of-00002.gguf", split_part(0, 2, 1).bytes());
  folder.write("b/other.gguf", split_part(1, 2, 1).bytes());
  std::filesystem::create_symlink("../b/other.gguf", folder.path() / "a/m-00002-of-00002.gguf");
  EXPECT_ERROR(read_gguf(path), corrupt, "leads out");
  // Links that lead where the given part itself leads are a cache's.
  std::filesystem::create_directory(folder.path() / "c");
  folder.write("b/first.gguf", split_part(0, 2, 1).bytes());
  std::filesystem::create_symlink("../b/first.gguf", folder.path() / "c/m-00001-of-00002.gguf");
  std::filesystem::create_symlink("../b/other.gguf", folder.path() / "c/m-00002-of-00002.gguf");
  EXPECT_EQ(read_gguf(folder.path() / "c/m-00001-of-00002.gguf").parts.size(), 2u);
}

TEST(Gguf, DoesNotReadWeights) {
  // 100 GB of holes behind the header.
  const TempFolder folder;
  GgufWriter w = test::llama_gguf();
  const std::uint64_t rows = 12'500'000;
  std::uint64_t offset = 0;
  for (int i = 0; i < 2000; ++i) {
    w.tensor_at("blk." + std::to_string(i), {1, rows}, 0, offset);
    offset += rows * 4;
  }
  const auto path = folder.write_sparse("big.gguf", w.header(), 4096 * 100 + offset);
  const Gguf model = read_gguf(path);
  ASSERT_EQ(model.first().tensors.size(), 2000u);
  EXPECT_EQ(model.first().tensors.back().size, rows * 4);
}

}  // namespace
}  // namespace mrrope
