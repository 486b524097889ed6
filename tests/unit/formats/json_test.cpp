// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "base/sha256.h"
#include "formats/facts.h"
#include "formats/plan_file.h"
#include "models/gguf_writer.h"
#include "mrrope/mrrope.h"
#include "support/test.h"

namespace mrrope {
namespace {

json parse(std::string_view text) { return parse_json(text, "x.json"); }

Source memory(const std::string& bytes) {
  return Source::memory(std::as_bytes(std::span(bytes)), "x.file");
}

// Through the C interface.
std::string made(const std::string& request) {
  char* out = nullptr;
  const int code = mrrope_make(request.c_str(), &out);
  EXPECT_TRUE(code != 0 && out == nullptr);
  return "[" + std::to_string(code) + "] " + mrrope_last_message() + "\n    " + mrrope_last_hint();
}

TEST(Files, AreReadOrRefused) {
  test::expect_transcript("files", [](const std::string& input) {
    const std::size_t word = input.find(' ');
    const std::string what = input.substr(0, word);
    const std::string text = input.substr(word + 1);
    return test::or_error([&]() -> std::string {
      if (what == "json") return parse(text).dump();
      if (what == "make") return made(text);
      if (what == "index") return json(read_safetensors_index(memory(text))).dump();
      const std::size_t size = text.find(' ');
      const std::string header = text.substr(size + 1);
      const std::string bytes = test::le<std::uint64_t>(header.size()) + header +
                                std::string(std::stoul(text.substr(0, size)), '\0');
      return std::to_string(safetensors_bytes(memory(bytes)));
    });
  });
}

TEST(Json, RefusesEveryTruncation) {
  const std::string text = R"({"a": [1, 2.5, "x"], "b": {"c": null, "rope_theta": 500000.0}})";
  for (std::size_t n = 0; n < text.size(); ++n) {
    EXPECT_ERROR(parse(text.substr(0, n)), corrupt, "x.json");
  }
}

TEST(Json, RefusesDeepNesting) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse(nested(64)));
  EXPECT_ERROR(parse(nested(65)), corrupt, "64 levels");
  EXPECT_ERROR(parse(nested(2000)), corrupt, "64 levels");
  EXPECT_ERROR(parse(std::string(1'000'000, '[')), corrupt, "64 levels");
  std::string objects;
  for (int i = 0; i < 2000; ++i) objects += "{\"a\":";
  EXPECT_ERROR(parse(objects), corrupt, "64 levels");
}

TEST(Json, RefusesInvalidUtf8) {
  EXPECT_ERROR(parse("{\"a\": \"\xff\xfe\"}"), corrupt, "UTF-8");
  EXPECT_ERROR(parse("\xff\xfe{\x00"), corrupt, "x.json");
  EXPECT_ERROR(parse("{\"\xed\xa0\x80\": 1}"), corrupt, "UTF-8");
}

TEST(Json, KeepsControlCharactersOutOfMessages) {
  const Error error = test::error_of([&] { parse("{\"a\": \"\x1b[2J\"}"); });
  EXPECT_FALSE(contains(error.what(), "\x1b"));
}

TEST(Json, RefusesALargeFileUnread) {
  const TempFolder folder;
  const auto path = folder.write_sparse("config.json", "{", std::uint64_t{1} << 30);
  EXPECT_ERROR(read_json(path), corrupt, "1073741824", "16777216");
  const JsonLimits small{10, 64};
  EXPECT_ERROR(parse_json("[1, 2, 3, 4]", "x", small), corrupt, "12 bytes", "10");
}

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
