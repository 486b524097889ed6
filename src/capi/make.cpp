// SPDX-License-Identifier: Apache-2.0
// Requests and answers as JSON.
#include <cstring>
#include <limits>
#include <set>

#include "base/json.h"
#include "base/lists.h"
#include "capi/guard.h"
#include "core/defaults.h"
#include "core/methods.h"
#include "formats/model_json.h"
#include "formats/plan_file.h"
#include "mrrope/model.h"

using mrrope::cat;
using mrrope::Error;
using mrrope::ErrorKind;
using mrrope::Geometry;
using mrrope::Ladder;
using mrrope::shown;
using mrrope::capi::checked;
using mrrope::capi::guarded;
using nlohmann::json;

namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint);
}

void check_keys(const json& object, const char* what, const std::set<std::string>& known) {
  if (!object.is_object()) refuse(cat(what, " is not an object"), "give {\"key\": value, ...}");
  for (const auto& [key, value] : object.items()) {
    if (known.count(key)) continue;
    refuse(cat(what, " has no key ", shown(key)),
           cat("the keys are ", mrrope::joined({known.begin(), known.end()}, ", ")));
  }
}

// A key that is absent or null is not given.
const json* given(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

std::optional<double> number(const json& object, const char* key) {
  const json* value = given(object, key);
  if (!value) return std::nullopt;
  if (!value->is_number()) refuse(cat(key, " is not a number"), cat("give a number for ", key));
  return value->get<double>();
}

template <typename Integer = std::int64_t>
std::optional<Integer> integer(const json& object, const char* key) {
  const json* value = given(object, key);
  if (!value) return std::nullopt;
  try {
    return mrrope::whole<Integer>(*value);
  } catch (const json::exception&) {
    refuse(cat(key, " is ", value->dump(), ", not a whole number in range"),
           cat("give a whole number for ", key));
  }
}

std::optional<std::string> string(const json& object, const char* key) {
  const json* value = given(object, key);
  if (!value) return std::nullopt;
  if (!value->is_string()) refuse(cat(key, " is not a text"), cat("give a text for ", key));
  return value->get<std::string>();
}

std::vector<double> list(const json& object, const char* key) {
  std::vector<double> out;
  const json* value = given(object, key);
  if (!value) return out;
  const auto bad = [&] { refuse(cat(key, " is not a list of numbers"), "give [1.0, 1.5, ...]"); };
  if (!value->is_array()) bad();
  for (const json& entry : *value) {
    if (!entry.is_number()) bad();
    out.push_back(entry.get<double>());
  }
  return out;
}

template <typename T>
T required(std::optional<T> value, const char* key) {
  if (!value) refuse(cat("the geometry has no ", key), cat("give ", key));
  return *value;
}

// A length above 0.
std::optional<std::int64_t> length(const json& object, const char* key) {
  const auto value = integer(object, key);
  if (value && *value < 1) {
    refuse(cat(key, " of ", *value, " tokens is not possible"), "give at least 1 token");
  }
  return value;
}

Geometry geometry_of(const json& in) {
  check_keys(in, "the geometry",
             {"rotary_dim", "base", "train_length", "pairing", "trained_factor",
              "trained_attention_scale"});
  Geometry g;
  g.rotary_dim = required(integer<int>(in, "rotary_dim"), "rotary_dim");
  g.base = required(number(in, "base"), "base");
  g.train_length = required(integer(in, "train_length"), "train_length");
  const std::string pairing = string(in, "pairing").value_or("halves");
  if (pairing == "interleaved") {
    g.pairing = mrrope::Pairing::interleaved;
  } else if (pairing != "halves") {
    refuse(cat("pairing ", shown(pairing), " is unknown"), "choose halves or interleaved");
  }
  g.trained_factor = list(in, "trained_factor");
  g.trained_attention_scale = number(in, "trained_attention_scale").value_or(1);
  return g;
}

Geometry subject_of(const json& in) {
  const auto path = string(in, "model");
  const json* stated = given(in, "geometry");
  if (!path == !stated) {
    refuse(path ? "both a model and a geometry are given" : "no model given",
           "give the path of a model, or a geometry");
  }
  Geometry g;
  if (path) {
    if (path->find('\0') != std::string::npos) {
      refuse(cat("the path ", shown(*path), " has a null character in it"), "give a path");
    }
    const json* replace = given(in, "replace_scaling");
    if (replace && !replace->is_boolean())
      refuse("replace_scaling is not true or false", "give true or false");
    g = mrrope::read_model(*path, replace && replace->get<bool>()).geometry;
  } else {
    const json* replace = given(in, "replace_scaling");
    if (replace && *replace != json(false))
      refuse("replace_scaling needs a model", "remove it: a geometry states its own scaling");
    g = geometry_of(*stated);
  }
  if (const auto window = length(in, "train_length")) g.train_length = *window;
  validate(g);
  return g;
}

Ladder made_of(const json& in) {
  std::set<std::string> keys = {"model", "geometry",        "method",      "ctx",
                                "scale", "replace_scaling", "train_length"};
  for (const mrrope::ParameterInfo& p : mrrope::parameters()) keys.emplace(p.name);
  check_keys(in, "the request", keys);
  const auto text = string(in, "method");
  if (!text) refuse("no method given", "give method, e.g. \"pro\" or \"pro(low=5)\"");
  mrrope::MethodSpec method = mrrope::parse_method(*text);  // named before the model is read
  const Geometry geometry = subject_of(in);
  for (const mrrope::ParameterInfo& p : mrrope::parameters()) {
    const std::string name(p.name);
    if (!given(in, name.c_str())) continue;
    if (p.list) {
      method.parameters.*p.list = list(in, name.c_str());
    } else if (p.unit == mrrope::Unit::pair) {
      method.parameters.*p.value = double(*integer<int>(in, name.c_str()));
    } else {
      method.parameters.*p.value = number(in, name.c_str());
    }
  }
  const auto ctx = length(in, "ctx").value_or(0);
  const auto scale = number(in, "scale");
  mrrope::check_reach(method, ctx, scale);
  return make_ladder(geometry, method, ctx, scale);
}

// Hands out what `make` returns, as a text of its own.
template <typename Make>
int give_text(char** out, Make make) noexcept {
  return guarded([&] {
    if (!out) throw Error(ErrorKind::usage, "the out pointer is null");
    *out = nullptr;
    const std::string text = mrrope::json_text(make());  // a path need not be UTF-8
    auto* copy = new char[text.size() + 1];
    std::memcpy(copy, text.c_str(), text.size() + 1);
    *out = copy;
  });
}

}  // namespace

int mrrope_make(const char* request, char** out) {
  return give_text(out, [&] {
    return to_json(made_of(mrrope::parse_json(checked(request, "request"), "the request")));
  });
}

int mrrope_load(const char* path, char** out) {
  return give_text(out, [&] { return to_json(mrrope::read_plan_file(checked(path, "path"))); });
}

int mrrope_inspect(const char* path, int64_t ctx, char** out) {
  return give_text(out, [&] {
    const mrrope::Model model = mrrope::read_model(checked(path, "path"));
    if (ctx < 0) refuse(cat("a context of ", ctx, " tokens is not possible"), "give 1 or more");
    return model_json(model, ctx > 0 ? ctx : model.geometry.train_length);
  });
}

void mrrope_text_free(char* text) { delete[] text; }

int mrrope_ladder_places(const char* text, char** out) {
  return give_text(out, [&] {
    const Ladder ladder =
        mrrope::ladder_from_json(mrrope::parse_json(checked(text, "text"), "the ladder"));
    if (ladder.growth() == mrrope::Growth::none) {
      refuse("this is one plan, not a ladder", "give a ladder, e.g. of elastic:pro");
    }
    const std::vector<mrrope::Rung> listed = mrrope::listed_rungs(ladder);
    auto places = nlohmann::ordered_json::array();
    std::size_t number = 0;
    for (const mrrope::Rung& rung : ladder.rungs()) {
      while (listed[number].length < rung.length) ++number;
      places.push_back({{"length", rung.length},
                        {"rung", number},
                        {"border", rung.border},
                        {"shift", rung.shift}});
    }
    return places;
  });
}

int mrrope_plan_parse(const char* text, int64_t rung, mrrope_plan** out) {
  return guarded(out, [&] {
    const auto listed = mrrope::listed_rungs(
        mrrope::ladder_from_json(mrrope::parse_json(checked(text, "text"), "the plan")));
    if (rung < 0 || rung >= std::int64_t(listed.size())) {
      refuse(cat("there is no rung ", rung), cat("give 0 to ", listed.size() - 1));
    }
    return listed[std::size_t(rung)].plan;
  });
}
