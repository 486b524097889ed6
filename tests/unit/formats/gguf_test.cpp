// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf.h"

#include "models/gguf_writer.h"
#include "mrrope/model.h"
#include "support/test.h"

namespace mrrope {
namespace {

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

std::string bytes_of(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    out += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

// What a list of calls writes, such as [["sample"], ["u32", "k", 1], ["raw", "k", 8, "00ff"]].
GgufWriter written(const json& calls) {
  GgufWriter w;
  for (const json& c : calls) {
    const std::string what = c[0];
    const std::string name = c.size() > 1 && c[1].is_string() ? c[1].get<std::string>() : "";
    const auto dims = [&] { return c[2].get<std::vector<std::uint64_t>>(); };
    if (what == "sample") w = sample();
    if (what == "magic") w.magic = name;
    if (what == "version") w.version = c[1];
    if (what == "alignment") w.alignment = c[1];
    if (what == "more keys") w.extra_key_values = c[1];
    if (what == "more tensors") w.extra_tensors = c[1];
    if (what == "u32") w.u32(name, c[2]);
    if (what == "u64") w.u64(name, c[2]);
    if (what == "raw") w.raw(name, c[2], bytes_of(c[3].get<std::string>()));
    if (what == "floats") w.floats(name, c[2].get<std::vector<float>>());
    if (what == "tensor") w.tensor(name, dims(), c[3], std::string(c[4].get<std::size_t>(), 'x'));
    if (what == "tensor at") w.tensor_at(name, dims(), c[3], c[4]);
  }
  return w;
}

TEST(Gguf, HostileFilesAreRefusedByName) {
  const GgufPart part = read(sample());
  test::expect_functions(
      "gguf",
      {{"file",
        [](auto& a) {
          const GgufPart got = read(written(json::parse(a[0])));
          return std::to_string(got.tensors.empty() ? 0 : got.tensors.back().offset);
        }},
       {"bytes", [](auto& a) { return std::to_string(read(bytes_of(a[0])).key_values.size()); }},
       {"integer",
        [&](auto& a) { return std::to_string(*part.integer(a[0], std::stoi(a[1]), 10)); }},
       {"integers", [&](auto& a) { return json(part.integers(a[0], 0, 10)).dump(); }},
       {"real", [&](auto& a) { return std::to_string(*part.real(a[0])); }},
       {"text", [&](auto& a) { return *part.text(a[0]); }},
       {"boolean", [&](auto& a) { return std::to_string(*part.boolean(a[0])); }}});
}

GgufWriter split_part(int number, int count, int tensors) {
  GgufWriter out = number == 0 ? llama_gguf() : GgufWriter();
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
    const Model facts = read_model(folder.path() / name);
    EXPECT_EQ(facts.files.size(), 3u);
    EXPECT_EQ(facts.weight_bytes, 16u);
    EXPECT_EQ(facts.path, folder.path() / name);
  }
}

TEST(SplitGguf, NamesTheMissingPart) {
  const TempFolder folder;
  const auto path = folder.write("m-00001-of-00002.gguf", split_part(0, 2, 1).bytes());
  EXPECT_ERROR(read_gguf(path), failed, "part 2 of 2", "m-00002-of-00002.gguf");
  const auto second = folder.write("n-00002-of-00002.gguf", split_part(1, 2, 1).bytes());
  EXPECT_ERROR(read_model(second), failed, "n-00001-of-00002.gguf");
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
