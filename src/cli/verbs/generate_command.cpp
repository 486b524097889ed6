// SPDX-License-Identifier: Apache-2.0
// mrrope generate: text from a model under a plan, once or as a chat.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "base/words.h"
#include "cli/app.h"
#include "cli/args/options.h"
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
  bool json = false;
  bool verbose = false;
  bool dry_run = false;
};

// A pipe is read as well, so its size is not known before.
std::string read_all(std::istream& in, const std::string& name) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  std::string text;
  std::string block(1 << 16, '\0');
  while (in.read(block.data(), std::streamsize(block.size())) || in.gcount() > 0) {
    text.append(block, 0, std::size_t(in.gcount()));
    refuse_if(text.size() > kMost, cat("the prompt in ", name, " has more than ", kMost, " bytes"),
              "give a shorter file with -f");
  }
  return text;
}

std::string read_prompt(const GenerateFlags& flags) {
  if (flags.file.empty()) return flags.prompt;
  std::string text;
  if (flags.file == "-") {
    text = read_all(std::cin, "standard input");
  } else {
    std::ifstream in(flags.file, std::ios::binary);
    const int code = errno;
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(flags.file, ignored);
    if (!in || folder) {
      throw Error(
          ErrorKind::failed,
          cat("cannot read ", flags.file, ": ", folder ? "it is a folder" : std::strerror(code)),
          "give another file with -f");
    }
    text = read_all(in, flags.file);
  }
  return text + flags.prompt;
}

// A sequence that knows its own tokens, so that a chat computes only what is new.
struct Conversation {
  TimelineModel& model;
  const Ladder& ladder;
  std::unique_ptr<Timeline> timeline;
  bool verbose = false;       // notes the rung when the keys have moved to another one
  std::vector<Token> tokens;  // of the text that is there
  std::int64_t prompt = 0;    // tokens of the last prompt
  std::int64_t cached = 0;    // and those of them that were not computed again
  std::optional<std::size_t> told = std::nullopt;  // the rung that was noted last

  void tell_rung() {
    if (!verbose || told == timeline->rung()) return;
    told = timeline->rung();
    const Rung& rung = ladder.rungs()[*told];
    note(cat("rung ", *told + 1, " of ", ladder.rungs().size(), ": up to ", rung.length,
             " tokens, scale ", significant(rung.plan.extension().scale, 4)));
  }

  // With progress. Parts of a whole batch are computed exactly as in one append.
  void read(std::span<const Token> rest) {
    eval::Progress progress(eval::stderr_writer(), eval::stderr_is_terminal());
    progress.start(std::int64_t(rest.size()));
    progress.label("reading the prompt");
    while (!rest.empty()) {
      if (interrupt_requested()) throw Error(ErrorKind::interrupted, "interrupted");
      const std::size_t count = std::min(rest.size(), model.batch());
      timeline->append(rest.first(count));
      rest = rest.subspan(count);
      progress.advance(std::int64_t(count));
    }
    progress.finish();
  }

  Generation answer(const std::string& text, GenerateOptions options) {
    const std::vector<Token> wanted = model.tokenize(text, true, true);
    const auto needed = std::int64_t(wanted.size()) + options.max_tokens;
    const std::int64_t longest = std::min(ladder.longest(), model.context_length());
    refuse_if(wanted.empty(), "the prompt is empty", "give -p TEXT or -f FILE");
    refuse_if(needed > longest,
              cat("a prompt of ", wanted.size(), " tokens and an answer of up to ",
                  options.max_tokens, " do not fit in a context of ", longest),
              cat("give --ctx ", needed, " or more, or a smaller -n"));
    // At least one token must be read for its logits.
    const std::size_t same = std::min(common_prefix(wanted, tokens), wanted.size() - 1);
    timeline->truncate(std::int64_t(same));
    read(std::span(wanted).subspan(same));
    prompt = std::int64_t(wanted.size());
    cached = std::int64_t(same);
    tell_rung();
    options.on_text = [this, print = options.on_text](std::string_view piece) {
      const bool go_on = !print || print(piece);
      tell_rung();
      return go_on;
    };
    Generation g = timeline->generate(options);
    tokens = wanted;
    tokens.insert(tokens.end(), g.tokens.begin(), g.tokens.end());
    return g;
  }

  // Where the prompt parts from the text that is there; nothing if one begins with the other.
  std::optional<std::size_t> parts_at(const std::string& text) const {
    if (tokens.empty()) return std::nullopt;
    const std::vector<Token> wanted = model.tokenize(text, true, true);
    const std::size_t same = common_prefix(wanted, tokens);
    if (same == std::min(wanted.size(), tokens.size())) return std::nullopt;
    return same;
  }
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

// --session; does nothing without it.
struct SessionFile {
  std::string path;
  engine::SessionOwner owner;
  std::string salt = {};  // of a server's saved slot

  engine::Session begin(TimelineModel& model) const {
    if (path.empty() || !engine::session_exists(path)) return {model.timeline(), {}};
    return load_session(path, owner, model);
  }
  void save(const Timeline& timeline, const std::vector<ChatMessage>& messages) const {
    if (!path.empty()) save_session(path, owner, timeline, messages, salt);
  }
};

// The end of an answer whose text has been streamed, or all of it as JSON.
void print_answer(const Generation& g, const Conversation& conversation, bool as_json) {
  if (!as_json) {
    std::cout << std::endl;
    return;
  }
  const std::size_t rung = conversation.timeline->rung();
  const nlohmann::ordered_json out = {
      {"text", g.text},
      {"finish", g.finish},
      {"prompt_tokens", conversation.prompt},
      {"cached_tokens", conversation.cached},
      {"completion_tokens", g.tokens.size()},
      {"rung", rung},
      {"scale", conversation.ladder.rungs()[rung].plan.extension().scale}};
  std::cout << json_text(out, 2) << std::endl;
}

void converse(Conversation& conversation, const SessionFile& session,
              std::vector<ChatMessage> messages, std::string first, const GenerateFlags& flags) {
  const bool terminal = isatty(0) != 0;
  if (!flags.system.empty() && messages.empty()) messages.push_back({"system", flags.system});
  refuse_if(!flags.system.empty() &&
                (messages.front().role != "system" || messages.front().content != flags.system),
            cat("the chat in ", session.path, " began with another system message, or none"),
            "leave out --system, or give another --session");
  if (terminal) std::cerr << "Type a message. An empty line or Ctrl-D ends the chat.\n";
  for (;;) {
    std::string text = std::move(first);
    first.clear();
    if (text.empty()) {
      if (terminal) std::cerr << "\n> " << std::flush;
      if (!std::getline(std::cin, text) || text.empty()) return;
    }
    messages.push_back({"user", text});
    clear_interrupt();
    catch_interrupts();
    const Generation g =
        conversation.answer(conversation.model.apply_chat_template(messages), streaming(flags));
    print_answer(g, conversation, flags.json);
    messages.push_back({"assistant", g.text});
    session.save(*conversation.timeline, messages);
    if (terminal) {
      std::cerr << "[" << conversation.timeline->length() << " of " << conversation.ladder.longest()
                << " tokens]\n";
    }
  }
}

// CLI::Range lets it pass.
CLI::Validator not_nan() {
  return {[](std::string& text) {
            return std::isnan(std::strtod(text.c_str(), nullptr)) ? cat(text, " is not a number")
                                                                  : std::string();
          },
          ""};
}

void run_generate(GenerateFlags flags) {
  const Model facts = model_of(flags.subject);
  LadderChoice choice = choose_ladder(flags.extension, facts.geometry, "generate");
  const std::string prompt = read_prompt(flags);
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
    print_memory(facts, engine);
    if (prompt.empty()) return;
    note("loading the model, to count the tokens of the prompt and to time it");
  }
  const auto model = engine::open_checked(facts, engine, {&choice.ladder}, places);
  use(*model, choice);
  const Ladder& ladder = choice.ladder;
  if (flags.dry_run) {
    const auto tokens = std::int64_t(model->tokenize(prompt, true, true).size());
    std::cout << tokens << " tokens to read, up to " << flags.generate.max_tokens << " to write\n"
              << engine::time_text(engine::measure_speed(*model, facts, ladder.longest(), note),
                                   {tokens}, " to read them")
              << "\n";
    return;
  }
  owner.plan = ladder_digest(ladder);
  SessionFile session{flags.session, owner};
  engine::Session begun = session.begin(*model);
  session.salt = begun.salt;
  refuse_if(
      !flags.chat && !begun.messages.empty(),
      cat("--session ", flags.session, " holds a chat of ", begun.messages.size(), " messages"),
      "give --chat to go on with it, or another --session");
  Conversation conversation{*model, ladder, std::move(begun.timeline), flags.verbose, {}};
  if (const std::int64_t length = conversation.timeline->length(); length > 0) {
    conversation.tokens = conversation.timeline->tokens();
    if (flags.verbose) note(cat("resuming the session after ", length, " tokens"));
  }
  if (flags.chat) {
    return converse(conversation, session, begun.messages, prompt, flags);
  }
  catch_interrupts();
  if (const auto at = conversation.parts_at(prompt)) {
    note(cat("the prompt is another text than ", session.path, " from token ", *at,
             " on, and replaces it from there"));
  }
  const Generation g = conversation.answer(prompt, streaming(flags));
  session.save(*conversation.timeline, {});
  print_answer(g, conversation, flags.json);
  if (g.finish == "cancelled") throw Error(ErrorKind::interrupted, "interrupted");
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto [verb, flags] = add_verb<GenerateFlags>(
      app, "generate", "Generate text with a model under a plan", run_generate);
  add_subject(verb, flags.subject);
  add_extension(verb, flags.extension);
  add_value(verb, "-p,--prompt", flags.prompt, "TEXT",
            "Text to continue, or the first message of a chat");
  add_value(verb, "-f,--text", flags.file, "FILE",
            "Read text from a file and put it before -p; - is standard input");
  auto* chat = verb.add_flag("--chat", flags.chat, "Chat, with the model's own template");
  add_value(verb, "--system", flags.system, "TEXT", "With --chat: the system message")->needs(chat);
  add_value(verb, "--session", flags.session, "FILE",
            "Save the conversation with its cache to this file, and resume from it; without --chat "
            "a prompt that begins with the saved text is read from its end on");
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
                "Print the memory that would be needed, with a prompt also the time, and stop")
      ->excludes(json);
  verb.footer(
      "Examples:\n"
      "  mrrope generate model.gguf -p 'Theorem 1.' -n 64\n"
      "  mrrope generate model.gguf --ctx 32k --method pro -f book.txt -p 'Summary:'\n"
      "  mrrope generate model.gguf --ctx 32k --chat\n"
      "Without --method the context grows with the text (auto): inside its window the model is\n"
      "unchanged. --method pro is static.");
}

}  // namespace mrrope::cli
