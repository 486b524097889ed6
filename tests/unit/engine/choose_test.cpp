// SPDX-License-Identifier: Apache-2.0
// Penalties, biases and grammars, on the bundled model and on logits made for them.
#include "engine/llama/choose.h"

#include "engine/llama/local.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Falling from token to token: greedy takes 0.
std::vector<float> falling(int count) {
  std::vector<float> logits;
  for (int i = 0; i < count; ++i) logits.push_back(5.0F - 0.5F * static_cast<float>(i));
  return logits;
}

struct Chosen {
  explicit Chosen(const Sampling& sampling) : chooser(sampling, model) {}
  Token next() { return chooser.choose(falling(model.vocabulary()), 0).token; }
  std::vector<Token> next(int count) {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(next());
    return tokens;
  }
  ScriptedModel model{{}};
  Chooser chooser;
};

TEST(Chooser, IsGreedyWithoutAnythingElse) {
  Chosen c{Sampling{}};
  EXPECT_TRUE(c.chooser.greedy());
  EXPECT_EQ(c.next(3), (std::vector<Token>{0, 0, 0}));
}

TEST(Chooser, IsGreedyAtTemperaturesThatOverflow) {
  for (const double temperature : {1e-31, 1e-38, 1e-40, 1e-300}) {
    Sampling s;
    s.temperature = temperature;
    EXPECT_EQ(Chosen{s}.next(3), (std::vector<Token>{0, 0, 0})) << temperature;
  }
}

TEST(Chooser, BiasMovesAndBans) {
  Sampling s;
  s.bias = {{3, 50.0F}};
  EXPECT_EQ(Chosen(s).next(), 3);
  s.bias = {{0, kNever}, {1, kNever}};
  EXPECT_EQ(Chosen(s).next(), 2);
  s.temperature = 1;
  s.top_k = 1;
  EXPECT_EQ(Chosen(s).next(), 2);
}

TEST(Chooser, PenaltiesCountTheLastTokens) {
  Sampling s;
  s.presence_penalty = 0.6;
  // Each of the first two is taken once, then both are penalized alike.
  EXPECT_EQ(Chosen(s).next(3), (std::vector<Token>{0, 1, 0}));
  s.presence_penalty = 0;
  s.frequency_penalty = 0.6;
  EXPECT_EQ(Chosen(s).next(4), (std::vector<Token>{0, 1, 0, 2}));
  s.frequency_penalty = 0;
  s.repeat_penalty = 2;
  EXPECT_EQ(Chosen(s).next(2), (std::vector<Token>{0, 1}));
  s.repeat_last_n = 1;  // the token before the last is forgotten
  EXPECT_EQ(Chosen(s).next(3), (std::vector<Token>{0, 1, 0}));
  s.repeat_last_n = 0;
  EXPECT_EQ(Chosen(s).next(2), (std::vector<Token>{0, 0}));
  s.repeat_last_n = 2;  // tokens of the prompt count
  Chosen c(s);
  c.chooser.read(std::vector<Token>{9, 0, 1});
  EXPECT_EQ(c.next(), 2);
}

TEST(Chooser, TypicalSamplingNarrowsTheChoice) {
  Sampling s;
  s.temperature = 1;
  s.top_k = 0;
  s.top_p = 1;
  s.min_p = 0;
  const auto kinds = [&](double p) {
    s.typical_p = p;
    Chosen c(s);
    std::set<Token> seen;
    for (int i = 0; i < 200; ++i) seen.insert(c.next());
    return seen.size();
  };
  EXPECT_LT(kinds(0.1), kinds(1));
}

TEST(Chooser, NamesTheCaseThatNoTokenIsLeft) {
  Sampling s;
  for (Token t = 0; t < 258; ++t) s.bias.emplace_back(t, kNever);
  EXPECT_ERROR(Chosen(s).next(), usage, "no token is left");
  s.temperature = 1;
  EXPECT_ERROR(Chosen(s).next(), usage, "no token is left");
}

TEST(Chooser, EndOfTextCanBeIgnored) {
  Sampling s;
  s.bias = {{ScriptedModel::kEnd, 1000.0F}};
  EXPECT_EQ(Chosen(s).next(), ScriptedModel::kEnd);
  s.ignore_end = true;
  EXPECT_EQ(Chosen(s).next(), 0);
}

TEST(Chooser, GrammarsNeedLibllama) {
  Sampling s;
  s.grammar.text = "root ::= \"a\"";
  EXPECT_ERROR(Chosen{s}, unsupported, "grammar");
}

class GrammarChooser : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    LocalOptions options;
    options.threads = 2;
    options.context = 512;
    model = open_local(read_model(MRROPE_TINY_MODEL), options);
  }
  static void TearDownTestSuite() { model.reset(); }

  static Generation write(const Grammar& grammar, double temperature, std::uint32_t seed) {
    const auto timeline = model->timeline();
    timeline->append(model->tokenize("The miller opened the gate", true, false));
    GenerateOptions options;
    options.max_tokens = 60;
    options.sampling.temperature = temperature;
    options.sampling.top_k = 0;
    options.sampling.top_p = 1;
    options.sampling.min_p = 0;
    options.sampling.seed = seed;
    options.sampling.grammar = grammar;
    return timeline->generate(options);
  }
  static inline std::unique_ptr<TimelineModel> model;
};

TEST_F(GrammarChooser, EveryAnswerMatches) {
  Grammar grammar;
  grammar.text = "root ::= (\"yes\" | \"no\") \", \" [0-9]{3} \"!\"";
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Generation said = write(grammar, seed == 0 ? 0 : 1, seed);
    const std::string& t = said.text;
    const std::size_t word = t.rfind("yes, ", 0) == 0 ? 5 : t.rfind("no, ", 0) == 0 ? 4 : 0;
    ASSERT_GT(word, 0U) << t;
    EXPECT_EQ(t.size(), word + 4) << t;
    EXPECT_EQ(t.find_first_not_of("0123456789", word), t.size() - 1) << t;
    EXPECT_EQ(said.finish, "stop");
  }
}

TEST_F(GrammarChooser, EverySeedRepeats) {
  for (const std::uint32_t seed :
       {0U, 0xfffffffeU, 0xffffffffU}) {  // the last is libllama's mark of a random one
    EXPECT_EQ(write({}, 1, seed).text, write({}, 1, seed).text) << seed;
  }
}

TEST_F(GrammarChooser, ALazyOneWaitsForItsTrigger) {
  Grammar grammar;
  grammar.text = "root ::= \"never written\"";
  grammar.lazy = true;
  grammar.patterns = {"#never#"};
  EXPECT_EQ(write(grammar, 0, 1).text, write({}, 0, 1).text);
  // A trigger that comes at once: whatever is written first.
  grammar.text = "root ::= [^0-9]{1,40} \"7\"";
  grammar.patterns = {"[^0-9]"};
  EXPECT_EQ(write(grammar, 0, 1).text.back(), '7');
}

TEST_F(GrammarChooser, WhatThePromptHasBegunIsNotRepeated) {
  Grammar grammar;
  grammar.text = "root ::= \"<a>\" [0-9] \"</a>\"";
  grammar.begun = model->tokenize("<a>", false, false);
  const std::string text = write(grammar, 0, 1).text;
  EXPECT_EQ(text.size(), 5U) << text;
  EXPECT_EQ(text.substr(1), "</a>");
}

TEST_F(GrammarChooser, BadGrammarsAreNamed) {
  Grammar grammar;
  for (const char* text : {"root ::= (", "a ::= \"b\"", "root ::= root \"a\" | \"b\""}) {
    grammar.text = text;
    EXPECT_ERROR(write(grammar, 0, 1), usage, "grammar");
  }
  // No token can be written where nothing may follow but a character that cannot be.
  grammar.text = "root ::= \"a\"";
  const auto timeline = model->timeline();
  timeline->append(model->tokenize("x", true, false));
  GenerateOptions options;
  options.sampling.grammar = grammar;
  options.sampling.ignore_end = true;
  EXPECT_ERROR(timeline->generate(options), usage, "no token is left");
}

}  // namespace
}  // namespace mrrope::engine
