// SPDX-License-Identifier: Apache-2.0
// What an answer says beyond its text: reasoning, content and tool calls, as its template writes
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/chat/chat.h"

namespace mrrope::serve {

struct AnswerSyntax {
  std::string syntax;      // of ChatPrompt; empty: the text is the content
  bool continues = false;  // a message of the request, which is not repeated
  // Tools that the model may call. An answer that is nothing but the JSON of calls makes them too:
  // some models know their template's tags and leave them out.
  std::vector<std::string> tools = {};
  std::string echo = {};  // precedes the answer
  bool parallel = true;   // more than one call in an answer
};

// What was added since the previous one.
struct Delta {
  struct Call {
    std::size_t index = 0;
    engine::ToolCall call;  // id and name with the first part of its arguments only
  };
  std::string content;
  std::string reasoning;
  std::vector<Call> calls;

  bool empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
};

class AnswerReader {
 public:
  // number: ids of tool calls are made of it, where the model writes none.
  AnswerReader(engine::ChatRenderer& renderer, AnswerSyntax syntax, std::uint64_t number);

  // Whether the text has to be parsed, which takes some time.
  bool parses() const { return !syntax_.syntax.empty(); }

  // last: nothing more will come.
  Delta add(const std::string& text, bool last);

  bool has_calls() const { return !sent_.calls.empty(); }

 private:
  engine::ParsedAnswer parse(bool last);

  engine::ChatRenderer& renderer_;
  AnswerSyntax syntax_;
  std::uint64_t number_;
  bool begun_ = false;
  std::string text_;
  engine::ParsedAnswer sent_;  // what was passed on
};

}  // namespace mrrope::serve
