// SPDX-License-Identifier: Apache-2.0
// The command: one App with a verb per file, and what all verbs share.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace mrrope::cli {

// A line on stderr that starts with "note:".
void note(const std::string& text);

// Writes a file in full or not at all; "-" is stdout. Throws Error: failed, and usage if the file
// is an input of this command.
void write_output(const std::string& path, const std::string& content);

// Writes the page of a run folder, or of those below it, into it; with a note.
void write_report(const std::string& folder);

// The command as typed, quoted for a shell, so that it can be run again.
const std::string& command_line();

// From here on the first Ctrl-C or SIGTERM asks for a stop (base/interrupt.h), the second one ends
// the process. One that comes at once is the first again: sent to a process group, and passed on by
// ./run.
void catch_interrupts();

// The folder with models/ and data/: MRROPE_HOME if set, else share/mrrope of the installation or
// build folder that the command runs from. Throws Error (failed).
std::filesystem::path project_files();

// A terminal that takes colours, and a user who wants them (NO_COLOR).
bool stdout_takes_colour();

// One per verb. Each adds its subcommand, with a callback that does the work.
void add_plan(CLI::App& app);
void add_inspect(CLI::App& app);
void add_models(CLI::App& app);
void add_generate(CLI::App& app);
void add_chat(CLI::App& app);
void add_eval(CLI::App& app);
void add_export(CLI::App& app);
void add_theory(CLI::App& app);
void add_report(CLI::App& app);
void add_merge(CLI::App& app);
void add_tune(CLI::App& app);
void add_serve(CLI::App& app);
void add_demo(CLI::App& app);

// -h shows the daily flags, --help all of them in groups. At most 100 columns.
enum class Detail { daily, all };
std::string help_text(const CLI::App& app, Detail detail);
// What stands below them: examples, for the most part.
std::string footer_of(const CLI::App& app);
// mrrope help: all flags of the verb that the words name, what words mean ("words"), or the
// parameters of methods ("parameters"). Throws Error (usage).
std::string help_on(const CLI::App& app, const std::vector<std::string>& words);

// "mrrope eval ppl", and the same without "mrrope".
std::string path_of(const CLI::App& verb);
std::string verb_words(const CLI::App& verb);

// The verbs directly below this one; old names are not listed.
std::vector<std::string> verb_names(const CLI::App& app);

// The verb of this name directly below, old names included, or nullptr.
const CLI::App* verb_below(const CLI::App& app, const std::string& name);

// The verb that the words name: "eval ppl" of {"eval", "ppl", "model.gguf", "-h"}.
const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& words);

// Man page, reference and shell completions from the table behind --help: "man", "markdown",
// "bash", "zsh" or "fish".
std::string generate(const CLI::App& app, const std::string& what);

}  // namespace mrrope::cli
