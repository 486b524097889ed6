// SPDX-License-Identifier: Apache-2.0
// mrrope export as users type it.
#include <signal.h>
#include <unistd.h>

#include "formats/gguf/gguf.h"
#include "support/command.h"
#include "support/gguf_writer.h"

namespace mrrope {
namespace {

namespace fs = std::filesystem;

// Small, without weights: for everything but the proof.
std::string small(const TempFolder& folder) {
  const auto file = llama_gguf().tensor("token_embd.weight", {64, 3}, 0, std::string(768, 'e'));
  return folder.write("llama.gguf", file.bytes()).string();
}

// Found before a byte is copied.
TEST(Export, RefusesTensorsThatShareBytes) {
  const TempFolder folder;
  folder.write(
      "shared.gguf",
      llama_gguf().tensor("a", {64}, 0, std::string(256, 'a')).tensor_at("b", {64}, 0, 0).bytes());
  expect_run("export " + folder.file("shared.gguf") + " --method pro --ctx 16k --verify off -o " +
                 folder.file("o.gguf"),
             4, {"share bytes"});
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"shared.gguf"});
}

// ---- inputs, planted names, and the moment of publishing --------------------------------------

TEST(Export, NeverOverwritesItsInput) {
  const TempFolder folder;
  const std::string model = small(folder);
  const std::string before = read_file(model);
  fs::create_symlink(model, folder / "link.gguf");
  fs::create_hard_link(model, folder / "hard.gguf");
  fs::create_directory(folder / "sub");
  const std::string plan = folder.file("p.json");
  expect_run("plan " + model + " --method pro --ctx 16k -o " + plan);
  const std::string plan_before = read_file(plan);
  const auto refused = [&](const std::string& arguments) {
    expect_run(arguments, 2, {"input"}, "cd " + folder.path().string() + ";");
    EXPECT_TRUE(read_file(model) == before) << arguments;
    EXPECT_EQ(read_file(plan), plan_before);
    EXPECT_TRUE(fs::is_symlink(folder / "link.gguf"));
  };
  for (const std::string& name :
       {model, std::string("llama.gguf"), std::string("sub/../llama.gguf"),
        std::string("link.gguf"), std::string("hard.gguf")}) {
    refused("export " + model + " --method pro --ctx 16k --verify off --force -o " + name);
    refused("export link.gguf --method pro --ctx 16k --verify off --force -o " + name);
    refused("plan " + model + " --method pro --ctx 16k -o " + name);
  }
  refused("export " + model + " --plan " + plan + " --verify off --force -o p.json");
  refused("plan --plan p.json -o p.json");
}

// Names that an earlier version used for the unfinished file.
TEST(Export, DoesNotWriteThroughPlantedNames) {
  const TempFolder folder;
  const std::string model = small(folder);
  const std::string before = read_file(model);
  fs::rename(model, folder / "z.gguf.part");
  expect_run("export " + folder.file("z.gguf.part") + " --method pro --ctx 16k --verify off -o " +
             folder.file("z.gguf"));
  EXPECT_TRUE(read_file(folder / "z.gguf.part") == before);
  folder.write("victim", "precious");
  fs::create_symlink(folder / "victim", folder / "o.gguf.part");
  fs::create_symlink(folder / "victim", folder / "p.json.part");
  expect_run("export " + folder.file("z.gguf.part") + " --method pro --ctx 16k --verify off -o " +
             folder.file("o.gguf"));
  expect_run("plan " + folder.file("z.gguf") + " --method pro --ctx 32k -o " +
             folder.file("p.json"));
  EXPECT_EQ(read_file(folder / "victim"), "precious");
  EXPECT_EQ(read_gguf(folder / "o.gguf").parts.size(), 1u);
}

// Over the limit the system would end the process, and leave the unfinished file.
TEST(Export, FileSizeLimitLeavesNothingBehind) {
  const TempFolder folder;
  expect_run(
      "export " + kModel + " --method pro --ctx 4k --verify off -o " + folder.file("out.gguf"), 1,
      {"File too large"}, "ulimit -f 2000;");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

// Waits until the export has written its whole file under a private name, which is returned, and
// stops the process. Empty if it ended before. `known`: a folder that was there already.
std::string stop_in_the_proof(RunningCommand& command, const TempFolder& folder,
                              std::uintmax_t size, const std::string& known = {}) {
  while (command.running()) {
    for (const std::string& name : names_in(folder.path())) {
      std::error_code error;
      if (name == known || fs::file_size(folder / name / "new" / "out.gguf", error) != size) {
        continue;
      }
      command.send(SIGSTOP);
      return name;
    }
    usleep(1000);
  }
  return {};
}

TEST(Export, KillDuringTheProofPublishesNothing) {
  const TempFolder folder;
  const std::string command =
      "export " + kModel + " --method pro --ctx 4k -t 1 -o " + folder.file("out.gguf");
  expect_run(command + " --verify off");
  const std::uintmax_t size = fs::file_size(folder / "out.gguf");
  fs::remove(folder / "out.gguf");
  std::string left;
  {
    RunningCommand killed(command);
    left = stop_in_the_proof(killed, folder, size);
    ASSERT_NE(left, "");
    EXPECT_FALSE(fs::exists(folder / "out.gguf"));
    killed.send(SIGKILL);
    EXPECT_EQ(killed.wait().exit_code, 128 + SIGKILL);
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{left});
  // With --force the old file stays, and Ctrl-C leaves nothing else; the next export has removed
  // what the killed one left.
  folder.write("out.gguf", "old");
  {
    RunningCommand asked(command + " --force");
    ASSERT_NE(stop_in_the_proof(asked, folder, size, left), "");
    asked.send(SIGINT);
    asked.send(SIGCONT);
    const CommandResult r = asked.wait();
    EXPECT_EQ(r.exit_code, 130) << r.err;
    EXPECT_TRUE(contains(r.err, "interrupted: nothing was written")) << r.err;
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"out.gguf"});
  EXPECT_EQ(read_file(folder / "out.gguf"), "old");
}

// transformers is replaced by a program that says that it runs, and then never ends.
TEST(Export, CtrlCAndSigtermEndTheProofOfAFolder) {
  const TempFolder folder;
  fs::create_directory(folder / "in");
  fs::copy(MRROPE_GOLDEN_DIR "/tiny_config/config.json", folder / "in" / "config.json");
  folder.write("in/pytorch_model.bin", "weights");
  folder.write("python", "#!/bin/sh\ntouch " + folder.file("running") + "\nexec sleep 1000\n");
  fs::permissions(folder / "python", fs::perms::owner_all);
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningCommand command(
        "export " + folder.file("in") + " --method pro --ctx 4k --to hf -o " + folder.file("out"),
        "export MRROPE_PYTHON=" + folder.file("python") + ";");
    while (command.running() && !fs::exists(folder / "running")) usleep(1000);
    EXPECT_FALSE(fs::exists(folder / "out"));
    command.send(signal);
    const CommandResult r = command.wait();
    EXPECT_EQ(r.exit_code, 130) << r.err;
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"in", "python", "running"}));
    fs::remove(folder / "running");
  }
}

// A proof that fails: transformers is replaced by a program that computes something else.
TEST(Export, FailedProofKeepsTheOldFolder) {
  const TempFolder folder;
  fs::create_directory(folder / "in");
  fs::copy(MRROPE_GOLDEN_DIR "/tiny_config/config.json", folder / "in" / "config.json");
  folder.write("in/pytorch_model.bin", "weights");
  const std::string command =
      "export " + folder.file("in") + " --ctx 4k --to hf -o " + folder.file("out") + " --method ";
  expect_run(command + "pro --verify off");
  const std::string before = read_file(folder / "out/config.json");
  folder.write("python", "#!/bin/sh\necho '{\"version\": \"0\", \"theta\": [1], \"factor\": 1}'\n");
  fs::permissions(folder / "python", fs::perms::owner_all);
  expect_run(command + "uni --force", 6, {"was not written"},
             "export MRROPE_PYTHON=" + folder.file("python") + ";");
  EXPECT_EQ(read_file(folder / "out/config.json"), before);
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"in", "out", "python"}));
}

}  // namespace
}  // namespace mrrope
