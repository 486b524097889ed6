// SPDX-License-Identifier: Apache-2.0
// OpenAI's responses: requests that become chats, answers that become items and events.
#include <gtest/gtest.h>

#include <sstream>

#include "serve/api/service.h"
#include "support/scripted.h"

namespace mrrope::serve {
namespace {

constexpr BodyLimits kLargest{100000};

CompletionRequest read(const std::string& body) {
  return parse_request(body, Route::responses, kLargest);
}

std::string messages(const std::string& input) {
  return read(R"({"input": )" + input + "}").conversation.messages;
}

TEST(Responses, InputBecomesMessages) {
  EXPECT_EQ(messages(R"("Hello")"), R"([{"role":"user","content":"Hello"}])");
  const CompletionRequest r = read(R"({"instructions": "Be brief.", "max_output_tokens": 9,
      "model": "m", "stream": true, "temperature": 0.5, "store": false, "cache_salt": "mine", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "How is Rome?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text",
         "text": "Hm."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather",
         "arguments": "{\"city\": \"Rome\"}"},
        {"type": "function_call", "call_id": "c2", "name": "time", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text",
         "text": "noon"}]}]})");
  EXPECT_TRUE(r.chat && r.stream);
  EXPECT_EQ(r.length, 9);
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.ignored, std::vector<std::string>{"store"});
  EXPECT_EQ(r.cache_salt, "mine");
  const auto list = ordered_json::parse(r.conversation.messages);
  ASSERT_EQ(list.size(), 5U);
  EXPECT_EQ(list[0]["role"], "system");
  EXPECT_EQ(list[1]["content"], "How is Rome?");
  EXPECT_EQ(list[2]["reasoning_content"], "Hm.");
  ASSERT_EQ(list[2]["tool_calls"].size(), 2U);
  EXPECT_EQ(list[2]["tool_calls"][1]["id"], "c2");
  EXPECT_EQ(list[3]["tool_call_id"], "c1");
  EXPECT_EQ(list[4]["content"], "noon");
}

TEST(Responses, ToolsAndFormatsAreThoseOfChats) {
  const std::string tool =
      R"({"type": "function", "name": "weather", "strict": true, "parameters": {"type": "object"}})";
  const CompletionRequest r = read(R"({"input": "x", "tools": [)" + tool +
                                   R"(], "tool_choice": {"type": "function", "name": "weather"}})");
  EXPECT_EQ(ordered_json::parse(r.conversation.tools)[0]["function"]["name"], "weather");
  EXPECT_EQ(r.conversation.tool_choice, "required");
  const CompletionRequest form = read(
      R"({"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "strict": true,
          "schema": {"type": "integer"}}}, "reasoning": {"effort": "none"}})");
  EXPECT_EQ(form.schema, R"({"type":"integer"})");
  EXPECT_FALSE(form.conversation.thinking);
}

TEST(Responses, RefusalsNameTheField) {
  const char* bad[][2] = {
      {"input", R"({})"},
      {"input", R"({"input": []})"},
      {"input[0]", R"({"input": [1]})"},
      {"input[0].type", R"({"input": [{"type": "item_reference", "id": "x"}]})"},
      {"input[0].content", R"({"input": [{"role": "user"}]})"},
      {"input[0].content[0]",
       R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})"},
      {"input[0].call_id", R"({"input": [{"type": "function_call", "name": "x"}]})"},
      {"input[0].output", R"({"input": [{"type": "function_call_output", "call_id": "x"}]})"},
      {"input[0]", R"({"input": [{"content": "x"}]})"},
      {"input[1].role",
       R"({"instructions": "x", "input": [{"role": "user", "content": "x"},
           {"role": "king", "content": "x"}]})"},
      {"input[2].name",
       R"({"input": [{"role": "user", "content": "x"}, {"type": "function_call", "call_id": "1",
           "name": "x", "arguments": "{}"}, {"type": "function_call", "call_id": "2", "name": "",
           "arguments": "{}"}]})"},
      {"tools[0].parameters",
       R"({"input": "x", "tools": [{"type": "function", "name": "x", "parameters": 1}]})"},
      {"tool_choice", R"({"input": "x", "tool_choice": {"type": "any"}})"},
      {"tool_choice.name", R"({"input": "x", "tool_choice": {"type": "function", "name": ""}})"},
      {"reasoning.effort", R"({"input": "x", "reasoning": {"effort": 1}})"},
      {"tools[0].type", R"({"input": "x", "tools": [{"type": "web_search"}]})"},
      {"tools", R"({"input": "x", "tools": 1})"},
      {"previous_response_id", R"({"input": "x", "previous_response_id": "resp_1"})"},
      {"background", R"({"input": "x", "background": true})"},
      {"truncation", R"({"input": "x", "truncation": "auto"})"},
      {"max_output_tokens", R"({"input": "x", "max_output_tokens": 0})"},
      {"text", R"({"input": "x", "text": "json"})"},
      {"text.format", R"({"input": "x", "text": {"format": {"type": "xml"}}})"},
      {"cache_salt", R"({"input": "x", "cache_salt": 1})"},
      {"mirostat", R"({"input": "x", "mirostat": 1})"}};
  for (const auto& [field, body] : bad) {
    try {
      read(body);
      ADD_FAILURE() << body;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.param, field) << body;
      EXPECT_EQ(error.status, 400);
    }
  }
}

struct Formatted {
  ScriptedModel model{ScriptedOptions{}};
  Ladder ladder = make_ladder(make_plan(model.facts().geometry, Extension{}), 2000);
  engine::ChatRenderer renderer;
  Service service = make_service(model, ladder, renderer, {});
  std::unique_ptr<AnswerFormat> format() {
    CompletionRequest request;
    request.route = Route::responses;
    request.chat = true;
    return make_format({service, request, 0x12});
  }
};

Outcome outcome(Outcome::End end) {
  Outcome o;
  o.end = end;
  o.prompt = 7;
  o.written = 3;
  return o;
}

TEST(Responses, StreamHasTheEventsOfEachItem) {
  Formatted f;
  const auto format = f.format();
  std::string out;
  format->opening(out, 0);
  format->chunk(out, 0, {"", "Hm", {}}, {});
  format->chunk(out, 0, {"Let me", "", {}}, {});
  format->chunk(out, 0, {" look.", "", {{0, {"c1", "weather", "{\"ci"}}}}, {});
  format->chunk(out, 0, {"", "", {{0, {"", "", "ty\":1}"}}, {1, {"c2", "time", "{}"}}}}, {});
  format->closing(out, 0, outcome(Outcome::End::stop), true);
  std::string types;
  std::vector<ordered_json> events;
  std::istringstream in(out);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("data: ", 0) != 0) continue;
    events.push_back(ordered_json::parse(line.substr(6)));
    EXPECT_EQ(events.back()["sequence_number"], events.size() - 1);
    types += events.back()["type"].get<std::string>().substr(9) + " ";  // after "response."
  }
  const std::string wanted =
      "created in_progress output_item.added reasoning_text.delta reasoning_text.done "
      "output_item.done output_item.added content_part.added output_text.delta "
      "output_text.delta output_text.done content_part.done output_item.done output_item.added "
      "function_call_arguments.delta function_call_arguments.delta function_call_arguments.done "
      "output_item.done output_item.added function_call_arguments.delta "
      "function_call_arguments.done output_item.done completed ";
  EXPECT_EQ(types, wanted);
  const ordered_json& last = events.back()["response"];
  EXPECT_EQ(last["id"], "resp_0000000000000012");
  ASSERT_EQ(last["output"].size(), 4U);
  EXPECT_EQ(last["output"][0]["content"][0]["text"], "Hm");
  EXPECT_EQ(last["output"][1]["content"][0]["text"], "Let me look.");
  EXPECT_EQ(last["output"][2]["arguments"], "{\"city\":1}");
  EXPECT_EQ(last["output"][3]["call_id"], "c2");
  EXPECT_EQ(last["usage"]["output_tokens"], 3);
}

TEST(Responses, WholeAnswers) {
  Formatted f;
  const ordered_json cut =
      f.format()->whole({{{"Here", "", {}}, {}, outcome(Outcome::End::length)}});
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut["output"][0]["content"][0]["text"], "Here");
  EXPECT_EQ(cut["output"][0]["id"].get<std::string>().rfind("msg_", 0), 0U);
  EXPECT_TRUE(f.format()->whole({{{}, {}, outcome(Outcome::End::stop)}})["output"].empty());
  std::string out;
  f.format()->failure(out, ApiError(504, "too slow", {}, "timeout"));
  EXPECT_NE(out.find("event: response.failed"), std::string::npos);
  EXPECT_NE(out.find("\"code\":\"timeout\""), std::string::npos);
}

}  // namespace
}  // namespace mrrope::serve
