// SPDX-License-Identifier: Apache-2.0
// Answers in every shape, whole and as streams, over a model without weights.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "base/json.h"
#include "serve/api/service.h"
#include "support/scripted.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

constexpr std::chrono::milliseconds kWait{100};
constexpr BodyLimits limits(bool has_template) { return {100000, 1 << 18, 4096, has_template}; }

CompletionRequest parse_ollama_chat(std::string_view body) {
  return parse_request(body, Route::ollama_chat, limits(true));
}
CompletionRequest parse_ollama_generate(std::string_view body, bool has_template = true) {
  return parse_request(body, Route::ollama_generate, limits(has_template));
}

// Answers "Where?" with "Here.", and anything else with noise.
class KnowingModel : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    ScriptedModel::read_together(readings, [&](std::size_t i, std::span<const float> logits) {
      std::vector<float> changed(logits.begin(), logits.end());
      if (const auto next = known(detokenize(readings[i].timeline->tokens()))) {
        changed[static_cast<std::size_t>(*next)] = 100;
      }
      observer(i, changed);
    });
  }

 private:
  static std::optional<Token> known(const std::string& text) {
    const std::string question = "Where?", answer = "Here.";
    const std::size_t at = text.rfind(question);
    if (at == std::string::npos) return std::nullopt;
    const std::string said = text.substr(at + question.size());
    if (answer.compare(0, said.size(), said) != 0) return std::nullopt;
    return said == answer ? kEnd : static_cast<Token>(answer[said.size()]);
  }
};

struct Served {
  Served()
      : model(ScriptedOptions{}),
        ladder(make_ladder(make_plan(model.facts().geometry, Extension{}), 2000)),
        service(make_service(model, ladder, renderer, settings())),
        scheduler(model, ladder, SchedulerLimits{2, 8, 2000}) {
    model.use(ladder);
  }
  static ServerSettings settings() {
    ServerSettings s;
    s.context = 2000;
    s.model_name = "scripted";
    return s;
  }
  std::vector<PendingAnswer> submitted(const CompletionRequest& request) {
    return submit(service, scheduler, prepare_jobs(service, request, {}), request.answers, 1);
  }
  std::string stream(const std::string& body, Route route) {
    const CompletionRequest request = parse_request(body, route, service.limits);
    EventStream events(service, submitted(request), make_format({service, request, 7}));
    std::string out;
    while (!events.next(out, kWait)) {
    }
    return out;
  }
  ordered_json whole(const std::string& body, Route route) {
    const CompletionRequest request = parse_request(body, route, service.limits);
    const auto answers = take_whole(service, submitted(request), [] { return false; });
    return make_format({service, request, 7})->whole(answers);
  }

  engine::ChatRenderer renderer;
  KnowingModel model;
  Ladder ladder;
  Service service;
  Working scheduler;
};

// The JSON of server-sent events, without the last line and comments.
std::vector<ordered_json> events(const std::string& out) {
  std::vector<ordered_json> list;
  std::istringstream in(out);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("data: {", 0) == 0) list.push_back(ordered_json::parse(line.substr(6)));
  }
  return list;
}

std::vector<ordered_json> lines(const std::string& out) {
  std::vector<ordered_json> list;
  std::istringstream in(out);
  for (std::string line; std::getline(in, line);) list.push_back(ordered_json::parse(line));
  return list;
}

TEST(OpenAi, SeveralAnswersAndTheEcho) {
  Served s;
  const ordered_json whole =
      s.whole(R"({"prompt": "Where?", "n": 2, "echo": true, "temperature": 0})", Route::completion);
  ASSERT_EQ(whole["choices"].size(), 2U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(whole["choices"][i]["index"], i);
    EXPECT_EQ(whole["choices"][i]["text"], "Where?Here.");
    EXPECT_EQ(whole["choices"][i]["finish_reason"], "stop");
  }
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 10);

  const std::string out = s.stream(
      R"({"prompt": "Where?", "n": 2, "echo": true, "temperature": 0, "stream": true,
          "stream_options": {"include_usage": true}})",
      Route::completion);
  std::map<int, std::string> texts, ends;
  ordered_json usage;
  for (const ordered_json& event : events(out)) {
    if (event["choices"].empty()) {
      usage = event["usage"];
      continue;
    }
    const ordered_json& choice = event["choices"][0];
    texts[choice["index"]] += choice["text"].get<std::string>();
    if (!choice["finish_reason"].is_null()) ends[choice["index"]] = choice["finish_reason"];
  }
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "Where?Here."}, {1, "Where?Here."}}));
  EXPECT_EQ(ends, (std::map<int, std::string>{{0, "stop"}, {1, "stop"}}));
  EXPECT_EQ(usage["completion_tokens"], 10);
  EXPECT_EQ(out.substr(out.size() - 14), "data: [DONE]\n\n");
}

TEST(OpenAi, DifferentSeedsForSeveralAnswers) {
  Served s;
  const ordered_json whole =
      s.whole(R"({"prompt": "abc", "n": 3, "max_tokens": 30, "seed": 5})", Route::completion);
  std::set<std::string> texts;
  for (const ordered_json& choice : whole["choices"]) texts.insert(json_text(choice["text"]));
  EXPECT_EQ(texts.size(), 3U);
  const ordered_json alone =
      s.whole(R"({"prompt": "abc", "max_tokens": 30, "seed": 6})", Route::completion);
  EXPECT_EQ(json_text(alone["choices"][0]["text"]), json_text(whole["choices"][1]["text"]));
}

TEST(OpenAi, ProgressIfAskedFor) {
  Served s;
  const std::string prompt = std::string(700, 'x') + "Where?";
  const auto progress = [&](const std::string& more, Route route) {
    std::vector<ordered_json> list;
    for (const ordered_json& event :
         events(s.stream(R"({"prompt": ")" + prompt +
                             R"(", "stream": true, "cache_prompt": false)" + more + "}",
                         route))) {
      if (event.contains("prompt_progress")) list.push_back(event["prompt_progress"]);
    }
    return list;
  };
  EXPECT_TRUE(progress("", Route::completion).empty());
  for (const Route route : {Route::completion, Route::llama_completion}) {
    const auto seen = progress(R"(, "return_progress": true)", route);
    ASSERT_GE(seen.size(), 2U);
    EXPECT_EQ(seen.front()["processed"], 0);  // before anything is read
    for (std::size_t i = 1; i < seen.size(); ++i) {
      EXPECT_GT(seen[i]["processed"], seen[i - 1]["processed"]);
    }
    EXPECT_EQ(seen.back()["total"], 707);
    EXPECT_EQ(seen.back()["processed"], 707);
    EXPECT_EQ(seen.back()["cache"], 0);
    EXPECT_TRUE(seen.back().contains("time_ms"));
  }
}

TEST(OpenAi, EachPromptHasItsAnswers) {
  Served s;
  const std::string body = R"({"prompt": ["Where?", "oh Where?", [87, "here?"]], "temperature": 0)";
  const ordered_json whole = s.whole(body + R"(, "n": 2, "echo": true})", Route::completion);
  ASSERT_EQ(whole["choices"].size(), 6U);
  EXPECT_EQ(whole["choices"][1]["text"], "Where?Here.");
  EXPECT_EQ(whole["choices"][2]["text"], "oh Where?Here.");
  EXPECT_EQ(whole["choices"][5]["text"], "Where?Here.");
  EXPECT_EQ(whole["choices"][5]["index"], 5);
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 7 + 10 + 6);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 30);
  EXPECT_EQ(whole["timings"]["predicted_n"], 5);
  const ordered_json list = s.whole(body + "}", Route::llama_completion);
  ASSERT_EQ(list.size(), 3U);
  for (const ordered_json& one : list) EXPECT_EQ(one["content"], "Here.");
  EXPECT_EQ(list[2]["index"], 2);
}

TEST(LlamaServer, PromptThatDoesNotFitIsRefusedWithItsNumbers) {
  Served s;
  try {
    s.whole(R"({"prompt": ")" + std::string(2500, 'x') + "\"}", Route::llama_completion);
    FAIL() << "a prompt of 2501 tokens in a context of 2000";
  } catch (const ApiError& error) {
    const ordered_json about = error_json(error)["error"];
    EXPECT_EQ(about["type"], "exceed_context_size_error");
    EXPECT_EQ(about["code"], "context_length_exceeded");
    EXPECT_EQ(about["n_prompt_tokens"], 2501);
    EXPECT_EQ(about["n_ctx"], 2000);
    EXPECT_NE(std::string(error.what()).find("exceeds the available context size"),
              std::string::npos);
  }
  EXPECT_FALSE(error_json(ApiError(400, "x"))["error"].contains("n_ctx"));
}

TEST(OpenAi, OffsetsCountCharacters) {
  Served s;
  CompletionRequest request;
  request.logprobs = 0;
  Completion answer;
  for (const char byte : std::string("\u00e9\u20acx")) {  // 2, 3 and 1 bytes, a token each
    ChosenToken chosen;
    chosen.token = static_cast<unsigned char>(byte);
    answer.tokens.push_back(chosen);
  }
  const ordered_json whole = make_format({s.service, request, 7})->whole({answer});
  EXPECT_EQ(whole["choices"][0]["logprobs"]["text_offset"], ordered_json({0, 1, 1, 2, 2, 2}));
}

// Keys of one object must differ, and two pieces that are no characters would both be U+FFFD.
TEST(OpenAi, PartsOfCharactersHaveNames) {
  Served s;
  const ordered_json whole =
      s.whole(R"({"prompt": "Where?", "temperature": 0, "logprobs": 2, "max_tokens": 1,
                  "logit_bias": {"240": 100}})",
              Route::completion);
  const ordered_json& said = whole["choices"][0]["logprobs"];
  EXPECT_EQ(said["tokens"][0], "bytes:\\xf0") << json_text(whole);
}

TEST(LlamaServer, CompletionHasItsFields) {
  Served s;
  const ordered_json whole =
      s.whole(R"({"prompt": "Where?", "temperature": 0, "return_tokens": true, "n_probs": 2})",
              Route::llama_completion);
  EXPECT_EQ(whole["content"], "Here.");
  EXPECT_EQ(whole["tokens"], ordered_json({'H', 'e', 'r', 'e', '.'}));
  EXPECT_EQ(whole["stop_type"], "eos");
  EXPECT_EQ(whole["tokens_evaluated"], 7);
  EXPECT_EQ(whole["tokens_predicted"], 5);
  EXPECT_EQ(whole["timings"]["predicted_n"], 5);
  EXPECT_EQ(whole["completion_probabilities"].size(), 5U);
  EXPECT_EQ(whole["completion_probabilities"][0]["top_logprobs"].size(), 2U);
  const ordered_json& settings = whole["generation_settings"];
  EXPECT_EQ(settings["temperature"], 0);
  EXPECT_EQ(settings["n_predict"], -1);
  EXPECT_TRUE(settings["logit_bias"].empty());
  EXPECT_EQ(whole["has_new_line"], false);
  EXPECT_EQ(whole["truncated"], false);
  const ordered_json bound = s.whole(
      R"({"prompt": "Where?", "logit_bias": {"72": -2}, "ignore_eos": true, "n_predict": -1})",
      Route::llama_completion);
  EXPECT_EQ(bound["truncated"], true);
  EXPECT_EQ(bound["generation_settings"]["logit_bias"][0],
            ordered_json({{"token", 72}, {"bias", -2.0}}));
  EXPECT_TRUE(bound["generation_settings"]["logit_bias"][1]["bias"].is_null());

  const ordered_json word = s.whole(
      R"({"prompt": "Where?", "temperature": 0, "stop": ["zz", "re"]})", Route::llama_completion);
  EXPECT_EQ(word["content"], "He");
  EXPECT_EQ(word["stop_type"], "word");
  EXPECT_EQ(word["stopping_word"], "re");
  EXPECT_EQ(s.whole(R"({"prompt": "Where?", "temperature": 0, "n_predict": 2})",
                    Route::llama_completion)["stop_type"],
            "limit");

  std::string text;
  const auto list = events(s.stream(R"({"prompt": "Where?", "temperature": 0, "stream": true})",
                                    Route::llama_completion));
  std::size_t tokens = 0;
  for (const ordered_json& event : list) {
    text += event["content"].get<std::string>();
    tokens += event["tokens"].size();
    EXPECT_LE(event["tokens"].size(), 1U);
  }
  EXPECT_EQ(text, "Here.");
  EXPECT_EQ(tokens, 5U);
  EXPECT_FALSE(list.front()["stop"].get<bool>());
  EXPECT_TRUE(list.back()["stop"].get<bool>());
}

TEST(Ollama, GenerateAnswersInLines) {
  Served s;
  const auto list =
      lines(s.stream(R"({"model": "scripted", "prompt": "Where?", "options": {"temperature": 0}})",
                     Route::ollama_generate));
  std::string text;
  for (const ordered_json& line : list) {
    text += line["response"].get<std::string>();
    EXPECT_EQ(line["model"], "scripted");
    EXPECT_EQ(line["done"], &line == &list.back());
  }
  EXPECT_EQ(text, "Here.");
  EXPECT_EQ(list.back()["done_reason"], "stop");
  EXPECT_EQ(list.back()["prompt_eval_count"], 7);
  EXPECT_EQ(list.back()["eval_count"], 5);
  const ordered_json whole = s.whole(
      R"({"prompt": "Where?", "stream": false, "options": {"temperature": 0, "num_predict": 2}})",
      Route::ollama_generate);
  EXPECT_EQ(whole["response"], "He");
  EXPECT_EQ(whole["done_reason"], "length");
}

TEST(Ollama, ChatsAndToolCalls) {
  Served s;
  CompletionRequest request;
  request.route = Route::ollama_chat;
  request.chat = true;
  const auto format = make_format({s.service, request, 7});
  std::string out;
  Answer::Part part;
  Delta first, second;
  first.content = "Well.";
  first.calls = {{0, {"c1", "look", "{\"at\":"}}};
  second.calls = {{0, {"", "", " 5}"}}, {1, {"c2", "go", ""}}};
  format->chunk(out, 0, first, part);
  format->chunk(out, 0, second, part);
  Outcome outcome;
  outcome.end = Outcome::End::stop;
  format->closing(out, 0, outcome, true);
  const auto list = lines(out);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0]["message"]["content"], "Well.");
  const ordered_json& calls = list[1]["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]["function"]["name"], "look");
  EXPECT_EQ(calls[0]["function"]["arguments"]["at"], 5);
  EXPECT_TRUE(calls[1]["function"]["arguments"].is_object());
  EXPECT_TRUE(list[2]["done"].get<bool>());
  EXPECT_TRUE(std::regex_match(list[2]["created_at"].get<std::string>(),
                               std::regex(R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));

  // An answer that was cut off inside a call makes none.
  for (const char* written : {"", "{\"at\":"}) {
    outcome.end = Outcome::End::length;
    Delta cut;
    cut.calls = {{0, {"c1", "look", "{}"}}, {1, {"c2", "go", written}}};
    const ordered_json whole = make_format({s.service, request, 7})->whole({{cut, {}, outcome}});
    ASSERT_EQ(whole["message"]["tool_calls"].size(), 1U) << written;
    EXPECT_EQ(whole["message"]["tool_calls"][0]["function"]["name"], "look");
  }
}

TEST(Ollama, AnEmptyPromptLoadsTheModel) {
  Served s;
  for (const char* body : {R"({"prompt": ""})", "{}"}) {
    const CompletionRequest request = parse_request(body, Route::ollama_generate, s.service.limits);
    EXPECT_TRUE(request.load_only) << body;
    const ordered_json said = make_format({s.service, request, 7})->whole({});
    EXPECT_EQ(said["response"], "");
    EXPECT_EQ(said["done_reason"], "load");
  }
  const CompletionRequest chat =
      parse_request(R"({"messages": []})", Route::ollama_chat, s.service.limits);
  EXPECT_TRUE(chat.load_only);
  EXPECT_EQ(make_format({s.service, chat, 7})->whole({})["message"]["content"], "");
}

TEST(Ollama, ReadsRequests) {
  const CompletionRequest r = parse_ollama_chat(
      R"({"model": "m", "messages": [{"role": "user", "content": "x"},
          {"role": "assistant", "content": "", "thinking": "hm", "tool_calls":
            [{"function": {"name": "f", "arguments": {"a": 1}}}]},
          {"role": "tool", "content": "5", "tool_name": "f"}],
          "format": "json", "think": false, "keep_alive": "5m",
          "options": {"num_predict": -1, "num_ctx": 4096, "top_k": 3, "seed": 2, "stop": ["a"],
                      "repeat_penalty": 1.3, "num_thread": 4}})");
  EXPECT_TRUE(r.chat && r.stream && !r.conversation.thinking);
  EXPECT_EQ(r.schema, R"({"type":"object"})");
  EXPECT_EQ(r.sampling.top_k, 3);
  EXPECT_EQ(r.sampling.temperature, 0.8);
  EXPECT_EQ(r.sampling.repeat_penalty, 1.3);
  EXPECT_EQ(r.stop, std::vector<std::string>{"a"});
  EXPECT_EQ(r.ignored, (std::vector<std::string>{"keep_alive", "options.num_thread"}));
  EXPECT_NE(r.conversation.messages.find(R"("reasoning_content":"hm")"), std::string::npos);
  EXPECT_NE(r.conversation.messages.find(R"("name":"f"})"), std::string::npos);

  const CompletionRequest chat = parse_ollama_generate(R"({"prompt": "x", "system": "Be brief."})");
  EXPECT_TRUE(chat.chat && chat.single_message);
  EXPECT_EQ(chat.conversation.messages,
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"x"}])");
  EXPECT_FALSE(parse_ollama_generate(R"({"prompt": "x"})", false).chat);
  EXPECT_FALSE(parse_ollama_generate(R"({"prompt": "x", "raw": true})").chat);
}

TEST(Ollama, RefusalsNameTheField) {
  const auto field = [](const std::string& more, bool chat) -> std::string {
    const std::string start =
        chat ? R"({"messages": [{"role": "user", "content": "x"}], )" : R"({"prompt": "x", )";
    try {
      static_cast<void>(chat ? parse_ollama_chat(start + more + "}")
                             : parse_ollama_generate(start + more + "}"));
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status, 400);
      return error.param;
    }
    return "";
  };
  const char* chats[][2] = {
      {"options.num_ctx", R"("options": {"num_ctx": 8192})"},
      {"options.num_predict", R"("options": {"num_predict": 0})"},
      {"options.temperature", R"("options": {"temperature": "hot"})"},
      {"options.mirostat", R"("options": {"mirostat": 1})"},
      {"options", R"("options": 5)"},
      {"format", R"("format": "xml")"},
      {"options.ignore_eos", R"("format": "json", "options": {"ignore_eos": true})"},
      {"think", R"("think": 5)"},
      {"stream", R"("stream": "no")"},
      {"logprobs", R"("logprobs": true)"},
      {"tools", R"("tools": 5)"}};
  for (const auto& [name, more] : chats) EXPECT_EQ(field(more, true), name) << more;
  const char* texts[][2] = {{"context", R"("context": [1, 2])"},
                            {"template", R"("template": "x")"},
                            {"suffix", R"("suffix": "x")"},
                            {"images", R"("images": ["x"])"},
                            {"raw", R"("raw": 1)"},
                            {"system", R"("raw": true, "system": "x")"}};
  for (const auto& [name, more] : texts) EXPECT_EQ(field(more, false), name) << more;
}

TEST(Ollama, TellsAboutTheModel) {
  Served s;
  EXPECT_EQ(ollama_tags_reply(s.service)["models"][0]["name"], "scripted");
  const ordered_json shown = ollama_show_reply(s.service, R"({"model": "scripted:latest"})");
  EXPECT_EQ(shown["capabilities"], ordered_json({"completion"}));
  EXPECT_EQ(shown["model_info"]["general.architecture"], s.model.facts().architecture);
  EXPECT_THROW(ollama_show_reply(s.service, R"({"model": "other"})"), ApiError);
  EXPECT_THROW(ollama_show_reply(s.service, "[]"), ApiError);
}

}  // namespace
}  // namespace mrrope::serve
