// SPDX-License-Identifier: Apache-2.0
// mrrope models: what is in the caches of llama.cpp, Hugging Face and ollama, by name.
#include <iostream>

#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "core/methods.h"
#include "hub/hub.h"

namespace mrrope::cli {

namespace {

struct ModelRow {
  hub::LocalModel model;
  std::uint64_t bytes = 0;
  std::int64_t window = 0;
  std::string meaning{};  // of auto at four windows
};

ModelRow row_of(const hub::LocalModel& model) {
  ModelRow row{model};
  if (model.path.empty()) return row;
  try {
    const Model facts = read_model(model.path);
    std::error_code error;
    for (const std::filesystem::path& file : facts.files) {
      const auto size = std::filesystem::file_size(file, error);
      if (!error) row.bytes += size;
    }
    row.window = facts.geometry.train_length;
    row.meaning =
        to_string(resolve_auto(facts.geometry, {.name = std::string(kAuto)}, 4 * row.window));
  } catch (const Error& e) {
    row.model.problem = e.what();
  }
  return row;
}

ordered_json to_json(const ModelRow& row) {
  ordered_json out = {{"name", row.model.name}, {"path", row.model.path.string()}};
  if (!row.model.problem.empty()) {
    out["problem"] = row.model.problem;
    return out;
  }
  out["bytes"] = row.bytes;
  out["window"] = row.window;
  out["auto"] = {{"ctx", 4 * row.window}, {"meaning", row.meaning}};
  return out;
}

void print_rows(const std::vector<ModelRow>& rows) {
  std::vector<TextRow> table = {{"name", "size", "window", "auto at 4 windows"}};
  for (const ModelRow& row : rows) {
    const std::string name = printable(row.model.name);
    if (row.model.problem.empty()) {
      table.push_back({name, bytes_text(double(row.bytes)), length_text(row.window), row.meaning});
    } else {
      table.push_back({name, "", "", printable("cannot be used: " + row.model.problem)});
    }
  }
  std::cout << aligned(table, {0, 3});
}

void run_models(bool json) {
  const std::vector<ModelRow> rows = mapped(hub::local_models(), row_of);
  if (json) {
    std::cout << json_text(ordered_json(mapped(rows, to_json)), 2) << "\n";
  } else if (rows.empty()) {
    const auto text = [](const std::filesystem::path& folder) { return folder.string(); };
    std::cout << "No models in " << joined(mapped(hub::model_folders(), text), ", ")
              << ".\nTo get one: mrrope chat -hf USER/REPO[:QUANT]\n";
  } else {
    print_rows(rows);
  }
}

}  // namespace

void add_models(CLI::App& app) {
  const auto [verb, json] = add_verb<bool>(app, "models", run_models);
  add(verb, "--json", json);
}

}  // namespace mrrope::cli
