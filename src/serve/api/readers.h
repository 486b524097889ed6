// SPDX-License-Identifier: Apache-2.0
// Readers of fields that routes have in common. All refuse what cannot be used.
#pragma once

#include "serve/api/fields.h"
#include "serve/api/request.h"

namespace mrrope::serve {

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;
constexpr std::size_t kMaxMessages = 16384;
constexpr int kMaxLogprobs = 20;

// By the table of fields: sets what the accepted ones ask for, refuses those that are not
// supported, and lists the rest in `ignored`.
void read_fields(const Value& object, Route route, CompletionRequest& request);

// The answer: its length (-1 is up to the end of the context), end, sampling and form.
std::int64_t read_length(const Value& length);
void read_stop(const Value& stop, CompletionRequest& request);
void read_seed(const Value& seed, CompletionRequest& request);
void read_bias(const Value& bias, CompletionRequest& request);
void read_grammar(const Value& grammar, CompletionRequest& request);
void read_schema(const Value& schema, const std::string& field, CompletionRequest& request);
// The schema is in a member json_schema (nested), or beside the type.
void read_response_format(const Value& format, bool nested, CompletionRequest& request);
// After all of these and read_tools(): what excludes each other.
void check_form(const CompletionRequest& request);

// Chats.
std::string read_role(const Value& message);
// A string, or a list of parts of these types that have a text.
std::string read_content(const Value& content, std::initializer_list<const char*> types = {"text"});
// A call of a tool: an object with a name and arguments.
ordered_json read_call(const Value& function);
void read_messages(const Value& messages, CompletionRequest& request);
// tools and tool_choice. Functions and names are in a member `function` (nested), or beside the
// type.
void read_tools(const Value& body, bool nested, engine::ChatInputs& chat);
// Variables of the template: chat_template_kwargs and reasoning_effort.
void read_variables(const Value& given, const Value& effort, engine::ChatInputs& chat);

// The bodies of other dialects.
void read_responses(const Value& body, CompletionRequest& request);
void read_ollama(const Value& body, Route route, const ServingFacts& model,
                 CompletionRequest& request);

}  // namespace mrrope::serve
