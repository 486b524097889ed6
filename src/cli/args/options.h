// SPDX-License-Identifier: Apache-2.0
// Flags that mean the same on every verb, and what they become.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mrrope/ladder.h"
#include "mrrope/model.h"

namespace mrrope::cli {

// The largest number of samples, documents or positions that a flag takes. (CLI11 reads a negative
// number into an unsigned one without a word, so every such flag has a range.)
constexpr int kMostCounted = 1 << 24;

// "4096", "128k" (131072), "1m" (1048576). Throws Error (usage).
std::int64_t parse_length(const std::string& text);
// "1,1.5,2", or @FILE with a JSON list; flag is for the message. Throws Error (usage).
std::vector<double> parse_list(const std::string& text, const char* flag);

// The model, or a geometry without one.
struct SubjectFlags {
  std::string model;
  std::optional<int> rotary_dim;
  std::optional<double> base;
  std::string train_ctx;
  std::string pairing;
  bool replace_scaling = false;
};
// With the flags of a geometry without a file, for verbs that need no weights, or without.
enum class Takes { model, model_or_geometry };
void add_subject(CLI::App& verb, SubjectFlags& flags, Takes takes = Takes::model);

struct Subject {
  std::optional<Model> model;
  Geometry geometry;
};
bool given(const SubjectFlags& flags);
Subject resolve(const SubjectFlags& flags);

// The methods, and how far they reach.
struct ExtensionFlags {
  std::vector<std::string> methods;  // each a list in the notation of mrrope/method.h
  std::optional<double> scale;
  std::string ctx;
  // Short forms of parameters, in the order of parameters(): --low 5 for pro(low=5).
  std::vector<std::string> parameters = std::vector<std::string>(mrrope::parameters().size());
  std::vector<std::string> plan_files;
};
// Verbs that only pass methods on do not list the short forms: they work with a note, for one
// version.
enum class ShortForms { listed, hidden };
void add_extension(CLI::App& verb, ExtensionFlags& flags, ShortForms forms = ShortForms::hidden);

// The methods, with the short forms filled in: a single method must use all of them, of several
// each gets those that it uses. Throws Error (usage) for one that none uses.
std::vector<MethodSpec> method_specs(const ExtensionFlags& flags);

// A method as a row of a table.
struct Candidate {
  std::string name;  // its notation, the path of a plan file, or "vendor"
  Ladder ladder;
  MethodSpec method = {};  // as asked for; that of `auto` is not resolved

  const Plan& plan() const { return ladder.rungs().back().plan; }
  // What auto stands for in this ladder; empty for other methods.
  std::string meaning() const;
};
// A note on stderr for a candidate that is auto.
void note_auto(const std::vector<Candidate>& candidates);

// Throws Error (usage) where both --ctx and --scale say how far a method reaches.
void check_reach(const ExtensionFlags& flags);

// One candidate per method and per plan file. The geometry may be absent if all come from files.
std::vector<Candidate> resolve(const ExtensionFlags& flags,
                               const std::optional<Geometry>& geometry);

// Throws Error (usage) for flags that change the plan of a method, where there is only `source`: a
// plan file or --from.
void refuse_without_method(const ExtensionFlags& flags, const char* source);

// The ladder, with the only rung of a static method up to `length`.
Ladder up_to(const Ladder& ladder, std::int64_t length);

// --ctx; without it how many tokens the ladder was made for. Headroom is extra scale, not
// extra length.
std::int64_t length_asked_for(const ExtensionFlags& flags, const Ladder& ladder);

// The flags that give the geometry of a model file again: " --train-ctx 512", or nothing.
std::string geometry_words(const SubjectFlags& flags);

// The row "vendor" of a comparison: the scaling that the model's own files recommend for `ctx`
// tokens, unless `none` includes it already. Absent for most models.
std::optional<Candidate> vendor_plan(const Model& model, bool replaced, std::int64_t ctx);

// The declared scaling of a model as a plan on its plain geometry. Throws Error (usage) if the file
// declares none.
Candidate declared_plan(const std::string& model_path);

}  // namespace mrrope::cli
