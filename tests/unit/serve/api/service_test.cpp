// SPDX-License-Identifier: Apache-2.0
#include "serve/api/service.h"

#include <condition_variable>

#include "support/crowd.h"
#include "support/scripted.h"
#include "support/test.h"
#include "unit/serve/routes.h"
#include "unit/serve/schedule/finish.h"

namespace mrrope::serve {
namespace {

// Stops before its computation number `at` until open() is called.
class GatedModel : public ScriptedModel {
 public:
  explicit GatedModel(int at) : ScriptedModel(ScriptedOptions{}), at_(at) {}
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    {
      std::unique_lock lock(mutex_);
      ++calls_;
      changed_.wait(lock, [&] { return open_ || calls_ != at_; });
    }
    ScriptedModel::read_together(readings, observer);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  const int at_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int calls_ = 0;
};

ServerSettings settings() {
  ServerSettings s;
  s.context = 2000;
  s.model_name = "scripted";
  s.method = "none";
  return s;
}

ServerSettings without_time() {
  ServerSettings s = settings();
  s.timeout = std::chrono::seconds(-1);
  return s;
}

struct Trial {
  explicit Trial(ScriptedModel& model, const ServerSettings& s = settings())
      : ladder(make_ladder(make_plan(model.facts().geometry, Extension{}), 2000)),
        service(make_service(model, ladder, renderer, s)) {}
  engine::ChatRenderer renderer;
  Ladder ladder;
  Service service;
};

std::vector<PendingAnswer> submitted(Trial& t, Scheduler& scheduler,
                                     const CompletionRequest& request) {
  return submit(t.service, scheduler, prepare_jobs(t.service, request, {}), request.answers, 1);
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
  ServerSettings any = settings();
  any.any_model = true;
  any.context = std::int64_t{1} << 40;
  const Trial t(model), open(model, any);
  const Service& service = t.service;
  const auto job = [&](const std::string& body, Route route) {
    return described(prepare_jobs(service, parse_request(body, route, service.limits), {}).front());
  };
  const test::Functions functions = {
      {"job", [&](auto& a) { return job(a[0], Route::completion); }},
      {"chat", [&](auto& a) { return job(a[0], Route::chat); }},
      {"seed",
       [&](auto& a) {
         const auto request = parse_request(a[0], Route::completion, service.limits);
         return std::to_string(prepare_jobs(service, request, {}).front().job.sampling.seed);
       }},
      {"tokenize", [&](auto& a) { return tokenize_reply(service, a[0], {}).dump(); }},
      {"detokenize", [&](auto& a) { return detokenize_reply(service, a[0]).dump(); }},
      {"props", [&](auto&) { return props_reply(service)["rungs"].dump(); }},
      {"models", [&](auto&) { return models_reply(service)["data"][0]["id"].dump(); }},
      {"model", [&](auto& a) { return check_model(service, a[0]), std::string("ok"); }},
      {"any", [&](auto& a) { return check_model(open.service, a[0]), std::string("ok"); }},
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
class PatientModel : public ScriptedModel {
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
  PatientModel model(ScriptedOptions{});
  const Trial trial(model), expired(model, without_time());
  const Service &service = trial.service, &late = expired.service;
  const CompletionRequest request =
      parse_request(R"({"prompt": "abc"})", Route::completion, service.limits);
  const std::string body = R"({"content": "abc"})";
  const auto gone = [] { return true; };
  EXPECT_EQ(prepare_jobs(service, request, {}).front().job.prompt.size(), 4U);
  EXPECT_EQ(status_of([&] { prepare_jobs(service, request, gone); }), 499);
  EXPECT_EQ(status_of([&] { prepare_jobs(late, request, {}); }), 504);
  EXPECT_EQ(status_of([&] { tokenize_reply(service, body, gone); }), 499);
  EXPECT_EQ(status_of([&] { tokenize_reply(late, body, {}); }), 504);
}

class ChattyModel : public ScriptedModel {
 public:
  using ScriptedModel::ScriptedModel;
  std::optional<ChatTemplate> chat_template() const override {
    return ChatTemplate{"{% for m in messages %}{{ m['content'] }}{% endfor %}", "", "", false};
  }
};

TEST(Service, WaitingForATemplateEnds) {
  const auto before = test::children_of(getpid());
  ChattyModel model(ScriptedOptions{});
  Trial trial(model);
  const Service& service = trial.service;
  ASSERT_EQ(service.chat_error, "");
  const Service late = make_service(model, trial.ladder, trial.renderer, without_time());
  const std::string chat = R"({"messages": [{"role": "user", "content": "x"}]})";
  const CompletionRequest request = parse_request(chat, Route::chat, service.limits);
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
  EXPECT_EQ(status_of([&] {
              prepare_jobs(service, parse_request(grammar, Route::completion, service.limits),
                           gone);
            }),
            499);
}

// Whatever goes wrong in a stream, its client is told.
TEST(Service, AStreamThatFailsEndsWithAnError) {
  ScriptedModel model({});
  Trial t(model);
  model.use(t.ladder);
  Working scheduler(model, t.ladder, {1, 4, 2000});
  const CompletionRequest request =
      parse_request(R"({"prompt": "abc", "max_tokens": 3})", Route::completion, t.service.limits);
  struct FailingFormat final : AnswerFormat {
    using AnswerFormat::AnswerFormat;
    void chunk(std::string&, int, const Delta&, const Answer::Part&) override {}
    void closing(std::string&, int, const Outcome&, bool) override {
      throw std::runtime_error("no such key");
    }
    ordered_json whole(const std::vector<Completion>&) override { return {}; }
  };
  EventStream stream(t.service, submitted(t, scheduler, request),
                     std::make_unique<FailingFormat>(AnswerFormat::Basis{t.service, request, 7}));
  std::string out;
  while (!stream.next(out, std::chrono::milliseconds(100))) {
  }
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
  GatedModel model(2);  // the prompt takes two computations
  Trial t(model);
  model.use(t.ladder);
  std::vector<std::string> log;
  SchedulerLimits limits{1, 4, 2000};
  limits.quiet = std::chrono::milliseconds(0);
  limits.on_prefill = [&](const Progress& p) {
    log.push_back(prefill_text(p, t.ladder.rungs().size()));
  };
  Working scheduler(model, t.ladder, limits);
  const CompletionRequest request =
      parse_request(R"({"prompt": ")" + std::string(799, 'x') + R"(", "max_tokens": 3})",
                    Route::completion, t.service.limits);
  EventStream stream(t.service, submitted(t, scheduler, request),
                     make_format({t.service, request, 7}));
  std::string out;
  while (out.empty()) EXPECT_FALSE(stream.next(out, std::chrono::milliseconds(100)));
  EXPECT_EQ(out.rfind(": {\"mrrope\":{\"rung\":0,", 0), 0U) << out;
  EXPECT_TRUE(contains(out, "\"prefill\":{\"read\":512,\"total\":800,"));
  model.open();
  while (!stream.next(out, std::chrono::milliseconds(100))) {
  }
  EXPECT_TRUE(contains(out, "data: [DONE]\n\n"));
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0].rfind("reading a prompt: 512 of 800 tokens, ", 0), 0U) << log[0];
  EXPECT_TRUE(contains(log[0], " left, rung 1 of 1"));
  EXPECT_EQ(log[1].rfind("read a prompt of 800 tokens in ", 0), 0U) << log[1];
}

}  // namespace
}  // namespace mrrope::serve
