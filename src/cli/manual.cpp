// SPDX-License-Identifier: Apache-2.0
// The man page and the shell completions, from the same option table as --help.
#include <algorithm>

#include "base/text.h"
#include "cli/app.h"
#include "mrrope/version.h"

namespace mrrope::cli {

namespace {

std::vector<const CLI::App*> verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_name().empty(); });
}

std::vector<const CLI::Option*> flags(const CLI::App& app) {
  return app.get_options([](const CLI::Option* o) { return o->nonpositional(); });
}

// -c, --ctx: every spelling of an option.
std::vector<std::string> spellings(const CLI::Option& o) {
  std::vector<std::string> out;
  for (const auto& s : o.get_snames()) out.push_back("-" + s);
  for (const auto& l : o.get_lnames()) out.push_back("--" + l);
  return out;
}

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : between) + part;
  return out;
}

bool takes_value(const CLI::Option& o) { return o.get_items_expected_max() > 0; }

// Does the value name a file? Then a shell completes paths.
bool takes_file(const CLI::Option& o) {
  const std::string type = o.get_type_name();
  return type == "FILE" || type == "MODEL" || type == "DIR";
}

// troff reads '\', a leading '.' or ''', and '-' in its own way.
std::string troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

std::string man_options(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* o : flags(app)) {
    out += cat(".TP\n\\fB", troff(joined(spellings(*o), ", ")), "\\fR");
    if (takes_value(*o)) out += cat(" \\fI", troff(o->get_type_name()), "\\fR");
    out += cat("\n", troff(o->get_description()), "\n");
  }
  return out;
}

std::string man(const CLI::App& app) {
  std::string out = cat(".TH MRROPE 1 \"\" \"mrrope ", version(), "\" \"User Commands\"\n",
                        ".SH NAME\nmrrope \\- ", troff(app.get_description()), "\n",
                        ".SH SYNOPSIS\n\\fBmrrope\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR]\n",
                        ".SH OPTIONS\n", man_options(app));
  for (const CLI::App* verb : verbs(app)) {
    out += cat(".SH MRROPE ", troff(verb->get_name()), "\n", troff(verb->get_description()), ".\n",
               man_options(*verb));
    if (!verb->get_footer().empty()) out += cat(".PP\n.nf\n", troff(verb->get_footer()), "\n.fi\n");
  }
  return out + cat(".SH NOTES\n.nf\n", troff(app.get_footer()), "\n.fi\n");
}

std::string all_spellings(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : flags(app)) {
    for (const auto& s : spellings(*o)) out.push_back(s);
  }
  return joined(out, " ");
}

std::string bash(const CLI::App& app) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* verb : verbs(app)) {
    names.push_back(verb->get_name());
    cases += cat("    ", verb->get_name(), ") words=\"", all_spellings(*verb), "\" ;;\n");
  }
  return cat(
      "# bash completion for mrrope\n"
      "_mrrope() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" words\n"
      "  case \"${COMP_CWORD}:${COMP_WORDS[1]}\" in\n"
      "    1:*) words=\"",
      joined(names, " "), " ", all_spellings(app),
      "\"; COMPREPLY=($(compgen -W \"$words\" -- \"$word\")); return ;;\n  esac\n"
      "  case \"${COMP_WORDS[1]}\" in\n",
      cases,
      "  esac\n"
      "  if [[ \"$word\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _mrrope mrrope\n");
}

// zsh and fish want descriptions without their own quoting characters.
std::string plain(std::string text) {
  const auto odd = [](char c) { return std::string_view("'[]:\\\"").find(c) != std::string::npos; };
  std::replace_if(text.begin(), text.end(), odd, ' ');
  return text;
}

std::string zsh(const CLI::App& app) {
  std::string names;
  std::string cases;
  for (const CLI::App* verb : verbs(app)) {
    names += cat("    '", verb->get_name(), ":", plain(verb->get_description()), "'\n");
    cases += cat("    ", verb->get_name(), ") _arguments");
    for (const CLI::Option* o : flags(*verb)) {
      for (const auto& s : spellings(*o)) {
        cases += cat(" \\\n      '", s, "[", plain(o->get_description()), "]");
        if (takes_value(*o)) cases += takes_file(*o) ? ":file:_files" : ":value:";
        cases += "'";
      }
    }
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return cat("#compdef mrrope\n_mrrope() {\n  local -a verbs=(\n", names,
             "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n",
             "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n", cases,
             "  esac\n}\n_mrrope \"$@\"\n");
}

std::string fish(const CLI::App& app) {
  std::string out = "# fish completion for mrrope\n";
  for (const CLI::App* verb : verbs(app)) {
    out += cat("complete -c mrrope -n __fish_use_subcommand -f -a ", verb->get_name(), " -d '",
               plain(verb->get_description()), "'\n");
    for (const CLI::Option* o : flags(*verb)) {
      out += cat("complete -c mrrope -n '__fish_seen_subcommand_from ", verb->get_name(), "'");
      for (const auto& s : o->get_snames()) out += cat(" -s ", s);
      for (const auto& l : o->get_lnames()) out += cat(" -l ", l);
      if (takes_value(*o)) out += takes_file(*o) ? " -r" : " -x";
      out += cat(" -d '", plain(o->get_description()), "'\n");
    }
  }
  return out;
}

}  // namespace

std::string generate(const CLI::App& app, const std::string& what) {
  if (what == "bash") return bash(app);
  if (what == "zsh") return zsh(app);
  if (what == "fish") return fish(app);
  return man(app);
}

}  // namespace mrrope::cli
