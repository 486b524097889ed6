// SPDX-License-Identifier: Apache-2.0
#include "formats/plan_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files/source.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "core/methods.h"
#include "formats/json_keys.h"

namespace mrrope {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

// Numbers made on another machine differ by its pow() and log(): a few roundings.
constexpr double kSameNumber = 1e-12;

// Lengths in files, so that sums of two fit.
constexpr std::int64_t kMaxLength = std::int64_t{1} << 53;

ordered_json geometry_json(const Geometry& g) {
  ordered_json out = {{"rotary_dim", g.rotary_dim},
                      {"base", g.base},
                      {"train_length", g.train_length},
                      {"pairing", to_string(g.pairing)}};
  if (!g.trained_factor.empty()) out["trained_factor"] = g.trained_factor;
  if (g.trained_attention_scale != 1) out["trained_attention_scale"] = g.trained_attention_scale;
  if (!g.long_factor.empty()) {
    out["long_factor"] = g.long_factor;
    out["long_length"] = g.long_length;
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
      out[name] = std::int64_t(*value_of(parameters, p));
    } else {
      out[name] = *value_of(parameters, p);
    }
  }
  return out;
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

void check_numbers(const JsonKeys& in, const Plan& plan) {
  const auto same = [](double a, double b) {
    return std::abs(a - b) <= kSameNumber * std::max(std::abs(a), std::abs(b));
  };
  const std::vector<double> factor = in.reals({"factor"});
  in.refuse_if(
      factor.size() != plan.factor().size(),
      cat("factor has ", factor.size(), " entries where ", plan.factor().size(), " pairs rotate"));
  for (std::size_t i = 0; i < factor.size(); ++i) {
    if (same(factor[i], plan.factor()[i])) continue;
    in.refuse(cat("factor ", i, " is ", factor[i], ", but its request gives ", plan.factor()[i]),
              "for numbers of your own use the method custom(factors=[...])");
  }
  const double scale = in.needed_real("attention_scale");
  in.refuse_if(
      !same(scale, plan.attention_scale()),
      cat("attention_scale is ", scale, ", but its request gives ", plan.attention_scale()),
      "set the temperature with the parameter attn_coef");
}

// A request that make_plan() refuses makes the file corrupt, not the command line wrong.
template <typename Make>
auto made(Make make) {
  try {
    return make();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::usage) throw;
    throw Error(ErrorKind::corrupt, cat("plan file: ", e.what()), e.hint());
  }
}

constexpr std::uint64_t kWhole = std::uint64_t(64) << 20;
constexpr std::uint64_t kHead = std::uint64_t(16) << 20;
constexpr std::uint64_t kBlock = std::uint64_t(64) << 10;
constexpr std::uint64_t kBlocks = 256;

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
  if (ladder.sharpen() != 0) out["sharpen"] = ladder.sharpen();
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

Geometry geometry_of(const JsonKeys& in) {
  Geometry g;
  g.rotary_dim = int(in.needed_integer("rotary_dim", INT32_MIN, INT32_MAX));
  g.base = in.needed_real("base");
  g.train_length = in.needed_integer("train_length", -kMaxLength, kMaxLength);
  const std::string pairing = in.text({"pairing"});
  if (pairing == to_string(Pairing::interleaved)) {
    g.pairing = Pairing::interleaved;
  } else if (!pairing.empty() && pairing != to_string(Pairing::halves)) {
    in.refuse(cat("pairing ", shown(pairing), " is neither halves nor interleaved"));
  }
  g.trained_factor = in.reals({"trained_factor"});
  g.trained_attention_scale = in.real({"trained_attention_scale"}).value_or(1);
  g.long_factor = in.reals({"long_factor"});
  g.long_length = in.integer({"long_length"}, -kMaxLength, kMaxLength).value_or(0);
  return g;
}

std::vector<std::string> parameter_names() {
  return mapped(parameters(), [](const ParameterInfo& p) { return std::string(p.name); });
}

void add_parameters(const JsonKeys& in, Parameters& parameters) {
  for (const ParameterInfo& p : mrrope::parameters()) {
    const std::string name(p.name);
    if (!in.has({name.c_str()})) continue;
    if (p.list) {
      parameters.*p.list = in.reals({name.c_str()});
    } else if (p.unit == Unit::pair) {
      set_value(parameters, p, double(*in.integer({name.c_str()}, INT32_MIN, INT32_MAX)));
    } else {
      set_value(parameters, p, in.real({name.c_str()}));
    }
  }
}

Ladder ladder_from_json(const json& content) {
  const JsonKeys in(content, "plan file", ErrorKind::corrupt,
                    "write it again with: mrrope plan ... -o FILE");
  MethodSpec method = made([&] { return parse_method(in.needed_text("method")); });
  const JsonKeys parameters = in.needed_object("parameters");
  parameters.allow_only(parameter_names());
  add_parameters(parameters, method.parameters);
  const Geometry g = geometry_of(in.needed_object("geometry"));
  const double scale = in.needed_real("scale");
  if (method.growth == Growth::none) {
    const auto length = in.integer({"length"}, -kMaxLength, kMaxLength).value_or(0);
    const Plan plan = made([&] {
      return make_plan(g, {method.name, scale, length, method.parameters});
    });
    check_numbers(in, plan);
    return make_ladder(plan);
  }

  method.parameters.rung_step = in.needed_real("rung_step");
  method.parameters.headroom = in.needed_real("headroom");
  method.parameters.sharpen = in.real({"sharpen"}).value_or(0);
  if (method.growth == Growth::far) {
    const JsonKeys near = in.needed_object("near");
    method.parameters.near = double(near.needed_integer("length", -kMaxLength, kMaxLength));
    method.parameters.near_step = double(near.needed_integer("step", -kMaxLength, kMaxLength));
  }
  const std::int64_t longest = in.needed_integer("longest", 1, kMaxLength);
  Ladder ladder = made([&] { return make_ladder(g, method, longest, scale); });

  const json* rungs = in.find({"rungs"});
  const std::vector<Rung> expected = listed_rungs(ladder);
  in.refuse_if(!rungs || !rungs->is_array() || rungs->size() != expected.size(),
               cat("rungs does not hold the ", expected.size(), " rungs of its request"));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const JsonKeys rung = in.item((*rungs)[i], cat("rung ", i + 1));
    const auto check = [&](const char* name, std::int64_t wanted) {
      if (rung.needed_integer(name, 0, kMaxLength) == wanted) return;
      rung.refuse(cat(name, " is not ", wanted));
    };
    check("length", expected[i].length);
    if (ladder.near()) {
      check("border", expected[i].border);
      check("shift", expected[i].shift);
    }
    check_numbers(rung, expected[i].plan);
  }
  return ladder;
}

Ladder read_plan_file(const std::filesystem::path& path) {
  json content;
  try {
    content = read_json(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    throw Error(error.kind(), error.what(), "give a file that mrrope plan -o or mrrope tune wrote");
  }
  return ladder_from_json(content);
}

const char* to_string(LayerKind kind) noexcept {
  constexpr const char* kNames[] = {"full", "windowed", "unrotated", "recurrent"};
  return kNames[std::size_t(kind)];
}

std::map<std::string, int> layer_counts(const Model& model) {
  std::map<std::string, int> counts;
  for (const Layer& layer : model.layers) ++counts[to_string(layer.kind)];
  return counts;
}

ordered_json model_json(const Model& model, std::int64_t ctx) {
  ordered_json out;
  out["path"] = model.path.string();
  out["format"] = model.format;
  out["name"] = model.name;
  out["architecture"] = model.architecture;
  out["embedding"] = model.embedding;
  out["layers"] = model.layers.size();
  out["layer_kinds"] = layer_counts(model);
  out["layer_list"] = mapped(model.layers, [](const Layer& l) { return to_string(l.kind); });
  out["heads"] = model.heads;
  out["kv_heads"] = model.kv_heads;
  out["key_length"] = model.key_length;
  out["value_length"] = model.value_length;
  out["vocabulary"] = model.vocabulary;
  out["sliding_window"] = model.sliding_window;
  out["latent_attention"] = model.latent_attention;
  out["mrope_sections"] = model.mrope_sections;
  out["geometry"] = geometry_json(model.geometry);
  out["scaling"] = {{"type", model.scaling.type.empty() ? "none" : model.scaling.type},
                    {"factor", model.scaling.factor},
                    {"original_length", model.scaling.original_length},
                    {"trained", model.scaling.trained}};
  out["weight_bytes"] = model.weight_bytes;
  out["files"] = mapped(model.files, [](const auto& file) { return file.string(); });
  out["ctx"] = ctx;
  out["scale"] = std::max(1.0, double(ctx) / double(model.geometry.train_length));
  out["kv_bytes"] = {{"f16", kv_bytes(model, ctx, kBitsF16)},
                     {"q8_0", kv_bytes(model, ctx, kBitsQ8)}};
  return out;
}

std::string ladder_digest(const Ladder& ladder) {
  const ordered_json content =
      ladder.elastic() ? ladder_json(ladder) : plan_json(ladder.rungs().front().plan);
  return sha256(content.dump()).substr(0, 16);
}

std::string model_digest(const std::vector<std::filesystem::path>& files) {
  Sha256 hash;
  bool sampled = false;
  for (const std::filesystem::path& path : files) {
    const Source source = Source::open(path);
    const std::uint64_t size = source.size();
    hash.update(cat(size, "\n"));
    if (size < kWhole) {
      hash.update(source, 0, size);
      continue;
    }
    sampled = true;
    hash.update(source, 0, kHead);
    const std::uint64_t span = size - kHead - kBlock;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      // span * i would overflow only past 2^56 bytes.
      hash.update(source, kHead + span * i / (kBlocks - 1), kBlock);
    }
  }
  return (sampled ? "sampled:" : "sha256:") + hash.hex();
}

}  // namespace mrrope
