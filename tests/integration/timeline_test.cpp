// SPDX-License-Identifier: Apache-2.0
// The local engine: however a timeline reached its state, it must give the results of a fresh one.
// This is checked on small random models with weights in F32, since quantised ones turn the last
// bit of a float into hundredths of a nat; the rest runs on the bundled model.

#include "engine/llama/choose.h"
#include "engine/llama/local.h"
#include "engine/llama/local_model.h"
#include "models/gguf_edit.h"
#include "models/log_probability_reference.h"
#include "models/random_model.h"
#include "support/observe.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

// Nats. Other batch boundaries and other cells of the cache change the order of float sums.
constexpr double kNoise = 1e-4;
constexpr double kNoiseOfGelu = 2e-3;  // through the CPU's table of f16

LocalOptions small(std::int64_t context = 2048) { return exact_options(context, 128, 4, "auto"); }

// One model for all tests that do not change its options: loading is the slow part.
TimelineModel& tiny() {
  static const std::unique_ptr<TimelineModel> model =
      open_local(read_model(MRROPE_TINY_MODEL), small());
  return *model;
}

Ladder ladder(const char* method, double scale, std::int64_t longest = 2048) {
  return make_ladder(make_plan(tiny().facts().geometry, {.method = method, .scale = scale}),
                     longest);
}

std::vector<Token> text(std::size_t count) {
  std::string source;
  for (int i = 0; source.size() < 12 * count; ++i) {
    source += "Let $x_" + std::to_string(i) +
              "$ be a real number with $x^2 = " + std::to_string(i * i) +
              "$. Then the claim follows from the lemma above.\n";
  }
  std::vector<Token> tokens = tiny().tokenize(source, true, false);
  tokens.resize(count);
  return tokens;
}

ErrorKind kind_of(const std::function<void()>& act) {
  const Error error = test::error_of(act);
  EXPECT_STRNE(error.what(), "");
  return error.kind();
}

// One case per kind of memory: all tokens, sliding windows, and states that cannot go back.
enum class Memory { full, windows, recurrent };

struct Case {
  Memory memory;
  bool grows;  // a ladder with rungs every few dozen tokens, or a static plan
  bool unified = true;
};

void PrintTo(Case c, std::ostream* out) {
  *out << (c.memory == Memory::full      ? "Full"
           : c.memory == Memory::windows ? "Windows"
                                         : "Recurrent")
       << (c.grows ? "Growing" : "") << (c.unified ? "" : "Apart");
}

Metadata describe(Memory memory) {
  const char* name = memory == Memory::full      ? "qwen2"
                     : memory == Memory::windows ? "gemma2"
                                                 : "lfm2";
  Metadata m = small_metadata(name, {.layers = 4, .window = 512});
  if (memory == Memory::windows) m.set("attention.sliding_window", 32);
  if (memory == Memory::recurrent) {
    m.set("shortconv.l_cache", 3);
    m.set("attention.head_count_kv", std::vector<int>{0, 2, 0, 2});
  }
  return m;
}

class MemoryKinds : public testing::TestWithParam<Case> {
 protected:
  MemoryKinds() : file_(describe(GetParam().memory), 3), model_(open(64)) {}

  // With four timelines.
  std::unique_ptr<TimelineModel> open(int ubatch) const {
    LocalOptions options = small();
    options.ubatch = ubatch;
    options.flash_attention = "off";
    options.unified = GetParam().unified;
    if (!options.unified) options.context *= 2;
    Model facts = read_model(file_.path());
    // Another window than the file's, so that there is much beyond it.
    if (GetParam().grows) facts.geometry.train_length = 100;
    auto model = open_local(facts, options);
    model->use(GetParam().grows
                   ? make_ladder(facts.geometry, parse_method("elastic:pro"), 1024)
                   : make_ladder(make_plan(facts.geometry, {.method = "pro", .scale = 2}), 1024));
    return model;
  }

  std::span<const Token> tokens(std::size_t first, std::size_t count) const {
    return std::span(tokens_).subspan(first, count);
  }
  // Saves a timeline of the first tokens and returns its rung.
  std::size_t saved(std::size_t count, const std::filesystem::path& path) {
    const auto timeline = model_->timeline();
    timeline->append(tokens(0, count));
    timeline->save(path);
    return timeline->rung();
  }
  // A fresh timeline's scores of tokens that follow others.
  std::vector<double> fresh(std::span<const Token> before, std::span<const Token> after) {
    const auto timeline = model_->timeline();
    timeline->append(before);
    return timeline->append_scored(after);
  }

  static void expect_close(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      EXPECT_NEAR(a[i], b[i], GetParam().memory == Memory::windows ? kNoiseOfGelu : kNoise) << i;
    }
  }

  RandomModel file_;
  std::unique_ptr<TimelineModel> model_;
  const std::vector<Token> tokens_ = test::words(420);
};

TEST_P(MemoryKinds, ScoresAreTheNormalisedLogits) {
  const std::vector<double> scores = model_->timeline()->append_scored(tokens_);
  const auto observed = model_->timeline();
  const Rows rows = observe(*observed, tokens_);
  ASSERT_EQ(scores.size(), tokens_.size());
  EXPECT_TRUE(std::isnan(scores[0]));
  for (std::size_t i = 1; i < tokens_.size(); ++i) {
    const double expected =
        test::log_probability_reference(rows[i - 1], static_cast<std::size_t>(tokens_[i]));
    EXPECT_NEAR(scores[i], expected, 1e-6) << i;
    EXPECT_LE(scores[i], 0);
  }
}

TEST_P(MemoryKinds, ScoresAndLogitsComeFromOnePass) {
  const std::vector<double> scores = model_->timeline()->append_scored(tokens_);
  const Rows rows = observe(*model_->timeline(), tokens_);
  const std::vector<std::size_t> wanted{0, 63, 64, 200, 419};
  std::vector<std::size_t> seen;
  std::vector<double> both = model_->timeline()->append_scored(
      tokens_, wanted, [&](std::size_t index, std::span<const float> row) {
        seen.push_back(index);
        for (std::size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], rows[index][i], 1e-3);
      });
  EXPECT_EQ(seen, wanted);
  for (std::size_t i = 1; i < scores.size(); ++i) EXPECT_EQ(both[i], scores[i]) << i;
}

// The path for accelerators, run on the CPU.
TEST_P(MemoryKinds, ScoresComputedInPlaceAreTheSame) {
  auto& local = dynamic_cast<LocalModel&>(*model_);
  local.score_on(LocalModel::Scoring::host);
  const std::vector<double> here = model_->timeline()->append_scored(tokens_);
  local.score_on(LocalModel::Scoring::device);
  const std::vector<double> there = model_->timeline()->append_scored(tokens_);
  EXPECT_EQ(local.scoring(), LocalModel::Scoring::device);  // it did not fall back
  for (std::size_t i = 1; i < tokens_.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5) << i;
}

TEST_P(MemoryKinds, SameCallsGiveTheSameBits) {
  std::vector<double> first = model_->timeline()->append_scored(tokens_);
  std::vector<double> second = model_->timeline()->append_scored(tokens_);
  first[0] = second[0] = 0;
  EXPECT_EQ(first, second);
}

TEST_P(MemoryKinds, AppendingInPartsGivesTheSameScores) {
  const std::vector<double> whole = model_->timeline()->append_scored(tokens(0, 400));
  const auto parts = model_->timeline();
  std::vector<double> scores;
  for (const auto& [first, count] : {std::pair{0U, 1U}, {1U, 130U}, {131U, 64U}, {195U, 205U}}) {
    const auto part = parts->append_scored(tokens(first, count));
    scores.insert(scores.end(), part.begin(), part.end());
  }
  EXPECT_EQ(parts->length(), 400);
  expect_close(scores, whole);
}

TEST_P(MemoryKinds, ComputesFewerTokensAtOnceThanThereAreTimelines) {
  const std::vector<double> whole = model_->timeline()->append_scored(tokens(0, 120));
  model_ = open(3);
  expect_close(model_->timeline()->append_scored(tokens(0, 120)), whole);
}

TEST_P(MemoryKinds, ObserversMayOverwriteTheTokens) {
  const std::vector<std::size_t> last = {99};
  for (const bool scored : {false, true}) {
    std::vector<Token> mine(tokens_.begin(), tokens_.begin() + 100);
    const auto overwrite = [&](std::size_t, std::span<const float>) {
      mine.assign(mine.size(), 1);
    };
    const auto timeline = model_->timeline();
    if (scored) {
      timeline->append_scored(mine, last, overwrite);
    } else {
      timeline->append(mine, last, overwrite);
    }
    EXPECT_EQ(timeline->tokens(), std::vector<Token>(tokens_.begin(), tokens_.begin() + 100));
    expect_close(timeline->append_scored(tokens(100, 20)), fresh(tokens(0, 100), tokens(100, 20)));
  }
}

TEST_P(MemoryKinds, ObserversOfSeveralReadingsMayEndThem) {
  std::vector<std::unique_ptr<Timeline>> timelines;
  std::vector<std::vector<Token>> prompts;
  std::vector<Reading> readings;
  for (std::size_t i = 0; i < 3; ++i) {
    timelines.push_back(model_->timeline());
    prompts.emplace_back(tokens_.begin() + std::ptrdiff_t(i), tokens_.begin() + 20);
  }
  for (std::size_t i = 0; i < 3; ++i) readings.push_back({timelines[i].get(), prompts[i]});
  model_->read_together(readings, [&](std::size_t i, std::span<const float> row) {
    EXPECT_EQ(row.size(), 128U);
    EXPECT_EQ(timelines[i]->length(), 20 - std::int64_t(i));
    std::vector<Token>().swap(prompts[i]);
    if (i != 1) timelines[i].reset();
  });
  EXPECT_EQ(timelines[1]->tokens(), std::vector<Token>(tokens_.begin() + 1, tokens_.begin() + 20));
}

TEST_P(MemoryKinds, GoesOnAfterAnObserverThrew) {
  const auto timeline = model_->timeline();
  timeline->append(tokens(0, 120));
  const std::size_t third[] = {3};
  EXPECT_THROW(
      timeline->append(tokens(300, 10), third, [](auto...) { throw std::runtime_error("enough"); }),
      std::runtime_error);
  EXPECT_EQ(timeline->length(), 120);
  const auto fork = timeline->fork();
  expect_close(timeline->append_scored(tokens(120, 50)), fresh(tokens(0, 120), tokens(120, 50)));
  expect_close(fork->append_scored(tokens(150, 50)), fresh(tokens(0, 120), tokens(150, 50)));
}

TEST_P(MemoryKinds, SavedSequenceIsRestored) {
  const test::TempFolder folder;
  const std::size_t rung = saved(150, folder / "state");
  // A session goes on after the state.
  std::ofstream(folder / "state", std::ios::app | std::ios::binary) << "messages";
  const auto back = model_->restore(folder / "state", rung);
  EXPECT_EQ(back->tokens(), std::vector<Token>(tokens_.begin(), tokens_.begin() + 150));
  expect_close(back->append_scored(tokens(150, 50)), fresh(tokens(0, 150), tokens(150, 50)));
}

// Counts, positions and sequence numbers of a state are small numbers. Whatever they are changed
// to, the engine answers with an error or with a timeline of the same tokens.
TEST_P(MemoryKinds, ForgedStateDoesNotAbort) {
  const test::TempFolder folder;
  constexpr std::uint32_t kForged = 37;
  const std::size_t rung = saved(kForged, folder / "state");
  const std::string good = test::read_file(folder / "state");
  std::size_t tried = 0;
  for (std::size_t at = (3 + kForged) * 4; at + 4 <= good.size(); at += 4) {
    std::uint32_t value = 0;
    std::memcpy(&value, good.data() + at, sizeof value);
    const bool count = value == 1 || value == kForged || value == kForged - 1;
    if (!count && (at - 3 * 4 - kForged * 4) / 4 > 8) continue;
    for (const std::uint32_t forged : {0U, 2U, 36U, 1000U, 0xffffffffU}) {
      std::string bad = good;
      std::memcpy(bad.data() + at, &forged, sizeof forged);
      test::write_file(folder / "state", bad);
      ++tried;
      try {
        EXPECT_EQ(model_->restore(folder / "state", rung)->length(), kForged);
      } catch (const Error&) {
      }
    }
  }
  EXPECT_GE(tried, 20U);
}

// libllama never removes a cell at a negative position, and whatever is read there later attends to
// it.
TEST_P(MemoryKinds, ForgedPositionsAreRefusedAndLeaveNothing) {
  const test::TempFolder folder;
  constexpr std::uint32_t kForged = 37;
  const std::size_t rung = saved(kForged, folder / "state");
  const std::string good = test::read_file(folder / "state");
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, good.data() + at, sizeof value);
    return value;
  };
  // A cell is a position, the number of its sequences and the first of them.
  std::vector<std::size_t> cells;
  for (std::size_t at = (3 + kForged) * 4; at + 12 <= good.size(); at += 4) {
    if (word(at) < kForged && word(at + 4) == 1 && word(at + 8) == 0) cells.push_back(at);
  }
  ASSERT_GE(cells.size(), kForged);
  const auto expected = fresh(tokens(0, 50), tokens(50, 20));
  const auto try_forged = [&](std::size_t first, std::size_t last, std::uint32_t mask) {
    std::string bad = good;
    for (std::size_t i = first; i < last; ++i) {
      const std::uint32_t forged = word(cells[i]) ^ mask;
      std::memcpy(bad.data() + cells[i], &forged, sizeof forged);
    }
    test::write_file(folder / "state", bad);
    EXPECT_THROW(model_->restore(folder / "state", rung), Error) << first << " to " << last;
    EXPECT_EQ(fresh(tokens(0, 50), tokens(50, 20)), expected) << first << " to " << last;
  };
  for (const std::uint32_t mask : {0x80000000U, 0xffffffffU, 1U}) {
    try_forged(0, 1, mask);
    try_forged(cells.size() - 1, cells.size(), mask);
    try_forged(kForged / 2, kForged / 2 + 1, mask);
  }
  try_forged(0, cells.size(), 0x80000000U);
  test::write_file(folder / "state", "");
  EXPECT_ERROR(model_->restore(folder / "state", rung), failed, "it is empty");
  test::write_file(folder / "state", good);
  EXPECT_EQ(model_->restore(folder / "state", rung)->length(), kForged);
}

TEST_P(MemoryKinds, ForksAreIndependent) {
  const auto trunk = model_->timeline();
  trunk->append(tokens(0, 300));
  const auto fork = trunk->fork();
  EXPECT_EQ(fork->length(), 300);
  const auto by_trunk = trunk->append_scored(tokens(300, 60));
  const auto by_fork = fork->append_scored(tokens(360, 60));
  expect_close(by_trunk, fresh(tokens(0, 300), tokens(300, 60)));
  expect_close(by_fork, fresh(tokens(0, 300), tokens(360, 60)));
}

TEST_P(MemoryKinds, ForksOutliveTheirParents) {
  auto parent = model_->timeline();
  parent->append(tokens(0, 150));
  const auto child = parent->fork();
  parent.reset();
  expect_close(child->append_scored(tokens(150, 50)), fresh(tokens(0, 150), tokens(150, 50)));
}

TEST_P(MemoryKinds, TruncationRemovesTokens) {
  const auto timeline = model_->timeline();
  timeline->append(tokens(0, 300));
  timeline->truncate(200);
  EXPECT_EQ(timeline->length(), 200);
  // The first score needs logits that are gone.
  expect_close(timeline->append_scored(tokens(250, 50)), fresh(tokens(0, 200), tokens(250, 50)));
  timeline->truncate(245);  // within a window
  expect_close(timeline->append_scored(tokens(0, 20)), [&] {
    std::vector<Token> before(tokens_.begin(), tokens_.begin() + 200);
    before.insert(before.end(), tokens_.begin() + 250, tokens_.begin() + 295);
    return fresh(before, tokens(0, 20));
  }());
  timeline->truncate(0);
  EXPECT_EQ(timeline->length(), 0);
  expect_close(timeline->append_scored(tokens(0, 100)),
               model_->timeline()->append_scored(tokens(0, 100)));
  EXPECT_THROW(timeline->truncate(101), Error);
}

TEST_P(MemoryKinds, GreedyGenerationPicksTheTopToken) {
  const auto timeline = model_->timeline();
  timeline->append(tokens(0, 100));
  GenerateOptions options;
  options.max_tokens = 12;
  const Generation generation = timeline->generate(options);
  ASSERT_EQ(generation.tokens.size(), 12U);
  EXPECT_EQ(timeline->length(), 112);
  EXPECT_GT(generation.smallest_gap, 0);
  std::vector<Token> all(tokens_.begin(), tokens_.begin() + 100);
  all.insert(all.end(), generation.tokens.begin(), generation.tokens.end());
  const auto again = model_->timeline();
  const Rows rows = observe(*again, all);
  for (std::size_t i = 0; i < generation.tokens.size(); ++i) {
    if (generation.smallest_gap < kNoise) break;
    EXPECT_EQ(top_two(rows[99 + i]).best, static_cast<std::size_t>(generation.tokens[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryKinds,
                         testing::Values(Case{Memory::full, false}, Case{Memory::windows, false},
                                         Case{Memory::recurrent, false}, Case{Memory::full, true},
                                         Case{Memory::windows, true}, Case{Memory::recurrent, true},
                                         Case{Memory::full, true, false},
                                         Case{Memory::windows, true, false},
                                         Case{Memory::recurrent, true, false}),
                         testing::PrintToStringParamName());

TEST(Timeline, RecomputesWhatTheSlidingWindowDropped) {
  const RandomModel file(describe(Memory::windows), 3);
  LocalOptions options = small(1024);
  options.ubatch = 64;
  options.timelines = 1;  // so that windowed layers keep no more than their window
  const auto model = open_local(read_model(file.path()), options);
  const std::vector<Token> tokens = test::words(700);
  const auto kept = std::span<const Token>(tokens).first(100);
  const auto rest = std::span<const Token>(tokens).last(40);
  auto timeline = model->timeline();
  timeline->append(tokens);
  timeline->truncate(100);
  EXPECT_EQ(timeline->length(), 100);
  const auto scores = timeline->append_scored(rest);
  timeline.reset();
  timeline = model->timeline();
  timeline->append(kept);
  const auto expected = timeline->append_scored(rest);
  for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_NEAR(scores[i], expected[i], kNoiseOfGelu);
}

TEST(Timeline, ReportsNanLogits) {
  const RandomModel file(describe(Memory::full), 3, "output_norm.weight");
  const auto model = open_local(read_model(file.path()), small(256));
  const std::vector<Token> tokens{1, 2, 3};
  EXPECT_EQ(kind_of([&] { model->timeline()->append(tokens); }), ErrorKind::failed);
  EXPECT_EQ(kind_of([&] { model->timeline()->append_scored(tokens); }), ErrorKind::failed);
  EXPECT_EQ(kind_of([&] { observe(*model->timeline(), tokens); }), ErrorKind::failed);
}

TEST(Timeline, FillsTheContextAndNoMore) {
  const auto model = open_local(read_model(MRROPE_TINY_MODEL), small(512));
  const std::vector<Token> tokens = text(513);
  const auto timeline = model->timeline();
  EXPECT_EQ(kind_of([&] { timeline->append(tokens); }), ErrorKind::usage);
  EXPECT_EQ(timeline->length(), 0);
  timeline->append(std::span(tokens).first(512));
  EXPECT_EQ(timeline->length(), 512);
  EXPECT_EQ(kind_of([&] { timeline->append(std::span(tokens).first(1)); }), ErrorKind::usage);
  // Another timeline finds no room, reports it, and does not change the first.
  const auto other = model->timeline();
  EXPECT_EQ(kind_of([&] { other->append(std::span(tokens).first(10)); }), ErrorKind::usage);
  EXPECT_EQ(other->length(), 0);
  timeline->truncate(500);
  other->append(std::span(tokens).first(10));
  EXPECT_EQ(other->length(), 10);
}

TEST(Timeline, GeneratesAfterAStepThatDidNotFit) {
  const auto model = open_local(read_model(MRROPE_TINY_MODEL), small(512));
  const std::vector<Token> tokens = text(500);
  GenerateOptions steps;
  steps.max_tokens = 5;
  const auto timeline = model->timeline();
  auto other = model->timeline();
  timeline->append(tokens);
  other->append(std::span(tokens).first(10));
  EXPECT_EQ(kind_of([&] { timeline->generate(steps); }), ErrorKind::usage);
  EXPECT_EQ(timeline->length(), 502);
  other.reset();
  timeline->generate(steps);
  const std::vector<Token> grown = timeline->tokens();
  timeline->truncate(500);
  steps.max_tokens = 7;
  timeline->generate(steps);
  EXPECT_EQ(timeline->tokens(), grown);
}

TEST(Timeline, StreamsWhatItGenerates) {
  tiny().use(ladder("none", 1));
  const auto timeline = tiny().timeline();
  timeline->append(text(100));
  GenerateOptions options;
  options.max_tokens = 12;
  std::string streamed;
  options.on_text = [&](std::string_view piece) {
    streamed += piece;
    return true;
  };
  const Generation generation = timeline->generate(options);
  EXPECT_EQ(generation.tokens.size(), 12U);
  EXPECT_EQ(generation.finish, "length");
  EXPECT_EQ(streamed, generation.text);
  EXPECT_EQ(streamed, tiny().detokenize(generation.tokens));
}

TEST(Timeline, GenerationStops) {
  tiny().use(ladder("none", 1));
  const auto timeline = tiny().timeline();
  timeline->append(text(100));
  GenerateOptions options;
  options.max_tokens = 24;
  const auto fork = timeline->fork();
  const std::string free = fork->generate(options).text;
  ASSERT_GT(free.size(), 8U);
  options.stop = {free.substr(4, 3)};
  const std::size_t first = free.find(options.stop[0]);
  const auto again = timeline->fork();
  const Generation stopped = again->generate(options);
  EXPECT_EQ(stopped.finish, "stop");
  EXPECT_EQ(stopped.text, free.substr(0, first));

  options.stop.clear();
  int pieces = 0;
  options.on_text = [&](std::string_view) { return ++pieces < 3; };
  EXPECT_EQ(timeline->generate(options).finish, "cancelled");
  EXPECT_EQ(pieces, 3);
}

TEST(Timeline, AnEmptyAnswerHasAGapToo) {
  tiny().use(ladder("none", 1));
  const std::vector<Token> tokens = text(100);
  const auto timeline = tiny().timeline();
  timeline->append(tokens);
  GenerateOptions options;
  options.max_tokens = 1;
  const Generation one = timeline->generate(options);
  ASSERT_GT(one.smallest_gap, 0);

  // The same model, whose first token now ends the text.
  const test::TempFolder folder;
  const auto path = folder.path() / "ends.gguf";
  test::edit_gguf(MRROPE_TINY_MODEL, path, [](const std::string&) { return false; }, {},
                  {integer_key("tokenizer.ggml.eot_token_id", GgufType::u32,
                               static_cast<std::uint64_t>(one.tokens.at(0)))});
  const auto model = open_local(read_model(path), small());
  const auto ends = model->timeline();
  ends->append(tokens);
  const Generation none = ends->generate(options);
  EXPECT_TRUE(none.tokens.empty());
  EXPECT_EQ(none.finish, "stop");
  EXPECT_EQ(none.smallest_gap, one.smallest_gap);
}

TEST(Timeline, SameSeedGivesTheSameSamples) {
  tiny().use(ladder("none", 1));
  const auto timeline = tiny().timeline();
  timeline->append(text(60));
  GenerateOptions options;
  options.max_tokens = 16;
  options.sampling.temperature = 1.5;
  options.sampling.seed = 11;
  const auto sample = [&] { return timeline->fork()->generate(options).tokens; };
  const auto first = sample();
  EXPECT_EQ(sample(), first);
  options.sampling.seed = 12;
  EXPECT_NE(sample(), first);
}

TEST(LocalModel, KnowsItsVocabulary) {
  const std::string sentence = "Let $\\alpha$ be given; na\xC3\xAFve. 123";
  const std::vector<Token> tokens = tiny().tokenize(sentence, false, false);
  EXPECT_EQ(tiny().detokenize(tokens), sentence);
  ASSERT_TRUE(tiny().bos());
  EXPECT_EQ(tiny().tokenize(sentence, true, false).front(), *tiny().bos());
  EXPECT_EQ(tiny().vocabulary(), 8192);
  EXPECT_EQ(tiny().tokenize("<s>", false, true), std::vector<Token>{0});
  EXPECT_NE(tiny().tokenize("<s>", false, false), std::vector<Token>{0});
  EXPECT_EQ(kind_of([] { tiny().apply_chat_template({}); }), ErrorKind::unsupported);
  EXPECT_EQ(tiny().context_length(), 2048);
  EXPECT_TRUE(contains(tiny().description(), "llama.cpp 0.5.0"));
}

TEST(LocalModel, RefusesWhatItCannotDo) {
  tiny().use(ladder("pro", 2));
  const auto timeline = tiny().timeline();
  EXPECT_EQ(kind_of([] { tiny().use(ladder("pro", 4)); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([&] { timeline->append(std::vector<Token>{8192}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([&] { timeline->append(std::vector<Token>{-1}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([&] { timeline->generate({}); }), ErrorKind::usage);
  EXPECT_EQ(kind_of([&] {
              const std::vector<std::size_t> wanted{3};
              timeline->append(std::vector<Token>{1, 2}, wanted, {});
            }),
            ErrorKind::usage);
  const auto second = tiny().timeline();
  const auto third = tiny().timeline();
  const auto fourth = tiny().timeline();
  EXPECT_EQ(kind_of([] { tiny().timeline(); }), ErrorKind::usage);
}

TEST(LocalModel, RefusesAPlanOfAnotherModel) {
  Geometry other = tiny().facts().geometry;
  other.base = 500000;
  EXPECT_EQ(kind_of([&] { tiny().use(make_ladder(make_plan(other, {}), 1024)); }),
            ErrorKind::usage);
}

}  // namespace
}  // namespace mrrope::engine
