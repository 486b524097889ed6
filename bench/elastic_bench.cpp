// SPDX-License-Identifier: Apache-2.0
// What a context that grows costs over a static one, in one run.
//
//   elastic_bench MODEL [--tokens 16384] [--method METHOD]... [--repeat 1] [--threads N]
//     [--cache-type-k TYPE] [--turns-only] [--plain]
//
// One row per context: static pro, and each METHOD; by default elastic:pro and far:pi with a near
// part of 1/32 of the window, both on rungs in steps of 1.19, and auto. --plain: last, libllama
// itself without a plan, from the same file.
//
// prompt     seconds to read --tokens tokens, and their ratio to static
// turns      seconds of the turns alone, from rung to rung with the keys there are, in percent of
//            static; --turns-only times these alone: seconds, not minutes
// generate   seconds for 128 tokens after the prompt, and their ratio to static
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/text.h"
#include "core/methods.h"
#include "engine/llama/local_model.h"
#include "mrrope/error.h"
#include "mrrope/model.h"

namespace {

using namespace mrrope;

constexpr int kGenerated = 128;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Row {
  std::string name;
  Ladder ladder;
};

std::vector<Row> rows(const Geometry& geometry, const std::vector<std::string>& methods,
                      std::int64_t tokens) {
  const Ladder elastic = make_ladder(geometry, parse_method("elastic:pro"), tokens);
  std::vector<Row> out = {{"pro", make_ladder(elastic.rungs().back().plan, tokens)}};
  for (const std::string& method : methods) {
    const MethodSpec spec = resolve_auto(geometry, parse_method(method), tokens);
    out.push_back({method, make_ladder(geometry, spec, tokens)});
  }
  return out;
}

// Of libllama itself: seconds to read the text, and for kGenerated tokens after it.
struct PlainTimes {
  double prompt, generated;
};
PlainTimes plain_times(const std::string& path, const engine::LocalOptions& options,
                       std::vector<Token> text) {
  const auto model = engine::load_model({path}, options.gpu_layers);
  const auto context =
      engine::make_context(model.get(), engine::context_params(options, options.context));
  const auto read = [&](std::size_t first, std::size_t count) {
    const llama_batch batch = llama_batch_get_one(text.data() + first, std::int32_t(count));
    if (llama_decode(context.get(), batch) != 0) fail("decode failed");
    llama_synchronize(context.get());
  };
  const auto step = std::size_t(options.ubatch);
  const double prompt = seconds_of([&] {
    for (std::size_t at = 0; at < text.size(); at += step)
      read(at, std::min(step, text.size() - at));
  });
  return {prompt, seconds_of([&] {
            for (int n = 0; n < kGenerated; ++n) read(std::size_t(n), 1);
          })};
}

void run(const std::string& path, const engine::LocalOptions& options,
         const std::vector<std::string>& methods, int repeat, bool turns_only, bool beside) {
  const std::int64_t tokens = options.context - kGenerated;
  const auto model = open_local(read_model(path), options);
  auto& local = dynamic_cast<engine::LocalModel&>(*model);
  const Geometry& geometry = model->facts().geometry;
  std::vector<Token> text(std::size_t(tokens), 0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = Token((i * 7919 + 13) % std::size_t(model->vocabulary()));
  }
  std::vector<std::int32_t> cells(std::size_t(options.context), 0);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = std::int32_t(i);

  if (!turns_only) {  // the first pass of a process is slow
    model->timeline()->append(std::span(text).first(std::min<std::size_t>(512, text.size())));
  }
  std::printf("%lld tokens, window %lld, keys %s, %s\n", (long long)tokens,
              (long long)geometry.train_length, options.type_k.c_str(),
              model->description().c_str());
  if (!turns_only) {
    std::printf("%-44s %6s %21s %22s %22s\n", "context", "rungs", "prompt", "turns", "generate");
  }
  for (int i = 0; i < repeat; ++i) {
    double plain = 0, plain_step = 0;
    for (const Row& row : rows(geometry, methods, options.context)) {
      model->use(row.ladder);
      double prompt = 0, generated = 0;
      if (!turns_only) {
        const auto timeline = model->timeline();
        prompt = seconds_of([&] { timeline->append(text); });
        generated = seconds_of([&] {
          for (int n = 0; n < kGenerated; ++n) {
            timeline->append(std::span(text).subspan(std::size_t(n), 1));
          }
        });
      }
      const std::vector<Rung>& rungs = row.ladder.rungs();
      const double turned = seconds_of([&] {
        for (std::size_t r = 0; r + 1 < rungs.size(); ++r) {
          local.turn(std::span(cells).first(std::size_t(rungs[r].length)), r, r + 1);
        }
      });
      if (turns_only) {
        std::printf("%-44s %6zu turns %9.4f s\n", row.name.c_str(), rungs.size(), turned);
        continue;
      }
      if (plain == 0) plain = prompt, plain_step = generated;
      std::printf("%-44s %6zu %9.3f s (x %6.3f) %9.3f s (%7.2f %%) %9.3f s (x %6.3f)\n",
                  row.name.c_str(), rungs.size(), prompt, prompt / plain, turned,
                  100 * turned / plain, generated, generated / plain_step);
      std::fflush(stdout);
    }
    if (!beside || turns_only) continue;
    const auto [prompt, generated] = plain_times(path, options, text);
    std::printf("%-44s %6d %9.3f s (x %6.3f) %22s %9.3f s (x %6.3f)\n", "libllama", 0, prompt,
                prompt / plain, "", generated, generated / plain_step);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a context that grows costs");
  std::string path;
  engine::LocalOptions options;
  options.context = 16384;
  options.timelines = 1;
  std::vector<std::string> methods = {"elastic:pro(rung_step=1.19)",
                                      "far:pi(near=L/32,near_step=L/32,rung_step=1.19)", "auto"};
  int repeat = 1;
  bool turns_only = false, beside = false;
  app.add_option("model", path)->required();
  app.add_option("--tokens", options.context);
  app.add_option("--method", methods);
  app.add_option("--repeat", repeat);
  app.add_option("--threads", options.threads);
  app.add_option("--cache-type-k", options.type_k);
  app.add_flag("--turns-only", turns_only);
  app.add_flag("--plain", beside);
  CLI11_PARSE(app, argc, argv);
  try {
    run(path, options, methods, repeat, turns_only, beside);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
