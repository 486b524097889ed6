// SPDX-License-Identifier: Apache-2.0
// Anthropic's messages: requests that become chats, answers that become blocks and events.
#include <gtest/gtest.h>

#include <sstream>

#include "base/json.h"
#include "serve/api/service.h"
#include "support/scripted.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

constexpr BodyLimits kLargest{100000};

// max_tokens and one message, unless the fields have others.
CompletionRequest read(const std::string& fields, Route route = Route::messages) {
  ordered_json body = {{"max_tokens", 9}, {"messages", {{{"role", "user"}, {"content", "x"}}}}};
  body.update(ordered_json::parse("{" + fields + "}"));
  return parse_request(body.dump(), route, kLargest);
}

ordered_json messages_of(const std::string& fields) {
  return ordered_json::parse(read(fields).conversation.messages);
}

TEST(Anthropic, ConversationsBecomeMessages) {
  const CompletionRequest r = read(R"("model": "m", "stream": true, "temperature": 0.5, "top_k": 7,
      "top_p": 0.9, "stop_sequences": ["END"], "metadata": {"user_id": "u"}, "cache_salt": "mine",
      "system": [{"type": "text", "text": "x-anthropic-billing-header: cch=1;"},
                 {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
                 {"type": "text", "text": "Be kind."}],
      "messages": [
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": [{"type": "text", "text": "How is Rome?"}]},
        {"role": "assistant", "content": [
          {"type": "thinking", "thinking": "Hm.", "signature": ""},
          {"type": "redacted_thinking", "data": "abc"},
          {"type": "text", "text": "Let me look."},
          {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
          {"type": "tool_use", "id": "c2", "name": "time", "input": {}}]},
        {"role": "user", "content": [
          {"type": "tool_result", "tool_use_id": "c1", "content": "sunny"},
          {"type": "tool_result", "tool_use_id": "c2", "is_error": true,
           "content": [{"type": "text", "text": "no clock"}]},
          {"type": "text", "text": "Well?"}]}])");
  EXPECT_TRUE(r.chat && r.stream);
  EXPECT_EQ(r.length, 9);
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.sampling.top_k, 7);
  EXPECT_EQ(r.sampling.top_p, 0.9);
  EXPECT_EQ(r.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(r.cache_salt, "mine");
  EXPECT_EQ(r.ignored, (std::vector<std::string>{"metadata", "system[0]"}));
  EXPECT_TRUE(r.conversation.add_generation_prompt && !r.conversation.continue_final);
  const ordered_json wanted = ordered_json::parse(R"([
      {"role": "system", "content": "Be brief.\nBe kind."},
      {"role": "user", "content": "Hello\nHow is Rome?"},
      {"role": "assistant", "content": "Let me look.", "reasoning_content": "Hm.", "tool_calls": [
        {"type": "function", "id": "c1",
         "function": {"name": "weather", "arguments": "{\"city\":\"Rome\"}"}},
        {"type": "function", "id": "c2", "function": {"name": "time", "arguments": "{}"}}]},
      {"role": "tool", "content": "sunny", "tool_call_id": "c1", "name": "weather"},
      {"role": "tool", "content": "Error: no clock", "tool_call_id": "c2", "name": "time"},
      {"role": "user", "content": "Well?"}])");
  ordered_json got = ordered_json::parse(r.conversation.messages);
  EXPECT_EQ(nlohmann::json(got), nlohmann::json(wanted)) << got.dump(1);
}

TEST(Anthropic, SystemPromptAndTheBeginningOfAnAnswer) {
  EXPECT_EQ(messages_of(R"("system": "Be brief.")")[0]["content"], "Be brief.");
  EXPECT_EQ(messages_of(R"("system": "")")[0]["role"], "user");
  const CompletionRequest r = read(R"("messages": [{"role": "user", "content": "x"},
      {"role": "assistant", "content": "Once upon"}])");
  EXPECT_TRUE(r.conversation.continue_final && !r.conversation.add_generation_prompt);
}

TEST(Anthropic, ToolsAndTheirChoice) {
  const std::string tools = R"("tools": [{"name": "weather", "description": "d", "strict": true,
      "input_schema": {"type": "object"}}, {"type": "custom", "name": "time", "input_schema": {}}])";
  const auto chosen = [&](const std::string& choice) {
    return read(tools + R"(, "tool_choice": )" + choice);
  };
  EXPECT_EQ(read(tools).conversation.tools,
            R"([{"type":"function","function":{"name":"weather","description":"d",)"
            R"("parameters":{"type":"object"}}},{"type":"function","function":{"name":"time",)"
            R"("description":"","parameters":{}}}])");
  EXPECT_EQ(read(tools).conversation.tool_choice, "auto");
  EXPECT_EQ(read(tools).conversation.parallel_tool_calls, std::nullopt);
  EXPECT_EQ(chosen(R"({"type": "any"})").conversation.tool_choice, "required");
  EXPECT_TRUE(chosen(R"({"type": "none"})").callable.empty());
  const CompletionRequest one = chosen(R"({"type": "tool", "name": "time"})");
  EXPECT_EQ(one.callable, std::vector<std::string>{"time"});
  EXPECT_EQ(one.conversation.tool_choice, "required");
  EXPECT_EQ(chosen(R"({"type": "auto", "disable_parallel_tool_use": true})")
                .conversation.parallel_tool_calls,
            false);
}

TEST(Anthropic, ThinkingEffortAndFormat) {
  EXPECT_TRUE(read("").conversation.thinking);
  EXPECT_FALSE(read(R"("thinking": {"type": "disabled"})").conversation.thinking);
  const CompletionRequest r = read(R"("thinking": {"type": "enabled", "budget_tokens": 2000})");
  EXPECT_TRUE(r.conversation.thinking);
  EXPECT_EQ(r.ignored, std::vector<std::string>{"thinking.budget_tokens"});
  const CompletionRequest form = read(R"("output_config": {"effort": "high", "format":
      {"type": "json_schema", "schema": {"type": "integer"}}})");
  EXPECT_EQ(form.schema, R"({"type":"integer"})");
  EXPECT_EQ(form.conversation.variables, R"({"reasoning_effort":"high"})");
}

TEST(Anthropic, RefusalsNameTheField) {
  const auto blocks = [](const std::string& role, const std::string& list) {
    return R"("messages": [{"role": ")" + role + R"(", "content": )" + list + "}]";
  };
  const std::pair<const char*, std::string> bad[] = {
      {"max_tokens", R"("max_tokens": null)"},
      {"max_tokens", R"("max_tokens": 0)"},
      {"max_tokens", R"("max_tokens": -1)"},
      {"max_tokens", R"("max_tokens": 1e300)"},
      {"max_tokens", R"("max_tokens": 99999999999999999999)"},
      {"messages", R"("messages": null)"},
      {"messages", R"("messages": [])"},
      {"messages", R"("messages": {"role": "user"})"},
      {"messages[0]", R"("messages": ["x"])"},
      {"messages[0].role", R"("messages": [{"content": "x"}])"},
      {"messages[0].role", blocks("tool", R"("x")")},
      {"messages[0].content", blocks("user", "null")},
      {"messages[0].content", blocks("user", "[]")},
      {"messages[0].content", blocks("user", "7")},
      {"messages[0].content[0]", blocks("user", R"(["x"])")},
      {"messages[0].content[0].type", blocks("user", R"([{"text": "x"}])")},
      {"messages[0].content[0].text", blocks("user", R"([{"type": "text"}])")},
      {"messages[0].content[1]",
       blocks("user", R"([{"type": "text", "text": "x"}, {"type": "image", "source": {}}])")},
      {"messages[0].content[0]", blocks("user", R"([{"type": "hologram"}])")},
      {"messages[0].content[0]", blocks("user", R"([{"type": "tool_use", "id": "c"}])")},
      {"messages[0].content[0]", blocks("assistant", R"([{"type": "tool_result"}])")},
      {"messages[0].content[0].tool_use_id", blocks("user", R"([{"type": "tool_result"}])")},
      {"messages[0].content[0].tool_use_id",
       blocks("user", R"([{"type": "tool_result", "tool_use_id": "c1", "content": "x"}])")},
      {"messages[0].content[0].input",
       blocks("assistant", R"([{"type": "tool_use", "id": "c", "name": "n", "input": "{}"}])")},
      {"messages[0].content[0].id", blocks("assistant", R"([{"type": "tool_use", "name": "n"}])")},
      {"messages",
       blocks("assistant", R"([{"type": "tool_use", "id": "c", "name": "n", "input": {}}])")},
      {"messages", blocks("assistant", R"([{"type": "redacted_thinking", "data": "x"}])")},
      {"messages[1].content[0].content[0]",
       R"("messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c",
           "name": "n", "input": {}}]}, {"role": "user", "content": [{"type": "tool_result",
           "tool_use_id": "c", "content": [{"type": "image"}]}]}])"},
      {"system", R"("system": 7)"},
      {"system[0]", R"("system": [{"type": "image"}])"},
      {"tools[0].type", R"("tools": [{"type": "web_search_20250305", "name": "web_search"}])"},
      {"tools[0].input_schema", R"("tools": [{"name": "n"}])"},
      {"tool_choice.type", R"("tool_choice": {"type": "required"})"},
      {"tool_choice", R"("tool_choice": "auto")"},
      {"tool_choice", R"("tool_choice": {"type": "any"})"},
      {"tool_choice", R"("tool_choice": {"type": "tool", "name": "n"})"},
      {"thinking.type", R"("thinking": {"type": "maybe"})"},
      {"stop_sequences", R"("stop_sequences": [""])"},
      {"temperature", R"("temperature": "hot")"},
      {"output_config", R"("output_config": 1)"},
      {"container", R"("container": "c")"},
      {"mcp_servers", R"("mcp_servers": [{"url": "x"}])"}};
  for (const auto& [field, fields] : bad) {
    try {
      read(fields);
      ADD_FAILURE() << fields;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.param, field) << fields << ": " << error.what();
      EXPECT_EQ(error.status, 400);
    }
  }
  EXPECT_NO_THROW(read(R"("max_tokens": null)", Route::count_tokens));
}

class EchoingModel : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  std::optional<ChatTemplate> chat_template() const override {
    return ChatTemplate{"{% for m in messages %}{{ m['content'] }}{% endfor %}", "", "", false};
  }
};

struct Formatted {
  EchoingModel model{ScriptedOptions{}};
  Ladder ladder = make_ladder(make_plan(model.facts().geometry, Extension{}), 2000);
  engine::ChatRenderer renderer;
  Service service = make_service(model, ladder, renderer, settings());
  static ServerSettings settings() {
    ServerSettings s;
    s.context = 2000;
    s.model_name = "scripted";
    return s;
  }
  std::unique_ptr<AnswerFormat> format() {
    return make_format({service, read(R"("stop_sequences": ["END"], "user": "u")"), 0x12});
  }
};

Outcome outcome(Outcome::End end, const std::string& stop = {}) {
  Outcome o;
  o.end = end;
  o.prompt = 7;
  o.cached = 5;
  o.written = 3;
  o.stop_string = stop;
  return o;
}

std::vector<ordered_json> events_of(const std::string& out) {
  std::vector<ordered_json> events;
  std::istringstream in(out);
  std::string name;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("event: ", 0) == 0) name = line.substr(7);
    if (line.rfind("data: ", 0) != 0) continue;
    events.push_back(ordered_json::parse(line.substr(6)));
    EXPECT_EQ(events.back()["type"], name);
  }
  return events;
}

// The events, with the blocks and deltas that they have.
std::string outline(const std::vector<ordered_json>& events) {
  std::string all;
  for (const ordered_json& event : events) {
    all += event["type"].get<std::string>();
    if (event.contains("index")) all += " " + event["index"].dump();
    if (event.contains("content_block")) all += " " + event["content_block"].dump();
    if (event.contains("delta")) all += " " + event["delta"].dump();
    all += "\n";
  }
  return all;
}

TEST(Anthropic, StreamHasTheEventsOfEachBlock) {
  Formatted f;
  const auto format = f.format();
  std::string out;
  format->opening(out, 0);
  EXPECT_EQ(out, "");  // the length of the prompt is not known yet
  Answer::Part part;
  part.now = outcome(Outcome::End::stop);
  format->progress(out, 0, part.now);
  format->chunk(out, 0, {"", "Hm", {}}, part);
  format->chunk(out, 0, {"Let me", "", {}}, part);
  format->chunk(out, 0, {" look.", "", {{0, {"c1", "weather", "{\"ci"}}}}, part);
  format->chunk(out, 0, {"", "", {{0, {"", "", "ty\":1}"}}, {1, {"c2", "time", "{}"}}}}, part);
  format->chunk(out, 0, {"Then", "", {}}, part);
  format->closing(out, 0, outcome(Outcome::End::stop), true);
  const std::vector<ordered_json> events = events_of(out);
  EXPECT_EQ(outline(events), R"(message_start
ping
content_block_start 0 {"type":"thinking","thinking":"","signature":""}
content_block_delta 0 {"type":"thinking_delta","thinking":"Hm"}
content_block_delta 0 {"type":"signature_delta","signature":""}
content_block_stop 0
content_block_start 1 {"type":"text","text":""}
content_block_delta 1 {"type":"text_delta","text":"Let me"}
content_block_delta 1 {"type":"text_delta","text":" look."}
content_block_stop 1
content_block_start 2 {"type":"tool_use","id":"c1","name":"weather","input":{}}
content_block_delta 2 {"type":"input_json_delta","partial_json":"{\"ci"}
content_block_delta 2 {"type":"input_json_delta","partial_json":"ty\":1}"}
content_block_stop 2
content_block_start 3 {"type":"tool_use","id":"c2","name":"time","input":{}}
content_block_delta 3 {"type":"input_json_delta","partial_json":"{}"}
content_block_stop 3
content_block_start 4 {"type":"text","text":""}
content_block_delta 4 {"type":"text_delta","text":"Then"}
content_block_stop 4
message_delta {"stop_reason":"tool_use","stop_sequence":null}
message_stop
)");
  const ordered_json& message = events.front()["message"];
  EXPECT_EQ(message["id"], "msg_0000000000000012");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_TRUE(message["content"].empty() && message["stop_reason"].is_null());
  EXPECT_EQ(message["usage"]["input_tokens"], 2);
  EXPECT_EQ(message["usage"]["cache_read_input_tokens"], 5);
  const ordered_json& last = events[events.size() - 2];
  EXPECT_EQ(last["usage"]["output_tokens"], 3);
  EXPECT_EQ(last["mrrope"]["ignored"][0], "user");
}

TEST(Anthropic, WholeAnswersAndWhyTheyEnd) {
  Formatted f;
  using End = Outcome::End;
  const auto whole = [&](const Delta& delta, const Outcome& o) {
    return f.format()->whole({{delta, {}, o}});
  };
  const ordered_json calls =
      whole({"Look.", "Hm", {{0, {"c1", "weather", R"({"city":1})"}}, {1, {"c2", "time", ""}}}},
            outcome(End::stop));
  EXPECT_EQ(calls["content"].dump(), R"([{"type":"thinking","thinking":"Hm","signature":""},)"
                                     R"({"type":"text","text":"Look."},)"
                                     R"({"type":"tool_use","id":"c1","name":"weather",)"
                                     R"("input":{"city":1}},)"
                                     R"({"type":"tool_use","id":"c2","name":"time","input":{}}])");
  EXPECT_EQ(calls["stop_reason"], "tool_use");
  EXPECT_EQ(calls["type"], "message");
  EXPECT_EQ(calls["usage"]["input_tokens"], 2);
  const ordered_json stopped = whole({"a", "", {}}, outcome(End::stop, "END"));
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "END");
  const ordered_json ended = whole({"a", "", {}}, outcome(End::stop, "<|of the template|>"));
  EXPECT_EQ(ended["stop_reason"], "end_turn");
  EXPECT_TRUE(ended["stop_sequence"].is_null());
  const ordered_json cut = whole({"", "", {{0, {"c1", "weather", "{\"ci"}}}}, outcome(End::length));
  EXPECT_EQ(cut["stop_reason"], "max_tokens");
  EXPECT_TRUE(cut["content"].empty());
}

TEST(Anthropic, ErrorsHaveItsShape) {
  Formatted f;
  std::string out;
  f.format()->failure(out, ApiError(504, "too slow", {}, "timeout"));
  EXPECT_EQ(out,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"timeout_error\","
            "\"message\":\"too slow\"}}\n\n");
  const std::pair<int, const char*> types[] = {{400, "invalid_request_error"},
                                               {401, "authentication_error"},
                                               {403, "permission_error"},
                                               {404, "not_found_error"},
                                               {413, "request_too_large"},
                                               {429, "rate_limit_error"},
                                               {500, "api_error"},
                                               {503, "overloaded_error"}};
  for (const auto& [status, type] : types) {
    EXPECT_EQ(anthropic_error_json(ApiError(status, "x"))["error"]["type"], type);
  }
  ApiError long_prompt(400, "shorten it");
  long_prompt.excess = {201, 200};
  EXPECT_EQ(anthropic_error_json(long_prompt)["error"]["message"],
            "prompt is too long: 201 tokens > 199 maximum: shorten it");
}

TEST(Anthropic, AnswersAndCountsOfAModel) {
  Formatted f;
  ASSERT_EQ(f.service.chat_error, "");
  f.model.use(f.ladder);
  Working scheduler(f.model, f.ladder, SchedulerLimits{1, 4, 2000});
  const auto submitted = [&](const CompletionRequest& request) {
    return submit(f.service, scheduler, prepare_jobs(f.service, request, {}), 1, 1);
  };
  const CompletionRequest request = read(R"("temperature": 0, "max_tokens": 4)");
  const auto answers = take_whole(f.service, submitted(request), [] { return false; });
  // As it is sent: what the model writes need not be UTF-8.
  const ordered_json whole =
      ordered_json::parse(json_text(make_format({f.service, request, 7})->whole(answers)));
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
  EXPECT_EQ(whole["usage"]["output_tokens"], 4);
  EventStream stream(f.service, submitted(request), make_format({f.service, request, 7}));
  std::string out, text;
  while (!stream.next(out, std::chrono::milliseconds(100))) {
  }
  const std::vector<ordered_json> events = events_of(out);
  EXPECT_EQ(events.front()["type"], "message_start");
  EXPECT_EQ(events.back()["type"], "message_stop");
  const ordered_json& usage = events.front()["message"]["usage"];
  EXPECT_EQ(usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>(), 2);
  for (const ordered_json& event : events) {
    if (event["type"] == "content_block_delta") text += event["delta"]["text"];
  }
  EXPECT_EQ(text, whole["content"][0]["text"]);
  const auto count = [&](const std::string& body) {
    return count_tokens_reply(f.service, body, {}).dump();
  };
  // BOS and a token for each byte.
  EXPECT_EQ(count(R"({"system": "ab", "messages": [{"role": "user", "content": "cde"}]})"),
            R"({"input_tokens":6})");
  EXPECT_THROW(count(R"({"model": "other", "messages": [{"role": "user", "content": "x"}]})"),
               ApiError);
  EXPECT_THROW(count(R"({"system": "ab"})"), ApiError);
}

}  // namespace
}  // namespace mrrope::serve
