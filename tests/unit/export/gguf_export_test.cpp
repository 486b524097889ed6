// SPDX-License-Identifier: Apache-2.0
// How exported files get onto the disk, as another architecture, or with keys for YaRN;
// tests/integration runs what is in them.

#include "base/text.h"
#include "export/export.h"
#include "models/gguf_writer.h"
#include "support/test.h"

namespace mrrope::exporting {
namespace {

namespace fs = std::filesystem;

// A file with 4 heads and 2 KV heads of 16 rows, its plan, and its tensors under another
// architecture.
struct File {
  explicit File(const GgufWriter& writer)
      : path(folder.write("in.gguf", writer.bytes())),
        gguf(read_gguf(path)),
        model(read_model(path)),
        row(*find_architecture(model.architecture)) {}
  GgufExport to(const fs::path& out) const {
    return plan_gguf_export(gguf, model, make_plan(model.geometry, {.method = "pro", .scale = 4}),
                            {.out = out, .length = 16384});
  }
  GgufTensorOut as_llama(const std::string& name) const {
    const auto [part, tensor] = gguf.find_tensor(name);
    return relabelled(copied(*part, *tensor), model, row);
  }
  TempFolder folder;
  fs::path path;
  Gguf gguf;
  Model model;
  const Architecture& row;
};

const GgufWriter kWriter = llama_gguf().tensor("a", {64}, 0, std::string(256, 'a'));

TEST(WriteExport, PublishesOnlyWhatWasVerified) {
  const File in(kWriter);
  const fs::path out = in.folder / "out.gguf";
  const GgufExport exported = in.to(out);
  const auto fails = [&](Staging&, const GgufExport& staged) {
    EXPECT_EQ(read_gguf(staged.file.path).rope_factors("rope_freqs.weight").back(), 4);
    EXPECT_EQ(staged.file.path.filename(), "out.gguf");
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
  const File in(kWriter);
  fs::create_directory(in.folder / "d");
  EXPECT_ERROR(write_export(in.to(in.folder / "d"), true, {}), usage, "not a regular file");
  EXPECT_ERROR(write_export(in.to(in.folder / "d/"), true, {}), usage, "does not name a file");
}

// "ARCHITECTURE | TENSOR DIMS ... | KEY=VALUE ...": the name of each tensor, and how the rows of
// its heads are ordered anew.
std::string relabel(const test::Arguments& a) {
  GgufWriter writer = llama_gguf({.architecture = a[0]});
  std::vector<std::string> names;
  for (std::size_t i = 1; i < a.size(); ++i) {
    std::istringstream words(a[i]);
    std::string name;
    words >> name;
    if (const std::size_t at = name.find('='); at != std::string::npos) {
      const std::string key = a[0] + "." + name.substr(0, at), value = name.substr(at + 1);
      contains(value, ".") ? writer.f32(key, std::stof(value)) : writer.u32(key, std::stoul(value));
      continue;
    }
    std::vector<std::uint64_t> dims;
    std::uint64_t count = 1;
    for (std::uint64_t d; words >> d; count *= d) dims.push_back(d);
    writer.tensor(name, dims, 0, std::string(count * 4, 'x'));
    names.push_back(name);
  }
  const File file(writer);
  check_relabel(file.gguf, file.model, file.row);
  std::string out = "fine";
  for (const std::string& name : names) {
    const GgufTensorOut made = file.as_llama(name);
    out += cat(", ", made.name, " ", made.rows.heads, " heads of ", made.rows.head);
  }
  return out;
}

TEST(Relabel, IsDoneOrRefused) { test::expect_functions("relabel", {{"as", relabel}}); }

// "METHOD": the keys of a plan at 4 windows, in a file of an architecture that takes no factors.
std::string keys(const test::Arguments& a) {
  const File file(llama_gguf({.architecture = "qwen3"}));
  const MethodSpec spec = parse_method(a[0]);
  const Plan plan = make_plan(file.model.geometry,
                              {.method = spec.name, .scale = 4, .parameters = spec.parameters});
  const fs::path out = file.folder / "out.gguf";
  write_gguf(plan_gguf_export(file.gguf, file.model, plan, {.out = out, .length = 16384}).file, {});
  const Gguf back = read_gguf(out);
  std::vector<std::string> found;
  for (const char* key : {"freq_base", "scaling.factor", "scaling.attn_factor"}) {
    const auto value = back.first().real(cat("qwen3.rope.", key));
    if (value) found.push_back(cat(key, " ", significant(*value, 6)));
  }
  const char* original = "scaling.original_context_length";
  found.push_back(
      cat(original, " ", *back.first().integer(cat("qwen3.rope.", original), 1, 1 << 20)));
  return joined(found, ", ");
}

TEST(Keys, ExpressAPlanOrAreRefused) { test::expect_functions("gguf_keys", {{"of", keys}}); }

}  // namespace
}  // namespace mrrope::exporting
