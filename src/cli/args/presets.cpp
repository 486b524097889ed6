// SPDX-License-Identifier: Apache-2.0
#include "cli/args/presets.h"

#include <iterator>

#include "base/text.h"
#include "cli/app.h"
#include "report/report.h"

// Files that are part of the program: CMake turns each into a string (mrrope_embed).
namespace mrrope::embedded {
extern const char* const presets_json;    // data/presets.json
extern const char* const spellings_json;  // cli/args/spellings.json
}  // namespace mrrope::embedded

namespace mrrope::cli {

namespace {

const Preset* in_use = nullptr;

constexpr std::string_view kPaper = "paper/";

// Lines of presets.json; "@NAME" stands for lines that several presets share.
std::string lines_of(const nlohmann::json& lines, const nlohmann::json& shared) {
  std::string text;
  for (const nlohmann::json& each : lines) {
    const auto line = each.get<std::string>();
    text += line[0] == '@' ? lines_of(shared.at(line.substr(1)), shared) : line + "\n";
  }
  return text;
}

std::vector<Preset> make_presets() {
  const auto file = nlohmann::json::parse(embedded::presets_json);
  std::vector<Preset> out;
  for (const nlohmann::json& p : file.at("presets")) {
    out.push_back({p.at("name"), p.at("what"), p.value("needs", ""), p.at("command"),
                   lines_of(p.value("lines", nlohmann::json::array()), file.at("lines")),
                   p.value("float32", false)});
  }
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

bool takes_value(const CLI::Option* o) { return o != nullptr && o->get_items_expected_max() > 0; }

// Does the user name a model? Words that are values of flags do not count.
bool names_model(const CLI::App& verb, const std::vector<std::string>& typed, std::size_t from) {
  for (std::size_t i = from; i < typed.size(); ++i) {
    if (!is_flag(typed[i])) return true;
    const std::size_t equals = typed[i].find('=');
    const CLI::Option* o = verb.get_option_no_throw(typed[i].substr(0, equals));
    if (o == nullptr) continue;
    if (o->check_lname("model") || o->check_lname("hf-repo")) return true;
    if (equals == std::string::npos && takes_value(o)) ++i;
  }
  return false;
}

std::string long_name(const std::string& flag) {
  return flag == "-c" ? "--ctx" : flag.substr(0, flag.find('='));
}

const Preset& find_preset(const std::string& name, const std::vector<Preset>& known) {
  if (const Preset* preset = find_by(known, &Preset::name, name)) return *preset;
  refuse(cat("there is no preset '", name, "'"),
         did_you_mean(name, mapped(known, &Preset::name)) + "mrrope --preset list shows them");
}

// Rows {verb, typed, current}: names that people know from other programs, and those that flags had
// in the version before, which get a note (a fourth cell).
const nlohmann::json& spellings_file() {
  static const auto file = nlohmann::json::parse(embedded::spellings_json);
  return file;
}

bool belongs(const std::string& verb, const std::string& to) {
  return to.empty() || verb == to || verb.rfind(to + " ", 0) == 0;
}

// -cb, which the parser would read as -c b.
bool short_of_others(const CLI::App& app, const std::string& word) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return word.size() > 2 && word.size() < 6 && word[0] == '-' &&
         std::all_of(word.begin() + 1, word.end(), letter) &&
         takes_value(app.get_option_no_throw(word.substr(0, 2)));
}

// Throws what the table says of a flag that no verb has, or not this one, by the name that was
// typed. meant: what that stands for.
void refuse_known(const std::string& verb, const std::string& typed, const std::string& meant,
                  const std::string& value, bool first) {
  for (const nlohmann::json& row : spellings_file().at("refused")) {
    const bool whole = row[0] == meant && (first || meant.starts_with('-'));
    if (!whole && row[0] != cat(meant, " ", value) && row[0] != cat(verb, " ", meant)) continue;
    const bool usage = row.size() == 3;
    throw Error(usage ? ErrorKind::usage : ErrorKind::unsupported, replaced(row[1], meant, typed),
                row[2].get<std::string>());
  }
}

// The arguments in the spelling of --help.
std::vector<std::string> with_current_flags(const CLI::App& app,
                                            const std::vector<std::string>& arguments) {
  const std::string verb = verb_words(app);  // "eval needle"
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0 && is_flag(arguments[i - 1]) &&
        takes_value(app.get_option_no_throw(arguments[i - 1]))) {
      out.push_back(arguments[i]);  // its value, whatever it looks like
      continue;
    }
    const std::size_t equals = arguments[i].find('=');
    const bool joined = arguments[i].rfind('-', 0) == 0 && equals != std::string::npos;
    std::string flag = joined ? arguments[i].substr(0, equals) : arguments[i];
    if (flag.starts_with("--")) std::replace(flag.begin(), flag.end(), '_', '-');  // of Python
    const std::string value = joined                     ? arguments[i].substr(equals + 1)
                              : i + 1 < arguments.size() ? arguments[i + 1]
                                                         : "";
    const nlohmann::json* found = nullptr;
    std::string meant = flag;  // what a spelling stands for, which this verb may not have
    for (const nlohmann::json& row : spellings_file().at("spellings")) {
      if (!belongs(verb, row[0]) || (row[1] != flag && row[1] != cat(flag, " ", value))) continue;
      const std::string current = row[2];
      const std::string name = current.substr(0, current.find(' '));
      if (name.empty() || verb.empty() || app.get_option_no_throw(name) != nullptr) {
        found = &row;
        break;
      }
      meant = name;
    }
    if (found != nullptr) meant = (*found)[2];
    refuse_known(verb, flag, meant, value, i == 0);
    if (found == nullptr) {
      refuse_if(short_of_others(app, flag), cat("mrrope ", verb, " has no flag ", flag),
                cat("see: mrrope ", verb, " --help"));
      out.push_back(joined ? cat(flag, "=", value) : flag);
      continue;
    }
    const std::string typed = (*found)[1], current = (*found)[2];
    if (found->size() > 3) note(cat(typed, " is now ", current.empty() ? "the default" : current));
    const std::size_t space = current.find(' ');
    if (!current.empty()) out.push_back(current.substr(0, space));
    if (space != std::string::npos) out.push_back(current.substr(space + 1));
    if (typed != flag) {  // with its value
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

std::vector<std::string> with_preset(const CLI::App& app, std::vector<std::string> arguments,
                                     const std::vector<Preset>& known) {
  in_use = nullptr;
  for (const nlohmann::json& row : spellings_file().at("verbs")) {
    if (!arguments.empty() && row[0] == arguments[0]) arguments[0] = row[1];
  }
  std::vector<std::string> typed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool joined = word.rfind("--preset=", 0) == 0;
    if (word != "--preset" && !joined) {
      typed.push_back(word);
      continue;
    }
    refuse_if(in_use != nullptr || (!joined && i + 1 == arguments.size()),
              "--preset takes one name, once", "such as --preset paper/ppl-llama3");
    in_use = &find_preset(joined ? word.substr(9) : arguments[++i], known);
  }
  if (in_use == nullptr) return with_current_flags(verb_of(app, arguments), arguments);

  // The preset's verbs may be typed as well, but no others.
  const std::vector<std::string> own = words_of(in_use->command);
  const CLI::App& verb = verb_of(app, own);
  std::vector<std::string> out = words_of(verb_words(verb));
  const std::size_t same = common_prefix(typed, out);
  const auto first = typed.begin() + std::ptrdiff_t(same);
  if (same < out.size() && first != typed.end() &&
      verb_below(verb_of(app, {typed.begin(), first}), *first)) {
    std::string path;
    for (std::size_t i = 0; i < own.size() && !is_flag(own[i]); ++i) path += " " + own[i];
    refuse(cat("preset ", in_use->name, " runs mrrope", path, ", not ", *first),
           cat("type: mrrope --preset ", in_use->name, " MODEL"));
  }
  typed = with_current_flags(verb, typed);
  std::size_t flags = out.size();
  const bool other_model = names_model(verb, typed, same);
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
  std::vector<TextRow> rows = {{""}};
  rows[0].insert(rows[0].end(), compared.header.begin() + 2, compared.header.end());
  for (TextRow row : compared.rows) {
    row[1] = cat(row[0], ", ", row[1]);
    row.erase(row.begin());
    rows.push_back(row);
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

std::string preset_list(const std::vector<std::string>& arguments) {
  const auto flag = std::find(arguments.begin(), arguments.end(), "--preset");
  const bool asked = flag != arguments.end() && flag + 1 != arguments.end() && flag[1] == "list";
  if (!asked && std::ranges::count(arguments, "--presets") == 0) return {};
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
