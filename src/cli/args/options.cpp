// SPDX-License-Identifier: Apache-2.0
#include "cli/args/options.h"

#include <iostream>

#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "core/methods.h"
#include "formats/plan_file.h"
#include "hub/hub.h"
#include "tune/profile.h"

namespace mrrope::cli {

namespace {

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
  refuse_if(!list.is_array(), cat(text, " is not a JSON list"), "write [1, 1.5, 2]");
  return list.dump();
}

// Throws Error (usage) for flags that change the plan of a method, where there are only files.
void refuse_without_method(const ExtensionFlags& flags) {
  std::string flag = flags.scale ? "--scale" : "";
  for (std::size_t i = 0; i < flags.parameters.size(); ++i) {
    if (!flags.parameters[i].empty()) flag = flag_name(parameters()[i]);
  }
  if (flag.empty()) return;
  refuse(cat(flag, " does not change a plan file, which has its own numbers"),
         cat("leave it out, or make a plan with --method and ", flag));
}

// Whether --plan names a model file or folder instead of a plan file.
bool is_model(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".gguf" || ending == ".safetensors" || path.filename() == "config.json" ||
         folder_exists(path);
}

// The scaling that a model declares, as a plan on its plain geometry. Throws Error (usage) if it
// declares none.
Candidate declared_plan(const std::string& model_path) {
  const Model model = read_model(model_path, true);
  const DeclaredScaling& s = model.scaling;
  Extension e;
  e.scale = std::max(1.0, s.factor);
  Parameters& p = e.parameters;
  const Method* row = method_of_rule(s.type);
  const bool list = !s.long_factor.empty();
  if (row != nullptr && row->reach == Reach::scale && row->info.takes_lists == list) {
    e.method = row->info.name;
    if (list) p.factors = s.long_factor;
    if (row->info.takes_betas) {
      p.beta_fast = s.beta_fast;
      p.beta_slow = s.beta_slow;
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

// What a profile takes the place of: auto as it is.
bool is_unnamed(const MethodSpec& method) { return method == MethodSpec{std::string(kAuto)}; }

// Where the model is, after a download with a bar.
std::filesystem::path model_path(const SubjectFlags& flags) {
  if (!flags.download) return hub::find_model(flags.model);
  std::string last;
  std::int64_t shown = 0;  // MiB
  std::optional<eval::Progress> progress;
  const auto show = [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
    const auto mib = std::int64_t(done >> 20);
    if (what != last) {
      if (progress) progress->finish();
      progress.emplace(eval::stderr_writer(), eval::stderr_is_terminal());
      if (eval::stderr_is_terminal()) progress->at_once();
      progress->label(what);
      progress->start(std::int64_t(total >> 20), mib, "MiB");
      last = what;
      shown = mib;
    }
    progress->advance(mib - shown);
    shown = mib;
  };
  std::filesystem::path path = hub::download(flags.model, show);
  if (progress) progress->finish();
  return path;
}

}  // namespace

std::vector<double> parse_list(const std::string& text, const char* flag) {
  std::vector<double> out;
  const std::string list = list_text(text);
  for (const std::string& word : split_list(list.substr(1, list.size() - 2))) {
    const std::optional<double> value = parse_double(word);
    refuse_if(!value, cat("'", word, "' in ", flag, " is not a number"),
              "write numbers as 1.5,2,2.5");
    out.push_back(*value);
  }
  return out;
}

std::int64_t parse_length(const std::string& text) {
  const auto length = mrrope::parse_length(text);
  refuse_if(!length, cat("'", text, "' is not a length"),
            "write tokens as 4096, or 128k for 131072, or 1m for 1048576");
  return *length;
}

void add_subject(CLI::App& verb, SubjectFlags& flags, Takes takes) {
  CLI::Option* model = add(verb, "model,-m,--model", flags.model);
  const auto take_repository = [&flags](const std::string& name) {
    flags.model = name;
    flags.download = true;
  };
  verb.add_option_function<std::string>(
          "--hf-repo", take_repository,
          "-hf USER/REPO[:QUANT]: its GGUF model, downloaded if it is not here")
      ->type_name("REPO")
      ->excludes(model);
  add(verb, "--train-ctx", flags.train_ctx);
  add(verb, "--replace-scaling", flags.replace_scaling);
  if (takes == Takes::model) return;
  add(verb, "--rotary-dim", flags.rotary_dim);
  add(verb, "--rope-freq-base", flags.base);
}

bool given(const SubjectFlags& flags) {
  return !flags.model.empty() || flags.rotary_dim || flags.base || !flags.train_ctx.empty() ||
         flags.replace_scaling;
}

Model model_of(const SubjectFlags& flags) {
  refuse_if(flags.model.empty(), "no model given",
            "give a GGUF file, a Hugging Face folder, a name that mrrope models lists, or -hf "
            "USER/REPO");
  refuse_if(flags.rotary_dim || flags.base, "a model file states its own rotary_dim and base",
            "remove --rotary-dim and --rope-freq-base, or remove the model");
  Model model = read_model(model_path(flags), flags.replace_scaling);
  if (!flags.train_ctx.empty()) model.geometry.train_length = parse_length(flags.train_ctx);
  validate(model.geometry);
  return model;
}

Geometry resolve(const SubjectFlags& flags) {
  if (!flags.model.empty()) return model_of(flags).geometry;
  refuse_if(!flags.rotary_dim || !flags.base || flags.train_ctx.empty(), "no model given",
            "give a GGUF file or a Hugging Face folder; plan and theory also take "
            "--rotary-dim 128 --rope-freq-base 10000 --train-ctx 4096");
  Geometry geometry{*flags.rotary_dim, *flags.base, parse_length(flags.train_ctx)};
  validate(geometry);
  return geometry;
}

std::vector<std::string> method_names() {
  return mapped(methods(), [](const MethodInfo& m) { return std::string(m.name); });
}

void add_extension(CLI::App& verb, ExtensionFlags& flags, const std::string& without_method,
                   const std::string& without_ctx) {
  verb.add_option("--method", flags.methods,
                  cat("Methods: ", joined(method_names(), ", "),
                      "; elastic:NAME and far:NAME grow with the sequence; parameters as in "
                      "'pro(low=5,headroom=1.25)'; without it ",
                      without_method))
      ->type_name("NAME,...");  // their notation has commas of its own
  add(verb, "--scale", flags.scale);
  CLI::Option* ctx = add(verb, "-c,--ctx", flags.ctx);
  ctx->description(ctx->get_description() + without_ctx);
  for (std::size_t i = 0; i < flags.parameters.size(); ++i) {
    const ParameterInfo& p = parameters()[i];
    verb.add_option(flag_name(p), flags.parameters[i])
        ->group("")
        ->each([&p](const std::string& text) {
          note(cat(flag_name(p), " ", text, " is now part of the method: --method 'NAME(", p.name,
                   "=", text, ")'"));
        });
  }
  add(verb, "--plan", flags.plan_files);
}

void take_profile(ExtensionFlags& flags, const Model& model, std::int64_t tokens, bool grows) {
  std::vector<MethodSpec> methods;
  if (!flags.methods.empty()) methods = method_specs(flags);
  const bool wanted = std::any_of(methods.begin(), methods.end(), is_unnamed);
  const bool ignored = is_no_profile(flags.profile);
  refuse_if(!wanted && !flags.profile.empty() && !ignored,
            cat("--profile ", flags.profile, " does nothing: no method is auto"),
            "leave out --profile, or --method and --plan");
  if (!wanted || ignored || tokens <= model.geometry.train_length) return;
  std::optional<tune::Profile> profile;
  if (flags.profile.empty()) {
    std::vector<std::string> damaged;
    profile = tune::kept_profile(model, tokens, grows, damaged);
    for (const std::string& why : damaged) note(cat("a profile is not used: ", why));
  } else {
    profile = tune::read_profile(flags.profile);
    check_profile(*profile, model, tokens, grows);
  }
  if (!profile) return;
  flags.tuned = profile->method;
  note(cat("auto is ", to_string(profile->method), ", by the profile ", profile->file.string(),
           flags.profile.empty() ? "; --profile none ignores it" : ""));
}

void add_format(CLI::App& verb, std::string& format) {
  CLI::Option* json = verb.add_flag_callback(
      "--json", [&format] { format = "json"; }, "Print JSON: --format json");
  add(verb, "--format", format)->excludes(json);
}

std::vector<MethodSpec> method_specs(const ExtensionFlags& flags) {
  std::vector<MethodSpec> out;
  for (const std::string& text : flags.methods) {
    for (MethodSpec& spec : parse_methods(text)) out.push_back(std::move(spec));
  }
  for (std::size_t i = 0; i < flags.parameters.size(); ++i) {
    const ParameterInfo& p = parameters()[i];
    const std::string& text = flags.parameters[i];
    if (text.empty()) continue;
    bool used = false;
    for (MethodSpec& spec : out) {
      if (out.size() > 1 && !uses(spec, p)) continue;
      set_parameter(spec.parameters, p, p.list ? list_text(text) : text);
      used = true;
    }
    refuse_if(!used, cat("none of these methods uses ", flag_name(p)),
              cat("leave out ", flag_name(p)));
  }
  return out;
}

void check_reach(const ExtensionFlags& flags) {
  if (flags.ctx.empty()) return;
  for (const MethodSpec& method : method_specs(flags)) {
    check_reach(method, parse_length(flags.ctx), flags.scale);
  }
}

std::string Candidate::meaning() const {
  if (!is_auto(method.name)) return {};
  return to_string(resolve_auto(ladder.rungs().front().plan.geometry(), meant, ladder.longest()));
}

std::vector<Candidate> resolve(const ExtensionFlags& flags,
                               const std::optional<Geometry>& geometry) {
  std::vector<Candidate> out;
  if (!flags.methods.empty()) {
    refuse_if(!geometry, cat("method ", flags.methods.front(), " needs a model"),
              "give a file or folder, or --rotary-dim --rope-freq-base --train-ctx");
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
      const MethodSpec& meant = flags.tuned && is_unnamed(method) ? *flags.tuned : method;
      Ladder ladder = make_ladder(*geometry, meant, ctx, flags.scale);
      out.push_back({to_string(method), std::move(ladder), method, meant});
      if (out.back().ladder.growth() != Growth::none && ctx > 0 && flags.scale.value_or(1) != 1 &&
          method_row(out.back().ladder.extension().method).reach != Reach::length) {
        note(cat(out.back().name, " grows with the sequence: --scale ", *flags.scale,
                 " does not apply to it"));
      }
    }
  } else if (!flags.plan_files.empty()) {
    refuse_without_method(flags);
  }
  for (const std::string& file : flags.plan_files) {
    out.push_back(is_model(file) ? declared_plan(file) : Candidate{file, read_plan_file(file)});
  }
  return out;
}

Ladder up_to(const Ladder& ladder, std::int64_t length) {
  return ladder.growth() == Growth::none ? make_ladder(ladder.rungs().front().plan, length)
                                         : ladder;
}

std::string geometry_words(const SubjectFlags& flags) {
  return cat(flags.replace_scaling ? " --replace-scaling" : "",
             flags.train_ctx.empty() ? "" : " --train-ctx " + flags.train_ctx);
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
  const Geometry& g = model.geometry;
  if (g.long_length > g.train_length) {
    e.method = "vendor";  // the long list at every length
    e.scale = double(g.long_length) / double(g.train_length);
  } else if (s.type == "dynamic") {
    e.method = "dynamic-ntk";
    e.scale = std::max(1.0, s.factor);
    e.length = ctx;
  } else {
    return std::nullopt;
  }
  return Candidate{"vendor", make_ladder(make_plan(g, e))};
}

void add_engine(CLI::App& verb, engine::LocalOptions& flags) {
  add(verb, "--gpu-layers", flags.gpu_layers);
  add(verb, "--rpc", flags.rpc);
  add(verb, "--device", flags.device)->check([](const std::string& name) {
    if (name == "list") throw CLI::CallForVersion(trimmed(engine::device_list()), 0);
    return std::string();
  });
  add(verb, "-t,--threads", flags.threads);
  add(verb, "--ubatch-size", flags.ubatch);
  add(verb, "--cache-type-k", flags.type_k);
  add(verb, "--cache-type-v", flags.type_v);
  add(verb, "--flash-attn", flags.flash_attention);
}

LadderChoice choose_ladder(ExtensionFlags flags, const Model& model, const char* verb) {
  if (flags.methods.empty() && flags.plan_files.empty()) flags.methods = {std::string(kAuto)};
  if (flags.ctx.empty() && !flags.scale && flags.plan_files.empty()) flags.scale = 1;
  const Geometry& geometry = model.geometry;
  take_profile(flags, model,
               flags.ctx.empty()
                   ? std::llround(flags.scale.value_or(1) * double(geometry.train_length))
                   : parse_length(flags.ctx),
               true);
  const std::vector<Candidate> candidates = resolve(flags, geometry);
  refuse_if(candidates.size() != 1, cat(verb, " runs one method, not ", candidates.size()),
            "give one --method or one --plan");
  const Candidate& c = candidates.front();
  const bool ours = is_auto(c.method.name);
  const std::int64_t ctx = flags.ctx.empty() ? c.ladder.longest() : parse_length(flags.ctx);
  return {ours ? c.meaning() : c.name, up_to(c.ladder, ctx), ours, ctx, c.method};
}

std::shared_ptr<void> say_meanwhile(const std::string& text) {
  if (!eval::stderr_is_terminal()) return nullptr;
  std::cerr << text << std::flush;
  return {nullptr, [](void*) { std::cerr << "\r\x1b[K" << std::flush; }};
}

engine::ReadingSpeed measure_speed(TimelineModel& model) {
  const auto shown = say_meanwhile("timing how fast this machine reads");
  return engine::measure_speed(model);
}

std::unique_ptr<TimelineModel> load(const Model& model, const engine::LocalOptions& options,
                                    const std::vector<const Ladder*>& ladders,
                                    const engine::Places& places) {
  for (const std::string& line : engine::device_notes(options)) note(line);
  const auto shown = say_meanwhile(cat("loading ", printable(model.path.filename().string()), ", ",
                                       bytes_text(double(model.weight_bytes))));
  return engine::open_checked(model, options, ladders, places);
}

void use(TimelineModel& model, LadderChoice& choice, bool tell) {
  // Copies: the choice may change below.
  const Geometry geometry = choice.ladder.rungs().front().plan.geometry();
  const std::int64_t longest = choice.ladder.longest();
  const double scale = double(longest) / double(geometry.train_length);
  if (!choice.ours || scale <= 1) return model.use(choice.ladder);
  std::string why;
  const auto try_it = [&] {
    try {
      model.use(choice.ladder);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      why = cat(error.what(), "; ");
      return false;
    }
    if (tell || !why.empty()) {
      note(cat(why, "auto: ", choice.name, ", unchanged up to ", geometry.train_length,
               " tokens, then growing to ", significant(scale, 4), " windows"));
    }
    return true;
  };
  if (try_it()) return;
  if (choice.ladder.near()) {
    // Keys that must not be turned often, or layers that need a larger near part.
    const MethodSpec instead = in_one_rung(geometry, choice.method, longest);
    choice.name = to_string(instead);
    choice.ladder = make_ladder(geometry, instead, longest);
    if (try_it()) return;
  }
  Extension fixed;
  fixed.method = static_method(geometry, scale);
  fixed.scale = scale * choice.method.parameters.headroom.value_or(1);
  choice.name = fixed.method;
  choice.ladder = make_ladder(make_plan(geometry, fixed), longest);
  model.use(choice.ladder);
  note(cat(why, "auto: static ", fixed.method, " with scale ", significant(fixed.scale, 4)));
}

void print_memory(const Model& model, const engine::LocalOptions& options) {
  std::cout << engine::memory_text(model, options) << std::flush;
  engine::check_fits_memory(model, options);
}

}  // namespace mrrope::cli
