// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "serve/serve_files.h"
#include "support/allocations.h"
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

constexpr BodyLimits kLargest{100000, 1 << 18, 4096};

CompletionRequest parse_completion(std::string_view body, const BodyLimits& limits = kLargest) {
  return parse_request(body, Route::completion, limits);
}
CompletionRequest parse_llama_completion(std::string_view body,
                                         const BodyLimits& limits = kLargest) {
  return parse_request(body, Route::llama_completion, limits);
}

ordered_json prompts_json(const CompletionRequest& r) {
  ordered_json prompts = ordered_json::array();
  for (const auto& parts : r.prompts) {
    prompts.push_back(ordered_json::array());
    for (const PromptPart& part : parts) {
      prompts.back().push_back(part.tokens.empty() ? ordered_json(part.text)
                                                   : ordered_json(part.tokens));
    }
  }
  return prompts;
}

ordered_json biases_json(const CompletionRequest& r) {
  ordered_json biases = ordered_json::array();
  for (const Bias& bias : r.bias) {
    const ordered_json of = bias.token ? ordered_json(*bias.token) : ordered_json(bias.text);
    biases.push_back({of, number(bias.value)});
  }
  return biases;
}

// Every member of a request.
ordered_json members(const CompletionRequest& r) {
  const Sampling& s = r.sampling;
  const engine::ChatInputs& c = r.conversation;
  const auto parsed = [](const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json::parse(text);
  };
  const auto given = [](const auto& value) { return value ? ordered_json(*value) : nullptr; };
  return {{"chat", r.chat},
          {"load_only", r.load_only},
          {"model", r.model},
          {"prompts", prompts_json(r)},
          {"messages", parsed(c.messages)},
          {"tools", parsed(c.tools)},
          {"tool_choice", c.tool_choice},
          {"parallel_tool_calls", given(c.parallel_tool_calls)},
          {"callable", r.callable},
          {"variables", parsed(c.variables)},
          {"add_generation_prompt", c.add_generation_prompt},
          {"continue_final", c.continue_final},
          {"thinking", c.thinking},
          {"split_reasoning", c.split_reasoning},
          {"length", given(r.length)},
          {"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"typical_p", s.typical_p},
          {"seed", r.has_seed ? ordered_json(s.seed) : nullptr},
          {"repeat_penalty", s.repeat_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"presence_penalty", s.presence_penalty},
          {"repeat_last_n", s.repeat_last_n},
          {"ignore_end", s.ignore_end},
          {"grammar", s.grammar.text},
          {"bias", biases_json(r)},
          {"schema", parsed(r.schema)},
          {"schema_field", r.schema_field},
          {"stop", r.stop},
          {"logprobs", given(r.logprobs)},
          {"answers", r.answers},
          {"echo", r.echo},
          {"stream", r.stream},
          {"stream_usage", r.stream_usage},
          {"return_progress", r.return_progress},
          {"return_tokens", r.return_tokens},
          {"cache_prompt", r.cache_prompt},
          {"cache_salt", r.cache_salt},
          {"ignored", r.ignored}};
}

// Those that differ from the members of a request that nobody filled.
std::string described(const CompletionRequest& request) {
  static const ordered_json usual = members({});
  const ordered_json all = members(request);
  ordered_json found = ordered_json::object();
  for (const auto& [name, value] : all.items()) {
    if (value != usual[name]) found[name] = value;
  }
  return found.dump();
}

std::string read_body(const std::string& route, std::string body) {
  if (route == "tokenize") {
    const TokenizeRequest r = parse_tokenize(body, kLargest);
    return cat(r.content, " ", r.add_special, " ", r.parse_special);
  }
  if (route == "detokenize") return ordered_json(parse_detokenize(body, kLargest)).dump();
  if (route == "messages" || route == "count_tokens") {
    ordered_json whole = {{"max_tokens", 9}, {"messages", {{{"role", "user"}, {"content", "x"}}}}};
    whole.update(ordered_json::parse(body));
    body = whole.dump();
  }
  return described(parse_request(body, route_named(route), kLargest));
}

TEST(Request, IsReadOrRefusedByName) {
  test::expect_transcript("requests", [](const std::string& input) {
    const std::string route = input.substr(0, input.find(' '));
    const std::string body = input.substr(std::min(route.size() + 1, input.size()));
    return refusal([&] { return read_body(route, body); });
  });
}

TEST(Request, OfTooManyBytesOrNoTextIsRefused) {
  const auto refused = [](const std::string& body) {
    return refusal([&] { return described(parse_completion(body)); }).starts_with("400 ");
  };
  EXPECT_TRUE(refused("{\"prompt\": \"\xff\"}"));
  EXPECT_TRUE(refused("{\"prompt\": \"" + std::string(kLargest.bytes, 'a') + "\"}"));
  EXPECT_TRUE(refused(std::string(5000, '[')));
  const std::string grammar = R"({"prompt": "x", "grammar": ")" + std::string(300000, 'a') + "\"}";
  EXPECT_TRUE(refusal([&] {
                return described(parse_completion(grammar, {1 << 20}));
              }).starts_with("400 grammar: "));
}

TEST(Request, AnOllamaPromptOfAModelWithoutATemplateIsNoChat) {
  const BodyLimits bare{100000, 1 << 18, 4096, false};
  EXPECT_FALSE(parse_request(R"({"prompt": "x"})", Route::ollama_generate, bare).chat);
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

// Many values in a short text take far more memory than the text.
TEST(Request, LimitsTheNumberOfValues) {
  const auto body = [](std::size_t lists) {
    std::string text = R"({"prompt": "x", "user": [)";
    for (std::size_t i = 0; i < lists; ++i) text += i == 0 ? "[]" : ",[]";
    return text + "]}";
  };
  const BodyLimits limits{1 << 20, 1000};
  EXPECT_EQ(parse_completion(body(990), limits).prompts.at(0).at(0).text, "x");
  const std::string many = refusal([&] { return described(parse_completion(body(1000), limits)); });
  EXPECT_TRUE(many.starts_with("400 ")) << many;
  EXPECT_TRUE(contains(many, "values"));
}

TEST(FieldTable, IsWhatTheReferencePageLists) {
  const Source page = Source::open(MRROPE_DOCS_DIR "/reference/server.md");
  EXPECT_TRUE(contains(read_text(page, {}), embedded::serve_fields));
}

}  // namespace
}  // namespace mrrope::serve
