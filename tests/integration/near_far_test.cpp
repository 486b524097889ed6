// SPDX-License-Identifier: Apache-2.0
// Ladders with a near part, against attention computed in double from its definition.

#include "base/text.h"
#include "core/methods.h"
#include "engine/llama/loader.h"
#include "engine/llama/local.h"
#include "engine/llama/local_model.h"
#include "models/cached_keys.h"
#include "models/random_model.h"
#include "models/reference_llama.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr std::int64_t kWindow = 64;
constexpr NearPart kNear{12, 10};
constexpr std::size_t kTokens = 300;

LocalOptions small(const std::string& key_type = "f32", bool unified = true) {
  LocalOptions options = exact_options(1024, 32, 3);
  options.type_k = key_type;
  options.unified = unified;
  return options;
}

Metadata small_model(const char* architecture, int rotated = 64) {
  return small_metadata(architecture, {.window = int(kWindow), .heads = 4, .rotated = rotated});
}

Ladder near_far(const Geometry& geometry, const char* method, double attn_coef = 0,
                double headroom = 1.25, NearPart near = kNear, double sharpen = 0) {
  MethodSpec spec{method, Growth::far};
  if (attn_coef != 0) spec.parameters.attn_coef = attn_coef;
  spec.parameters.headroom = headroom;
  spec.parameters.rung_step = 1.5;
  spec.parameters.near = double(near.length);
  spec.parameters.near_step = double(near.step);
  spec.parameters.sharpen = sharpen;
  return make_ladder(geometry, spec, std::int64_t(kTokens));
}

// The definition, by rung of the query.
std::vector<std::vector<double>> by_definition(const std::filesystem::path& path,
                                               const Ladder& ladder,
                                               const std::vector<Token>& tokens) {
  const test::ReferenceLlama model(path);
  const std::vector<double> theta = trained_theta(ladder.rungs().front().plan.geometry());
  const auto rung = [&](std::size_t i) -> const Rung& {
    return ladder.rungs()[ladder.rung_at(std::int64_t(i) + 1)];
  };
  const auto angle = [&](std::size_t i, std::size_t j, std::size_t p) {
    const Rung& r = rung(i);
    if (std::int64_t(j) >= r.border) return double(i - j) * theta[p];
    const double factor = r.plan.factor()[p];
    if (ladder.has_single_factor()) {
      return (double(i - std::size_t(r.shift)) - double(j) / factor) * theta[p];
    }
    return (double(i) - double(r.border)) * theta[p] +
           (double(r.border) - double(j)) * theta[p] / factor;
  };
  const auto weight = [&](std::size_t i, std::size_t j) {
    const double t = rung(i).plan.attention_scale();
    std::size_t last = ladder.rung_at(std::int64_t(i) + 1);  // with the same plan
    while (last + 1 < ladder.rungs().size() &&
           ladder.rungs()[last + 1].plan.extension() == rung(i).plan.extension()) {
      ++last;
    }
    const double end = double(ladder.rungs()[last].length);
    const double sharper = std::int64_t(i) < kWindow
                               ? 1
                               : std::pow(std::log(end) / std::log(kWindow),
                                          ladder.sharpen() * std::log2(end / kWindow));
    return sharper * (std::int64_t(j) >= rung(i).border ? 1 : t * t);
  };
  return model.logits(tokens, angle, weight);
}

struct Case {
  const char* architecture;
  const char* method;
  double attn_coef = 0;
  double sharpen = 0;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.architecture << "_" << c.method << (c.attn_coef != 0 ? "_warm" : "")
       << (c.sharpen != 0 ? "_sharp" : "");
}

class NearFar : public testing::TestWithParam<Case> {};

// f32 keys: sums in another order, and angles of up to a few hundred radians in float.
constexpr double kNoise = 2e-3;

TEST_P(NearFar, MatchesAttentionByDefinition) {
  const Case& c = GetParam();
  const RandomModel file(small_model(c.architecture), 5);
  const auto model = open_local(read_model(file.path()), small());
  const Ladder ladder =
      near_far(model->facts().geometry, c.method, c.attn_coef, 1.25, kNear, c.sharpen);
  EXPECT_EQ(ladder.has_single_factor(), std::string(c.method) == "pi");
  model->use(ladder);
  const std::vector<Token> tokens = words(kTokens);
  const auto timeline = model->timeline();
  const Rows rows = observe(*timeline, tokens);
  const auto expected = by_definition(file.path(), ladder, tokens);
  const double worst = largest_difference(rows, expected);
  EXPECT_LE(worst, kNoise);
  // The test can fail: another near part or another plan is far from this one.
  const auto changed = by_definition(
      file.path(), near_far(model->facts().geometry, c.method, 0, 1, {20, 10}), tokens);
  EXPECT_GT(largest_difference(rows.back(), changed.back()), 20 * kNoise);
  std::printf("  worst difference %.1e, of another near part %.1e\n", worst,
              largest_difference(rows.back(), changed.back()));
  if (c.sharpen == 0) return;
  const auto blunt =
      by_definition(file.path(), near_far(model->facts().geometry, c.method, c.attn_coef), tokens);
  EXPECT_GT(largest_difference(rows.back(), blunt.back()), 5 * kNoise);
}

INSTANTIATE_TEST_SUITE_P(Methods, NearFar,
                         testing::Values(Case{"llama", "pi"}, Case{"llama", "pro"},
                                         Case{"llama", "yarn", 0.1}, Case{"qwen2", "pi", 0.07},
                                         Case{"qwen2", "uni"}, Case{"qwen2", "power"},
                                         Case{"llama", "pi", 0, 0.5}, Case{"qwen2", "pro", 0.1, 1}),
                         [](const auto& sample) { return testing::PrintToString(sample.param); });

class Forms : public testing::TestWithParam<const char*> {
 protected:
  // F32 keys and rows of the whole text under the ladder, read at once.
  std::unique_ptr<TimelineModel> open(const LocalOptions& options = small()) {
    auto model = open_local(read_model(file_.path()), options);
    model->use(near_far(model->facts().geometry, GetParam()));
    return model;
  }

  const RandomModel file_{small_model("qwen2"), 7};
  const std::vector<Token> tokens_ = words(kTokens);
};

INSTANTIATE_TEST_SUITE_P(NearFar, Forms, testing::Values("pi", "pro"),
                         [](const auto& sample) { return std::string(sample.param); });

TEST_P(Forms, InsideTheWindowItIsTheUntouchedModel) {
  const auto model = open();
  const Rows grown = observe(*model->timeline(), std::span(tokens_).first(kWindow));
  model->use(make_ladder(make_plan(model->facts().geometry, {}), 1024));
  EXPECT_EQ(observe(*model->timeline(), std::span(tokens_).first(kWindow)), grown);
}

TEST_P(Forms, BatchesDoNotMatter) {
  const auto model = open();
  const Rows whole = observe(*model->timeline(), tokens_);
  const auto timeline = model->timeline();
  Rows parts;
  std::size_t size = 1;
  for (std::size_t at = 0; at < tokens_.size(); at += size) {
    size = std::min(tokens_.size() - at, at % 23 + 1);
    for (auto& row : observe(*timeline, std::span(tokens_).subspan(at, size))) {
      parts.push_back(std::move(row));
    }
  }
  ASSERT_EQ(parts.size(), whole.size());
  EXPECT_LE(largest_difference(parts, whole), kNoise);
}

// A border ends a ubatch; the next ones are whole again.
TEST_P(Forms, BordersCostNoUbatchesOfTheirOwn) {
  const auto model = open();
  const Ladder ladder = near_far(model->facts().geometry, GetParam(), 0, 1.25, {16, 32});
  model->use(ladder);
  model->timeline()->append(tokens_);
  std::set<double> scales;
  for (const Rung& rung : ladder.rungs()) scales.insert(rung.plan.extension().scale);
  const std::size_t whole = kTokens / 32 + 1;
  EXPECT_GT(ladder.rungs().size(), scales.size() + 5);  // borders
  EXPECT_LE(dynamic_cast<LocalModel&>(*model).injector().decodes(), whole + scales.size());
}

TEST_P(Forms, ForkThatCrossesABorderCopiesItsPast) {
  for (const bool unified : {true, false}) {
    const auto model = open(small("f32", unified));
    const Rows whole = observe(*model->timeline(), tokens_);
    const auto timeline = model->timeline();
    timeline->append(std::span(tokens_).first(101));
    const auto fork = timeline->fork();
    const std::size_t before = dynamic_cast<LocalModel&>(*model).injector().decodes();
    const Rows forked = observe(*fork, std::span(tokens_).subspan(101));
    const std::size_t decodes = dynamic_cast<LocalModel&>(*model).injector().decodes() - before;
    EXPECT_GT(fork->rung(), timeline->rung());
    EXPECT_LE(largest_difference(forked, whole, 101), kNoise);
    // Reading the past again would take at least the four ubatches that it fills.
    const std::size_t rungs = fork->rung() - timeline->rung() + 1;
    EXPECT_LE(decodes, rungs + (tokens_.size() - 101) / 32 + 1);
    // The other one has not moved.
    const Rows rest = observe(*timeline, std::span(tokens_).subspan(101));
    EXPECT_LE(largest_difference(rest, whole, 101), kNoise);
  }
}

TEST_P(Forms, TruncationGoesBack) {
  const auto model = open();
  const Rows whole = observe(*model->timeline(), tokens_);
  const auto timeline = model->timeline();
  timeline->append(tokens_);
  timeline->truncate(120);
  const Rows rows = observe(*timeline, std::span(tokens_).subspan(120, 10));
  EXPECT_LE(largest_difference(rows, whole, 120), kNoise);
}

// Keys that were turned and turned back would not be those of the untouched model.
TEST_P(Forms, TruncationIntoTheWindowComputesThePastAgain) {
  const auto model = open();
  const Injector& injector = dynamic_cast<LocalModel&>(*model).injector();
  const auto timeline = model->timeline();
  timeline->append(tokens_);
  std::size_t before = injector.decodes();
  timeline->truncate(120);
  EXPECT_EQ(injector.decodes(), before);
  timeline->truncate(40);
  EXPECT_EQ(injector.decodes(), before + 2);  // ubatches of 32 tokens
  EXPECT_EQ(timeline->rung(), 0U);
  before = injector.decodes();
  timeline->truncate(30);
  EXPECT_EQ(injector.decodes(), before);
}

TEST_P(Forms, SavedSequenceKeepsItsBorder) {
  const test::TempFolder folder;
  const std::filesystem::path saved = std::filesystem::path(folder.path()) / "sequence";
  Rows expected;
  std::size_t rung = 0;
  {
    const auto model = open();
    const auto timeline = model->timeline();
    timeline->append(std::span(tokens_).first(150));
    rung = timeline->rung();
    timeline->save(saved);
    expected = observe(*timeline, std::span(tokens_).subspan(150, 60));
  }
  const auto model = open();
  const auto timeline = model->restore(saved, rung);
  const Rows rows = observe(*timeline, std::span(tokens_).subspan(150, 60));
  EXPECT_LE(largest_difference(rows, expected), kNoise);
}

// On one rung; then the first inside the window, the others at borders of their own.
TEST_P(Forms, TimelinesAreReadTogether) {
  for (const bool unified : {true, false}) {
    const auto model = open(small("f32", unified));
    const Rows whole = observe(*model->timeline(), tokens_);
    for (const auto& lengths : std::vector<std::vector<std::size_t>>{{152, 153}, {40, 120, 200}}) {
      std::vector<std::unique_ptr<Timeline>> timelines;
      std::vector<Reading> readings;
      for (const std::size_t length : lengths) {
        timelines.push_back(model->timeline());
        timelines.back()->append(std::span(tokens_).first(length));
        readings.push_back({timelines.back().get(), std::span(tokens_).subspan(length, 1)});
      }
      const std::size_t rungs[] = {timelines[0]->rung(), timelines[1]->rung(),
                                   timelines.back()->rung()};
      if (lengths.size() == 2) {
        EXPECT_EQ(rungs[0], rungs[1]);
      } else {
        EXPECT_EQ(rungs[0], 0u);
        EXPECT_LT(rungs[1], rungs[2]);
      }
      model->read_together(readings, [&](std::size_t i, std::span<const float> row) {
        EXPECT_LE(largest_difference(row, whole[lengths[i]]), kNoise) << lengths[i];
      });
    }
  }
}

// What a turn rounds adds up over the turns that a key gets on its way. Twice what was measured;
// the logits of this model have a spread of 1.
TEST_P(Forms, RoundedKeysStayNearTheReference) {
  const std::vector<std::vector<double>> expected = [&] {
    const auto model = open();
    return by_definition(file_.path(), near_far(model->facts().geometry, GetParam()), tokens_);
  }();
  const auto worst = [&](const char* type) {
    LocalOptions options = small(type);
    if (std::string(type) == "q8_0") options.flash_attention = "on";
    return largest_difference(observe(*open(options)->timeline(), tokens_), expected);
  };
  const double f32 = worst("f32");
  const double f16 = worst("f16");
  const double bf16 = worst("bf16");
  const double q8 = worst("q8_0");
  std::printf("  %s: f32 %.1e, f16 %.1e, bf16 %.1e, q8_0 %.1e\n", GetParam(), f32, f16, bf16, q8);
  EXPECT_LE(f32, kNoise);
  EXPECT_LE(f16, 0.05);
  EXPECT_LE(bf16, 0.4);
  EXPECT_LE(q8, 0.9);
}

TEST(NearFarRefusals, AreByName) {
  Metadata windows = small_model("gemma2");
  windows.set("attention.sliding_window", 32);
  const RandomModel sliding(windows, 7);
  const auto model = open_local(read_model(sliding.path()), small());
  EXPECT_ERROR(model->use(near_far(model->facts().geometry, "pi")), unsupported,
               "sliding window of 32", "not 12");
}

// ---- drift ------------------------------------------------------------------------------------

struct DriftCase {
  const char* type;
  const char* method;
  double bound;  // of one turn, as a fraction of the largest element: as in elastic_test.cpp
  int part = 4;  // the border moves by the window over this
};

void PrintTo(const DriftCase& c, std::ostream* out) {
  *out << c.type << "_" << c.method << "_" << c.part;
}

class Drift : public testing::TestWithParam<DriftCase> {};

// The keys of the window, turned border by border to 16 times its length, against one rotation in
// double.
TEST_P(Drift, StaysBelowTheBoundOfItsTurns) {
  const DriftCase& c = GetParam();
  const RandomModel file(small_model("qwen2"), 5);
  LocalOptions options = small(c.type);
  if (ggml_is_quantized(cache_type(c.type, "-ctk"))) options.flash_attention = "on";
  const auto model = open_local(read_model(file.path()), options);
  auto& local = dynamic_cast<LocalModel&>(*model);
  const std::string method = cat(
      "far:", c.method, "(rung_step=1.19,headroom=1.6,near=L/4,near_step=", kWindow / c.part, ")");
  const Ladder ladder = make_ladder(model->facts().geometry, parse_method(method), 16 * kWindow);
  model->use(ladder);
  const auto timeline = model->timeline();
  timeline->append(words(std::size_t(kWindow)));
  const test::Keys before = test::read_keys(local, std::size_t(kWindow));
  std::vector<std::int32_t> cells(std::size_t(kWindow), 0);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = std::int32_t(i);
  for (std::size_t r = 0; r + 1 < ladder.rungs().size(); ++r) local.turn(cells, r, r + 1);
  const test::Keys after = test::read_keys(local, std::size_t(kWindow));

  const Rung& last = ladder.rungs().back();
  ASSERT_GE(last.border, kWindow) << "all of these keys are far";
  const double error = test::turn_error(
      local, before, after, ladder.rungs().front().plan, last.plan, [&](std::size_t p) {
        return double(p) - (ladder.has_single_factor() ? 0 : double(last.border));
      });
  std::size_t turns = ladder.rungs().size() - 1;
  if (ladder.has_single_factor()) {
    turns = 3;
    for (std::size_t r = 1; r < ladder.rungs().size(); ++r) {
      turns += ladder.rungs()[r].plan.factor() != ladder.rungs()[r - 1].plan.factor();
    }
  }
  EXPECT_LE(error, double(turns) * c.bound);
  std::printf("  %s far:%s: %zu turns, %.1e\n", c.type, c.method, turns, error);
}

INSTANTIATE_TEST_SUITE_P(
    KeyTypes, Drift,
    testing::Values(DriftCase{"f32", "pi", 4e-6}, DriftCase{"f32", "pro", 4e-6},
                    DriftCase{"f16", "pi", 4.9e-4}, DriftCase{"f16", "pro", 4.9e-4},
                    DriftCase{"f16", "pro", 4.9e-4, 8}, DriftCase{"f16", "pro", 4.9e-4, 2},
                    DriftCase{"bf16", "pi", 3.9e-3}, DriftCase{"bf16", "pro", 3.9e-3},
                    DriftCase{"bf16", "pro", 3.9e-3, 2}, DriftCase{"q8_0", "pi", 1e-2}),
    testing::PrintToStringParamName());

TEST(NearFar, KeyTypesThatWouldDriftTooFarAreRefusedByName) {
  const RandomModel file(small_model("qwen2"), 5);
  const auto refused = [&](const char* type, const char* method, const char* word) {
    LocalOptions options = small(type);
    options.flash_attention = "on";
    const auto model = open_local(read_model(file.path()), options);
    const MethodSpec far =
        parse_method(cat("far:", method, "(rung_step=1.19,headroom=1,near=L/4,near_step=L/4)"));
    EXPECT_ERROR(model->use(make_ladder(model->facts().geometry, far, 16 * kWindow)), unsupported,
                 type, word);
  };
  refused("q8_0", "pro", "turned up to");
  refused("q4_0", "pi", "turned up to");
}

}  // namespace
}  // namespace mrrope::engine
