// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "formats/facts.h"
#include "mrrope/mrrope.h"
#include "support/gguf_writer.h"
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
  const std::string text = R"({"a": [1, 2.5, "x"], "b": {"c": null}})";
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

}  // namespace
}  // namespace mrrope
