// SPDX-License-Identifier: Apache-2.0
// What a context that grows costs over a static one, in one run.
//
//   elastic_bench MODEL [--tokens 16384] [--step 1.19] [--repeat 1] [--threads N]
//     [--cache-type-k TYPE] [--turns-only]
//
// One row per context: static pro, elastic:pro, far:pi with a near part of 1/32 and of a quarter of
// the window, and far:pro for border steps of an eighth, a quarter and half of the window.
//
// prompt     seconds to read --tokens tokens, and their ratio to static
// turns      seconds of the turns alone, from rung to rung with the keys there are, in percent of
//            static; --turns-only times those of elastic:pro and nothing else: seconds, not minutes
// generate   seconds for 128 tokens after the prompt, and their ratio to static
//
// far:pro differs from far:pi by its turns alone: the other two columns stay empty.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/text.h"
#include "core/methods.h"
#include "engine/llama/local.h"
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
  bool reads = true;  // prompt and generate are timed too
};

std::vector<Row> rows(const Geometry& geometry, std::int64_t tokens, double step) {
  const auto ladder = [&](const std::string& method) {
    return make_ladder(geometry, parse_method(method), tokens);
  };
  const std::string rungs = cat("rung_step=", step);
  const Ladder elastic = ladder(cat("elastic:pro(", rungs, ")"));
  std::vector<Row> out = {{"pro", make_ladder(elastic.rungs().back().plan, tokens)},
                          {"elastic:pro", elastic}};
  const auto add_far = [&](const char* method, const char* near, int parts, bool reads) {
    const Ladder far = ladder(cat("far:", method, "(", rungs, ",headroom=", kFarHeadroom,
                                  ",near=", near, ",near_step=L/", parts, ")"));
    out.push_back({cat("far:", method, ", w ", far.near()->step), far, reads});
  };
  add_far("pi", "L/32", 32, true);
  add_far("pi", "L/4", 4, true);
  for (const int parts : {8, 4, 2}) add_far("pro", "L/4", parts, false);
  return out;
}

void run(const std::string& path, const engine::LocalOptions& options, double step, int repeat,
         bool turns_only) {
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
    std::printf("%-16s %6s %21s %22s %22s\n", "context", "rungs", "prompt", "turns", "generate");
  }
  for (int i = 0; i < repeat; ++i) {
    double plain = 0, plain_step = 0;
    for (const Row& row : rows(geometry, options.context, step)) {
      if (turns_only && row.name != "elastic:pro") continue;
      model->use(row.ladder);
      double prompt = 0, generated = 0;
      if (!turns_only && row.reads) {
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
        std::printf("%-16s %6zu turns %9.4f s\n", row.name.c_str(), rungs.size(), turned);
        continue;
      }
      if (plain == 0) plain = prompt, plain_step = generated;
      if (!row.reads) {
        std::printf("%-16s %6zu %21s %9.3f s (%7.2f %%)\n", row.name.c_str(), rungs.size(), "",
                    turned, 100 * turned / plain);
        std::fflush(stdout);
        continue;
      }
      std::printf("%-16s %6zu %9.3f s (x %6.3f) %9.3f s (%7.2f %%) %9.3f s (x %6.3f)\n",
                  row.name.c_str(), rungs.size(), prompt, prompt / plain, turned,
                  100 * turned / plain, generated, generated / plain_step);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a context that grows costs");
  std::string path;
  engine::LocalOptions options;
  options.context = 16384;
  options.timelines = 1;
  double step = 1.19;
  int repeat = 1;
  bool turns_only = false;
  app.add_option("model", path)->required();
  app.add_option("--tokens", options.context);
  app.add_option("--step", step);
  app.add_option("--repeat", repeat);
  app.add_option("--threads", options.threads);
  app.add_option("--cache-type-k", options.type_k);
  app.add_flag("--turns-only", turns_only);
  CLI11_PARSE(app, argc, argv);
  try {
    run(path, options, step, repeat, turns_only);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
