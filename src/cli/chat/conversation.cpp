// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/conversation.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "core/ladder_text.h"
#include "eval/run/runner.h"
#include "formats/plan_file.h"

namespace mrrope::cli {

namespace {

constexpr std::size_t kBarColumns = 60;
constexpr std::size_t kAnInstant = 64;  // tokens that are read before anyone asks

constexpr const char* kHelp =
    "  /file PATH    put the text of a file before your next message; /file alone drops it\n"
    "  /context      show how full the context is, and what of it is compressed\n"
    "  /clear        forget the conversation\n"
    "  /save PATH    save it with its cache; resume with --session PATH\n"
    "  /exit         end the chat, as Ctrl-D does\n"
    "A line that ends with \\ goes on in the next; \"\"\" begins and ends a longer text.\n"
    "Ctrl-C stops an answer, and drops a line that is being typed.\n";

// A pipe is read as well, so its size is not known before.
std::string read_all(std::istream& in, const std::string& name) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  std::string text;
  std::string block(1 << 16, '\0');
  while (in.read(block.data(), std::streamsize(block.size())) || in.gcount() > 0) {
    text.append(block, 0, std::size_t(in.gcount()));
    refuse_if(text.size() > kMost, cat(name, " has more than ", bytes_text(double(kMost))),
              "give a shorter text");
  }
  return text;
}

// What the commands of a chat change.
struct ChatState {
  Chat& chat;
  std::string attached = {};  // for the next message

  // Of files alone: a pipe or a device could keep the chat waiting forever.
  void attach(const std::string& path) {
    std::error_code ignored;
    refuse_if(std::filesystem::is_other(path, ignored), path + " is a pipe or a device, not a file",
              "save its text to a file first");
    const std::string text = read_text(std::filesystem::absolute(path, ignored));
    refuse_if(valid_utf8(text) != text, path + " is not a text in UTF-8",
              "convert it first: pdftotext for a PDF, iconv for a text in another encoding");
    const Conversation& c = chat.conversation;
    const auto tokens = std::int64_t(c.model().tokenize(text, false, false).size());
    check_room(tokens, chat.options.max_tokens, c.ladder().longest(), ErrorKind::usage);
    attached += text + "\n\n";
    std::cerr << path << ": " << tokens << " tokens, before your next message.\n";
  }

  void clear() {
    const bool has_system = !chat.messages.empty() && chat.messages.front().role == "system";
    chat.messages.resize(has_system ? 1 : 0);
    attached.clear();
    std::cerr << "The conversation is forgotten.\n";
  }

  void save(const std::string& path) {
    SessionFile file = chat.session;
    file.path = path;
    if (file.owner.model.empty()) {  // hashing a file takes a while: not before it is needed
      file.owner.model = model_digest(chat.conversation.model().facts().files);
    }
    file.save(chat.conversation.timeline(), chat.messages);
    std::cerr << "Saved; resume with --session " << shell_word(path) << "\n";
  }

  // False: the chat ends.
  bool command(const std::string& line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space);
    const std::string argument = trimmed(line.substr(space));
    if (name == "/exit" || name == "/bye" || name == "/quit") return false;
    if (name == "/file" && argument.empty()) {
      attached.clear();
      std::cerr << "No file is attached; /file PATH attaches one.\n";
    } else if (name == "/save" && argument.empty()) {
      std::cerr << "/save needs a path: /save PATH\n";
    } else if (name == "/file") {
      attach(argument);
    } else if (name == "/save") {
      save(argument);
    } else if (name == "/clear") {
      clear();
    } else if (name == "/context") {
      std::cerr << context_bar(chat.conversation.ladder(), chat.conversation.length(), kBarColumns);
    } else if (name == "/help") {
      std::cerr << kHelp;
    } else {
      std::cerr << "Unknown command " << name << "; /help lists them.\n";
    }
    return true;
  }

  void answer(std::string text) {
    chat.messages.push_back({"user", attached + std::move(text)});
    clear_interrupt();
    catch_interrupts();
    Conversation& c = chat.conversation;
    try {
      const Generation g = c.answer(c.model().apply_chat_template(chat.messages), chat.options);
      chat.print(g);
      chat.messages.push_back({"assistant", g.text});
      attached.clear();
    } catch (...) {
      chat.messages.pop_back();
      throw;
    }
    chat.session.save(c.timeline(), chat.messages);
    if (chat.terminal) {
      std::cerr << "[" << c.length() << " of " << c.ladder().longest() << " tokens]\n";
    }
  }
};

}  // namespace

std::string read_text(const std::string& path) {
  if (path == "-") return read_all(std::cin, "standard input");
  std::ifstream in(path, std::ios::binary);
  const int code = errno;
  const bool folder = folder_exists(path);
  throw_if(!in || folder, ErrorKind::failed,
           cat("cannot read ", path, ": ", folder ? "it is a folder" : std::strerror(code)),
           "give another file");
  return read_all(in, path);
}

void check_room(std::int64_t prompt, std::int64_t answer, std::int64_t longest, ErrorKind kind) {
  if (prompt + answer <= longest) return;
  throw Error(kind,
              cat("a prompt of ", prompt, " tokens and an answer of up to ", answer,
                  " do not fit in a context of ", longest),
              cat("give --ctx ", prompt + answer, " or more, or a ",
                  prompt < longest ? "smaller -n" : "shorter text"));
}

Conversation::Conversation(TimelineModel& model, const Ladder& ladder,
                           std::unique_ptr<Timeline> timeline,
                           std::function<void(std::size_t)> on_rung, double growth)
    : model_(model),
      ladder_(ladder),
      timeline_(std::move(timeline)),
      on_rung_(std::move(on_rung)),
      growth_(growth) {}

Generation Conversation::answer(const std::string& prompt, GenerateOptions options) {
  const std::int64_t longest = std::min(ladder_.longest(), model_.context_length());
  const std::vector<Token> wanted = model_.tokenize(prompt, true, true);
  if (wanted.empty()) refuse("the prompt is empty", "give -p TEXT or -f FILE");
  check_room(std::int64_t(wanted.size()), options.max_tokens, longest, ErrorKind::usage);
  // At least one token must be read for its logits.
  const std::size_t same = std::min(common_prefix(wanted, timeline_->tokens()), wanted.size() - 1);
  timeline_->truncate(std::int64_t(same));
  read(std::span(wanted).subspan(same));
  prompt_ = std::int64_t(wanted.size());
  kept_ = std::int64_t(same);
  tell_rung();
  options.on_text = [this, print = options.on_text](std::string_view piece) {
    const bool go_on = !print || print(piece);
    tell_rung();
    return go_on;
  };
  return timeline_->generate(options);
}

std::optional<std::size_t> Conversation::parts_at(const std::string& prompt) const {
  const std::vector<Token> wanted = model_.tokenize(prompt, true, true), held = timeline_->tokens();
  const std::size_t same = common_prefix(wanted, held);
  if (same == std::min(wanted.size(), held.size())) return std::nullopt;
  return same;
}

// With progress. Parts of a whole batch are computed exactly as in one append.
void Conversation::read(std::span<const Token> tokens) {
  const bool terminal = eval::stderr_is_terminal();
  eval::Progress progress(eval::stderr_writer(), terminal);
  progress.label(cat("reading ", tokens.size(), " tokens"));
  // A large model may take a minute for one batch.
  if (tokens.size() > (terminal ? kAnInstant : model_.batch())) progress.at_once();
  progress.grow(growth_, timeline_->length());
  progress.start(std::int64_t(tokens.size()));
  while (!tokens.empty()) {
    if (interrupt_requested()) throw Error(ErrorKind::interrupted, "interrupted");
    const std::size_t count = std::min(tokens.size(), model_.batch());
    timeline_->append(tokens.first(count));
    tokens = tokens.subspan(count);
    progress.advance(std::int64_t(count));
  }
  progress.finish();
}

void Conversation::tell_rung() {
  if (told_ == timeline_->rung()) return;
  told_ = timeline_->rung();
  on_rung_(*told_);
}

engine::Session SessionFile::begin(TimelineModel& model) const {
  if (path.empty() || !engine::session_exists(path)) return {model.timeline(), {}};
  return load_session(path, owner, model);
}

void SessionFile::save(const Timeline& timeline, const std::vector<ChatMessage>& messages) const {
  if (!path.empty()) save_session(path, owner, timeline, messages, salt);
}

void converse(Chat chat, const ReadLine& read, std::string first) {
  ChatState state{chat};
  for (bool going = true; going;) {
    try {
      std::optional<std::string> text = std::exchange(first, {});
      if (text->empty()) text = read_message(read, chat.terminal ? "\n> " : "");
      if (!text && chat.terminal) std::cerr << "\n";
      if (!text) return;
      if (trimmed(*text).empty()) continue;
      if (chat.terminal && text->front() == '/') {
        going = state.command(trimmed(*text));
      } else {
        state.answer(std::move(*text));
      }
    } catch (const Error& error) {
      // What was typed is lost, not the chat.
      if (!chat.terminal || error.kind() == ErrorKind::out_of_memory) throw;
      std::cerr << "\n" << error.what() << "\n";
      if (!error.hint().empty()) std::cerr << "  " << error.hint() << "\n";
      if (!state.attached.empty()) std::cerr << "  The file is still attached; /file drops it.\n";
    }
  }
}

}  // namespace mrrope::cli
