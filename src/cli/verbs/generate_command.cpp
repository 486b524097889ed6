// SPDX-License-Identifier: Apache-2.0
// mrrope generate: text from a model under a plan, once or as a chat.
#include <unistd.h>

#include <iostream>

#include "base/files/output_file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "cli/chat/conversation.h"
#include "core/ladder_text.h"
#include "formats/plan_file.h"

namespace mrrope::cli {

namespace {

struct GenerateFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  engine::LocalOptions engine;
  GenerateOptions generate;
  std::string prompt;
  std::string file;
  std::string system;
  std::string session;
  bool chat = false;
  bool room_to_chat = false;  // mrrope chat
  bool json = false;
  bool verbose = false;
  bool dry_run = false;
};

// Text as it comes, unless JSON is wanted; Ctrl-C ends the answer.
GenerateOptions streaming(const GenerateFlags& flags) {
  GenerateOptions options = flags.generate;
  options.on_text = [quiet = flags.json](std::string_view piece) {
    if (!quiet) std::cout << piece << std::flush;
    return !interrupt_requested();
  };
  return options;
}

// The end of an answer whose text has been streamed, or all of it as JSON.
void print_answer(const Generation& g, const Conversation& conversation, bool as_json) {
  if (!as_json) {
    std::cout << std::endl;
    return;
  }
  const ordered_json out = {
      {"text", g.text},
      {"finish", g.finish},
      {"prompt_tokens", conversation.prompt_tokens()},
      {"cached_tokens", conversation.cached_tokens()},
      {"completion_tokens", g.tokens.size()},
      {"rung", conversation.rung()},
      {"scale", conversation.ladder().rungs()[conversation.rung()].plan.extension().scale}};
  std::cout << json_text(out, 2) << std::endl;
}

// "Unmodified up to 8K. Beyond, distant text is compressed 4x. Reading 32K takes about 6 min on
// this machine." Without the last sentence where no text was read before.
std::string introduction(const Ladder& ladder, const std::optional<engine::ReadingSpeed>& speed) {
  std::string text = ladder_sentence(ladder);
  if (!speed) return text;
  return text + cat(" Reading ", tokens_text(ladder.longest()), " takes about ",
                    duration_text(engine::seconds_to_read(*speed, {ladder.longest()})),
                    " on this machine.");
}

void run_chat(Conversation& conversation, const SessionFile& session, engine::Session begun,
              const std::string& first, const GenerateFlags& flags,
              const std::optional<engine::ReadingSpeed>& speed) {
  std::vector<ChatMessage> messages = std::move(begun.messages);
  if (!flags.system.empty() && messages.empty()) messages.push_back({"system", flags.system});
  refuse_if(!flags.system.empty() &&
                (messages.front().role != "system" || messages.front().content != flags.system),
            cat("the chat in ", session.path, " began with another system message, or none"),
            "leave out --system, or give another --session");
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) {
    std::cerr << introduction(conversation.ladder(), speed)
              << "\nType a message, or /help. Ctrl-D ends the chat.\n";
  }
  converse({conversation, session, std::move(messages), streaming(flags), terminal,
            [&](const Generation& g) { print_answer(g, conversation, flags.json); }},
           standard_input(), first);
}

// For --dry-run, from the vocabulary alone. Throws Error (failed) if the model does not fit.
void print_cost(const Model& facts, const engine::LocalOptions& engine, const std::string& prompt,
                const GenerateFlags& flags) {
  print_memory(facts, engine);
  std::int64_t tokens = engine.context;
  if (!prompt.empty()) {
    tokens = std::int64_t(engine::open_vocabulary(facts)->tokenize(prompt, true, true).size());
  }
  std::cout << (prompt.empty() ? "up to " : "") << tokens << " tokens to read, up to "
            << flags.generate.max_tokens << " to write\n"
            << engine::time_text(engine::kept_speed(facts, engine), {tokens}, " to read them")
            << "\n"
            << std::flush;
  if (!prompt.empty()) {
    check_room(tokens, flags.generate.max_tokens, engine.context, ErrorKind::failed);
  }
}

// A chat without --ctx has room for four windows, or for as many as fit into memory.
std::string chat_context(const Model& facts, const engine::LocalOptions& options) {
  engine::LocalOptions engine = options;
  engine.timelines = 1;
  for (const int windows : {4, 3, 2}) {
    engine.context = windows * facts.geometry.train_length;
    const engine::MemoryPlan plan = plan_memory(facts, engine);
    if (plan.total() <= plan.available) return cat(engine.context);
  }
  return cat(facts.geometry.train_length);
}

void run_generate(GenerateFlags flags) {
  const Model facts = model_of(flags.subject);
  if (flags.room_to_chat && flags.extension.ctx.empty() && !flags.extension.scale &&
      flags.extension.plan_files.empty()) {
    flags.extension.ctx = chat_context(facts, flags.engine);
  }
  LadderChoice choice = choose_ladder(flags.extension, facts, "generate");
  const std::string prompt = (flags.file.empty() ? "" : read_text(flags.file)) + flags.prompt;
  refuse_if(prompt.empty() && !flags.chat && !flags.dry_run, "no prompt given",
            "give -p TEXT, -f FILE (or -f - for standard input), or --chat");

  engine::LocalOptions engine = flags.engine;
  engine.context = choice.ctx;
  engine.timelines = 1;
  engine::Places places;
  engine::SessionOwner owner{{}, {}, engine.type_k, engine.type_v};
  if (!flags.session.empty()) {
    places.writes = {flags.session};
    owner.model = model_digest(facts.files);
    if (!choice.ours) owner.plan = ladder_digest(choice.ladder);
    if (engine::session_exists(flags.session)) check_session(flags.session, owner);
  }
  if (flags.dry_run) {
    engine::check_before_loading(facts, {&choice.ladder}, places);
    return print_cost(facts, engine, prompt, flags);
  }
  const auto model = load(facts, engine, {&choice.ladder}, places);
  use(*model, choice, !flags.chat || isatty(STDIN_FILENO) == 0);  // a chat begins with it
  const Ladder& ladder = choice.ladder;
  owner.plan = ladder_digest(ladder);
  SessionFile session{flags.session, owner};
  engine::Session begun = session.begin(*model);
  session.salt = begun.salt;
  refuse_if(
      !flags.chat && !begun.messages.empty(),
      cat("--session ", flags.session, " holds a chat of ", begun.messages.size(), " messages"),
      "give --chat to go on with it, or another --session");
  const auto tell = [&](std::size_t index) {
    const Rung& rung = ladder.rungs()[index];
    if (!flags.verbose) return;
    note(cat("rung ", index + 1, " of ", ladder.rungs().size(), ": up to ", rung.length,
             " tokens, scale ", significant(rung.plan.extension().scale, 4)));
  };
  Conversation conversation(*model, ladder, std::move(begun.timeline), tell,
                            engine::growth(facts, engine));
  if (flags.verbose && conversation.length() > 0) {
    note(cat("resuming the session after ", conversation.length(), " tokens"));
  }
  if (flags.chat) {
    return run_chat(conversation, session, std::move(begun), prompt, flags,
                    engine::kept_speed(facts, engine));
  }
  catch_interrupts();
  if (const auto at = conversation.parts_at(prompt)) {
    note(cat("the prompt is another text than ", session.path, " from token ", *at,
             " on, and replaces it from there"));
  }
  const Generation g = conversation.answer(prompt, streaming(flags));
  session.save(conversation.timeline(), {});
  print_answer(g, conversation, flags.json);
  if (g.finish == "cancelled") throw Error(ErrorKind::interrupted, "interrupted");
}

// What generate and chat share.
void add_flags(CLI::App& verb, GenerateFlags& flags, const char* without_ctx) {
  add_subject(verb, flags.subject);
  add_extension(verb, flags.extension, kWithoutMethod, without_ctx);
  add(verb, "--profile", flags.extension.profile);
  add(verb, "-p,--prompt", flags.prompt);
  add(verb, "-f,--text", flags.file);
  add(verb, "--session", flags.session);
  add(verb, "-n,--predict", flags.generate.max_tokens)->check(in_range(1, 1 << 24));
  Sampling& s = flags.generate.sampling;
  add(verb, "--temp", s.temperature)->check(in_range(0.0, 100.0));
  add(verb, "--top-k", s.top_k)->check(CLI::NonNegativeNumber);
  add(verb, "--top-p", s.top_p)->check(in_range(0.0, 1.0));
  add(verb, "--min-p", s.min_p)->check(in_range(0.0, 1.0));
  add(verb, "--seed", s.seed);
  add(verb, "--stop", flags.generate.stop);
  add_engine(verb, flags.engine);
  add(verb, "-v", flags.verbose);
  auto* json = add(verb, "--json", flags.json);
  add(verb, "--dry-run", flags.dry_run)->excludes(json);
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto [verb, flags] = add_verb<GenerateFlags>(app, "generate", run_generate);
  add_flags(verb, flags, "the window, or --scale windows");
  auto* chat = add(verb, "--chat", flags.chat);
  add(verb, "--system", flags.system)->needs(chat);
}

void add_chat(CLI::App& app) {
  const auto [verb, flags] = add_verb<GenerateFlags>(app, "chat", run_generate);
  flags.chat = flags.room_to_chat = true;
  flags.generate.max_tokens = 1024;
  add_flags(verb, flags, "4 windows, or what memory allows");
  add(verb, "--system", flags.system);
}

}  // namespace mrrope::cli
