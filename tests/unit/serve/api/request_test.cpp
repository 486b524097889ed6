// SPDX-License-Identifier: Apache-2.0
#include "serve/api/request.h"

#include <gtest/gtest.h>

#include <functional>

namespace mrrope::serve {
namespace {

constexpr BodyLimits kLargest{100000};

// The refusal of a body: status, field, message.
struct Refusal {
  int status = 0;
  std::string field, message;
};

Refusal refusal(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const ApiError& error) {
    return {error.status, error.param, error.what()};
  }
  return {};
}

Refusal completion(const std::string& body) {
  return refusal([&] { parse_completion(body, kLargest); });
}
Refusal chat(const std::string& body) {
  return refusal([&] { parse_chat(body, kLargest); });
}

TEST(Request, ReadsWhatOpenAiDocuments) {
  const CompletionRequest r = parse_completion(
      R"({"model": "m", "prompt": "Once", "max_tokens": 7, "temperature": 0.5, "top_p": 0.9,
          "top_k": 11, "min_p": 0.1, "seed": 4294967295, "stop": ["a", "b"], "logprobs": 2,
          "stream": true, "stream_options": {"include_usage": true}, "n": 1, "user": "me"})",
      kLargest);
  EXPECT_FALSE(r.chat);
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.prompt, "Once");
  EXPECT_EQ(r.length, 7);
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.sampling.top_p, 0.9);
  EXPECT_EQ(r.sampling.top_k, 11);
  EXPECT_EQ(r.sampling.min_p, 0.1);
  EXPECT_EQ(r.sampling.seed, 4294967295U);
  EXPECT_TRUE(r.has_seed);
  EXPECT_EQ(r.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r.logprobs, 2);
  EXPECT_TRUE(r.stream && r.stream_usage);
  EXPECT_EQ(r.ignored, (std::vector<std::string>{"user"}));
}

TEST(Request, HasOpenAisDefaults) {
  const CompletionRequest r = parse_completion(R"({"prompt": "x", "stop": null})", kLargest);
  EXPECT_EQ(r.sampling.temperature, 1);
  EXPECT_EQ(r.sampling.top_p, 1);
  EXPECT_EQ(r.sampling.top_k, 0);
  EXPECT_EQ(r.sampling.min_p, 0);
  EXPECT_FALSE(r.length || r.has_seed || r.logprobs || r.stream);
  EXPECT_TRUE(r.ignored.empty());
}

TEST(Request, AcceptsPromptsInEveryFormClientsSend) {
  EXPECT_EQ(parse_completion(R"({"prompt": ["one"]})", kLargest).prompt, "one");
  const std::vector<Token> tokens = {1, 5, 9};
  EXPECT_EQ(parse_completion(R"({"prompt": [1, 5, 9]})", kLargest).prompt_tokens, tokens);
  EXPECT_EQ(parse_completion(R"({"prompt": [[1, 5, 9]]})", kLargest).prompt_tokens, tokens);
  EXPECT_EQ(completion(R"({"prompt": ["a", "b"]})").field, "prompt");
  EXPECT_EQ(completion(R"({"prompt": [[1], [2]]})").field, "prompt");
  EXPECT_EQ(completion(R"({"prompt": [1, "a"]})").field, "prompt");
}

TEST(Request, ReadsMessages) {
  const CompletionRequest r = parse_chat(
      R"({"messages": [{"role": "system", "content": "s"},
                       {"role": "user", "content": [{"type": "text", "text": "a"},
                                                    {"type": "text", "text": "b"}]},
                       {"role": "assistant", "content": null}],
          "max_completion_tokens": 9, "logprobs": true, "top_logprobs": 3, "tools": []})",
      kLargest);
  ASSERT_EQ(r.messages.size(), 3U);
  EXPECT_EQ(r.messages[1].content, "a\nb");
  EXPECT_EQ(r.messages[2].content, "");
  EXPECT_EQ(r.length, 9);
  EXPECT_EQ(r.logprobs, 3);
  const Refusal image = chat(
      R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})");
  EXPECT_EQ(image.field, "messages[0].content[0]");
  EXPECT_NE(image.message.find("image_url"), std::string::npos);
  EXPECT_EQ(chat(R"({"messages": [{"role": "user", "content": "x", "tool_calls": [1]}]})").field,
            "messages[0].tool_calls");
}

TEST(Request, RefusalsNameTheField) {
  const char* fields[][2] = {{"max_tokens", "-1"},
                             {"max_tokens", "1e300"},
                             {"max_tokens", "0"},
                             {"max_tokens", "2.5"},
                             {"max_tokens", "[]"},
                             {"temperature", "-1"},
                             {"temperature", "\"x\""},
                             {"top_p", "1.01"},
                             {"min_p", "-0.1"},
                             {"top_k", "-2"},
                             {"seed", "1e10"},
                             {"stop", "[\"\"]"},
                             {"stop", "{}"},
                             {"n", "2"},
                             {"best_of", "3"},
                             {"echo", "true"},
                             {"suffix", "\"end\""},
                             {"n_predict", "-2"},
                             {"n_predict", "0"},
                             {"cache_prompt", "1"},
                             {"grammar", "\"root ::= x\""},
                             {"guided_json", "{\"type\": \"object\"}"},
                             {"json_schema", "{\"type\": \"object\"}"},
                             {"repeat_penalty", "1.1"},
                             {"repetition_penalty", "1.05"},
                             {"mirostat", "2"},
                             {"typical_p", "0.9"},
                             {"chat_template_kwargs", "{\"enable_thinking\": false}"},
                             {"continue_final_message", "true"},
                             {"add_generation_prompt", "false"},
                             {"ignore_eos", "true"},
                             {"response_format", "{\"type\": \"json_object\"}"},
                             {"frequency_penalty", "0.5"},
                             {"presence_penalty", "1"},
                             {"logit_bias", "{\"1\": 2}"},
                             {"logprobs", "21"},
                             {"stream", "\"yes\""},
                             {"stream_options", "true"},
                             {"model", "5"}};
  for (const auto& [name, value] : fields) {
    const Refusal r =
        completion(std::string("{\"prompt\": \"x\", \"") + name + "\": " + value + "}");
    EXPECT_EQ(r.status, 400) << name << " " << value;
    EXPECT_EQ(r.field, name);
    EXPECT_NE(r.message.find(name), std::string::npos);
  }
  for (const char* body :
       {"", "{", "[]", "5", "{\"prompt\": \"\xff\"}", "{\"prompt\": \"\\ud800\"}",
        "{\"prompt\": 1e999}", "{\"prompt\": \"a\", \"prompt\": \"b\"}"}) {
    EXPECT_EQ(completion(body).status, 400) << body;
  }
  EXPECT_EQ(completion("{\"prompt\": \"" + std::string(kLargest.bytes, 'a') + "\"}").status, 400);
  EXPECT_EQ(completion(std::string(5000, '[')).status, 400);
}

TEST(Request, AcceptsValuesThatChangeNothing) {
  const CompletionRequest r = parse_completion(
      R"({"prompt": "x", "grammar": "", "guided_json": null, "repeat_penalty": 1.0,
          "repetition_penalty": 1, "mirostat": 0, "mirostat_tau": 5, "typical_p": 1.0,
          "chat_template_kwargs": {}, "continue_final_message": false, "cache_prompt": true,
          "presence_penalty": 0.0, "response_format": {"type": "text"}})",
      kLargest);
  EXPECT_EQ(r.ignored, (std::vector<std::string>{"mirostat_tau"}));
  EXPECT_TRUE(r.cache_prompt);
}

// Many values in a short text take far more memory than the text.
TEST(Request, LimitsTheNumberOfValues) {
  const auto body = [](std::size_t lists) {
    std::string text = R"({"prompt": "x", "user": [)";
    for (std::size_t i = 0; i < lists; ++i) text += i == 0 ? "[]" : ",[]";
    return text + "]}";
  };
  const BodyLimits limits{1 << 20, 1000};
  EXPECT_EQ(parse_completion(body(990), limits).prompt, "x");
  const Refusal many = refusal([&] { parse_completion(body(1000), limits); });
  EXPECT_EQ(many.status, 400);
  EXPECT_NE(many.message.find("values"), std::string::npos) << many.message;
}

TEST(Request, ReadsTokens) {
  const TokenizeRequest r = parse_tokenize(R"({"content": "x", "add_special": true})", kLargest);
  EXPECT_EQ(r.content, "x");
  EXPECT_TRUE(r.add_special && r.parse_special);
  EXPECT_EQ(parse_detokenize(R"({"tokens": [3, 4]})", kLargest), (std::vector<Token>{3, 4}));
  EXPECT_EQ(refusal([] { parse_detokenize(R"({"tokens": [-1]})", kLargest); }).field, "tokens");
  EXPECT_EQ(refusal([] { parse_detokenize(R"({"tokens": [4294967296]})", kLargest); }).field,
            "tokens");
  EXPECT_EQ(refusal([] { parse_tokenize("{}", kLargest); }).field, "content");
}

}  // namespace
}  // namespace mrrope::serve
