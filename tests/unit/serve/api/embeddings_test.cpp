// SPDX-License-Identifier: Apache-2.0
// Embeddings over a model without weights, and the lines of the log.

#include "serve/api/service.h"
#include "support/scripted.h"
#include "support/test.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

// The number of tokens, the first and the last.
class Embedder : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  std::vector<float> embed(std::span<const Token> tokens) override {
    threads.insert(std::this_thread::get_id());
    if (tokens.back() == '!') throw Error(ErrorKind::failed, "the device is gone");
    return {float(tokens.size()), float(tokens.front()), float(tokens.back())};
  }
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    threads.insert(std::this_thread::get_id());
    ScriptedModel::read_together(readings, observer);
  }
  std::optional<Token> text_end() const override { return ends ? std::optional(7) : std::nullopt; }
  bool ends = false;
  std::set<std::thread::id> threads;  // that computed
};

struct EmbedTrial {
  explicit EmbedTrial(TimelineModel& m)
      : model(m),
        ladder(make_ladder(make_plan(m.facts().geometry, Extension{}), 2000)),
        service(make_service(m, ladder, renderer, settings())),
        scheduler(m, ladder, SchedulerLimits{2, 8, 2000}) {}
  static ServerSettings settings() {
    ServerSettings s;
    s.context = 2000;
    s.model_name = "scripted";
    return s;
  }
  ordered_json ask(const ordered_json& body, Route route = Route::embeddings) {
    use = {};
    return embeddings_reply(
        service, scheduler, route, body.dump(), [] { return false; }, use);
  }
  // The status, and what the message has to contain.
  void refused(const ordered_json& body, const std::string& words, Route route = Route::embeddings,
               int status = 400) {
    try {
      ask(body, route);
      ADD_FAILURE() << body;
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status, status) << error.what();
      EXPECT_TRUE(contains(error.what(), words));
    }
  }
  TimelineModel& model;
  engine::ChatRenderer renderer;
  Ladder ladder;
  Service service;
  Working scheduler;
  Progress use;
};

TEST(Embeddings, HaveOpenAisShape) {
  Embedder model(ScriptedOptions{});
  EmbedTrial t(model);
  const ordered_json one = t.ask({{"input", "abc"}, {"model", "scripted"}, {"user", "me"}});
  EXPECT_EQ(one, ordered_json::parse(R"({"object": "list", "data": [{"object": "embedding",
      "index": 0, "embedding": [4.0, 256.0, 99.0]}], "model": "scripted",
      "usage": {"prompt_tokens": 4, "total_tokens": 4}, "mrrope": {"ignored": ["user"]}})"));
  EXPECT_EQ(t.use.prompt, 4);
  const auto rows = [&](const ordered_json& input) {
    ordered_json out = ordered_json::array();
    const ordered_json said = t.ask({{"input", input}});
    for (const auto& row : said.at("data")) out.push_back(row["embedding"]);
    return out.dump();
  };
  EXPECT_EQ(rows({"a", "bc"}), "[[2.0,256.0,97.0],[3.0,256.0,99.0]]");
  EXPECT_EQ(rows({5, 6}), "[[2.0,5.0,6.0]]");
  EXPECT_EQ(rows({{5, 6}, {9}}), "[[2.0,5.0,6.0],[1.0,9.0,9.0]]");
  const auto packed = t.ask({{"input", {"a"}}, {"encoding_format", "base64"}});
  EXPECT_EQ(packed["data"][0]["embedding"], "AAAAQAAAgEMAAMJC");
  model.ends = true;  // texts get their end, tokens are taken as they are
  EXPECT_EQ(rows({"a"}), "[[3.0,256.0,7.0]]");
  EXPECT_EQ(rows({5, 6}), "[[2.0,5.0,6.0]]");
}

TEST(Embeddings, HaveOllamasShapes) {
  Embedder model(ScriptedOptions{});
  EmbedTrial t(model);
  const ordered_json two = t.ask({{"input", {"a", "bc"}}}, Route::ollama_embed);
  EXPECT_EQ(two["embeddings"].dump(), "[[2.0,256.0,97.0],[3.0,256.0,99.0]]");
  EXPECT_EQ(two["prompt_eval_count"], 5);
  EXPECT_EQ(two["model"], "scripted");
  EXPECT_EQ(t.ask({{"prompt", "a"}}, Route::ollama_embeddings).dump(),
            R"({"embedding":[2.0,256.0,97.0]})");
  // The window has 64 tokens.
  const std::string text(100, 'x');
  EXPECT_EQ(t.ask({{"input", text}}, Route::ollama_embed)["prompt_eval_count"], 64);
  model.ends = true;
  EXPECT_EQ(t.ask({{"prompt", text}}, Route::ollama_embeddings)["embedding"].dump(),
            "[64.0,256.0,7.0]");
  t.refused({{"input", text}, {"truncate", false}}, "102", Route::ollama_embed);
}

TEST(Embeddings, RefuseBadInputByName) {
  Embedder model(ScriptedOptions{});
  EmbedTrial t(model);
  for (const char* empty : {R"("")", "[]", R"(["a", ""])", R"([[1], []])"}) {
    t.refused({{"input", ordered_json::parse(empty)}}, "is empty");
  }
  t.refused(ordered_json::object(), "'input'");
  for (const char* wrong : {"5", "true", R"({"text": "a"})", R"([{"text": "a"}])", R"(["a", 5])",
                            R"([5, "a"])", "[1.5]", "[-1]", "[[1], 2]"}) {
    t.refused({{"input", ordered_json::parse(wrong)}}, "'input");
  }
  t.refused({{"input", {1, 99999}}}, "the last token of the vocabulary is 257");
  t.refused({{"input", std::string(64, 'x')}}, "65 tokens, and the model's window has 64");
  t.refused({{"input", std::vector<std::string>(2049, "a")}}, "at most 2048");
  t.refused({{"input", "a"}, {"encoding_format", "int8"}}, "choose one of float, base64");
  t.refused({{"input", "a"}, {"dimensions", 8}}, "'dimensions' is not supported");
  t.refused({{"input", "a"}, {"model", "other"}}, "no model 'other'", Route::embeddings, 404);
  t.refused({{"input", {1, 2}}}, "must be a string", Route::ollama_embed);
  t.refused({{"prompt", {"a"}}}, "must be a string", Route::ollama_embeddings);
  t.refused({{"input", "a"}}, "'prompt'", Route::ollama_embeddings);
  try {
    t.ask({{"input", {"a", "b!"}}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the device is gone");
  }
  ScriptedModel without(ScriptedOptions{});
  EmbedTrial none(without);
  none.refused({{"input", "a"}}, "has no embeddings");
}

TEST(Embeddings, AThousandTextsLeaveRoomForAnswers) {
  Embedder model(ScriptedOptions{});
  EmbedTrial t(model);
  Job job = greedy({1, 2, 3}, 200);
  job.sampling.ignore_end = true;
  const auto answer = t.scheduler.submit(job);
  const std::vector<std::string> texts(1000, "abc");
  EXPECT_EQ(t.ask({{"input", texts}})["data"].size(), 1000);
  EXPECT_EQ(t.use.prompt, 4000);
  EXPECT_EQ(finish(*answer).outcome.written, 200);
  EXPECT_EQ(model.threads.size(), 1);  // one thread computes everything
}

TEST(Embeddings, AClientThatIsGoneCostsNoMore) {
  Embedder model(ScriptedOptions{});
  EmbedTrial t(model);
  Progress use;
  int asked = 0;
  const std::string body = ordered_json{{"input", std::vector<std::string>(2048, "abc")}}.dump();
  const int status = status_of([&] {
    t.scheduler.between_rounds([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return true;
    });
    embeddings_reply(
        t.service, t.scheduler, Route::embeddings, body, [&] { return ++asked > 1; }, use);
  });
  EXPECT_EQ(status, 499);
  while (!t.scheduler.idle()) std::this_thread::yield();
  t.scheduler.refuse_new();
  t.refused({{"input", "a"}}, "shutting down", Route::embeddings, 503);
}

TEST(RequestLog, HasCountsInWordsOrJson) {
  Progress use;
  const auto line = [&](bool json) { return log_line(use, "POST /completion", 12.34, 200, json); };
  EXPECT_EQ(line(false).substr(20), " POST /completion: 200, 12.3 ms");
  Progress answer;
  answer.prompt = 30;
  answer.cached = 20;
  answer.written = 5;
  answer.length = 35;
  answer.rung = 2;
  add_use(use, answer);
  answer.rung = 1;
  add_use(use, answer);
  EXPECT_EQ(line(false).substr(20),
            " POST /completion: 200, 12.3 ms, 60 tokens in, 40 cached, 10 out, rung 3");
  const auto json = ordered_json::parse(line(true));
  EXPECT_EQ(json.at("time").get<std::string>().size(), 20);
  ordered_json rest = json;
  rest.erase("time");
  EXPECT_EQ(rest, ordered_json::parse(R"({"method": "POST", "route": "/completion", "in": 60,
      "cached": 40, "out": 10, "ms": 12.3, "rung": 2, "status": 200})"));
}

TEST(ModelCard, IsThatOfTheFile) {
  const ModelCard card = model_card(read_model(MRROPE_TINY_MODEL));
  EXPECT_EQ(card.digest.size(), 64);
  EXPECT_EQ(card.digest.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_GT(card.parameters, 1'000'000);
  EXPECT_EQ(card.quantization, "q8_0");
}

}  // namespace
}  // namespace mrrope::serve
