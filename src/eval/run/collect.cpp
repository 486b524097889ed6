// SPDX-License-Identifier: Apache-2.0
#include "eval/run/collect.h"

#include <set>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

void check_task(const ordered_json& run, std::string_view task) {
  if (run.at("task") == task) return;
  throw Error(ErrorKind::corrupt, cat("run.json is not of a run of ", task),
              cat("give the folder of mrrope eval ", task));
}

std::map<std::string, std::size_t> method_indices(const ordered_json& run) {
  std::map<std::string, std::size_t> methods;
  std::size_t index = 0;
  for (const ordered_json& entry : run.at("methods")) {
    methods.emplace(entry.at("method").get<std::string>(), index++);
  }
  return methods;
}

std::size_t collect(const ordered_json& run, const std::vector<ordered_json>& units,
                    const MakePlaceOf& places,
                    const std::function<void(std::size_t, const ordered_json&)>& use) {
  const std::map<std::string, std::size_t> methods = method_indices(run);
  const PlaceOf place_of = places(run);
  const auto task = run.at("task").get<std::string>();
  std::set<UnitPlace> unanswered;
  for (const ordered_json& unit : units) {
    const auto method = methods.find(unit.value("method", ""));
    if (unit.value("task", "") != task || method == methods.end()) foreign_line(unit);
    if (unit.contains("no_answer")) {
      unanswered.insert(place_of(unit));
      continue;
    }
    if (!unanswered.empty()) unanswered.erase(place_of(unit));
    use(method->second, unit);
  }
  return unanswered.size();
}

}  // namespace mrrope::eval
