// SPDX-License-Identifier: Apache-2.0
// Grammars and JSON schemas of strangers, checked in another process.

#include "engine/chat/chat.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr std::chrono::milliseconds kLimit{20000};

// Empty: it can be used.
std::string trouble(ChatRenderer& renderer, const std::string& grammar,
                    std::chrono::milliseconds limit = kLimit) {
  try {
    renderer.check_grammar(grammar, limit);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(CheckGrammar, AcceptsWhatPeopleWrite) {
  ChatRenderer renderer;
  EXPECT_EQ(trouble(renderer, "root ::= \"yes\" | \"no\""), "");
  EXPECT_EQ(trouble(renderer, R"gbnf(root ::= (expr "=" ws term "\n")+
expr ::= term ([-+*/] term)*
term ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num ::= [0-9]+ ws
ws ::= [ \t\n]*)gbnf"),
            "");
}

TEST(CheckGrammar, NamesTheReason) {
  ChatRenderer renderer;
  EXPECT_TRUE(contains(trouble(renderer, "root ::= x"), "'x'"));
  EXPECT_TRUE(contains(trouble(renderer, "top ::= \"a\""), "no rule named root"));
  EXPECT_TRUE(contains(trouble(renderer, "root ::= <think> \"a\""), "<[NUMBER]>"));
  EXPECT_NE(trouble(renderer, "root ::= \"unfinished"), "");
  EXPECT_NE(trouble(renderer, " "), "");
  EXPECT_NE(trouble(renderer, "root ::= " + std::string(200000, '(')), "");
}

// The server reads it again, on a thread whose stack is smaller.
TEST(CheckGrammar, RefusesDeepNesting) {
  ChatRenderer renderer;
  const auto nested = [](int depth) {
    return "root ::= \"((\" [((] ( # \"[\r" + std::string(std::size_t(depth - 1), '(') + "\"a\"" +
           std::string(std::size_t(depth), ')') + " # ((";
  };
  EXPECT_EQ(trouble(renderer, nested(200)), "");
  EXPECT_TRUE(contains(trouble(renderer, nested(201)), "nested 201 deep"));
}

TEST(CheckGrammar, StopsWhatTakesTooLong) {
  ChatRenderer renderer;
  // 200 million elements.
  const std::string large = "root ::= \"" + std::string(100000, 'a') + "\"{2000}";
  EXPECT_NE(trouble(renderer, large, std::chrono::milliseconds(300)), "");
  EXPECT_EQ(trouble(renderer, "root ::= \"still alive\""), "");
}

TEST(SchemaGrammar, KeepsTheOrderOfProperties) {
  ChatRenderer renderer;
  const std::string grammar = renderer.schema_grammar(
      R"({"type": "object", "properties": {"z": {"type": "integer"}, "a": {"type": "boolean"}},
          "required": ["z", "a"]})",
      kLimit);
  EXPECT_LT(grammar.find("z-kv"), grammar.find(" a-kv")) << grammar;
  EXPECT_TRUE(contains(grammar, "root ::="));
}

TEST(SchemaGrammar, RefusesWhatIsNone) {
  ChatRenderer renderer;
  for (const char* schema : {"{", R"({"type": "wizard"})", R"({"$ref": "#/nowhere"})"}) {
    EXPECT_THROW(renderer.schema_grammar(schema, kLimit), Error) << schema;
  }
}

}  // namespace
}  // namespace mrrope::engine
