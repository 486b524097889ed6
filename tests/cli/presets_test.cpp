// SPDX-License-Identifier: Apache-2.0
// Every preset as mrrope --presets prints it, with MODEL and DATA filled in, on a tiny random model
// that has the name, the window and the base of the preset's family. Flags after it make its
// lengths and numbers of samples smaller, each from the preset's own; plans stay those of the
// paper. results.json is compared with data/paper.json.

#include "models/gguf_edit.h"
#include "support/command.h"

namespace mrrope {
namespace {

constexpr int kEmbedding = 32;
constexpr int kHead = 128;

const json& paper() {
  static const json parsed = json::parse(read_file(MRROPE_GOLDEN_DIR "/../../data/paper.json"));
  return parsed;
}

// The model or the table of this name.
const json& paper_entry(const char* list, const char* key, const std::string& name) {
  for (const json& entry : paper()[list]) {
    if (entry[key] == name) return entry;
  }
  throw std::runtime_error("the paper has no " + name);
}
const json& paper_model(const std::string& name) { return paper_entry("models", "name", name); }

GgufTensorOut random_tensor(const std::string& name, std::vector<std::uint64_t> dims,
                            std::mt19937& random) {
  std::size_t count = 1;
  for (const std::uint64_t d : dims) count *= d;
  std::normal_distribution<float> normal(dims.size() == 1 ? 1.0F : 0.0F,
                                         dims.size() == 1 ? 0.1F : 0.2F);
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  GgufTensorOut tensor = f32_tensor(name, values);
  tensor.dims = std::move(dims);
  return tensor;
}

// One layer with one head of 128 elements; the vocabulary of the bundled model. Every answer ends
// at once: all embeddings share one large element, which the row of EOS alone looks at.
void write_model(const std::string& path, const json& family) {
  const Gguf tiny = read_gguf(std::filesystem::path(MRROPE_TINY_MODEL));
  const auto integer = [](const char* key, std::uint64_t value) {
    return integer_key(key, GgufType::u32, value);
  };
  const std::vector<GgufKeyOut> own = {
      text_key("general.name", family["name"].get<std::string>()),
      integer("llama.context_length", family["window"].get<std::uint64_t>()),
      f32_key("llama.rope.freq_base", family["base"].get<float>()),
      integer("llama.block_count", 1),
      integer("llama.embedding_length", kEmbedding),
      integer("llama.feed_forward_length", kEmbedding),
      integer("llama.attention.head_count", 1),
      integer("llama.attention.head_count_kv", 1),
      integer("llama.attention.key_length", kHead),
      integer("llama.attention.value_length", kHead),
      integer("llama.rope.dimension_count", kHead)};
  std::vector<GgufTensorOut> tensors;
  const std::uint64_t vocabulary = tiny.find_tensor("token_embd.weight").second->dims[1];
  std::mt19937 random(1);
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> dims) {
    tensors.push_back(random_tensor(name, std::move(dims), random));
  };
  const auto eos = std::uint64_t(
      *tiny.first().integer("tokenizer.ggml.eos_token_id", 0, std::int64_t(vocabulary) - 1));
  const auto set = [&](std::uint64_t row, float value) {  // the first element of a row
    std::memcpy(tensors.back().bytes.data() + row * kEmbedding * sizeof value, &value,
                sizeof value);
  };
  add("token_embd.weight", {kEmbedding, vocabulary});
  for (std::uint64_t token = 0; token < vocabulary; ++token) set(token, 20);
  add("output.weight", {kEmbedding, vocabulary});
  set(eos, 4);
  add("output_norm.weight", {kEmbedding});
  add("blk.0.attn_norm.weight", {kEmbedding});
  add("blk.0.ffn_norm.weight", {kEmbedding});
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    add(std::string("blk.0.") + name + ".weight", {kEmbedding, kHead});
  }
  add("blk.0.attn_output.weight", {kHead, kEmbedding});
  for (const char* name : {"ffn_gate", "ffn_up", "ffn_down"}) {
    add(std::string("blk.0.") + name + ".weight", {kEmbedding, kEmbedding});
  }
  edit_gguf(
      MRROPE_TINY_MODEL, path, [](const std::string&) { return true; }, tensors, own);
}

// So many sentences, no two alike.
std::string prose(int sentences, int seed) {
  std::mt19937 random{unsigned(seed)};
  const char* who[] = {"The ferryman", "A baker", "The old clerk", "Her cousin", "Nobody"};
  const char* did[] = {"mended the net", "counted coins", "closed the gate", "lit a lamp"};
  const char* where[] = {"by the weir", "near the mill", "in the yard", "at the corner",
                         "upstairs"};
  std::ostringstream text;
  for (int i = 0; i < sentences; ++i) {
    text << who[random() % 5] << " " << did[random() % 4] << " " << where[random() % 5]
         << " on day " << random() % 1000 << ". ";
  }
  return text.str();
}

struct Case {
  std::string preset;  // after paper/
  std::string model;   // the paper's name
  std::int64_t divisor = 1, samples = 1, floor = 0;
};

std::int64_t tokens_of(const std::string& text) {
  return std::stoll(text) * (text.back() == 'k' ? 1024 : 1);
}

// The command that a preset stands for, as its help prints it: flags and their values.
std::map<std::string, std::string> flags_of(const std::string& preset) {
  const std::string help = run_command("--preset paper/" + preset + " --help").out;
  const std::size_t at = help.find("  mrrope ", help.find("This runs"));
  std::istringstream words(help.substr(at, help.find('\n', at) - at));
  std::map<std::string, std::string> flags;
  std::string flag;
  for (std::string word; words >> word;) {
    if (word.rfind("--", 0) == 0)
      flags[flag = word] = "";
    else if (!flag.empty())
      flags[flag] = word;
  }
  return flags;
}

// floor + N / divisor tokens for N, and 1 / samples of the samples.
std::string short_flags(const Case& c) {
  std::map<std::string, std::string> flags = flags_of(c.preset);
  EXPECT_TRUE(flags.count("--ctx")) << c.preset;
  if (!flags.count("--lengths")) flags["--lengths"] = flags["--ctx"];
  std::string out;
  for (const char* flag : {"--lengths", "--min-tokens", "--max-tokens"}) {
    if (!flags.count(flag)) continue;
    std::istringstream values(flags[flag]);
    std::string list;
    for (std::string value; std::getline(values, value, ',');) {
      const std::size_t number = value.find('=') + 1;  // 0 without a name
      list += (list.empty() ? "" : ",") + value.substr(0, number) +
              std::to_string(c.floor + tokens_of(value.substr(number)) / c.divisor);
    }
    out += std::string(" ") + flag + " " + list;
  }
  for (const std::string flag : {"--samples", "--documents"}) {
    if (!flags.count(flag)) continue;
    out += " " + flag + " " + std::to_string(std::stoll(flags[flag]) / c.samples);
  }
  return out;
}

constexpr const char* kLlama3 = "LLaMA3-8B-Instruct";
constexpr const char* kQwen = "Qwen2.5-3B-Instruct";
constexpr const char* kLlama2Chat = "LLaMA2-7B-chat";

class PresetTest : public testing::Test {
 protected:
  // Twelve documents that are long enough for every preset here, and three that are not.
  std::string texts() {
    for (int i = 0; i < 12; ++i) add_text(i, 400);
    for (int i = 12; i < 15; ++i) add_text(i, 10);
    write_file(folder_.file("texts.jsonl"), lines_);
    return folder_.file("texts.jsonl");
  }

  std::string essays() {
    for (int i = 0; i < 3; ++i) {
      write_file(folder_.file("essays/" + std::to_string(i) + ".txt"), prose(10, 100 + i));
    }
    return folder_.file("essays");
  }

  // The six tasks in the form of the official files: items of the middle length are in range.
  std::string infinitebench() {
    const auto write = [&](const std::string& task, const json& more) {
      std::string lines;
      // Those of math_find are shorter, as in the benchmark.
      const int middle = task == "math_find" ? 68 : 85;
      for (const auto& [id, sentences] : std::map<int, int>{{1, 5}, {2, middle}, {3, 900}}) {
        json item = {{"id", id}, {"context", prose(sentences, id)}, {"input", "Which?"}};
        item.update(more);
        lines += item.dump() + "\n";
      }
      write_file(folder_.file("infinitebench/" + task + ".jsonl"), lines);
    };
    const json options = {"parse_row", "read_cell", "write_row", "close_sheet"};
    write("passkey", {{"answer", "12345"}});
    write("number_string", {{"answer", "1122334455"}});
    write("kv_retrieval", {{"answer", "0b1e5c7a"}});
    write("code_debug", {{"answer", "read_cell"}, {"options", options}});
    write("math_find", {{"answer", 7}, {"input", "The largest number of the list is asked for."}});
    write("longdialogue_qa_eng", {{"answer", json::array({"MARLOW"})}});
    return folder_.file("infinitebench");
  }

  // Two items per domain, the second one too long for any length here.
  std::string longbench() {
    json items = json::array();
    for (const char* domain :
         {"Single-Document QA", "Multi-Document QA", "Long In-context Learning",
          "Long-dialogue History Understanding", "Code Repository Understanding",
          "Long Structured Data Understanding"}) {
      for (const int sentences : {20, 900}) {
        items.push_back(longbench_item(domain + std::to_string(sentences), domain,
                                       prose(sentences, sentences)));
      }
    }
    write_file(folder_.file("data.json"), items.dump());
    return folder_.file("data.json");
  }

  // The line that --presets prints, with its words filled in.
  std::string command(const Case& c) {
    const std::string list = run_command("--presets").out;
    const std::string start = "    mrrope --preset paper/" + c.preset;
    std::size_t at = list.find(start + " ");
    if (at == std::string::npos) at = list.find(start + "\n");
    EXPECT_NE(at, std::string::npos) << c.preset << " is not in\n" << list;
    if (at == std::string::npos) return {};
    std::string line = list.substr(at + 11, list.find('\n', at) - at - 11);
    const auto fill = [&](const std::string& word, const std::string& value) {
      const std::size_t found = line.find(word);
      if (found != std::string::npos) line.replace(found, word.size(), value);
    };
    if (contains(line, "MODEL")) {
      write_model(folder_.file("model.gguf"), paper_model(c.model));
      fill("MODEL", folder_.file("model.gguf"));
    }
    if (contains(line, "needle")) fill("DATA", essays());
    if (contains(line, "--text DATA")) fill("DATA", texts());
    if (contains(line, "infinitebench")) fill("DATA", infinitebench());
    if (contains(line, "longbench")) fill("DATA", longbench());
    EXPECT_FALSE(contains(line, "DATA")) << line;
    return line;
  }

  // Where results go, and one thread: the model is too small for two.
  CommandResult run(const Case& c, const std::string& more = {},
                    std::initializer_list<std::string> words = {}) {
    return expect_run(command(c) + short_flags(c) + more + " -t 1 -o " + out(), 0, words);
  }

  std::string out() const { return folder_.file("out"); }
  json results() const { return json::parse(read_file(out() + "/results.json")); }
  json run_json() const { return json::parse(read_file(out() + "/run.json")); }

  void add_text(int i, int sentences) {
    lines_ += json{{"text", prose(sentences, i)}}.dump() + "\n";
  }

  // The result of a method in one column of the paper's table.
  static const json* find(const json& results, const Case& c, const json& table,
                          const std::string& method, const json& column) {
    const auto task = table["task"].get<std::string>();
    const std::string row =
        column.is_number() || column == "average" ? task : task + "/" + column.get<std::string>();
    for (const json& r : results["results"]) {
      if (r["method"] != method || r["task"] != row || r["metric"] != table["result"]) continue;
      if (column.is_number() &&
          r["length"].get<std::int64_t>() != c.floor + column.get<std::int64_t>() / c.divisor) {
        continue;
      }
      return &r;
    }
    return nullptr;
  }

  // Every number of the table has one of ours beside it, at its scale; n counts as many samples.
  CommandResult check_table(const Case& c, std::int64_t samples,
                            std::initializer_list<std::string> words = {}) {
    const CommandResult printed = run(c, {}, words);
    const json& table = paper_entry("tables", "id", c.preset);
    const json said = table.value("samples", json());
    if (said.is_number()) {
      EXPECT_EQ(samples, said);
    }
    EXPECT_EQ(table["model"], c.model);
    const json own = results();
    EXPECT_EQ(run_json()["model"]["name"], c.model);
    int cells = 0;
    std::vector<std::string> methods = {"yarn-rotations"};
    if (table["task"] == "ppl") methods.push_back("regressive");
    for (const json& row : table["rows"]) methods.push_back(row["method"]);
    for (const std::string& method : methods) {
      if (contains(method, "GPT") || contains(method, "Yi") || contains(method, "Kimi")) continue;
      for (const json& column : table["columns"]) {
        const json* r = find(own, c, table, method, column);
        EXPECT_NE(r, nullptr) << c.preset << " " << method << " " << column << "\n" << own;
        if (r == nullptr) return printed;
        EXPECT_TRUE((*r)["value"].is_number()) << *r;
        EXPECT_EQ((*r)["scale"].get<double>(), table["scale"].get<double>()) << *r;
        const bool mean_of_tasks = table["task"] == "ruler" || column == "average";
        const int tasks = table["task"] == "ruler" ? 13 : mean_of_tasks ? 6 : 1;
        EXPECT_EQ((*r)["n"].get<std::int64_t>() * c.samples, samples * tasks) << *r;
        ++cells;
      }
    }
    EXPECT_GE(cells, 15);
    return printed;
  }

  TempFolder folder_;
  std::string lines_;
};

TEST_F(PresetTest, PerplexityOfLlama3) {
  const CommandResult r = check_table({"ppl-llama3", kLlama3, 256}, 10);
  EXPECT_EQ(run_json()["settings"]["min_tokens"], 512);
  EXPECT_EQ(run_json()["settings"]["select"], "random");
  // The random model is F32, and so is the cache of the preset: nothing differs from the paper.
  EXPECT_EQ(run_json()["precision"],
            (json{{"weights", "f32"}, {"keys", "f32"}, {"values", "f32"}}));
  EXPECT_FALSE(contains(r.err, "float32")) << r.err;
}

TEST_F(PresetTest, PerplexityOfLlama2TakesDocumentsOver128K) {
  // Long enough for 64K, not for 128K; without --min-tokens most of the ten would be of these.
  for (int i = 20; i < 60; ++i) add_text(i, 75);
  check_table({"ppl-llama2", kLlama2Chat, 64}, 10);
  const json chosen = run_json()["documents"];
  EXPECT_EQ(chosen.size(), 10u);
  for (const json& document : chosen) EXPECT_GE(document["tokens"], 2048);
}

TEST_F(PresetTest, PrecisionIsNotedOnceWhereItDiffers) {
  const CommandResult r = run({"ppl-llama2", kLlama2Chat, 512, 10}, " -ctk f16 -ctv f16");
  EXPECT_EQ(run_json()["precision"],
            (json{{"weights", "f32"}, {"keys", "f16"}, {"values", "f16"}}));
  const std::string said =
      "the paper measured in float32; this run uses f32 weights, f16 keys and f16 values";
  ASSERT_TRUE(contains(r.err, said)) << r.err;
  EXPECT_EQ(r.err.find("in float32; this"), r.err.rfind("in float32; this"));
}

TEST_F(PresetTest, NeedlesFrom8KTo128K) {
  run({"needle-llama3", kLlama3, 128, 1, 160}, {}, {"is repeated"});
  EXPECT_EQ(run_json()["settings"]["form"]["name"], "kamradt");
  std::map<std::pair<std::string, std::string>, std::map<std::int64_t, int>> depths;
  const json own = results();
  for (const json& row : own["results"]) {
    EXPECT_EQ(row["scale"], 16.0);
    if (row.contains("depth")) ++depths[{row["method"], row["metric"]}][row["length"]];
  }
  for (const char* method : {"yarn", "yarn-rotations", "pro"}) {
    for (const char* metric : {"rouge1_recall", "rouge1_recall_stemmed", "contains"}) {
      const auto& lengths = depths[{method, metric}];
      ASSERT_EQ(lengths.size(), 16u) << method << metric;
      for (int k = 1; k <= 16; ++k) EXPECT_EQ(lengths.at(160 + 64 * k), 11) << 8 * k << "K";
    }
  }
}

// The command of docs/guide/evaluate.md and of the help, with a folder of that name; then without
// one.
TEST_F(PresetTest, TheExampleOfKamradtsForm) {
  const std::string line =
      "eval needle model.gguf --form kamradt --method yarn,pro --ctx 128k --text essays/";
  EXPECT_TRUE(contains(run_command("eval needle --help").out, "mrrope " + line));
  EXPECT_TRUE(
      contains(read_file(MRROPE_GOLDEN_DIR "/../../docs/guide/evaluate.md"), "mrrope " + line));
  write_model(folder_.file("model.gguf"), paper_model(kLlama3));
  essays();
  const std::string before = "cd " + folder_.path().string() + ";";
  const std::string lengths = " --lengths 416,672";
  expect_run(line + lengths, 0, {"form kamradt", "recall by stems"}, before);
  const std::string alone = line.substr(0, line.find(" --text")) + lengths;
  expect_run(alone + " --depths 50", 0, {"generated prose"}, before);
  expect_run(alone + " --needle '' --question b --answer c", 2, {}, before);
  expect_run(alone + " --answer c", 2, {"--needle is missing or empty"}, before);
  expect_run(alone +
                 " --depths 50 --needle 'The key lies under a stone.' "
                 "--question 'Where is the key?' "
                 "--answer 'under a stone'",
             0, {}, before);
}

TEST_F(PresetTest, PerplexityOfQwen) { check_table({"ppl-qwen", kQwen, 256}, 10); }

TEST_F(PresetTest, RulerOfLlama3) { check_table({"ruler-llama3", kLlama3, 512, 500, 1888}, 500); }

TEST_F(PresetTest, RulerOfQwen) { check_table({"ruler-qwen", kQwen, 512, 500, 1888}, 500); }

TEST_F(PresetTest, LongbenchOfLlama2AtScale16) {
  check_table({"longbench-llama2", kLlama2Chat, 64}, 1);
  EXPECT_EQ(run_json()["sets"][0]["length"], 1024);
}

TEST_F(PresetTest, LongbenchOfQwen) {
  check_table({"longbench-qwen", kQwen, 64}, 1);
  EXPECT_EQ(run_json()["sets"][0]["length"], 2048);
}

TEST_F(PresetTest, InfinitebenchKeepsAllSixTasks) {
  check_table({"infinitebench", kLlama3, 64, 100}, 100, {"mean of 6"});
  EXPECT_EQ(run_json()["settings"]["min_tokens"], 1562);
  EXPECT_EQ(run_json()["settings"]["min_tokens_of"], (json{{"math_find", 1250}}));
  EXPECT_EQ(run_json()["settings"]["max_tokens"], 2048);
}

TEST_F(PresetTest, LongbenchOfLlama3At128K) {
  // Only a known setting is called the paper's, and no data is called official.
  check_table({"longbench-llama3", kLlama3, 64}, 1,
              {"prompt (SHA-256) that of mrrope (paper: the official one)",
               "whether your file is the official one"});
  EXPECT_EQ(run_json()["sets"][0]["length"], 2048);
  EXPECT_EQ(results()["source"], "file given with --data, letters");
}

TEST_F(PresetTest, SweepsOfTenDocuments) {
  struct Sweep {
    const char* preset;
    const char* model;
    double scale;
    std::size_t points;
  };
  for (const Sweep& sweep : {Sweep{"sweep-llama3-high", kLlama3, 16, 16},
                             {"sweep-llama3-low", kLlama3, 16, 18},
                             {"sweep-qwen-high", kQwen, 4, 18},
                             {"sweep-qwen-low", kQwen, 4, 18}}) {
    std::filesystem::remove_all(out());
    std::filesystem::remove(folder_.file("model.gguf"));
    lines_.clear();
    // The tokens read are those that plans are made for, so the window is smaller too, and the
    // boundaries are those of the true one.
    const Case c{sweep.preset, sweep.model, 256, 5};
    const std::map<std::string, std::string> flags = flags_of(c.preset);
    EXPECT_EQ(flags.at("--ctx"), "128k");
    EXPECT_EQ(flags.at("--select"), "random");
    EXPECT_EQ(flags.at("--documents"), "10");
    EXPECT_EQ(flags.at("--lengths"), "128k");
    const bool llama = sweep.scale == 16;
    const bool lows = contains(flags.at("--method"), "low");
    const CommandResult r =
        expect_run(command(c) + " --documents 2 --ctx 512 --lengths 512 --train-ctx " +
                   (llama ? "32" : "128") + (lows ? " --high " : " --low ") +
                   (lows ? (llama ? "35" : "40") : (llama ? "18" : "23")) + " -t 1 -o " + out());
    std::size_t points = 0;
    const json own = results();
    for (const json& row : own["results"]) {
      EXPECT_EQ(row["scale"], sweep.scale) << row;
      if (row["metric"] != "perplexity") continue;
      EXPECT_EQ(row["length"], 131072 / 256);
      EXPECT_EQ(row["n"], 10 / 5) << row;
      ++points;
    }
    EXPECT_EQ(points, sweep.points);
    EXPECT_TRUE(contains(read_file(out() + "/report.html"), lows ? "by low" : "by high"));
    EXPECT_FALSE(contains(r.err, "float32")) << r.err;
  }
}

TEST_F(PresetTest, TheoryNeedsNoFolder) {
  for (const char* name : {"theory-estimate", "theory-factors", "theory-bound"}) {
    const CommandResult r = expect_run(command({name, kLlama2Chat}));
    EXPECT_FALSE(r.out.empty()) << name;
  }
}

// Past the window, at the scale of the paper's tables.
TEST_F(PresetTest, AttentionOfEachModelUnderThePlan) {
  struct Attention {
    const char* preset;
    const char* model;
    double scale;
  };
  for (const Attention& a : {Attention{"theory-attention-llama", kLlama2Chat, 16},
                             {"theory-attention-llama", kLlama3, 16},
                             {"theory-attention-qwen", kQwen, 4}}) {
    std::filesystem::remove(folder_.file("model.gguf"));
    const Case c{a.preset, a.model, 1};
    const std::map<std::string, std::string> flags = flags_of(c.preset);
    EXPECT_GT(tokens_of(flags.at("--length")), paper_model(a.model)["window"].get<std::int64_t>());
    EXPECT_EQ(std::stod(flags.at("--scale")), a.scale);
    const CommandResult r =
        expect_run(command(c) + " --train-ctx 1k --tokens 2k --pairs 5 --json -t 1", 0,
                   {"reading 2048 tokens under pro"});
    const json plans = json::parse(r.out)["plans"];
    ASSERT_EQ(plans.size(), 2u);
    for (const json& plan : plans) EXPECT_EQ(plan["scale"].get<double>(), a.scale) << plan;
  }
}

// A preset without a test above is noticed here.
TEST_F(PresetTest, EveryPresetIsTested) {
  const std::string list = run_command("--presets").out;
  std::size_t count = 0;
  for (std::size_t at = list.find("    mrrope --preset "); at != std::string::npos;
       at = list.find("    mrrope --preset ", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 3u + 1u + 2u + 1u + 3u + 4u + 5u) << list;
}

}  // namespace
}  // namespace mrrope
