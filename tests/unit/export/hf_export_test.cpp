// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "base/text.h"
#include "core/methods.h"
#include "export/export.h"
#include "support/test.h"

namespace mrrope::exporting {
namespace {

namespace fs = std::filesystem;

ordered_json llama_config() {
  return {{"model_type", "llama"},           {"hidden_size", 512},
          {"num_attention_heads", 4},        {"num_key_value_heads", 2},
          {"num_hidden_layers", 2},          {"head_dim", 128},
          {"max_position_embeddings", 1024}, {"rope_theta", 10000.0},
          {"rope_scaling", nullptr},         {"vocab_size", 64},
          {"torch_dtype", "float16"}};
}

struct Folder {
  explicit Folder(const ordered_json& config) {
    folder.write("in/config.json", config.dump());
    folder.write("in/tokenizer_config.json", R"({"model_max_length": 1024, "bos_token": "<s>"})");
    folder.write("in/tokenizer.json", "{}");
    folder.write("in/pytorch_model.bin", "weights");
    folder.write("in/.hidden", "x");
    folder.write("in/sub/file", "x");
    model = read_model(folder / "in");
  }
  Plan plan(const std::string& method, double scale = 4, const Parameters& parameters = {}) const {
    return make_plan(model.geometry, {.method = method, .scale = scale, .parameters = parameters});
  }
  HfOptions options(std::int64_t length = 4096) const {
    return {.out = folder / "out", .length = length};
  }
  ordered_json exported(const Plan& p, const HfOptions& o) const {
    export_huggingface(model, p, o);
    return ordered_json::parse(read_file(o.out / "config.json"));
  }
  TempFolder folder;
  Model model;
};

// A number or a list of them, shortly.
ordered_json shortly(const ordered_json& value) {
  if (value.is_number_float()) return std::stod(significant(value.get<double>(), 9));
  if (!value.is_structured()) return value;
  if (value.is_array() && value.size() > 4 && value[0].is_number()) {
    std::string text = cat(value.size(), " numbers:");
    for (const std::size_t i : {std::size_t(0), value.size() / 2, value.size() - 1}) {
      text += " " + significant(value[i].get<double>(), 9);
    }
    return text;
  }
  ordered_json out = value;
  for (auto& element : out) element = shortly(element);
  return out;
}

// What an export changes: "METHOD DIALECT {changes of the config}", with "native" and "copy" as
// dialects too. Lists are those of the plan, and our own reader finds the plan in the folder.
std::string answer(const std::string& input) {
  std::istringstream words(input);
  std::string method, dialect, changes;
  std::getline(words >> method >> dialect >> std::ws, changes);
  ordered_json given = llama_config();
  const ordered_json changed = ordered_json::parse(changes);
  for (const auto& [key, value] : changed.items()) {
    if (key == "only") given = value;
    if (value == "none") given.erase(key);
    if (value != "none" && key != "only") given[key] = value;
  }
  const Folder f(given);
  HfOptions options = f.options();
  options.native = dialect == "native";
  options.copy = dialect == "copy";
  options.dialect = dialect == "v4"       ? Dialect::v4
                    : dialect == "plugin" ? Dialect::mrrope
                                          : Dialect::v5;
  const MethodSpec spec = parse_method(method);
  const Ladder ladder = spec.growth == Growth::none
                            ? make_ladder(f.plan(spec.name, 4, spec.parameters), 4096)
                            : make_ladder(f.model.geometry, spec, 4096);
  const Plan& plan = ladder.rungs().back().plan;
  if (spec.growth != Growth::none) options.rungs = ladder.rungs(), options.near = ladder.near();
  const ordered_json config = f.exported(plan, options);
  const ordered_json rungs = config.value("rope_parameters", config).value("rungs", config);
  for (std::size_t i = 0; i < options.rungs.size(); ++i) {
    EXPECT_EQ(rungs[i]["factors"].get<std::vector<double>>(), total_factors(options.rungs[i].plan));
  }
  std::string out;
  const auto add = [&](const std::string& where, const ordered_json& now, ordered_json before) {
    for (const auto& [key, value] : now.items()) {
      if (!before.contains(key) || before[key] != value) {
        out += where + key + ": " + shortly(value).dump() + "\n";
      }
      before.erase(key);
    }
    for (const auto& [key, value] : before.items()) out += where + key + " is gone\n";
  };
  if (given.contains("text_config")) {
    add("text_config.", config["text_config"], given["text_config"]);
  } else {
    add("", config, given);
  }
  const auto tokenizer = ordered_json::parse(read_file(options.out / "tokenizer_config.json"));
  out += "tokenizer: " + tokenizer.dump() + "\nfiles:";
  for (const std::string& name : names_in(options.out)) {
    out += " " + name + (fs::is_symlink(options.out / name) ? "@" : "");
  }
  const std::string caveat = hf_caveat(f.model, options.dialect);
  if (!caveat.empty()) out += "\ncaveat: " + caveat;
  return out + "\nread back: " + test::or_error([&] {
           const Model back = read_model(options.out);
           const std::vector<double> theta = trained_theta(back.geometry);
           for (std::size_t i = 0; i < theta.size(); ++i) {
             EXPECT_NEAR(theta[i] / plan.theta()[i], 1, 1e-12) << input << " " << i;
           }
           EXPECT_EQ(back.geometry.trained_attention_scale, total_attention_scale(plan)) << input;
           return cat("window ", back.geometry.train_length);
         });
}

TEST(HfExport, WritesTheKeysOfEveryReader) {
  test::expect_transcript("hf_export", [](const std::string& input) {
    return test::or_error([&] { return answer(input); });
  });
}

// The paths of everything below a folder, with the content of files and the targets of links.
std::map<std::string, std::string> snapshot(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::string& value = out[entry.path().string()];
    if (entry.is_symlink()) {
      value = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      value = read_file(entry.path());
    }
  }
  return out;
}

TEST(HfExport, NeverChangesItsInput) {
  const Folder f(llama_config());
  const Plan plan = f.plan("pro");
  HfOptions options = f.options();
  options.replace = true;
  fs::create_directory_symlink(f.folder / "in", f.folder / "link");
  fs::create_directory_symlink(f.folder.path(), f.folder / "around");
  const auto before = snapshot(f.folder / "in");
  const auto refused = [&](const fs::path& out, const char* why) {
    options.out = out;
    EXPECT_ERROR(export_huggingface(f.model, plan, options), usage, why);
    EXPECT_TRUE(snapshot(f.folder / "in") == before) << out;
  };
  refused(f.folder / "in", "is the input itself");
  refused(f.folder / "in/", "is the input itself");
  refused(f.folder / "in/.", "is the input itself");
  refused(f.folder / "in/sub/../../in", "is the input itself");
  refused(fs::relative(f.folder / "in"), "is the input itself");
  refused(f.folder / "link", "is the input itself");
  refused(f.folder.path(), "contains the input");
  refused(f.folder / "around", "contains the input");
  refused(f.folder / "in/new", "inside the input");
  refused(f.folder / "link/sub/new", "inside the input");
}

// A -> B by copying, B -> C by linking, C -> B: the weights of C are in B.
TEST(HfExport, NeverReplacesWhatItsInputLinksTo) {
  const Folder f(llama_config());
  const auto step = [&](const char* from, const char* to, bool copy) {
    const Model model = read_model(f.folder / from);
    Extension pro{.method = "pro", .scale = 2};
    HfOptions options = f.options();
    options.out = f.folder / to;
    options.copy = copy;
    options.replace = true;
    export_huggingface(model, make_plan(model.geometry, pro), options);
  };
  step("in", "b", true);
  step("b", "c", false);
  EXPECT_ERROR(step("c", "b", false), usage, "pytorch_model.bin");
  EXPECT_ERROR(step("c", "b", true), usage, "pytorch_model.bin");
  EXPECT_EQ(read_file(f.folder / "c" / "pytorch_model.bin"), "weights");
  // The original is not replaceable, although an export of it has its files.
  step("in", "d", false);
  EXPECT_ERROR(step("d", "in", false), usage, "pytorch_model.bin");
  EXPECT_ERROR(step("b", "in", false), usage, "not written by mrrope export");
  EXPECT_EQ(read_file(f.folder / "in" / "pytorch_model.bin"), "weights");
}

TEST(HfExport, ReplacesOnlyWhatItWrote) {
  const Folder f(llama_config());
  const Plan plan = f.plan("pro");
  HfOptions options = f.options();
  options.replace = true;
  const auto refused = [&](const char* why) {
    const auto before = snapshot(options.out);
    EXPECT_ERROR(export_huggingface(f.model, plan, options), usage, why);
    EXPECT_TRUE(snapshot(options.out) == before);
  };
  f.folder.write("other/config.json", "{}");
  options.out = f.folder / "other";
  refused("not written by mrrope export");
  options.out = f.folder / "out";
  export_huggingface(f.model, plan, options);
  export_huggingface(f.model, plan, options);
  f.folder.write("out/notes.txt", "mine");
  refused("notes.txt");
  fs::remove(f.folder / "out/notes.txt");
  fs::create_directory(f.folder / "out/checkpoints");
  refused("checkpoints");
  fs::remove(f.folder / "out/checkpoints");
  fs::remove(f.folder / "out/pytorch_model.bin");
  f.folder.write("out/pytorch_model.bin", "weights of my own");
  refused("pytorch_model.bin");
  // A link to a folder of ours is not a folder of ours.
  fs::remove(f.folder / "out/pytorch_model.bin");
  fs::create_directory_symlink(f.folder / "out", f.folder / "link");
  options.out = f.folder / "link";
  refused("is not a folder");
}

// Folders with names that an earlier version used, and others that it does not know.
TEST(HfExport, RemovesNothingElse) {
  const Folder f(llama_config());
  HfOptions options = f.options();
  for (const char* name : {"out.part", "out.old", "out.part-abcdef"}) {
    f.folder.write(std::string(name) + "/precious", "x");
  }
  export_huggingface(f.model, f.plan("pro"), options);
  options.replace = true;
  export_huggingface(f.model, f.plan("pro"), options);
  for (const char* name : {"out.part", "out.old", "out.part-abcdef"}) {
    EXPECT_EQ(read_file(f.folder / name / "precious"), "x") << name;
  }
}

TEST(HfExport, PublishesOnlyWhatWasVerified) {
  const Folder f(llama_config());
  HfOptions options = f.options();
  const auto fails = [&](Staging&, const fs::path& folder) {
    EXPECT_TRUE(fs::exists(folder / "config.json"));
    throw Error(ErrorKind::goal_not_met, "something differs", "report it");
  };
  EXPECT_ERROR(export_huggingface(f.model, f.plan("pro"), options, {}, fails), goal_not_met,
               "differs");
  EXPECT_FALSE(fs::exists(options.out));
  export_huggingface(f.model, f.plan("pro"), options);
  const auto before = snapshot(options.out);
  options.replace = true;
  EXPECT_ERROR(export_huggingface(f.model, f.plan("uni"), options, {}, fails), goal_not_met,
               "differs");
  EXPECT_TRUE(snapshot(options.out) == before);
  // A file that appears during the proof is not removed.
  const auto disturbed = [&](Staging&, const fs::path&) { f.folder.write("out/new", "mine"); };
  EXPECT_ERROR(export_huggingface(f.model, f.plan("uni"), options, {}, disturbed), usage, "new");
  EXPECT_EQ(read_file(f.folder / "out/new"), "mine");
}

TEST(HfExport, RefusesAFolderWithoutWeights) {
  const Folder f(llama_config());
  fs::remove(f.folder / "in/pytorch_model.bin");
  EXPECT_ERROR(export_huggingface(f.model, f.plan("pro"), f.options()), failed, "no weights",
               "model.safetensors");
  f.folder.write("in/model.safetensors.index.json",
                 R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})");
  EXPECT_ERROR(export_huggingface(f.model, f.plan("pro"), f.options()), failed,
               "model-1.safetensors and 1 more");
  EXPECT_FALSE(fs::exists(f.folder / "out"));
}

TEST(HfExport, RefusesBadOutputsAndConfigs) {
  const Folder f(llama_config());
  const Plan plan = f.plan("pro");
  HfOptions options = f.options();
  export_huggingface(f.model, plan, options);
  EXPECT_ERROR(export_huggingface(f.model, plan, options), usage, "exists");
  options.out = f.folder / "none" / "deep" / "out";
  export_huggingface(f.model, plan, options);  // folders on the way are made
  options.out = f.folder / "tokenizer" / "x";
  f.folder.write("tokenizer", "a file");
  EXPECT_ERROR(export_huggingface(f.model, plan, options), failed, "cannot create");
  ordered_json glm = llama_config();
  glm["rope_ratio"] = 16;
  EXPECT_ERROR(extended_config(glm, f.model, plan, options), unsupported, "rope_ratio");
  for (const auto& entry : fs::directory_iterator(f.folder.path())) {
    EXPECT_EQ(entry.path().extension(), "") << entry.path();
  }
}

// ---- what vLLM and SGLang compute, from their rules (docs/guide/export.md)
// ----------------------------

struct Rotation {
  std::vector<double> theta;
  double scale = 1;
};

// Both: 1 / (factor * base^(2i/d)), and a temperature of their own unless the mscale keys are
// there.
Rotation with_list(const ordered_json& rope, const char* list, const char* mscale, int rotary_dim,
                   std::int64_t longest) {
  Rotation r;
  const auto factors = rope.at(list).get<std::vector<double>>();
  for (std::size_t i = 0; i < factors.size(); ++i) {
    r.theta.push_back(1 / (factors[i] * std::pow(rope.at("rope_theta").get<double>(),
                                                 2.0 * double(i) / rotary_dim)));
  }
  const double original = rope.at("original_max_position_embeddings").get<double>();
  const double ratio = double(longest) / original;
  r.scale = ratio <= 1 ? 1 : std::sqrt(1 + std::log(ratio) / std::log(original));
  if (rope.contains(mscale)) r.scale = rope.at(mscale).get<double>();
  return r;
}

// vLLM decides once, by the longest length it was started for.
Rotation vllm(const ordered_json& config, std::int64_t max_model_len) {
  const ordered_json& rope = config.at("rope_parameters");
  const bool is_long =
      max_model_len > rope.at("original_max_position_embeddings").get<std::int64_t>();
  return with_list(rope, is_long ? "long_factor" : "short_factor",
                   is_long ? "long_mscale" : "short_mscale", 128,
                   config.at("max_position_embeddings").get<std::int64_t>());
}

// The longest length vLLM takes without a flag.
std::int64_t vllm_default_length(const ordered_json& config) {
  const char* outside = "original_max_position_embeddings";
  return config.contains(outside) ? config[outside].get<std::int64_t>()
                                  : config["max_position_embeddings"].get<std::int64_t>();
}

// SGLang decides by the largest position of a batch. Its table holds the short rows 0..original-1
// and then the long ones; a batch whose largest position is `original` itself reads the short half
// one row too far: the long row 0.
struct SglangRow {
  const char* list;
  std::int64_t position;
};
SglangRow sglang_row(const ordered_json& rope, std::int64_t position, std::int64_t largest) {
  const auto original = rope.at("original_max_position_embeddings").get<std::int64_t>();
  const std::int64_t index = position + (largest > original ? original : 0);
  return index < original ? SglangRow{"short_factor", index}
                          : SglangRow{"long_factor", index - original};
}

TEST(OtherReaders, VllmComputesThePlan) {
  const Folder f(llama_config());
  for (const char* method : {"pro", "uni", "regressive", "yarn", "power"}) {
    SCOPED_TRACE(method);
    HfOptions options = f.options();
    options.replace = true;
    const Plan plan = f.plan(method);
    ordered_json config = f.exported(plan, options);
    EXPECT_EQ(vllm_default_length(config), 4096);
    for (const std::int64_t length : {512, 1024, 1025, 4096}) {
      const Rotation r = vllm(config, length);
      ASSERT_EQ(r.theta.size(), plan.theta().size());
      for (std::size_t i = 0; i < r.theta.size(); ++i) {
        EXPECT_NEAR(r.theta[i] / plan.theta()[i], 1, 1e-12) << i;
      }
      EXPECT_EQ(r.scale, plan.attention_scale());
    }
    // Each of the keys is needed: without it something else comes out.
    config["rope_parameters"].erase("long_mscale");
    EXPECT_GT(std::abs(vllm(config, 4096).scale - plan.attention_scale()), 1e-3);
    config["original_max_position_embeddings"] = 1024;
    EXPECT_EQ(vllm_default_length(config), 1024);
  }
}

TEST(OtherReaders, SglangComputesThePlan) {
  const Folder f(llama_config());
  const Plan plan = f.plan("pro");
  const ordered_json folder = f.exported(plan, f.options())["rope_parameters"];
  const ordered_json command = longrope_parameters(plan, 4096, 4096);
  for (const ordered_json& rope : {folder, command}) {
    const Rotation a = with_list(rope, "short_factor", "short_mscale", 128, 4096);
    const Rotation b = with_list(rope, "long_factor", "long_mscale", 128, 4096);
    EXPECT_EQ(a.theta, b.theta);
    EXPECT_EQ(a.scale, plan.attention_scale());
    EXPECT_EQ(b.scale, plan.attention_scale());
    for (std::size_t i = 0; i < a.theta.size(); ++i) {
      EXPECT_NEAR(a.theta[i] / plan.theta()[i], 1, 1e-12);
    }
  }
  // Prefill and decoding, within the window and past it: the row is the position.
  for (const auto& [position, largest] :
       {std::pair{0, 4095}, {1024, 4095}, {1025, 1025}, {1023, 1023}, {5, 1023}, {4095, 4095}}) {
    EXPECT_EQ(sglang_row(folder, position, largest).position, position);
    EXPECT_EQ(sglang_row(command, position, largest).position, position);
  }
  // The one step at the window itself: why the command names the new length as the original one.
  EXPECT_EQ(sglang_row(folder, 1024, 1024).position, 0);
  EXPECT_EQ(sglang_row(command, 1024, 1024).position, 1024);
}

}  // namespace
}  // namespace mrrope::exporting
