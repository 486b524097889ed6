// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/interrupt.h"
#include "base/text.h"
#include "cli/args/presets.h"
#include "eval/run/journal.h"
#include "eval/run/progress.h"
#include "export/engines.h"
#include "mrrope/error.h"
#include "mrrope/version.h"

namespace mrrope::cli {

namespace {

void report(const Error& e) {
  std::cerr << "mrrope: " << e.what() << "\n";
  if (!e.hint().empty()) std::cerr << "  " << e.hint() << "\n";
}

std::string typed;

// llama.cpp's short names of several letters, which the parser would take for single letters.
std::string long_name(const std::string& word) {
  static const std::map<std::string, std::string> names = {{"-ngl", "--gpu-layers"},
                                                           {"-ub", "--ubatch-size"},
                                                           {"-ctk", "--cache-type-k"},
                                                           {"-ctv", "--cache-type-v"},
                                                           {"-fa", "--flash-attn"}};
  const auto it = names.find(word);
  return it == names.end() ? word : it->second;
}

// What was typed wrong, and where the right spelling stands.
int usage_error(const CLI::App& app, const CLI::ParseError& e) {
  std::string verb;
  for (const CLI::App* sub : app.get_subcommands()) verb = cat(" ", sub->get_name());
  std::cerr << "mrrope: " << e.what() << "\n  see: mrrope" << verb << " --help\n";
  return int(ErrorKind::usage);
}

}  // namespace

void note(const std::string& text) { std::cerr << "note: " << text << "\n"; }

void write_output(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::cout << content;
  } else {
    write_atomically(path, content);
  }
}

const std::string& command_line() { return typed; }

void catch_interrupts() {
  std::signal(SIGINT, [](int) {
    request_interrupt();
    std::signal(SIGINT, SIG_DFL);
  });
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments;
  typed = "mrrope";
  for (int i = 1; i < argc; ++i) {
    typed += cat(" ", shell_word(argv[i]));
    arguments.push_back(long_name(argv[i]));
  }

  CLI::App app("Longer context for RoPE language models, without training.", "mrrope");
  app.set_version_flag("--version", cat("mrrope ", version()));
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(30);
  app.footer(
      "Examples:\n"
      "  mrrope inspect model.gguf --ctx 128k\n"
      "  mrrope plan model.gguf --method pro --ctx 128k -o plan.json\n"
      "  mrrope plan --rotary-dim 128 --rope-freq-base 5e5 --train-ctx 8192 --methods yarn,pro "
      "--scale 16\n"
      "Exit codes: 0 done, 1 failed, 2 usage, 3 unsupported model, 4 corrupt input,\n"
      "  5 out of memory, 6 goal not met, 130 interrupted.");
  std::string wanted;
  bool list_presets = false;
  app.add_option("--generate", wanted, "Print the manual page or a shell completion")
      ->type_name("man|bash|zsh|fish")
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  app.add_option("--preset",
                 "A table or figure of the paper as a command: mrrope --preset NAME MODEL")
      ->type_name("NAME");
  app.add_flag("--presets", list_presets, "List the presets");
  add_inspect(app);
  add_plan(app);
  add_generate(app);
  add_eval(app);
  add_export(app);
  add_theory(app);
  add_report(app);
  add_merge(app);
  add_tune(app);
  add_sweep(app);
  add_serve(app);
  add_demo(app);

  try {
    arguments = with_preset(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as the parser wants them
    app.parse(arguments);
    if (!wanted.empty()) {
      std::cout << generate(app, wanted);
    } else if (list_presets) {
      std::cout << preset_list();
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
    return usage_error(app, e);
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

}  // namespace mrrope::cli
