// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "core/methods.h"
#include "export/export.h"
#include "formats/facts.h"

namespace mrrope::exporting {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

// Keys of a rope dictionary that describe the model and not its scaling.
constexpr const char* kKept[] = {"partial_rotary_factor", "mrope_section", "mrope_interleaved"};

// The object that holds the language model: the file itself or a part of it.
ordered_json& text_part(ordered_json& config) {
  for (const char* name : kTextParts) {
    const auto at = config.find(name);
    if (at != config.end() && at->is_object()) return *at;
  }
  return config;
}

bool is_per_layer(const ordered_json& rope) {
  return rope.is_object() &&
         (rope.contains("full_attention") || rope.contains("sliding_attention"));
}

// The rope dictionary as transformers finds it; null if there is none.
ordered_json rope_of(const ordered_json& text) {
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto at = text.find(name);
    if (at != text.end() && at->is_object() && !at->empty()) return *at;
  }
  return nullptr;
}

// The name under which it states its length.
const char* length_key(const ordered_json& text) {
  for (const char* name : {"n_positions", "seq_length", "max_seq_len", "n_ctx"}) {
    if (text.contains(name) && !text.contains("max_position_embeddings")) return name;
  }
  return "max_position_embeddings";
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
  for (const char* name : {"rope_theta", "partial_rotary_factor"}) {
    if (!rope.contains(name)) continue;
    text[name] = rope[name];
    rope.erase(name);
  }
  text["rope_scaling"] = rope;
  text.erase("rope_parameters");
}

ordered_json read_ordered(const fs::path& path) {
  return parse_ordered_json(read_text(Source::open(path), {}), path.string());
}

void write_text(const fs::path& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.finish();
}

// ---- the input --------------------------------------------------------------------------------

// The files that are linked or copied: everything in the folder except what is written from
// scratch. Subfolders are left out: none of the readers looks there.
std::vector<fs::path> files_to_bring(const fs::path& from) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (at->is_regular_file(ignored) && name != "config.json" && name != "tokenizer_config.json" &&
        name.front() != '.') {
      files.push_back(at->path());
    }
  }
  if (error) cannot("list", from, error.value());
  std::ranges::sort(files);
  return files;
}

void check_weights(const fs::path& from, const std::vector<fs::path>& files) {
  const bool any = std::ranges::any_of(files, [](const fs::path& file) {
    const std::string kind = file.extension().string();
    return kind == ".safetensors" || kind == ".bin" || kind == ".pt" || kind == ".pth";
  });
  if (any) return;
  std::string missing = "model.safetensors";
  if (const fs::path index = from / "model.safetensors.index.json"; path_exists(index)) {
    const std::vector<std::string> names = read_safetensors_index(Source::open(index));
    if (!names.empty()) missing = names.front();
    if (names.size() > 1) missing += cat(" and ", names.size() - 1, " more");
  }
  fail(cat(shown(from.string()), " has no weights (missing: ", shown(missing), ")"),
       "download the weight files into that folder, or use --to commands, which needs only "
       "config.json");
}

// ---- the output -------------------------------------------------------------------------------

// Lists what an exported folder was made of, so that --force replaces nothing else.
constexpr const char* kRecord = ".mrrope-export.json";
constexpr const char* kMadeBy = "mrrope export";

bool is_inside(fs::path inner, const fs::path& outer) {
  std::error_code error;
  inner = fs::weakly_canonical(inner, error);
  if (error) return false;
  for (;;) {
    if (same_file(inner, outer)) return true;
    if (!inner.has_relative_path()) return false;
    inner = inner.parent_path();
  }
}

void check_inputs_apart(const fs::path& from, const fs::path& out,
                        const std::vector<fs::path>& files) {
  const auto check = [&](bool wrong, const std::string& why) {
    refuse_if(wrong, cat(shown(out.string()), " ", why),
              "give another folder with -o: inputs are never changed");
  };
  check(same_file(from, out), "is the input itself");
  check(is_inside(from, out), "contains the input");
  check(is_inside(out, from), "is inside the input folder");
  for (const fs::path& file : files) {
    check(is_inside(file, out),
          cat("holds ", shown(file.filename().string()), ", which the input links to"));
  }
}

void check_replaceable(const fs::path& out) {
  const auto check = [&](bool wrong, const std::string& why) {
    refuse_if(wrong, cat(shown(out.string()), " ", why, ", so it is not replaced"),
              "give another folder with -o, or move this one away first");
  };
  std::error_code error;
  check(!fs::is_directory(fs::symlink_status(out, error)), "is not a folder");
  nlohmann::json files;
  if (fs::is_regular_file(fs::symlink_status(out / kRecord, error))) {
    const nlohmann::json record = read_json(out / kRecord);
    if (record.is_object() && record.value("made_by", nlohmann::json()) == kMadeBy &&
        record.contains("files")) {
      files = record["files"];
    }
  }
  check(!files.is_object(), "was not written by mrrope export");
  for (fs::directory_iterator at(out, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name == kRecord) continue;
    std::error_code ignored;
    const fs::file_status status = at->symlink_status(ignored);
    const bool linked = files.contains(name) && files[name] == "linked";
    check(!files.contains(name) || fs::is_directory(status) || linked != fs::is_symlink(status),
          cat("contains ", shown(name), ", which mrrope did not write"));
  }
  if (error) cannot("list", out, error.value());
}

void check_output(const fs::path& from, const fs::path& out, const std::vector<fs::path>& files,
                  bool replace) {
  check_inputs_apart(from, out, files);
  std::error_code error;
  if (!fs::exists(fs::symlink_status(out, error))) return;
  if (!replace) refuse_existing(out, "folder");
  check_replaceable(out);
}

// A path that ends in the folder's own name.
fs::path named(const fs::path& path) {
  const fs::path out = path.has_filename() ? path : path.parent_path();
  std::error_code error;
  return out.filename() == "." || out.filename() == ".." ? fs::weakly_canonical(out, error) : out;
}

void write_folder(const fs::path& from, const fs::path& to, const ordered_json& config,
                  const std::vector<fs::path>& files, const HfOptions& options,
                  const std::function<void(std::uint64_t)>& progress) {
  std::error_code error;
  if (!fs::create_directory(to, error)) cannot("create", to, error.value());
  ordered_json record = {{"made_by", kMadeBy}, {"files", ordered_json::object()}};
  const auto write = [&](const char* name, const ordered_json& content) {
    write_text(to / name, content.dump(2) + "\n");
    record["files"][name] = "written";
  };
  write("config.json", config);
  if (path_exists(from / "tokenizer_config.json")) {
    ordered_json tokenizer = read_ordered(from / "tokenizer_config.json");
    if (tokenizer.is_object()) tokenizer["model_max_length"] = options.length;
    write("tokenizer_config.json", tokenizer);
  }
  for (const fs::path& file : files) {
    const fs::path name = file.filename();
    record["files"][name.string()] = options.copy ? "copied" : "linked";
    if (options.copy) {
      const Source source = Source::open(file);
      OutputFile copy(to / name);
      copy.on_bytes = progress;
      copy.copy(source, 0, source.size());
      copy.finish();
      continue;
    }
    // A cache of the hub holds links of its own: link to the file at their end.
    const fs::path target = fs::canonical(file, error);
    if (error) cannot("follow", file, error.value());
    fs::create_symlink(target, to / name, error);
    if (error) cannot("link", to / name, error.value());
  }
  write_text(to / kRecord, record.dump(2) + "\n");
  flush_folder(to);
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

// By name. Throws Error (usage) if readers have no name for the plan.
static ordered_json native_parameters(const Plan& plan) {
  const Geometry& g = plan.geometry();
  const Extension& e = plan.extension();
  const auto check = [&](bool possible, const std::string& why) {
    refuse_if(!possible, cat("--native cannot express ", e.method, ": ", why),
              "remove --native: the lists express it exactly");
  };
  check(g.trained_factor.empty() && g.trained_attention_scale == 1,
        "the model has its own scaling, and only one can be named");
  const double temperature = plan.attention_scale();
  const std::string_view rule = method_row(e.method).native;
  const Parameters& p = e.parameters;
  ordered_json out = {{"rope_type", rule}, {"rope_theta", g.base}, {"factor", e.scale}};
  if (rule == "linear" || rule == "llama3") {
    check(temperature == 1, cat("this form has no temperature, and the plan's is ", temperature));
    if (rule == "linear") return out;
    out["low_freq_factor"] = p.beta_slow.value_or(1);
    out["high_freq_factor"] = p.beta_fast.value_or(4);
    out["original_max_position_embeddings"] = g.train_length;
    return out;
  }
  check(rule == "yarn" && !p.low && !p.high,
        "only linear, yarn (without --low and --high) and llama3 have names");
  out["beta_fast"] = p.beta_fast.value_or(32);
  out["beta_slow"] = p.beta_slow.value_or(1);
  out["attention_factor"] = temperature;
  out["original_max_position_embeddings"] = g.train_length;
  // vLLM and SGLang multiply their own 1 + 0.1 ln S by this key, and read no attention_factor.
  const double rest = temperature / yarn_temperature(e.scale);
  if (std::abs(rest - 1) > 1e-12) out["attn_factor"] = rest;
  return out;
}

// As python/mrrope/_vllm_rungs.py reads it. `before`: how the unmodified model rotates, if it says
// so.
static ordered_json ladder_parameters(const Plan& plan, const std::vector<Rung>& rungs,
                                      const std::optional<NearPart>& near,
                                      const ordered_json& before) {
  ordered_json out = {{"rope_type", "mrrope"},
                      {"rope_theta", plan.geometry().base},
                      {"original_max_position_embeddings", plan.geometry().train_length},
                      {"rungs", ordered_json::array()}};
  if (before.is_object() && !before.empty()) out["original"] = before;
  if (near) out["near_part"] = {{"length", near->length}, {"step", near->step}};
  for (const Rung& rung : rungs) {
    // The sharpness of queries is shared with keys where one table rotates both.
    const double temperature =
        total_attention_scale(rung.plan) * (near ? 1 : std::sqrt(rung.sharpness));
    out["rungs"].push_back({{"rung", out["rungs"].size()},
                            {"length", rung.length},
                            {"attention_factor", temperature},
                            {"factors", total_factors(rung.plan)}});
    if (!near) continue;
    out["rungs"].back()["scale"] = rung.plan.factor().front();
    out["rungs"].back()["sharpness"] = rung.sharpness;
  }
  return out;
}

ordered_json extended_config(const ordered_json& config, const Model& model, const Plan& plan,
                             const HfOptions& options) {
  ordered_json out = config;
  ordered_json& text = text_part(out);
  unsupported_if(text.contains("rope_ratio") || text.contains("attn_config"),
                 cat(shown(model.path.string()), ": declares its rotation in ",
                     text.contains("rope_ratio") ? "rope_ratio" : "attn_config",
                     ", which only the model's own code reads, so it would ignore the plan"),
                 "convert the model to GGUF and export that");
  const ordered_json before = rope_of(text);
  const bool per_layer = is_per_layer(before);
  const ordered_json model_keys =
      per_layer ? before.value("full_attention", ordered_json()) : before;
  ordered_json rope;
  if (options.native) {
    rope = native_parameters(plan);
  } else if (!options.rungs.empty()) {
    rope = ladder_parameters(plan, options.rungs, options.near, model_keys);
  } else if (options.dialect == Dialect::mrrope) {
    // As python/mrrope/_vllm.py reads it.
    rope = {{"rope_type", "mrrope"},
            {"rope_theta", plan.geometry().base},
            {"attention_factor", total_attention_scale(plan)},
            {"original_max_position_embeddings", plan.geometry().train_length},
            {"factors", total_factors(plan)}};
  } else {
    rope = longrope_parameters(plan, options.length, plan.geometry().train_length);
  }
  for (const char* name : kKept) {
    if (model_keys.is_object() && model_keys.contains(name)) rope[name] = model_keys[name];
  }
  if (text.contains("partial_rotary_factor") && !rope.contains("partial_rotary_factor")) {
    rope["partial_rotary_factor"] = text["partial_rotary_factor"];
  }
  if (options.dialect != Dialect::v4) {
    write_v5(text, before, rope);
    // Readers of both dialects look here; the values must agree.
    if (text.contains("rope_theta")) text["rope_theta"] = plan.geometry().base;
  } else {
    write_v4(text, before, rope);
  }
  text.erase("original_max_position_embeddings");
  text[length_key(text)] = options.length;
  return out;
}

bool interleaves(const Model& model) {
  const Architecture* row = find_architecture(model.architecture);
  return row && row->huggingface_pairing == Pairing::interleaved;
}

std::string hf_caveat(const Model& model, Dialect dialect) {
  ordered_json config = read_ordered(hf_folder(model) / "config.json");
  const ordered_json& text = text_part(config);
  if (has_windows_apart(model) && !is_per_layer(rope_of(text)) &&
      !text.contains("rope_local_base_freq")) {
    return "its config has one rotation for all layers, so readers of this folder also change the "
           "sliding-window layers, which the plan leaves unchanged";
  }
  if (dialect != Dialect::mrrope && interleaves(model)) {
    return "vLLM and SGLang cannot run this folder: their longrope pairs elements as halves only, "
           "and this model interleaves them (vLLM with mrrope's wheel runs --to hf-mrrope)";
  }
  return {};
}

fs::path hf_folder(const Model& model) {
  return folder_exists(model.path) ? model.path : folder_of(model.path);
}

std::uint64_t bytes_to_copy(const Model& model, const HfOptions& options) {
  std::uint64_t bytes = 0;
  if (!options.copy) return bytes;
  for (const fs::path& file : files_to_bring(hf_folder(model))) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

void export_huggingface(const Model& model, const Plan& plan, const HfOptions& options,
                        const std::function<void(std::uint64_t)>& progress,
                        const HfVerify& verify) {
  refuse_if(model.format != "huggingface",
            cat(shown(model.path.string()), " is not a Hugging Face folder"),
            "export it with --to gguf, or give the folder that it was converted from");
  check_made_for(plan.geometry(), model);
  const fs::path from = hf_folder(model);
  // read_model() found nothing but this file: not config.json, nor the weights of a folder.
  refuse_if(model.files == std::vector{model.path} && model.path.filename() != "config.json",
            cat(shown(model.path.string()),
                " is only a config; the weights beside it may belong to another model"),
            "give a folder whose config.json it is");
  const fs::path out = named(options.out);
  const std::vector<fs::path> files = files_to_bring(from);
  check_output(from, out, files, options.replace);
  check_weights(from, files);
  const ordered_json config =
      extended_config(read_ordered(from / "config.json"), model, plan, options);

  std::error_code error;
  fs::create_directories(folder_of(out), error);
  if (error) cannot("create", out, error.value());
  Staging staging(out, bytes_to_copy(model, options));
  const fs::path staged = staging.path(out.filename());
  write_folder(from, staged, config, files, options, progress);
  if (verify) verify(staging, staged);
  check_output(from, out, files, options.replace);  // the proof may have taken minutes
  staging.publish({out.filename()}, options.replace);
}

}  // namespace mrrope::exporting
