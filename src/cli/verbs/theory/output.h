// SPDX-License-Identifier: Apache-2.0
// What all figures of mrrope theory share: flags and output.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/args/options.h"
#include "theory/theory_figure.h"

namespace mrrope::cli {

struct TheoryFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  std::string svg, html, csv;
  bool json = false;
};
void add_theory_subject(CLI::App& figure, TheoryFlags& flags);
void add_theory_output(CLI::App& figure, TheoryFlags& flags);

// A file, the geometry flags, one of the named examples (llama2, llama3, qwen2.5), or, if nothing
// is given, llama2 with a note.
Subject theory_subject(const SubjectFlags& flags);

// Of the first plan file, if nothing is given but files.
Geometry theory_geometry(const TheoryFlags& flags);

// What --methods and --plan give at --scale or --ctx; where those are not given, of these methods
// and at this scale, which `extension` then has. Throws Error (usage) if a plan file is of another
// model.
std::vector<Candidate> theory_candidates(ExtensionFlags& extension, const Geometry& geometry,
                                         const char* methods, double scale);

// The same as plans, by default those of the paper. Of a ladder, its last rung.
std::vector<theory::NamedPlan> theory_plans(const TheoryFlags& flags, const Geometry& geometry,
                                            double default_scale);
void print_theory(const TheoryFlags& flags, const theory::TheoryFigure& figure);

void add_theory_attention(CLI::App& theory);

}  // namespace mrrope::cli
