// SPDX-License-Identifier: Apache-2.0
// mrrope serve: a model under a ladder for every program that speaks to OpenAI.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/options.h"
#include "engine/llama/memory.h"
#include "eval/run/progress.h"
#include "mrrope/error.h"
#include "serve/server.h"

namespace mrrope::cli {

namespace {

constexpr int kUsualParallel = 4;

struct ServeFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  LocalOptions engine;
  ServerSettings server;
  int parallel = 0;  // 0: up to four, as memory allows
  std::int64_t timeout = 3600;
  std::string key_file;
  bool json = false;
  bool dry_run = false;
};

std::string read_key(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream in(path, std::ios::binary);
  std::string key;
  std::getline(in, key);
  while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.pop_back();
  if (!in || key.empty()) {
    throw Error(ErrorKind::usage, cat("there is no key in ", path),
                "write it on the first line: head -c 24 /dev/urandom | base64 > key.txt");
  }
  return key;
}

// Every conversation has room for `ctx` tokens of its own.
LocalOptions with_room(LocalOptions engine, std::int64_t ctx, int parallel) {
  engine.timelines = parallel;
  engine.context = ctx * parallel;
  return engine;
}

int usual_parallel(const Model& facts, const LocalOptions& engine, std::int64_t ctx) {
  for (int n = kUsualParallel; n > 1; --n) {
    const MemoryPlan memory = plan_memory(facts, with_room(engine, ctx, n));
    if (memory.total() <= memory.available) return n;
  }
  return 1;
}

void stop_on(int signal) {
  std::signal(signal, [](int number) {
    request_interrupt();
    std::signal(number, SIG_DFL);  // the second one ends the process at once
  });
}

void run_serve(ServeFlags flags) {
  const Subject subject = resolve(flags.subject);
  if (!subject.model) throw Error(ErrorKind::usage, "serve runs a model", "give a GGUF file");
  Model facts = *subject.model;
  facts.geometry = subject.geometry;
  const std::int64_t window = facts.geometry.train_length;
  const std::int64_t ctx = flags.extension.ctx.empty() ? window : parse_length(flags.extension.ctx);
  LadderChoice choice = choose_ladder(flags.extension, facts.geometry, ctx, "serve");
  ServerSettings& server = flags.server;
  server.key = read_key(flags.key_file);
  server.timeout = std::chrono::seconds(flags.timeout);
  server.parallel = flags.parallel > 0 ? flags.parallel : usual_parallel(facts, flags.engine, ctx);
  const LocalOptions engine = with_room(flags.engine, ctx, server.parallel);
  if (flags.dry_run) {
    std::cout << memory_text(facts, engine) << "\n"
              << server.parallel << " conversations of " << ctx << " tokens\n";
    return;
  }

  const auto model = open_local(facts, engine);
  use(*model, choice);
  server.context = std::min(ctx, choice.ladder.longest());
  server.method = choice.name;
  server.model_name = facts.path.stem().string();
  ApiServer api(*model, choice.ladder, chat_renderer(), server);
  stop_on(SIGINT);
  stop_on(SIGTERM);
  const std::string address =
      cat("http://",
          server.host.find(':') == std::string::npos ? server.host : cat("[", server.host, "]"),
          ":", api.port());
  if (!api.chat_trouble().empty()) note(api.chat_trouble());
  if (server.host != "localhost" && server.host != "::1" && server.host.rfind("127.", 0) != 0 &&
      server.key.empty()) {
    note(cat("anybody who reaches ", server.host, " can use this server: give --api-key-file"));
  }
  if (flags.json) {
    std::cout << nlohmann::ordered_json{{"address", address},
                                        {"model", server.model_name},
                                        {"method", server.method},
                                        {"context", server.context},
                                        {"parallel", server.parallel}}
                     .dump()
              << std::endl;
  } else {
    std::cout << server.model_name << " on " << address << ", " << server.parallel
              << (server.parallel == 1 ? " conversation" : " conversations at a time")
              << " of up to " << server.context << " tokens" << std::endl;
  }
  api.run(interrupt_requested);
}

}  // namespace

void add_serve(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* verb = app.add_subcommand("serve", "A model under a plan, over OpenAI's API");
  add_subject(*verb, flags->subject);
  add_extension(*verb, flags->extension);
  verb->add_option("--host", flags->server.host, "Address to listen on")
      ->type_name("ADDRESS")
      ->capture_default_str();
  verb->add_option("--port", flags->server.port, "Port to listen on; 0: any that is free")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option(
          "--parallel", flags->parallel,
          "Conversations at the same time, each with room for --ctx tokens; default: up to "
          "4, as memory allows")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  verb->add_option("--queue", flags->server.queue, "Requests that wait, at most; then 429")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb->add_option("--timeout", flags->timeout, "Seconds for one answer, waiting included")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  verb->add_option("--api-key-file", flags->key_file, "File whose first line clients must know")
      ->type_name("FILE");
  add_engine(*verb, flags->engine);
  verb->add_flag("--json", flags->json, "Print the address as JSON");
  verb->add_flag("--dry-run", flags->dry_run, "Say what memory it would take, and stop");
  verb->footer(
      "Examples:\n"
      "  mrrope serve model.gguf --ctx 128k\n"
      "  mrrope serve model.gguf --ctx 32k --plan plan.json --parallel 8 --port 9000\n"
      "  mrrope serve model.gguf --ctx 32k --host 0.0.0.0 --api-key-file key.txt\n"
      "A page to talk to it is at the address that is printed. Ctrl-C or SIGTERM finishes the\n"
      "answers on their way; a second one does not.");
  verb->callback([flags] { run_serve(*flags); });
}

}  // namespace mrrope::cli
