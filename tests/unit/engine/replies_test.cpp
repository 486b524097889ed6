// SPDX-License-Identifier: Apache-2.0
// What servers may say, and what hostile ones do.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "engine/remote/remote.h"
#include "mrrope/error.h"
#include "support/expect_error.h"

namespace mrrope::engine {
namespace {

void expect_error(ErrorKind kind, const std::string& words, const std::function<void()>& action) {
  const Error e = test::error_of([&] { action(); });
  EXPECT_EQ(e.kind(), kind) << e.what();
  EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
}

TEST(Replies, ReadsModelsOfThreeServers) {
  const auto llama = parse_models(
      R"({"object":"list","models":[],"data":[{"id":"tiny.gguf","owned_by":"llamacpp",
          "meta":{"n_ctx_train":1024,"n_vocab":4096}}]})");
  EXPECT_EQ(llama.at(0).name, "tiny.gguf");
  EXPECT_EQ(llama.at(0).trained, 1024);
  EXPECT_EQ(llama.at(0).context, 0);
  const auto vllm = parse_models(
      R"({"data":[{"id":"a/b","owned_by":"vllm","max_model_len":131072},{"id":"lora"}]})");
  EXPECT_EQ(vllm.at(0).context, 131072);
  EXPECT_EQ(vllm.at(1).name, "lora");
  EXPECT_EQ(parse_models(R"({"data":[{"id":"x","owned_by":"a\u001b[2Jb"}]})").at(0).owner,
            "a?[2Jb");
}

TEST(Replies, ReadsCompletionsAndChats) {
  const RemoteAnswer plain = parse_answer(
      R"({"choices":[{"text":" 42","index":0,"logprobs":null,"finish_reason":"length"}],
          "usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}})",
      false);
  EXPECT_EQ(plain.text, " 42");
  EXPECT_EQ(plain.finish, "length");
  EXPECT_EQ(plain.prompt_tokens, 10);
  const RemoteAnswer chat = parse_answer(
      R"({"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]})",
      true);
  EXPECT_EQ(chat.text, "");
  EXPECT_FALSE(chat.prompt_tokens.has_value());
  // What is not a count is a wrong value, not a crash.
  for (const char* count : {"-5", "1e3", "\"7\"", "18446744073709551615", "[]"}) {
    const RemoteAnswer odd = parse_answer(
        std::string(
            R"({"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":)") +
            count + "}}",
        false);
    EXPECT_EQ(odd.prompt_tokens, -1) << count;
  }
}

TEST(Replies, HostileRepliesAreRefused) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "[";
  for (const std::string& body : std::vector<std::string>{
           "", "null", "5", "[]", "{", "{}", deep, "{\"choices\":" + deep, R"({"choices":5})",
           R"({"choices":[]})", R"({"choices":[null]})", R"({"choices":[[]]})",
           R"({"choices":[{"text":5,"finish_reason":"stop"}]})", R"({"choices":[{"text":"a"}]})",
           R"({"choices":[{"text":"a","finish_reason":7}]})",
           R"({"choices":[{"text":null,"finish_reason":"stop"}]})",
           "{\"choices\":[{\"text\":\"\xff\",\"finish_reason\":\"stop\"}]}",
           R"({"choices":[{"text":"a","finish_reason":"stop"}]} tail)"}) {
    expect_error(ErrorKind::corrupt, "the server's reply", [&] { parse_answer(body, false); });
    expect_error(ErrorKind::corrupt, "the server's reply", [&] { parse_answer(body, true); });
    expect_error(ErrorKind::corrupt, "the server's reply", [&] { parse_models(body); });
    expect_error(ErrorKind::corrupt, "the server's reply", [&] { parse_tokens(body); });
    error_text(body);
  }
  for (const char* body : {R"({"data":[{}]})", R"({"data":[{"id":7}]})", R"({"data":[{"id":""}]})",
                           R"({"data":[]})", R"({"data":"x"})"}) {
    expect_error(ErrorKind::corrupt, "the server's reply", [&] { parse_models(body); });
  }
  for (const char* body :
       {R"({"tokens":[-1]})", R"({"tokens":[1.5]})", R"({"tokens":["a"]})",
        R"({"tokens":[4294967296]})", R"({"tokens":[[1]]})", R"({"tokens":{}})"}) {
    expect_error(ErrorKind::corrupt, "the server's reply", [&] { parse_tokens(body); });
  }
  EXPECT_EQ(parse_tokens(R"({"tokens":[0, 2147483647]})").back(), 2147483647);
  EXPECT_EQ(parse_text(R"({"prompt":"a"})"), "a");
  EXPECT_EQ(parse_props_context(R"({"default_generation_settings":{"n_ctx":-4}})"), 0);
}

TEST(Replies, ErrorMessagesAreShortAndPrintable) {
  EXPECT_EQ(error_text(R"({"error":{"message":"too\nlong","code":400}})"), "too?long");
  EXPECT_EQ(error_text(R"({"object":"error","message":"no"})"), "no");
  EXPECT_EQ(error_text(R"({"error":"busy"})"), "busy");
  EXPECT_EQ(error_text("\x1b[31mred"), "?[31mred");
  EXPECT_LE(error_text(std::string(100000, 'x')).size(), 200u);
}

TEST(Replies, RetryAfterIsANumberOrADate) {
  EXPECT_EQ(retry_after_seconds("", 0), 0);
  EXPECT_EQ(retry_after_seconds("7", 0), 7);
  EXPECT_EQ(retry_after_seconds("100000", 0), 300);
  EXPECT_EQ(retry_after_seconds("-3", 0), 0);
  EXPECT_EQ(retry_after_seconds("nan", 0), 0);
  EXPECT_EQ(retry_after_seconds("soon", 0), 0);
  EXPECT_EQ(retry_after_seconds("Thu, 01 Jan 1970 00:01:40 GMT", 60), 40);
  EXPECT_EQ(retry_after_seconds("Thu, 01 Jan 1970 00:01:40 GMT", 600), 0);
}

TEST(Urls, AreReadStrictly) {
  const Url url = parse_url("http://example.org:8000/a/v1/");
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, 8000);
  EXPECT_EQ(url.path, "/a/v1");
  EXPECT_FALSE(url.loopback());
  EXPECT_EQ(parse_url("http://[::1]:80/v1").host, "[::1]");
  EXPECT_TRUE(parse_url("http://[::1]/v1").loopback());
  EXPECT_FALSE(parse_url("http://127.evil.example:80/v1").loopback());
  EXPECT_EQ(parse_url("http://h/v1").port, 80);
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  EXPECT_EQ(parse_url("https://h/v1").port, 443);
#endif
  for (const char* bad : {"", "h:80", "http://", "http://:80/v1", "http://h:0/v1", "http://h:x/v1",
                          "http://h:70000/v1", "http://h/v1?key=1", "http://h/v1#a", "http://h /v1",
                          "http://h\r\nX: y/v1", "ftp://h/v1", "http://u:p@h/v1"}) {
    expect_error(ErrorKind::usage, "the endpoint", [&] { parse_url(bad); });
  }
}

}  // namespace
}  // namespace mrrope::engine
