// SPDX-License-Identifier: Apache-2.0
#include "cli/args/presets.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/spelling.h"
#include "base/text.h"
#include "base/text_table.h"
#include "mrrope/error.h"
#include "report/paper/paper.h"

namespace mrrope::cli {

namespace {

const Preset* in_use = nullptr;

constexpr std::string_view kPaper = "paper/";

std::vector<Preset> make_presets() {
  const std::string ppl =
      "eval ppl --methods ntk,yarn,uni,pro --samples 10 --select first --kl-positions 0 ";
  const std::string ruler =
      "eval ruler --methods yarn,pro --samples 500 --ctx 128k --lengths 8k,16k,32k,64k,128k";
  const std::string longbench = "eval longbench-v2 --methods yarn,pro --mode letters --ctx 128k";
  return {
      {"paper/ppl-llama3", "perplexity on Proof-pile, Llama-3-8B-Instruct (give --text)",
       ppl + "--ctx 128k --lengths 8k,16k,32k,64k,128k"},
      {"paper/ppl-qwen", "the same, Qwen2.5-3B-Instruct",
       ppl + "--ctx 128k --lengths 8k,16k,32k,64k,128k"},
      {"paper/ppl-llama2", "the same, Llama-2-7B-chat",
       ppl + "--ctx 64k --lengths 4k,8k,16k,32k,64k"},
      {"paper/needle-llama3", "needles from 8K to 120K, Llama-3-8B-Instruct (give --haystack)",
       "eval needle --methods yarn,pro --ctx 128k --lengths "
       "8k,16k,24k,32k,40k,48k,56k,64k,72k,80k,88k,96k,104k,112k,120k "
       "--depths 0,10,20,30,40,50,60,70,80,90,100"},
      {"paper/ruler-llama3", "RULER, Llama-3-8B-Instruct", ruler},
      {"paper/ruler-qwen", "RULER, Qwen2.5-3B-Instruct", ruler},
      {"paper/infinitebench", "InfiniteBench, Llama-3-8B-Instruct (give --data)",
       "eval infinitebench --methods yarn,pro --ctx 128k --samples 100 --min-tokens 100000 "
       "--max-tokens 128k"},
      {"paper/longbench-llama",
       "LongBench-v2, Llama-2-7B or Llama-3-8B, the paper gives both names (give --data)",
       longbench},
      {"paper/longbench-qwen", "LongBench-v2, Qwen2.5-3B-Instruct (give --data)", longbench},
      {"paper/sweep-llama3-high", "perplexity at 128K against the upper boundary, Llama-3-8B",
       "sweep --methods yarn,pro --ctx 128k --high 33..40"},
      {"paper/sweep-llama3-low", "the same against the lower boundary",
       "sweep --methods yarn,pro --ctx 128k --low 14..22"},
      {"paper/sweep-qwen-high", "perplexity at 128K against the upper boundary, Qwen2.5-3B",
       "sweep --methods yarn,pro --ctx 128k --high 36..44"},
      {"paper/sweep-qwen-low", "the same against the lower boundary",
       "sweep --methods yarn,pro --ctx 128k --low 19..27"},
      {"paper/theory-estimate", "the position that angles suggest, by base",
       "theory estimate llama2"},
      {"paper/theory-factors", "cumulative factors of all methods", "theory factors llama2"},
      {"paper/theory-bound", "the sum of cosines and its first root",
       "theory bound llama2 --scale 16"},
      {"paper/theory-attention", "scores against distance, from a real model", "theory attention"}};
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
    if (o->check_lname("model")) return true;
    if (equals == std::string::npos && o->get_items_expected_max() > 0) ++i;
  }
  return false;
}

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
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  throw Error(ErrorKind::usage, cat("there is no preset '", name, "'"),
              did_you_mean(name, names) + "mrrope --presets lists them");
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

std::vector<std::string> with_preset(const CLI::App& app,
                                     const std::vector<std::string>& arguments) {
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
        throw Error(ErrorKind::usage,
                    cat("preset ", in_use->name, " runs mrrope", path, ", not ", typed[same]),
                    cat("type: mrrope --preset ", in_use->name, " MODEL"));
      }
    }
    out.push_back(own[out.size()]);
    verb = next;
  }
  std::size_t flags = out.size();
  const bool other_model = names_model(*verb, typed, same);
  for (; flags < own.size() && !is_flag(own[flags]); ++flags) {
    if (!other_model) out.push_back(own[flags]);  // the preset's model
  }
  for (std::size_t i = flags; i + 1 < own.size(); i += 2) {
    const bool given = std::any_of(typed.begin(), typed.end(), [&](const std::string& word) {
      return is_flag(word) && one_spelling(word) == own[i];
    });
    if (!given) out.insert(out.end(), {own[i], own[i + 1]});
  }
  out.insert(out.end(), typed.begin() + std::ptrdiff_t(same), typed.end());
  return out;
}

std::string preset_table(const nlohmann::ordered_json& run, const nlohmann::ordered_json& results) {
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
  const std::size_t last = rows[0].size() - 1;
  return cat("\nCompared with the paper (", compared.caption, "):\n",
             aligned(rows, compared.text_at_end ? std::vector<std::size_t>{0, last}
                                                : std::vector<std::size_t>{0}));
}

std::string preset_list() {
  std::string text;
  for (const Preset& preset : presets()) {
    text +=
        cat("  ", preset.name, std::string(26 - std::min<std::size_t>(25, preset.name.size()), ' '),
            preset.what, "\n");
  }
  return text;
}

}  // namespace mrrope::cli
