// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf.h"
#include "models/gguf_edit.h"
#include "models/gguf_writer.h"
#include "support/test.h"

namespace mrrope {
namespace {

std::string pattern(std::size_t bytes, int start) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(start + int(i) * 3);
  return out;
}

std::string data_of(const GgufPart& part, const std::string& name) {
  for (const GgufTensor& tensor : part.tensors) {
    if (tensor.name != name) continue;
    return read_file(part.path).substr(std::size_t(tensor.offset), std::size_t(tensor.size));
  }
  return "absent";
}

TEST(GgufCopy, ReproducesTheSameBytes) {
  const TempFolder folder;
  const auto in = folder.write("in.gguf", llama_gguf()
                                              .text("a.long", std::string(9000, 'x'))
                                              .array<float>("a.list", 6, {1.5f, 2.5f})
                                              .tensor("a", {32, 2}, 8, pattern(68, 1))
                                              .tensor("b", {3}, 0, pattern(12, 9))
                                              .bytes());
  edit_gguf(in, folder / "out.gguf", [](const std::string&) { return false; });
  std::string expected = read_file(in);
  expected.resize((expected.size() + 31) / 32 * 32);  // the last tensor is padded too
  EXPECT_EQ(read_file(folder / "out.gguf"), expected);
}

TEST(GgufCopy, ReplacesAddsAndDrops) {
  const TempFolder folder;
  const auto in = folder.write("in.gguf", llama_gguf()
                                              .tensor("a", {32, 2}, 8, pattern(68, 1))
                                              .tensor("b", {3}, 0, pattern(12, 9))
                                              .bytes());
  const Gguf source = read_gguf(in);
  GgufFileOut out;
  out.path = folder / "out.gguf";
  out.alignment = 64;
  out.keys = {copied(source.first(), *source.first().find("general.name"), "general.title"),
              integer_key("general.alignment", GgufType::u32, 64),
              text_key("general.architecture", "llama"), f32_key("x", 0.25F),
              integer_key("big", GgufType::u64, std::uint64_t{1} << 40)};
  out.tensors = {f32_tensor("rope_freqs.weight", {1, 2, 4}),
                 copied(source.first(), source.first().tensors[1])};
  write_gguf(out, {});
  const Gguf back = read_gguf(out.path);
  EXPECT_EQ(back.first().text("general.title"), "Small Llama");
  EXPECT_EQ(back.first().real("x"), 0.25);
  EXPECT_EQ(back.first().integer("big", 0, INT64_MAX), std::int64_t{1} << 40);
  EXPECT_EQ(back.rope_factors("rope_freqs.weight"), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(data_of(back.first(), "b"), pattern(12, 9));
  EXPECT_EQ(back.first().file_size, out.size());
}

// Two heads of four rows, then a row that stays.
TEST(GgufCopy, PutsRowsOfHalvesIntoInterleavedOrder) {
  const TempFolder folder;
  std::string rows;
  for (char r = 0; r < 9; ++r) rows += std::string(34, char('a' + r));  // one Q8_0 block each
  std::string bias;
  for (char r = 0; r < 9; ++r) bias += std::string(4, char('a' + r));
  const auto in = folder.write(
      "in.gguf", llama_gguf().tensor("q", {32, 9}, 8, rows).tensor("qb", {9}, 0, bias).bytes());
  const Gguf source = read_gguf(in);
  std::vector<GgufTensorOut> tensors;
  for (const GgufTensor& tensor : source.first().tensors) {
    tensors.push_back(copied(source.first(), tensor));
    tensors.back().rows = {4, 2};
  }
  edit_gguf(
      in, folder / "out.gguf", [](const std::string&) { return true; }, tensors);
  const Gguf back = read_gguf(folder / "out.gguf");
  std::string matrix;
  std::string vector;
  for (const char r : std::string("acbdegfhi")) {
    matrix += std::string(34, r);
    vector += std::string(4, r);
  }
  EXPECT_EQ(data_of(back.first(), "q"), matrix);
  EXPECT_EQ(data_of(back.first(), "qb"), vector);
}

TEST(GgufCopy, RefusesNumbersThatDoNotFitTheirType) {
  EXPECT_ERROR(integer_key("k", GgufType::u16, 70000), usage, "u16", "70000");
  EXPECT_ERROR(integer_key("k", GgufType::i32, std::uint64_t{1} << 31), usage, "i32");
  EXPECT_ERROR(integer_key("k", GgufType::u32, std::uint64_t{1} << 32), usage, "u32");
  EXPECT_ERROR(integer_key("k", GgufType::f32, 1), unsupported, "f32");
}

TEST(GgufCopy, RefusesASourceThatChanged) {
  const TempFolder folder;
  const auto in = folder.write("in.gguf", llama_gguf().tensor("b", {3}, 0, pattern(12, 9)).bytes());
  const Gguf source = read_gguf(in);
  GgufFileOut out;
  out.path = folder / "out.gguf";
  out.tensors = {copied(source.first(), source.first().tensors[0])};
  folder.write("in.gguf", read_file(in) + "more");
  EXPECT_ERROR(write_gguf(out, {}), failed, "in.gguf");
  EXPECT_FALSE(std::filesystem::exists(out.path));
}

TEST(GgufCopy, CreatesFilesAndNeverOverwrites) {
  const TempFolder folder;
  GgufFileOut a;
  a.path = folder / "a.gguf";
  GgufFileOut b;
  b.path = folder / "b.gguf";
  folder.write("b.gguf", "taken");
  EXPECT_ERROR(write_gguf(b, {}), failed, "b.gguf");
  EXPECT_EQ(read_file(b.path), "taken");
  const auto give_up = [](std::uint64_t) {
    throw Error(ErrorKind::interrupted, "interrupted", "again");
  };
  EXPECT_ERROR(write_gguf(a, give_up), interrupted, "interrupted");
  EXPECT_FALSE(std::filesystem::exists(a.path));
}

}  // namespace
}  // namespace mrrope
