// SPDX-License-Identifier: Apache-2.0
#include "cli/presets.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "core/text.h"
#include "eval/text_table.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

const Preset* in_use = nullptr;

const std::vector<std::string> kFrom8k = {"8192", "16384", "32768", "65536", "131072"};
const std::vector<std::string> kFrom4k = {"4096", "8192", "16384", "32768", "65536"};
const std::vector<std::string> kDomains = {"longbench-v2/SD",  "longbench-v2/LD",
                                           "longbench-v2/MD",  "longbench-v2/LICL",
                                           "longbench-v2/LSD", "longbench-v2/CU"};

// A figure: the paper prints no numbers to compare with.
Preset figure(const char* name, const char* what, const char* command) {
  Preset preset;
  preset.name = name;
  preset.what = what;
  preset.command = command;
  return preset;
}

std::vector<Preset> make_presets() {
  const std::string ppl =
      "eval ppl --methods ntk,yarn,uni,pro --samples 10 --select first --kl-positions 0 ";
  const std::string ruler =
      "eval ruler --methods yarn,pro --samples 500 --ctx 128k --lengths 8k,16k,32k,64k,128k";
  const std::string longbench = "eval longbench-v2 --methods yarn,pro --mode letters ";
  return {
      {"paper/ppl-llama3",
       "perplexity on Proof-pile, Llama-3-8B-Instruct (give --text)",
       ppl + "--ctx 128k --lengths 8k,16k,32k,64k,128k",
       "perplexity",
       false,
       kFrom8k,
       {{"ntk", {"3.67", "3.72", ">5", ">10", ">10"}},
        {"yarn", {"3.68", "3.08", "2.75", "2.49", "2.38"}},
        {"uni", {"3.66", "3.06", "2.74", "2.47", "2.41"}},
        {"pro", {"3.63", "3.03", "2.71", "2.45", "2.34"}}}},
      {"paper/ppl-qwen",
       "the same, Qwen2.5-3B-Instruct",
       ppl + "--ctx 128k --lengths 8k,16k,32k,64k,128k",
       "perplexity",
       false,
       kFrom8k,
       {{"ntk", {"3.548", "3.778", "7.782", ">10", ">10"}},
        {"yarn", {"3.449", "2.894", "2.589", "2.333", "2.222"}},
        {"uni", {"3.440", "2.885", "2.581", "2.329", "2.224"}},
        {"pro", {"3.433", "2.881", "3.579 (2.579?)", "2.328", "2.221"}}}},
      {"paper/ppl-llama2",
       "the same, Llama-2-7B-chat",
       ppl + "--ctx 64k --lengths 4k,8k,16k,32k,64k",
       "perplexity",
       false,
       kFrom4k,
       {{"ntk", {"6.73", "6.76", "6.97", "7.11", ">10"}},
        {"yarn", {"6.02", "5.59", "4.64", "4.07", "4.03"}},
        {"uni", {"5.84", "5.42", "4.52", "4.01", "4.15"}},
        {"pro", {"5.72", "5.39", "4.57", "4.11", "3.88"}}}},
      figure("paper/needle-llama3",
             "needles from 8K to 120K, Llama-3-8B-Instruct (give --haystack)",
             "eval needle --methods yarn,pro --ctx 128k --lengths "
             "8k,16k,24k,32k,40k,48k,56k,64k,72k,80k,88k,96k,104k,112k,120k "
             "--depths 0,10,20,30,40,50,60,70,80,90,100"),
      {"paper/ruler-llama3",
       "RULER, Llama-3-8B-Instruct",
       ruler,
       "string_match",
       true,
       kFrom8k,
       {{"yarn", {"95.5", "92.1", "92.7", "89.5", "79.9"}},
        {"pro", {"96.2", "94.2", "94.3", "91.3", "86.6"}}}},
      {"paper/ruler-qwen",
       "RULER, Qwen2.5-3B-Instruct",
       ruler,
       "string_match",
       true,
       kFrom8k,
       {{"yarn", {"78.1", "77.7", "75.6", "63.2", "50.1"}},
        {"pro", {"82.3", "82.9", "78.5", "70.4", "53.2"}}}},
      {"paper/infinitebench",
       "InfiniteBench, Llama-3-8B-Instruct (give --data)",
       "eval infinitebench --methods yarn,pro --ctx 128k --samples 100 --min-tokens 100000 "
       "--max-tokens 128k",
       "official",
       true,
       {"infinitebench/kv_retrieval", "infinitebench/passkey", "infinitebench/number_string",
        "infinitebench/code_debug", "infinitebench/math_find", "infinitebench/longdialogue_qa_eng",
        "infinitebench"},
       {{"yarn", {"9", "100", "85", "3", "57", "10", "44"}},
        {"pro", {"27", "100", "89", "3", "58", "22", "49.8"}}}},
      {"paper/longbench-llama",
       "LongBench-v2, headed Llama-2-7B in one place and Llama-3-8B in another (give --data)",
       longbench + "--ctx 128k",
       "accuracy",
       true,
       kDomains,
       {{"yarn", {"16.7", "12.8", "17.8", "26.8", "30.0", "6.67"}},
        {"pro", {"16.7", "15.4", "18.9", "26.8", "40.0", "6.67"}}}},
      {"paper/longbench-qwen",
       "LongBench-v2, Qwen2.5-3B-Instruct (give --data)",
       longbench + "--ctx 128k",
       "accuracy",
       true,
       kDomains,
       {{"yarn", {"15.8", "10.2", "17.6", "25", "50.0", "6.67"}},
        {"pro", {"16.5", "12.8", "17.6", "27.5", "50.0", "6.67"}}}},
      figure("paper/sweep-llama3-high", "perplexity at 128K against the upper boundary, Llama-3-8B",
             "sweep --methods yarn,pro --ctx 128k --high 33..40"),
      figure("paper/sweep-llama3-low", "the same against the lower boundary",
             "sweep --methods yarn,pro --ctx 128k --low 14..22"),
      figure("paper/sweep-qwen-high", "perplexity at 128K against the upper boundary, Qwen2.5-3B",
             "sweep --methods yarn,pro --ctx 128k --high 36..44"),
      figure("paper/sweep-qwen-low", "the same against the lower boundary",
             "sweep --methods yarn,pro --ctx 128k --low 19..27"),
      figure("paper/theory-estimate", "the position that angles suggest, by base",
             "theory estimate llama2"),
      figure("paper/theory-factors", "cumulative factors of all methods", "theory factors llama2"),
      figure("paper/theory-bound", "the sum of cosines and its first root",
             "theory bound llama2 --scale 16"),
      figure("paper/theory-attention", "scores against distance, from a real model",
             "theory attention")};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// Two spellings of one flag.
std::string one_spelling(const std::string& flag) {
  static const std::map<std::string, std::string> names = {{"--method", "--methods"},
                                                           {"-c", "--ctx"}};
  const std::string name = flag.substr(0, flag.find('='));
  const auto it = names.find(name);
  return it == names.end() ? name : it->second;
}

const Preset& find_preset(const std::string& name) {
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
  }
  std::string names;
  for (const Preset& preset : presets()) names += cat(names.empty() ? "" : ", ", preset.name);
  throw Error(ErrorKind::usage, cat("there is no preset '", name, "'"), cat("give one of ", names));
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

std::vector<std::string> with_preset(const std::vector<std::string>& arguments) {
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
      throw Error(ErrorKind::usage, "--preset takes one name, once",
                  "such as --preset paper/ppl-llama3");
    }
    in_use = &find_preset(joined ? word.substr(9) : arguments[++i]);
  }
  if (in_use == nullptr) return arguments;

  const std::vector<std::string> own = words_of(in_use->command);
  std::vector<std::string> out;
  std::size_t verbs = 0;
  while (verbs < own.size() && !is_flag(own[verbs])) out.push_back(own[verbs++]);
  // The verbs may be typed as well, but no others.
  std::size_t same = 0;
  while (same < typed.size() && same < verbs && typed[same] == own[same]) ++same;
  static const std::vector<std::string> known = {"inspect", "plan", "generate", "eval",  "demo",
                                                 "theory",  "tune", "sweep",    "export"};
  const auto is_verb = [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  };
  const bool other =
      same < verbs && same < typed.size() &&
      (same == 0 ? is_verb(typed[0])
                 : !is_flag(typed[same]) && typed[same].find_first_of("./") == std::string::npos);
  if (other) {
    throw Error(ErrorKind::usage, cat("preset ", in_use->name, " is not of the verb ", typed[same]),
                cat("give mrrope --preset ", in_use->name, " MODEL"));
  }
  for (std::size_t i = verbs; i + 1 < own.size(); i += 2) {
    const bool given = std::any_of(typed.begin(), typed.end(), [&](const std::string& word) {
      return is_flag(word) && one_spelling(word) == own[i];
    });
    if (!given) out.insert(out.end(), {own[i], own[i + 1]});
  }
  out.insert(out.end(), typed.begin() + std::ptrdiff_t(same), typed.end());
  return out;
}

std::string preset_table(const nlohmann::ordered_json& results) {
  if (in_use == nullptr || in_use->rows.empty()) return {};
  const bool lengths = in_use->columns.front().find_first_not_of("0123456789") == std::string::npos;
  std::vector<TextRow> rows = {{""}};
  for (const std::string& column : in_use->columns) {
    rows[0].push_back(lengths ? length_text(std::stoll(column))
                              : column.substr(column.find('/') + 1));
  }
  for (const Preset::Row& row : in_use->rows) {
    TextRow paper = {row.method + ", paper"};
    TextRow own = {row.method + ", yours"};
    for (std::size_t i = 0; i < in_use->columns.size(); ++i) {
      paper.push_back(row.values[i]);
      std::string text = "-";
      for (const auto& r : results.at("results")) {
        const auto task = r.at("task").get<std::string>();
        const bool here = lengths ? task.find('/') == std::string::npos &&
                                        r.at("length") == std::stoll(in_use->columns[i])
                                  : task == in_use->columns[i];
        if (!here || r.at("method") != row.method || r.at("metric") != in_use->metric ||
            !r.at("value").is_number()) {
          continue;
        }
        const double times = in_use->percent ? 100 : 1;
        text = fixed(times * r["value"].get<double>(), in_use->percent ? 1 : 3);
        if (r.at("stderr").is_number()) {
          text += " +-" + fixed(times * r["stderr"].get<double>(), in_use->percent ? 1 : 3);
        }
      }
      own.push_back(text);
    }
    rows.push_back(std::move(paper));
    rows.push_back(std::move(own));
  }
  return cat("\nBeside the paper (", in_use->what, "), ", in_use->metric,
             in_use->percent ? " in percent" : "", ":\n", aligned(rows));
}

std::string preset_list() {
  std::vector<TextRow> rows;
  std::string text;
  for (const Preset& preset : presets()) {
    text +=
        cat("  ", preset.name, std::string(26 - std::min<std::size_t>(25, preset.name.size()), ' '),
            preset.what, "\n");
  }
  return text;
}

}  // namespace mrrope::cli
