// SPDX-License-Identifier: Apache-2.0
// mrrope serve: a model under a ladder for every client of OpenAI's API.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "base/files/source.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/ladder_text.h"
#include "formats/plan_file.h"
#include "serve/server.h"

namespace mrrope::cli {

namespace {

constexpr int kUsualParallel = 4;

struct ServeFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  engine::LocalOptions engine;
  serve::ServerSettings server;
  int parallel = 0;  // 0: up to kUsualParallel, as memory allows
  std::int64_t timeout = 3600;
  std::optional<std::string> key_file, slot_folder, cors;
  std::vector<std::string> alias;
  std::string log_format = "text";
  bool json = false;
  bool dry_run = false;
};

std::string read_key(const std::string& path) {
  refuse_if(path.empty(), "--api-key-file is empty",
            "give the name of a file, or remove --api-key-file to need no key");
  std::ifstream in(path, std::ios::binary);
  refuse_if(!in, cat("cannot read ", path, ": ", std::strerror(errno)),
            "give --api-key-file a file with the key on its first line");
  char line[4096];  // a longer line is not a key; /dev/zero is not one either
  in.getline(line, sizeof line);
  std::string key = line;
  key.erase(key.find_last_not_of("\r ") + 1);
  refuse_if(!in || key.empty(), cat("no API key on the first line of ", path),
            "write one: head -c 24 /dev/urandom | base64 > key.txt");
  return key;
}

// What a browser sends as Origin: no path, no slash at the end.
void check_origin(const std::string& origin) {
  const std::size_t scheme = origin.starts_with("http://")    ? 7
                             : origin.starts_with("https://") ? 8
                                                              : 0;
  const bool whole = scheme > 0 && origin.size() > scheme &&
                     origin.find_first_of("/ ,", scheme) == std::string::npos;
  if (origin == "*" || whole) return;
  refuse(cat("--cors ", origin, " is not an origin"),
         "give scheme, host and port without a path, such as http://localhost:3000, or '*'");
}

// Each conversation has room for `ctx` tokens of its own, or all share as many.
engine::LocalOptions with_room(engine::LocalOptions engine, std::int64_t ctx, int parallel) {
  engine.timelines = parallel;
  engine.context = engine.unified ? ctx : ctx * parallel;
  return engine;
}

int usual_parallel(const Model& facts, const engine::LocalOptions& engine, std::int64_t ctx) {
  for (int n = kUsualParallel; n > 1; --n) {
    const engine::MemoryPlan memory = plan_memory(facts, with_room(engine, ctx, n));
    if (memory.total() <= memory.available) return n;
  }
  return 1;
}

void run_serve(ServeFlags flags) {
  const Model facts = model_of(flags.subject);
  LadderChoice choice = choose_ladder(flags.extension, facts, "serve");
  const std::int64_t ctx = choice.ctx;
  serve::ServerSettings& server = flags.server;
  if (flags.key_file) server.key = read_key(*flags.key_file);
  if (flags.cors) check_origin(server.cors = *flags.cors);
  const bool by_path = path_exists(flags.subject.model);
  server.model_name = by_path ? facts.path.stem().string() : flags.subject.model;
  for (const std::string& name : flags.alias) {
    refuse_if(name.empty(), "--alias is empty",
              "give a name, or remove --alias to use that of the file");
    if (name == "*") {
      server.any_model = true;
    } else {
      server.model_name = name;
    }
  }
  refuse_if(server.deterministic && flags.engine.unified,
            "--deterministic needs a cache for each conversation: in a unified one the order of "
            "sums depends on the others",
            "remove --kv-unified");
  server.timeout = std::chrono::seconds(flags.timeout);
  server.slots = flags.parallel > 0 ? flags.parallel : usual_parallel(facts, flags.engine, ctx);
  const engine::LocalOptions engine = with_room(flags.engine, ctx, server.slots);
  if (flags.slot_folder) {
    refuse_if(!folder_exists(*flags.slot_folder),
              cat("--slot-save-path ", *flags.slot_folder, " is not a folder"),
              "give a folder that exists");
    refuse_if(engine.unified && choice.ladder.elastic(),
              "--slot-save-path needs a cache for each conversation where the context grows",
              "remove --kv-unified, or give a --method that does not grow");
    server.slot_folder = std::filesystem::canonical(*flags.slot_folder);
  }
  const engine::Places places{{}, {flags.slot_folder.value_or("")}};
  if (flags.dry_run) {
    std::cout << server.slots << (server.slots == 1 ? " conversation of " : " conversations of ")
              << ctx << (engine.unified ? " tokens together\n" : " tokens each\n");
    engine::check_before_loading(facts, {&choice.ladder}, places);
    return print_memory(facts, engine);
  }

  const serve::Listener listener = serve::listen_on(server);
  const auto model = load(facts, engine, {&choice.ladder}, places);
  use(*model, choice, flags.json);  // printed below otherwise
  server.context = std::min(ctx, choice.ladder.longest());
  if (engine.unified) server.pool = server.context;
  if (flags.slot_folder) {
    engine::SessionOwner& owner = server.slot_owner;
    owner = {model_digest(facts.files), ladder_digest(choice.ladder), engine.type_k, engine.type_v};
    if (!engine.unified && engine.timelines > 1) owner.layout = cat(engine.timelines, " caches");
  }
  server.method = choice.name;
  server.growth = engine::growth(facts, engine);
  server.on_prefill = [rungs = choice.ladder.rungs().size()](const serve::Progress& now) {
    std::cerr << cat(serve::prefill_text(now, rungs), "\n") << std::flush;
  };
  server.json_log = flags.log_format == "json";
  server.on_request = [](const std::string& line) { std::cerr << line + "\n" << std::flush; };
  const serve::Service service =
      serve::make_service(*model, choice.ladder, engine::chat_renderer(), server);
  catch_interrupts();
  const std::string address =
      cat("http://",
          server.host.find(':') == std::string::npos ? server.host : cat("[", server.host, "]"),
          ":", listener.port);
  if (!service.chat_error.empty()) note(service.chat_error);
  if (!listener.loopback && server.key.empty()) {
    note(cat("anyone who can reach ", server.host, " can use this server: give --api-key-file"));
  }
  if (flags.json) {
    std::cout << ordered_json{{"address", address},
                              {"model", server.model_name},
                              {"method", server.method},
                              {"context", server.context},
                              {"parallel", server.slots}}
                     .dump()
              << std::endl;
  } else {
    std::cout << server.model_name << " on " << address << ", " << server.slots
              << (server.slots == 1 ? " conversation" : " conversations at a time") << " of up to "
              << server.context << " tokens\n"
              << "Chat page: " << address << "/\n"
              << "Context: " << ladder_sentence(choice.ladder) << std::endl;
  }
  serve::run_server(service, listener, interrupt_requested);
}

}  // namespace

void add_serve(CLI::App& app) {
  const auto [verb, flags] = add_verb<ServeFlags>(app, "serve", run_serve);
  flags.engine.unified = false;
  add_subject(verb, flags.subject);
  add_extension(verb, flags.extension, kWithoutMethod, "the window, or --scale windows");
  add(verb, "--profile", flags.extension.profile);
  add(verb, "--host", flags.server.host);
  add(verb, "--port", flags.server.port)->check(in_range(0, 65535));
  add(verb, "--parallel", flags.parallel)->check(in_range(1, 256));
  add(verb, "--queue", flags.server.queue)->check(in_range(0, 4096));
  add(verb, "--timeout", flags.timeout)->check(in_range(1, 1 << 24));
  add(verb, "--api-key-file", flags.key_file);
  add(verb, "--alias", flags.alias);
  add(verb, "--cors", flags.cors);
  add(verb, "--kv-unified", flags.engine.unified);
  add(verb, "--slot-save-path", flags.slot_folder);
  add(verb, "--pooling", flags.engine.pooling);
  add(verb, "--deterministic", flags.server.deterministic);
  add_engine(verb, flags.engine);
  add(verb, "--log-format", flags.log_format);
  add(verb, "--json", flags.json);
  add(verb, "--dry-run", flags.dry_run);
}

}  // namespace mrrope::cli
