// SPDX-License-Identifier: Apache-2.0
// What holds for every plan, on geometries drawn with a fixed seed.

#include "core/methods.h"
#include "mrrope/plan.h"
#include "support/test.h"

namespace mrrope {
namespace {

const std::vector<double>& scales() {
  static const std::vector<double> list{1, 1.01, 1.3, 2, 3, 4, 7.7, 8, 16, 31, 32, 49, 64, 1000};
  return list;
}

// In [0, 1), the same on every standard library.
double uniform(std::mt19937_64& random) { return double(random() >> 11) * 0x1p-53; }

// rotary_dim 32 to 256, base 1e4 to 1e7, windows 512 to 131072; every third has trained factors.
// In this range there is a middle to extend.
std::vector<Geometry> random_geometries() {
  std::mt19937_64 random(20240917);
  std::vector<Geometry> out;
  for (int n = 0; n < 60; ++n) {
    Geometry g{.rotary_dim = 32 + 2 * int(uniform(random) * 113),
               .base = std::pow(10.0, 4 + 3 * uniform(random)),
               .train_length = std::int64_t(512 * std::pow(256.0, uniform(random)))};
    if (n % 3 == 2) {
      const double largest = 1 + 7 * uniform(random);
      for (int i = 0; i < pair_count(g); ++i) {
        g.trained_factor.push_back(1 + (largest - 1) * i / (pair_count(g) - 1));
      }
    }
    out.push_back(g);
  }
  return out;
}

std::string describe(const Geometry& g, const Extension& e) {
  std::ostringstream out;
  out << e.method << " at scale " << e.scale << ", rotary_dim " << g.rotary_dim << ", base "
      << g.base << ", window " << g.train_length
      << (g.trained_factor.empty() ? "" : ", trained factors");
  return out.str();
}

Extension request(std::string_view method, double scale) {
  return {.method = std::string(method), .scale = scale};
}

// The last of them from the geometry.
bool takes_lists(std::string_view method) {
  return method == "longrope" || method == "custom" || method == "vendor";
}

// Calls check(geometry, extension) for every method that computes its factors.
template <typename Check>
void for_every_computed_plan(Check check) {
  for (const Geometry& geometry : random_geometries()) {
    for (const MethodInfo& method : methods()) {
      if (takes_lists(method.name)) continue;
      for (double scale : scales()) {
        const Extension extension = request(method.name, scale);
        SCOPED_TRACE(describe(geometry, extension));
        check(geometry, extension);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(PlanProperties, ScaleOneIsTheIdentity) {
  for (const Geometry& geometry : random_geometries()) {
    const std::vector<double> trained = trained_theta(geometry);
    for (const MethodInfo& method : methods()) {
      if (takes_lists(method.name)) continue;
      const Extension extension = request(method.name, 1);
      SCOPED_TRACE(describe(geometry, extension));
      const Plan plan = make_plan(geometry, extension);
      EXPECT_EQ(plan.factor(), std::vector<double>(trained.size(), 1.0));
      EXPECT_EQ(plan.theta(), trained);
      EXPECT_EQ(plan.attention_scale(), 1.0);
    }
  }
}

TEST(PlanProperties, FactorsNeverDecrease) {
  for_every_computed_plan([](const Geometry& geometry, Extension extension) {
    if (extension.method == "dynamic-ntk") extension.length = 3 * geometry.train_length;
    const std::vector<double> factor = make_plan(geometry, extension).factor();
    EXPECT_GE(factor.front(), 1.0);
    for (std::size_t i = 1; i < factor.size(); ++i) {
      EXPECT_GE(factor[i], factor[i - 1]) << "at pair " << i;
    }
  });
}

TEST(PlanProperties, FactorsStayBetweenOneAndTheScale) {
  for_every_computed_plan([](const Geometry& geometry, const Extension& extension) {
    const double rounding = 4 * std::numeric_limits<double>::epsilon();
    const Plan plan = make_plan(geometry, extension);
    for (double factor : plan.factor()) {
      EXPECT_GE(factor, 1.0);
      EXPECT_LE(factor, extension.scale * (1 + rounding));
    }
  });
}

TEST(PlanProperties, LastFactorIsTheScale) {
  for (const Geometry& geometry : random_geometries()) {
    for (const char* method : {"pi", "ntk", "regressive", "uni", "pro", "power"}) {
      for (double scale : scales()) {
        Extension extension = request(method, scale);
        if (extension.method == "power") extension.parameters.power = 1.7;
        SCOPED_TRACE(describe(geometry, extension));
        // The last exponent is x/x = 1, and a power of one is exact.
        EXPECT_EQ(make_plan(geometry, extension).factor().back(), scale);
      }
    }
  }
}

TEST(PlanProperties, FastPairsAreUnchanged) {
  for (const Geometry& geometry : random_geometries()) {
    for (const char* method :
         {"yarn", "yarn-rotations", "llama3", "regressive", "uni", "pro", "power"}) {
      const Extension extension = request(method, 16);
      SCOPED_TRACE(describe(geometry, extension));
      const Plan plan = make_plan(geometry, extension);
      for (int i = 0; i <= plan.boundaries().low; ++i) {
        // Where low is clamped to 0, pair 0 may make fewer turns than beta_fast already.
        if (i == 0 && plan.boundaries().low == 0) continue;
        EXPECT_EQ(plan.factor()[i], 1.0) << "at pair " << i;
      }
    }
  }
}

TEST(PlanProperties, PowerZeroIsUniAndPowerOneIsProBitForBit) {
  for (const Geometry& geometry : random_geometries()) {
    for (double scale : scales()) {
      for (const auto& [exponent, name] : {std::pair{0.0, "uni"}, std::pair{1.0, "pro"}}) {
        Extension power = request("power", scale);
        power.parameters.power = exponent;
        SCOPED_TRACE(describe(geometry, power));
        const Plan a = make_plan(geometry, power);
        const Plan b = make_plan(geometry, request(name, scale));
        EXPECT_EQ(a.factor(), b.factor());
        EXPECT_EQ(a.theta(), b.theta());
        EXPECT_EQ(a.attention_scale(), b.attention_scale());
        EXPECT_EQ(a.boundaries(), b.boundaries());
        EXPECT_TRUE(a.same_numbers(b));
      }
    }
  }
}

// The middle of regressive is that of pro read backwards: the k-th lambda of one is the k-th from
// the end of the other.
TEST(PlanProperties, RegressiveIsProBackwards) {
  for (const Geometry& geometry : random_geometries()) {
    for (double scale : scales()) {
      SCOPED_TRACE(describe(geometry, request("regressive", scale)));
      const Plan falls = make_plan(geometry, request("regressive", scale));
      const Plan rises = make_plan(geometry, request("pro", scale));
      ASSERT_EQ(falls.boundaries(), rises.boundaries());
      const auto [low, high] = falls.boundaries();
      const std::vector<double> falling = falls.lambda();
      const std::vector<double> rising = rises.lambda();
      for (int i = low; i < high; ++i) {
        const int mirrored = low + high - 1 - i;
        EXPECT_NEAR(falling[std::size_t(i)] / rising[std::size_t(mirrored)], 1, 1e-13) << i;
      }
      if (high - low > 3 && scale > 1) {
        EXPECT_EQ(falls.shape(), Shape::regressive);
      }
    }
  }
}

TEST(PlanProperties, LambdasMultiplyUpToTheFactors) {
  for_every_computed_plan([](const Geometry& geometry, const Extension& extension) {
    const Plan plan = make_plan(geometry, extension);
    const std::vector<double> lambda = plan.lambda();
    ASSERT_EQ(lambda.size() + 1, plan.factor().size());
    double product = plan.factor().front();
    for (std::size_t i = 0; i < lambda.size(); ++i) {
      product *= lambda[i];
      EXPECT_NEAR(product / plan.factor()[i + 1], 1.0, 1e-13) << "at pair " << i + 1;
    }
  });
}

TEST(PlanProperties, AttentionScaleHasEachMethodsDefault) {
  Geometry geometry{.rotary_dim = 128, .base = 10000, .train_length = 4096};
  geometry.long_factor.assign(64, 2);
  geometry.long_length = 65536;
  const double tempered = 1 + 0.1 * std::log(16.0);
  const std::pair<const char*, double> expected[] = {
      {"none", 1},        {"pi", 1},
      {"ntk", 1},         {"dynamic-ntk", 1},
      {"yarn", tempered}, {"yarn-rotations", tempered},
      {"llama3", 1},      {"longrope", std::sqrt(1 + std::log(16.0) / std::log(4096.0))},
      {"vendor", 1},      {"uni", tempered},
      {"pro", tempered},  {"power", tempered},
      {"custom", 1},      {"regressive", tempered},
  };
  EXPECT_EQ(std::size(expected), methods().size());
  for (const auto& [method, scale] : expected) {
    SCOPED_TRACE(method);
    Extension extension = request(method, 16);
    if (method_row(method).info.takes_lists) extension.parameters.factors.assign(64, 2.0);
    EXPECT_DOUBLE_EQ(make_plan(geometry, extension).attention_scale(), scale);

    extension.parameters.attn_coef = 0.25;
    EXPECT_DOUBLE_EQ(make_plan(geometry, extension).attention_scale(), 1 + 0.25 * std::log(16.0));
    extension.parameters.attn_coef = 0;
    EXPECT_EQ(make_plan(geometry, extension).attention_scale(), 1.0);
  }
}

}  // namespace
}  // namespace mrrope
