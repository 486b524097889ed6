// SPDX-License-Identifier: Apache-2.0
// mrrope generate with chat templates and sessions: the real command on the tiny model.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/gguf_edit.h"
#include "support/temp_folder.h"
#include "support/text.h"

namespace mrrope {
namespace {

using nlohmann::json;

using test::contains;

class GenerateChat : public testing::Test {
 protected:
  // The tiny model with a chat template.
  std::string model_with(const std::string& source) const {
    const std::string path = folder_.file("chat.gguf");
    test::edit_gguf(MRROPE_TINY_MODEL, path, [](const std::string&) { return false; }, {},
                    {text_key("tokenizer.chat_template", source)});
    return path;
  }

  test::TempFolder folder_;
};

TEST_F(GenerateChat, PrintsItsAnswerAsJson) {
  const std::string model =
      model_with("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}");
  const CommandResult r = run_command("generate " + model + " --chat -p Hi -n 4 --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json answer = json::parse(r.out);
  EXPECT_EQ(answer["completion_tokens"], 4);
  EXPECT_FALSE(answer["text"].get<std::string>().empty());
  const CommandResult plain = run_command("generate " + model + " --chat -p Hi -n 4");
  EXPECT_EQ(plain.out, answer["text"].get<std::string>() + "\n");
}

TEST_F(GenerateChat, ASessionStaysWhatItIs) {
  const std::string line =
      "generate " +
      model_with("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}") +
      " -n 2 -t 1 --session " + folder_.file("s.ses");
  ASSERT_EQ(run_command(line + " --chat -p Hi --system Pirate").exit_code, 0);
  EXPECT_EQ(run_command(line + " --chat -p Hi --system Pirate").exit_code, 0);
  const CommandResult other = run_command(line + " --chat -p Hi --system Lawyer");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "another system message")) << other.err;
  const CommandResult plain = run_command(line + " -p The");
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_TRUE(contains(plain.err, "holds a chat of 5 messages")) << plain.err;
}

TEST_F(GenerateChat, WithoutALengthTheMethodSaysHowFarItReaches) {
  const std::string text = folder_.file("long.txt");
  std::string words;
  for (int i = 0; i < 400; ++i) words += "lemma " + std::to_string(i) + ": ";
  test::write_file(text, words);
  const std::string plan = folder_.file("ladder.json");
  const std::string model = MRROPE_TINY_MODEL;
  ASSERT_EQ(run_command("plan " + model + " --method elastic:pro --ctx 4k -o " + plan).exit_code,
            0);
  const std::string dynamic = folder_.file("dynamic.json");
  ASSERT_EQ(run_command("plan " + model + " --method dynamic-ntk --ctx 4k -o " + dynamic).exit_code,
            0);
  for (const std::string& flags : {std::string("--scale 4"), "--plan " + plan, "--plan " + dynamic,
                                   std::string("--method pro --scale 4")}) {
    const CommandResult r =
        run_command("generate " + model + " -t 2 -n 1 -f " + text + " " + flags);
    EXPECT_EQ(r.exit_code, 0) << flags << r.err;
  }
  EXPECT_EQ(run_command("generate " + model + " -n 1 -f " + text).exit_code, 2);
}

TEST_F(GenerateChat, FlagsStayWhereAnotherMethodTakesThePlaceOfAuto) {
  const CommandResult r =
      run_command(std::string("generate ") + MRROPE_TINY_MODEL +
                  " -p Let -n 1 -t 1 --ctx 4k -ctk q4_0 --headroom 1.25 --rung-step 1.5");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "elastic:pro(rung_step=1.5,headroom=1.25)")) << r.err;
  EXPECT_EQ(
      run_command(std::string("generate ") + MRROPE_TINY_MODEL + " -p x --temp nan").exit_code, 2);
}

TEST_F(GenerateChat, RefusesMoreThreadsThanPossible) {
  const std::string line = std::string("generate ") + MRROPE_TINY_MODEL + " -p Hi -n 1 -t ";
  const CommandResult many = run_command(line + "600");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_TRUE(contains(many.err, "-t 600 is not between 0 and 512")) << many.err;
  // Each thread's stack takes address space.
  const CommandResult full = run_command(line + "500", "ulimit -v 3000000;");
  EXPECT_EQ(full.exit_code, 1) << full.err;
  EXPECT_TRUE(contains(full.err, "did not start")) << full.err;
}

}  // namespace
}  // namespace mrrope
