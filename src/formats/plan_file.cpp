// SPDX-License-Identifier: Apache-2.0
#include "formats/plan_file.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

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

ordered_json parameters_json(const Parameters& p) {
  ordered_json out = ordered_json::object();
  if (p.beta_fast) out["beta_fast"] = *p.beta_fast;
  if (p.beta_slow) out["beta_slow"] = *p.beta_slow;
  if (p.low) out["low"] = *p.low;
  if (p.high) out["high"] = *p.high;
  if (p.power) out["power"] = *p.power;
  if (p.attn_coef) out["attn_coef"] = *p.attn_coef;
  if (!p.factors.empty()) out["factors"] = p.factors;
  if (!p.lambdas.empty()) out["lambdas"] = p.lambdas;
  return out;
}

Parameters parameters_from_json(const json& in) {
  if (!in.is_object()) refuse("\"parameters\" is not an object");
  static const std::set<std::string> known = {"beta_fast", "beta_slow", "low",     "high",
                                              "power",     "attn_coef", "factors", "lambdas"};
  for (const auto& [key, value] : in.items()) {
    if (!known.count(key)) refuse(cat("unknown parameter ", shown(key)));
  }
  Parameters p;
  if (in.contains("beta_fast")) p.beta_fast = number_at(in, "beta_fast");
  if (in.contains("beta_slow")) p.beta_slow = number_at(in, "beta_slow");
  if (in.contains("low")) p.low = small_integer_at(in, "low");
  if (in.contains("high")) p.high = small_integer_at(in, "high");
  if (in.contains("power")) p.power = number_at(in, "power");
  if (in.contains("attn_coef")) p.attn_coef = number_at(in, "attn_coef");
  if (in.contains("factors")) p.factors = list_at(in, "factors");
  if (in.contains("lambdas")) p.lambdas = list_at(in, "lambdas");
  return p;
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
             "for numbers of your own use: mrrope plan --method custom --factors ...");
    }
  }
  const double scale = number_at(in, "attention_scale");
  if (!same(scale, plan.attention_scale())) {
    refuse(cat("attention_scale is ", scale, ", but its request gives ", plan.attention_scale()),
           "set the temperature with: mrrope plan --attn-coef ...");
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
  out["method"] =
      join_method_name(extension.method, ladder.near() ? growth_of(ladder) : Growth::elastic);
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

Plan plan_from_json(const json& in) {
  Extension e;
  e.method = string_at(in, "method");
  e.scale = number_at(in, "scale");
  if (in.contains("length")) e.length = integer_at(in, "length");
  e.parameters = parameters_from_json(member(in, "parameters"));
  const Geometry g = geometry_from_json(member(in, "geometry"));
  Plan plan = made([&] { return make_plan(g, e); });
  check_numbers(in, plan);
  return plan;
}

PlanOrLadder plan_or_ladder_from_json(const json& in) {
  const MethodName name = split_method_name(string_at(in, "method"));
  if (!name.grows()) return plan_from_json(in);

  LadderRequest request;
  request.extension.method = name.method;
  request.extension.parameters = parameters_from_json(member(in, "parameters"));
  // For other methods the scale follows from the rungs.
  if (made([&] { return method_row(name.method).reach; }) == Reach::length) {
    request.extension.scale = number_at(in, "scale");
  }
  request.rung_step = number_at(in, "rung_step");
  request.headroom = number_at(in, "headroom");
  request.longest = integer_at(in, "longest");
  if (name.has_near_part()) {
    const json& near = member(in, "near");
    request.near = NearPart{integer_at(near, "length"), integer_at(near, "step")};
  }
  const Geometry g = geometry_from_json(member(in, "geometry"));
  Ladder ladder = made([&] { return make_ladder(g, request); });

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

PlanOrLadder read_plan_file(const std::filesystem::path& path) {
  nlohmann::json content;
  try {
    content = read_json(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    throw Error(error.kind(), error.what(), "give a file that mrrope plan -o or mrrope tune wrote");
  }
  return plan_or_ladder_from_json(content);
}

}  // namespace mrrope
