// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <numeric>

#include "base/files/output_file.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/run/run_folder.h"

namespace mrrope::eval {

namespace fs = std::filesystem;
namespace {

bool possible(const Shard& shard) {
  constexpr std::size_t kMaxShards = 100000;
  return shard.index >= 1 && shard.index <= shard.count && shard.count <= kMaxShards;
}

struct Part {
  fs::path folder;
  RecordedRun recorded;
  Shard shard;
  std::size_t units = 0;  // that were assigned to it
};

Part read_part(const fs::path& folder) {
  Part part{folder, read_run(folder), {}, 0};
  constexpr const char* kAgain = "give another folder, or run this shard again";
  const auto entry = part.recorded.run.find("shard");
  refuse_if(entry == part.recorded.run.end(),
            cat(folder.string(), " holds a whole run, not a shard"),
            "give the folders of mrrope eval ... --shard 1/N, 2/N, ...");
  // Without an answer a unit is not done.
  std::erase_if(part.recorded.units,
                [](const ordered_json& unit) { return unit.contains("no_answer"); });
  try {
    part.shard = {whole<std::size_t>(entry->at("index")), whole<std::size_t>(entry->at("count"))};
    part.units = whole<std::size_t>(entry->at("units"));
  } catch (const nlohmann::json::exception& e) {
    damaged_run(cat("the shard of ", folder.string(), "/run.json: ", e.what()), kAgain);
  }
  throw_if(!possible(part.shard), ErrorKind::corrupt,
           cat(folder.string(), " calls itself shard ", to_text(part.shard)), kAgain);
  return part;
}

// As one run would have written them.
void put_in_order(RecordedRun& whole) {
  const std::vector<UnitPlace> places = unit_places(whole);
  std::map<UnitPlace, ordered_json> sorted;
  for (std::size_t i = 0; i < places.size(); ++i) {
    throw_if(!sorted.emplace(places[i], whole.units[i]).second, ErrorKind::corrupt,
             cat("two journals hold the same unit: ", whole.units[i].dump().substr(0, 200)),
             "these are not the shards of one run; run one of them again");
  }
  whole.units = mapped(sorted, [](const auto& placed) { return placed.second; });
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard{0, 0};
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ptr != end && *index.ptr == '/' &&
      std::from_chars(index.ptr + 1, end, shard.count).ptr != end) {
    shard.count = 0;
  }
  refuse_if(!possible(shard), cat("--shard ", text, " is not a part of a whole"),
            "shards are counted from 1: give --shard 1/4, 2/4, 3/4 and 4/4");
  return shard;
}

std::vector<bool> assign_shard(const std::vector<std::int64_t>& costs, const Shard& shard) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<std::int64_t> load(shard.count);
  std::vector<bool> mine(costs.size());
  for (const std::size_t unit : order) {
    const auto smallest = std::min_element(load.begin(), load.end());
    *smallest += std::max<std::int64_t>(1, costs[unit]);
    mine[unit] = std::size_t(smallest - load.begin()) + 1 == shard.index;
  }
  return mine;
}

JoinedRun join_shards(const std::vector<fs::path>& folders) {
  std::vector<Part> parts = mapped(folders, read_part);
  const Part& first = parts.front();
  const std::size_t first_count = first.shard.count;
  const ordered_json whole = whole_run(first.recorded.run);
  for (const Part& part : parts) {
    const std::string why = run_difference(whole, whole_run(part.recorded.run));
    refuse_if(
        !why.empty() || part.shard.count != first.shard.count,
        cat(first.folder.string(), " and ", part.folder.string(), " are shards of different runs: ",
            why.empty() ? cat("one of ", first.shard.count, ", one of ", part.shard.count) : why),
        "give the shards of one command, cut into as many parts");
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.shard.index < b.shard.index; });
  JoinedRun joined;
  auto part = parts.begin();
  for (Shard shard{1, first_count}; shard.index <= shard.count; ++shard.index) {
    if (part == parts.end() || part->shard.index != shard.index) {
      joined.missing.push_back(cat("shard ", to_text(shard), " is missing"));
      continue;
    }
    auto& units = part->recorded.units;
    if (units.size() != part->units) {
      const ordered_json command = part->recorded.run.value("command", ordered_json());
      joined.missing.push_back(
          cat("shard ", to_text(shard), " in ", part->folder.string(), " has done ", units.size(),
              " of ", part->units, " units; resume with: ",
              command.is_string() ? command.get<std::string>() : "the command of this shard"));
    }
    std::move(units.begin(), units.end(), std::back_inserter(joined.recorded.units));
    if (++part != parts.end() && part->shard.index == shard.index) {
      refuse(cat("shard ", to_text(shard), " is given twice, once in ", part->folder.string()),
             "name each shard's folder once");
    }
  }
  ordered_json& run = joined.recorded.run = whole;
  run.erase("measured");
  read_recorded([&] {
    for (const Part& one : parts) {
      const auto cost = one.recorded.run.find("measured");
      if (cost == one.recorded.run.end()) continue;
      total_cost(*cost, *cost);  // throws where it is damaged, also that of the only shard
      run["measured"] = run.contains("measured") ? total_cost(run["measured"], *cost) : *cost;
    }
    put_in_order(joined.recorded);
  });
  return joined;
}

bool is_shard(const fs::path& folder) {
  try {
    return read_run(folder).run.contains("shard");
  } catch (const Error&) {
    return false;
  }
}

WrittenRun write_joined(const std::vector<fs::path>& folders, const fs::path& out,
                        const std::string& command) {
  JoinedRun joined = join_shards(folders);
  if (!joined.missing.empty()) {
    refuse(cat("not all shards are done: ", joined.missing.front()),
           joined.missing.size() > 1 ? cat("and ", joined.missing.size() - 1, " more")
                                     : "run it, then give all folders again");
  }
  joined.recorded.run["command"] = command;
  WrittenRun written{joined.recorded.units.size(), results_of(joined.recorded)};
  write_recorded(out, joined.recorded);
  write_atomically(out / "results.json", results_text(to_json(written.table)));
  return written;
}

ResultTable results_of(const RecordedRun& recorded) {
  return task_of(recorded.run).results(recorded);
}

}  // namespace mrrope::eval
