// SPDX-License-Identifier: Apache-2.0
// What a plan and a score cost, compared with the same libllama without them, in one run.
//
//   engine_bench MODEL [--tokens 4096] [--generate 128] [--repeat 3] [--threads N]
//
// plain     tokens through libllama itself, no callback, only the last logits
// project   the same with the logits of every token computed and left where they are
// callback  as plain, with a callback that does nothing: the cost of the hook itself
// plan      tokens through a timeline under MrRoPE-Pro, no scores
// table     a perplexity table of 8 lengths under MrRoPE-Pro, as `mrrope eval ppl` makes it
// Repeats are interleaved; medians and their ratios to `plain` are printed, because machines drift.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/llama/local.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "llama.h"
#include "mrrope/error.h"
#include "mrrope/model.h"

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A context of libllama without any callback.
class Plain {
 public:
  Plain(const std::string& path, int context, int threads, bool callback) {
    llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = -1;
    model_ = llama_model_load_from_file(path.c_str(), mp);
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = std::uint32_t(context);
    cp.n_batch = 512;
    cp.n_ubatch = 512;
    cp.n_threads = cp.n_threads_batch = threads;
    cp.kv_unified = true;
    if (callback) cp.cb_eval = [](ggml_tensor*, bool, void*) { return false; };
    context_ = llama_init_from_model(model_, cp);
  }
  ~Plain() {
    llama_free(context_);
    llama_model_free(model_);
  }

  void read(std::vector<llama_token> tokens, bool all_logits) {
    llama_memory_clear(llama_get_memory(context_), false);
    for (std::size_t first = 0; first < tokens.size(); first += 512) {
      const int count = int(std::min<std::size_t>(512, tokens.size() - first));
      std::vector<llama_pos> positions(count);
      std::vector<int32_t> counts(count, 1);
      llama_seq_id sequence = 0;
      std::vector<llama_seq_id*> sequences(count, &sequence);
      std::vector<int8_t> wanted(count, all_logits ? 1 : 0);
      wanted.back() = 1;
      for (int i = 0; i < count; ++i) positions[i] = llama_pos(first) + i;
      llama_batch batch{};
      batch.n_tokens = count;
      batch.token = tokens.data() + first;
      batch.pos = positions.data();
      batch.n_seq_id = counts.data();
      batch.seq_id = sequences.data();
      batch.logits = wanted.data();
      if (llama_decode(context_, batch) != 0) throw std::runtime_error("llama_decode failed");
    }
    llama_synchronize(context_);
  }

  // One token at a time, always the most likely.
  void generate(int count) {
    for (int i = 0; i < count; ++i) {
      const float* logits = llama_get_logits_ith(context_, -1);
      const int n = llama_vocab_n_tokens(llama_model_get_vocab(model_));
      llama_token next = llama_token(std::max_element(logits, logits + n) - logits);
      llama_batch batch = llama_batch_get_one(&next, 1);
      if (llama_decode(context_, batch) != 0) throw std::runtime_error("llama_decode failed");
    }
    llama_synchronize(context_);
  }

 private:
  llama_model* model_;
  llama_context* context_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a plan and a score cost");
  std::string path;
  int tokens = 4096, generated = 128, repeat = 3;
  int threads = std::max(1, int(std::thread::hardware_concurrency()));
  app.add_option("model", path)->required();
  app.add_option("--tokens", tokens);
  app.add_option("--generate", generated);
  app.add_option("--repeat", repeat);
  app.add_option("--threads", threads);
  CLI11_PARSE(app, argc, argv);

  std::string text;
  for (int i = 0; int(text.size()) < 6 * tokens; ++i) {
    text += "Lemma " + std::to_string(i) +
            ". For every x we have f(x) <= " + std::to_string(i * i % 9973) + ".\n";
  }
  try {
    const mrrope::Model facts = mrrope::read_model(path);
    mrrope::engine::LocalOptions options;
    options.context = tokens + generated;
    options.threads = threads;
    options.timelines = 2;
    const auto model = mrrope::engine::open_local(facts, options);
    Plain plain(path, tokens + generated, threads, false);
    Plain callback(path, tokens + generated, threads, true);
    std::vector<mrrope::Token> ids = model->tokenize(text, true, false);
    ids.resize(std::size_t(tokens));
    mrrope::Extension pro{.method = "pro", .scale = 8};
    const mrrope::Ladder ladder = make_ladder(make_plan(facts.geometry, pro), tokens + generated);
    model->use(ladder);
    mrrope::eval::PerplexityOptions table;
    for (int i = 1; i <= 8; ++i) table.lengths.push_back(std::int64_t(tokens) * i / 8);
    table.kl_positions = 0;

    std::vector<double> seconds[5], generation[3];
    for (int r = 0; r <= repeat; ++r) {  // the first round warms up
      double s[5], g[3];
      s[0] = seconds_of([&] { plain.read(ids, false); });
      g[0] = seconds_of([&] { plain.generate(generated); });
      s[1] = seconds_of([&] { plain.read(ids, true); });
      s[4] = seconds_of([&] { callback.read(ids, false); });
      g[2] = seconds_of([&] { callback.generate(generated); });
      {
        const auto timeline = model->timeline();
        s[2] = seconds_of([&] { timeline->append(ids); });
        mrrope::GenerateOptions go;
        go.max_tokens = generated;
        std::size_t made = 0;
        g[1] = seconds_of([&] { made = timeline->generate(go).tokens.size(); });
        g[1] *= double(generated) / double(std::max<std::size_t>(1, made));
      }
      s[3] = seconds_of([&] {
        mrrope::eval::RunFolder memory;
        mrrope::eval::Progress silent;
        run_perplexity(*model, {{"pro", ladder}}, {{"text", text}}, table, memory, silent);
      });
      if (r == 0) continue;
      for (int i = 0; i < 5; ++i) seconds[i].push_back(s[i]);
      for (int i = 0; i < 3; ++i) generation[i].push_back(g[i]);
    }
    const char* names[] = {"plain", "project", "plan", "table", "callback"};
    std::printf("%d tokens, median of %d   seconds   tok/s   ratio to plain\n", tokens, repeat);
    for (int i : {0, 1, 4, 2, 3}) {
      const double t = median(seconds[i]);
      std::printf("%-24s %9.3f %8.0f   %.3f\n", names[i], t, tokens / t, t / median(seconds[0]));
    }
    std::printf("generation of %d tokens after them, tok/s (ratio of times to plain):\n",
                generated);
    const char* ways[] = {"plain", "plan", "callback"};
    for (int i : {0, 2, 1}) {
      const double t = median(generation[i]);
      std::printf("%-24s %9.2f   %.3f\n", ways[i], generated / t, t / median(generation[0]));
    }
  } catch (const mrrope::Error& e) {
    std::fprintf(stderr, "%s\n%s\n", e.what(), e.hint().c_str());
    return e.exit_code();
  }
}
