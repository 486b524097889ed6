// SPDX-License-Identifier: Apache-2.0
#include "cli/args/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "base/json.h"
#include "base/parse_double.h"
#include "base/text.h"
#include "cli/app.h"
#include "core/context.h"
#include "core/methods.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint);
}

double parse_number(const std::string& text, const char* what) {
  const std::optional<double> value = parse_double(text);
  if (!value)
    refuse(cat("'", text, "' in ", what, " is not a number"), "write numbers as 1.5,2,2.5");
  return *value;
}

}  // namespace

std::vector<double> parse_list(const std::string& text, const char* what) {
  std::vector<double> out;
  if (text.empty()) return out;
  if (text.front() == '@') {
    const nlohmann::json list = read_json(text.substr(1));
    if (!list.is_array()) refuse(cat(text, " is not a JSON list"), "write [1, 1.5, 2]");
    for (const auto& entry : list) {
      if (!entry.is_number())
        refuse(cat(text, " contains an entry that is not a number"), "write [1, 1.5, 2]");
      out.push_back(entry.get<double>());
    }
    return out;
  }
  std::size_t start = 0;
  for (;;) {
    const std::size_t comma = text.find(',', start);
    out.push_back(parse_number(text.substr(start, comma - start), what));
    if (comma == std::string::npos) return out;
    start = comma + 1;
  }
}

namespace {

// With several methods on one command line, each gets the parameters that it uses.
Parameters readable_by(const MethodInfo& method, const Parameters& all) {
  Parameters p = all;
  if (!method.takes_betas) p.beta_fast = p.beta_slow = std::nullopt;
  if (!method.takes_borders) p.low = p.high = std::nullopt;
  if (!method.takes_power) p.power.reset();
  if (!method.takes_lists) p.factors.clear(), p.lambdas.clear();
  return p;
}

ContextRequest request_of(const std::string& method, const ExtensionFlags& flags,
                          const Parameters& parameters, const Geometry& geometry, bool alone) {
  ContextRequest request{method, parameters, flags.scale};
  if (!flags.ctx.empty()) request.ctx = parse_length(flags.ctx);
  request.rung_step = flags.rung_step;
  request.headroom = flags.headroom;
  if (!flags.near.empty()) request.near = parse_length(flags.near);
  if (!flags.near_step.empty()) request.near_step = parse_length(flags.near_step);
  if (alone) return request;
  const MethodName parts = split_method_name(resolve_auto(geometry, request).method);
  request.parameters = readable_by(method_row(parts.method).info, parameters);
  if (!parts.grows()) request.rung_step.reset();
  if (!parts.has_near_part()) request.near = request.near_step = std::nullopt;
  return request;
}

// Flags that no method takes. Without a method there is only `source`, which has all numbers of its
// own.
void refuse_unused(const ExtensionFlags& flags, const std::vector<ContextRequest>& requests,
                   const char* source) {
  const auto check = [&](const char* name, bool given, const auto& taken) {
    if (!given || std::any_of(requests.begin(), requests.end(), taken)) return;
    if (requests.empty()) {
      refuse(cat(name, " does not change ", source, ", which has its own numbers"),
             cat("leave it out, or make a plan with --method and ", name));
    }
    refuse(cat("none of these methods uses ", name), cat("leave out ", name));
  };
  using Request = const ContextRequest&;
  const Parameters& p = flags.parameters;
  check("--beta-fast", p.beta_fast.has_value(),
        [](Request r) { return r.parameters.beta_fast.has_value(); });
  check("--beta-slow", p.beta_slow.has_value(),
        [](Request r) { return r.parameters.beta_slow.has_value(); });
  check("--low", p.low.has_value(), [](Request r) { return r.parameters.low.has_value(); });
  check("--high", p.high.has_value(), [](Request r) { return r.parameters.high.has_value(); });
  check("--power", p.power.has_value(), [](Request r) { return r.parameters.power.has_value(); });
  check("--factors", !flags.factors.empty(),
        [](Request r) { return !r.parameters.factors.empty(); });
  check("--lambdas", !flags.lambdas.empty(),
        [](Request r) { return !r.parameters.lambdas.empty(); });
  check("--attn-coef", p.attn_coef.has_value(), [](Request) { return true; });
  check("--scale", flags.scale.has_value(), [](Request) { return true; });
  check("--headroom", flags.headroom.has_value(), [](Request) { return true; });
  check("--rung-step", flags.rung_step.has_value(),
        [](Request r) { return r.rung_step.has_value(); });
  check("--near", !flags.near.empty(), [](Request r) { return r.near.has_value(); });
  check("--near-step", !flags.near_step.empty(), [](Request r) { return r.near_step.has_value(); });
}

Candidate make_candidate(const ContextRequest& asked, const Geometry& geometry) {
  Candidate made{full_name(asked), make_context(geometry, asked, Spelling::flags)};
  const auto* ladder = std::get_if<Ladder>(&made.content);
  if (ladder && method_row(ladder->extension().method).reach != Reach::length && asked.ctx > 0 &&
      asked.scale && *asked.scale != 1) {
    note(cat(made.name, " grows with the sequence: --scale ", *asked.scale,
             " does not apply to it"));
  }
  if (is_auto(asked.method)) made.meaning = description(resolve_auto(geometry, asked));
  return made;
}

}  // namespace

std::int64_t parse_length(const std::string& text) {
  std::int64_t unit = 1;
  std::string digits = text;
  if (!digits.empty()) {
    const char last = digits.back();
    if (last == 'k' || last == 'K') unit = 1024;
    if (last == 'm' || last == 'M') unit = 1024 * 1024;
    if (unit > 1) digits.pop_back();
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1 ||
      value > (std::int64_t{1} << 40) / unit) {
    refuse(cat("'", text, "' is not a length"),
           "write tokens as 4096, or 128k for 131072, or 1m for 1048576");
  }
  return value * unit;
}

void add_subject(CLI::App& verb, SubjectFlags& flags) {
  verb.add_option("model,-m,--model", flags.model,
                  "GGUF file (any part of a split model) or Hugging Face folder")
      ->type_name("MODEL");
  verb.add_option("--rotary-dim", flags.rotary_dim,
                  "Without a model file: rotated elements per head")
      ->type_name("N");
  verb.add_option("--rope-freq-base", flags.base, "Without a model file: RoPE base (rope_theta)")
      ->type_name("BASE");
  verb.add_option("--train-ctx", flags.train_ctx,
                  "Trained context length; replaces the one that the model file states")
      ->type_name("LENGTH");
  verb.add_option("--pairing", flags.pairing,
                  "Without a model file: halves (default) or interleaved")
      ->type_name("NAME");
  verb.add_flag("--replace-scaling", flags.replace_scaling,
                "Ignore the vendor's own scaling: start from the plain base and window");
}

bool given(const SubjectFlags& flags) {
  return !flags.model.empty() || flags.rotary_dim || flags.base || !flags.train_ctx.empty() ||
         !flags.pairing.empty() || flags.replace_scaling;
}

Subject resolve(const SubjectFlags& flags) {
  Subject subject;
  if (!flags.model.empty()) {
    if (flags.rotary_dim || flags.base || !flags.pairing.empty()) {
      refuse("a model file states its own rotary_dim, base and pairing",
             "remove --rotary-dim, --rope-freq-base and --pairing, or remove the model");
    }
    subject.model = read_model(flags.model, flags.replace_scaling);
    subject.geometry = subject.model->geometry;
  } else {
    if (!flags.rotary_dim || !flags.base || flags.train_ctx.empty()) {
      refuse("no model given",
             "give a GGUF file or a Hugging Face folder; plan, inspect and theory also take "
             "--rotary-dim 128 --rope-freq-base 10000 --train-ctx 4096");
    }
    subject.geometry.rotary_dim = *flags.rotary_dim;
    subject.geometry.base = *flags.base;
    if (flags.pairing == "interleaved") {
      subject.geometry.pairing = Pairing::interleaved;
    } else if (!flags.pairing.empty() && flags.pairing != "halves") {
      refuse(cat("pairing '", flags.pairing, "' is unknown"), "choose halves or interleaved");
    }
  }
  if (!flags.train_ctx.empty()) subject.geometry.train_length = parse_length(flags.train_ctx);
  validate(subject.geometry);
  return subject;
}

void add_extension(CLI::App& verb, ExtensionFlags& flags) {
  std::string names;
  for (const MethodInfo& m : methods()) names += cat(names.empty() ? "" : ", ", m.name);
  verb.add_option("--method,--methods", flags.methods,
                  cat("Method, or a list where several are compared: ", names,
                      "; elastic:NAME grows with the sequence; far:NAME does too, and changes far "
                      "keys alone; auto, the default, is none inside the window and far:pi beyond"))
      ->type_name("NAME,...")
      ->delimiter(',');
  verb.add_option("--scale", flags.scale, "Extend the window by this factor")->type_name("S");
  verb.add_option("-c,--ctx", flags.ctx, "Context length to reach in tokens, e.g. 32768 or 128k")
      ->type_name("LENGTH");
  Parameters& p = flags.parameters;
  verb.add_option("--beta-fast", p.beta_fast,
                  "Pairs with at least this many turns are unchanged (default 32)")
      ->type_name("TURNS");
  verb.add_option("--beta-slow", p.beta_slow,
                  "Pairs with at most this many turns are scaled in full (default 1)")
      ->type_name("TURNS");
  verb.add_option("--low", p.low, "First pair of the middle; overrides --beta-fast")
      ->type_name("PAIR");
  verb.add_option("--high", p.high, "First pair scaled in full; overrides --beta-slow")
      ->type_name("PAIR");
  verb.add_option("--power", p.power, "power: the exponent p; 0 is uni, 1 is pro (default 1)")
      ->type_name("P");
  verb.add_option("--attn-coef", p.attn_coef,
                  "Temperature 1 + C ln S; the default depends on the method")
      ->type_name("C");
  verb.add_option("--factors", flags.factors,
                  "longrope, custom: one factor per pair, or @FILE with a JSON list")
      ->type_name("F0,F1,...");
  verb.add_option("--lambdas", flags.lambdas,
                  "custom: one lambda per digit, or @FILE with a JSON list")
      ->type_name("L0,L1,...");
  verb.add_option(
          "--rung-step", flags.rung_step,
          cat("elastic, far: ratio between the lengths of neighbouring rungs (default ",
              LadderRequest{}.rung_step, "; far: one rung up to ", kFewWindows, " windows)"))
      ->type_name("STEP");
  verb.add_option("--headroom", flags.headroom,
                  cat("Extra scale factor, at least 1 (default 1; far beyond ", kFewWindows,
                      " windows: ", kFarHeadroom, ")"))
      ->type_name("H");
  verb.add_option(
          "--near", flags.near,
          cat("far: tokens that are always near, at their true distance (default: 1/32 of the "
              "window, at least 256, beyond ",
              kFewWindows, " windows 1/4)"))
      ->type_name("LENGTH");
  verb.add_option("--near-step", flags.near_step,
                  "far: tokens by which the border between near and far moves (default: that of "
                  "--near)")
      ->type_name("LENGTH");
  verb.add_option("--plan", flags.plan_files,
                  "Plan file written by mrrope plan or tune; repeatable")
      ->type_name("FILE")
      ->take_all();
}

void refuse_without_method(const ExtensionFlags& flags, const char* source) {
  refuse_unused(flags, {}, source);
}

void check_reach(const ExtensionFlags& flags) {
  if (flags.ctx.empty()) return;
  for (const std::string& method : flags.methods) {
    check_reach({method, {}, flags.scale, parse_length(flags.ctx)}, Spelling::flags);
  }
}

std::vector<Candidate> resolve(const ExtensionFlags& flags,
                               const std::optional<Geometry>& geometry) {
  std::vector<Candidate> out;
  if (!flags.methods.empty()) {
    if (!geometry) {
      refuse(cat("method ", flags.methods.front(), " needs a model"),
             "give a file or folder, or --rotary-dim --rope-freq-base --train-ctx");
    }
    Parameters parameters = flags.parameters;
    parameters.factors = parse_list(flags.factors, "--factors");
    parameters.lambdas = parse_list(flags.lambdas, "--lambdas");
    const std::int64_t ctx = flags.ctx.empty() ? 0 : parse_length(flags.ctx);
    if (ctx > 0 && ctx <= geometry->train_length && !flags.scale && flags.factors.empty()) {
      note(cat(ctx, " tokens are inside the trained window of ", geometry->train_length,
               ": scale 1, nothing changes"));
    }
    std::vector<ContextRequest> requests;
    for (const std::string& name : flags.methods) {
      const bool alone = flags.methods.size() == 1;
      requests.push_back(request_of(name, flags, parameters, *geometry, alone));
    }
    refuse_unused(flags, requests, "");
    for (const ContextRequest& request : requests) {
      out.push_back(make_candidate(request, *geometry));
    }
  } else if (!flags.plan_files.empty()) {
    refuse_without_method(flags, "a plan file");
  }
  for (const std::string& file : flags.plan_files) out.push_back({file, read_plan_file(file)});
  return out;
}

std::int64_t length_asked_for(const ExtensionFlags& flags, const PlanOrLadder& content) {
  if (!flags.ctx.empty()) return parse_length(flags.ctx);
  if (const auto* ladder = std::get_if<Ladder>(&content)) return ladder->longest();
  const Plan& plan = std::get<Plan>(content);
  const Extension& e = plan.extension();
  const std::int64_t window = plan.geometry().train_length;
  const double scale = flags.scale.value_or(e.scale);
  return std::max({window, e.length, std::int64_t(std::llround(scale * double(window)))});
}

std::string geometry_words(const SubjectFlags& flags) {
  std::string text;
  if (flags.replace_scaling) text += " --replace-scaling";
  if (!flags.train_ctx.empty()) text += " --train-ctx " + flags.train_ctx;
  return text;
}

void note_auto(const std::vector<Candidate>& candidates) {
  for (const Candidate& c : candidates) {
    if (!c.meaning.empty()) note(cat("auto is ", c.meaning));
  }
}

std::optional<Candidate> vendor_plan(const Model& model, bool replaced, std::int64_t ctx) {
  const DeclaredScaling& s = model.scaling;
  if (s.type.empty() || s.type == "none") return std::nullopt;
  if (replaced) return Candidate{"vendor", declared_plan(model.path.string()).content};
  Extension e;
  if (s.type == "longrope" && s.long_factor != s.short_factor) {
    // Beyond the original window the long list replaces the short one.
    e.method = "custom";
    for (std::size_t i = 0; i < s.long_factor.size() && i < s.short_factor.size(); ++i) {
      e.parameters.factors.push_back(s.long_factor[i] / s.short_factor[i]);
    }
  } else if (s.type == "dynamic") {
    e.method = "dynamic-ntk";
    e.scale = std::max(1.0, s.factor);
    e.length = ctx;
  } else {
    return std::nullopt;
  }
  return Candidate{"vendor", make_plan(model.geometry, e)};
}

Candidate declared_plan(const std::string& model_path) {
  const Model model = read_model(model_path, true);
  const DeclaredScaling& s = model.scaling;
  const auto number_or_none = [&](const char* key, const char* other) -> std::optional<double> {
    for (const char* name : {key, other}) {
      if (const auto it = s.numbers.find(name); it != s.numbers.end()) return it->second;
    }
    return std::nullopt;
  };
  Extension e;
  e.scale = std::max(1.0, s.factor);
  Parameters& p = e.parameters;
  const Method* row = method_of_rule(s.type);
  const bool list = !s.long_factor.empty();
  if (row != nullptr && row->reach == Reach::scale && row->info.takes_lists == list) {
    e.method = row->info.name;
    if (list) p.factors = s.long_factor;
    if (row->info.takes_betas) {
      p.beta_fast = number_or_none("beta_fast", "high_freq_factor");
      p.beta_slow = number_or_none("beta_slow", "low_freq_factor");
    }
  } else if (list) {
    e.method = "custom";
    p.factors = s.long_factor;
  } else {
    refuse(cat(model_path, " declares no fixed scaling (", s.type.empty() ? "none" : s.type, ")"),
           cat("make a plan for it: mrrope plan ", shell_word(model_path),
               " --method pro --ctx 128k"));
  }
  const Geometry stated = read_model(model_path).geometry;
  // Of Llama 3.1 the window times the factor is less than the length it was trained for.
  if (double(stated.train_length) > e.scale * double(model.geometry.train_length)) {
    e.length = stated.train_length;
  }
  Plan plan = make_plan(model.geometry, e);
  // A rule of its own: gpt-oss does not round the borders of YaRN's ramp.
  const std::vector<double>& own = stated.trained_factor;
  const auto differs = [](double a, double b) { return std::abs(a / b - 1) > 1e-6; };
  if (model.geometry.trained_factor.empty() && own.size() == plan.factor().size() &&
      !std::equal(own.begin(), own.end(), plan.factor().begin(), std::not_fn(differs))) {
    e.method = "custom";
    p = {};
    p.factors = own;
    plan = make_plan(model.geometry, e);
  }
  // A temperature that the file states for itself.
  const double declared = stated.trained_attention_scale / model.geometry.trained_attention_scale;
  if (e.scale > 1 && std::abs(declared - plan.attention_scale()) > 1e-6) {
    p.attn_coef = (declared - 1) / std::log(e.scale);
    plan = make_plan(model.geometry, e);
  }
  return {cat("from ", model.path.filename().string()), std::move(plan)};
}

}  // namespace mrrope::cli
