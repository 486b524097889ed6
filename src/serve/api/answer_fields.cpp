// SPDX-License-Identifier: Apache-2.0
// Fields about the answer: length, end, sampling, form.
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "serve/api/readers.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr std::size_t kMaxBiases = 4096;
constexpr std::size_t kMaxBiasBytes = 1024;
constexpr std::size_t kMaxGrammarBytes = std::size_t{256} << 10;
constexpr double kMaxBias = 1e6;

// A number, or false: never.
float bias_value(const ordered_json& value, const Value& field) {
  if (value.is_boolean() && !value.get<bool>()) return -std::numeric_limits<float>::infinity();
  if (!value.is_number() || !(std::fabs(value.get<double>()) <= kMaxBias)) {
    field.refuse(
        cat("must give each token a number up to ", kMaxBias, " or false, not ", shown(value)));
  }
  return value.get<float>();
}

Bias bias_of(const std::string& name, float value, const Value& field) {
  Bias bias{std::nullopt, name, value};
  Token token = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, token);
  if (rest == end && error == std::errc() && token >= 0) {
    bias.token = token;
  } else if (rest == end || name.empty() || name.size() > kMaxBiasBytes) {
    field.refuse(cat("names ", shown(name),
                     ": give the number of a token, from 0, or a text of up to ", kMaxBiasBytes,
                     " bytes"));
  }
  return bias;
}

}  // namespace

std::int64_t read_length(const Value& length) {
  const std::int64_t tokens = length.whole(-1, kMaxTokens);
  if (tokens == 0) length.refuse("must be -1 or at least 1, not 0");
  return tokens < 0 ? kMaxTokens : tokens;
}

void read_stop(const Value& stop, CompletionRequest& request) {
  const bool list = stop.json().is_array();
  if (list && stop.size() > kMaxStops) {
    stop.refuse(cat("lists ", stop.size(), " strings: at most ", kMaxStops));
  }
  for (std::size_t i = 0; i < (list ? stop.size() : 1); ++i) {
    const ordered_json& entry = list ? stop.json()[i] : stop.json();
    if (!entry.is_string()) stop.refuse(cat("must hold strings, not ", shown(entry)));
    request.stop.push_back(entry.get<std::string>());
    const std::size_t size = request.stop.back().size();
    if (size == 0 || size > kMaxStopBytes) {
      stop.refuse(cat("holds a string of ", size, " bytes: 1 to ", kMaxStopBytes));
    }
  }
}

void read_seed(const Value& seed, CompletionRequest& request) {
  const std::int64_t number = seed.whole(std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::uint32_t>::max());
  request.has_seed = number != -1;  // llama-server's way to ask for any
  if (request.has_seed) request.sampling.seed = static_cast<std::uint32_t>(number);
}

// OpenAI's object of tokens, or llama-server's list of pairs; in both a text stands for its tokens.
void read_bias(const Value& bias, CompletionRequest& request) {
  const ordered_json& list = bias.json();
  if (!list.is_object() && !list.is_array()) bias.refuse_type("an object of tokens and numbers");
  if (list.size() > kMaxBiases) {
    bias.refuse(cat("has ", list.size(), " entries: at most ", kMaxBiases));
  }
  if (list.is_object()) {
    for (const auto& [name, value] : list.items()) {
      request.bias.push_back(bias_of(name, bias_value(value, bias), bias));
    }
    return;
  }
  for (const ordered_json& pair : list) {
    if (!pair.is_array() || pair.size() != 2) {
      bias.refuse(cat("must list pairs of a token and a number, not ", shown(pair)));
    }
    if (!pair[0].is_string() && !pair[0].is_number_integer()) {
      bias.refuse(cat("names a token by its number or its text, not by ", shown(pair[0])));
    }
    const std::string name = pair[0].is_string() ? pair[0].get<std::string>() : pair[0].dump();
    request.bias.push_back(bias_of(name, bias_value(pair[1], bias), bias));
  }
}

void read_grammar(const Value& grammar, CompletionRequest& request) {
  std::string& text = request.sampling.grammar.text;
  text = grammar.text();
  if (text.size() > kMaxGrammarBytes) {
    grammar.refuse(cat("has ", text.size(), " bytes: at most ", kMaxGrammarBytes, " are read"));
  }
}

void read_schema(const Value& schema, const std::string& field, CompletionRequest& request) {
  if (!request.schema.empty()) {
    refuse(request.schema_field, cat("is given beside '", field, "': give one of them"));
  }
  static const ordered_json any = {{"type", "object"}};
  if (schema && !schema.json().is_object()) {
    refuse(field, cat("must be a JSON schema, not ", shown(schema.json())));
  }
  request.schema = (schema.json().empty() ? any : schema.json()).dump();
  request.schema_field = field;
}

void read_response_format(const Value& format, bool nested, CompletionRequest& request) {
  const Value type = format.object().at("type");
  if (!type || type.json() == "text") return;
  if (type.json() == "json_object") {
    return read_schema(format.at("schema"), format.path(), request);
  }
  if (type.json() != "json_schema") {
    format.refuse(
        cat("is of type ", shown(type.json()), ": choose text, json_object or json_schema"));
  }
  const Value holder = nested ? format.at("json_schema") : format;
  if (!holder.at("schema")) holder.refuse("must be an object with a schema");
  read_schema(holder.at("schema"), format.path(), request);
}

void check_form(const CompletionRequest& request) {
  const std::string options = request.dialect == Dialect::ollama ? "options." : "";
  const bool grammar = !request.sampling.grammar.text.empty();
  const bool schema = !request.schema.empty();
  const bool calls =
      !request.conversation.tools.empty() && request.conversation.tool_choice != "none";
  if (schema && grammar) {
    refuse(options + "grammar", "is given beside a JSON schema: give one of them");
  }
  if (request.sampling.ignore_end && (grammar || schema || calls)) {
    refuse(options + "ignore_eos",
           "is true, but an answer with a grammar, a schema or tool calls ends where that does");
  }
  if (calls && (grammar || schema)) {
    refuse(schema ? request.schema_field : options + "grammar",
           "is given beside tools: give one of them, or tool_choice none");
  }
}

}  // namespace mrrope::serve
