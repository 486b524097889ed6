// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "core/methods.h"
#include "support/test.h"

namespace mrrope {
namespace {

// "VERB GEOMETRY METHOD name=value ...": names are those of a geometry, ctx, scale, length, or
// parameters, which are set as they are, without the ranges of the notation.
struct Asked {
  explicit Asked(const std::string& input) {
    std::istringstream words(input);
    std::string name, text;
    words >> verb >> name >> text;
    geometry = known(name);
    method = parse_method(text);
    while (words >> text) {
      const std::size_t at = text.find('=');
      set(text.substr(0, at), text.substr(at + 1));
    }
  }

  static Geometry known(const std::string& name) {
    if (name == "mid") return {.rotary_dim = 64, .base = 1e5, .train_length = 8192};
    if (name == "tiny") return {.rotary_dim = 128, .base = 1e4, .train_length = 1024};
    if (name == "llama2") return {.rotary_dim = 128, .base = 1e4, .train_length = 4096};
    Geometry two_lists{.rotary_dim = 8,  // as Phi-3 has: the second up to 32 windows
                       .base = 1e4,
                       .train_length = 4096,
                       .trained_factor = {1, 1, 1.5, 2},
                       .trained_attention_scale = 1.19,
                       .long_factor = {1, 2, 6, 16},
                       .long_length = 131072};
    return name == "phi" ? two_lists : Geometry{.rotary_dim = 8, .base = 1e4, .train_length = 4096};
  }

  void set(const std::string& name, const std::string& value) {
    std::vector<double> list;
    std::istringstream parts(value);
    for (std::string part; std::getline(parts, part, ',');) list.push_back(std::stod(part));
    const double number = list.empty() ? 0 : list[0];
    if (name == "rotary_dim") geometry.rotary_dim = int(number);
    if (name == "base") geometry.base = number;
    if (name == "train_length") geometry.train_length = std::int64_t(number);
    if (name == "trained_factor") geometry.trained_factor = list;
    if (name == "trained_attention_scale") geometry.trained_attention_scale = number;
    if (name == "long_factor") geometry.long_factor = list;
    if (name == "long_length") geometry.long_length = std::int64_t(number);
    if (name == "ctx") ctx = std::int64_t(number);
    if (name == "length") length = std::int64_t(number);
    if (name == "scale") scale = number;
    for (const ParameterInfo& p : parameters()) {
      if (p.name != name) continue;
      if (p.list) {
        method.parameters.*p.list = list;
      } else if (p.value) {
        method.parameters.*p.value = number;
      }
    }
  }

  std::string verb;
  Geometry geometry;
  MethodSpec method;
  std::int64_t ctx = 0, length = 0;
  std::optional<double> scale{};
};

std::string described(const Plan& plan) {
  const auto [low, high] = plan.boundaries();
  return cat(plan.extension().method, " at ", significant(plan.extension().scale, 8), ", pairs ",
             low, " to ", high, ", factors ", significant(plan.factor().front(), 8), " ",
             significant(plan.factor()[plan.factor().size() / 2], 8), " ",
             significant(plan.factor().back(), 8), ", attention ",
             significant(plan.attention_scale(), 8));
}

// What it is in all, then its first two rungs and its last.
std::string described(const Ladder& ladder) {
  std::string out =
      cat(ladder.rungs().size(), " rungs to ", ladder.longest(), ", step ", ladder.rung_step(),
          ", headroom ", ladder.headroom(), ", sharpen ", significant(ladder.sharpen(), 8));
  if (ladder.near()) out += cat(", near ", ladder.near()->length, " by ", ladder.near()->step);
  for (std::size_t i = 0; i < ladder.rungs().size(); ++i) {
    if (i > 1 && i + 1 < ladder.rungs().size()) continue;
    const Rung& rung = ladder.rungs()[i];
    out += cat("\n  ", rung.length, ": ", described(rung.plan));
    if (rung.border > 0) out += cat(", border ", rung.border, ", shift ", rung.shift);
    if (rung.sharpness != 1) out += cat(", sharpness ", significant(rung.sharpness, 8));
  }
  return out;
}

std::string answer(const std::string& input) {
  const Asked a(input);
  if (a.verb == "auto") {
    return to_string(resolve_auto(a.geometry, a.method, a.ctx, a.scale));
  }
  if (a.verb == "static") return static_method(a.geometry, *a.scale);
  if (a.verb == "plan") {
    return described(make_plan(a.geometry, {.method = a.method.name,
                                            .scale = a.scale.value_or(1),
                                            .length = a.length,
                                            .parameters = a.method.parameters}));
  }
  check_reach(a.method, a.ctx, a.scale);
  const Ladder ladder = make_ladder(a.geometry, a.method, a.ctx, a.scale);
  return a.verb == "rung" ? cat("rung ", ladder.rung_at(a.length)) : described(ladder);
}

TEST(MethodToLadder, IsMadeOrRefused) {
  test::expect_transcript("ladders", [](const std::string& input) {
    return test::or_error([&] { return answer(input); });
  });
}

Ladder made(const char* method, std::int64_t ctx) {
  return make_ladder(Asked::known("mid"), parse_method(method), ctx);
}

// The scale of the last rung, up to the rounding of its shift.
TEST(Auto, ScalesWhatIsFarIntoWhatTheNearPartLeaves) {
  for (const std::int64_t ctx : {32769, 100000, 131072}) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = 32768};
    const Ladder one = make_ladder(geometry, parse_method("auto"), ctx);
    const double room = (32768 - 2048) / 1.25;
    EXPECT_NEAR(one.rungs().back().plan.extension().scale, double(one.rungs().back().border) / room,
                1e-3);
  }
}

// One rule for every length: a text that grows never meets another plan than one that was long from
// the start, and --ctx changes its last rung alone.
TEST(Far, DefaultsAreOneRuleForEveryLength) {
  const Ladder shorter = made("auto", 40000);
  const Ladder longer = made("auto", 131072);
  for (std::int64_t n = 1; n <= 33000; n += 97) {
    const Rung& a = shorter.rungs()[shorter.rung_at(n)];
    const Rung& b = longer.rungs()[longer.rung_at(n)];
    ASSERT_EQ(std::tuple(a.border, a.shift, a.sharpness),
              std::tuple(b.border, b.shift, b.sharpness));
    ASSERT_EQ(a.plan.factor(), b.plan.factor());
  }
}

// What a note names can be typed: --method far:pi is the plan of auto at every length.
TEST(Auto, IsTheMethodThatItNames) {
  for (const std::int64_t window : {16, 512, 8192, 131072}) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = window};
    for (const double times : {0.5, 1.0, 1.001, 1.5, 2.0, 3.9, 4.0, 4.01, 5.0, 16.0, 1500.0}) {
      const std::int64_t ctx = std::llround(times * double(window));
      const MethodSpec asked = parse_method("auto");
      const std::string name = to_string(resolve_auto(geometry, asked, ctx));
      const auto digest = [&](const MethodSpec& method) {
        std::string text;
        for (const Rung& rung : make_ladder(geometry, method, ctx).rungs()) {
          text += cat(rung.length, " ", rung.border, " ", rung.shift);
          for (const double factor : rung.plan.factor()) text += cat(" ", factor);
        }
        return text;
      };
      EXPECT_EQ(digest(asked), digest(parse_method(name))) << name << " at " << ctx;
    }
  }
}

}  // namespace
}  // namespace mrrope
