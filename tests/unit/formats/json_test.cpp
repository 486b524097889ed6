// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace mrrope {
namespace {

using nlohmann::json;
using test::TempFolder;

json parse(std::string_view text) { return parse_json(text, "x.json"); }

TEST(Json, ReadsEveryKindOfValue) {
  const json value = parse(R"({"a": [1, -2, 2.5, true, null, "s"], "b": {"c": {}}})");
  EXPECT_EQ(value["a"].size(), 6u);
  EXPECT_EQ(value["a"][1], -2);
  EXPECT_EQ(value["a"][2], 2.5);
  EXPECT_TRUE(value["b"]["c"].empty());
  EXPECT_EQ(parse("3"), 3);
  EXPECT_EQ(parse(" [] "), json::array());
}

TEST(Json, ReadsTheSameAsTheLibraryItself) {
  const std::string text = R"({"b": [[], {}, [1, {"x": [2]}]], "a": "\u00e9\n", "n": -0.5e-3})";
  EXPECT_EQ(parse(text), json::parse(text));
}

TEST(Json, NamesTheByteOfASyntaxError) {
  EXPECT_ERROR(parse(""), corrupt, "x.json", "byte");
  EXPECT_ERROR(parse("{\"a\": 1,}"), corrupt, "byte 9");
  EXPECT_ERROR(parse("{\"a\": 1} x"), corrupt, "byte 10");
  EXPECT_ERROR(parse("{\"a\": NaN}"), corrupt, "byte 7");
  EXPECT_ERROR(parse("{\"a\": 1 /* one */}"), corrupt, "byte");
}

TEST(Json, RefusesEveryTruncation) {
  const std::string text = R"({"a": [1, 2.5, "x"], "b": {"c": null}})";
  for (std::size_t n = 0; n < text.size(); ++n) {
    EXPECT_ERROR(parse(text.substr(0, n)), corrupt, "x.json");
  }
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_ERROR(parse(R"({"a": 1, "b": 2, "a": 3})"), corrupt, "\"a\"", "twice");
  EXPECT_ERROR(parse(R"({"o": {"k": 1, "k": 1}})"), corrupt, "\"k\"");
  EXPECT_NO_THROW(parse(R"([{"a": 1}, {"a": 2}])"));
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
  EXPECT_ERROR(parse(R"({"a": "\ud800"})"), corrupt, "surrogate");
}

TEST(Json, RefusesNumbersThatAreTooLarge) {
  EXPECT_ERROR(parse("{\"a\": 1e999}"), corrupt, "1e999");
  EXPECT_ERROR(parse("{\"a\": -1e999}"), corrupt, "-1e999");
  EXPECT_EQ(parse("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse("18446744073709551616"), 18446744073709551616.0);
}

TEST(Json, KeepsControlCharactersOutOfMessages) {
  const Error error = test::error_of([&] { parse("{\"a\": \"\x1b[2J\"}"); });
  EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos) << error.what();
  EXPECT_ERROR(parse(R"({"\u001b": 1, "\u001b": 1})"), corrupt, "\\x1b");
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
