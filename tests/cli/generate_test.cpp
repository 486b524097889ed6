// SPDX-License-Identifier: Apache-2.0
// mrrope generate with chat templates and sessions: the real command on the tiny model.
#include <gtest/gtest.h>

#include "support/command.h"
#include "support/gguf_edit.h"

namespace mrrope {
namespace {

class GenerateChat : public testing::Test {
 protected:
  // The tiny model with a chat template.
  std::string model_with(const std::string& source) const {
    const std::string path = folder_.file("chat.gguf");
    test::edit_gguf(MRROPE_TINY_MODEL, path, [](const std::string&) { return false; }, {},
                    {text_key("tokenizer.chat_template", source)});
    return path;
  }

  TempFolder folder_;
};

TEST_F(GenerateChat, PrintsItsAnswerAsJson) {
  const std::string model =
      model_with("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}");
  const CommandResult r = expect_run("generate " + model + " --chat -p Hi -n 4 --json");
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
  expect_run(line + " --chat -p Hi --system Pirate");
  expect_run(line + " --chat -p Hi --system Pirate");
  expect_run(line + " --chat -p Hi --system Lawyer", 2, {"another system message"});
  expect_run(line + " -p The", 2, {"holds a chat of 5 messages"});
}

TEST_F(GenerateChat, RefusesMoreThreadsThanPossible) {
  const std::string line = "generate " + kModel + " -p Hi -n 1 -t ";
  // Each thread's stack takes address space.
  expect_run(line + "500", 1, {"did not start"}, "ulimit -v 3000000;");
}

}  // namespace
}  // namespace mrrope
