// SPDX-License-Identifier: Apache-2.0
#include "serve/api/request.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/json.h"
#include "serve/serve_files.h"
#include "support/allocations.h"

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

CompletionRequest parse_completion(std::string_view body, const BodyLimits& limits = kLargest) {
  return parse_request(body, Route::completion, limits);
}
CompletionRequest parse_llama_completion(std::string_view body,
                                         const BodyLimits& limits = kLargest) {
  return parse_request(body, Route::llama_completion, limits);
}
CompletionRequest parse_chat(std::string_view body, const BodyLimits& limits = kLargest) {
  return parse_request(body, Route::chat, limits);
}

Refusal completion(const std::string& body) {
  return refusal([&] { parse_completion(body); });
}
Refusal chat(const std::string& body) {
  return refusal([&] { parse_chat(body); });
}

TEST(Request, ReadsWhatOpenAiDocuments) {
  const CompletionRequest r = parse_completion(
      R"({"model": "m", "prompt": "Once", "max_tokens": 7, "temperature": 0.5, "top_p": 0.9,
          "top_k": 11, "min_p": 0.1, "seed": 4294967295, "stop": ["a", "b"], "logprobs": 2,
          "stream": true, "stream_options": {"include_usage": true}, "n": 1, "user": "me",
          "cache_salt": "mine"})");
  EXPECT_FALSE(r.chat);
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.prompts.at(0).at(0).text, "Once");
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
  EXPECT_EQ(r.cache_salt, "mine");
}

TEST(Request, HasOpenAisDefaults) {
  const CompletionRequest r = parse_completion(R"({"prompt": "x", "stop": null})");
  EXPECT_EQ(r.sampling.temperature, 1);
  EXPECT_EQ(r.sampling.top_p, 1);
  EXPECT_EQ(r.sampling.top_k, 0);
  EXPECT_EQ(r.sampling.min_p, 0);
  EXPECT_FALSE(r.length || r.has_seed || r.logprobs || r.stream);
  EXPECT_TRUE(r.ignored.empty());
  const CompletionRequest more =
      parse_completion(R"({"prompt": "x", "max_completion_tokens": 3, "seed": -1})");
  EXPECT_EQ(more.length, 3);
  EXPECT_FALSE(more.has_seed) << "-1 is any";
  EXPECT_FALSE(parse_completion(R"({"prompt": "x", "n_probs": 0})").logprobs);
}

TEST(Request, AcceptsPromptsInEveryFormClientsSend) {
  EXPECT_EQ(parse_completion(R"({"prompt": ["one"]})").prompts.at(0).at(0).text, "one");
  const std::vector<Token> tokens = {1, 5, 9};
  EXPECT_EQ(parse_completion(R"({"prompt": [1, 5, 9]})").prompts.at(0).at(0).tokens, tokens);
  EXPECT_EQ(parse_completion(R"({"prompt": [[1, 5, 9]]})").prompts.at(0).at(0).tokens, tokens);
  const auto prompts = [](const std::string& value) {
    return parse_completion(R"({"prompt": )" + value + "}").prompts;
  };
  EXPECT_EQ(prompts(R"({"prompt_string": "one"})").at(0).at(0).text, "one");
  const auto several = prompts(R"(["a", [1, 5, 9], {"prompt_string": "c"}])");
  ASSERT_EQ(several.size(), 3U);
  EXPECT_EQ(several[0].at(0).text, "a");
  EXPECT_EQ(several[1].at(0).tokens, tokens);
  EXPECT_EQ(several[2].at(0).text, "c");
  const auto mixed = prompts(R"([1, 5, 9, "a", "b", 1, 5, 9])");
  ASSERT_EQ(mixed.size(), 1U);
  ASSERT_EQ(mixed[0].size(), 4U);
  EXPECT_EQ(mixed[0][0].tokens, tokens);
  EXPECT_EQ(mixed[0][2].text, "b");
  EXPECT_EQ(mixed[0][3].tokens, tokens);
  for (const char* bad : {R"([1, null])", R"([1, [2]])", R"(["a", []])", R"(["a", null])",
                          R"({"prompt_string": 1})", R"({"prompt_string": "a", "image": "b"})",
                          R"({"text": "a"})", R"([{"prompt_string": "a"}, {}])", "[true]"}) {
    EXPECT_EQ(completion(std::string(R"({"prompt": )") + bad + "}").field, "prompt") << bad;
  }
  std::string many = "[\"a\"";
  for (int i = 1; i < 65; ++i) many += ", \"a\"";
  EXPECT_EQ(completion(R"({"prompt": )" + many + "]}").field, "prompt");
  EXPECT_EQ(completion(R"({"prompt": ["a", "b", "c", "d", "e"], "n": 16})").field, "n");
}

TEST(Request, ReadsMessages) {
  const CompletionRequest r = parse_chat(
      R"({"messages": [{"role": "system", "content": "s"},
                       {"role": "user", "content": [{"type": "text", "text": "a"},
                                                    {"type": "text", "text": "b"}]},
                       {"role": "assistant", "content": null, "reasoning_content": "hm",
                        "tool_calls": [{"id": "1", "type": "function", "function":
                                        {"name": "f", "arguments": {"x": 1}}}]},
                       {"role": "tool", "content": "ok", "tool_call_id": "1"}],
          "max_completion_tokens": 9, "logprobs": true, "top_logprobs": 3, "tools": []})");
  EXPECT_EQ(r.conversation.messages,
            R"([{"role":"system","content":"s"},{"role":"user","content":"a\nb"},)"
            R"({"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[)"
            R"({"type":"function","function":{"name":"f","arguments":"{\"x\":1}"},"id":"1"}]},)"
            R"({"role":"tool","content":"ok","tool_call_id":"1"}])");
  EXPECT_TRUE(r.conversation.tools.empty());
  EXPECT_EQ(r.length, 9);
  EXPECT_EQ(r.logprobs, 3);
  const Refusal image = chat(
      R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})");
  EXPECT_EQ(image.field, "messages[0].content[0]");
  EXPECT_NE(image.message.find("image_url"), std::string::npos);
  const auto one = [](const std::string& message) {
    return chat(R"({"messages": [)" + message + "]}").field;
  };
  EXPECT_EQ(one(R"({"role": "user", "content": "x", "tool_calls": [1]})"),
            "messages[0].tool_calls");
  EXPECT_EQ(one(R"({"role": "assistant", "tool_calls": {}})"), "");
  EXPECT_EQ(one(R"({"role": "assistant", "tool_calls": "x"})"), "messages[0].tool_calls");
  EXPECT_EQ(one(R"({"role": "assistant", "tool_calls": [{"type": "magic"}]})"),
            "messages[0].tool_calls[0].type");
  EXPECT_EQ(one(R"({"role": "assistant", "tool_calls": [{"function": {"name": ""}}]})"),
            "messages[0].tool_calls[0].function.name");
  EXPECT_EQ(one(R"({"role": "assistant", "tool_calls": [{"function": {"name": "f",
                    "arguments": [1]}}]})"),
            "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(one(R"({"role": "tool"})"), "messages[0].content");
  EXPECT_EQ(one(R"({"role": "tool", "content": "x", "tool_call_id": 5})"),
            "messages[0].tool_call_id");
  EXPECT_EQ(one(R"({"role": "wizard", "content": "x"})"), "messages[0].role");
}

constexpr const char* kHello = R"("messages": [{"role": "user", "content": "x"}])";
constexpr const char* kTools =
    R"("tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters":
       {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "number"}}}}},
      {"type": "function", "function": {"name": "g"}}])";

TEST(Request, ReadsTools) {
  const auto read = [](const std::string& more) {
    return parse_chat(std::string("{") + kHello + ", " + kTools + more + "}").conversation;
  };
  const engine::ChatInputs usual = read("");
  EXPECT_EQ(usual.tool_choice, "auto");
  EXPECT_FALSE(usual.parallel_tool_calls);
  // Properties keep their order.
  EXPECT_LT(usual.tools.find("\"z\""), usual.tools.find("\"a\"")) << usual.tools;
  EXPECT_NE(usual.tools.find(R"("name":"g","description":"","parameters":{})"), std::string::npos);
  EXPECT_EQ(read(R"(, "tool_choice": "none")").tool_choice, "none");
  EXPECT_EQ(read(R"(, "tool_choice": "required")").tool_choice, "required");
  EXPECT_EQ(read(R"(, "parallel_tool_calls": false)").parallel_tool_calls, false);
  const engine::ChatInputs named =
      read(R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})");
  EXPECT_EQ(named.tool_choice, "required");
  EXPECT_EQ(named.parallel_tool_calls, false);
  EXPECT_EQ(named.tools.find("\"f\""), std::string::npos);

  const auto bad = [](const std::string& more) {
    return chat(std::string("{") + kHello + ", " + more + "}").field;
  };
  const std::string tools = kTools;
  EXPECT_EQ(bad(R"("tools": "f")"), "tools");
  EXPECT_EQ(bad(R"("tools": [5])"), "tools[0]");
  EXPECT_EQ(bad(R"("tools": [{"type": "retrieval"}])"), "tools[0].type");
  EXPECT_EQ(bad(R"("tools": [{"type": "function"}])"), "tools[0].function");
  EXPECT_EQ(bad(R"("tools": [{"type": "function", "function": {}}])"), "tools[0].function");
  EXPECT_EQ(bad(R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}])"),
            "tools[0].function.parameters");
  EXPECT_EQ(bad(R"("tools": [{"type": "function", "function": {"name": "f"}},
                             {"type": "function", "function": {"name": "f"}}])"),
            "tools[1].function.name");
  EXPECT_EQ(bad(R"("tool_choice": "required")"), "tool_choice");
  EXPECT_EQ(bad(tools + R"(, "tool_choice": "any")"), "tool_choice");
  EXPECT_EQ(bad(tools + R"(, "tool_choice": 5)"), "tool_choice");
  EXPECT_EQ(bad(tools + R"(, "tool_choice": [1])"), "tool_choice");
  EXPECT_EQ(bad(tools + R"(, "tool_choice": {"type": "function"})"), "tool_choice");
  EXPECT_EQ(bad(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "h"}})"),
            "tool_choice");
  EXPECT_EQ(bad(tools + R"(, "parallel_tool_calls": 1)"), "parallel_tool_calls");
  EXPECT_EQ(bad(tools + R"(, "grammar": "root ::= [a-z]")"), "grammar");
  EXPECT_EQ(bad(tools + R"(, "response_format": {"type": "json_object"})"), "response_format");
  EXPECT_EQ(bad(tools + R"(, "ignore_eos": true)"), "ignore_eos");
  EXPECT_EQ(bad(R"("functions": [{"name": "f"}])"), "functions");
  EXPECT_EQ(bad(R"("function_call": {"name": "f"})"), "function_call");
}

TEST(Request, ReadsWhatTemplatesAreGiven) {
  const auto read = [](const std::string& more) {
    return parse_chat(std::string("{") + kHello + ", " + more + "}").conversation;
  };
  const engine::ChatInputs kwargs =
      read(R"("chat_template_kwargs": {"enable_thinking": false, "b": [1]})");
  EXPECT_EQ(kwargs.variables, R"({"enable_thinking":false,"b":[1]})");
  EXPECT_FALSE(kwargs.thinking);
  EXPECT_EQ(read(R"("reasoning_effort": "low")").variables, R"({"reasoning_effort":"low"})");
  EXPECT_FALSE(read(R"("reasoning_effort": "none")").thinking);
  EXPECT_FALSE(read(R"("reasoning_format": "none")").split_reasoning);
  EXPECT_FALSE(read(R"("add_generation_prompt": false)").add_generation_prompt);
  const engine::ChatInputs more =
      parse_chat(R"({"messages": [{"role": "assistant", "content": "Once"}],
                                          "continue_final_message": true})")
          .conversation;
  EXPECT_TRUE(more.continue_final && !more.add_generation_prompt);
  const auto bad = [](const std::string& rest) {
    return chat(std::string("{") + kHello + ", " + rest + "}").field;
  };
  EXPECT_EQ(bad(R"("continue_final_message": true)"), "continue_final_message");
  EXPECT_EQ(bad(R"("continue_final_message": "yes")"), "continue_final_message");
  EXPECT_EQ(bad(R"("continue_final_message": true, "add_generation_prompt": true)"),
            "continue_final_message");
  EXPECT_EQ(bad(R"("chat_template_kwargs": "x")"), "chat_template_kwargs");
  EXPECT_EQ(bad(R"("chat_template_kwargs": {"enable_thinking": "no"})"),
            "chat_template_kwargs.enable_thinking");
  EXPECT_EQ(bad(R"("reasoning_effort": 3)"), "reasoning_effort");
  EXPECT_EQ(bad(R"("reasoning_format": "deepseek-legacy")"), "reasoning_format");
  EXPECT_EQ(bad(R"("echo": true)"), "echo");
}

TEST(Request, ReadsSchemas) {
  const auto schema = [](const std::string& more) {
    return parse_completion(R"({"prompt": "x", )" + more + "}").schema;
  };
  EXPECT_EQ(schema(R"("response_format": {"type": "text"})"), "");
  EXPECT_EQ(schema(R"("response_format": {"type": "json_object"})"), R"({"type":"object"})");
  EXPECT_EQ(schema(R"("response_format": {"type": "json_object", "schema": {"type": "array"}})"),
            R"({"type":"array"})");
  EXPECT_EQ(schema(R"("response_format": {"type": "json_schema", "json_schema":
                        {"name": "n", "strict": true, "schema": {"b": 1, "a": 2}}})"),
            R"({"b":1,"a":2})");
  EXPECT_EQ(schema(R"("json_schema": {})"), R"({"type":"object"})");
  const auto bad = [](const std::string& more) {
    return completion(R"({"prompt": "x", )" + more + "}").field;
  };
  EXPECT_EQ(bad(R"("response_format": "json")"), "response_format");
  EXPECT_EQ(bad(R"("response_format": {"type": "xml"})"), "response_format");
  EXPECT_EQ(bad(R"("response_format": {"type": "json_schema"})"), "response_format.json_schema");
  EXPECT_EQ(bad(R"("response_format": {"type": "json_object", "schema": 5})"), "response_format");
  EXPECT_EQ(bad(R"("response_format": {"type": "json_schema", "json_schema": {"schema": null}})"),
            "response_format.json_schema");
  EXPECT_EQ(bad(R"("json_schema": [])"), "json_schema");
  EXPECT_EQ(bad(R"("json_schema": {}, "response_format": {"type": "json_object"})"), "json_schema");
  EXPECT_EQ(bad(R"("json_schema": {}, "grammar": "root ::= [a-z]")"), "grammar");
  EXPECT_EQ(bad(R"("json_schema": {}, "ignore_eos": true)"), "ignore_eos");
  EXPECT_EQ(bad(R"("grammar": "root ::= [a-z]", "ignore_eos": true)"), "ignore_eos");
}

TEST(Request, ReadsSampling) {
  const CompletionRequest r = parse_completion(
      R"({"prompt": "x", "frequency_penalty": 0.5, "presence_penalty": -1, "repetition_penalty": 1.2,
          "repeat_last_n": -1, "typical_p": 0.7, "grammar": "root ::= \"a\"",
          "logit_bias": {"17": -100, "5": false, "word": 2}, "n": 3, "echo": true,
          "max_tokens": -1, "return_progress": true, "best_of": 3})");
  const Sampling& s = r.sampling;
  EXPECT_EQ(s.frequency_penalty, 0.5);
  EXPECT_EQ(s.presence_penalty, -1);
  EXPECT_EQ(s.repeat_penalty, 1.2);
  EXPECT_EQ(s.repeat_last_n, -1);
  EXPECT_EQ(s.typical_p, 0.7);
  EXPECT_EQ(s.grammar.text, "root ::= \"a\"");
  EXPECT_TRUE(parse_completion(R"({"prompt": "x", "ignore_eos": true})").sampling.ignore_end);
  ASSERT_EQ(r.bias.size(), 3U);
  EXPECT_EQ(r.bias[0].token, 17);
  EXPECT_EQ(r.bias[0].value, -100);
  EXPECT_TRUE(std::isinf(r.bias[1].value) && r.bias[1].value < 0);
  EXPECT_FALSE(r.bias[2].token);
  EXPECT_EQ(r.bias[2].text, "word");
  EXPECT_EQ(r.answers, 3);
  EXPECT_TRUE(r.echo && r.return_progress && r.ignored.empty());
  EXPECT_GT(r.length, 1 << 30);
  const CompletionRequest list =
      parse_completion(R"({"prompt": "x", "logit_bias": [[3, 1.5], ["a b", false]]})");
  ASSERT_EQ(list.bias.size(), 2U);
  EXPECT_EQ(list.bias[0].token, 3);
  EXPECT_EQ(list.bias[1].text, "a b");
}

TEST(Request, ReadsLlamaServersCompletion) {
  const CompletionRequest r = parse_llama_completion(
      R"({"prompt": "x", "n_probs": 4, "return_tokens": true, "id_slot": 1})");
  EXPECT_EQ(r.route, Route::llama_completion);
  EXPECT_EQ(r.sampling.temperature, 0.8);
  EXPECT_EQ(r.sampling.top_k, 40);
  EXPECT_EQ(r.logprobs, 4);
  EXPECT_TRUE(r.return_tokens);
  EXPECT_GT(r.length, 1 << 30);
  EXPECT_EQ(r.ignored, (std::vector<std::string>{"id_slot"}));
  for (const char* more : {R"("n": 2)", R"("response_fields": ["content"])", R"("n_probs": 21)",
                           R"("return_tokens": 1)", R"("messages": [1])"}) {
    EXPECT_EQ(refusal([&] {
                parse_llama_completion(std::string(R"({"prompt": "x", )") + more + "}");
              }).status,
              400)
        << more;
  }
}

TEST(Request, RefusalsNameTheField) {
  // Values of fields that are refused.
  const auto fields = nlohmann::ordered_json::parse(R"(
      {"max_tokens": [-2, 1e300, 0, 2.5, []], "temperature": [-1, "x"], "top_p": [1.01],
       "min_p": [-0.1], "top_k": [-2], "seed": [1e10], "stop": [[""], {}], "n": [17],
       "best_of": [3], "echo": [1], "suffix": ["end"], "n_predict": [-2, 0],
       "cache_prompt": [1], "cache_salt": [5, "", ["a"]], "grammar": [5],
       "guided_json": [{"type": "object"}], "json_schema": [5], "repeat_penalty": [0],
       "repetition_penalty": [-1], "mirostat": [2], "typical_p": [1.5],
       "chat_template_kwargs": [{"enable_thinking": false}], "continue_final_message": [true],
       "add_generation_prompt": [false], "ignore_eos": [1],
       "response_format": [{"type": "xml"}], "frequency_penalty": [1000],
       "presence_penalty": ["much"],
       "logit_bias": [{"1": true}, {"-1": 2}, {"99999999999": 2}, {"": 2}, {"1": 1e9},
                      [[1]], [[1.5, 2]], 5],
       "repeat_last_n": [-2], "return_progress": ["yes"], "tools": [[1]], "messages": [[1]],
       "dry_multiplier": [0.8], "min_tokens": [5], "skip_special_tokens": [false],
       "grammar_triggers": [[1]], "t_max_predict_ms": [100], "verbosity": ["low"],
       "logprobs": [21], "stream": ["yes"], "stream_options": [true], "model": [5]})");
  for (const auto& [name, values] : fields.items()) {
    for (const auto& value : values) {
      const Refusal r = completion("{\"prompt\": \"x\", \"" + name + "\": " + value.dump() + "}");
      EXPECT_EQ(r.status, 400) << name << " " << value;
      EXPECT_EQ(r.field, name) << value;
      EXPECT_NE(r.message.find(name), std::string::npos);
    }
  }
  for (const char* body :
       {"", "{", "[]", "5", "{\"prompt\": \"\xff\"}", "{\"prompt\": \"\\ud800\"}",
        "{\"prompt\": 1e999}", "{\"prompt\": \"a\", \"prompt\": \"b\"}"}) {
    EXPECT_EQ(completion(body).status, 400) << body;
  }
  EXPECT_EQ(completion("{\"prompt\": \"" + std::string(kLargest.bytes, 'a') + "\"}").status, 400);
  EXPECT_EQ(completion(std::string(5000, '[')).status, 400);
}

// A value must not need memory to be destroyed: that ends the process.
TEST(Request, FailsWithoutMemory) {
  std::string numbers = "7";
  for (int i = 0; i < 40; ++i) numbers += ", 7";
  for (const std::string& list : {numbers, "[7], {\"a\": [{}, [" + numbers + "]]}, " + numbers}) {
    const std::string tokens = "{\"tokens\": [" + list + "]}";
    const std::string prompt = "{\"prompt\": [" + numbers + "], \"user\": [" + list + "]}";
    const std::string bare = "[" + list + "]";
    const auto read = [&](const auto& parse, const std::string& body) {
      return test::run_short_of_memory([&] {
        try {
          parse(body, kLargest);
        } catch (const ApiError&) {
        }
      });
    };
    parse_completion(prompt, kLargest);  // makes the list of known fields
    EXPECT_GT(read(parse_detokenize, tokens), 8);
    EXPECT_GT(read(parse_detokenize, bare), 8);
    EXPECT_GT(read(parse_completion, prompt), 8);
    EXPECT_GT(read(parse_llama_completion, prompt), 8);
  }
}

TEST(Request, AcceptsValuesThatChangeNothing) {
  const CompletionRequest r = parse_completion(
      R"({"prompt": "x", "grammar": "", "guided_json": null, "repeat_penalty": 1.0,
          "repetition_penalty": 1, "mirostat": 0, "mirostat_tau": 5, "typical_p": 1.0,
          "chat_template_kwargs": {}, "continue_final_message": false, "cache_prompt": true,
          "presence_penalty": 0.0, "response_format": {"type": "text"}})");
  EXPECT_EQ(r.ignored, (std::vector<std::string>{"mirostat_tau"}));
  EXPECT_TRUE(r.cache_prompt);
  EXPECT_EQ(
      completion(R"({"prompt": "x", "repeat_penalty": 1.1, "repetition_penalty": 1.2})").field,
      "repetition_penalty");
  EXPECT_EQ(completion(R"({"prompt": "x", "echo": true, "logprobs": 1})").field, "echo");
  EXPECT_EQ(completion(R"({"prompt": "x", "best_of": 2})").field, "best_of");
  const std::string long_grammar = R"({"prompt": "x", "grammar": ")" + std::string(300000, 'a');
  EXPECT_EQ(refusal([&] { parse_completion(long_grammar + "\"}", {1 << 20}); }).field, "grammar");
}

// Many values in a short text take far more memory than the text.
TEST(Request, LimitsTheNumberOfValues) {
  const auto body = [](std::size_t lists) {
    std::string text = R"({"prompt": "x", "user": [)";
    for (std::size_t i = 0; i < lists; ++i) text += i == 0 ? "[]" : ",[]";
    return text + "]}";
  };
  const BodyLimits limits{1 << 20, 1000};
  EXPECT_EQ(parse_completion(body(990), limits).prompts.at(0).at(0).text, "x");
  const Refusal many = refusal([&] { parse_completion(body(1000), limits); });
  EXPECT_EQ(many.status, 400);
  EXPECT_NE(many.message.find("values"), std::string::npos) << many.message;
}

TEST(FieldTable, IsWhatTheReferencePageLists) {
  const Source page = Source::open(MRROPE_DOCS_DIR "/reference/server.md");
  EXPECT_NE(read_text(page, {}).find(embedded::serve_fields), std::string::npos);
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
