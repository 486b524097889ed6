// SPDX-License-Identifier: Apache-2.0
#include "cli/args/options.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/json.h"
#include "base/text.h"
#include "base/words.h"
#include "cli/app.h"
#include "core/defaults.h"
#include "core/methods.h"
#include "formats/plan_file.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint);
}

std::string flag_name(const ParameterInfo& p) {
  std::string name = cat("--", p.name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// A list in a flag may go without brackets, or be a JSON list in @FILE.
std::string list_text(const std::string& text) {
  if (text.front() == '[') return text;
  if (text.front() != '@') return cat("[", text, "]");
  const nlohmann::json list = read_json(text.substr(1));
  if (!list.is_array()) refuse(cat(text, " is not a JSON list"), "write [1, 1.5, 2]");
  return list.dump();
}

Parameters short_forms(const ExtensionFlags& flags) {
  Parameters out;
  for (std::size_t i = 0; i < flags.parameters.size(); ++i) {
    const ParameterInfo& p = parameters()[i];
    const std::string& text = flags.parameters[i];
    if (text.empty()) continue;
    set_parameter(out, p, p.list ? list_text(text) : text);
  }
  return out;
}

// Copies the parameter where it is given.
void take(Parameters& to, const Parameters& from, const ParameterInfo& p) {
  if (p.list) {
    if (!(from.*p.list).empty()) to.*p.list = from.*p.list;
  } else if (const auto value = value_of(from, p)) {
    set_value(to, p, value);
  }
}

}  // namespace

std::vector<double> parse_list(const std::string& text, const char* flag) {
  std::vector<double> out;
  const std::string list = list_text(text);
  for (const std::string& word : split_list(list.substr(1, list.size() - 2))) {
    const std::optional<double> value = parse_double(word);
    if (!value) {
      refuse(cat("'", word, "' in ", flag, " is not a number"), "write numbers as 1.5,2,2.5");
    }
    out.push_back(*value);
  }
  return out;
}

std::int64_t parse_length(const std::string& text) {
  const auto length = mrrope::parse_length(text);
  if (!length) {
    refuse(cat("'", text, "' is not a length"),
           "write tokens as 4096, or 128k for 131072, or 1m for 1048576");
  }
  return *length;
}

void add_subject(CLI::App& verb, SubjectFlags& flags, Takes takes) {
  verb.add_option("model,-m,--model", flags.model,
                  "GGUF file (any part of a split model) or Hugging Face folder")
      ->type_name("MODEL");
  verb.add_option("--train-ctx", flags.train_ctx,
                  "Trained context length; replaces the one that the model file states")
      ->type_name("LENGTH");
  verb.add_flag("--replace-scaling", flags.replace_scaling,
                "Ignore the vendor's own scaling: start from the plain base and window");
  if (takes == Takes::model) return;
  verb.add_option("--rotary-dim", flags.rotary_dim,
                  "Without a model file: rotated elements per head")
      ->type_name("N");
  verb.add_option("--rope-freq-base", flags.base, "Without a model file: RoPE base (rope_theta)")
      ->type_name("BASE");
  verb.add_option("--pairing", flags.pairing,
                  "Without a model file: halves (default) or interleaved")
      ->type_name("NAME");
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

void add_extension(CLI::App& verb, ExtensionFlags& flags, ShortForms forms) {
  std::vector<std::string> names;
  for (const MethodInfo& m : methods()) names.emplace_back(m.name);
  verb.add_option("--method,--methods", flags.methods,
                  cat("Methods: ", joined(names, ", "),
                      "; elastic:NAME and far:NAME grow with the sequence; parameters as in "
                      "'pro(low=5,headroom=1.25)'; auto, the default, is none inside the window "
                      "and far:pi beyond"))
      ->type_name("NAME,...");
  verb.add_option("--scale", flags.scale, "Extend the window by this factor")->type_name("S");
  verb.add_option("-c,--ctx", flags.ctx, "Context length to reach in tokens, e.g. 32768 or 128k")
      ->type_name("LENGTH");
  for (std::size_t i = 0; i < flags.parameters.size(); ++i) {
    const ParameterInfo& p = parameters()[i];
    CLI::Option* option = verb.add_option(flag_name(p), flags.parameters[i], std::string(p.help))
                              ->type_name(std::string(p.placeholder));
    if (forms == ShortForms::listed) continue;
    option->group("")->each([&p](const std::string& text) {
      note(cat(flag_name(p), " ", text, " is now part of the method: --method 'NAME(", p.name, "=",
               text, ")'"));
    });
  }
  verb.add_option("--plan", flags.plan_files,
                  "Plan file written by mrrope plan or tune; repeatable")
      ->type_name("FILE")
      ->take_all();
}

std::vector<MethodSpec> method_specs(const ExtensionFlags& flags) {
  std::vector<MethodSpec> out;
  for (const std::string& text : flags.methods) {
    for (MethodSpec& spec : parse_methods(text)) out.push_back(std::move(spec));
  }
  const Parameters shorts = short_forms(flags);
  for (const ParameterInfo& p : parameters()) {
    if (!given(shorts, p)) continue;
    bool used = false;
    for (MethodSpec& spec : out) {
      if (out.size() > 1 && !uses(spec, p)) continue;
      take(spec.parameters, shorts, p);
      used = true;
    }
    if (!used) {
      refuse(cat("none of these methods uses ", flag_name(p)), cat("leave out ", flag_name(p)));
    }
  }
  return out;
}

void refuse_without_method(const ExtensionFlags& flags, const char* source) {
  std::string flag = flags.scale ? "--scale" : "";
  for (std::size_t i = 0; i < flags.parameters.size(); ++i) {
    if (!flags.parameters[i].empty()) flag = flag_name(parameters()[i]);
  }
  if (flag.empty()) return;
  refuse(cat(flag, " does not change ", source, ", which has its own numbers"),
         cat("leave it out, or make a plan with --method and ", flag));
}

void check_reach(const ExtensionFlags& flags) {
  if (flags.ctx.empty()) return;
  for (const MethodSpec& method : method_specs(flags)) {
    check_reach(method, parse_length(flags.ctx), flags.scale);
  }
}

std::string Candidate::meaning() const {
  if (!is_auto(method.name)) return {};
  return to_string(resolve_auto(ladder.rungs().front().plan.geometry(), method, ladder.longest()));
}

std::vector<Candidate> resolve(const ExtensionFlags& flags,
                               const std::optional<Geometry>& geometry) {
  std::vector<Candidate> out;
  if (!flags.methods.empty()) {
    if (!geometry) {
      refuse(cat("method ", flags.methods.front(), " needs a model"),
             "give a file or folder, or --rotary-dim --rope-freq-base --train-ctx");
    }
    const std::vector<MethodSpec> methods = method_specs(flags);
    const std::int64_t ctx = flags.ctx.empty() ? 0 : parse_length(flags.ctx);
    const bool lists = std::all_of(methods.begin(), methods.end(), [](const MethodSpec& m) {
      return !m.parameters.factors.empty();
    });
    if (ctx > 0 && ctx <= geometry->train_length && !flags.scale && !lists) {
      note(cat(ctx, " tokens are inside the trained window of ", geometry->train_length,
               ": scale 1, nothing changes"));
    }
    for (const MethodSpec& method : methods) {
      out.push_back({to_string(method), make_ladder(*geometry, method, ctx, flags.scale), method});
      if (out.back().ladder.growth() != Growth::none && ctx > 0 && flags.scale.value_or(1) != 1 &&
          method_row(out.back().ladder.extension().method).reach != Reach::length) {
        note(cat(out.back().name, " grows with the sequence: --scale ", *flags.scale,
                 " does not apply to it"));
      }
    }
  } else if (!flags.plan_files.empty()) {
    refuse_without_method(flags, "a plan file");
  }
  for (const std::string& file : flags.plan_files) out.push_back({file, read_plan_file(file)});
  return out;
}

Ladder up_to(const Ladder& ladder, std::int64_t length) {
  return ladder.growth() == Growth::none ? make_ladder(ladder.rungs().front().plan, length)
                                         : ladder;
}

std::int64_t length_asked_for(const ExtensionFlags& flags, const Ladder& ladder) {
  return flags.ctx.empty() ? ladder.longest() : parse_length(flags.ctx);
}

std::string geometry_words(const SubjectFlags& flags) {
  std::string text;
  if (flags.replace_scaling) text += " --replace-scaling";
  if (!flags.train_ctx.empty()) text += " --train-ctx " + flags.train_ctx;
  return text;
}

void note_auto(const std::vector<Candidate>& candidates) {
  for (const Candidate& c : candidates) {
    if (const std::string meaning = c.meaning(); !meaning.empty()) note(cat("auto is ", meaning));
  }
}

std::optional<Candidate> vendor_plan(const Model& model, bool replaced, std::int64_t ctx) {
  const DeclaredScaling& s = model.scaling;
  if (s.type.empty() || s.type == "none") return std::nullopt;
  if (replaced) return Candidate{"vendor", declared_plan(model.path.string()).ladder};
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
  return Candidate{"vendor", make_ladder(make_plan(model.geometry, e))};
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
  return {cat("from ", model.path.filename().string()), make_ladder(plan)};
}

}  // namespace mrrope::cli
