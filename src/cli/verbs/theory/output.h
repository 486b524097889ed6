// SPDX-License-Identifier: Apache-2.0
// What every figure of mrrope theory shares: its flags, and where it goes.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/args/options.h"
#include "report/charts/table.h"
#include "report/figures.h"

namespace mrrope::cli {

struct TheoryFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  std::string svg, html, csv;
  bool json = false;
};
void add_theory_subject(CLI::App& figure, TheoryFlags& flags);
void add_theory_output(CLI::App& figure, TheoryFlags& flags);

// A file, the geometry flags, one of the named examples (llama2, llama3, qwen2.5), or llama2 with a
// note where nothing is given.
Subject theory_subject(const SubjectFlags& flags);

// The plans of --methods and --plan at --scale, --ctx or `usual_scale`; without --methods the
// usual ones.
std::vector<Candidate> theory_plans(const TheoryFlags& flags, const Geometry& geometry,
                                    double usual_scale);
// The plan of a candidate; of a ladder its last rung.
const Plan& plan_of(const Candidate& candidate);

struct TheoryResult {
  std::string title;
  std::string words;              // plain text above the tables
  std::vector<Figure> figures;    // charts
  std::vector<DataTable> tables;  // the first is what --csv writes
  nlohmann::ordered_json json;
};
void print_theory(const TheoryFlags& flags, const TheoryResult& result);

// One per file.
void add_theory_attention(CLI::App& theory);
void add_theory_claims(CLI::App& theory);

}  // namespace mrrope::cli
