// SPDX-License-Identifier: Apache-2.0
#include "formats/facts.h"
#include "models/gguf_writer.h"
#include "support/test.h"

namespace mrrope {
namespace {

std::string file(const std::string& header, std::size_t data) {
  return le<std::uint64_t>(header.size()) + header + std::string(data, '\0');
}

std::uint64_t read(const std::string& bytes) {
  return safetensors_bytes(Source::memory(std::as_bytes(std::span(bytes)), "x.safetensors"));
}

const char* const kGood =
    R"({"__metadata__": {"format": "pt"},
        "b": {"dtype": "F16", "shape": [2, 3], "data_offsets": [8, 20]},
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "empty": {"dtype": "I64", "shape": [0, 5], "data_offsets": [8, 8]},
        "scalar": {"dtype": "BF16", "shape": [], "data_offsets": [20, 22]}})";

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string bytes = file(kGood, 22);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_ERROR(read(bytes.substr(0, n)), corrupt, "x.safetensors");
  }
}

TEST(Safetensors, RefusesHeaderLengthsPastTheFileOrTheLimit) {
  EXPECT_ERROR(read(le(UINT64_MAX) + "{}"), corrupt, "18446744073709551615");
  EXPECT_ERROR(read(le<std::uint64_t>(3) + "{}"), corrupt, "header of 3 bytes");
  EXPECT_ERROR(read(le<std::uint64_t>(0) + "{}"), corrupt, "header of 0 bytes");
  const TempFolder folder;
  const auto big =
      folder.write_sparse("big.safetensors", le<std::uint64_t>(100'000'001) + "{", 200'000'000);
  EXPECT_ERROR(safetensors_bytes(Source::open(big)), corrupt, "100000001", "100000000");
}

TEST(Weights, MustBeComplete) {
  const TempFolder folder;
  EXPECT_EQ(find_weights(folder.path()).bytes, 0u);
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"x": "m1.safetensors", "y": "m2.safetensors"}})");
  EXPECT_EQ(find_weights(folder.path()).bytes, 0u);
  folder.write("m1.safetensors", file(kGood, 22));
  EXPECT_ERROR(find_weights(folder.path()), failed, "m2.safetensors", "1 of 2");
  folder.write("m2.safetensors", file(kGood, 22));
  const Weights weights = find_weights(folder.path());
  EXPECT_EQ(weights.bytes, 44u);
  EXPECT_EQ(weights.files.size(), 2u);
  folder.write("m2.safetensors", "damaged");
  EXPECT_ERROR(find_weights(folder.path()), corrupt, "m2.safetensors");
}

TEST(Weights, MayBeInTheHubCache) {
  const TempFolder folder;
  const auto snapshot = folder.path() / "models--a--b/snapshots/abc";
  folder.write("models--a--b/blobs/123", file(kGood, 22));
  folder.write("elsewhere", file(kGood, 22));
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_symlink("../../blobs/123", snapshot / "model.safetensors");
  EXPECT_EQ(find_weights(snapshot).bytes, 22u);
  std::filesystem::remove(snapshot / "model.safetensors");
  std::filesystem::create_symlink("../../../elsewhere", snapshot / "model.safetensors");
  EXPECT_ERROR(find_weights(snapshot), corrupt, "leads out");
}

TEST(Weights, MayBeThoseOfTheFolderAnExportWasMadeFrom) {
  const TempFolder folder;
  folder.write("in/model.safetensors", file(kGood, 22));
  folder.write("out/config.json", "{}");
  std::filesystem::create_symlink("../in/model.safetensors", folder / "out/model.safetensors");
  EXPECT_ERROR(find_weights(folder / "out"), corrupt, "leads out");
  folder.write("in/config.json", "{}");
  EXPECT_EQ(find_weights(folder / "out").bytes, 22u);
  // From the Hub's cache, whose files are links themselves.
  folder.write("a/blobs/123", file(kGood, 22));
  folder.write("a/snapshots/abc/config.json", "{}");
  const auto snapshot = folder / "a/snapshots/abc";
  std::filesystem::create_symlink("../../blobs/123", snapshot / "model.safetensors");
  std::filesystem::remove(folder / "out/model.safetensors");
  std::filesystem::create_symlink(snapshot / "model.safetensors", folder / "out/model.safetensors");
  EXPECT_EQ(find_weights(folder / "out").bytes, 22u);
}

}  // namespace
}  // namespace mrrope
