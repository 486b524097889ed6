// SPDX-License-Identifier: Apache-2.0
// The texts made from the option table: help, the man page, the reference in Markdown and the shell
// completions.

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "cli/args/presets.h"
#include "core/methods.h"
#include "mrrope/version.h"
#include "report/page/html_page.h"

// Files that are part of the program: CMake turns each into a string (mrrope_embed).
namespace mrrope::embedded {
extern const char* const completion_bash;
extern const char* const help_json;  // cli/args/help.json
}  // namespace mrrope::embedded

namespace mrrope::cli {

namespace {

std::vector<const CLI::App*> verbs(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* verb) { return !verb->get_name().empty() && !verb->get_group().empty(); });
}

std::vector<const CLI::Option*> flags(const CLI::App& app) {
  return app.get_options(
      [](const CLI::Option* o) { return o->nonpositional() && !o->get_group().empty(); });
}

// -c, --ctx: every spelling of an option.
std::vector<std::string> spellings(const CLI::Option& o) {
  std::vector<std::string> out;
  for (const auto& s : o.get_snames()) out.push_back("-" + s);
  for (const auto& l : o.get_lnames()) out.push_back("--" + l);
  return out;
}

// The parser shows the members of a closed set as TYPE:{a,b,c}.
std::vector<std::string> members(const CLI::Option& o) {
  const std::string type = o.get_type_name();
  const std::size_t open = type.find(":{");
  if (open == std::string::npos) return {};
  return split_list(type.substr(open + 2, type.find('}') - open - 2));
}

// ---- help -------------------------------------------------------------------------------------

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 30;

// groups: titles with the long names of flags; daily: such names; verbs: what each does; flags: by
// verb and name; footers: lines, by verb.
const nlohmann::json& help_file(const char* part) {
  static const auto file = nlohmann::json::parse(embedded::help_json);
  return file.at(part);
}

// What is in no group belongs to the task of the verb.
std::string group_of(const CLI::Option& o) {
  for (const auto& group : help_file("groups")) {
    if (has(group[1], o.get_single_name())) return group[0];
  }
  return "Task";
}

// Words from column `indent` on; the first line has `used` columns already.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t used) {
  std::string out;
  std::size_t column = used;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ' ');) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += " ";
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string row(const std::string& name, const std::string& text) {
  std::string line = "  " + name;
  if (line.size() + 2 > kIndent) {
    line += "\n" + std::string(kIndent, ' ');
  } else {
    line.resize(kIndent, ' ');
  }
  return line + wrapped(text, kIndent, kIndent);
}

std::string option_row(const CLI::Option& o) {
  std::string name = joined(spellings(o), ", ");
  const std::string type = o.get_type_name();
  if (o.get_items_expected_max() > 0 && !type.empty()) name += " " + type.substr(0, type.find(':'));
  std::string text = o.get_description();
  const std::vector<std::string> all = members(o);
  const bool named = all.empty() || text.find(all.front()) != std::string::npos;
  if (!named) text += cat(" (", joined(all, ", "), ")");
  if (!o.get_default_str().empty()) text += cat(" [", o.get_default_str(), "]");
  return row(name, text);
}

std::string usage(const CLI::App& app) {
  std::string line = "Usage: " + path_of(app);
  if (!app.get_subcommands({}).empty()) line += " VERB";
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_positional()) line += cat(" [", o->get_type_name(), "]");
  }
  return line + " [FLAGS]\n";
}

// ---- values -----------------------------------------------------------------------------------

// The ladders of these methods (not all have one with a near part), and auto.
std::vector<std::string> ladders_of(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (method_row(name).reach == Reach::unchanged) continue;
    out.push_back(method_name(name, Growth::elastic));
  }
  for (const std::string& name : names) {
    if (has_far_form(name)) out.push_back(method_name(name, Growth::far));
  }
  out.emplace_back(kAuto);
  return out;
}

// What a shell offers after a flag. In the texts @ is a list of words, and & that of the ladders.
struct Offer {
  const char *bash, *zsh, *fish;
};
constexpr Offer kNothingOffered = {"", "", ""};
constexpr Offer kSomething = {"some", ":value:", " -x"};
constexpr Offer kFiles = {"files", ":file:_files", " -r -F"};
constexpr Offer kFolders = {"folders", ":folder:_files -/",
                            " -x -a '(__fish_complete_directories)'"};
constexpr Offer kWords = {"words @", ":value:(@)", " -x -a '@'"};
constexpr Offer kMethods = {"list @ + &", ":method:_mrrope_methods",
                            " -x -a '(__fish_append , @ &)'"};

struct Values {
  const Offer* offer = &kNothingOffered;
  std::vector<std::string> words = {};

  bool any() const { return offer != &kNothingOffered; }
  std::string text(const char* Offer::*shell) const {
    return replaced(replaced(offer->*shell, "@", joined(words, " ")), "&",
                    joined(offer == &kMethods ? ladders_of(words) : words, " "));
  }
};

Values values_of(const CLI::Option& o) {
  if (o.get_items_expected_max() == 0) return {};
  const std::string type = o.get_type_name();
  if (const std::vector<std::string> all = members(o); !all.empty()) return {&kWords, all};
  if (o.check_lname("method")) return {&kMethods, method_names()};
  if (o.check_lname("preset")) {
    Values out{&kWords, {"list"}};
    for (const Preset& preset : presets()) out.words.push_back(preset.name);
    return out;
  }
  if (type == "DIR") return {&kFolders};
  return {type == "FILE" || type == "MODEL" || type == "PATH" ? &kFiles : &kSomething};
}

// ---- man --------------------------------------------------------------------------------------

// troff gives '\', '-', and a '.' or ''' at the start of a line a special meaning.
std::string troff(const std::string& text) {
  std::string out = replaced(replaced("\n" + text, "\\", "\\e"), "-", "\\-");
  for (const char* first : {".", "'"}) out = replaced(out, cat("\n", first), cat("\n\\&", first));
  return out.substr(1);
}

std::string man_options(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* o : flags(app)) {
    out += cat(".TP\n\\fB", troff(joined(spellings(*o), ", ")), "\\fR");
    if (values_of(*o).any()) out += cat(" \\fI", troff(o->get_type_name()), "\\fR");
    out += cat("\n", troff(o->get_description()), "\n");
  }
  return out;
}

// The flags and examples of a verb, then those of the verbs below it.
std::string man_verb(const CLI::App& verb) {
  std::string out = man_options(verb);
  if (!verb.get_footer().empty()) out += cat(".PP\n.nf\n", troff(verb.get_footer()), "\n.fi\n");
  for (const CLI::App* below : verbs(verb)) {
    out += cat(".SH MRROPE ", troff(verb_words(*below)), "\n", troff(below->get_description()),
               ".\n", man_verb(*below));
  }
  return out;
}

// mrrope.1, which names the verbs, or the page of a verb: mrrope-eval.1.
std::string man(const CLI::App& app) {
  const bool main = app.get_parent() == nullptr;
  std::string name = path_of(app);
  std::replace(name.begin(), name.end(), ' ', '-');
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  std::string out =
      cat(".TH ", upper, " 1 \"\" \"mrrope ", version(), "\" \"User Commands\"\n.SH NAME\n",
          troff(name), " \\- ", troff(app.get_description()), "\n.SH SYNOPSIS\n\\fB",
          troff(path_of(app)), "\\fR ", verbs(app).empty() ? "" : "\\fIVERB\\fR ",
          "[\\fIOPTIONS\\fR]\n.SH OPTIONS\n");
  if (!main) return out + man_verb(app) + ".SH SEE ALSO\n\\fBmrrope\\fR(1)\n";
  out += man_options(app) + ".SH VERBS\n";
  for (const CLI::App* verb : verbs(app)) {
    out += cat(".TP\n\\fBmrrope\\-", verb->get_name(), "\\fR(1)\n", troff(verb->get_description()),
               "\n");
  }
  return cat(out, ".SH NOTES\n.nf\n", troff(app.get_footer()), "\n.fi\n");
}

// ---- Markdown ---------------------------------------------------------------------------------

// A cell of a table: a '|' would end it, and '<' would begin a tag.
std::string cell(const std::string& text) {
  return replaced(replaced(replaced(text, "\n", " "), "|", "\\|"), "<", "&lt;");
}

// A heading per verb, deeper for those below another one.
std::string markdown(const CLI::App& app, const char* heading = "##") {
  const std::string about = app.get_description();
  std::string out =
      cat(heading, " ", path_of(app), "\n\n", about, about.ends_with('.') ? "" : ".", "\n\n");
  const std::vector<const CLI::Option*> options = flags(app);
  if (!options.empty()) out += "| option | meaning |\n|---|---|\n";
  for (const CLI::Option* o : options) {
    std::string names = joined(spellings(*o), ", ");
    if (values_of(*o).any()) names += " " + o->get_type_name();
    if (!o->get_default_str().empty()) names += " (default " + o->get_default_str() + ")";
    out += cat("| `", replaced(replaced(names, "`", ""), "|", "\\|"), "` | ",
               cell(o->get_description()), " |\n");
  }
  if (!app.get_footer().empty()) out += cat("\n```text\n", app.get_footer(), "\n```\n");
  out += "\n";
  for (const CLI::App* verb : verbs(app)) {
    out += markdown(*verb, app.get_parent() == nullptr ? "##" : "###");
  }
  return out;
}

// ---- bash -------------------------------------------------------------------------------------

// One case per verb: which words may follow it, and what each of its flags takes. Adds the verbs.
std::string bash_cases(const CLI::App& app, std::vector<std::string>& paths) {
  const std::string path = cat("'", verb_words(app), "'");
  if (app.get_parent() != nullptr) paths.push_back(path);
  std::vector<std::string> words = verb_names(app);
  const bool leaf = words.empty();
  std::string takes;
  for (const CLI::Option* o : flags(app)) {
    const std::vector<std::string> names = spellings(*o);
    extend(words, names);
    if (const Values values = values_of(*o); values.any()) {
      takes +=
          cat("        ", joined(names, "|"), ") takes='", values.text(&Offer::bash), "' ;;\n");
    }
  }
  std::string out =
      cat("    ", path, ") words='", joined(words, " "), "'", leaf ? " files=yes" : "", "\n");
  if (!takes.empty()) out += cat("      case \"$flag\" in\n", takes, "      esac\n");
  out += "      ;;\n";
  for (const CLI::App* verb : verbs(app)) out += bash_cases(*verb, paths);
  return out;
}

// The shell splits words at ':' and '=', so elastic:pro and --ctx=8k arrive in three parts.
std::string bash(const CLI::App& app) {
  std::vector<std::string> paths;
  const std::string cases = bash_cases(app, paths);
  return replaced(replaced(embedded::completion_bash, "PATHS", joined(paths, "|")), "    # CASES\n",
                  cases);
}

// ---- zsh --------------------------------------------------------------------------------------

// Descriptions without the quoting characters of zsh and fish.
std::string plain(std::string text) {
  const auto odd = [](char c) { return std::string_view("'[]:\\\"").find(c) != std::string::npos; };
  std::replace_if(text.begin(), text.end(), odd, ' ');
  return text;
}

// A function per verb, those below it first.
std::string zsh_functions(const CLI::App& app, const std::string& name) {
  std::string out;
  std::string names;
  std::string cases;
  for (const CLI::App* verb : verbs(app)) {
    const std::string below = cat(name, "_", verb->get_name());
    out += zsh_functions(*verb, below);
    names += cat("      '", verb->get_name(), ":", plain(verb->get_description()), "'\n");
    cases += cat("    ", verb->get_name(), ") ", below, " ;;\n");
  }
  std::string options;
  for (const CLI::Option* o : flags(app)) {
    for (const auto& s : spellings(*o)) {
      options += cat(" \\\n    '", s, "[", plain(o->get_description()), "]",
                     values_of(*o).text(&Offer::zsh), "'");
    }
  }
  out += cat(name, "() {\n");
  if (!names.empty()) {
    out +=
        cat("  if (( CURRENT > 2 )) && [[ $words[2] != -* ]]; then\n    local verb=$words[2]\n",
            "    shift words\n    (( CURRENT-- ))\n    case $verb in\n", cases,
            "    esac\n    return\n  fi\n  if [[ $words[CURRENT] != -* ]] && (( CURRENT == 2 )); ",
            "then\n    local -a verbs=(\n", names, "    )\n    _describe verb verbs\n    return\n",
            "  fi\n");
  }
  return out + cat("  _arguments", options, " \\\n    '*:file:_files'\n}\n");
}

std::string zsh(const CLI::App& app) {
  const std::vector<std::string> names = method_names();
  // _values treats what follows a bare colon as an argument.
  const std::string ladders = replaced(joined(ladders_of(names), "' '"), ":", "\\:");
  return cat("#compdef mrrope\n_mrrope_methods() {\n  _values -s , method ", joined(names, " "),
             " '", ladders, "'\n}\n", zsh_functions(app, "_mrrope"), "_mrrope \"$@\"\n");
}

// ---- fish -------------------------------------------------------------------------------------

// `seen`: the condition that the verbs on the way to this one were typed.
std::string fish_verb(const CLI::App& app, const std::string& seen) {
  std::string out;
  const std::vector<std::string> names = verb_names(app);
  const std::string none_below =
      seen.empty() ? "__fish_use_subcommand"
                   : cat(seen, "; and not __fish_seen_subcommand_from ", joined(names, " "));
  const std::string here = names.empty() ? seen : none_below;
  for (const CLI::Option* o : flags(app)) {
    out += cat("complete -c mrrope -n '", here, "'");
    for (const auto& s : o->get_snames()) out += cat(" -s ", s);
    for (const auto& l : o->get_lnames()) out += cat(" -l ", l);
    out += cat(values_of(*o).text(&Offer::fish), " -d '", plain(o->get_description()), "'\n");
  }
  for (const CLI::App* verb : verbs(app)) {
    out += cat("complete -c mrrope -n '", none_below, "' -f -a ", verb->get_name(), " -d '",
               plain(verb->get_description()), "'\n");
    out += fish_verb(*verb, cat(seen, seen.empty() ? "" : "; and ", "__fish_seen_subcommand_from ",
                                verb->get_name()));
  }
  return out;
}

}  // namespace

std::string path_of(const CLI::App& verb) {
  const CLI::App* above = verb.get_parent();
  return above == nullptr ? verb.get_name() : cat(path_of(*above), " ", verb.get_name());
}

std::string verb_words(const CLI::App& verb) {
  const std::string path = path_of(verb);
  const std::size_t space = path.find(' ');
  return space == std::string::npos ? "" : path.substr(space + 1);
}

std::vector<std::string> verb_names(const CLI::App& app) {
  return mapped(verbs(app), [](const CLI::App* verb) { return verb->get_name(); });
}

CLI::App& add_named(CLI::App& above, const char* name) {
  CLI::App* verb = above.add_subcommand(name);
  return *verb->description(help_file("verbs").at(verb_words(*verb)));
}

CLI::Validator among(const std::vector<std::string>& words) {
  return CLI::Validator(CLI::IsMember(words)).operation([words](std::string& text) {
    if (has(words, text)) return std::string();
    std::string choices = joined({words.begin(), words.end() - 1}, ", ");
    return cat("takes ", choices, " or ", words.back(), ", not '", text, "'");
  });
}

CLI::Option* with_words(const CLI::App& verb, CLI::Option* option) {
  const auto& rows = help_file("flags");
  const std::string name = "--" + option->get_single_name();
  const CLI::App* owner = &verb;  // the verb with a row for it, or those above it
  while (owner->get_parent() != nullptr && !rows.contains(cat(verb_words(*owner), " ", name))) {
    owner = owner->get_parent();
  }
  const std::string words = verb_words(*owner);
  const nlohmann::json& row = rows.at(words.empty() ? name : cat(words, " ", name));
  const std::string type = row.value("type", "");
  option->description(row.at("help"));
  if (!type.empty()) option->type_name(type);
  if (option->get_items_expected_max() > 1) {
    // Each value is a flag of its own, or all are one list.
    type.ends_with(",...") ? option->delimiter(',') : option->take_all();
  }
  if (row.value("default", false)) option->capture_default_str();
  if (row.contains("least")) option->check(in_range(row["least"].get<int>(), kMostCounted));
  if (row.contains("among")) option->check(among(row["among"]));
  return option;
}

std::string footer_of(const CLI::App& app) {
  return joined(help_file("footers").value(verb_words(app), std::vector<std::string>()), "\n");
}

std::string help_text(const CLI::App& app, Detail detail) {
  std::string out = app.get_description() + "\n\n" + usage(app);
  const std::vector<const CLI::App*> below = verbs(app);
  if (!below.empty()) out += "\nVerbs:\n";
  for (const CLI::App* verb : below) out += row(verb->get_name(), verb->get_description());
  bool hidden = false;
  std::string daily;
  for (const auto& group : help_file("groups")) {
    const std::string title = group[0];
    std::string rows;
    for (const CLI::Option* o : app.get_options()) {
      if (o->get_group().empty() || group_of(*o) != title) continue;
      if (detail == Detail::daily && !has(help_file("daily"), o->get_single_name())) {
        hidden = true;
        continue;
      }
      rows += option_row(*o);
    }
    if (rows.empty()) continue;
    if (detail == Detail::daily) {
      daily += rows;
    } else {
      out += cat("\n", title, ":\n", rows);
    }
  }
  if (!daily.empty()) out += "\nFlags:\n" + daily;
  if (!app.get_footer().empty()) out += "\n" + app.get_footer() + "\n";
  if (hidden) out += "All flags: --help\n";
  return out;
}

std::string help_on(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string asked = joined(words, " ");
  std::string out;
  if (asked == "words") {
    for (const auto& term : nlohmann::json::parse(embedded::terms_json)) {
      out += row(term.at("term"), term.at("meaning"));
    }
    return out;
  }
  if (asked == "parameters") {
    for (const ParameterInfo& p : parameters()) {
      out += row(cat(p.name, "=", p.placeholder), std::string(p.help));
    }
    return out + "\nExample: --method 'far:pi(near=L/8,headroom=1.25)'\n";
  }
  const CLI::App& verb = verb_of(app, words);
  refuse_if(verb_words(verb) != asked, cat("there is no verb '", asked, "'"),
            cat(did_you_mean(words.empty() ? "" : words.back(), verb_names(verb)),
                "type: mrrope help, mrrope help words or mrrope help parameters"));
  return help_text(verb, Detail::all);
}

const CLI::App* verb_below(const CLI::App& app, const std::string& name) {
  const auto all = app.get_subcommands([&](const CLI::App* v) { return v->get_name() == name; });
  return all.empty() ? nullptr : all.front();
}

const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "-h") break;
    if (const CLI::App* verb = verb_below(app, word)) {
      return verb_of(*verb, {std::find(words.begin(), words.end(), word) + 1, words.end()});
    }
  }
  return app;
}

std::string generate(const CLI::App& app, const std::string& what) {
  if (what == "bash") return bash(app);
  if (what == "zsh") return zsh(app);
  if (what == "fish") return "# fish completion for mrrope\n" + fish_verb(app, "");
  if (what == "markdown") return markdown(app);
  return man(what == "man" ? app : verb_of(app, {what.substr(what.find('-') + 1)}));
}

}  // namespace mrrope::cli
