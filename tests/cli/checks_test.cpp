// SPDX-License-Identifier: Apache-2.0
// What needs no weights is refused before they are loaded, by every verb that runs a model. The
// model here has a good header and lacks a tensor, so that loading it is an error of its own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/command.h"
#include "support/gguf_edit.h"

namespace mrrope {
namespace {

constexpr const char* kLacks = "output_norm";

// A port of this machine in use.
class BusyPort {
 public:
  BusyPort() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~BusyPort() { ::close(socket_); }
  BusyPort(const BusyPort&) = delete;
  BusyPort& operator=(const BusyPort&) = delete;

  int number() const { return number_; }

 private:
  int socket_;
  int number_ = 0;
};

class ChecksFirst : public testing::Test {
 protected:
  ChecksFirst() {
    std::filesystem::create_directories(folder_ / "home/models");
    std::filesystem::create_directories(folder_ / "home/data/texts");
    test::edit_gguf(MRROPE_TINY_MODEL, model(),
                    [](const std::string& name) { return contains(name, kLacks); });
    write_file(folder_.file("home/data/texts/a.txt"), "Let n be a number.\n");
    write_file(folder_.file("items.json"), "[]");
    expect_run(
        "plan --rotary-dim 128 --rope-freq-base 10000 --train-ctx 4096 --method "
        "pro --ctx 8k -o " +
        folder_.file("other.json"));
  }

  std::string model() const { return folder_.file("home/models/mrrope-tiny.gguf"); }
  CommandResult run(const std::string& line) const {
    return run_command(line, "export MRROPE_HOME=" + folder_.file("home") + ";");
  }

  // `line` alone loads the model; with any of these flags it names what is wrong with them.
  void expect_refused(const std::string& line,
                      const std::vector<std::pair<std::string, std::string>>& flags) const {
    const CommandResult loads = run(line);
    EXPECT_NE(loads.exit_code, 0) << line;
    EXPECT_TRUE(contains(loads.err, kLacks)) << line << "\n" << loads.err;
    for (const auto& [flag, words] : flags) expect_named(line + " " + flag, words);
  }
  // It fails and names this, not the tensor.
  void expect_named(const std::string& line, const std::string& words) const {
    const CommandResult r = run(line);
    EXPECT_NE(r.exit_code, 0) << line;
    EXPECT_TRUE(contains(r.err, words) && !contains(r.err, kLacks)) << line << "\n" << r.err;
  }

  const TempFolder folder_;
  const std::string missing_ = folder_.file("no-such-text");
  const std::string below_a_file_ = folder_.file("items.json/run");
  const std::pair<std::string, std::string> other_plan_{"--plan " + folder_.file("other.json"),
                                                        "was made for"};
  const std::pair<std::string, std::string> bad_folder_{"-o " + below_a_file_,
                                                        "cannot make the folder"};
};

TEST_F(ChecksFirst, Generate) {
  expect_refused("generate " + model() + " -p x",
                 {other_plan_,
                  {"-f " + missing_, missing_},
                  {"--session " + below_a_file_, below_a_file_},
                  {"--session " + folder_.file("items.json"), "is not a session"},
                  {"--ctx 0", "not a length"}});
}

TEST_F(ChecksFirst, GenerateNamesASessionOfAnotherModel) {
  const std::string session = " --session " + folder_.file("s.ses");
  expect_run("generate " + kModel + " -p Let -n 1" + session);
  expect_refused("generate " + model() + " -p x", {{session, "was saved with model"}});
}

TEST_F(ChecksFirst, Serve) {
  const BusyPort busy;
  expect_refused("serve " + model() + " --port 0", {other_plan_,
                                                    {"--slot-save-path " + missing_, missing_},
                                                    {"--api-key-file " + missing_, missing_}});
  expect_named("serve " + model() + " --port " + std::to_string(busy.number()),
               "cannot listen on 127.0.0.1 port");
}

TEST_F(ChecksFirst, Evaluations) {
  const std::string ctx = " --ctx 2k ";
  const std::string text = folder_.file("home/data/texts");
  expect_refused("eval ppl " + model() + ctx + "--text " + text,
                 {other_plan_,
                  bad_folder_,
                  {"--text " + missing_, missing_},
                  {"--lengths 4k", "longer than --ctx"},
                  {"--lengths 1", "no token to score"},
                  {"--methods pro,none,pro", "pro is given twice"}});
  expect_refused("eval needle " + model() + ctx,
                 {other_plan_, bad_folder_, {"--haystack " + missing_, missing_}});
  expect_refused("eval ruler " + model() + ctx, {other_plan_,
                                                 bad_folder_,
                                                 {"--data " + missing_, missing_},
                                                 {"--squad " + missing_, missing_},
                                                 {"--prompts " + missing_, missing_},
                                                 {"--tasks nonsense", "no task 'nonsense'"}});
  expect_refused("eval infinitebench " + model() + ctx,
                 {other_plan_,
                  bad_folder_,
                  {"--data " + missing_, missing_},
                  {"--tasks nonsense", "no task 'nonsense'"},
                  {"--data " + text + " --lengths 1k,2k", "one length"}});
  expect_refused("eval longbench-v2 " + model() + ctx + "--data " + folder_.file("items.json"),
                 {other_plan_, bad_folder_});
  expect_named("eval longbench-v2 " + model() + ctx + "--data " + missing_, missing_);
}

TEST_F(ChecksFirst, Searches) {
  expect_refused("tune " + model() + " --ctx 2k -o " + folder_.file("tuned.json"),
                 {{"--start-plan " + missing_, missing_}, {"--text " + missing_, missing_}});
  expect_named("tune " + model() + " --ctx 2k -o " + below_a_file_ + ".json",
               "cannot make the folder");
}

TEST_F(ChecksFirst, DemoAndTheory) {
  expect_refused("demo -o " + folder_.file("demo"), {});
  expect_named("demo " + bad_folder_.first, bad_folder_.second);
  for (const char* tokens : {" --tokens 512", " --tokens 1500"}) {
    expect_refused("theory attention " + model() + " --methods pro" + tokens,
                   {{"--text " + missing_, missing_},
                    {other_plan_.first, other_plan_.second},
                    {"--html " + below_a_file_, below_a_file_}});
  }
}

TEST_F(ChecksFirst, TheDemoNamesATextThatIsTooShort) {
  std::filesystem::remove(model());
  std::filesystem::create_symlink(MRROPE_TINY_MODEL, model());
  const CommandResult r = run("demo -o " + folder_.file("demo"));
  EXPECT_EQ(r.exit_code, 1) << r.out;
  EXPECT_TRUE(contains(r.err, "a.txt has ")) << r.err;
  EXPECT_TRUE(contains(r.err, "tokens, and 2048 are needed")) << r.err;
}

// What a run would cost is known without the weights, of which this file lacks one.
TEST_F(ChecksFirst, DryRunsNeedNoWeights) {
  const std::string texts = " --text " MRROPE_GOLDEN_DIR "/../../data/texts";
  for (const std::string& task :
       {"eval ppl" + texts, "eval needle --form planted" + texts,
        std::string("eval ruler --tasks vt"), "tune --form planted --documents 1,2" + texts}) {
    const CommandResult r = run(task + " " + model() + " --ctx 2k --dry-run");
    EXPECT_EQ(r.exit_code, 0) << task << "\n" << r.err;
    EXPECT_TRUE(contains(r.out, "KV cache")) << r.out;
  }
  const CommandResult much =
      run("eval ppl " + model() + " --ctx 512m --method pro --dry-run" + texts);
  EXPECT_EQ(much.exit_code, 1) << much.err;
  EXPECT_TRUE(contains(much.err, "does not fit")) << much.err;
}

// An empty folder is no text either.
TEST_F(ChecksFirst, EmptyFolders) {
  std::filesystem::create_directories(folder_ / "empty");
  expect_named("eval ppl " + model() + " --ctx 2k --text " + folder_.file("empty"), "has no file");
}

}  // namespace
}  // namespace mrrope
