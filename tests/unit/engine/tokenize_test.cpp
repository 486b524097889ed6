// SPDX-License-Identifier: Apache-2.0
// Long runs of one character, which libllama's regular expressions cannot survive on an ordinary
// stack.
#include "engine/llama/tokenize.h"

#include "engine/llama/local.h"
#include "models/byte_vocabulary.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

class Tokenize : public testing::TestWithParam<const char*> {};

TEST_P(Tokenize, KeepsEveryByteOfALongRun) {
  const TempFolder folder;
  const auto vocabulary =
      open_vocabulary(folder.write("v.gguf", byte_vocabulary(GetParam()).bytes()));
  for (const char* unit : {"!", "a", "A", "7", " ", "\n", "!\n/", "\xC3\xA9", "a b "}) {
    std::string text = "Start.";
    while (text.size() < 60000) text += unit;
    EXPECT_EQ(vocabulary->detokenize(vocabulary->tokenize(text, false, false)), text) << unit;
  }
}

INSTANTIATE_TEST_SUITE_P(Pre, Tokenize,
                         testing::Values("default", "gpt-4o", "llama4", "deepseek-v3",
                                         "deepseek-llm", "tekken", "falcon", "exaone-moe", "bloom",
                                         "llama-bpe", "qwen2"));

TEST(TokenizeLimits, LineTooLongForAnyStackIsRefused) {
  const TempFolder folder;
  const auto vocabulary =
      open_vocabulary(folder.write("v.gguf", byte_vocabulary("gpt-4o").bytes()));
  const std::string line(5 << 20, 'a');
  EXPECT_ERROR(vocabulary->tokenize(line, false, false), usage, "5242881 characters");
}

// Time that grows with the square of a run: 8,000 digits took eight seconds.
TEST(TokenizeLimits, RunsThatTakeTooLongAreRefused) {
  const TempFolder folder;
  const auto digits = open_vocabulary(folder.write("v.gguf", byte_vocabulary("superbpe").bytes()));
  const std::string most = "Pi: " + std::string(2000, '3');
  EXPECT_EQ(digits->detokenize(digits->tokenize(most, false, false)), most);
  EXPECT_ERROR(digits->tokenize(most + "3", false, false), usage, "2001 digits", "superbpe");
  EXPECT_ERROR(digits->tokenize(most + " " + std::string(33, '3'), false, false), usage,
               "33 digits");
  std::string numbers;
  for (int i = 0; i < 4000; ++i) numbers += "1234567890 ";
  EXPECT_EQ(digits->detokenize(digits->tokenize(numbers, false, false)), numbers);

  const auto blanks =
      open_vocabulary(folder.write("w.gguf", byte_vocabulary("deepseek-llm").bytes()));
  for (const char* blank : {" ", "\t", "\xE2\x80\x83", "\xC2\xA0"}) {
    std::string run;
    for (int i = 0; i < 2001; ++i) run += blank;
    EXPECT_ERROR(blanks->tokenize(run + "1", false, false), usage, "2001 blanks", "deepseek-llm");
    EXPECT_EQ(blanks->detokenize(blanks->tokenize(run + "a", false, false)), run + "a");
  }
}

TEST(TokenizeLimits, TokenizerThatAbortsOnBlanksIsRefused) {
  const TempFolder folder;
  const auto file = folder.write("v.gguf", byte_vocabulary("whitespace").bytes());
  EXPECT_ERROR(open_vocabulary(file), unsupported, "whitespace");
}

TEST(LongestMatch, IsAtLeastEveryRunAndEndsWithSentencesAndLines) {
  EXPECT_LE(longest_match(""), 2U);
  EXPECT_GE(longest_match(std::string(100, '!')), 100U);
  EXPECT_GE(longest_match("a" + std::string(100, '\n') + "b"), 101U);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "Some words, and more. Then a line\n";
  EXPECT_LT(longest_match(text), 40U);
  // Slashes, and spaces between words, are part of some matches.
  std::string slashes = "!";
  std::string words;
  for (int i = 0; i < 100; ++i) slashes += "\n/";
  for (int i = 0; i < 100; ++i) words += "ab ";
  EXPECT_GE(longest_match(slashes), 201U);
  EXPECT_GE(longest_match(words), 300U);
  // Two characters of three bytes.
  EXPECT_LE(longest_match("\xE4\xB8\x80\xE4\xB8\x80"), 4U);
}

TEST(DeepStack, PropagatesExceptions) {
  EXPECT_THROW(run_with_room_for_match(100000, [] { throw 7; }), int);
  int calls = 0;
  run_with_room_for_match(100000, [&] { ++calls; });
  run_with_room_for_match(1, [&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace mrrope::engine
