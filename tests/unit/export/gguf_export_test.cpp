// SPDX-License-Identifier: Apache-2.0
// How exported files get onto the disk, as another architecture, or as the nearest YaRN;
// tests/integration runs what is in them.

#include "export/export.h"
#include "support/gguf_writer.h"
#include "support/test.h"

namespace mrrope::exporting {
namespace {

namespace fs = std::filesystem;

struct Input {
  Input()
      : path(folder.write("in.gguf",
                          llama_gguf().tensor("a", {64}, 0, std::string(256, 'a')).bytes())),
        gguf(read_gguf(path)),
        model(read_model(path)) {}
  GgufExport to(const fs::path& out) const {
    return plan_gguf_export(gguf, model, make_plan(model.geometry, {.method = "pro", .scale = 4}),
                            {.out = out, .length = 16384});
  }
  TempFolder folder;
  fs::path path;
  Gguf gguf;
  Model model;
};

TEST(WriteExport, PublishesOnlyWhatWasVerified) {
  const Input in;
  const fs::path out = in.folder / "out.gguf";
  const GgufExport exported = in.to(out);
  const auto fails = [&](Staging&, const GgufExport& staged) {
    EXPECT_EQ(read_gguf(staged.files.front().path).rope_factors("rope_freqs.weight").back(), 4);
    EXPECT_EQ(staged.files.front().path.filename(), "out.gguf");
    throw Error(ErrorKind::goal_not_met, "something differs", "report it");
  };
  EXPECT_ERROR(write_export(exported, false, {}, fails), goal_not_met, "differs");
  EXPECT_FALSE(fs::exists(out));
  in.folder.write("out.gguf", "old");
  EXPECT_ERROR(write_export(exported, false, {}), usage, "already exists");
  EXPECT_ERROR(write_export(exported, true, {}, fails), goal_not_met, "differs");
  EXPECT_EQ(read_file(out), "old");
  write_export(exported, true, {},
               [&](Staging&, const GgufExport&) { EXPECT_EQ(read_file(out), "old"); });
  EXPECT_EQ(read_gguf(out).rope_factors("rope_freqs.weight").back(), 4);
  // The input, the output, and nothing else.
  EXPECT_EQ(std::distance(fs::directory_iterator(in.folder.path()), fs::directory_iterator()), 2);
}

TEST(WriteExport, RefusesFoldersAndMissingNames) {
  const Input in;
  fs::create_directory(in.folder / "d");
  EXPECT_ERROR(write_export(in.to(in.folder / "d"), true, {}), usage, "not a regular file");
  EXPECT_ERROR(write_export(in.to(in.folder / "d/"), true, {}), usage, "does not name a file");
}

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

Geometry geometry() { return {.rotary_dim = 128, .base = 500000, .train_length = 8192}; }

Plan plan_of(const std::string& method, double scale, const Parameters& parameters = {}) {
  return make_plan(geometry(), {.method = method, .scale = scale, .parameters = parameters});
}

Parameters betas(double fast, double slow) {
  Parameters p;
  p.beta_fast = fast;
  p.beta_slow = slow;
  return p;
}

TEST(YarnFit, FindsYarnItself) {
  const YarnFit fit = fit_yarn(plan_of("yarn", 16));
  EXPECT_EQ(fit.scale, 16);
  EXPECT_EQ(fit.original_length, 8192);
  EXPECT_EQ(fit.largest_error, 0);
  EXPECT_EQ(fit.beta_fast, 32);
  EXPECT_EQ(fit.beta_slow, 1);
}

// Twice the turns at both ends is half the original length.
TEST(YarnFit, FindsAMovedRamp) {
  const YarnFit fit = fit_yarn(plan_of("yarn", 8, betas(64, 2)));
  EXPECT_LT(fit.largest_error, 1e-9);
  EXPECT_NEAR(fit.scale, 8, 1e-6);
}

TEST(YarnFit, ReportsItsError) {
  for (const char* method : {"pro", "uni", "regressive", "yarn-rotations", "llama3"}) {
    SCOPED_TRACE(method);
    const Plan plan = plan_of(method, 16);
    const YarnFit fit = fit_yarn(plan);
    // The errors again, from the YaRN that the fit names.
    const Plan yarn = plan_of("yarn", fit.scale, betas(fit.beta_fast, fit.beta_slow));
    double largest = 0;
    double mean = 0;
    for (std::size_t i = 0; i < plan.theta().size(); ++i) {
      const double error = std::abs(yarn.theta()[i] / plan.theta()[i] - 1);
      largest = std::max(largest, error);
      mean += error / double(plan.theta().size());
    }
    EXPECT_NEAR(fit.largest_error, largest, 1e-9);
    EXPECT_NEAR(fit.mean_error, mean, 1e-9);
    EXPECT_GT(largest, 1e-3);
    // No neighbour is better.
    for (const double scale : {fit.scale * 0.99, fit.scale * 1.01}) {
      const Plan other = plan_of("yarn", scale, betas(fit.beta_fast, fit.beta_slow));
      double worse = 0;
      for (std::size_t i = 0; i < plan.theta().size(); ++i) {
        worse = std::max(worse, std::abs(other.theta()[i] / plan.theta()[i] - 1));
      }
      EXPECT_GE(worse, largest - 1e-9);
    }
    // Nor the plain YaRN of the same scale.
    double plain = 0;
    const Plan same = plan_of("yarn", 16);
    for (std::size_t i = 0; i < plan.theta().size(); ++i) {
      plain = std::max(plain, std::abs(same.theta()[i] / plan.theta()[i] - 1));
    }
    EXPECT_LE(largest, plain + 1e-12);
  }
}

}  // namespace
}  // namespace mrrope::exporting
