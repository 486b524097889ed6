// SPDX-License-Identifier: Apache-2.0
// A ladder in use: turned keys must match the reference, and inside its window the model must be
// the untouched one.

#include "engine/llama/loader.h"
#include "engine/llama/local.h"
#include "engine/llama/local_model.h"
#include "models/cached_keys.h"
#include "models/random_model.h"
#include "mrrope/rotary.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

// On the CPU, unless MRROPE_TEST_GPU is set.
int gpu_layers() { return std::getenv("MRROPE_TEST_GPU") != nullptr ? -1 : 0; }

// Logits computed in another order differ by `on_cpu`; on a GPU by what products in f16 leave.
double noise(double on_cpu) { return gpu_layers() == 0 ? on_cpu : 0.03; }

LocalOptions small(const std::string& key_type, bool unified = true) {
  // It rounds queries to f16.
  const char* flash = ggml_is_quantized(cache_type(key_type, "-ctk")) ? "on" : "off";
  LocalOptions options = exact_options(1024, 128, 3, flash);
  options.gpu_layers = gpu_layers();
  options.type_k = key_type;
  options.unified = unified;
  return options;
}

Ladder growing(const Geometry& geometry, const char* method, std::int64_t longest,
               double step = 1.19, double headroom = 1) {
  MethodSpec spec{method, Growth::elastic};
  spec.parameters.rung_step = step;
  spec.parameters.headroom = headroom;
  return make_ladder(geometry, spec, longest);
}

Metadata small_model(const char* architecture, int head = 64, int rotated = 64) {
  return small_metadata(architecture, {.head = head, .rotated = rotated});
}

struct KeyCase {
  const char* type;
  const char* architecture;
  int rotated;
  double bound;  // of one turn, as a fraction of the largest element
};

void PrintTo(const KeyCase& c, std::ostream* out) {
  *out << c.type << "_" << c.architecture << "_" << c.rotated;
}

class Turning : public testing::TestWithParam<KeyCase> {};

// Where the bounds come from. A turn rounds each element to the key's type: f16 to 2^-11 of itself,
// bf16 to 2^-8, q8_0 to 1/254 of the largest of its block and that through a mixing matrix. Where a
// turn is smaller than that it is lost, so that many of them add up, not like a random walk. In f32
// the angle m * delta decides, a float off by 2^-23 or so of itself, m below 100 here.
TEST_P(Turning, MatchesTheReference) {
  const KeyCase& c = GetParam();
  const RandomModel file(small_model(c.architecture, 64, c.rotated), 5);
  const auto model = open_local(read_model(file.path()), small(c.type));
  auto& local = dynamic_cast<LocalModel&>(*model);
  const Ladder ladder = growing(model->facts().geometry, "pro", 1024, 1.05);
  ASSERT_GT(ladder.rungs().size(), 41U);
  model->use(ladder);
  const auto timeline = model->timeline();
  timeline->append(words(100));
  EXPECT_EQ(timeline->rung(), 0U);
  const Keys before = read_keys(local, 100);
  ASSERT_EQ(before.size(), 2U);

  std::vector<std::int32_t> cells(100);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = std::int32_t(i);
  local.turn(cells, 0, 40);
  const Plan& plain = ladder.rungs()[0].plan;
  const double once =
      turn_error(local, before, read_keys(local, 100), plain, ladder.rungs()[40].plan);
  EXPECT_LE(once, c.bound);
  local.turn(cells, 40, 0);
  for (std::size_t r = 0; r < 40; ++r) local.turn(cells, r, r + 1);
  const double up =
      turn_error(local, before, read_keys(local, 100), plain, ladder.rungs()[40].plan);
  EXPECT_LE(up, 40 * c.bound);
  for (std::size_t r = 40; r > 0; --r) local.turn(cells, r, r - 1);
  const double down = turn_error(local, before, read_keys(local, 100), plain, plain);
  EXPECT_LE(down, 80 * c.bound);
  std::printf("  %s %s %d: one turn %.2e, 40 rungs up %.2e, and down again %.2e\n", c.type,
              c.architecture, c.rotated, once, up, down);
  // The test can fail: the plans differ by far more than the bounds.
  EXPECT_GT(turn_error(local, before, before, plain, ladder.rungs()[40].plan), 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    KeyTypes, Turning,
    testing::Values(KeyCase{"f32", "llama", 64, 4e-6}, KeyCase{"f32", "qwen2", 64, 4e-6},
                    KeyCase{"f32", "stablelm", 16, 4e-6}, KeyCase{"f16", "llama", 64, 4.9e-4},
                    KeyCase{"f16", "qwen2", 64, 4.9e-4}, KeyCase{"f16", "stablelm", 16, 4.9e-4},
                    KeyCase{"bf16", "llama", 64, 3.9e-3}, KeyCase{"bf16", "qwen2", 64, 3.9e-3},
                    KeyCase{"q8_0", "llama", 64, 1e-2}, KeyCase{"q8_0", "qwen2", 64, 1e-2},
                    KeyCase{"q8_0", "stablelm", 16, 1e-2}),
    testing::PrintToStringParamName());

// A turn touches only the cells of its own timeline.
TEST(Elastic, DoesNotChangeOtherTimelines) {
  const RandomModel file(small_model("llama"), 5);
  for (const bool unified : {true, false}) {
    const auto model = open_local(read_model(file.path()), small("f16", unified));
    auto& local = dynamic_cast<LocalModel&>(*model);
    model->use(growing(model->facts().geometry, "pro", 1024));
    const auto still = model->timeline();
    still->append(words(90));
    const Keys before = read_keys(local, 90);
    const auto mover = model->timeline();
    mover->append(words(400));
    EXPECT_GT(mover->rung(), 5U);
    EXPECT_EQ(still->rung(), 0U);
    EXPECT_EQ(read_keys(local, 90), before);
  }
}

// With caches apart a sequence is restored beside others, on its rung and in any of their places.
TEST(Elastic, RestoresBesideOtherTimelines) {
  const RandomModel file(small_model("llama"), 5);
  const auto model = open_local(read_model(file.path()), small("f32", false));
  auto& local = dynamic_cast<LocalModel&>(*model);
  model->use(growing(model->facts().geometry, "pro", 500));
  const test::TempFolder folder;
  const std::vector<Token> tokens = words(400);
  const auto still = model->timeline();
  still->append(std::span(tokens).first(90));
  const Keys before = read_keys(local, 90);
  auto first = model->timeline();
  first->append(std::span(tokens).first(150));
  first->save(folder / "sequence");
  const auto third = model->timeline();
  first.reset();
  const auto back = model->restore(folder / "sequence", 3);
  const auto expected = [&] {
    third->append(std::span(tokens).first(150));
    return third->append_scored(std::span(tokens).subspan(150));
  }();
  const auto scores = back->append_scored(std::span(tokens).subspan(150));
  EXPECT_LE(largest_difference(scores, expected), noise(1e-4));
  EXPECT_EQ(read_keys(local, 90), before);
  EXPECT_THROW(back->append(words(200)), Error);  // more than its share
}

// Several timelines in one computation read what each would read alone, and one that climbs from
// batch to batch turns its own keys only.
void read_together(bool unified) {
  const RandomModel file(small_model("llama"), 5);
  const auto model = open_local(read_model(file.path()), small("f32", unified));
  const Ladder ladder = growing(model->facts().geometry, "pro", 320);
  model->use(ladder);
  const std::vector<Token> tokens = words(320);
  const Rows alone = observe(*model->timeline(), tokens);

  std::vector<std::unique_ptr<Timeline>> timelines;
  for (int i = 0; i < 3; ++i) timelines.push_back(model->timeline());
  timelines[1]->append(std::span(tokens).first(20));
  timelines[2]->append(std::span(tokens).first(61));  // the window is 64
  std::size_t batches = 0;
  double worst = 0;
  while (timelines[0]->length() < 200) {
    // The first reads chunks, the others one token each; those on the first one's rung are read
    // with it.
    const auto next = [&](const Timeline& t) { return ladder.rung_at(t.length() + 1); };
    std::vector<Reading> readings;
    std::vector<std::size_t> last;  // the token after which logits are seen
    for (const auto& t : timelines) {
      if (next(*t) != next(*timelines[0]) || t->length() >= 300) continue;
      const auto room = std::size_t(ladder.rungs()[next(*t)].length - t->length());
      const std::size_t count = readings.empty() ? std::min<std::size_t>(7, room) : 1;
      readings.push_back({t.get(), std::span(tokens).subspan(std::size_t(t->length()), count)});
      last.push_back(std::size_t(t->length()) + count - 1);
    }
    batches += readings.size() > 1;
    model->read_together(readings, [&](std::size_t i, std::span<const float> row) {
      worst = std::max(worst, largest_difference(alone[last[i]], row));
    });
  }
  EXPECT_GT(batches, 5U);
  EXPECT_GT(timelines[0]->rung(), 3U);
  EXPECT_LT(worst, noise(1e-4));
  // Tokens that do not end on the rung they begin on are refused, and nothing is read.
  const std::vector<Reading> across = {
      {timelines[1].get(), std::span(tokens).subspan(std::size_t(timelines[1]->length()), 1)},
      {timelines[0].get(), std::span(tokens).subspan(std::size_t(timelines[0]->length()), 100)}};
  const std::int64_t before = timelines[1]->length();
  EXPECT_THROW(model->read_together(across, [](std::size_t, std::span<const float>) {}), Error);
  EXPECT_EQ(timelines[1]->length(), before);
}

TEST(Elastic, TimelinesCanBeReadTogether) { read_together(true); }
TEST(Elastic, TimelinesWithCachesApartCanBeReadTogether) { read_together(false); }

// The promise: inside the window the model is untouched, to the last bit.
TEST(Elastic, MatchesTheUntouchedModelInsideTheWindow) {
  LocalOptions options = small("f16");
  options.context = 2048;
  options.type_v = "f16";
  options.flash_attention = "auto";
  const auto model = open_local(read_model(MRROPE_TINY_MODEL), options);
  const Geometry& geometry = model->facts().geometry;
  const std::vector<Token> tokens = words(1200, model->vocabulary());
  model->use(make_ladder(make_plan(geometry, Extension{}), 2048));
  const Rows plain = observe(*model->timeline(), std::span(tokens).first(1024));
  for (const char* method : {"yarn", "pro", "power"}) {
    model->use(growing(geometry, method, 2048, 1.19, 1.25));
    const auto timeline = model->timeline();
    const Rows rows = observe(*timeline, tokens);
    ASSERT_EQ(timeline->rung(), 1U);
    for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(rows[i], plain[i]) << i;
  }
}

// In a model of one layer keys and values do not depend on the plan, so that after any climb the
// last token must see what it sees under the static plan of its own length.
TEST(Elastic, ClimbsToTheStaticPlanOfEachLength) {
  for (const char* architecture : {"llama", "qwen2", "stablelm"}) {
    Metadata metadata =
        small_model(architecture, 64, std::string(architecture) == "stablelm" ? 32 : 64);
    metadata.set("block_count", 1);
    const RandomModel file(metadata, 7);
    const auto model = open_local(read_model(file.path()), small("f32"));
    const Geometry& geometry = model->facts().geometry;
    const std::vector<Token> tokens = words(700);
    const Ladder ladder = growing(geometry, "pro", 1000, 1.3, 1.1);
    model->use(ladder);
    auto timeline = model->timeline();
    const Rows climbed = observe(*timeline, tokens);
    const std::size_t last_rung = timeline->rung();
    timeline.reset();
    double apart = 0;
    for (const std::size_t rung : {std::size_t(1), std::size_t(4), last_rung}) {
      const auto last = std::min<std::size_t>(std::size_t(ladder.rungs()[rung].length), 700);
      model->use(make_ladder(ladder.rungs()[rung].plan, 1000));
      const Rows rows = observe(*model->timeline(), std::span(tokens).first(last));
      EXPECT_LE(largest_difference(climbed[last - 1], rows[last - 1]), noise(2e-4)) << architecture;
      apart = std::max(apart, largest_difference(climbed[60], rows[60]));
    }
    EXPECT_GT(apart, 1e-2) << "plans must differ for this to mean anything";
  }
}

TEST(Elastic, ForksOfAnEmptyTimelineClimbApart) {
  const RandomModel file(small_model("llama"), 5);
  const auto model = open_local(read_model(file.path()), small("f32"));
  model->use(growing(model->facts().geometry, "pro", 500));
  const std::vector<Token> tokens = words(500);
  const auto first = model->timeline();
  const auto second = first->fork();
  first->append(std::span(tokens).first(90));
  const std::size_t rung = first->rung();
  second->append(std::span(tokens).first(400));
  EXPECT_EQ(first->rung(), rung);
  EXPECT_GT(second->rung(), rung);
}

// The cache has no room for a second copy of the past.
TEST(Elastic, AForkThatFindsNoRoomKeepsItsPast) {
  const RandomModel file(small_model("llama"), 5);
  const auto model = open_local(read_model(file.path()), small("f32"));
  const Ladder ladder = growing(model->facts().geometry, "pro", 1000);
  model->use(ladder);
  const std::vector<Token> tokens = words(1000);
  const Rows whole = observe(*model->timeline(), tokens);
  const auto border = std::size_t(ladder.rungs()[ladder.rung_at(700)].length);
  ASSERT_GT(2 * border, 1024U);
  auto timeline = model->timeline();
  timeline->append(std::span(tokens).first(border));
  const auto fork = timeline->fork();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(fork->append(std::span(tokens).subspan(border, 1)), Error);
    EXPECT_EQ(fork->length(), std::int64_t(border));
    EXPECT_EQ(fork->tokens(), std::vector(tokens.begin(), tokens.begin() + border));
  }
  EXPECT_EQ(timeline->length(), std::int64_t(border));
  EXPECT_THROW(fork->save("never"), Error);
  timeline.reset();
  const Rows rest = observe(*fork, std::span(tokens).subspan(border));
  EXPECT_LE(largest_difference(rest, whole, border), noise(5e-4));
}

// Boundaries: exactly at one, one past it, back below it, and generation across it.
TEST(Elastic, TurnsExactlyWhereARungEnds) {
  const RandomModel file(small_model("qwen2"), 5);
  const auto model = open_local(read_model(file.path()), small("f32"));
  const Ladder ladder = growing(model->facts().geometry, "pro", 500);
  model->use(ladder);
  const std::vector<Token> tokens = words(500);
  const auto border = std::size_t(ladder.rungs()[2].length);
  const auto timeline = model->timeline();
  timeline->append(std::span(tokens).first(border));
  EXPECT_EQ(timeline->rung(), 2U);
  const auto fork = timeline->fork();
  EXPECT_EQ(fork->rung(), 2U);
  fork->append(std::span(tokens).subspan(border, 1));
  EXPECT_EQ(fork->rung(), 3U);
  EXPECT_EQ(timeline->rung(), 2U);  // it no longer shares its past
  timeline->truncate(50);
  timeline->append(std::span(tokens).subspan(50, 1));
  EXPECT_EQ(timeline->rung(), 0U);
  GenerateOptions options;
  options.max_tokens = 120;
  timeline->generate(options);
  EXPECT_EQ(timeline->rung(), ladder.rung_at(timeline->length()));
  EXPECT_GT(timeline->rung(), 1U);
  // The ladder ends before the context does.
  timeline->truncate(0);
  timeline->append(tokens);
  EXPECT_EQ(timeline->rung(), ladder.rungs().size() - 1);
  EXPECT_THROW(timeline->append(std::span(tokens).first(1)), Error);
}

// A restored sequence continues as if it had never stopped, across the next rung too.
TEST(Elastic, SavedSequenceKeepsItsRung) {
  const RandomModel file(small_model("llama"), 5);
  const test::TempFolder folder;
  const std::vector<Token> tokens = words(400);
  const auto path = folder.path() / "sequence";
  std::vector<double> expected;
  std::size_t rung = 0;
  {
    const auto model = open_local(read_model(file.path()), small("f32"));
    model->use(growing(model->facts().geometry, "pro", 500));
    const auto timeline = model->timeline();
    timeline->append(std::span(tokens).first(150));
    timeline->save(path);
    rung = timeline->rung();
    EXPECT_EQ(timeline->tokens().size(), 150U);
    EXPECT_THROW(model->restore(path, rung), Error);  // another timeline is alive
    expected = timeline->append_scored(std::span(tokens).subspan(150));
  }
  ASSERT_EQ(rung, 3U);
  const auto model = open_local(read_model(file.path()), small("f32"));
  model->use(growing(model->facts().geometry, "pro", 500));
  EXPECT_THROW(model->restore(path, 1000), Error);
  EXPECT_THROW(model->restore(folder.path() / "missing", rung), Error);
  const auto timeline = model->restore(path, rung);
  EXPECT_EQ(timeline->length(), 150);
  EXPECT_EQ(timeline->rung(), rung);
  const auto scores = timeline->append_scored(std::span(tokens).subspan(150));
  EXPECT_LE(largest_difference(scores, expected), noise(1e-4));
}

TEST(Elastic, LadderMayBeLongerThanTheContext) {
  const RandomModel file(small_model("llama"), 5);
  const auto model = open_local(read_model(file.path()), small("f16"));
  model->use(growing(model->facts().geometry, "pro", 100000));
  const auto timeline = model->timeline();
  timeline->append(words(1024));
  EXPECT_THROW(timeline->append(words(1)), Error);
}

}  // namespace
}  // namespace mrrope::engine
