// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>

#include "base/files/output_file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/args/options.h"
#include "cli/args/presets.h"
#include "cli/run.h"
#include "mrrope/version.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace mrrope::cli {

namespace {

void report(const Error& e) {
  std::cerr << "mrrope: " << e.what() << "\n";
  if (!e.hint().empty()) std::cerr << "  " << e.hint() << "\n";
}

std::string as_typed;

bool is_list(const CLI::Option& o) { return o.nonpositional() && o.get_items_expected_max() > 1; }

// Of a verb and those below it.
void complete_verb(CLI::App& app) {
  app.footer(footer_of(app));
  for (CLI::Option* o : app.get_options()) {
    // One value per flag, so that a list before the model does not swallow it: the parser's default
    // is to take every word up to the next flag.
    if (is_list(*o)) o->allow_extra_args(false);
  }
  for (CLI::App* verb : app.get_subcommands({})) complete_verb(*verb);
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options()) {
    for (const auto& name : o->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The hint for a word that nothing takes: did it follow a list flag?
std::string list_hint(const CLI::App& verb, const std::vector<std::string>& arguments,
                      const std::string& word) {
  std::string flag;
  for (const std::string& argument : arguments) {
    if (argument == word) break;
    if (argument.size() > 1 && argument[0] == '-') flag = argument;
  }
  const CLI::Option* o = flag.empty() ? nullptr : verb.get_option_no_throw(flag);
  if (o == nullptr || !is_list(*o)) return {};
  return cat("for several values repeat the flag: ", flag, " A ", flag, " B",
             o->get_type_name() == "FILE" ? ", or give a folder; " : "; ");
}

// "Could not convert: --scale = abc" as a sentence.
std::string conversion_text(const CLI::App& verb, const std::string& what) {
  const std::size_t flag = what.find(": ");
  const std::size_t value = what.find(" = ");
  if (flag == std::string::npos || value == std::string::npos) return what;
  const std::string name = what.substr(flag + 2, value - flag - 2);
  const std::string text = cat("'", what.substr(value + 3), "'");
  const CLI::Option* o = verb.get_option_no_throw(name);
  if (o != nullptr && o->get_items_expected_max() == 0) return cat(name, " takes no value: ", text);
  const std::optional<double> number = parse_double(what.substr(value + 3));
  if (!number) return cat(name, " takes a number, not ", text);
  if (*number == std::floor(*number)) return cat(text, " is out of the range of ", name);
  return cat(name, " takes a whole number, not ", text);
}

// "--to: takes gguf or hf, not 'onnx'" and "--system: 1 required TEXT missing" as sentences.
std::string value_text(const std::string& what) {
  const std::size_t colon = what.find(": ");
  if (colon == std::string::npos || (colon > 0 && what[0] != '-')) return what;
  // The parser does not name flags that the help does not list.
  const std::string flag = colon > 0 ? what.substr(0, colon) : "this flag";
  const std::string rest = what.substr(colon + 2);
  if (rest.find(" required ") < 20 && rest.ends_with(" missing")) return flag + " needs a value";
  return rest.starts_with("takes ") ? cat(flag, " ", rest) : what;
}

// What was typed wrong, and what to type instead.
Error usage_error(const CLI::App& app, const CLI::ParseError& e,
                  const std::vector<std::string>& arguments) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  const std::string path = path_of(*verb);
  const std::string see = cat("see: ", path, " --help");
  const auto make = [&](const std::string& message, const std::string& hint) {
    return Error(ErrorKind::usage, message, hint + see);
  };
  const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr ||
                       dynamic_cast<const CLI::RequiredError*>(&e) != nullptr;
  const std::vector<std::string> rest = app.remaining(true);
  if (dynamic_cast<const CLI::ConversionError*>(&e) != nullptr) {
    return make(conversion_text(*verb, e.what()), "");
  }
  const std::string what = e.what();
  if (const std::size_t end = what.find(": At Most 1 required"); end != std::string::npos) {
    return make(what.substr(0, end) + " is given more than once", "give it once; ");
  }
  if (!unknown) return make(value_text(what), "");
  // A model without a verb, as llama.cpp's programs take it.
  const std::string first = verb != &app || rest.empty() ? "" : rest.front();
  if (first.starts_with('-')
          ? app.get_subcommand("chat")->get_option_no_throw(first.substr(0, first.find('='))) !=
                nullptr
          : first.ends_with(".gguf") || first.find_first_of("/:") != std::string::npos) {
    return make("a verb comes first", cat("type: mrrope chat", as_typed.substr(6), "; "));
  }
  for (const std::string& word : rest) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    if (verb->get_option_no_throw(flag) != nullptr) {
      return make(flag + " comes before its verb", cat("type: ", path, " ", flag, " ...; "));
    }
    return make(cat(path, " has no flag ", flag), did_you_mean(flag, flag_names(*verb)));
  }
  const std::vector<std::string> below = verb_names(*verb);
  if (!below.empty() && !rest.empty()) {
    std::string hint = did_you_mean(rest.front(), below);
    if (hint.empty() && verb != &app) hint = cat("it has ", joined(below, ", "), "; ");
    return make(cat("'", rest.front(), "' is not a verb of ", path), hint);
  }
  if (!below.empty()) return make(cat(path, " needs a verb: ", joined(below, ", ")), "");
  if (!rest.empty()) {
    std::string hint = list_hint(*verb, arguments, rest.front());
    if (hint.empty() && verb->get_option_no_throw("--prompt") != nullptr) {
      hint = cat("give a prompt as -p ", shell_word(rest.front()), "; ");
    }
    return make(cat("unexpected argument '", rest.front(), "'"), hint);
  }
  if (what.ends_with(" is required") && !what.starts_with('-')) {
    return make(cat("no ", what.substr(0, what.find(' ')), " given"), "");
  }
  return make(what, "");
}

std::map<int, std::string> last_words;  // by signal

// A crash says which signal it was and, if it was an instruction that the processor does not have,
// what to type.
void explain_crashes() {
  using Named = std::pair<int, const char*>;
  for (const auto& [signal, name] :
       {Named{SIGILL, "SIGILL"}, Named{SIGSEGV, "SIGSEGV"}, Named{SIGBUS, "SIGBUS"},
        Named{SIGFPE, "SIGFPE"}, Named{SIGABRT, "SIGABRT"}}) {
    struct sigaction current {};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_DFL) continue;  // a sanitizer says more
    last_words[signal] = cat("mrrope: ended by signal ", signal, " (", name, ")\n");
    std::signal(signal, [](int crash) {
      const std::string& words = last_words.find(crash)->second;
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
      std::signal(crash, SIG_DFL);
      std::raise(crash);
    });
  }
  const char* command = std::getenv("MRROPE_COMMAND");  // ./run sets it
  if (command && *command && !std::strstr(command, " --")) {
    last_words[SIGILL] +=
        cat("  To build without the newest instructions of this processor: ", command,
            " --portable", as_typed.substr(std::strlen("mrrope")), "\n");
  }
}

namespace fs = std::filesystem;

// The folder of the running command; empty where the system does not tell.
fs::path executable_folder() {
  std::error_code error;
#ifdef __APPLE__
  char buffer[4096];
  std::uint32_t size = sizeof buffer;
  if (_NSGetExecutablePath(buffer, &size) != 0) return {};
  const fs::path executable = fs::canonical(buffer, error);
#else
  const fs::path executable = fs::canonical("/proc/self/exe", error);
#endif
  return error ? fs::path() : executable.parent_path();
}

bool complete(const fs::path& home) {
  return path_exists(home / "models" / "mrrope-tiny.gguf") && path_exists(home / "data" / "texts");
}

}  // namespace

void note(const std::string& text) { std::cerr << "note: " << text << "\n"; }

void write_output(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::cout << content;
  } else {
    refuse_input(path);
    write_atomically(path, content);
  }
}

const std::string& command_line() { return as_typed; }

void catch_interrupts() {
  for (const int stop : {SIGINT, SIGTERM}) {
    std::signal(stop, [](int signal) {
      static std::chrono::steady_clock::time_point asked;
      const auto now = std::chrono::steady_clock::now();
      if (!interrupt_requested()) {
        asked = now;
        request_interrupt();
      } else if (now - asked > std::chrono::milliseconds(200)) {
        std::signal(signal, SIG_DFL);
        std::raise(signal);
      }
    });
  }
}

int run(int argc, char** argv) {
  // A limit on file sizes is then an error of write(), which removes what it had begun.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> arguments;
  as_typed = "mrrope";
  for (int i = 1; i < argc; ++i) {
    as_typed += cat(" ", shell_word(argv[i]));
    arguments.emplace_back(argv[i]);
  }
  explain_crashes();

  CLI::App app("Longer context for RoPE language models, without training.", "mrrope");
  app.set_version_flag(
      "--version",
      [] {
        const std::string code = engine::processor_code();
        return cat("mrrope ", version(), code.empty() ? "" : "\nprocessor code: " + code);
      },
      "Print the version, and stop");
  app.require_subcommand(0, 1);
  app.set_help_flag("--help", "Show all flags; -h shows the daily ones");
  app.formatter_fn([](const CLI::App* verb, const std::string&, CLI::AppFormatMode) {
    return help_text(*verb, Detail::all);
  });
  std::string wanted;
  CLI::Option* what =
      app.add_option(
             "--generate", wanted,
             "Print a manual page (man, man-VERB), all of them as Markdown, or a completion")
          ->type_name("WHAT")
          ->group("");  // for packages
  app.add_option("--preset",
                 "Run a table or figure of the paper: mrrope --preset NAME MODEL; list: show all")
      ->type_name("NAME");
  for (const auto add :
       {add_inspect, add_models, add_plan, add_chat, add_generate, add_eval, add_export, add_theory,
        add_report, add_merge, add_tune, add_serve, add_demo}) {
    add(app);
  }
  std::vector<std::string> made = {"man", "markdown", "bash", "zsh", "fish"};
  for (const std::string& verb : verb_names(app)) made.push_back("man-" + verb);
  what->check(among(made));
  complete_verb(app);

  try {
    if (const std::string list = preset_list(arguments); !list.empty()) {
      std::cout << list;
      return 0;
    }
    if (!arguments.empty() && arguments[0] == "help") {
      std::cout << help_on(app, {arguments.begin() + 1, arguments.end()});
      return 0;
    }
    arguments = with_preset(app, arguments);
    const auto typed = [&](const char* word) { return std::ranges::count(arguments, word) > 0; };
    if (chosen_preset() != nullptr && (typed("--help") || typed("-h"))) {
      std::cout << preset_help(*chosen_preset());
      return 0;
    }
    if (typed("-h")) {
      std::cout << help_text(verb_of(app, arguments), Detail::daily);
      return 0;
    }
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // last one first
    if (!wanted.empty()) {
      std::cout << generate(app, wanted);
    } else if (app.get_subcommands().empty()) {
      std::cout << app.help();
      if (argc > 1) return int(ErrorKind::usage);
    }
    std::cout.flush();
    if (!std::cout) throw Error(ErrorKind::failed, "cannot write to standard output");
    return 0;
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help, --version
  } catch (const CLI::ParseError& e) {
    report(usage_error(app, e, arguments));
    return int(ErrorKind::usage);
  } catch (const Error& e) {
    report(e);
    return e.exit_code();
  } catch (const std::bad_alloc&) {
    std::cerr << "mrrope: out of memory\n";
    return int(ErrorKind::out_of_memory);
  } catch (const std::exception& e) {
    std::cerr << "mrrope: " << e.what() << "\n";
    return int(ErrorKind::failed);
  }
}

fs::path project_files() {
  if (const char* set = std::getenv("MRROPE_HOME"); set != nullptr && *set != '\0') {
    if (complete(set)) return set;
    throw Error(ErrorKind::failed,
                cat("MRROPE_HOME is ", set, ", which has no models/mrrope-tiny.gguf or data/texts"),
                "unset it, or set it to the folder of the mrrope sources");
  }
  const fs::path bin = executable_folder();
  throw_if(bin.empty(), ErrorKind::failed, "the system does not tell where the running command is",
           "set MRROPE_HOME to the folder with models/ and data/");
  fs::path home = (bin / MRROPE_SHARE).lexically_normal();
  if (complete(home)) return home;
  throw Error(ErrorKind::failed,
              cat("the bundled model and texts are not in ", home.string(),
                  ", where an installation has them"),
              "install mrrope again, or set MRROPE_HOME to a folder with models/ and data/");
}

bool stdout_takes_colour() {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (term == nullptr || std::string(term) != "dumb") &&
         (no_color == nullptr || *no_color == '\0');
}

}  // namespace mrrope::cli
