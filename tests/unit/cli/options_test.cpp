// SPDX-License-Identifier: Apache-2.0
#include "cli/args/options.h"

#include "base/text.h"
#include "cli/args/presets.h"
#include "cli/chat/line_reader.h"
#include "support/test.h"

namespace mrrope::cli {
namespace {

using engine::ReadingSpeed;
using engine::seconds_to_read;

// The factors and the last theta of the scaling that a model of these facts recommends for --ctx.
std::string vendor(const Arguments& a) {
  const json facts = json::parse(a[0]);
  const auto list = [&](const char* key) { return facts.value(key, std::vector<double>()); };
  Model m;
  m.geometry = {.rotary_dim = 8, .base = 1e4, .train_length = 4096};
  m.geometry.trained_factor = list("short");
  m.geometry.long_factor = list("long");
  m.geometry.long_length = facts.value("reach", 0);
  m.scaling.type = facts.value("type", "");
  m.scaling.factor = facts.value("factor", 1.0);
  m.scaling.trained = facts.value("trained", m.scaling.type == "yarn");
  const auto row = vendor_plan(m, false, facts["ctx"]);
  if (!row) return "none";
  const auto nine_digits = [](double value) { return significant(value, 9); };
  return cat(row->name, ": ", joined(mapped(row->plan().factor(), nine_digits), " "), ", theta ",
             nine_digits(row->plan().theta().back()));
}

Model small_model() {
  Model m;
  m.heads = 4;
  m.key_length = m.value_length = 256;
  m.layers.resize(18);
  for (std::size_t i = 0; i < 15; ++i) m.layers[i].kind = LayerKind::windowed;
  m.weight_bytes = 235'000'000;
  return m;
}

// The first part warms up and does not count.
std::optional<ReadingSpeed> speed_of(const std::vector<double>& seconds) {
  engine::SpeedMeter meter;
  for (std::size_t k = 0; k < seconds.size(); ++k)
    meter.add(512 * std::int64_t(k), 512, seconds[k]);
  return meter.speed(small_model());
}

TEST(ReadingSpeed, IsExactForALinearCost) {
  // 1 ms and 50 ns for every token before: chunk k costs 512 (1e-3 + 50e-9 (k + 1/2) 512).
  const auto chunk = [](int k) { return 512 * (1e-3 + 50e-9 * (k + 0.5) * 512); };
  const auto speed = speed_of({9, chunk(1), chunk(2), chunk(3)});
  ASSERT_TRUE(speed);
  EXPECT_NEAR(speed->start, 1e-3, 1e-10);
  EXPECT_NEAR(speed->slope, 50e-9, 1e-14);
  EXPECT_NEAR(seconds_to_read(*speed, {1000, 1000}), 2 * (1.0 + 50e-9 * 5e5), 1e-6);
  EXPECT_FALSE(speed_of({1}));
  EXPECT_TRUE(contains(engine::time_text(std::nullopt, {1}), "inspect MODEL --time"));
}

TEST(ReadingSpeed, ADisturbedChunkDoesNotMakeHoursOfMinutes) {
  // The third chunk waited for another program. 16 texts of 128K take 35 minutes without attention.
  const auto speed = speed_of({9, 0.5, 5.0});
  const std::vector<std::int64_t> texts(16, 131072);
  EXPECT_LT(seconds_to_read(*speed, texts), 110 * 35 * 60);
  EXPECT_EQ(speed_of({9, 0.5, 0.4})->slope, 0) << "the second one waited";
}

TEST(ReadingSpeed, IsKeptForTheSameModelAndOptions) {
  const test::TempFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  engine::LocalOptions options;
  EXPECT_FALSE(kept_speed(small_model(), options));
  engine::keep_speed(small_model(), options, {1e-3, 2e-9});
  EXPECT_EQ(kept_speed(small_model(), options)->slope, 2e-9);
  options.threads = 3;
  EXPECT_FALSE(kept_speed(small_model(), options));
  // A file that is not ours is replaced, and one that cannot be written changes nothing.
  const auto file = folder.path() / "mrrope" / "speed.json";
  for (const char* content : {"", "[1, 2]", "{", "{\"x\": 3}"}) {
    std::ofstream(file) << content;
    EXPECT_FALSE(kept_speed(small_model(), options)) << content;
  }
  engine::keep_speed(small_model(), options, {1e-3, 0});
  EXPECT_EQ(kept_speed(small_model(), options)->start, 1e-3);
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  engine::keep_speed(small_model(), options, {1, 0});
  EXPECT_FALSE(kept_speed(small_model(), options));
  unsetenv("XDG_CACHE_HOME");
}

// ---- chat

std::string messages(const Arguments& lines) {
  std::size_t next = 0;
  const ReadLine read = [&](const std::string&) -> std::optional<std::string> {
    if (next == lines.size()) return std::nullopt;
    return lines[next++];
  };
  std::string out;
  while (const auto message = read_message(read, "> ")) out += "[" + *message + "]";
  return out;
}

// Flags of a preset have a value or none; typed ones take their place.
std::string expanded(const Arguments& arguments) {
  CLI::App app;
  app.add_subcommand("eval");
  const std::vector<Preset> known = {
      {"x/y", "", "", "eval --csv --ctx 4k --json --method yarn,pro --dry-run"}};
  std::string text;
  for (const std::string& word : with_preset(app, arguments, known)) text += word + ".";
  return text;
}

TEST(Arguments, AreReadOrRefused) {
  test::expect_functions("options", {{"length",
                                      [](auto& a) {
                                        const std::int64_t n = parse_length(a[0]);
                                        return cat(n, " ", length_text(n), " ",
                                                   parse_length(length_text(n)));
                                      }},
                                     {"messages", messages},
                                     {"preset", expanded},
                                     {"vendor", vendor}});
}

}  // namespace
}  // namespace mrrope::cli
