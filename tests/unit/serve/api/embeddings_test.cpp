// SPDX-License-Identifier: Apache-2.0
// Embeddings over a model without weights, and what a file says of its model.
#include "unit/serve/trial.h"

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

struct EmbedTrial : Served {
  using Served::Served;
  ordered_json ask(const ordered_json& body, Route route = Route::embeddings) {
    use = {};
    return embeddings_reply(
        service, *scheduler, route, body.dump(), [] { return false; }, use);
  }
  Progress use;
};

// The numbers of an embedding are the tokens of a text, the first and the last of them; "ends"
// makes texts get an end, and "bare" has a model without embeddings.
TEST(Embeddings, AreMadeOrRefused) {
  Embedder model(ScriptedOptions{});
  ScriptedModel without(ScriptedOptions{});
  EmbedTrial trial(model), bare(without);
  test::Functions functions;
  for (const std::string route : {"embeddings", "ollama_embed", "ollama_embeddings"}) {
    functions[route] = [&, route](auto& a) {
      model.ends = a.size() > 1 && a[1] == "ends";
      EmbedTrial& t = a.size() > 1 && a[1] == "bare" ? bare : trial;
      const std::string said =
          refusal([&] { return t.ask(ordered_json::parse(a[0]), route_named(route)).dump(); });
      return std::regex_replace(said, std::regex("_duration\":[0-9]+"), "_duration\":0") +
             cat(" (", t.use.prompt, " tokens)");
    };
  }
  test::expect_functions("embeddings", functions);
}

TEST(Embeddings, AThousandTextsLeaveRoomForAnswers) {
  Embedder model(ScriptedOptions{});
  EmbedTrial t(model);
  Job job = greedy({1, 2, 3}, 200);
  job.sampling.ignore_end = true;
  const auto answer = t.scheduler->submit(job);
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
    t.scheduler->between_rounds([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return true;
    });
    embeddings_reply(
        t.service, *t.scheduler, Route::embeddings, body, [&] { return ++asked > 1; }, use);
  });
  EXPECT_EQ(status, 499);
  while (!t.scheduler->idle()) std::this_thread::yield();
  t.scheduler->refuse_new();
  EXPECT_EQ(status_of([&] { t.ask({{"input", "a"}}); }), 503);
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
