// SPDX-License-Identifier: Apache-2.0
// mrrope generate: text from a model under a plan, once or as a chat.
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files/output_file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "cli/chat/conversation.h"
#include "core/ladder_text.h"
#include "engine/llama/local.h"
#include "engine/session/session.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"

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
  const nlohmann::ordered_json out = {
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
  if (!flags.system.empty() &&
      (messages.front().role != "system" || messages.front().content != flags.system)) {
    refuse(cat("the chat in ", session.path, " began with another system message, or none"),
           "leave out --system, or give another --session");
  }
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) {
    std::cerr << introduction(conversation.ladder(), speed)
              << "\nType a message, or /help. Ctrl-D ends the chat.\n";
  }
  converse({conversation, session, std::move(messages), streaming(flags), terminal,
            [&](const Generation& g) { print_answer(g, conversation, flags.json); }},
           standard_input(), first);
}

// CLI::Range lets it pass.
CLI::Validator not_nan() {
  return {[](std::string& text) {
            return std::isnan(std::strtod(text.c_str(), nullptr)) ? cat(text, " is not a number")
                                                                  : std::string();
          },
          ""};
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
  LadderChoice choice = choose_ladder(flags.extension, facts.geometry, "generate");
  const std::string prompt = (flags.file.empty() ? "" : read_text(flags.file)) + flags.prompt;
  if (prompt.empty() && !flags.chat && !flags.dry_run) {
    refuse("no prompt given", "give -p TEXT, -f FILE (or -f - for standard input), or --chat");
  }

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
  if (!flags.chat && !begun.messages.empty()) {
    refuse(
        cat("--session ", flags.session, " holds a chat of ", begun.messages.size(), " messages"),
        "give --chat to go on with it, or another --session");
  }
  const auto tell = [&](std::size_t index) {
    const Rung& rung = ladder.rungs()[index];
    if (!flags.verbose) return;
    note(cat("rung ", index + 1, " of ", ladder.rungs().size(), ": up to ", rung.length,
             " tokens, scale ", significant(rung.plan.extension().scale, 4)));
  };
  Conversation conversation(*model, ladder, std::move(begun.timeline), tell);
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
  add_value(verb, "-p,--prompt", flags.prompt, "TEXT",
            flags.chat ? "The first message" : "Text to continue, or the first message of a chat");
  add_value(verb, "-f,--text", flags.file, "FILE",
            "Read text from a file and put it before -p; - is standard input");
  add_value(verb, "--session", flags.session, "FILE",
            "Save the conversation with its cache to this file, and resume from it: of a prompt "
            "that begins with the saved text only the rest is read");
  add_default(verb, "-n,--predict", flags.generate.max_tokens, "N",
              "Maximum number of tokens to generate")
      ->check(CLI::Range(1, 1 << 24));
  Sampling& s = flags.generate.sampling;
  add_default(verb, "--temp", s.temperature, "T", "Sampling temperature; 0 is greedy")
      ->check(CLI::Range(0.0, 100.0) & not_nan());
  add_default(verb, "--top-k", s.top_k, "K", "Sample from the K most likely tokens; 0: all")
      ->check(CLI::NonNegativeNumber);
  add_default(verb, "--top-p", s.top_p, "P",
              "Sample from the most likely tokens with total probability P")
      ->check(CLI::Range(0.0, 1.0) & not_nan());
  add_default(verb, "--min-p", s.min_p, "P", "Drop tokens below P x the top probability")
      ->check(CLI::Range(0.0, 1.0) & not_nan());
  add_default(verb, "--seed", s.seed, "N", "Random seed for sampling");
  add_value(verb, "--stop", flags.generate.stop, "TEXT", "Stop before this text; repeatable");
  add_engine(verb, flags.engine);
  verb.add_flag("-v", flags.verbose, "Print the rung of the ladder in use");
  auto* json = verb.add_flag("--json", flags.json, "Print the answer as JSON");
  verb.add_flag("--dry-run", flags.dry_run,
                "Print the memory and time that would be needed, and stop")
      ->excludes(json);
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto [verb, flags] = add_verb<GenerateFlags>(
      app, "generate", "Generate text with a model under a plan", run_generate);
  add_flags(verb, flags, "the window, or --scale windows");
  auto* chat = verb.add_flag("--chat", flags.chat, "Chat, with the model's own template");
  add_value(verb, "--system", flags.system, "TEXT", "With --chat: the system message")->needs(chat);
  verb.footer(
      "Examples:\n"
      "  mrrope generate model.gguf -p 'Theorem 1.' -n 64\n"
      "  mrrope generate model.gguf --ctx 32k --method pro -f book.txt -p 'Summary:'\n"
      "  mrrope generate model.gguf --ctx 32k --chat\n"
      "Without --method the context grows with the text (auto): inside its window the model is\n"
      "unchanged. --method pro is static.");
}

void add_chat(CLI::App& app) {
  const auto [verb, flags] =
      add_verb<GenerateFlags>(app, "chat", "Chat with a model in the terminal", run_generate);
  flags.chat = flags.room_to_chat = true;
  flags.generate.max_tokens = 1024;
  add_flags(verb, flags, "4 windows, or what memory allows");
  add_value(verb, "--system", flags.system, "TEXT", "The system message");
  verb.footer(
      "Examples:\n"
      "  mrrope chat model.gguf\n"
      "  mrrope chat model.gguf --ctx 128k -f book.txt -p 'Who dies in the end?'\n"
      "  mrrope chat model.gguf --session trip.session\n"
      "Without --ctx the context has room for four windows of the model, as memory allows. /help\n"
      "in the chat lists its commands.");
}

}  // namespace mrrope::cli
