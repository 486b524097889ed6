// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "export/gguf_export.h"
#include "support/expect_error.h"
#include "support/gguf_writer.h"
#include "support/temp_folder.h"

namespace mrrope::exporting {
namespace {

using test::GgufWriter;
using test::llama_gguf;
using test::TempFolder;

// A file of this architecture: 4 heads and 2 KV heads of 16 rows.
struct File {
  explicit File(const GgufWriter& writer)
      : path(folder.write("in.gguf", writer.bytes())),
        gguf(read_gguf(path)),
        model(read_model(path)),
        row(*find_architecture(model.architecture)) {}
  void check() const { check_relabel(gguf, model, row); }
  GgufTensorOut out(const std::string& name) const {
    const GgufPart& part = gguf.first();
    for (const GgufTensor& tensor : part.tensors) {
      if (tensor.name == name) return relabelled(copied(part, tensor), model, row);
    }
    throw std::runtime_error(name);
  }
  TempFolder folder;
  std::filesystem::path path;
  Gguf gguf;
  Model model;
  const Architecture& row;
};

GgufWriter with(const std::string& architecture, const std::string& name,
                const std::vector<std::uint64_t>& dims) {
  std::uint64_t count = 1;
  for (const std::uint64_t d : dims) count *= d;
  GgufWriter writer = llama_gguf({.architecture = architecture});
  writer.tensor(name, dims, 0, std::string(count * 4, 'x'));
  return writer;
}

TEST(Relabel, PutsQueriesAndKeysIntoLlamasOrder) {
  const File q(with("qwen2", "blk.0.attn_q.weight", {64, 64}));
  q.check();
  EXPECT_EQ(q.out("blk.0.attn_q.weight").rows.head, 16u);
  EXPECT_EQ(q.out("blk.0.attn_q.weight").rows.heads, 4u);
  const File k(with("qwen2", "blk.1.attn_k.bias", {32}));
  k.check();
  EXPECT_EQ(k.out("blk.1.attn_k.bias").rows.heads, 2u);
  const File fused(with("qwen2", "blk.0.attn_qkv.weight", {64, 128}));
  fused.check();
  EXPECT_EQ(fused.out("blk.0.attn_qkv.weight").rows.heads, 6u);
  const File value(with("qwen2", "blk.0.attn_v.weight", {64, 32}));
  value.check();
  EXPECT_EQ(value.out("blk.0.attn_v.weight").rows.head, 0u);
  // Pairs that are interleaved already stay.
  const File interleaved(with("internlm2", "blk.0.attn_q.weight", {64, 64}));
  interleaved.check();
  EXPECT_EQ(interleaved.out("blk.0.attn_q.weight").rows.head, 0u);
}

// The reader accepts a tensor without dimensions: one number.
TEST(Relabel, RefusesRowsThatAreNotWholeHeads) {
  for (const std::vector<std::uint64_t>& dims :
       std::vector<std::vector<std::uint64_t>>{{}, {3}, {64, 3}, {64, 24}, {64, 16, 2}}) {
    for (const char* name :
         {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_qkv.weight"}) {
      SCOPED_TRACE(name + std::to_string(dims.size()));
      const File file(with("qwen2", name, dims));
      EXPECT_ERROR(file.check(), corrupt, "attn_");
    }
  }
  const File short_qkv(with("qwen2", "blk.0.attn_qkv.weight", {64, 112}));
  EXPECT_ERROR(short_qkv.check(), unsupported, "112 rows");
}

TEST(Relabel, KnowsWhatEachArchitectureReads) {
  const File norm(with("seed_oss", "blk.1.post_attention_norm.weight", {64}));
  norm.check();
  EXPECT_EQ(norm.out("blk.1.post_attention_norm.weight").name, "blk.1.ffn_norm.weight");
  EXPECT_ERROR(File(with("qwen2", "blk.1.post_attention_norm.weight", {64})).check(), unsupported,
               "post_attention_norm");
  EXPECT_ERROR(File(with("seed_oss", "blk.1.post_attention_norm.weight", {64})
                        .tensor("blk.1.ffn_norm.weight", {64}, 0, std::string(256, 'x')))
                   .check(),
               unsupported, "both");
  File(with("pangu-embedded", "blk.0.attn_output.bias", {64})).check();
  EXPECT_ERROR(File(with("qwen2", "blk.0.attn_output.bias", {64})).check(), unsupported,
               "attn_output.bias");
  File(llama_gguf({.architecture = "seed_oss"}).f32("seed_oss.attention.scale", 0.5F)).check();
  EXPECT_ERROR(
      File(llama_gguf({.architecture = "qwen2"}).f32("qwen2.attention.scale", 0.5F)).check(),
      unsupported, "attention.scale");
  EXPECT_ERROR(File(llama_gguf({.architecture = "qwen2"}).u32("qwen2.expert_count", 8)).check(),
               unsupported, "expert_count");
  EXPECT_ERROR(File(with("qwen2", "blk.00.attn_norm.weight", {64})).check(), unsupported, "blk.00");
  EXPECT_ERROR(File(with("qwen2", "attn_q.weight", {64, 64})).check(), unsupported, "attn_q");
}

}  // namespace
}  // namespace mrrope::exporting
