// SPDX-License-Identifier: Apache-2.0
#include "cli/args/presets.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "base/words.h"
#include "cli/app.h"
#include "mrrope/error.h"
#include "report/report.h"

namespace mrrope::cli {

namespace {

const Preset* in_use = nullptr;

constexpr std::string_view kPaper = "paper/";

constexpr const char* kFloat32 =
    "The paper measured in float32: use an F32 GGUF (convert_hf_to_gguf.py --outtype f32). The "
    "preset\n"
    "makes the cache f32 as well; -ctk f16 -ctv f16 halves it, and the run then notes the "
    "difference.\n";

constexpr const char* kTwoYarns =
    "yarn is the ramp over pair numbers that engines run, yarn-rotations the ramp over turns that\n"
    "the papers print. The paper's YaRN row is compared with yarn.\n";

constexpr const char* kOfficialPrompts =
    "The prompts were written for this project. To use the benchmark's own, make a file from "
    "checkouts\n"
    "of the two repositories, and add the flags below:\n"
    "  tools/official_prompts.py --infinitebench InfiniteBench --longbench LongBench "
    ">prompts.json\n";

Preset ppl_preset(const char* name, const char* what, const char* lengths) {
  return {
      std::string("paper/ppl-") + name,
      what,
      "MODEL --text DATA",
      std::string("eval ppl --method ntk,yarn,yarn-rotations,regressive,uni,pro --documents 10 "
                  "--select random --seed 1 --min-tokens 128k --kl-positions 0 --cache-type-k f32 "
                  "--cache-type-v f32 ") +
          lengths,
      cat("DATA is the test split of Proof-pile, as .jsonl with the field text.\n",
          "The paper's text says ten sequences over 128K tokens, chosen at random; its published\n",
          "script takes the first ten: add --select first for those.\n",
          "regressive is the arithmetic counterpart of pro, which the paper does not run.\n",
          kFloat32, kTwoYarns),
      true};
}

Preset sweep_preset(const char* name, const char* what, const char* borders) {
  return {
      std::string("paper/sweep-") + name,
      what,
      "MODEL --text DATA",
      cat("eval ppl --method yarn(", borders, "),pro(", borders, ") --ctx 128k --lengths 128k ",
          "--documents 10 --select random --seed 1 --kl-positions 0 --cache-type-k f32 "
          "--cache-type-v f32"),
      cat("DATA is the test split of Proof-pile. The paper does not say which documents it used\n",
          "here; ten of at least 128K tokens, chosen at random, as in its tables of perplexity.\n",
          kFloat32),
      true};
}

std::vector<Preset> make_presets() {
  const std::string ruler =
      "eval ruler --method yarn,yarn-rotations,pro --samples 500 --ctx 128k --lengths "
      "8k,16k,32k,64k,128k";
  const std::string ruler_notes =
      cat("Samples are made here; --data DIR takes those of RULER's own scripts.\n",
          "The paper gives no number of samples: 500 is RULER's.\n", kTwoYarns);
  const std::string longbench =
      "eval longbench-v2 --method yarn,yarn-rotations,pro --form letters ";
  const std::string letters = cat(
      "DATA is data.json of LongBench-v2. Items longer than --ctx are dropped, as in the paper.\n",
      "letters is the method of the authors' published script; --form auto is the benchmark's\n",
      "own.\n", kOfficialPrompts, "  --prompts prompts.json --form auto\n", kTwoYarns);
  const char* attention =
      "The model reads a text longer than its window under each plan, at the scale of the paper's\n"
      "tables. For this figure the paper states neither the model nor the length.\n";
  const char* to_128k = "--ctx 128k --lengths 8k,16k,32k,64k,128k";
  return {
      ppl_preset("llama3", "perplexity on Proof-pile, Llama-3-8B-Instruct", to_128k),
      ppl_preset("qwen", "perplexity on Proof-pile, Qwen2.5-3B-Instruct", to_128k),
      ppl_preset("llama2", "perplexity on Proof-pile, Llama-2-7B-chat",
                 "--ctx 64k --lengths 4k,8k,16k,32k,64k"),
      {"paper/needle-llama3", "needles from 8K to 128K, Llama-3-8B-Instruct", "MODEL --text DATA",
       "eval needle --form kamradt --method yarn,yarn-rotations,pro --ctx 128k --lengths "
       "8k,16k,24k,32k,40k,48k,56k,64k,72k,80k,88k,96k,104k,112k,120k,128k --depths "
       "0,10,20,30,40,50,60,70,80,90,100",
       cat("DATA is a folder of essays, joined and repeated until they are long enough; without\n",
           "--text prose of this project is used. The needle, its question and its answer are in\n",
           "words of this project too; the usual ones can be given:\n",
           "  --needle TEXT --question TEXT --answer TEXT\n",
           "The paper states its score (ROUGE-1 recall), not its grid, needle or stemming: recall "
           "is\n",
           "given with and without stems.\n", kTwoYarns)},
      {"paper/ruler-llama3", "RULER, Llama-3-8B-Instruct", "MODEL", ruler, ruler_notes},
      {"paper/ruler-qwen", "RULER, Qwen2.5-3B-Instruct", "MODEL", ruler, ruler_notes},
      {"paper/infinitebench", "InfiniteBench, Llama-3-8B-Instruct", "MODEL --data DATA",
       "eval infinitebench --method yarn,yarn-rotations,pro --ctx 128k --samples 100 --min-tokens "
       "100000,math_find=80000 --max-tokens 128k",
       cat("DATA is the folder of the benchmark's .jsonl files.\n",
           "The paper says 100K to 128K tokens. Items of math_find have about 90K, so that task "
           "starts\n",
           "at 80K. With --min-tokens 100000 the mean is over five tasks, and says so.\n",
           kOfficialPrompts, "  --prompts prompts.json --form completion\n", kTwoYarns)},
      {"paper/longbench-llama3", "LongBench-v2, Llama-3-8B-Instruct", "MODEL --data DATA",
       longbench + "--ctx 128k",
       cat("Table (a): its head names LLaMA2-7B with window 4K, its caption LLaMA3-8B, and the "
           "text says\n",
           "that items are cut at 128K. The head is a misprint: 12.8 and 15.4 % of the dialogues "
           "are 5\n",
           "and 6 of 39, which are all that the benchmark has. For the other reading take\n",
           "paper/longbench-llama2.\n", letters)},
      {"paper/longbench-llama2", "the same table read as its head says, Llama-2-7B-chat at 64K",
       "MODEL --data DATA", longbench + "--ctx 64k",
       cat("Most likely not what the paper ran: see paper/longbench-llama3.\n", letters)},
      {"paper/longbench-qwen", "LongBench-v2, Qwen2.5-3B-Instruct", "MODEL --data DATA",
       longbench + "--ctx 128k", letters},
      sweep_preset("llama3-high", "perplexity at 128K against the upper boundary, Llama-3-8B",
                   "high=33..40"),
      sweep_preset("llama3-low", "perplexity at 128K against the lower boundary, Llama-3-8B",
                   "low=14..22"),
      sweep_preset("qwen-high", "perplexity at 128K against the upper boundary, Qwen2.5-3B",
                   "high=36..44"),
      sweep_preset("qwen-low", "perplexity at 128K against the lower boundary, Qwen2.5-3B",
                   "low=19..27"),
      {"paper/theory-estimate", "the position that angles suggest, by base", "",
       "theory estimate llama2"},
      {"paper/theory-factors", "cumulative factors of all methods", "", "theory factors llama2"},
      {"paper/theory-bound", "the sum of cosines and its first root", "",
       "theory bound llama2 --scale 16"},
      {"paper/theory-attention-llama", "scores against distance, Llama-2-7B and Llama-3-8B",
       "MODEL", "theory attention --method yarn,pro --scale 16 --length 16k", attention},
      {"paper/theory-attention-qwen", "scores against distance, Qwen2.5-3B", "MODEL",
       "theory attention --method yarn,pro --scale 4 --length 64k", attention}};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// The verb of this name below another one, or nullptr.
const CLI::App* below(const CLI::App& app, const std::string& name) {
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (verb->get_name() == name) return verb;
  }
  return nullptr;
}

// Does the user name a model? Words that are values of flags do not count.
bool names_model(const CLI::App& verb, const std::vector<std::string>& typed, std::size_t from) {
  for (std::size_t i = from; i < typed.size(); ++i) {
    if (!is_flag(typed[i])) return true;
    const std::size_t equals = typed[i].find('=');
    const CLI::Option* o = verb.get_option_no_throw(typed[i].substr(0, equals));
    if (o == nullptr) continue;
    if (o->check_lname("model") || o->check_lname("hf-repo")) return true;
    if (equals == std::string::npos && o->get_items_expected_max() > 0) ++i;
  }
  return false;
}

std::string long_name(const std::string& flag) {
  return flag == "-c" ? "--ctx" : flag.substr(0, flag.find('='));
}

// Without "mrrope".
std::string verb_words(const CLI::App& verb) {
  const std::string path = path_of(verb);
  const std::size_t space = path.find(' ');
  return space == std::string::npos ? "" : path.substr(space + 1);
}

const Preset& find_preset(const std::string& name, const std::vector<Preset>& known) {
  std::vector<std::string> names;
  for (const Preset& preset : known) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  refuse(cat("there is no preset '", name, "'"),
         did_you_mean(name, names) + "mrrope --preset list shows them");
}

// ---- Other spellings of flags: names that people know from other programs, and those that a flag
// had in the version before, which work with a note.

// A flag keeps its value; a flag with a value is replaced together with it. An empty verb is every
// one, and "eval" every task of it.
struct Spelling {
  const char* verb;
  const char* typed;
  const char* current;  // empty: it is the default
  bool former = true;   // of an earlier version of mrrope
};

constexpr Spelling kSpellings[] = {
    // The parser would read llama.cpp's short names of several letters as several flags.
    {"", "-hf", "--hf-repo", false},
    {"", "-hfr", "--hf-repo", false},
    {"", "-ngl", "--gpu-layers", false},
    {"", "--n-gpu-layers", "--gpu-layers", false},
    {"", "-ub", "--ubatch-size", false},
    {"", "-ctk", "--cache-type-k", false},
    {"", "-ctv", "--cache-type-v", false},
    {"", "-fa", "--flash-attn", false},
    {"", "-np", "--parallel", false},
    {"", "-kvu", "--kv-unified", false},
    {"", "-no-kvu", "", false},
    {"", "--no-kv-unified", "", false},
    {"", "--ctx-size", "--ctx", false},
    {"", "--n-ctx", "--ctx", false},
    {"", "--context-length", "--ctx", false},
    {"", "--max-model-len", "--ctx", false},
    {"", "--n-predict", "--predict", false},
    {"", "--max-new-tokens", "--predict", false},
    {"", "--temperature", "--temp", false},
    {"", "--rope-theta", "--rope-freq-base", false},
    {"", "--methods", "--method", false},
    {"generate", "--file", "--text", false},
    {"generate", "--verbose", "-v", false},
    {"plan", "--from", "--plan"},
    {"plan", "--csv", "--format csv"},
    {"theory", "--svg", "--out"},
    {"theory", "--html", "--out"},
    {"theory", "--csv -", "--format csv"},
    {"theory", "--csv", "--out"},
    {"theory", "--tokens", "--length"},
    {"theory", "--pairs", "--samples"},
    {"theory", "--scales", "--scale"},
    {"eval ppl", "--samples", "--documents"},
    {"eval needle", "--haystack", "--text"},
    {"eval", "--chat on", "--form chat"},
    {"eval", "--chat off", "--form completion"},
    {"eval", "--chat auto", "--form auto"},
    {"eval", "--mode letters", "--form letters"},
    {"eval", "--mode generate", "--form auto"},
    {"eval", "--bos on", ""},
    {"eval", "--bos off", "--without bos"},
    {"eval", "--answer-prefix on", ""},
    {"eval", "--answer-prefix off", "--without prefix"},
    {"eval", "--squad", "--qa"},
    {"eval", "--hotpotqa", "--qa"},
    {"export", "--no-verify", "--verify off"},
    {"export", "--dialect v5", "--to hf"},
    {"export", "--dialect v4", "--to hf-v4"},
    {"export", "--dialect mrrope", "--to hf-mrrope"},
    {"export", "--last-rung", "--approximate"},
    {"serve", "--any-model", "--alias *"},
    {"tune", "--start-plan", "--plan"},
    {"tune", "--weight", "--prefer"},
    {"tune", "--search-documents", "--documents"},
    {"tune", "--proof-needles", "--proof"},
    {"tune", "--no-proof", "--proof off"},
};

bool belongs(const std::string& verb, const std::string& to) {
  return to.empty() || verb == to || verb.rfind(to + " ", 0) == 0;
}

// The arguments in the spelling of --help. verb: "eval needle".
std::vector<std::string> with_current_flags(const std::string& verb,
                                            const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const bool joined = arguments[i].rfind('-', 0) == 0 && equals != std::string::npos;
    const std::string flag = joined ? arguments[i].substr(0, equals) : arguments[i];
    const std::string value = joined                     ? arguments[i].substr(equals + 1)
                              : i + 1 < arguments.size() ? arguments[i + 1]
                                                         : "";
    const Spelling* found = nullptr;
    for (const Spelling& s : kSpellings) {
      if (!belongs(verb, s.verb) || (flag != s.typed && cat(flag, " ", value) != s.typed)) continue;
      found = &s;
      break;
    }
    if (found == nullptr) {
      out.push_back(arguments[i]);
      continue;
    }
    const std::string current = found->current;
    if (found->former) {
      note(cat(found->typed, " is now ", current.empty() ? "the default" : current));
    }
    const std::size_t space = current.find(' ');
    if (!current.empty()) out.push_back(current.substr(0, space));
    if (space != std::string::npos) out.push_back(current.substr(space + 1));
    if (found->typed != flag) {  // with its value
      if (!joined) ++i;
    } else if (joined) {
      out.push_back(value);
    }
  }
  return out;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

bool asks_for_presets(const std::vector<std::string>& arguments) {
  const auto flag = std::find(arguments.begin(), arguments.end(), "--preset");
  return std::count(arguments.begin(), arguments.end(), "--presets") > 0 ||
         (flag != arguments.end() && flag + 1 != arguments.end() && *(flag + 1) == "list");
}

std::vector<std::string> with_preset(const CLI::App& app, const std::vector<std::string>& arguments,
                                     const std::vector<Preset>& known) {
  in_use = nullptr;
  std::vector<std::string> typed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool joined = word.rfind("--preset=", 0) == 0;
    if (word != "--preset" && !joined) {
      typed.push_back(word);
      continue;
    }
    if (in_use != nullptr || (!joined && i + 1 == arguments.size())) {
      refuse("--preset takes one name, once", "such as --preset paper/ppl-llama3");
    }
    in_use = &find_preset(joined ? word.substr(9) : arguments[++i], known);
  }
  if (in_use == nullptr) return with_current_flags(verb_words(verb_of(app, arguments)), arguments);

  // The preset's verbs may be typed as well, but no others.
  const std::vector<std::string> own = words_of(in_use->command);
  std::vector<std::string> out;
  const CLI::App* verb = &app;
  std::size_t same = 0;
  while (out.size() < own.size()) {
    const CLI::App* next = below(*verb, own[out.size()]);
    if (next == nullptr) break;
    if (same < typed.size() && same == out.size()) {
      if (typed[same] == own[same]) {
        ++same;
      } else if (below(*verb, typed[same])) {
        std::string path;
        for (std::size_t i = 0; i < own.size() && !is_flag(own[i]); ++i) path += " " + own[i];
        refuse(cat("preset ", in_use->name, " runs mrrope", path, ", not ", typed[same]),
               cat("type: mrrope --preset ", in_use->name, " MODEL"));
      }
    }
    out.push_back(own[out.size()]);
    verb = next;
  }
  typed = with_current_flags(verb_words(*verb), typed);
  std::size_t flags = out.size();
  const bool other_model = names_model(*verb, typed, same);
  for (; flags < own.size() && !is_flag(own[flags]); ++flags) {
    if (!other_model) out.push_back(own[flags]);  // the preset's model
  }
  bool given = false;  // the flag before this word is typed too
  for (std::size_t i = flags; i < own.size(); ++i) {
    if (is_flag(own[i])) {
      given = std::any_of(typed.begin(), typed.end(), [&](const std::string& word) {
        return is_flag(word) && long_name(word) == own[i];
      });
    }
    if (!given) out.push_back(own[i]);
  }
  out.insert(out.end(), typed.begin() + std::ptrdiff_t(same), typed.end());
  return out;
}

std::string preset_table(const nlohmann::ordered_json& run, const eval::ResultTable& results) {
  if (in_use == nullptr) return {};
  const nlohmann::ordered_json* table = report::paper_table(in_use->name.substr(kPaper.size()));
  if (table == nullptr || !table->contains("rows")) return {};
  const report::RunRecord record = report::record_of(run, results);
  const report::DataTable compared = report::compared_with_table(*table, {&record});
  std::vector<TextRow> rows = {compared.header};
  rows.insert(rows.end(), compared.rows.begin(), compared.rows.end());
  rows[0] = {""};
  rows[0].insert(rows[0].end(), compared.header.begin() + 2, compared.header.end());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    rows[i][1] = cat(rows[i][0], ", ", rows[i][1]);
    rows[i].erase(rows[i].begin());
  }
  return cat("\nCompared with the paper (", compared.caption, "):\n",
             aligned(rows, {0, rows[0].size() - 1}));
}

const Preset* chosen_preset() { return in_use; }

void note_precision(const Model& model, const engine::LocalOptions& options) {
  if (chosen_preset() == nullptr || !chosen_preset()->float32) return;
  const nlohmann::ordered_json types = engine::precision_of(model, options);
  for (const auto& [what, type] : types.items()) {
    if (type == "f32") continue;
    note(cat("the paper measured in float32; this run uses ", types["weights"].get<std::string>(),
             " weights, ", types["keys"].get<std::string>(), " keys and ",
             types["values"].get<std::string>(),
             " values. For float32, use an F32 GGUF (convert_hf_to_gguf.py --outtype f32) with "
             "-ctk f32 -ctv f32"));
    return;
  }
}

std::string preset_help(const Preset& preset) {
  const std::string needs = preset.needs.empty() ? "" : " " + preset.needs;
  std::string verbs;
  std::string flags;
  for (const std::string& word : words_of(preset.command)) {
    (is_flag(word) || !flags.empty() ? flags : verbs) += " " + shell_word(word);
  }
  return cat(preset.name, ": ", preset.what, "\n\n  mrrope --preset ", preset.name, needs,
             "\n\nThis runs\n\n  mrrope", verbs, needs, flags, "\n\n", preset.notes,
             "Flags that you add override those of the preset; mrrope", verbs,
             " --help lists them.\n");
}

std::string preset_list() {
  std::string text;
  for (const Preset& preset : presets()) {
    text += cat(preset.name, std::string(26 - std::min<std::size_t>(25, preset.name.size()), ' '),
                preset.what, "\n    mrrope --preset ", preset.name, preset.needs.empty() ? "" : " ",
                preset.needs, "\n");
  }
  return text +
         "mrrope --preset NAME --help says what a preset runs and how that follows the paper.\n";
}

}  // namespace mrrope::cli
