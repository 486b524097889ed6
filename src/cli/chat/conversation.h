// SPDX-License-Identifier: Apache-2.0
// A sequence of which a prompt that repeats its tokens computes only what is new; and the chat of a
// person with a model.
#pragma once

#include "cli/chat/line_reader.h"
#include "engine/session/session.h"

namespace mrrope::cli {

class Conversation {
 public:
  // on_rung: called when the keys have moved to another rung. growth: of the time that a token
  // takes (engine/run/speed.h), for the bar.
  Conversation(TimelineModel& model, const Ladder& ladder, std::unique_ptr<Timeline> timeline,
               std::function<void(std::size_t)> on_rung, double growth);

  // Throws Error: usage where prompt and answer do not fit, interrupted by Ctrl-C while it reads.
  Generation answer(const std::string& prompt, GenerateOptions options);

  // Where the prompt parts from the text that is there; nothing if one begins with the other.
  std::optional<std::size_t> parts_at(const std::string& prompt) const;

  std::int64_t length() const { return timeline_->length(); }
  // Of the last prompt: all tokens, and those that were not computed again.
  std::int64_t prompt_tokens() const { return prompt_; }
  std::int64_t cached_tokens() const { return kept_; }
  std::size_t rung() const { return timeline_->rung(); }
  const Timeline& timeline() const { return *timeline_; }
  const Ladder& ladder() const { return ladder_; }
  TimelineModel& model() const { return model_; }

 private:
  void read(std::span<const Token> tokens);
  void tell_rung();

  TimelineModel& model_;
  const Ladder& ladder_;
  std::unique_ptr<Timeline> timeline_;
  std::function<void(std::size_t)> on_rung_;
  double growth_;
  std::optional<std::size_t> told_;
  std::int64_t prompt_ = 0;
  std::int64_t kept_ = 0;
};

// --session; does nothing without a path.
struct SessionFile {
  std::string path;
  engine::SessionOwner owner;
  std::string salt = {};  // of a server's saved slot

  engine::Session begin(TimelineModel& model) const;
  void save(const Timeline& timeline, const std::vector<ChatMessage>& messages) const;
};

// The text of a file, or of standard input for "-". Throws Error: failed where it cannot be read,
// usage where it has more than 64 MiB.
std::string read_text(const std::string& path);

// Throws an Error of this kind, with what to type, where prompt and answer do not fit.
void check_room(std::int64_t prompt, std::int64_t answer, std::int64_t longest, ErrorKind kind);

// Messages come from `read`, a first one perhaps from `first`; answers go to standard output. Lines
// that begin with / are commands; /help lists them. Ends with the input. Throws Error (usage) where
// a message of a pipe does not fit; on a terminal the chat says so and goes on.
struct Chat {
  Conversation& conversation;
  const SessionFile& session;
  std::vector<ChatMessage> messages;
  GenerateOptions options;
  bool terminal = false;
  // Prints the end of an answer whose text was streamed.
  std::function<void(const Generation&)> print;
};
void converse(Chat chat, const ReadLine& read, std::string first);

}  // namespace mrrope::cli
