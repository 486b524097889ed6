// SPDX-License-Identifier: Apache-2.0
// The figures of the paper: each builder turns plans into text, charts, tables
// and JSON. Nothing here reads flags, opens a model or prints.
#pragma once

#include <nlohmann/json.hpp>

#include "model/timeline_model.h"
#include "report/page/html_page.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

struct TheoryFigure {
  std::string title;
  std::string words;                        // plain text above charts and tables
  std::string details;                      // more of it, for a terminal
  std::vector<report::Figure> figures;      // charts
  std::vector<report::DataTable> page;      // tables of a page
  std::vector<report::DataTable> terminal;  // tables of a terminal, which has less room
  report::DataTable data;                   // what a CSV file gets
  ordered_json json;
};

struct NamedPlan {
  std::string name;
  Plan plan;
};

std::string page_of(const TheoryFigure& figure);

// ---- What the figures share.

// The longest text that one of the plans is meant for, at least the window.
double reach_of(const Geometry& geometry, const std::vector<NamedPlan>& plans);
// The geometry behind a figure, for its text and its JSON.
std::string geometry_text(const Geometry& geometry);
ordered_json geometry_fields(const Geometry& geometry);
// Lines without dots over positions or distances, with a mark at the window.
report::LineChart curve_chart(const Geometry& geometry, std::string title, report::Axis x,
                              std::string y_label);
void add_chart(TheoryFigure& figure, const std::string& file, report::LineChart chart,
               const std::string& note = {});
// A table without rows yet.
report::DataTable new_table(std::string caption, std::vector<std::string> header,
                            std::size_t text_columns = 1, bool text_at_end = false);
// For figures with one table, which goes everywhere.
void set_table(TheoryFigure& figure, report::DataTable table);

// ---- The figures.

// Positions as digits of a mixed radix, and back. No positions given: some around the window.
TheoryFigure digits_figure(const Geometry& geometry, const std::vector<NamedPlan>& plans,
                           std::vector<std::int64_t> positions);

// The position that has these digits, one value per pair, as digits_figure() shows them: four
// significant digits of each are enough. Throws Error (usage) where no plan has such a position.
TheoryFigure position_figure(const Geometry& geometry, const std::vector<NamedPlan>& plans,
                             const std::vector<double>& values);

// The position that the angles suggest, by base. No bases given: the default ones and the model's.
TheoryFigure estimate_figure(const Geometry& geometry, std::vector<double> bases,
                             std::int64_t length);

// Cumulative factor and lambda of every plan. Plans of one group share a pair of charts.
struct PlanGroup {
  std::string name;  // appended to the titles of its charts, e.g. " at scale 16"
  std::vector<NamedPlan> plans;
};
TheoryFigure factors_figure(const Geometry& geometry, const std::vector<PlanGroup>& groups);

// The distance at which the last of so many tokens sees the others, in the fastest and the slowest
// pair; in one chart where every pair sees the same.
struct NamedLadder {
  std::string name;
  Ladder ladder;
};
TheoryFigure distance_figure(const Geometry& geometry, const std::vector<NamedLadder>& ladders,
                             std::int64_t length);

// The scale of each method at every length.
TheoryFigure ladder_figure(const Geometry& geometry, const std::vector<NamedLadder>& ladders);

// What each method multiplies queries by at every length.
TheoryFigure sharpness_figure(const Geometry& geometry, const std::vector<NamedLadder>& ladders);

// Errors of cosines and sines against the position, of mrrope and of a product of floats.
TheoryFigure rounding_figure(const Geometry& geometry);

// The sum of cosines, and where it turns negative. length 0: as far as the plans reach.
TheoryFigure bound_figure(const Geometry& geometry, const std::vector<NamedPlan>& plans,
                          std::int64_t length);

// Where the sum of cosines first turns negative, against the scale: one group per scale, with
// the same names in each. Scales ascend. length: positions to search.
TheoryFigure roots_figure(const Geometry& geometry, const std::vector<double>& scales,
                          const std::vector<PlanGroup>& groups, std::int64_t length);

// Scores of the middle pairs against distance, of a model as it runs: every plan has read a text of
// `tokens` tokens, and a distance is one between two of them. First the places to look at, then the
// figure of what was there.
struct AttentionRequest {
  std::string model;  // its name
  int pairs = 50;     // token pairs per distance
  std::uint64_t seed = 1;
};
struct AttentionPlaces {
  std::int64_t tokens = 0;
  std::vector<std::int64_t> distances;
  std::vector<PairPlace> places;  // request.pairs of each distance
  std::vector<PairPlace> inside;  // the same inside the window, for the unmodified model
};
AttentionPlaces draw_places(const Geometry& geometry, const std::vector<LayerHeads>& layers,
                            std::int64_t tokens, const AttentionRequest& request);

// rotated: per plan, what was read at each of drawn.places. inside: the unmodified model at
// drawn.inside, after the window's tokens.
TheoryFigure attention_figure(const Geometry& geometry, const std::vector<NamedPlan>& plans,
                              const AttentionPlaces& drawn,
                              const std::vector<std::vector<RotatedPair>>& rotated,
                              const std::vector<RotatedPair>& inside,
                              const AttentionRequest& request);

// The claims of the paper with our verdicts, from data/paper.json.
TheoryFigure claims_figure();

}  // namespace mrrope::theory
