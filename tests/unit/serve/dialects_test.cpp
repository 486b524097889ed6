// SPDX-License-Identifier: Apache-2.0
// Answers in the shapes of every dialect, whole and as streams, over a model without weights.

#include "base/json.h"
#include "serve/api/service.h"
#include "support/scripted.h"
#include "support/test.h"
#include "unit/serve/routes.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

// Answers "Where?" with "Here.", and anything else with noise.
class KnowingModel : public ScriptedModel {
 public:
  explicit KnowingModel(bool chats) : ScriptedModel(ScriptedOptions{}), chats_(chats) {}
  std::optional<ChatTemplate> chat_template() const override {
    if (!chats_) return std::nullopt;
    return ChatTemplate{"{% for m in messages %}{{ m['content'] }}{% endfor %}", "", "", false};
  }
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

  bool chats_;
};

struct Served {
  explicit Served(bool chats = false)
      : model(chats),
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
    while (!events.next(out, std::chrono::milliseconds(100))) {
    }
    return out;
  }
  ordered_json whole(const std::string& body, Route route) {
    const CompletionRequest request = parse_request(body, route, service.limits);
    if (request.load_only) return make_format({service, request, 7})->whole({});
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

// Without the times of the machine.
std::string timeless(const std::string& text) {
  static const std::regex seconds(
      R"x("(\w*(_ms|_seconds?|_duration|created|created_at|seed))":[-+.e0-9]+)x");
  static const std::regex date(R"x("created_at":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")x");
  return std::regex_replace(std::regex_replace(text, seconds, R"("$1":0)"), date,
                            R"("created_at":"DATE")");
}

// A line for each event.
std::string lines_of(std::string text) {
  text = std::regex_replace(text, std::regex("\n(?!data)\n*|\n$"), "\n");
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

Outcome outcome(Outcome::End end, const std::string& stop = {}) {
  Outcome o;
  o.end = end;
  o.prompt = 7;
  o.cached = 5;
  o.written = 3;
  o.stop_string = stop;
  return o;
}

// Reasoning, text, two calls and text again, in pieces.
std::string streamed(AnswerFormat& format) {
  std::string out;
  format.opening(out, 0);
  Answer::Part part;
  part.now = outcome(Outcome::End::stop);
  format.progress(out, 0, part.now);
  format.chunk(out, 0, {"", "Hm", {}}, part);
  format.chunk(out, 0, {"Let me", "", {}}, part);
  format.chunk(out, 0, {" look.", "", {{0, {"c1", "weather", "{\"ci"}}}}, part);
  format.chunk(out, 0, {"", "", {{0, {"", "", "ty\":1}"}}, {1, {"c2", "time", "{}"}}}}, part);
  format.chunk(out, 0, {"Then", "", {}}, part);
  format.closing(out, 0, outcome(Outcome::End::stop), true);
  return out;
}

// An answer of each kind, by the word for it in the transcript.
Completion completion_of(const std::string& kind) {
  using End = Outcome::End;
  const Delta calls{
      "Look.", "Hm", {{0, {"c1", "weather", R"({"city":1})"}}, {1, {"c2", "time", ""}}}};
  const auto cut_call = [](const char* written) {
    return Delta{"", "", {{0, {"c1", "look", "{}"}}, {1, {"c2", "go", written}}}};
  };
  if (kind == "calls") return {calls, {}, outcome(End::stop)};
  if (kind == "stop-string") return {{"a", "", {}}, {}, outcome(End::stop, "END")};
  if (kind == "template-end") return {{"a", "", {}}, {}, outcome(End::stop, "<|end|>")};
  if (kind == "cut") return {{"Here", "", {}}, {}, outcome(End::length)};
  if (kind == "cut-before-a-call") return {cut_call(""), {}, outcome(End::length)};
  if (kind == "cut-in-a-call") return {cut_call("{\"at\":"), {}, outcome(End::length)};
  return {{}, {}, outcome(End::stop)};  // nothing
}

// "answer ROUTE BODY": the reply. "stream ROUTE", "end ROUTE KIND", "failure ROUTE": how the
// dialect writes what the two functions above have, and an error. "error STATUS": Anthropic's.
std::string reply(const std::string& input) {
  std::istringstream words(input);
  std::string what, route, rest;
  words >> what >> route >> std::ws;
  std::getline(words, rest);
  Served s(what != "answer");
  if (what == "answer") return json_text(s.whole(rest, route_named(route)));
  if (what == "long") {
    const ordered_json body = {{"prompt", std::string(std::stoul(rest), 'x')}};
    return json_text(s.whole(body.dump(), route_named(route)));
  }
  if (what == "error") return anthropic_error_json(ApiError(std::stoi(route), "x")).dump();
  if (what == "tags") return ollama_tags_reply(s.service).dump();
  if (what == "show") return ollama_show_reply(s.service, rest).dump();
  if (what == "count") return count_tokens_reply(s.service, rest, {}).dump();
  CompletionRequest request;
  request.route = route_named(route);
  request.chat = true;
  request.stop = {"END"};
  request.ignored = {"user"};
  const auto format = make_format({s.service, request, 0x12});
  if (what == "end") return format->whole({completion_of(rest)}).dump();
  if (what == "stream") return lines_of(streamed(*format));
  std::string out;
  format->failure(out, ApiError(504, "too slow", {}, "timeout"));
  return lines_of(out);
}

// As OpenAI's routes and as Anthropic's write it.
std::string reply_or_error(const std::string& input) {
  try {
    return reply(input);
  } catch (const ApiError& error) {
    return cat(error.status, " ", error_json(error).dump(), "\n",
               anthropic_error_json(error).dump());
  }
}

TEST(Dialects, AnswersHaveTheirShapes) {
  test::expect_transcript("replies",
                          [](const std::string& in) { return timeless(reply_or_error(in)); });
}

TEST(OpenAi, StreamsSeveralAnswersWithTheEcho) {
  Served s;
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

TEST(LlamaServer, StreamsATokenAtATime) {
  Served s;
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
  const std::string out =
      s.stream(R"({"model": "scripted", "prompt": "Where?", "options": {"temperature": 0}})",
               Route::ollama_generate);
  std::vector<ordered_json> list;
  std::istringstream in(out);
  for (std::string line; std::getline(in, line);) list.push_back(ordered_json::parse(line));
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
}

TEST(Anthropic, StreamsAndCountsTokens) {
  Served s(true);
  ASSERT_EQ(s.service.chat_error, "");
  const std::string body = R"({"temperature": 0, "max_tokens": 4, "messages":
      [{"role": "user", "content": "x"}])";
  // As it is sent: what the model writes need not be UTF-8.
  const ordered_json whole = ordered_json::parse(json_text(s.whole(body + "}", Route::messages)));
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
  EXPECT_EQ(whole["usage"]["output_tokens"], 4);
  const auto list = events(s.stream(body + R"(, "stream": true})", Route::messages));
  EXPECT_EQ(list.front()["type"], "message_start");
  EXPECT_EQ(list.back()["type"], "message_stop");
  const ordered_json& usage = list.front()["message"]["usage"];
  EXPECT_EQ(usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>(), 2);
  std::string text;
  for (const ordered_json& event : list) {
    if (event["type"] == "content_block_delta") text += event["delta"]["text"];
  }
  EXPECT_EQ(text, whole["content"][0]["text"]);
}

}  // namespace
}  // namespace mrrope::serve
