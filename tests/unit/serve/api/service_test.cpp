// SPDX-License-Identifier: Apache-2.0
#include "support/crowd.h"
#include "unit/serve/trial.h"

namespace mrrope::serve {
namespace {

ServerSettings without_time() {
  ServerSettings s = scripted_settings();
  s.timeout = std::chrono::seconds(-1);
  return s;
}

// What a job has that not every job has.
std::string described(const PreparedJob& order) {
  const Job& job = order.job;
  std::string out = cat(ordered_json(job.prompt).dump(), " then ", job.length);
  if (!job.cache_prompt) out += ", not cached";
  if (!job.cache_salt.empty()) out += ", salt " + job.cache_salt;
  if (!order.syntax.echo.empty()) out += ", echo " + order.syntax.echo;
  if (job.sampling.repeat_last_n != Sampling{}.repeat_last_n) {
    out += cat(", repeat_last_n ", job.sampling.repeat_last_n);
  }
  for (const auto& [token, bias] : job.sampling.bias) out += cat(", bias ", token, " ", bias);
  return out;
}

TEST(Service, AnswersOrRefuses) {
  ScriptedModel model({});
  ServerSettings any = scripted_settings();
  any.any_model = true;
  any.context = std::int64_t{1} << 40;
  const Served t(model), open(model, any);
  const Service& service = t.service;
  const auto job = [&](const std::string& body, Route route) {
    return described(prepare_jobs(service, t.parsed(body, route), {}).front());
  };
  const test::Functions functions = {
      {"job", [&](auto& a) { return job(a[0], Route::completion); }},
      {"chat", [&](auto& a) { return job(a[0], Route::chat); }},
      {"seed",
       [&](auto& a) {
         return cat(prepare_jobs(service, t.parsed(a[0]), {}).front().job.sampling.seed);
       }},
      {"tokenize", [&](auto& a) { return tokenize_reply(service, a[0], {}).dump(); }},
      {"detokenize", [&](auto& a) { return detokenize_reply(service, a[0]).dump(); }},
      {"props", [&](auto&) { return props_reply(service)["rungs"].dump(); }},
      {"models", [&](auto&) { return models_reply(service)["data"][0]["id"].dump(); }},
      {"model", [&](auto& a) { return check_model(service, a[0]), std::string("ok"); }},
      {"any", [&](auto& a) { return check_model(open.service, a[0]), std::string("ok"); }},
      {"log",
       [](auto& a) {
         Progress use;
         for (int rung = std::stoi(a[1]); rung > 0; --rung) {
           add_use(
               use,
               {.prompt = 30, .cached = 20, .written = 5, .length = 35, .rung = std::size_t(rung)});
         }
         const std::string line = log_line(use, "POST /completion", 12.34, 200, a[0] == "json");
         return std::regex_replace(line, std::regex("2[-0-9T:]{18}Z"), "TIME");
       }},
      {"limits",
       [&](auto&) {
         return cat(open.service.limits.bytes, " bytes, ", open.service.limits.values, " values");
       }},
      {"metrics", [&](auto&) {
         SchedulerCounts counts;
         counts.ended[Outcome::End::stop] = 3;
         return " " +
                std::regex_replace(metrics_text(counts, {{200, 5}}, 1.5), std::regex("\n"), "\n ");
       }}};
  test::Functions refusing;
  for (const auto& [name, function] : functions) {
    refusing[name] = [&function = function](auto& a) {
      return refusal([&] { return function(a); });
    };
  }
  test::expect_functions("service", refusing);
}

// A model whose tokenizer asks whether to go on.
class AskingModel : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  std::optional<std::vector<Token>> tokenize_unless(
      std::string_view text, bool add_bos, bool special,
      const std::function<bool()>& give_up) const override {
    for (int i = 0; i < 3; ++i) {
      if (give_up()) return std::nullopt;
    }
    return tokenize(text, add_bos, special);
  }
};

TEST(Service, TokenizingStopsOnDisconnectAndTimeout) {
  AskingModel model(ScriptedOptions{});
  const Served trial(model), expired(model, without_time());
  const Service &service = trial.service, &late = expired.service;
  const CompletionRequest request = trial.parsed(R"({"prompt": "abc"})");
  const std::string body = R"({"content": "abc"})";
  const auto gone = [] { return true; };
  EXPECT_EQ(prepare_jobs(service, request, {}).front().job.prompt.size(), 4U);
  EXPECT_EQ(status_of([&] { prepare_jobs(service, request, gone); }), 499);
  EXPECT_EQ(status_of([&] { prepare_jobs(late, request, {}); }), 504);
  EXPECT_EQ(status_of([&] { tokenize_reply(service, body, gone); }), 499);
  EXPECT_EQ(status_of([&] { tokenize_reply(late, body, {}); }), 504);
}

TEST(Service, WaitingForATemplateEnds) {
  const auto before = test::children_of(getpid());
  PacedModel model({}, kJoinedMessages);
  Served trial(model);
  const Service& service = trial.service;
  ASSERT_EQ(service.chat_error, "");
  const Service late = make_service(model, trial.ladder, trial.renderer, without_time());
  const std::string chat = R"({"messages": [{"role": "user", "content": "x"}]})";
  const CompletionRequest request = trial.parsed(chat, Route::chat);
  const auto gone = [] { return true; };
  test::Crowd crowd(trial.renderer, before);
  EXPECT_EQ(status_of([&] { prepare_jobs(service, request, {}); }), 429);
  EXPECT_EQ(status_of([&] { apply_template_reply(service, chat, {}); }), 429);
  crowd.gone = true;
  while (crowd.left < test::Crowd::kWaiting) std::this_thread::yield();
  EXPECT_EQ(status_of([&] { prepare_jobs(service, request, gone); }), 499);
  EXPECT_EQ(status_of([&] { prepare_jobs(late, request, {}); }), 504);
  EXPECT_EQ(status_of([&] { apply_template_reply(service, chat, gone); }), 499);
  const std::string grammar = R"({"prompt": "x", "grammar": "root ::= [a-z]"})";
  EXPECT_EQ(status_of([&] { prepare_jobs(service, trial.parsed(grammar), gone); }), 499);
}

// Whatever goes wrong in a stream, its client is told.
TEST(Service, AStreamThatFailsEndsWithAnError) {
  ScriptedModel model({});
  Served t(model);
  const CompletionRequest request = t.parsed(R"({"prompt": "abc", "max_tokens": 3})");
  struct FailingFormat final : AnswerFormat {
    using AnswerFormat::AnswerFormat;
    void chunk(std::string&, int, const Delta&, const Answer::Part&) override {}
    void closing(std::string&, int, const Outcome&, bool) override {
      throw std::runtime_error("no such key");
    }
    ordered_json whole(const std::vector<Completion>&) override { return {}; }
  };
  const std::string out =
      text_of({t.service, t.submitted(request),
               std::make_unique<FailingFormat>(AnswerFormat::Basis{t.service, request, 7})});
  EXPECT_EQ(out.rfind("data: {\"error\":{\"message\":\"no such key\"", 0), 0U) << out;
}

// Ten times as slow at the end as at the start; then the same after 900 cached tokens.
TEST(Service, TimeLeftCountsThatALongTextReadsSlower) {
  Progress now{.prompt = 1000, .read = 100, .read_seconds = 10};
  EXPECT_DOUBLE_EQ(now.seconds_left(), 90);
  now.growth = 0.009;
  EXPECT_NEAR(now.seconds_left(), 369.31, 0.01);
  now.cached = 900, now.read = 50;
  EXPECT_NEAR(now.seconds_left(), 10.48, 0.01);
}

// A stream reports the progress of a long prompt in comments, which clients skip; the log does so
// in lines.
TEST(Service, LongPromptsReportProgress) {
  PacedModel model;
  model.held_after = 512;  // the first of two computations
  std::vector<std::string> log;
  ServerSettings settings = scripted_settings();
  settings.quiet = std::chrono::milliseconds(0);
  settings.on_prefill = [&](const Progress& p) { log.push_back(prefill_text(p, 1)); };
  Served t(model, settings);
  const CompletionRequest request =
      t.parsed(R"({"prompt": ")" + std::string(799, 'x') + R"(", "max_tokens": 3})");
  EventStream stream(t.service, t.submitted(request), make_format({t.service, request, 7}));
  std::string out;
  while (out.empty()) EXPECT_FALSE(stream.next(out, std::chrono::milliseconds(100)));
  EXPECT_EQ(out.rfind(": {\"mrrope\":{\"rung\":0,", 0), 0U) << out;
  EXPECT_TRUE(contains(out, "\"prefill\":{\"read\":512,\"total\":800,"));
  model.release();
  EXPECT_TRUE(contains(text_of(std::move(stream)), "data: [DONE]\n\n"));
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0].rfind("reading a prompt: 512 of 800 tokens, ", 0), 0U) << log[0];
  EXPECT_TRUE(contains(log[0], " left, rung 1 of 1"));
  EXPECT_EQ(log[1].rfind("read a prompt of 800 tokens in ", 0), 0U) << log[1];
}

}  // namespace
}  // namespace mrrope::serve
