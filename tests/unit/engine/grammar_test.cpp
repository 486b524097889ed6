// SPDX-License-Identifier: Apache-2.0
// Grammars of strangers, followed with bounded work: over a vocabulary with tokens of many equal
// characters, and against libllama's own reading of the same grammars.
#include "engine/chat/grammar.h"

#include "base/text.h"
#include "engine/llama/choose.h"
#include "engine/llama/loader.h"
#include "engine/llama/tokenize.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

// Every printable character, alone and 2 to 64 times; the last token ends the text.
class LongTokens : public ScriptedModel {
 public:
  LongTokens() : ScriptedModel({}) {
    std::vector<std::string> list;
    for (int length = 64; length >= 1; length /= 2) {
      for (char c = ' '; c <= '~'; ++c) list.emplace_back(std::size_t(length), c);
    }
    list.emplace_back();
    texts_ = TokenTexts(std::move(list));
  }
  int vocabulary() const override { return int(texts_.text.size()); }
  bool ends_text(Token token) const override { return token + 1 == vocabulary(); }
  std::string piece(Token token) const override { return texts_.text[std::size_t(token)]; }
  const TokenTexts* token_texts() const override { return &texts_; }

 private:
  TokenTexts texts_;
};

// What is written where longer tokens are always likelier, up to the end or the refusal.
std::string written(const Sampling& sampling, int tokens) {
  const LongTokens model;
  std::vector<float> logits;
  for (int i = 0; i < model.vocabulary(); ++i) logits.push_back(-float(i));
  Chooser chooser(sampling, model);
  std::string text;
  for (int i = 0; i < tokens; ++i) {
    const Token token = chooser.choose(logits, i).token;
    if (model.ends_text(token)) break;
    text += model.piece(token);
  }
  return text;
}

std::string written(const std::string& grammar, int tokens = 100) {
  Sampling sampling;
  sampling.grammar.text = grammar;
  return written(sampling, tokens);
}

std::string chain(int length, const std::string& rule, const std::string& last) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < length; ++i) {
    text += cat("r", i, " ::= ");
    for (const char c : rule) text += c == '@' ? cat("r", i + 1) : std::string(1, c);
    text += "\n";
  }
  return text + cat("r", length, " ::= ", last, "\n");
}

// The readings double with every character, behind more of them than anyone tries beforehand.
TEST(Grammar, AmbiguityInsideOneTokenIsRefused) {
  const std::string head = "root ::= \"" + std::string(30, 'x') + "\" s\n";
  const std::string grammar =
      head + "s ::= \"=\" s x | \"=\" s y | \"=\"\nx ::= \"c\"\ny ::= \"d\"";
  EXPECT_ERROR(written(grammar), usage, "too ambiguous");
  EXPECT_ERROR(written(head + "s ::= (((\"=\"?){22}){22}){22}"), usage, "too ambiguous");
  // Readings that do not differ are one.
  EXPECT_EQ(written(head + "s ::= \"=\" s | \"=\" s | \"=\" t\nt ::= \"=\" s | \"!\"", 4).size(),
            30U);
}

// Each is either followed, or refused with work that does not depend on the grammar. Without bounds
// most of them do not end.
TEST(Grammar, WorkIsBounded) {
  std::string many = "root ::= \"a0\"";
  for (int i = 1; i < 20000; ++i) many += cat(" | \"a", i, "\"");
  std::string tokens = "root ::= (!<[0]>";
  for (int i = 1; i < 2000; ++i) tokens += cat(" | !<[", i, "]>");
  std::string wide = "root ::= [a";
  for (int i = 0; i < 20000; ++i) wide += "b-yb-z";
  const std::vector<std::string> grammars = {
      "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"x\"",
      "root ::= (\"a\"* \"a\"* \"a\"*)* \"b\"",
      "root ::= ((\"a\"?){40}){40} \"b\"",
      "root ::= (((\"a\" | \"aa\" | \"aaa\")+ b)+ c)+\nb ::= \"a\"* \nc ::= \"a\"*",
      "root ::= root \"a\" | \"b\"",
      "root ::= \"a\" x\nx ::= x \"b\" | \"c\"",
      "root ::= \"a\" e x\ne ::= f f\nf ::= \"\" | \"z\"\nx ::= e x \"b\" | \"a\" x | \"c\"",
      "root ::= s\ns ::= \"(\" s \")\" s | \"(\" s \"]\" s | \"\"",
      "root ::= .* root .* | .",
      "root ::= [^z]* [^y]* [^x]* [^w]* [^v]* [^u]* \"!\"",
      "root ::= \"" + std::string(100000, 'a') + "\"",
      "root ::= ([ -~]{0,30} [ -~]{0,30}){30} \"!\"",
      chain(500, "\"a\"? @ | \"a\" @ \"b\" | \"a\" @ \"c\"", "\"d\""),
      chain(40, "@ @", "\"a\" | \"\""),
      chain(20, "@ \"a\" | @ \"b\" | @", "\"\""),
      "root ::= (\"a\" | \"a\" | \"a\" | \"a\"){1,400} (\"a\" | \"ab\"){1,400}",
      "root ::= p p p p p p p p \"z\"\np ::= \"a\" p \"a\" | \"b\" p \"b\" | \"a\" | \"\"",
      "root ::= \"\" root | \"a\" root root | \"a\"",
      many,
      tokens + ")*",
      wide + "]*",
      "root ::= (\"{\" root \"}\" | \"{\" root \"]\" | \" \"{0,200})*",
  };
  for (const std::string& grammar : grammars) {
    try {
      written(grammar);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << grammar.substr(0, 80);
    }
  }
}

TEST(Grammar, AllTokensBannedIsTheClientsError) {
  EXPECT_ERROR(written("root ::= \"\xc3\xa9\""), usage, "no token is left");
  const LongTokens model;
  Sampling sampling;
  sampling.grammar.text = "root ::= \"q\"";
  for (Token t = 0; t < model.vocabulary(); ++t) {
    if (model.piece(t) == "q") sampling.bias = {{t, -std::numeric_limits<float>::infinity()}};
  }
  EXPECT_ERROR(written(sampling, 2), usage, "no token is left");
}

TEST(Grammar, DeepNestingIsFollowedToItsEnd) {
  EXPECT_EQ(written("root ::= \"(\" root \")\" | \"x\"{64}", 300), std::string(300 * 64, '('));
  const std::string text = written("root ::= \"(\"{500} s{500} \"!\"\ns ::= \")\"");
  EXPECT_EQ(text, std::string(500, '(') + std::string(500, ')') + "!");
}

TEST(Grammar, TriggersAreFoundInLongAnswers) {
  Sampling sampling;
  sampling.grammar = {"root ::= \"~~!\"", true, {"^\\s+to$", "(~+)"}, {}, {}};
  // Blanks, for which the first pattern would take stack, then what starts the grammar.
  const LongTokens model;
  Chooser chooser(sampling, model);
  const auto say = [&](const std::string& wanted) {
    std::vector<float> logits(std::size_t(model.vocabulary()), 0);
    for (Token t = 0; t < model.vocabulary(); ++t) {
      if (model.piece(t) == wanted) logits[std::size_t(t)] = 9;
    }
    return model.piece(chooser.choose(logits, 0).token);
  };
  const std::string blanks(64, ' ');
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(say(blanks), blanks);
  EXPECT_EQ(say("t"), "t");
  EXPECT_EQ(say("o"), "o");  // not at the beginning
  EXPECT_EQ(say("?"), "?");
  EXPECT_EQ(say("~"), "~");
  EXPECT_EQ(say("~"), "~");
  EXPECT_EQ(say("~"), "!");
  EXPECT_EQ(say("~"), "");
}

// Random walks: at each step the same tokens must be allowed.
TEST(Grammar, AgreesWithLibllama) {
  const auto model = load_vocabulary(MRROPE_TINY_MODEL);
  const llama_vocab* vocab = llama_model_get_vocab(model.get());
  std::vector<std::string> list;
  for (Token t = 0; t < llama_vocab_n_tokens(vocab); ++t) {
    list.push_back(llama_vocab_is_eog(vocab, t) ? std::string() : piece_of(vocab, t, true));
  }
  const TokenTexts texts(std::move(list));
  std::mt19937 random(7);
  int steps = 0;
  for (const std::string grammar :
       {"root ::= (expr \"=\" ws term \"\\n\")+\nexpr ::= term ([-+*/] term)*\n"
        "term ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\n"
        "num ::= [0-9]+ ws\nws ::= [ \\t\\n]*",
        "root ::= object\nobject ::= \"{\" ws (pair (\",\" ws pair)*)? \"}\" ws\n"
        "pair ::= string \":\" ws value\nvalue ::= object | string | [0-9]{1,8} ws\n"
        "string ::= \"\\\"\" [^\"\\\\]{0,20} \"\\\"\" ws\nws ::= [ \\n]{0,3}",
        "root ::= .{3,9} [^a-y]* \"\\u00e9\"+ [\\u4e00-\\u9fff]? <[70]> !<[5]> "
        "\"a\"",
        "root ::= (\"a\" | \"ab\" | \"abc\" | \"b\"* \"c\"? | [^\\n] \" the\")* \".\""}) {
    for (int walk = 0; walk < 6; ++walk) {
      GrammarReader reader(grammar);
      const LlamaPtr<llama_sampler> other(
          llama_sampler_init_grammar(vocab, grammar.c_str(), "root"));
      for (int i = 0; i < 12; ++i) {
        reader.grant_work();
        std::vector<llama_token_data> data;
        for (Token t = 0; t < llama_vocab_n_tokens(vocab); ++t) data.push_back({t, 1, 0});
        llama_token_data_array all{data.data(), data.size(), -1, false};
        llama_sampler_apply(other.get(), &all);
        const std::vector<bool> allowed = reader.allowed(texts);
        std::vector<Token> choice;
        for (const llama_token_data& one : data) {
          const bool theirs = std::isfinite(one.logit);
          if (llama_vocab_is_eog(vocab, one.id)) {
            // It also lets a text end within a character.
            EXPECT_TRUE(theirs || !reader.may_end()) << grammar;
            continue;
          }
          const std::string& text = texts.text[std::size_t(one.id)];
          if (!text.empty() && static_cast<unsigned char>(text[0]) >= 0xF8) continue;  // no UTF-8
          EXPECT_EQ(allowed[std::size_t(one.id)], theirs) << grammar << " then '" << text << "'";
          EXPECT_EQ(reader.allows(one.id, text), theirs) << grammar << " then '" << text << "'";
          if (theirs) choice.push_back(one.id);
        }
        if (choice.empty() || testing::Test::HasFailure()) break;
        const Token token = choice[random() % choice.size()];
        reader.accept(token, texts.text[std::size_t(token)]);
        llama_sampler_accept(other.get(), token);
        ++steps;
      }
    }
  }
  EXPECT_GT(steps, 150);
}

}  // namespace
}  // namespace mrrope::engine
