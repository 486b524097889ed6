// SPDX-License-Identifier: Apache-2.0
// What a context that grows costs over a static one, in one run.
//
//   elastic_bench MODEL --tokens 16384 [--step 1.19] [--repeat 1] [--threads N] [-ctk TYPE]
//
// static    a prompt of --tokens tokens read under MrRoPE-Pro
// elastic   the same under elastic:pro: more batches, since they end where rungs do, and the turns
// turns     the turns alone: every rung's, with the number of keys at that point
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "engine/llama/local.h"
#include "engine/llama/local_model.h"
#include "mrrope/error.h"
#include "mrrope/model.h"

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(const std::string& path, mrrope::engine::LocalOptions options, double step, int repeat) {
  using namespace mrrope;
  const std::int64_t tokens = options.context;
  const auto model = open_local(read_model(path), options);
  auto& local = dynamic_cast<engine::LocalModel&>(*model);
  const Geometry& geometry = model->facts().geometry;
  LadderRequest request;
  request.extension.method = "pro";
  request.rung_step = step;
  request.longest = tokens;
  const Ladder ladder = make_ladder(geometry, request);
  const Ladder fixed = make_ladder(ladder.rungs().back().plan, tokens);
  std::vector<Token> text(std::size_t(tokens), 0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = Token((i * 7919 + 13) % std::size_t(model->vocabulary()));
  }
  std::vector<std::int32_t> cells(text.size());
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = std::int32_t(i);

  model->timeline()->append(std::span(text).first(std::min<std::size_t>(512, text.size())));
  std::printf("%lld tokens, window %lld, %zu rungs, keys %s, %s\n", (long long)tokens,
              (long long)geometry.train_length, ladder.rungs().size(), options.type_k.c_str(),
              model->description().c_str());
  for (int i = 0; i < repeat; ++i) {
    model->use(fixed);
    const double plain = seconds_of([&] { model->timeline()->append(text); });
    model->use(ladder);
    const double grown = seconds_of([&] { model->timeline()->append(text); });
    const auto turns = [&] {
      for (std::size_t r = 0; r + 1 < ladder.rungs().size(); ++r) {
        local.turn(std::span(cells).first(std::size_t(ladder.rungs()[r].length)), r, r + 1);
      }
    };
    const double turned = seconds_of(turns);
    std::printf("static %.3f s, elastic %.3f s (x %.3f), turns %.3f s: %.2f %% of static\n", plain,
                grown, grown / plain, turned, 100 * turned / plain);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a context that grows costs");
  std::string path;
  mrrope::engine::LocalOptions options;
  options.context = 16384;
  options.timelines = 1;
  double step = 1.19;
  int repeat = 1;
  app.add_option("model", path)->required();
  app.add_option("--tokens", options.context);
  app.add_option("--step", step);
  app.add_option("--repeat", repeat);
  app.add_option("--threads", options.threads);
  app.add_option("--cache-type-k", options.type_k);
  CLI11_PARSE(app, argc, argv);
  try {
    run(path, options, step, repeat);
  } catch (const mrrope::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
