// SPDX-License-Identifier: Apache-2.0
#include "serve/api/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMostStops = 16;
constexpr std::size_t kLongestStop = 1024;  // bytes
constexpr std::size_t kMostBiases = 4096;
constexpr std::size_t kLongestBias = 1024;                       // bytes
constexpr std::size_t kLongestGrammar = std::size_t{256} << 10;  // bytes
constexpr double kStrongestPenalty = 100;
constexpr double kStrongestBias = 1e6;

// A number, or false: never.
float bias_value(const ordered_json& value) {
  if (value.is_boolean() && !value.get<bool>()) return -std::numeric_limits<float>::infinity();
  if (!value.is_number() || !(std::fabs(value.get<double>()) <= kStrongestBias)) {
    refuse("logit_bias", cat("must give each token a number up to ", kStrongestBias,
                             " or false, not ", shown(value)));
  }
  return value.get<float>();
}

Bias bias_of(const std::string& name, float value) {
  Bias bias{std::nullopt, name, value};
  Token token = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, token);
  if (rest == end && error == std::errc() && token >= 0) {
    bias.token = token;
  } else if (rest == end || name.empty() || name.size() > kLongestBias) {
    refuse("logit_bias",
           cat("names ", shown(name), ": give the number of a token, from 0, or a text of up to ",
               kLongestBias, " bytes"));
  }
  return bias;
}

// OpenAI's object of tokens, or llama-server's list of pairs; in both a text stands for its tokens.
void read_bias(Fields& fields, CompletionRequest& request) {
  const ordered_json* list = fields.find("logit_bias");
  if (list == nullptr) return;
  if (!list->is_object() && !list->is_array()) {
    refuse("logit_bias", cat("must be an object of tokens and numbers, not ", shown(*list)));
  }
  if (list->size() > kMostBiases) {
    refuse("logit_bias", cat("has ", list->size(), " entries: at most ", kMostBiases));
  }
  if (list->is_object()) {
    for (const auto& [name, value] : list->items()) {
      request.bias.push_back(bias_of(name, bias_value(value)));
    }
    return;
  }
  for (const ordered_json& pair : *list) {
    if (!pair.is_array() || pair.size() != 2) {
      refuse("logit_bias", cat("must list pairs of a token and a number, not ", shown(pair)));
    }
    if (!pair[0].is_string() && !pair[0].is_number_integer()) {
      refuse("logit_bias", cat("names a token by its number or its text, not by ", shown(pair[0])));
    }
    const std::string name = pair[0].is_string() ? pair[0].get<std::string>() : pair[0].dump();
    request.bias.push_back(bias_of(name, bias_value(pair[1])));
  }
}

// repeat_penalty, which vLLM calls repetition_penalty.
void read_repeat_penalty(Fields& fields, Sampling& s) {
  constexpr double kWeakest = 0.01;
  const auto one = fields.number("repeat_penalty", kWeakest, kStrongestPenalty);
  const auto other = fields.number("repetition_penalty", kWeakest, kStrongestPenalty);
  if (one && other && *one != *other) {
    refuse("repetition_penalty",
           cat("is ", *other, " and 'repeat_penalty' ", *one, ": they are one, give either"));
  }
  if (one || other) s.repeat_penalty = one ? *one : *other;
}

}  // namespace

void read_sampling(Fields& fields, CompletionRequest& request, const Sampling& usual) {
  Sampling& s = request.sampling;
  s = usual;
  const auto take = [&](const char* name, double low, double high, double& into) {
    if (const auto value = fields.number(name, low, high)) into = *value;
  };
  take("temperature", 0, 100, s.temperature);
  take("top_p", 0, 1, s.top_p);
  take("min_p", 0, 1, s.min_p);
  take("typical_p", 0, 1, s.typical_p);
  take("frequency_penalty", -kStrongestPenalty, kStrongestPenalty, s.frequency_penalty);
  take("presence_penalty", -kStrongestPenalty, kStrongestPenalty, s.presence_penalty);
  read_repeat_penalty(fields, s);
  if (const auto n = fields.whole("repeat_last_n", -1, 1 << 30)) {
    s.repeat_last_n = static_cast<int>(*n);
  }
  if (const auto k = fields.whole("top_k", -1, 1 << 30)) {
    s.top_k = std::max(0, static_cast<int>(*k));  // -1 is vLLM's way to say "all"
  }
  if (const auto seed = fields.whole("seed", std::numeric_limits<std::int32_t>::min(),
                                     std::numeric_limits<std::uint32_t>::max())) {
    request.has_seed = *seed != -1;  // llama-server's way to ask for any
    if (request.has_seed) s.seed = static_cast<std::uint32_t>(*seed);
  }
  s.ignore_end = fields.flag("ignore_eos");
  read_bias(fields, request);
  s.grammar.text = fields.text("grammar").value_or("");
  if (s.grammar.text.size() > kLongestGrammar) {
    refuse("grammar",
           cat("has ", s.grammar.text.size(), " bytes: at most ", kLongestGrammar, " are read"));
  }
}

std::string schema_text(const ordered_json& schema, const std::string& field) {
  if (!schema.is_object()) refuse(field, cat("must be a JSON schema, not ", shown(schema)));
  const ordered_json any = {{"type", "object"}};
  return (schema.empty() ? any : schema).dump();
}

void read_schema(Fields& fields, CompletionRequest& request) {
  if (const ordered_json* schema = fields.find("json_schema")) {
    request.schema = schema_text(*schema, "json_schema");
    request.schema_field = "json_schema";
  }
  if (const ordered_json* format = fields.object("response_format")) {
    const ordered_json type = format->value("type", ordered_json("text"));
    const auto member = [](const ordered_json* of, const char* name) -> const ordered_json* {
      if (of == nullptr || !of->is_object()) return nullptr;
      const auto found = of->find(name);
      return found == of->end() || found->is_null() ? nullptr : &*found;
    };
    static const ordered_json any = ordered_json::object();
    const ordered_json* schema = nullptr;
    if (type == "json_object") {
      const ordered_json* own = member(format, "schema");
      schema = own == nullptr ? &any : own;
    } else if (type == "json_schema") {
      schema = member(member(format, "json_schema"), "schema");
      if (schema == nullptr) {
        refuse("response_format.json_schema", "must be an object with a schema");
      }
    } else if (type != "text") {
      refuse("response_format",
             cat("is of type ", shown(type), ": choose text, json_object or json_schema"));
    }
    if (schema != nullptr) {
      if (!request.schema.empty()) {
        refuse("json_schema", "is given beside 'response_format': give one of them");
      }
      request.schema = schema_text(*schema, "response_format");
      request.schema_field = "response_format";
    }
  }
  const bool grammar = !request.sampling.grammar.text.empty();
  if (!request.schema.empty() && grammar) {
    refuse("grammar", "is given beside a JSON schema: give one of them");
  }
  if (request.sampling.ignore_end && (grammar || !request.schema.empty())) {
    refuse("ignore_eos", "is true, but an answer with a grammar or a schema ends where that does");
  }
}

void read_stop(Fields& fields, CompletionRequest& request) {
  const ordered_json* stop = fields.find("stop");
  if (stop == nullptr) return;
  const auto add = [&](const ordered_json& entry) {
    if (!entry.is_string()) fields.bad("stop", cat("must hold strings, not ", shown(entry)));
    request.stop.push_back(entry.get<std::string>());
    const std::size_t size = request.stop.back().size();
    if (size == 0 || size > kLongestStop) {
      fields.bad("stop", cat("holds a string of ", size, " bytes: 1 to ", kLongestStop));
    }
  };
  if (!stop->is_array()) return add(*stop);
  if (stop->size() > kMostStops) {
    fields.bad("stop", cat("lists ", stop->size(), " strings: at most ", kMostStops));
  }
  for (const ordered_json& entry : *stop) add(entry);
}

void read_cache(Fields& fields, CompletionRequest& request) {
  request.cache_prompt = fields.flag("cache_prompt", true);
  const auto salt = fields.text("cache_salt");
  if (salt && salt->empty()) fields.bad("cache_salt", "is empty: give some text, or leave it out");
  request.cache_salt = salt.value_or("");
}

}  // namespace mrrope::serve
