// SPDX-License-Identifier: Apache-2.0
#include "export/hf_export.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/output_file.h"
#include "base/text.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

// Keys of a rope dictionary that describe the model and not its scaling.
constexpr const char* kKept[] = {"partial_rotary_factor", "mrope_section", "mrope_interleaved"};

// The object that holds the language model: the file itself or a part of it.
ordered_json& text_part(ordered_json& config) {
  for (const char* name : {"text_config", "language_config", "llm_config"}) {
    const auto at = config.find(name);
    if (at != config.end() && at->is_object()) return *at;
  }
  return config;
}

bool is_per_layer(const ordered_json& rope) {
  return rope.is_object() &&
         (rope.contains("full_attention") || rope.contains("sliding_attention"));
}

// The rope dictionary as transformers finds it; null where there is none.
ordered_json rope_of(const ordered_json& text) {
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto at = text.find(name);
    if (at != text.end() && at->is_object() && !at->empty()) return *at;
  }
  return nullptr;
}

const char* length_key(const ordered_json& text) {
  for (const char* name :
       {"max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "n_ctx"}) {
    if (text.contains(name)) return name;
  }
  return "max_position_embeddings";
}

void keep_model_keys(const ordered_json& before, ordered_json& after) {
  if (!before.is_object()) return;
  for (const char* name : kKept) {
    const auto at = before.find(name);
    if (at != before.end()) after[name] = *at;
  }
}

// "rope_theta" moves out of the dictionary, as transformers 4 wants it.
double take_theta(ordered_json& rope) {
  const double theta = rope.at("rope_theta").get<double>();
  rope.erase("rope_theta");
  return theta;
}

void erase_all(ordered_json& object, std::initializer_list<const char*> names) {
  for (const char* name : names) object.erase(name);
}

void write_v5(ordered_json& text, const ordered_json& before, const ordered_json& rope) {
  if (is_per_layer(before)) {
    ordered_json all = before;
    all["full_attention"] = rope;
    text["rope_parameters"] = all;
  } else if (text.contains("rope_local_base_freq")) {
    // The older form of a model with two kinds of layers.
    text["rope_parameters"] = {
        {"full_attention", rope},
        {"sliding_attention",
         {{"rope_type", "default"}, {"rope_theta", text["rope_local_base_freq"]}}}};
  } else {
    text["rope_parameters"] = rope;
  }
  text.erase("rope_scaling");
}

void write_v4(ordered_json& text, const ordered_json& before, ordered_json rope) {
  if (is_per_layer(before) && before.contains("sliding_attention") &&
      before["sliding_attention"].contains("rope_theta")) {
    text["rope_local_base_freq"] = before["sliding_attention"]["rope_theta"];
  }
  text["rope_theta"] = take_theta(rope);
  const auto partial = rope.find("partial_rotary_factor");
  if (partial != rope.end()) {
    text["partial_rotary_factor"] = *partial;
    rope.erase(partial);
  }
  text["rope_scaling"] = rope;
  text.erase("rope_parameters");
}

ordered_json read_ordered(const fs::path& path) {
  const Source source = Source::open(path);
  const std::string text = read_text(source, {});
  parse_json(text, path.string());  // the strict reader's refusals
  return ordered_json::parse(text);
}

void write_text(const fs::path& path, const std::string& text) {
  OutputFile file(path, text.size(), true);
  file.write(text);
  file.publish();
}

void copy_whole(const fs::path& from, const fs::path& to) {
  const Source source = Source::open(from);
  OutputFile file(to, source.size(), true);
  file.copy(source, 0, source.size());
  file.publish();
}

[[noreturn]] void cannot(const char* what, const fs::path& path, const std::error_code& error) {
  throw Error(ErrorKind::failed,
              cat("cannot ", what, " ", shown(path.string()), ": ", error.message()),
              "give -o a place that can be written to");
}

// Everything in the folder but what is written anew. Folders inside are left out: none of the
// readers looks there.
void bring_files(const fs::path& from, const fs::path& to, bool copy) {
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    std::error_code error;
    if (!entry.is_regular_file(error) || name == "config.json" || name == "tokenizer_config.json" ||
        name.front() == '.') {
      continue;
    }
    if (copy) {
      copy_whole(entry.path(), to / name);
      continue;
    }
    // A cache of the hub holds links of its own: the file they lead to is what counts.
    const fs::path target = fs::canonical(entry.path(), error);
    if (error) cannot("follow", entry.path(), error);
    fs::create_symlink(target, to / name, error);
    if (error) cannot("link", to / name, error);
  }
}

// A folder that goes unless it is kept.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    fs::remove_all(path_, error);  // of a process that was killed
    if (!fs::create_directories(path_, error) || error) cannot("create", path_, error);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  bool kept_ = false;
};

void check_output(const fs::path& from, const HfOptions& options) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(options.out, error))) return;
  if (fs::equivalent(from, options.out, error)) {
    throw Error(ErrorKind::usage, cat(shown(options.out.string()), " is the input itself"),
                "give another folder with -o: the input is never changed");
  }
  if (!options.replace) {
    throw Error(ErrorKind::usage, cat(shown(options.out.string()), " exists already"),
                "give another folder with -o, or --force to replace it");
  }
  if (!fs::is_directory(options.out, error) || !fs::exists(options.out / "config.json", error)) {
    throw Error(ErrorKind::usage,
                cat(shown(options.out.string()), " is no model's folder, so it is not replaced"),
                "give another folder with -o");
  }
}

fs::path without_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

std::vector<double> total_factors(const Plan& plan) {
  std::vector<double> out = plan.factor();
  const std::vector<double>& trained = plan.geometry().trained_factor;
  for (std::size_t i = 0; i < out.size() && !trained.empty(); ++i) out[i] *= trained[i];
  return out;
}

double total_attention_scale(const Plan& plan) {
  return plan.attention_scale() * plan.geometry().trained_attention_scale;
}

ordered_json longrope_parameters(const Plan& plan, std::int64_t length, std::int64_t original) {
  const std::vector<double> factors = total_factors(plan);
  const double temperature = total_attention_scale(plan);
  return {{"rope_type", "longrope"},
          {"rope_theta", plan.geometry().base},
          {"factor", std::max(1.0, double(length) / double(original))},
          {"attention_factor", temperature},
          {"short_mscale", temperature},
          {"long_mscale", temperature},
          {"original_max_position_embeddings", original},
          {"short_factor", factors},
          {"long_factor", factors}};
}

ordered_json native_parameters(const Plan& plan) {
  const Geometry& g = plan.geometry();
  const Extension& e = plan.extension();
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::usage, cat("no reader knows ", e.method, " by name: ", why),
                "leave --native away: the lists say it exactly");
  };
  if (!g.trained_factor.empty() || g.trained_attention_scale != 1) {
    refuse("the model has scaling of its own, and only one can be named");
  }
  const double temperature = plan.attention_scale();
  ordered_json out;
  const std::string_view rule = method_row(e.method).native;
  if (rule == "linear" || rule == "llama3") {
    if (temperature != 1) refuse(cat("it has no temperature, and the plan's is ", temperature));
    out = {{"rope_type", rule}, {"rope_theta", g.base}, {"factor", e.scale}};
    if (rule == "llama3") {
      out["low_freq_factor"] = e.parameters.beta_slow.value_or(1);
      out["high_freq_factor"] = e.parameters.beta_fast.value_or(4);
      out["original_max_position_embeddings"] = g.train_length;
    }
    return out;
  }
  if (rule != "yarn" || e.parameters.low || e.parameters.high) {
    refuse("linear, yarn (without --low and --high) and llama3 have names");
  }
  out = {{"rope_type", "yarn"},
         {"rope_theta", g.base},
         {"factor", e.scale},
         {"beta_fast", e.parameters.beta_fast.value_or(32)},
         {"beta_slow", e.parameters.beta_slow.value_or(1)},
         {"attention_factor", temperature},
         {"original_max_position_embeddings", g.train_length}};
  // vLLM and SGLang multiply their own 1 + 0.1 ln S by this key, and read no attention_factor.
  const double rest = temperature / yarn_temperature(e.scale);
  if (std::abs(rest - 1) > 1e-12) out["attn_factor"] = rest;
  return out;
}

ordered_json extended_config(const ordered_json& config, const Model& model, const Plan& plan,
                             const HfOptions& options) {
  ordered_json out = config;
  ordered_json& text = text_part(out);
  if (text.contains("rope_ratio") || text.contains("attn_config")) {
    throw Error(ErrorKind::unsupported,
                cat(shown(model.path.string()), ": keeps its rotation in ",
                    text.contains("rope_ratio") ? "rope_ratio" : "attn_config",
                    ", which code of its own reads: no key of ours would be looked at"),
                "convert the model to GGUF and export that");
  }
  const ordered_json before = rope_of(text);
  const bool per_layer = is_per_layer(before);
  ordered_json rope = options.native
                          ? native_parameters(plan)
                          : longrope_parameters(plan, options.length, plan.geometry().train_length);
  keep_model_keys(per_layer ? before.value("full_attention", ordered_json()) : before, rope);
  if (text.contains("partial_rotary_factor") && !rope.contains("partial_rotary_factor")) {
    rope["partial_rotary_factor"] = text["partial_rotary_factor"];
  }
  if (options.dialect == Dialect::v5) {
    write_v5(text, before, rope);
    // Where readers of either dialect look; they must not disagree.
    if (text.contains("rope_theta")) text["rope_theta"] = plan.geometry().base;
  } else {
    write_v4(text, before, rope);
  }
  erase_all(text, {"original_max_position_embeddings"});
  text[length_key(text)] = options.length;
  return out;
}

std::string hf_caveat(const ordered_json& config, const Model& model) {
  ordered_json copy = config;
  const ordered_json& text = text_part(copy);
  const bool windows = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const Layer& l) { return l.kind == LayerKind::windowed; });
  if (windows && !is_per_layer(rope_of(text)) && !text.contains("rope_local_base_freq")) {
    return "its config holds one rotation for all layers, so readers of this folder also change "
           "the "
           "sliding-window layers, which the plan leaves alone";
  }
  return {};
}

fs::path hf_folder(const Model& model) {
  std::error_code error;
  if (fs::is_directory(model.path, error)) return model.path;
  return model.path.has_parent_path() ? model.path.parent_path() : fs::path(".");
}

void export_huggingface(const Model& model, const Plan& plan, const HfOptions& options) {
  if (model.format != "huggingface") {
    throw Error(ErrorKind::usage, cat(shown(model.path.string()), " is not a Hugging Face folder"),
                "export it with --to gguf, or give the folder that it was converted from");
  }
  if (plan.geometry() != model.geometry) {
    throw Error(ErrorKind::usage, "the plan was made for another geometry than this model's",
                "make the plan from this folder: mrrope plan FOLDER ...");
  }
  const fs::path from = hf_folder(model);
  check_output(from, options);
  const ordered_json config =
      extended_config(read_ordered(from / "config.json"), model, plan, options);

  const fs::path out = without_slash(options.out);
  fs::path work = out;
  work += ".part";
  TemporaryFolder folder(work);
  write_text(folder.path() / "config.json", config.dump(2) + "\n");
  std::error_code error;
  if (fs::exists(from / "tokenizer_config.json", error)) {
    ordered_json tokenizer = read_ordered(from / "tokenizer_config.json");
    if (tokenizer.is_object()) tokenizer["model_max_length"] = options.length;
    write_text(folder.path() / "tokenizer_config.json", tokenizer.dump(2) + "\n");
  }
  bring_files(from, folder.path(), options.copy);

  fs::path old = out;
  old += ".old";
  const bool had = fs::exists(out, error);
  if (had) {
    fs::remove_all(old, error);
    fs::rename(out, old, error);
    if (error) cannot("replace", out, error);
  }
  fs::rename(folder.path(), out, error);
  if (error) {
    const std::error_code why = error;
    if (had) fs::rename(old, out, error);
    cannot("rename to", out, why);
  }
  folder.keep();
  if (had) fs::remove_all(old, error);
}

}  // namespace mrrope
