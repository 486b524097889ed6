// SPDX-License-Identifier: Apache-2.0
// mrrope generate: text from a model under a plan, once or as a conversation.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/options.h"
#include "eval/run/progress.h"
#include "formats/digest.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct GenerateFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  LocalOptions engine;
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

std::string rung_text(const Ladder& ladder, std::size_t index) {
  const Rung& rung = ladder.rungs()[index];
  return cat("rung ", index + 1, " of ", ladder.rungs().size(), ": up to ", rung.length,
             " tokens, scale ", significant(rung.plan.extension().scale, 4));
}

std::string read_prompt(const GenerateFlags& flags) {
  if (flags.file.empty()) return flags.prompt;
  std::ostringstream text;
  if (flags.file == "-") {
    text << std::cin.rdbuf();
  } else {
    std::ifstream in(flags.file, std::ios::binary);
    if (!in) {
      throw Error(ErrorKind::failed, cat("cannot read ", flags.file), "give another file with -f");
    }
    text << in.rdbuf();
  }
  return text.str() + flags.prompt;
}

// A sequence that knows its own tokens, so that a conversation computes only what is new.
class Conversation {
 public:
  // on_rung: called when the keys have come to stand on another rung.
  Conversation(TimelineModel& model, std::unique_ptr<Timeline> timeline,
               std::function<void(std::size_t)> on_rung)
      : model_(model), timeline_(std::move(timeline)), on_rung_(std::move(on_rung)) {
    if (timeline_->length() > 0) tokens_ = timeline_->tokens();
  }

  Generation answer(const std::string& prompt, GenerateOptions options) {
    const std::vector<Token> wanted = model_.tokenize(prompt, true, true);
    const auto needed = std::int64_t(wanted.size()) + options.max_tokens;
    if (wanted.empty()) {
      throw Error(ErrorKind::usage, "there is nothing to continue", "give -p TEXT or -f FILE");
    }
    if (needed > model_.context_length()) {
      throw Error(
          ErrorKind::usage,
          cat("a prompt of ", wanted.size(), " tokens and an answer of up to ", options.max_tokens,
              " do not fit into a context of ", model_.context_length()),
          cat("give --ctx ", needed, " or more, or a smaller -n"));
    }
    std::size_t same =
        std::mismatch(wanted.begin(), wanted.end(), tokens_.begin(), tokens_.end()).first -
        wanted.begin();
    same = std::min(same, wanted.size() - 1);  // at least one token must be read for its logits
    timeline_->truncate(std::int64_t(same));
    timeline_->append(std::span(wanted).subspan(same));
    read_ = std::int64_t(wanted.size() - same);
    tell_rung();
    options.on_text = [this, print = options.on_text](std::string_view piece) {
      const bool go_on = !print || print(piece);
      tell_rung();
      return go_on;
    };
    Generation g = timeline_->generate(options);
    tokens_ = wanted;
    tokens_.insert(tokens_.end(), g.tokens.begin(), g.tokens.end());
    return g;
  }

  std::int64_t length() const { return timeline_->length(); }
  std::int64_t tokens_read() const { return read_; }
  std::size_t rung() const { return timeline_->rung(); }
  const Timeline& timeline() const { return *timeline_; }

 private:
  void tell_rung() {
    if (told_ == timeline_->rung()) return;
    told_ = timeline_->rung();
    on_rung_(told_);
  }

  TimelineModel& model_;
  std::unique_ptr<Timeline> timeline_;
  std::function<void(std::size_t)> on_rung_;
  std::size_t told_ = std::numeric_limits<std::size_t>::max();
  std::vector<Token> tokens_;
  std::int64_t read_ = 0;
};

// A conversation that outlives the process: FILE holds the sequence with its cache, FILE.json what
// it belongs to and on which rung its keys stand.
class Session {
 public:
  Session(std::string path, const Model& model, const LocalOptions& engine, const Ladder& ladder)
      : path_(std::move(path)) {
    if (path_.empty()) return;
    belongs_ = {{"model", model_digest(model.files)},
                {"plan", ladder_digest(ladder)},
                {"keys", engine.type_k},
                {"values", engine.type_v}};
  }

  std::unique_ptr<Timeline> begin(TimelineModel& model, std::vector<ChatMessage>& messages) const {
    namespace fs = std::filesystem;
    if (path_.empty() || !fs::exists(path_ + ".json")) return model.timeline();
    const auto corrupt = [&](const std::string& why, const std::string& hint) {
      return Error(ErrorKind::corrupt, cat("session ", path_, " ", why), hint);
    };
    const nlohmann::json about = read_json(path_ + ".json");
    const std::string anew = cat("delete ", path_, " and ", path_, ".json to begin anew");
    try {
      for (const auto& [key, value] : belongs_.items()) {
        if (about.at(key) == value) continue;
        throw corrupt(cat("belongs to another ", key, " (", about.at(key).dump(), ", not ",
                          value.dump(), ")"),
                      cat("give the model and flags it was saved with, or another --session"));
      }
      if (about.at("state") != model_digest({path_})) throw corrupt("is damaged", anew);
      for (const auto& m : about.at("messages")) {
        messages.push_back({m.at("role").get<std::string>(), m.at("content").get<std::string>()});
      }
      return model.restore(path_, about.at("rung").get<std::size_t>());
    } catch (const nlohmann::json::exception&) {
      throw corrupt("is not one of mrrope's", anew);
    }
  }

  void save(const Timeline& timeline, const std::vector<ChatMessage>& messages) const {
    if (path_.empty()) return;
    const std::string part = path_ + ".part";
    timeline.save(part);
    nlohmann::ordered_json about = belongs_;
    about["rung"] = timeline.rung();
    about["tokens"] = timeline.length();
    about["state"] = model_digest({part});
    about["messages"] = nlohmann::ordered_json::array();
    for (const ChatMessage& m : messages) {
      about["messages"].push_back({{"role", m.role}, {"content", m.content}});
    }
    std::filesystem::rename(part, path_);
    write_atomically(path_ + ".json",
                     about.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

 private:
  std::string path_;
  nlohmann::ordered_json belongs_;
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

void print_once(Conversation& conversation, const Session& session, const Ladder& ladder,
                const std::string& prompt, const GenerateFlags& flags) {
  const Generation g = conversation.answer(prompt, streaming(flags));
  session.save(conversation.timeline(), {});
  if (flags.json) {
    const nlohmann::ordered_json out = {
        {"text", g.text},
        {"finish", g.finish},
        {"prompt_tokens", conversation.tokens_read()},
        {"completion_tokens", g.tokens.size()},
        {"rung", conversation.rung()},
        {"scale", ladder.rungs()[conversation.rung()].plan.extension().scale}};
    std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    std::cout << "\n";
  }
  if (g.finish == "cancelled") throw Error(ErrorKind::interrupted, "interrupted");
}

void print_dry_run(TimelineModel& model, const std::string& prompt, int answer) {
  const auto tokens = std::int64_t(model.tokenize(prompt, true, true).size());
  std::cout << tokens << " tokens to read, up to " << answer << " to write\n"
            << "about " << duration_text(estimate_seconds(model, {tokens})) << " to read them\n";
}

void converse(TimelineModel& model, Conversation& conversation, const Session& session,
              std::vector<ChatMessage> messages, std::string first, const GenerateFlags& flags) {
  const bool terminal = isatty(0) != 0;
  if (!flags.system.empty() && messages.empty()) messages.push_back({"system", flags.system});
  if (terminal) {
    std::cerr << "Type a message; an empty line or Ctrl-D ends the conversation.\n";
  }
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
    const Generation g = conversation.answer(model.apply_chat_template(messages), streaming(flags));
    std::cout << "\n" << std::flush;
    messages.push_back({"assistant", g.text});
    session.save(conversation.timeline(), messages);
    if (terminal) {
      std::cerr << "[" << conversation.length() << " of " << model.context_length() << " tokens]\n";
    }
  }
}

void run_generate(GenerateFlags flags) {
  Subject subject = resolve(flags.subject);
  if (!subject.model) {
    throw Error(ErrorKind::usage, "generate runs a model", "give a GGUF file");
  }
  Model facts = *subject.model;
  facts.geometry = subject.geometry;
  const std::int64_t window = facts.geometry.train_length;
  const std::int64_t ctx = flags.extension.ctx.empty() ? window : parse_length(flags.extension.ctx);
  LadderChoice choice = choose_ladder(flags.extension, facts.geometry, ctx, "generate");
  const std::string prompt = read_prompt(flags);
  if (prompt.empty() && !flags.chat) {
    throw Error(ErrorKind::usage, "there is nothing to continue",
                "give -p TEXT, -f FILE (or -f - for standard input), or --chat");
  }

  LocalOptions engine = flags.engine;
  engine.context = ctx;
  engine.timelines = 1;
  if (flags.dry_run) {
    std::cout << memory_text(facts, engine) << "\n";
    const MemoryPlan memory = plan_memory(facts, engine);
    if (memory.total() > memory.available) {
      std::cout << "does not fit\n";
      return;
    }
  }
  const auto model = open_local(facts, engine);
  use(*model, choice);
  const Ladder& ladder = choice.ladder;
  if (flags.dry_run) return print_dry_run(*model, prompt, flags.generate.max_tokens);
  const Session session(flags.session, facts, engine, ladder);
  std::vector<ChatMessage> messages;
  Conversation conversation(*model, session.begin(*model, messages), [&](std::size_t rung) {
    if (flags.verbose) note(rung_text(ladder, rung));
  });
  if (flags.verbose && conversation.length() > 0) {
    note(cat("the session goes on after ", conversation.length(), " tokens"));
  }
  if (flags.chat) return converse(*model, conversation, session, messages, prompt, flags);
  catch_interrupts();
  print_once(conversation, session, ladder, prompt, flags);
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* verb = app.add_subcommand("generate", "Text from a model under a plan");
  add_subject(*verb, flags->subject);
  add_extension(*verb, flags->extension);
  verb->add_option("-p,--prompt", flags->prompt, "Text to continue, or the first message")
      ->type_name("TEXT");
  verb->add_option("-f,--file", flags->file, "Text from a file, before -p; - is standard input")
      ->type_name("FILE");
  verb->add_flag("--chat", flags->chat, "A conversation, with the model's own chat template");
  verb->add_option("--system", flags->system, "With --chat: the system message")->type_name("TEXT");
  verb->add_option("--session", flags->session,
                   "File that keeps the sequence with its cache, to go on from the next time")
      ->type_name("FILE");
  verb->add_option("-n,--predict", flags->generate.max_tokens, "Tokens of an answer, at most")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  Sampling& s = flags->generate.sampling;
  verb->add_option("--temp", s.temperature, "Sampling temperature; 0 is greedy")
      ->type_name("T")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  verb->add_option("--top-k", s.top_k, "Sample from the K likeliest; 0: all")
      ->type_name("K")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--top-p", s.top_p, "Sample from the likeliest that make up P")
      ->type_name("P")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--min-p", s.min_p, "Leave out what is less likely than P of the likeliest")
      ->type_name("P")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--seed", s.seed, "Seed of the sampling")->type_name("N")->capture_default_str();
  verb->add_option("--stop", flags->generate.stop, "End before this text; repeatable")
      ->type_name("TEXT")
      ->take_all();
  add_engine(*verb, flags->engine);
  add_climb(*verb, flags->engine);
  verb->add_flag("-v,--verbose", flags->verbose, "Say on which rung of its ladder the model is");
  verb->add_flag("--json", flags->json, "Print the answer as JSON");
  verb->add_flag("--dry-run", flags->dry_run, "Say what memory it would take, and stop");
  verb->footer(
      "Examples:\n"
      "  mrrope generate model.gguf -p 'Theorem 1.' -n 64\n"
      "  mrrope generate model.gguf --ctx 32k --method pro -f book.txt -p 'Summary:'\n"
      "  mrrope generate model.gguf --ctx 32k --chat\n"
      "Without --method the context grows with the text (elastic:pro), and the model is untouched\n"
      "inside its window; --method pro is static.");
  verb->callback([flags] { run_generate(*flags); });
}

}  // namespace mrrope::cli
