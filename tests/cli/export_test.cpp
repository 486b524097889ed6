// SPDX-License-Identifier: Apache-2.0
// mrrope export when it is killed or interrupted; tests/transcripts/export.txt has what it prints.
#include <signal.h>
#include <unistd.h>

#include "support/command.h"

namespace mrrope {
namespace {

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace mrrope
