// SPDX-License-Identifier: Apache-2.0
// Answers in the shapes of every dialect, whole and as streams, over a model without weights.

#include "base/json.h"
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

// Answers "Where?" with "Here.", and anything else with noise.
class KnowingModel : public PacedModel {
 public:
  explicit KnowingModel(bool chats) : PacedModel({}, chats ? kJoinedMessages : "") {}
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    PacedModel::read_together(readings, [&](std::size_t i, std::span<const float> logits) {
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

// What is sent to a client.
std::string answered(Served& s, const std::string& body, Route route) {
  const CompletionRequest request = s.parsed(body, route);
  const auto format = [&] { return make_format({s.service, request, 7}); };
  if (request.load_only) return json_text(format()->whole({}));
  std::vector<PendingAnswer> pending = s.submitted(request);
  if (!request.stream) {
    const auto go_on = [] { return false; };
    return json_text(format()->whole(take_whole(s.service, std::move(pending), go_on)));
  }
  // So that all of it comes at once: a step runs after the last part was given.
  while (!s.scheduler->idle()) std::this_thread::yield();
  const auto given = std::make_shared<std::promise<void>>();
  s.scheduler->between_rounds([given] {
    given->set_value();
    return true;
  });
  given->get_future().wait();
  return lines_of(text_of({s.service, std::move(pending), format()}));
}

// "answer ROUTE BODY": the reply. "long ROUTE N BODY": that to N letters. "stream ROUTE", "end
// ROUTE KIND", "failure ROUTE": how the dialect writes what the two functions above have, and an
// error. "error STATUS": Anthropic's.
std::string reply(const std::string& input) {
  std::istringstream words(input);
  std::string what, route, rest;
  words >> what >> route >> std::ws;
  std::getline(words, rest);
  KnowingModel model(what != "answer" || route == "messages");
  Served s(model);
  if (what == "answer") return answered(s, rest, route_named(route));
  if (what == "long") {
    std::size_t end = 0;
    const std::string text(std::stoul(rest, &end), 'x');
    ordered_json body = ordered_json::parse(end < rest.size() ? rest.substr(end) : "{}");
    body["prompt"] = text;
    return answered(s, body.dump(), route_named(route));
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

TEST(OpenAi, DifferentSeedsForSeveralAnswers) {
  KnowingModel model(false);
  Served s(model);
  const auto choices = [&](const std::string& body) {
    return ordered_json::parse(answered(s, body, Route::completion))["choices"];
  };
  const ordered_json three = choices(R"({"prompt": "abc", "n": 3, "max_tokens": 30, "seed": 5})");
  std::set<std::string> texts;
  for (const ordered_json& choice : three) texts.insert(choice["text"]);
  EXPECT_EQ(texts.size(), 3U);
  const ordered_json alone = choices(R"({"prompt": "abc", "max_tokens": 30, "seed": 6})");
  EXPECT_EQ(alone[0]["text"], three[1]["text"]);
}

TEST(OpenAi, OffsetsCountCharacters) {
  KnowingModel model(false);
  const Served s(model);
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

}  // namespace
}  // namespace mrrope::serve
