// SPDX-License-Identifier: Apache-2.0
// Injected plans checked against llama.cpp itself: on small random models of one architecture per
// mechanism, `pi` must equal its own linear scaling, `ntk` its own changed base, `yarn` its own
// YaRN, and `none` the untouched model. Sequences run through three full ubatches, a rest and eight
// single tokens, so that reused graphs are covered.
#include "core/methods.h"
#include "engine/llama/local.h"
#include "models/architecture_cases.h"
#include "models/stock_rows.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr int kTokens = 208;
constexpr int kSingles = 8;
constexpr int kUbatch = 64;
constexpr int kVocabulary = 128;
constexpr double kScale = 4;

// A difference as large as this would be noticed: the oracle can fail.
constexpr double kLeastSignal = 0.05;
// F32 cache, flash attention off. Powers and logarithms in float on both sides; GELU goes through a
// table of f16 on the CPU, which turns the last bit of a float into the last bit of a half.
constexpr double kNoise = 2e-4;
constexpr double kNoiseOfGelu = 2e-3;

struct Subject {
  std::string name;
  std::string architecture;
  json keys = json::object();
  int rotary_dim = 64;
  int context = 256;        // of the engine
  float trained_scale = 1;  // freq_scale that the keys give
  float base = 10000;
  bool base_reaches_windows = false;  // its own changed base turns more layers than its own scaling
  bool scale_in_scores = false;
  double noise = kNoise;
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

Metadata describe(const Subject& subject) {
  Metadata m = small_metadata(
      subject.architecture,
      {.layers = 4, .vocabulary = kVocabulary, .window = 256, .rotated = subject.rotary_dim});
  m.set("rope.freq_base", subject.base);
  set_keys(m, subject.keys);
  return m;
}

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const json& given : small_models("oracle")) {
    Subject s{.name = given["name"], .architecture = given["architecture"]};
    s.keys = given.value("keys", s.keys);
    s.rotary_dim = given.value("rotary_dim", s.rotary_dim);
    s.context = given.value("context", s.context);
    s.trained_scale = given.value("trained_scale", s.trained_scale);
    s.base_reaches_windows = given.value("base_reaches_windows", false);
    s.scale_in_scores = given.value("scale_in_scores", false);
    s.noise = given.value("gelu", false) ? kNoiseOfGelu : kNoise;
    list.push_back(s);
  }
  return list;
}

std::vector<Token> sequence() { return words(kTokens, kVocabulary); }

using Change = std::function<void(llama_context_params&)>;

// libllama on its own.
Rows reference(const std::filesystem::path& path, const Change& change = {}) {
  return stock_rows(path, exact_options(256, kUbatch), sequence(), change, kSingles);
}

class Engine {
 public:
  Engine(const Subject& subject, const std::filesystem::path& path, bool replace_scaling = false) {
    const LocalOptions options = exact_options(subject.context, kUbatch);
    model_ = open_local(read_model(path, replace_scaling), options);
  }

  const Geometry& geometry() const { return model_->facts().geometry; }

  Rows run(const Extension& extension) {
    model_->use(make_ladder(make_plan(geometry(), extension), kTokens));
    const std::unique_ptr<Timeline> timeline = model_->timeline();
    const std::vector<Token> tokens = sequence();
    Rows all = observe(*timeline, std::span(tokens).first(kTokens - kSingles));
    while (all.size() < tokens.size()) {
      all.push_back(observe(*timeline, std::span(tokens).subspan(all.size(), 1)).front());
    }
    return all;
  }

 private:
  std::unique_ptr<TimelineModel> model_;
};

Extension request(const char* method) { return {.method = method, .scale = kScale}; }

// YaRN as llama.cpp runs it: from the bare base and window, whatever was trained.
Extension own_yarn(const Subject& subject) {
  const YarnRamp ramp = yarn_ramp(subject.rotary_dim, subject.base, 256, 32, 1);
  Extension extension = request("yarn");
  if (subject.trained_scale == 1) {
    extension.parameters.low = ramp.low;
    extension.parameters.high = ramp.high;
    return extension;
  }
  // It replaces a trained linear scale, which a plan comes on top of.
  extension.method = "custom";
  extension.scale = kScale / subject.trained_scale;
  extension.parameters.attn_coef = 0.1;
  for (int i = 0; i < subject.rotary_dim / 2; ++i) {
    const double keep = 1 - ramp.at(i);
    extension.parameters.factors.push_back(subject.trained_scale /
                                           (keep + (1 - keep) / extension.scale));
  }
  return extension;
}

class Oracle : public testing::TestWithParam<Subject> {
 protected:
  Oracle() : model_(describe(GetParam()), 7) {}

  const Subject& subject() const { return GetParam(); }

  void compare(Engine& engine, const Extension& extension, const std::filesystem::path& path,
               const Change& change, double tolerance) {
    const Rows plain = reference(model_.path());
    const Rows own = reference(path, change);
    EXPECT_GT(deviations_apart(own, plain), kLeastSignal) << "the oracle is too weak to fail";
    const double apart = deviations_apart(engine.run(extension), own);
    EXPECT_LE(apart, tolerance) << extension.method;
    RecordProperty(extension.method, std::to_string(apart));
  }

  RandomModel model_;
};

TEST_P(Oracle, NoneIsTheModelAsShipped) {
  Engine engine(subject(), model_.path());
  const Rows plain = reference(model_.path());
  EXPECT_EQ(deviations_apart(engine.run({}), plain), 0);
  // Also after another plan has been through the same graphs.
  EXPECT_GT(deviations_apart(engine.run(request("pi")), plain), kLeastSignal);
  EXPECT_EQ(deviations_apart(engine.run({}), plain), 0);
}

TEST_P(Oracle, PiMatchesLinearScalingOfLlamaCpp) {
  Engine engine(subject(), model_.path());
  Extension extension = request("pi");
  double attention = 1;
  if (subject().scale_in_scores) {
    // Its linear scaling multiplies all scores by (attn_factor * (1 + 0.1 ln S))^2. An attn_factor
    // that undoes this turns the rotary part down as well, which a temperature says.
    attention = 1 / (1 + 0.1 * std::log(kScale));
    extension.parameters.attn_coef = (attention - 1) / std::log(kScale);
  }
  compare(
      engine, extension, model_.path(),
      [&](llama_context_params& params) {
        params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
        params.rope_freq_scale = subject().trained_scale / static_cast<float>(kScale);
        params.yarn_ext_factor = 0;
        if (subject().scale_in_scores) params.yarn_attn_factor = static_cast<float>(attention);
      },
      subject().scale_in_scores ? subject().noise : 0);
}

class OracleOfBase : public Oracle {};

TEST_P(OracleOfBase, NtkMatchesAChangedBaseInLlamaCpp) {
  Engine engine(subject(), model_.path());
  const double d = subject().rotary_dim;
  compare(
      engine, request("ntk"), model_.path(),
      [&](llama_context_params& params) {
        params.rope_freq_base = static_cast<float>(subject().base * std::pow(kScale, d / (d - 2)));
      },
      subject().noise);
}

TEST_P(Oracle, YarnMatchesYarnOfLlamaCpp) {
  Engine engine(subject(), model_.path());
  Extension extension = own_yarn(subject());
  std::filesystem::path path = model_.path();
  std::unique_ptr<RandomModel> other;
  if (subject().scale_in_scores) {
    // The file's attn_factor undoes what its YaRN does to all scores, and to the rotary part too.
    Metadata metadata = describe(subject());
    metadata.set("rope.scaling.attn_factor", static_cast<float>(1 / (1 + 0.1 * std::log(kScale))));
    other = std::make_unique<RandomModel>(metadata, 7);
    path = other->path();
    extension.parameters.attn_coef = 0;
  }
  compare(
      engine, extension, path,
      [&](llama_context_params& params) {
        params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_YARN;
        params.rope_freq_scale = subject().trained_scale / static_cast<float>(kScale);
        params.yarn_orig_ctx = 256;
      },
      subject().noise);
}

// A model trained with YaRN: plans come on top of it, or instead of it.
Subject trained_with_yarn() {
  return {.name = "YarnTrained",
          .architecture = "qwen2",
          .keys = {{"context_length", 1024},
                   {"rope.scaling.type", "yarn"},
                   {"rope.scaling.factor", 4.0},
                   {"rope.scaling.original_context_length", 256}}};
}

TEST(TrainedScaling, IsKeptBitForBit) {
  const Subject subject = trained_with_yarn();
  const RandomModel model(describe(subject), 7);
  Engine engine(subject, model.path());
  EXPECT_EQ(engine.geometry().train_length, 1024);
  const Rows plain = reference(model.path());
  EXPECT_EQ(deviations_apart(engine.run({}), plain), 0);
}

TEST(TrainedScaling, CanBeReplaced) {
  const Subject subject = trained_with_yarn();
  const RandomModel model(describe(subject), 7);
  Engine engine(subject, model.path(), true);
  EXPECT_EQ(engine.geometry().train_length, 256);
  const Rows plain = reference(model.path());
  const Rows bare = reference(model.path(), [](llama_context_params& params) {
    params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_NONE;
  });
  EXPECT_GT(deviations_apart(plain, bare), kLeastSignal);
  EXPECT_EQ(deviations_apart(engine.run({}), bare), 0);
  // YaRN by a plan is YaRN by the file.
  EXPECT_LE(deviations_apart(engine.run(own_yarn(subject)), plain), kNoise);
}

TEST(TrainedScaling, IsMultipliedByAPlan) {
  const Subject subject = trained_with_yarn();
  const RandomModel model(describe(subject), 7);
  Engine on_top(subject, model.path());
  Engine instead(subject, model.path(), true);
  // The same product, written into a graph in both possible ways.
  Extension product = request("custom");
  product.parameters.factors = on_top.geometry().trained_factor;
  for (double& factor : product.parameters.factors) factor *= kScale;
  product.parameters.attn_coef = (on_top.geometry().trained_attention_scale - 1) / std::log(kScale);
  const Rows expected = instead.run(product);
  EXPECT_LE(deviations_apart(on_top.run(request("pi")), expected), kNoise);
  EXPECT_GT(deviations_apart(on_top.run({}), expected), kLeastSignal);
}

std::vector<Subject> subjects_of_base() {
  std::vector<Subject> list = subjects();
  std::erase_if(list, [](const Subject& subject) { return subject.base_reaches_windows; });
  return list;
}

std::string name_of(const testing::TestParamInfo<Subject>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(Models, Oracle, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(Models, OracleOfBase, testing::ValuesIn(subjects_of_base()), name_of);

}  // namespace
}  // namespace mrrope::engine
