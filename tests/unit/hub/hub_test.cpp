// SPDX-License-Identifier: Apache-2.0
#include "hub/hub.h"

#include <stdlib.h>

#include "support/test.h"

namespace mrrope::hub {
namespace {

namespace fs = std::filesystem;

const std::string kDigest(64, 'a');
const std::string kCommit(40, 'c');

// The caches of all tests: llama.cpp reads where its own is only once.
class HubTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    home = new test::TempFolder;
    for (const char* name : {"LLAMA_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"}) unsetenv(name);
    setenv("HOME", home->path().c_str(), 1);
    setenv("XDG_CACHE_HOME", home->file("cache").c_str(), 1);
    setenv("HF_HUB_CACHE", home->file("hf").c_str(), 1);
    setenv("OLLAMA_MODELS", home->file("ollama").c_str(), 1);
    setenv("MODEL_ENDPOINT", "http://127.0.0.1:1/", 1);  // no network
  }
  static void TearDownTestSuite() { delete home; }
  void SetUp() override {
    for (const char* name : {"hf", "ollama", "cache"}) fs::remove_all(*home / name);
  }

  static fs::path blob(const std::string& digest) {
    return *home / "ollama" / "blobs" / ("sha256-" + digest);
  }
  static void ollama(const std::string& place, const std::string& manifest) {
    test::write_file(*home / "ollama" / "manifests" / place, manifest);
  }
  static std::string manifest(const std::string& digest) {
    return R"({"schemaVersion":2,"layers":[{"mediaType":"application/x.image.license","digest":"x"},)"
           R"({"mediaType":"application/x.image.model","digest":")" +
           digest + R"("}]})";
  }
  // A file of a repository, as a link to a blob.
  static fs::path repository(const std::string& repo, const std::string& file) {
    const fs::path folder = *home / "hf" / ("models--" + repo);
    test::write_file(folder / "refs" / "main", kCommit);
    test::write_file(folder / "blobs" / file, "GGUF");
    fs::create_directories((folder / "snapshots" / kCommit / file).parent_path());
    fs::create_symlink(folder / "blobs" / file, folder / "snapshots" / kCommit / file);
    return folder / "snapshots" / kCommit / file;
  }
  static std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const LocalModel& model : local_models()) out.push_back(model.name);
    return out;
  }

  inline static test::TempFolder* home = nullptr;
};

using Names = std::vector<std::string>;

TEST_F(HubTest, NothingThere) {
  EXPECT_TRUE(local_models().empty());
  EXPECT_EQ(model_folders(),
            (std::vector<fs::path>{*home / "hf", *home / "cache" / "llama.cpp", *home / "ollama"}));
}

TEST_F(HubTest, OllamaNamesAsOllamaPrintsThem) {
  test::write_file(blob(kDigest), "GGUF");
  ollama("registry.example/library/tiny/latest", manifest("sha256:" + kDigest));
  ollama("registry.example/library/tiny/7b", manifest("sha256:" + kDigest));
  ollama("registry.example/me/mine/latest", manifest("sha256:" + kDigest));
  ollama("other.example/user/repo/Q8_0", manifest("sha256:" + kDigest));
  EXPECT_EQ(names(),
            (Names{"me/mine:latest", "other.example/user/repo:Q8_0", "tiny:7b", "tiny:latest"}));
  for (const char* name : {"tiny", "tiny:7b", "tiny:latest", "me/mine"}) {
    EXPECT_EQ(find_model(name), blob(kDigest)) << name;
  }
}

TEST_F(HubTest, HostileManifestsHaveAReason) {
  const test::TempFolder outside;
  outside.write("secret", "GGUF");
  fs::create_directories(blob("").parent_path());
  fs::create_symlink(outside / "secret", blob(std::string(64, 'b')));
  const std::pair<const char*, std::string> cases[] = {
      {"not JSON", "{"},
      {"a list", "[]"},
      {"layers", R"({"layers":{"mediaType":5}})"},
      {"layer", R"({"layers":[null,5,{"mediaType":7},{"mediaType":"image.modelx"}]})"},
      {"no digest", R"({"layers":[{"mediaType":"image.model"}]})"},
      {"path", manifest("sha256:../../secret")},
      {"short", manifest("sha256:" + std::string(63, 'a'))},
      {"letters", manifest("sha256:" + std::string(64, 'g'))},
      {"kind", manifest("sha512-" + kDigest)},
      {"gone", manifest("sha256:" + std::string(64, 'd'))},
      {"link", manifest("sha256:" + std::string(64, 'b'))},
      {"large", manifest("sha256:" + kDigest) + std::string(1 << 20, ' ')},
      {"deep", std::string(40, '[') + std::string(40, ']')},
  };
  test::write_file(blob(kDigest), "GGUF");
  for (const auto& [name, text] : cases) ollama(std::string("registry.x/library/m/") + name, text);
  // Neither links nor other depths are manifests.
  fs::create_symlink(outside.path(), *home / "ollama" / "manifests" / "registry.x" / "linked");
  fs::create_symlink(outside / "secret", *home / "ollama/manifests/registry.x/library/m/linked");
  ollama("registry.x/file", manifest("sha256:" + kDigest));
  ollama("registry.x/library/m/folder/file", manifest("sha256:" + kDigest));
  const std::vector<LocalModel> models = local_models();
  EXPECT_EQ(models.size(), std::size(cases));
  for (const LocalModel& model : models) {
    EXPECT_TRUE(model.path.empty()) << model.name;
    EXPECT_FALSE(model.problem.empty()) << model.name;
    EXPECT_ERROR(find_model(model.name), failed, model.problem);
  }
}

TEST_F(HubTest, RepositoriesWithQuantizationsAndFolders) {
  const fs::path q8 = repository("user--one", "one-Q8_0.gguf");
  const fs::path q4 = repository("user--one", "one-q4_k_m.gguf");
  repository("user--one", "mmproj-one-F16.gguf");
  const fs::path first = repository("user--two", "Q6_K/two-Q6_K-00001-of-00002.gguf");
  const fs::path config = repository("user--three", "config.json");
  repository("user--three", "model.safetensors");
  repository("user--four", "config.json");
  EXPECT_EQ(names(), (Names{"user/one:Q4_K_M", "user/one:Q8_0", "user/three", "user/two:Q6_K"}));
  EXPECT_EQ(find_model("user/one"), q4);
  EXPECT_EQ(find_model("user/one:q8_0"), q8);
  EXPECT_EQ(find_model("user/three"), config.parent_path());
  EXPECT_EQ(download("user/one:Q8_0"), q8);
  // Without its second part it has to be downloaded.
  EXPECT_ERROR(download("user/two"), failed, "user/two", "127.0.0.1:1");
  repository("user--two", "Q6_K/two-Q6_K-00002-of-00002.gguf");
  EXPECT_EQ(download("user/two"), first);
}

TEST_F(HubTest, FilesInLlamaCppsFolder) {
  const fs::path folder = *home / "cache" / "llama.cpp";
  for (const char* name : {"a.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf", "c.txt"}) {
    test::write_file(folder / name, "GGUF");
  }
  EXPECT_EQ(names(), (Names{"a", "b"}));
  EXPECT_EQ(find_model("b"), folder / "b-00001-of-00002.gguf");
}

TEST_F(HubTest, PathsComeFirstAndOtherNamesGetTheNearest) {
  const std::string path = home->write("tiny:latest", "").string();
  EXPECT_EQ(find_model(path), path);
  for (const char* name : {"gemma3:4b", "gemma3:12b", "gemma3:1b", "gemma3:27b", "llama3:8b"}) {
    ollama("registry.x/library/" + std::string(name).replace(6, 1, "/"), "{");
  }
  EXPECT_ERROR(find_model("nosuch.gguf"), failed, "cannot open \"nosuch.gguf\"");
  const auto hint = [](const char* name) {
    return test::error_of([&] { find_model(name); }).hint();
  };
  EXPECT_EQ(hint("nosuch"), "check the path; mrrope models lists those that have a name here");
  EXPECT_TRUE(contains(hint("gema3:4b"), "did you mean gemma3:4b or gemma3:1b? "));
  EXPECT_TRUE(
      contains(hint("./gemma3.gguf"), "did you mean gemma3:12b or gemma3:1b or gemma3:27b? "));
}

}  // namespace
}  // namespace mrrope::hub
