// SPDX-License-Identifier: Apache-2.0
// Exported files in stock libllama against the source under the injected plan, on small random
// models: one per architecture that has an exact encoding, and the other encodings.
#include <llama.h>

#include "engine/llama/local.h"
#include "export/export.h"
#include "formats/architectures.h"
#include "models/architecture_cases.h"
#include "models/gguf_edit.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::exporting {
namespace {

constexpr int kTokens = 80;

engine::LocalOptions engine_options() { return exact_options(256, 32, 1, "off", 1); }

std::vector<Token> sequence() { return test::words(kTokens, 64); }

const std::vector<std::size_t> kWanted{10, 40, kTokens - 1};

Rows injected(const std::filesystem::path& file, const Plan& plan, bool replace = false) {
  const auto model = open_local(read_model(file, replace), engine_options());
  model->use(make_ladder(plan, 256));
  Rows rows;
  model->timeline()->append(sequence(), kWanted, [&](std::size_t, std::span<const float> row) {
    rows.emplace_back(row.begin(), row.end());
  });
  return rows;
}

Plan plan_for(const Model& model, const std::string& method, double attn_coef = 0.1) {
  Extension extension{.method = method, .scale = 4};
  extension.parameters.attn_coef = attn_coef;
  return make_plan(model.geometry, extension);
}

struct Result {
  GgufEncoding encoding;
  double apart;   // stock on the export from the source under the plan
  double signal;  // stock on the source from the same
};

Result export_and_compare(const std::filesystem::path& source, const Plan& plan,
                          bool replace = false, GgufOptions options = {}) {
  const TempFolder folder(test::fast_place());
  options.out = folder / "out.gguf";
  options.length = 4096;
  const Gguf gguf = read_gguf(source);
  const GgufExport exported = plan_gguf_export(gguf, read_model(source, replace), plan, options);
  write_gguf(exported.file, {});
  const Rows expected = injected(source, plan, replace);
  return {
      exported.encoding,
      deviations_apart(expected, stock_logits(options.out, sequence(), kWanted, engine_options())),
      deviations_apart(expected, stock_logits(source, sequence(), kWanted, engine_options()))};
}

bool has_windows_apart(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& layer) { return layer.kind == LayerKind::windowed; });
}

// A random model has every tensor its loader would take. Of those re-labelled, real files use
// neither a bias on the output nor scales next to the weights, and llama's graph reads them
// differently.
bool is_unusual(const std::string& architecture, const std::string& name) {
  if (!find_architecture(architecture)->has(Trait::like_llama)) return false;
  const auto ends = [&](std::string_view end) {
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
  };
  return name == "output.bias" || ends("scale") ||
         (ends("attn_output.bias") && architecture != "pangu-embedded");
}

// Cases come with every key there is; a graph without experts must not be given any.
Metadata metadata_of(const ArchitectureCase& c) {
  Metadata metadata = c.metadata();
  if (find_architecture(c.architecture)->has(Trait::like_llama)) {
    metadata.set("expert_count", 0);
    metadata.set("expert_used_count", 0);
  }
  return metadata;
}

class ExactEncoding : public testing::TestWithParam<ArchitectureCase> {};

TEST_P(ExactEncoding, MatchesTheLogitsOfTheInjectedPlan) {
  const Architecture& row = *find_architecture(GetParam().architecture);
  const TempFolder folder(test::fast_place());
  const RandomModel random(metadata_of(GetParam()), 7);
  const auto source = folder / "source.gguf";
  edit_gguf(random.path(), source,
            [&](const std::string& name) { return is_unusual(GetParam().architecture, name); });
  const Model model = read_model(source);
  const Plan plan = plan_for(model, "pi", has_windows_apart(model) ? 0 : 0.1);
  if (has_windows_apart(model)) {
    EXPECT_ERROR(export_and_compare(source, plan_for(model, "pi", 0.1)), unsupported,
                 "sliding-window");
  }
  const Result result = export_and_compare(source, plan);
  EXPECT_EQ(result.encoding, row.has(Trait::like_llama)                 ? GgufEncoding::relabelled
                             : row.factors == FactorSupport::long_short ? GgufEncoding::lists
                                                                        : GgufEncoding::factors);
  if (row.has(Trait::like_llama) && row.pairing == Pairing::halves) {
    EXPECT_LT(result.apart, 2e-4);  // sums in another order
  } else {
    EXPECT_EQ(result.apart, 0);
  }
  EXPECT_GT(result.signal, 0.05) << "the test cannot fail";
}

std::vector<ArchitectureCase> exact_rows() {
  std::vector<ArchitectureCase> cases = cases_with_plans();
  std::erase_if(cases, [](const ArchitectureCase& c) {
    const Architecture& row = *find_architecture(c.architecture);
    return !row.has(Trait::like_llama) && row.factors != FactorSupport::used &&
           row.factors != FactorSupport::long_short;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Rows, ExactEncoding, testing::ValuesIn(exact_rows()),
                         [](const auto& test) { return test.param.name(); });

// A default case of this architecture.
Metadata metadata_of(const std::string& name) {
  for (const ArchitectureCase& c : architecture_cases()) {
    if (c.architecture == name && c.variant.empty()) return metadata_of(c);
  }
  throw std::runtime_error("no case " + name);
}

std::filesystem::path quantised(const std::filesystem::path& source,
                                const std::filesystem::path& out, llama_ftype type) {
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = type;
  params.nthread = 1;
  EXPECT_EQ(llama_model_quantize(source.c_str(), out.c_str(), &params), 0u);
  return out;
}

TEST(Relabelled, Qwen2WithBiasesInQ8AndF16) {
  const TempFolder folder(test::fast_place());
  const RandomModel random(metadata_of("qwen2"), 3);
  edit_gguf(random.path(), folder / "f32.gguf",
            [](const std::string& name) { return is_unusual("qwen2", name); });
  for (const auto& [type, name, wanted] : {std::tuple{LLAMA_FTYPE_MOSTLY_Q8_0, "Q8_0", 8u},
                                           std::tuple{LLAMA_FTYPE_MOSTLY_F16, "F16", 1u}}) {
    SCOPED_TRACE(name);
    const auto source = quantised(folder / "f32.gguf", folder / name, type);
    const Gguf file = read_gguf(source);
    ASSERT_EQ(file.find_tensor("blk.0.attn_q.weight").second->type, wanted);
    ASSERT_NE(file.find_tensor("blk.0.attn_q.bias").second, nullptr);
    ASSERT_NE(file.find_tensor("blk.0.attn_k.bias").second, nullptr);
    const Plan plan = plan_for(read_model(source), "pi");
    const Result result = export_and_compare(source, plan);
    EXPECT_EQ(result.encoding, GgufEncoding::relabelled);
    // Both types round activations, and a sum in another order sometimes rounds the other way. Each
    // time that is one step of the type, so all of it stays below what the type costs against f32.
    const double rounding =
        deviations_apart(injected(folder / "f32.gguf", plan, false), injected(source, plan, false));
    EXPECT_LT(result.apart, rounding);
    EXPECT_GT(result.signal, 5 * rounding) << "the test cannot fail";
    RecordProperty(name, std::to_string(result.apart));
  }
}

TEST(Relabelled, RefusesWhatLlamaWouldReadDifferently) {
  const TempFolder folder(test::fast_place());
  const RandomModel random(metadata_of("qwen2"), 3);  // has output.bias
  const Model model = read_model(random.path());
  const Plan plan = plan_for(model, "pro");
  const GgufOptions options{.out = folder / "out.gguf", .length = 4096};
  const Gguf gguf = read_gguf(random.path());
  EXPECT_ERROR(plan_gguf_export(gguf, model, plan, options), unsupported, "output.bias");
  GgufOptions native;
  native.native = true;
  const Result yarn = export_and_compare(random.path(), plan_for(model, "yarn"), false, native);
  EXPECT_EQ(yarn.encoding, GgufEncoding::keys);
  EXPECT_LT(yarn.apart, 2e-3);
  EXPECT_GT(yarn.signal, 0.05);
}

// qwen3 has no exact encoding for pro, but keys for linear, for another base and for YaRN, also for
// a YaRN whose ramp begins and ends twice as early.
TEST(Keys, EncodeMethodsThatLlamaCppKnows) {
  const RandomModel random(metadata_of("qwen3"), 3);
  const Model model = read_model(random.path());
  Extension early{.method = "yarn", .scale = 4};
  early.parameters.beta_fast = 64;
  early.parameters.beta_slow = 2;
  for (const auto& [plan, limit] : {std::pair{plan_for(model, "pi"), 1e-6},
                                    {plan_for(model, "ntk"), 2e-3},
                                    {plan_for(model, "yarn"), 2e-3},
                                    {make_plan(model.geometry, early), 2e-3}}) {
    SCOPED_TRACE(plan.extension().method);
    const Result result = export_and_compare(random.path(), plan);
    EXPECT_EQ(result.encoding, GgufEncoding::keys);
    EXPECT_LT(result.apart, limit);
    EXPECT_GT(result.signal, 0.05);
  }
}

// The vendor's scaling below the plan, kept or replaced.
TEST(TrainedScaling, IsMultipliedInKeptOrReplaced) {
  for (const char* type : {"linear", "yarn", "none"}) {
    SCOPED_TRACE(type);
    Metadata metadata = metadata_of("llama");
    metadata.set("rope.scaling.type", type);
    if (std::string(type) != "none") metadata.set("rope.scaling.factor", 2.0F);
    const RandomModel random(metadata, 5);  // with a rope_freqs of 1 to 8
    const Result kept =
        export_and_compare(random.path(), plan_for(read_model(random.path()), "pi"));
    EXPECT_EQ(kept.apart, 0);
    EXPECT_GT(kept.signal, 0.05);
    if (std::string(type) == "none") continue;
    const Model bare = read_model(random.path(), true);
    const Result replaced = export_and_compare(random.path(), plan_for(bare, "pi"), true);
    EXPECT_EQ(replaced.encoding, GgufEncoding::factors);
    EXPECT_LT(replaced.apart, 1e-4);
    EXPECT_GT(replaced.signal, 0.05);
  }
}

TEST(TrainedScaling, LongAndShortListsBecomeOne) {
  Metadata metadata = metadata_of("phi3");
  metadata.set("rope.scaling.original_context_length", 64);
  metadata.set("rope.scaling.attn_factor", 1.2F);
  const RandomModel random(metadata, 5);
  const Model model = read_model(random.path());
  const Result result = export_and_compare(random.path(), plan_for(model, "pi"));
  EXPECT_EQ(result.encoding, GgufEncoding::lists);
  EXPECT_EQ(result.apart, 0);
  EXPECT_GT(result.signal, 0.05);
}

// Layers that rotate independently of the plan: if keys do not affect them, exports are exact, for
// YaRN with its own temperature too; if keys affect them, there is no encoding.
class SlidingWindowLayers : public testing::TestWithParam<ArchitectureCase> {};

TEST_P(SlidingWindowLayers, AreUnchangedOrTheExportIsRefused) {
  const Architecture& row = *find_architecture(GetParam().architecture);
  const RandomModel random(metadata_of(GetParam()), 3);
  const Model model = read_model(random.path());
  ASSERT_TRUE(has_windows_apart(model));
  const Gguf gguf = read_gguf(random.path());
  GgufOptions options{.out = "out.gguf", .length = 4096, .native = true};
  const auto refused = [&](const Plan& plan) {
    EXPECT_ERROR(plan_gguf_export(gguf, model, plan, options), unsupported, "sliding-window");
  };
  refused(plan_for(model, "yarn", 0.05));
  refused(plan_for(model, "pi", 0.1));
  const Plan yarn = plan_for(model, "yarn");
  if (row.has(Trait::keys_reach_windows)) return refused(yarn);
  const Result result = export_and_compare(random.path(), yarn, false, options);
  EXPECT_EQ(result.encoding, GgufEncoding::keys);
  // 22 random layers magnify rounding more than few do.
  EXPECT_LT(result.apart, row.name == "gemma3n" ? 5e-2 : 5e-3);
  EXPECT_GT(result.signal, 0.02);
}

std::vector<ArchitectureCase> windowed_rows() {
  std::vector<ArchitectureCase> cases = architecture_cases();
  std::erase_if(cases, [](const ArchitectureCase& c) {
    const Architecture& row = *find_architecture(c.architecture);
    if (!row.unsupported.empty() || row.factors == FactorSupport::used) return true;
    try {
      bool full = false;
      bool apart = false;
      for (const Layer& layer : layers_of(row, c.keys)) {
        full |= layer.kind == LayerKind::full && !layer.windowed_cache;
        apart |= layer.kind == LayerKind::windowed;
      }
      return !full || !apart;
    } catch (const Error&) {
      return true;
    }
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Rows, SlidingWindowLayers, testing::ValuesIn(windowed_rows()),
                         [](const auto& test) { return test.param.name(); });

TEST(ScoresScaledByKeys, CannotBeExportedByKeys) {
  const RandomModel random(metadata_of("deepseek2"), 3);
  const Model model = read_model(random.path());
  const Gguf gguf = read_gguf(random.path());
  const GgufOptions options{.out = "out.gguf", .length = 4096};
  EXPECT_ERROR(plan_gguf_export(gguf, model, plan_for(model, "pi"), options), unsupported,
               "attention scores");
}

TEST(Split, SplitModelBecomesOneFile) {
  const TempFolder folder(test::fast_place());
  const RandomModel random(metadata_of("llama"), 5);
  const Gguf whole = read_gguf(random.path());
  const std::size_t count = whole.first().tensors.size();
  std::vector<GgufFileOut> parts(3);
  for (std::size_t n = 0; n < 3; ++n) {
    parts[n].path = folder / ("in-0000" + std::to_string(n + 1) + "-of-00003.gguf");
    if (n == 0) {
      for (const GgufKeyValue& record : whole.first().key_values) {
        parts[n].keys.push_back(copied(whole.first(), record, record.key));
      }
    }
    parts[n].keys.push_back(integer_key("split.no", GgufType::u16, n));
    parts[n].keys.push_back(integer_key("split.count", GgufType::u16, 3));
    parts[n].keys.push_back(integer_key("split.tensors.count", GgufType::i32, count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    parts[i * 3 / count].tensors.push_back(copied(whole.first(), whole.first().tensors[i]));
  }
  for (const GgufFileOut& part : parts) write_gguf(part, {});

  const Gguf gguf = read_gguf(parts[1].path);
  const Model model = read_model(parts[0].path);
  const Plan plan = plan_for(model, "pi");
  const Rows expected = injected(random.path(), plan);
  const auto out = folder / "one.gguf";
  write_gguf(plan_gguf_export(gguf, model, plan, {.out = out, .length = 4096}).file, {});
  const Gguf back = read_gguf(out);
  EXPECT_EQ(back.first().tensors.size(), count);
  EXPECT_EQ(back.first().find("split.count"), nullptr);
  EXPECT_EQ(deviations_apart(expected, stock_logits(out, sequence(), kWanted, engine_options())),
            0);
}

}  // namespace
}  // namespace mrrope::exporting
