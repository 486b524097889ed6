// SPDX-License-Identifier: Apache-2.0
// What the tests of the server share: models with and without weights under a ladder, a scheduler
// at work or a whole service over them, an answer read to its end, and routes and refusals as
// transcripts show them.
#pragma once

#include "base/text.h"
#include "engine/llama/local.h"
#include "models/architecture_cases.h"
#include "serve/api/service.h"
#include "support/observe.h"
#include "support/scripted.h"
#include "support/test.h"

namespace mrrope::serve {

// As serve opens a model, on the CPU.
inline engine::LocalOptions caches_apart(int slots, std::int64_t context) {
  engine::LocalOptions options;
  options.context = slots * context;
  options.timelines = slots;
  options.unified = false;
  options.threads = 2;
  options.gpu_layers = 0;
  return options;
}

// The same in single precision, where answers agree to 1e-4 however they are computed.
inline engine::LocalOptions exact_caches_apart(int slots, std::int64_t context) {
  engine::LocalOptions options = caches_apart(slots, context);
  options.type_k = options.type_v = "f32";
  options.flash_attention = "off";  // it rounds queries to f16
  return options;
}

inline Metadata metadata_of(const std::string& architecture) {
  for (const ArchitectureCase& sample : architecture_cases()) {
    if (sample.architecture == architecture) return sample.metadata();
  }
  throw std::runtime_error("no case for " + architecture);
}

// Of the vocabulary of small random models.
inline std::vector<Token> random_words(std::size_t count) { return test::words(count, 64); }

inline Ladder growing(const Geometry& geometry, std::int64_t longest) {
  return make_ladder(geometry, parse_method("elastic:pro"), longest);
}

// A scheduler and the thread that it computes on.
class Working : public Scheduler {
 public:
  Working(TimelineModel& model, const Ladder& ladder, const SchedulerLimits& limits)
      : Scheduler(model, ladder, limits), thread_([this] { work(); }) {}
  ~Working() {
    stop();
    thread_.join();
  }

 private:
  std::thread thread_;
};

// Of the refusal, or 200.
inline int status_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ApiError& error) {
    return error.status;
  }
  return 200;
}

// With the log-probabilities of its tokens.
inline Job greedy(const std::vector<Token>& prompt, std::int64_t length) {
  Job job;
  job.prompt = prompt;
  job.length = length;
  job.sampling.temperature = 0;
  job.logprobs = 1;
  return job;
}

struct Said {
  std::vector<Token> tokens;
  std::vector<double> logprobs;
  Outcome outcome;
};

inline Said finish(Answer& answer) {
  Said said;
  for (bool complete = false; !complete;) {
    Answer::Part part;
    complete = answer.take(part, std::chrono::milliseconds(100));
    for (const ChosenToken& chosen : part.tokens) {
      said.tokens.push_back(chosen.token);
      said.logprobs.push_back(chosen.logprob);
    }
  }
  said.outcome = answer.outcome();
  return said;
}

// A model without weights that can be made to wait, to take its time and never to end its text.
class PacedModel : public ScriptedModel {
 public:
  static constexpr std::int64_t kNever = 1 << 20;

  explicit PacedModel(const ScriptedOptions& options = {}, std::string chat_template = {})
      : ScriptedModel(options), chat_template_(std::move(chat_template)) {}
  void read_together(std::span<const Reading> readings, const LogitObserver& observer) override {
    while (held || computed() >= held_after) std::this_thread::yield();
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::set<std::size_t> rungs;
    for (const Reading& reading : readings) {
      rungs.insert(reading.timeline->rung());
      most_tokens = std::max<std::size_t>(most_tokens, reading.tokens.size());
    }
    most_readings = std::max<std::size_t>(most_readings, readings.size());
    most_rungs = std::max<std::size_t>(most_rungs, rungs.size());
    ScriptedModel::read_together(readings, observer);
  }
  bool ends_text(Token token) const override { return !endless && ScriptedModel::ends_text(token); }
  std::optional<ChatTemplate> chat_template() const override {
    if (chat_template_.empty()) return std::nullopt;
    return ChatTemplate{chat_template_, "", "", false};
  }
  bool forgets() const override { return can_forget; }
  std::size_t batch() const override { return most_batch; }
  void release() {
    held = false;
    held_after = kNever;
  }

  std::atomic<bool> held = false, slow = false, endless = false;
  std::atomic<std::int64_t> held_after = kNever;  // tokens
  bool can_forget = true;
  std::size_t most_batch = 512;
  // Of one reading, and of one computation.
  std::atomic<std::size_t> most_tokens = 0, most_readings = 0, most_rungs = 0;

 private:
  const std::string chat_template_;
};

constexpr const char* kJoinedMessages = "{% for m in messages %}{{ m['content'] }}{% endfor %}";

constexpr std::int64_t kTrialContext = 600;

// A scheduler over such a model.
struct ScriptedTrial {
  explicit ScriptedTrial(SchedulerLimits limits, const ScriptedOptions& options = {},
                         const std::string& method = "elastic:pro")
      : model(options),
        ladder(make_ladder(model.facts().geometry, parse_method(method), kTrialContext)) {
    limits.context = kTrialContext;
    model.use(ladder);
    scheduler = std::make_unique<Working>(model, ladder, limits);
  }
  ~ScriptedTrial() { model.release(); }
  Job job(const std::string& text, std::int64_t length = 12) const {
    return greedy(model.tokenize(text, true, false), length);
  }
  Said ask(const Job& asked) { return finish(*scheduler->submit(asked)); }

  PacedModel model;
  Ladder ladder;
  std::unique_ptr<Working> scheduler;
};

// A scheduler over a model with weights.
struct LocalTrial {
  LocalTrial(const Model& facts, const engine::LocalOptions& options, Ladder under,
             const SchedulerLimits& limits)
      : model(open_local(facts, options)), ladder(std::move(under)) {
    model->use(ladder);
    scheduler = std::make_unique<Working>(*model, ladder, limits);
  }
  Said ask(const std::vector<Token>& prompt, std::int64_t length, bool reuse = true,
           const std::string& salt = {}) {
    Job job = greedy(prompt, length);
    job.cache_salt = salt;
    job.cache_prompt = reuse;
    return finish(*scheduler->submit(std::move(job)));
  }

  std::unique_ptr<TimelineModel> model;
  Ladder ladder;
  std::unique_ptr<Working> scheduler;
};

inline ServerSettings scripted_settings() {
  ServerSettings s;
  s.slots = 2;
  s.queue = 8;
  s.context = 2000;
  s.model_name = "scripted";
  s.method = "none";
  return s;
}

// A service and its scheduler over a model without weights, unmodified.
struct Served {
  explicit Served(TimelineModel& model, const ServerSettings& settings = scripted_settings())
      : ladder(make_ladder(make_plan(model.facts().geometry, Extension{}), 2000)),
        service(make_service(model, ladder, renderer, settings)) {
    model.use(ladder);
    scheduler = std::make_unique<Working>(model, ladder, settings);
  }
  CompletionRequest parsed(const std::string& body, Route route = Route::completion) const {
    return parse_request(body, route, service.limits);
  }
  std::vector<PendingAnswer> submitted(const CompletionRequest& request) {
    return submit(service, *scheduler, prepare_jobs(service, request, {}), request.answers, 1);
  }

  engine::ChatRenderer renderer;
  Ladder ladder;
  Service service;
  std::unique_ptr<Working> scheduler;
};

// All of a stream.
inline std::string text_of(EventStream stream) {
  std::string out;
  while (!stream.next(out, std::chrono::milliseconds(100))) {
  }
  return out;
}

inline Route route_named(const std::string& name) {
  static const std::map<std::string, Route> routes = {
      {"completion", Route::completion},
      {"llama_completion", Route::llama_completion},
      {"chat", Route::chat},
      {"responses", Route::responses},
      {"ollama_chat", Route::ollama_chat},
      {"ollama_generate", Route::ollama_generate},
      {"messages", Route::messages},
      {"count_tokens", Route::count_tokens},
      {"embeddings", Route::embeddings},
      {"ollama_embed", Route::ollama_embed},
      {"ollama_embeddings", Route::ollama_embeddings}};
  return routes.at(name);
}

// Without the times and the version of this machine.
inline std::string timeless(const std::string& text) {
  static const std::regex date(R"x("20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")x");
  static const std::regex number(
      R"x("(\w*(_ms|_seconds?|seconds_left|_duration|created|created_at|seed))":[-+.e0-9]+)x");
  static const std::regex version(R"x("version":"[^"]*")x");
  const std::string dated = std::regex_replace(text, date, R"("DATE")");
  return std::regex_replace(std::regex_replace(dated, number, R"("$1":0)"), version,
                            R"("version":0)");
}

// Status, field and message, or the answer.
inline std::string refusal(const std::function<std::string()>& answer) {
  try {
    return answer();
  } catch (const ApiError& error) {
    return cat(error.status, " ", error.param, ": ", error.what());
  }
}

}  // namespace mrrope::serve
