// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "base/files/split_name.h"
#include "base/json.h"
#include "base/text.h"
#include "core/methods.h"
#include "export/export.h"
#include "formats/facts.h"

namespace mrrope::exporting {
namespace {

using nlohmann::ordered_json;

// Nothing changes, and the model reaches that far.
bool is_plain(const EngineQuestion& q) {
  if (method_row(q.plan.extension().method).reach == Reach::file) return true;
  return is_identity(q.plan) && q.length <= q.model.geometry.train_length;
}

// model-128k.gguf, from /models/model.gguf or its first part.
std::string output_name(const EngineQuestion& q, const char* extension) {
  std::filesystem::path path = q.model.path.lexically_normal();
  std::string stem =
      path.has_filename() ? path.stem().string() : path.parent_path().filename().string();
  if (path.filename() == "config.json") stem = path.parent_path().filename().string();
  stem = split_name(stem).stem;
  if (stem.empty() || stem == ".") stem = "model";
  return cat(stem, "-", length_text(q.length), extension);
}

// ---- llama.cpp --------------------------------------------------------------------------------

// Flags for a plan that llama.cpp supports by name; none where it has no name for it. Unlike keys
// in a file they do not affect layers that plans leave unchanged, except through the temperature.
// No flag for the temperature or the length always works: --yarn-attn-factor is not read under
// YaRN, and servers cap at context_length (under YaRN at the original length times the scale).
std::optional<std::string> llama_flags(const EngineQuestion& q) {
  const Architecture* row = find_architecture(q.model.architecture);
  const Extension& e = q.plan.extension();
  const Parameters& p = e.parameters;
  const Geometry& g = q.plan.geometry();
  const bool plain = g.trained_factor.empty() && g.trained_attention_scale == 1 &&
                     q.model.scaling.type == "none" && !p.low && !p.high;
  if (!row || row->has(Trait::scale_in_scores) || !plain) return std::nullopt;
  std::string flags;
  double own = 1;
  const std::string_view rule = method_row(e.method).native;
  if (rule == "linear") {
    flags = cat(" --rope-scaling linear --rope-scale ", e.scale);
  } else if (rule == "base") {
    const double base = g.base * std::pow(q.plan.factor()[1], g.rotary_dim / 2.0);
    flags = cat(" --rope-freq-base ", significant(base, 9));
  } else if (rule == "yarn") {
    own = yarn_temperature(e.scale);
    flags = cat(" --rope-scaling yarn --rope-scale ", e.scale, " --yarn-orig-ctx ", g.train_length);
    if (p.beta_fast) flags += cat(" --yarn-beta-fast ", *p.beta_fast);
    if (p.beta_slow) flags += cat(" --yarn-beta-slow ", *p.beta_slow);
  } else {
    return std::nullopt;
  }
  const double temperature = q.plan.attention_scale() / own;
  const bool warmed = std::abs(temperature - 1) > 1e-9;
  if (has_windows_apart(q.model) && (rule == "base" || warmed)) return std::nullopt;
  flags += cat(" --override-kv ", q.model.architecture, ".context_length=int:", q.length);
  if (warmed) {
    flags += cat(",", q.model.architecture,
                 ".rope.scaling.attn_factor=float:", significant(temperature, 9));
  }
  return flags;
}

// Whether an exported GGUF can carry the plan.
EngineAdvice by_gguf(const EngineQuestion& q, const char* engine) {
  if (!q.gguf) {
    const Architecture* row = find_architecture(q.model.architecture);
    const bool reads =
        row && (row->factors == FactorSupport::used || row->factors == FactorSupport::long_short ||
                row->has(Trait::like_llama));
    const bool keys =
        llama_flags(q) && !(has_windows_apart(q.model) && row->has(Trait::keys_reach_windows));
    if (reads || keys || (row && is_plain(q))) {
      return {engine, Advice::needs_file, "convert the checkpoint to GGUF"};
    }
    return {engine, Advice::cannot,
            cat("llama.cpp does not read factors for ", q.model.architecture)};
  }
  try {
    GgufOptions options;
    options.length = q.length;
    const GgufEncoding encoding = gguf_encoding(*q.gguf, q.model, q.plan, options);
    return {engine, Advice::needs_file,
            encoding == GgufEncoding::relabelled ? "as a file of architecture llama"
            : encoding == GgufEncoding::keys     ? "with the keys it has for this method"
                                                 : "with a list of factors"};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return {engine, Advice::cannot, error.what()};
  }
}

// The commands that make `out`.
std::vector<std::string> file_commands(const EngineQuestion& q, const std::string& out) {
  if (q.gguf) {
    return {cat("mrrope export ", shell_word(q.model.path.string()), " ", q.how, " --to gguf -o ",
                shell_word(out))};
  }
  const auto convert = [&](const std::string& to) {
    return cat("python convert_hf_to_gguf.py ", shell_word(hf_folder(q.model).string()),
               " --outfile ", shell_word(to));
  };
  if (is_plain(q)) return {convert(out)};
  return {convert("model.gguf"),
          cat("mrrope export model.gguf ", q.how, " --to gguf -o ", shell_word(out))};
}

EngineAdvice llama_advice(const EngineQuestion& q) {
  const std::string model = shell_word(q.model.path.string());
  const std::string length = cat(" -c ", q.length);
  if (q.gguf && is_plain(q)) {
    return {"llama.cpp", Advice::as_is, "", {cat("llama-server -m ", model, length)}};
  }
  if (const std::optional<std::string> named = llama_flags(q); q.gguf && named) {
    const std::string flags = cat(model, length, *named);
    return {"llama.cpp",
            Advice::as_is,
            "",
            {cat("llama-server -m ", flags), cat("llama-cli -m ", flags)}};
  }
  EngineAdvice advice = by_gguf(q, "llama.cpp");
  if (advice.verdict == Advice::cannot) {
    if (q.gguf) advice.commands = {cat("mrrope generate ", model, " ", q.how, " --chat")};
    return advice;
  }
  const std::string out = output_name(q, ".gguf");
  advice.commands = file_commands(q, out);
  advice.commands.push_back(cat("llama-server -m ", shell_word(out), length));
  return advice;
}

// ollama has no rope flags and caps at context_length, so only a file works.
EngineAdvice ollama_advice(const EngineQuestion& q) {
  EngineAdvice advice{"ollama", Advice::as_is};
  std::string file = q.model.path.string();
  if (!q.gguf || !is_plain(q)) {
    advice = by_gguf(q, "ollama");
    if (advice.verdict == Advice::cannot) return advice;
    advice.commands = file_commands(q, output_name(q, ".gguf"));
    file = "./" + output_name(q, ".gguf");
  }
  advice.commands.push_back(cat("printf 'FROM %s\\nPARAMETER num_ctx ", q.length, "\\n' ",
                                shell_word(file), " > Modelfile"));
  advice.commands.push_back(cat("ollama create ", shell_word(output_name(q, "")), " -f Modelfile"));
  return advice;
}

// ---- Hugging Face ------------------------------------------------------------------------------

// The checkpoint that a GGUF was made from is not known.
std::string checkpoint(const EngineQuestion& q) {
  return q.gguf ? "CHECKPOINT" : hf_folder(q.model).string();
}

// rope_parameters with `original` as the declared window; empty if nothing changes.
ordered_json overrides(const EngineQuestion& q, std::int64_t original) {
  if (is_plain(q)) return ordered_json::object();
  ordered_json rope = longrope_parameters(q.plan, q.length, original);
  const int dim = q.plan.geometry().rotary_dim;
  if (dim < q.model.key_length && !q.model.latent_attention) {
    rope["partial_rotary_factor"] = double(dim) / q.model.key_length;
  }
  return {{"max_position_embeddings", q.length}, {"rope_parameters", std::move(rope)}};
}

// Overrides replace keys of the outermost level, and one rotation for all layers. A model that
// keeps its rotation elsewhere, or has two of them, needs its own folder.
std::string override_obstacle(const EngineQuestion& q) {
  if (has_windows_apart(q.model)) return "its sliding-window layers keep a rotation of their own";
  if (q.gguf) return {};
  const std::filesystem::path file = hf_folder(q.model) / "config.json";
  if (!path_exists(file)) return {};
  const nlohmann::json config = read_json(file);
  for (const char* name : kTextParts) {
    if (config.contains(name)) return cat("its rotation is declared in ", name);
  }
  return {};
}

// Advice to export a folder first, then to type `command`.
EngineAdvice by_folder(const EngineQuestion& q, const char* engine, const std::string& why,
                       const std::string& command, const char* to = "hf") {
  return {engine,
          Advice::needs_file,
          why,
          {cat("mrrope export ", shell_word(checkpoint(q)), " ", q.how, " --to ", to, " -o ",
               shell_word(output_name(q, ""))),
           command}};
}

EngineAdvice transformers_advice(const EngineQuestion& q) {
  const auto command = [](const std::string& folder, const ordered_json& options) {
    std::string arguments = ordered_json(folder).dump();
    // Numbers, words and lists: the same in JSON and in Python.
    for (const auto& [name, value] : options.items()) {
      arguments += cat(", ", name, "=", value.dump());
    }
    return cat("AutoModelForCausalLM.from_pretrained(", arguments, ")");
  };
  const std::string obstacle = is_plain(q) ? "" : override_obstacle(q);
  if (!obstacle.empty()) {
    return by_folder(q, "transformers", obstacle, command(output_name(q, ""), {}));
  }
  return {"transformers",
          Advice::as_is,
          "",
          {command(checkpoint(q), overrides(q, q.plan.geometry().train_length))}};
}

// Why the longrope class of vLLM and SGLang cannot run this model; empty if it can.
std::string longrope_obstacle(const EngineQuestion& q) {
  if (interleaves(q.model)) {
    return "its longrope pairs elements as halves only, and this model interleaves them";
  }
  if (!q.model.mrope_sections.empty()) {
    return "its longrope does not support multi-dimensional positions";
  }
  if (q.model.latent_attention) return "its latent attention has a rotation of its own";
  return {};
}

// `command` is the engine's, without the checkpoint, which stands for the @ in it.
EngineAdvice server_advice(const EngineQuestion& q, const char* engine, const std::string& command,
                           const char* flag, std::int64_t original) {
  const auto command_for = [&](const std::string& checkpoint) {
    std::string out = command;
    return out.replace(out.find('@'), 1, shell_word(checkpoint));
  };
  const ordered_json o = overrides(q, original);
  if (o.empty()) return {engine, Advice::as_is, "", {command_for(checkpoint(q))}};
  if (std::string why = longrope_obstacle(q); !why.empty()) return {engine, Advice::cannot, why};
  const std::string obstacle = override_obstacle(q);
  if (!obstacle.empty()) return by_folder(q, engine, obstacle, command_for(output_name(q, "")));
  return {engine,
          Advice::as_is,
          "",
          {cat(command_for(checkpoint(q)), " ", flag, " ", shell_word(o.dump()))}};
}

EngineAdvice vllm_advice(const EngineQuestion& q) {
  if (!is_plain(q) && interleaves(q.model) && q.model.mrope_sections.empty() &&
      !q.model.latent_attention) {
    EngineAdvice advice =
        by_folder(q, "vLLM", "longrope pairs elements as halves only; the wheel has a plugin",
                  cat("vllm serve ", shell_word(output_name(q, "")), " --max-model-len ", q.length),
                  "hf-mrrope");
    advice.commands.insert(advice.commands.begin() + 1,
                           "pip install mrrope  # where vLLM is installed");
    return advice;
  }
  return server_advice(q, "vLLM", cat("vllm serve @ --max-model-len ", q.length), "--hf-overrides",
                       q.plan.geometry().train_length);
}

// SGLang uses the list for long texts once a position is past the original window, and reads the
// wrong row for the position exactly at the window. With the new length as the original one this
// never happens, and the lists are equal anyway.
EngineAdvice sglang_advice(const EngineQuestion& q) {
  return server_advice(
      q, "SGLang", cat("python -m sglang.launch_server --model-path @ --context-length ", q.length),
      "--json-model-override-args", q.length);
}

}  // namespace

const char* to_string(Advice verdict) noexcept {
  constexpr const char* kNames[] = {"runs as is", "needs the exported file", "cannot"};
  return kNames[std::size_t(verdict)];
}

std::vector<EngineAdvice> engine_advice(const EngineQuestion& q) {
  check_made_for(q.plan.geometry(), q.model);
  return {llama_advice(q), ollama_advice(q), transformers_advice(q), vllm_advice(q),
          sglang_advice(q)};
}

ordered_json to_json(const std::vector<EngineAdvice>& advice) {
  ordered_json out = ordered_json::array();
  for (const EngineAdvice& a : advice) {
    out.push_back({{"engine", a.engine},
                   {"verdict", to_string(a.verdict)},
                   {"why", a.why},
                   {"commands", a.commands}});
  }
  return out;
}

}  // namespace mrrope::exporting
