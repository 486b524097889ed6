// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"
#include "formats/plan_file.h"
#include "support/test.h"

namespace mrrope {
namespace {

// The examples of FIPS 180-4 and NIST's one million times "a".
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameHash) {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(char(i * 7));
  for (std::size_t size = 0; size <= text.size(); size += 13) {
    const std::string whole = text.substr(0, size);
    for (const std::size_t step : {1u, 3u, 63u, 64u, 65u}) {
      Sha256 hash;
      for (std::size_t i = 0; i < size; i += step) hash.update(whole.substr(i, step));
      EXPECT_EQ(hash.hex(), sha256(whole)) << size << " " << step;
    }
  }
}

TEST(PlanDigest, DependsOnTheNumbersAndNotOnTheReach) {
  const Geometry g{16, 10000, 64, Pairing::halves, {}, 1};
  Extension e{.method = "pro", .scale = 4};
  const Plan plan = make_plan(g, e);
  const std::string four = ladder_digest(make_ladder(plan, 100));
  e.scale = 8;
  const std::string eight = ladder_digest(make_ladder(make_plan(g, e)));
  EXPECT_EQ(four, sha256(plan_json(plan).dump()).substr(0, 16));
  EXPECT_NE(four, eight);
  EXPECT_EQ(ladder_digest(make_ladder(plan, 200)), four);
  EXPECT_NE(ladder_digest(make_ladder(g, parse_method("elastic:pro"), 512)), eight);
}

TEST(ModelDigest, HashesSmallFilesWholeAndSamplesLargeOnes) {
  const test::TempFolder dir;
  test::write_file(dir / "small", "abc");
  EXPECT_EQ(model_digest({dir / "small"}), "sha256:" + sha256("3\nabc"));
  EXPECT_EQ(model_digest({dir / "small", dir / "small"}), "sha256:" + sha256("3\nabc3\nabc"));

  test::write_file(dir / "large", "head");
  std::filesystem::resize_file(dir / "large", (std::uintmax_t(70) << 20) + 5);
  const std::string before = model_digest({dir / "large"});
  EXPECT_EQ(before.substr(0, 8), "sampled:");
  const auto poke = [&](std::streamoff at) {
    std::fstream file(dir / "large", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put('x');
  };
  poke((70 << 20) + 4);  // the last byte
  const std::string after = model_digest({dir / "large"});
  EXPECT_NE(before, after);
  poke(5);
  EXPECT_NE(after, model_digest({dir / "large"}));
}

TEST(ModelDigest, MissingModelIsNamed) {
  const test::TempFolder dir;
  EXPECT_ERROR(model_digest({dir / "gone.gguf"}), failed, "gone.gguf");
}

}  // namespace
}  // namespace mrrope
