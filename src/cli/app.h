// SPDX-License-Identifier: Apache-2.0
// The command: one App with a verb per file, and the manners all verbs share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mrrope::cli {

// Parses, runs, and turns every failure into a message on stderr and an exit code.
int run(int argc, char** argv);

// A line on stderr that starts with "note:".
void note(const std::string& text);

// Writes a file in full or not at all: under a temporary name first, then renamed.
// "-" is stdout. Throws Error (failed).
void write_output(const std::string& path, const std::string& content);

// One per verb. Each adds its subcommand, with a callback that does the work.
void add_plan(CLI::App& app);
void add_inspect(CLI::App& app);

// Man page and shell completions from the table behind --help: "man", "bash", "zsh" or "fish".
std::string generate(const CLI::App& app, const std::string& what);

}  // namespace mrrope::cli
