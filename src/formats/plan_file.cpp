// SPDX-License-Identifier: Apache-2.0
#include "formats/plan_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

// Numbers made on another machine differ by its pow() and log(): a few roundings.
constexpr double kSameNumber = 1e-12;

[[noreturn]] void refuse(const std::string& message,
                         const std::string& hint = "write it again with: mrrope plan ... -o FILE") {
  throw Error(ErrorKind::corrupt, cat("plan file: ", message), hint);
}

const json& member(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) refuse(cat("there is no key \"", key, "\""));
  return object.at(key);
}

double number_at(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_number()) refuse(cat("\"", key, "\" is not a number"));
  return value.get<double>();
}

std::int64_t integer_at(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_number_integer()) refuse(cat("\"", key, "\" is not a whole number"));
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(INT64_MAX)) {
    refuse(cat("\"", key, "\" is out of range"));
  }
  return value.get<std::int64_t>();
}

int small_integer_at(const json& object, const char* key) {
  const std::int64_t value = integer_at(object, key);
  if (value < INT32_MIN || value > INT32_MAX) refuse(cat("\"", key, "\" is out of range"));
  return int(value);
}

std::string string_at(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) refuse(cat("\"", key, "\" is not a string"));
  return value.get<std::string>();
}

std::vector<double> list_at(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_array()) refuse(cat("\"", key, "\" is not a list"));
  std::vector<double> out;
  for (const json& entry : value) {
    if (!entry.is_number()) refuse(cat("\"", key, "\" holds something that is not a number"));
    out.push_back(entry.get<double>());
  }
  return out;
}

ordered_json parameters_json(const Parameters& parameters) {
  ordered_json out = ordered_json::object();
  for (const ParameterInfo& p : mrrope::parameters()) {
    if (!given(parameters, p)) continue;
    const std::string name(p.name);
    if (p.list) {
      out[name] = parameters.*p.list;
    } else if (p.unit == Unit::pair) {
      out[name] = std::int64_t(*(parameters.*p.value));
    } else {
      out[name] = *(parameters.*p.value);
    }
  }
  return out;
}

// Adds what "parameters" says to what the notation of "method" says.
void add_parameters(const json& in, Parameters& parameters) {
  if (!in.is_object()) refuse("\"parameters\" is not an object");
  std::size_t known = 0;
  for (const ParameterInfo& p : mrrope::parameters()) {
    const std::string name(p.name);
    if (!in.contains(name)) continue;
    ++known;
    if (p.list) {
      parameters.*p.list = list_at(in, name.c_str());
    } else if (p.unit == Unit::pair) {
      parameters.*p.value = double(small_integer_at(in, name.c_str()));
    } else {
      parameters.*p.value = number_at(in, name.c_str());
    }
  }
  if (known == in.size()) return;
  for (const auto& entry : in.items()) {
    const bool found = std::any_of(mrrope::parameters().begin(), mrrope::parameters().end(),
                                   [&](const ParameterInfo& p) { return p.name == entry.key(); });
    if (!found) refuse(cat("unknown parameter ", shown(entry.key())));
  }
}

Geometry geometry_from_json(const json& in) {
  Geometry g;
  g.rotary_dim = small_integer_at(in, "rotary_dim");
  g.base = number_at(in, "base");
  g.train_length = integer_at(in, "train_length");
  const std::string pairing = string_at(in, "pairing");
  if (pairing == "interleaved") {
    g.pairing = Pairing::interleaved;
  } else if (pairing != "halves") {
    refuse(cat("pairing \"", pairing, "\" is neither halves nor interleaved"));
  }
  if (in.contains("trained_factor")) g.trained_factor = list_at(in, "trained_factor");
  if (in.contains("trained_attention_scale")) {
    g.trained_attention_scale = number_at(in, "trained_attention_scale");
  }
  return g;
}

// The numbers that a plan file shows, whether it holds one plan or many.
void put_numbers(ordered_json& out, const Plan& plan) {
  out["boundaries"] = {{"low", plan.boundaries().low}, {"high", plan.boundaries().high}};
  out["shape"] = to_string(plan.shape());
  out["theta"] = plan.theta();
  out["factor"] = plan.factor();
  out["lambda"] = plan.lambda();
  out["attention_scale"] = plan.attention_scale();
}

void check_numbers(const json& in, const Plan& plan) {
  const auto same = [](double a, double b) {
    return std::abs(a - b) <= kSameNumber * std::max(std::abs(a), std::abs(b));
  };
  const std::vector<double> factor = list_at(in, "factor");
  if (factor.size() != plan.factor().size()) {
    refuse(cat("\"factor\" has ", factor.size(), " entries where ", plan.factor().size(),
               " pairs rotate"));
  }
  for (std::size_t i = 0; i < factor.size(); ++i) {
    if (!same(factor[i], plan.factor()[i])) {
      refuse(cat("factor ", i, " is ", factor[i], ", but its request gives ", plan.factor()[i]),
             "for numbers of your own use the method custom(factors=[...])");
    }
  }
  const double scale = number_at(in, "attention_scale");
  if (!same(scale, plan.attention_scale())) {
    refuse(cat("attention_scale is ", scale, ", but its request gives ", plan.attention_scale()),
           "set the temperature with the parameter attn_coef");
  }
}

// A request that make_plan() refuses makes the file corrupt, not the command line wrong.
template <typename Make>
auto made(Make make) {
  try {
    return make();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::usage) throw;
    refuse(e.what(), e.hint());
  }
}

}  // namespace

std::vector<Rung> listed_rungs(const Ladder& ladder) {
  std::vector<Rung> out;
  for (const Rung& rung : ladder.rungs()) {
    const bool same = ladder.near() && !out.empty() && out.back().border > 0 &&
                      out.back().plan.extension() == rung.plan.extension();
    if (same) out.pop_back();
    out.push_back(rung);
  }
  return out;
}

ordered_json geometry_json(const Geometry& g) {
  ordered_json out = {{"rotary_dim", g.rotary_dim},
                      {"base", g.base},
                      {"train_length", g.train_length},
                      {"pairing", to_string(g.pairing)}};
  if (!g.trained_factor.empty()) out["trained_factor"] = g.trained_factor;
  if (g.trained_attention_scale != 1) out["trained_attention_scale"] = g.trained_attention_scale;
  return out;
}

ordered_json plan_json(const Plan& plan) {
  const Extension& e = plan.extension();
  ordered_json out;
  out["geometry"] = geometry_json(plan.geometry());
  out["method"] = e.method;
  out["scale"] = e.scale;
  if (e.length != 0) out["length"] = e.length;
  out["parameters"] = parameters_json(e.parameters);
  put_numbers(out, plan);
  return out;
}

ordered_json ladder_json(const Ladder& ladder) {
  const Plan& last = ladder.rungs().back().plan;
  // A ladder that ends inside the window has the untouched plan alone.
  const Extension& extension = ladder.elastic() ? last.extension() : ladder.extension();
  ordered_json out;
  out["geometry"] = geometry_json(last.geometry());
  out["method"] = method_name(extension.method, ladder.growth());
  out["scale"] = extension.scale;
  out["parameters"] = parameters_json(extension.parameters);
  out["rung_step"] = ladder.rung_step();
  out["headroom"] = ladder.headroom();
  out["longest"] = ladder.longest();
  if (ladder.near())
    out["near"] = {{"length", ladder.near()->length}, {"step", ladder.near()->step}};
  out["rungs"] = ordered_json::array();
  for (const Rung& rung : listed_rungs(ladder)) {
    ordered_json r;
    r["length"] = rung.length;
    r["scale"] = rung.plan.extension().scale;
    if (ladder.near()) {
      r["border"] = rung.border;
      r["shift"] = rung.shift;
    }
    put_numbers(r, rung.plan);
    out["rungs"].push_back(std::move(r));
  }
  return out;
}

ordered_json to_json(const Ladder& ladder) {
  return ladder.growth() == Growth::none ? plan_json(ladder.rungs().front().plan)
                                         : ladder_json(ladder);
}

Ladder ladder_from_json(const json& in) {
  MethodSpec method = made([&] { return parse_method(string_at(in, "method")); });
  add_parameters(member(in, "parameters"), method.parameters);
  const Geometry g = geometry_from_json(member(in, "geometry"));
  if (method.growth == Growth::none) {
    Extension e{method.name, number_at(in, "scale"), 0, method.parameters};
    if (in.contains("length")) e.length = integer_at(in, "length");
    const Plan plan = made([&] { return make_plan(g, e); });
    check_numbers(in, plan);
    return make_ladder(plan);
  }

  method.parameters.rung_step = number_at(in, "rung_step");
  method.parameters.headroom = number_at(in, "headroom");
  if (method.growth == Growth::far) {
    const json& near = member(in, "near");
    method.parameters.near = double(integer_at(near, "length"));
    method.parameters.near_step = double(integer_at(near, "step"));
  }
  const std::int64_t longest = integer_at(in, "longest");
  if (longest < 1) refuse(cat("\"longest\" is ", longest));
  const Ladder ladder =
      made([&] { return make_ladder(g, method, longest, number_at(in, "scale")); });

  const json& rungs = member(in, "rungs");
  const std::vector<Rung> expected = listed_rungs(ladder);
  if (!rungs.is_array() || rungs.size() != expected.size()) {
    refuse(cat("\"rungs\" does not hold the ", expected.size(), " rungs of its request"));
  }
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (integer_at(rungs[i], "length") != expected[i].length) {
      refuse(cat("rung ", i + 1, " does not end at ", expected[i].length));
    }
    if (ladder.near() && (integer_at(rungs[i], "border") != expected[i].border ||
                          integer_at(rungs[i], "shift") != expected[i].shift)) {
      refuse(cat("rung ", i + 1, " does not have border ", expected[i].border, " and shift ",
                 expected[i].shift));
    }
    check_numbers(rungs[i], expected[i].plan);
  }
  return ladder;
}

Ladder read_plan_file(const std::filesystem::path& path) {
  nlohmann::json content;
  try {
    content = read_json(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    throw Error(error.kind(), error.what(), "give a file that mrrope plan -o or mrrope tune wrote");
  }
  return ladder_from_json(content);
}

}  // namespace mrrope
