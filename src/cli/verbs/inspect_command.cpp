// SPDX-License-Identifier: Apache-2.0
// mrrope inspect: what a model is, what a longer context would take, and what to type next.
#include <iostream>

#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "export/export.h"
#include "formats/plan_file.h"

namespace mrrope::cli {

namespace {

struct InspectFlags {
  SubjectFlags subject;
  std::string ctx;
  engine::LocalOptions engine;
  bool time = false;
  bool json = false;
};

struct Advice {
  std::string meaning;  // what auto is for this model and length: "none", "far:pi"
  std::string why;
  std::string fixed;  // for engines whose context cannot grow
  std::string flags;  // that commands need besides: " --train-ctx 512"
};

const char* to_string(FactorSupport support) {
  constexpr const char* kTexts[] = {"reads per-pair factors from a GGUF",
                                    "reads per-pair factors from a GGUF as a long and a short list",
                                    "loads per-pair factors from a GGUF and ignores them",
                                    "refuses a GGUF with per-pair factors"};
  return kTexts[static_cast<std::size_t>(support)];
}

Advice advise(const Geometry& g, std::int64_t ctx, double scale) {
  Advice advice;
  advice.meaning = to_string(resolve_auto(g, {.name = std::string(kAuto)}, ctx));
  advice.why = "the wanted length is inside the trained window";
  advice.fixed = "none";
  if (scale <= 1) return advice;
  advice.why =
      "the unmodified model inside its window, and beyond it a context that grows; generate, serve "
      "and eval use it by default";
  if (long_list_reaches(g, scale)) {
    advice.why =
        "the file's short list of factors inside its window, its long one beyond it; generate, "
        "serve and eval use it by default";
  } else if (g.long_length > g.train_length) {
    advice.why += cat("; up to ", g.long_length, " tokens the file has a list of its own");
  }
  advice.fixed = static_method(g, scale);
  return advice;
}

// What each engine can do with the static plan: auto is for mrrope itself.
std::vector<exporting::EngineAdvice> engines_of(const Model& model, std::int64_t ctx, double scale,
                                                const Advice& advice) {
  std::optional<Gguf> gguf;
  if (model.format == "gguf") gguf = read_gguf(model.path);
  const Plan plan = make_plan(model.geometry, {.method = advice.fixed, .scale = scale});
  return exporting::engine_advice(
      {model, gguf ? &*gguf : nullptr, plan, ctx,
       cat("--method ", advice.fixed, " --ctx ", length_text(ctx), advice.flags)});
}

void print_engines(const Model& model, std::int64_t ctx, double scale, const Advice& advice) {
  constexpr std::size_t kWidest = 160;
  std::cout << "\nOther engines, with " << advice.fixed << " at " << ctx << " tokens"
            << (scale > 1 ? " (auto is a growing context, which of these only vLLM can hold)" : "")
            << ":\n";
  for (const exporting::EngineAdvice& a : engines_of(model, ctx, scale, advice)) {
    std::cout << "  " << a.engine << ": " << to_string(a.verdict)
              << (a.why.empty() ? "" : cat(" (", a.why, ")")) << "\n";
    for (const std::string& command : a.commands) {
      if (command.size() > kWidest) {  // with all the numbers in it
        std::cout << "    mrrope export " << shell_word(model.path.string()) << " --method "
                  << advice.fixed << " --ctx " << length_text(ctx) << advice.flags
                  << " --to commands   (prints its command)\n";
        break;
      }
      std::cout << "    " << command << "\n";
    }
  }
}

std::string scaling_text(const Model& model) {
  const DeclaredScaling& s = model.scaling;
  if (s.type.empty() || s.type == "none") return "none";
  std::string text = s.type;
  if (s.factor != 1) text += cat(", factor ", significant(s.factor, 6));
  if (s.original_length > 0) text += cat(", original window ", s.original_length);
  if (model.geometry.long_length > 0) text += cat(", long list to ", model.geometry.long_length);
  if (s.trained) text += "; part of the model, kept by every plan";
  return text;
}

ordered_json to_json(const Model& model, std::int64_t ctx, double scale, const Advice& advice) {
  ordered_json out = model_json(model, ctx);
  out["recommended"] = {{"method", kAuto}, {"meaning", advice.meaning}, {"why", advice.why}};
  out["engines"] = to_json(engines_of(model, ctx, scale, advice));
  return out;
}

void row(const char* name, const std::string& value) {
  std::cout << "  " << name << std::string(16 - std::string_view(name).size(), ' ') << value
            << "\n";
}

void print(const Model& model, std::int64_t ctx, double scale, const Advice& advice,
           const std::optional<engine::ReadingSpeed>& speed) {
  const Geometry& g = model.geometry;
  std::cout << model.path.string() << "\n";
  row("model", cat(model.name.empty() ? "(unnamed)" : model.name, ", architecture ",
                   model.architecture, ", ", model.format));
  const auto counted = [](const auto& layers) { return cat(layers.second, " ", layers.first); };
  row("layers", joined(mapped(layer_counts(model), counted), ", "));
  row("heads", cat(model.heads, " query, ", model.kv_heads, " key-value, key size ",
                   model.key_length, model.latent_attention ? " (latent attention)" : ""));
  row("rope",
      cat(g.rotary_dim, " elements of a head rotate, base ", g.base, ", ", to_string(g.pairing),
          model.mrope_sections.empty() ? "" : ", multi-dimensional positions (M-RoPE)"));
  if (model.sliding_window > 0) row("sliding window", cat(model.sliding_window, " tokens"));
  row("window", cat(g.train_length, " tokens"));
  row("scaling", scaling_text(model));
  row("weights", model.weight_bytes > 0
                     ? cat(bytes_text(double(model.weight_bytes)), " in ", model.files.size(),
                           model.files.size() == 1 ? " file" : " files")
                     : "not found next to config.json");
  if (const Architecture* a = find_architecture(model.architecture)) {
    row("stock llama.cpp",
        cat(to_string(a->factors), a->unsupported.empty() ? " (tested)" : " (read in its source)"));
  }

  std::cout << "\nAt " << ctx << " tokens:\n";
  row("scale", significant(scale, 6));
  row("KV cache", cat(bytes_text(double(kv_bytes(model, ctx, kBitsF16))), " in f16, ",
                      bytes_text(double(kv_bytes(model, ctx, kBitsQ8))), " in q8_0"));
  row("reading", cat(speed ? cat(ctx, " tokens takes ") : "", engine::time_text(speed, {ctx})));
  row("recommended", cat(kAuto, " (", advice.meaning, "): ", advice.why));
  print_engines(model, ctx, scale, advice);

  const std::string path = shell_word(model.path.string()) + advice.flags;
  const std::string length = length_text(ctx);
  std::cout << "\nNext:\n";
  if (scale <= 1) {
    std::cout << "  mrrope inspect " << path << " --ctx " << length_text(g.train_length * 4)
              << "\n";
    return;
  }
  std::cout << "  mrrope plan " << path << " --method " << kAuto << " --ctx " << length << "\n";
  if (model.format == "gguf") {
    std::cout << "  mrrope eval ppl " << path << " --ctx " << length
              << " --text YOUR-TEXTS -o run1\n  mrrope chat " << path << " --ctx " << length
              << " -f YOUR-TEXT.txt\n";
  } else {
    std::cout << "  python convert_hf_to_gguf.py "
              << shell_word(exporting::hf_folder(model).string())
              << " --outfile model.gguf   (llama.cpp's script: makes a file that mrrope can run)\n";
  }
}

void run_inspect(const InspectFlags& flags) {
  Model model = model_of(flags.subject);
  const std::int64_t window = model.geometry.train_length;
  const std::int64_t ctx = flags.ctx.empty() ? window : parse_length(flags.ctx);
  const double scale = std::max(1.0, double(ctx) / double(window));
  Advice advice = advise(model.geometry, ctx, scale);
  advice.flags = geometry_words(flags.subject);
  std::optional<engine::ReadingSpeed> speed = kept_speed(model, flags.engine);
  if (flags.time) {
    engine::LocalOptions engine = flags.engine;
    engine.context = std::min<std::int64_t>(window, 2048);
    engine.timelines = 1;
    speed = measure_speed(*load(model, engine, {}, {}));
  }
  if (!flags.json) return print(model, ctx, scale, advice, speed);
  ordered_json out = to_json(model, ctx, scale, advice);
  if (speed) out["seconds_to_read"] = seconds_to_read(*speed, {ctx});
  std::cout << json_text(out, 2) << "\n";
}

}  // namespace

void add_inspect(CLI::App& app) {
  const auto [verb, flags] = add_verb<InspectFlags>(app, "inspect", run_inspect);
  add_subject(verb, flags.subject);
  add(verb, "-c,--ctx", flags.ctx);
  add(verb, "--time", flags.time);
  add_engine(verb, flags.engine);  // another number of threads is another speed
  add(verb, "--json", flags.json);
}

}  // namespace mrrope::cli
