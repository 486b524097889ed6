// SPDX-License-Identifier: Apache-2.0
// mrrope export as users type it.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "formats/gguf/gguf.h"
#include "support/command.h"
#include "support/gguf_writer.h"

namespace mrrope {
namespace {

using test::llama_gguf;
using test::names_in;
namespace fs = std::filesystem;

// Small, without weights: for everything but the proof.
std::string small(const TempFolder& folder, const std::string& architecture = "llama") {
  return folder
      .write(architecture + ".gguf",
             llama_gguf({.architecture = architecture})
                 .tensor("token_embd.weight", {64, 3}, 0, std::string(768, 'e'))
                 .bytes())
      .string();
}

TEST(Export, WritesAndVerifiesTheTinyModel) {
  const TempFolder folder;
  const std::string before = read_file(kModel);
  const CommandResult r = expect_run("export " + kModel + " --method pro --ctx 4k --json -o " +
                                     folder.file("out.gguf"));
  const auto printed = json::parse(r.out);
  EXPECT_EQ(printed["way"], "factors");
  EXPECT_EQ(printed["context_length"], 4096);
  EXPECT_EQ(printed["divisors"].size(), 64u);
  EXPECT_EQ(printed["proof"]["tokens"], 1280);
  EXPECT_EQ(printed["proof"]["largest"], 0.0);
  EXPECT_GT(printed["proof"]["without_plan"], 0.5);
  EXPECT_EQ(printed["proof"]["conclusive"], true);
  const Gguf file = read_gguf(folder / "out.gguf");
  EXPECT_EQ(file.rope_factors("rope_freqs.weight").back(), 4);
  EXPECT_TRUE(read_file(kModel) == before) << "the input was touched";
}

// A plan that changes less than the rounding of a quantised model: the comparison would accept the
// source too.
TEST(Export, SaysIfRoundingHidesThePlan) {
  const TempFolder folder;
  const std::string command = "export " + kModel +
                              " --method pi --scale 1.0001 --native --force -o " +
                              folder.file("out.gguf");
  EXPECT_EQ(expect_json(command + " --json")["proof"]["conclusive"], false);
  const CommandResult text = run_command(command);
  EXPECT_TRUE(contains(text.out, "not conclusive")) << text.out;
  EXPECT_FALSE(contains(text.out, "verified")) << text.out;
}

TEST(Export, ReadsAPlanFileAndRefusesToOverwrite) {
  const TempFolder folder;
  const std::string model = small(folder);
  const std::string plan = folder.file("p.json");
  expect_run("plan " + model + " --method uni --ctx 16k -o " + plan);
  const std::string out = folder.file("out.gguf");
  const std::string command = "export " + model + " --plan " + plan + " --verify off -o " + out;
  expect_run(command, 0, {"context_length 16384", "not verified"});
  const std::string written = read_file(out);
  expect_run(command, 2, {"already exists", "--force"});
  expect_run(command + " --force");
  EXPECT_TRUE(read_file(out) == written);
}

TEST(Export, CommandsKeepThePartOfAHeadThatRotates) {
  const TempFolder folder;
  folder.write("config.json",
               R"({"model_type": "stablelm", "architectures": ["StableLmForCausalLM"],
      "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
      "num_hidden_layers": 2, "intermediate_size": 512, "vocab_size": 1000,
      "max_position_embeddings": 4096, "rope_theta": 10000, "partial_rotary_factor": 0.25})");
  expect_run("export " + folder.file("config.json") + " --method pro --scale 4 --to commands", 0,
             {R"("partial_rotary_factor":0.25)"});
}

TEST(Export, HeadroomIsScaleNotLength) {
  const TempFolder folder;
  const std::string ladder = folder.file("ladder.json");
  expect_run("plan " + kModel + " --method elastic:pro --ctx 4k --headroom 1.25 -o " + ladder);
  for (const std::string& flags :
       {std::string("--method pro --scale 4 --headroom 1.5"),
        std::string("--method pro --ctx 4k --headroom 1.5"), "--approximate --plan " + ladder}) {
    expect_run("export " + kModel + " --to commands " + flags, 0, {"-c 4096"});
  }
}

TEST(Export, ApproximatesOtherArchitecturesOnlyOnRequest) {
  const TempFolder folder;
  const std::string model = small(folder, "qwen3");
  const std::string command =
      "export " + model + " --ctx 16k --verify off -o " + folder.file("o.gguf") + " --method ";
  expect_run(command + "pro", 3,
             {"refuses a file with factors", "--approximate writes the nearest YaRN"});
  EXPECT_FALSE(fs::exists(folder / "o.gguf"));
  expect_run(command + "pro --approximate", 0, {"angles differ by at most", "on average"});
  expect_run(command + "yarn --force", 0, {"scaling keys"});
}

TEST(Export, RefusesBadCommands) {
  const TempFolder folder;
  const std::string model = small(folder);
  const std::string out = " -o " + folder.file("o.gguf") + " ";
  const auto fails = [&](const std::string& arguments, int code, const std::string& words) {
    expect_run("export " + arguments, code, {words});
  };
  fails(model + " --method pro --ctx 16k --split --verify off" + out, 2, "--split");
  fails(model + " --method pro --ctx 16k --to hf" + out, 2, "not a Hugging Face folder");
  fails(model + " --method pro --ctx 16k --verify off -o " + folder.file("no/such/o.gguf"), 1,
        "cannot create");
  // A tensor past the end of the file, and two on one range: found before a byte is copied.
  const std::string cut = read_file(model).substr(0, 900);
  folder.write("cut.gguf", cut);
  fails(folder.file("cut.gguf") + " --method pro --ctx 16k --verify off" + out, 4, "past the end");
  folder.write(
      "shared.gguf",
      llama_gguf().tensor("a", {64}, 0, std::string(256, 'a')).tensor_at("b", {64}, 0, 0).bytes());
  fails(folder.file("shared.gguf") + " --method pro --ctx 16k --verify off" + out, 4,
        "share bytes");
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_NE(entry.path().filename().string().rfind("o.gguf", 0), 0u) << entry.path();
  }
}

TEST(Export, WritesAHuggingFaceFolder) {
  const TempFolder folder;
  fs::create_directory(folder / "in");
  fs::copy(MRROPE_GOLDEN_DIR "/tiny_config/config.json", folder / "in" / "config.json");
  const std::string command = "export " + folder.file("in") +
                              " --method pro --ctx 4k --to hf --verify off --json -o " +
                              folder.file("out");
  expect_run(command, 1, {"has no weights"});
  folder.write("in/pytorch_model.bin", "weights");
  const CommandResult r = expect_run(command);
  const auto printed = json::parse(r.out);
  EXPECT_EQ(printed["max_position_embeddings"], 4096);
  const auto config = json::parse(read_file(folder / "out" / "config.json"));
  EXPECT_EQ(config["rope_parameters"]["rope_type"], "longrope");
  // A file of the folder stands for it.
  fs::remove(folder / "in" / "pytorch_model.bin");
  folder.write("in/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  for (const char* name : {"config.json", "model.safetensors"}) {
    expect_run("export " + folder.file("in/") + name +
               " --method pro --ctx 4k --to hf --verify off -o " +
               folder.file(std::string("by-") + name));
  }
  // A config of another name may be of another model than the weights.
  fs::copy(folder / "in" / "config.json", folder / "in" / "other.json");
  expect_run("export " + folder.file("in/other.json") +
                 " --method pro --ctx 4k --to hf --verify off -o " + folder.file("out2"),
             2, {"is only a config"});
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

TEST(Inspect, SaysWhatEachEngineCanDo) {
  const TempFolder folder;
  expect_run("inspect " + small(folder, "qwen2") + " --ctx 16k", 0,
             {"llama.cpp: needs the exported file (as a file of architecture llama)",
              "ollama: needs the exported file", "transformers: runs as is", "vLLM: runs as is",
              "SGLang: runs as is", "--to commands", "llama-server -m qwen2-16k.gguf -c 16384"});
  const auto printed =
      json::parse(run_command("inspect " + small(folder, "qwen3") + " --ctx 16k --json").out);
  EXPECT_EQ(printed["engines"][0]["engine"], "llama.cpp");
  EXPECT_EQ(printed["engines"][0]["verdict"], "cannot");
}

}  // namespace
}  // namespace mrrope
