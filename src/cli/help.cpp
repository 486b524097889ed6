// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/words.h"

namespace mrrope::cli {

namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 30;

using Names = std::set<std::string>;

// Long names. What is in no group belongs to the task of the verb.
const std::vector<std::pair<const char*, Names>>& groups() {
  static const std::vector<std::pair<const char*, Names>> all = {
      {"Model",
       {"model", "train-ctx", "replace-scaling", "rotary-dim", "rope-freq-base", "vocab", "alias"}},
      {"Method", {"method", "scale", "ctx", "plan"}},
      {"Task", {}},
      {"Output", {"out", "json", "svg", "format", "dry-run", "v", "version", "help"}},
      {"Engine",
       {"gpu-layers", "threads", "ubatch-size", "cache-type-k", "cache-type-v", "flash-attn",
        "parallel", "kv-unified", "deterministic", "shard"}},
      {"Network",
       {"endpoint", "timeout", "host", "port", "api-key-file", "cors", "queue", "rpc",
        "slot-save-path"}}};
  return all;
}

const Names kDaily = {
    "model",  "method",   "ctx",     "plan",   "scale",   "prompt",  "predict",    "temp",
    "system", "chat",     "session", "text",   "lengths", "samples", "documents",  "tasks",
    "data",   "endpoint", "out",     "json",   "dry-run", "threads", "gpu-layers", "host",
    "port",   "to",       "prefer",  "budget", "preset",  "help",    "version",    "api-key-file"};

const char* group_of(const CLI::Option& o) {
  for (const auto& [title, names] : groups()) {
    if (names.count(o.get_single_name())) return title;
  }
  return "Task";
}

// Words from column `indent` on; the first line has `used` columns already.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t used) {
  std::string out;
  std::size_t column = used;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    start = end + 1;
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
  std::vector<std::string> names;
  for (const std::string& s : o.get_snames()) names.push_back("-" + s);
  for (const std::string& l : o.get_lnames()) names.push_back("--" + l);
  std::string name = joined(names, ", ");
  if (o.get_items_expected_max() > 0 && !o.get_type_name().empty()) {
    std::string type = o.get_type_name();
    type = type.substr(0, type.find(":{"));
    name += " " + type.substr(0, type.find(':'));
  }
  std::string text = o.get_description();
  if (const std::size_t open = o.get_type_name().find(":{"); open != std::string::npos) {
    const std::string words = o.get_type_name().substr(open + 2);
    const std::vector<std::string> all = split_list(words.substr(0, words.find('}')));
    if (text.find(all.front()) == std::string::npos) text += cat(" (", joined(all, ", "), ")");
  }
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

}  // namespace

std::string path_of(const CLI::App& verb) {
  const CLI::App* above = verb.get_parent();
  return above == nullptr ? verb.get_name() : cat(path_of(*above), " ", verb.get_name());
}

std::string help_text(const CLI::App& app, Detail detail) {
  std::string out = app.get_description() + "\n\n" + usage(app);
  std::string verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (!verb->get_group().empty()) verbs += row(verb->get_name(), verb->get_description());
  }
  if (!verbs.empty()) out += "\nVerbs:\n" + verbs;
  bool hidden = false;
  std::string daily;
  for (const auto& [title, names] : groups()) {
    std::string rows;
    for (const CLI::Option* o : app.get_options()) {
      if (o->get_group().empty() || group_of(*o) != std::string(title)) continue;
      if (detail == Detail::daily && !kDaily.count(o->get_single_name())) {
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

const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "-h") break;
    for (const CLI::App* verb : app.get_subcommands({})) {
      if (verb->get_name() != word) continue;
      return verb_of(*verb, {std::find(words.begin(), words.end(), word) + 1, words.end()});
    }
  }
  return app;
}

}  // namespace mrrope::cli
