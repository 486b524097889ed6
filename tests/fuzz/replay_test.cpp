// SPDX-License-Identifier: Apache-2.0
// The corpus in ordinary builds: seeds, and whatever a fuzzer once found.

#include "fuzz/targets.h"
#include "support/test.h"

namespace mrrope {
namespace {

std::vector<std::filesystem::path> corpus(const char* name) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(MRROPE_CORPUS_DIR) / name)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const char* name, void (*target)(std::span<const std::byte>)) {
  const auto files = corpus(name);
  ASSERT_GE(files.size(), 5u);
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename().string());
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NO_THROW(target(std::as_bytes(std::span(bytes))));
    // A cheap neighbourhood: each byte of a small file changed, each length cut.
    std::string changed = bytes;
    for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 512); ++i) {
      changed[i] = static_cast<char>(changed[i] ^ 0x81);
      EXPECT_NO_THROW(target(std::as_bytes(std::span(changed))));
      changed[i] = bytes[i];
      EXPECT_NO_THROW(target(std::as_bytes(std::span(bytes).first(i))));
    }
  }
}

TEST(FuzzCorpus, Gguf) { replay("gguf", fuzz::gguf); }
TEST(FuzzCorpus, Export) { replay("export", fuzz::gguf_export); }
TEST(FuzzCorpus, Plan) { replay("plan", fuzz::plan); }
TEST(FuzzCorpus, Profile) { replay("profile", fuzz::profile); }
TEST(FuzzCorpus, Safetensors) { replay("safetensors", fuzz::safetensors); }
TEST(FuzzCorpus, Config) { replay("config", fuzz::config); }
TEST(FuzzCorpus, Run) { replay("run", fuzz::run); }
TEST(FuzzCorpus, Request) { replay("request", fuzz::request); }
TEST(FuzzCorpus, Reply) { replay("reply", fuzz::reply); }

}  // namespace
}  // namespace mrrope
