// SPDX-License-Identifier: Apache-2.0
// How exported files get onto the disk, as another architecture, or as the nearest YaRN;
// tests/integration runs what is in them.

#include "base/text.h"
#include "export/export.h"
#include "support/gguf_writer.h"
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

std::vector<double> errors_of(const Plan& yarn, const Plan& plan) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < plan.theta().size(); ++i) {
    errors.push_back(std::abs(yarn.theta()[i] / plan.theta()[i] - 1));
  }
  return errors;
}

TEST(YarnFit, ReportsItsError) {
  for (const char* method : {"pro", "uni", "regressive", "yarn-rotations", "llama3"}) {
    SCOPED_TRACE(method);
    const Plan plan = plan_of(method, 16);
    const YarnFit fit = fit_yarn(plan);
    // The errors again, from the YaRN that the fit names.
    const Plan yarn = plan_of("yarn", fit.scale, betas(fit.beta_fast, fit.beta_slow));
    const std::vector<double> errors = errors_of(yarn, plan);
    const double largest = std::ranges::max(errors);
    EXPECT_NEAR(fit.largest_error, largest, 1e-9);
    EXPECT_NEAR(fit.mean_error,
                std::accumulate(errors.begin(), errors.end(), 0.0) / double(errors.size()), 1e-9);
    EXPECT_GT(largest, 1e-3);
    // No neighbour is better.
    for (const double scale : {fit.scale * 0.99, fit.scale * 1.01}) {
      const Plan other = plan_of("yarn", scale, betas(fit.beta_fast, fit.beta_slow));
      EXPECT_GE(std::ranges::max(errors_of(other, plan)), largest - 1e-9);
    }
    // Nor the plain YaRN of the same scale.
    EXPECT_LE(largest, std::ranges::max(errors_of(plan_of("yarn", 16), plan)) + 1e-12);
  }
}

}  // namespace
}  // namespace mrrope::exporting
