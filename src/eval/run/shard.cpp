// SPDX-License-Identifier: Apache-2.0
#include "eval/run/shard.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/text.h"
#include "eval/samples/sample_results.h"
#include "eval/tasks/needle/needle_results.h"
#include "eval/tasks/perplexity/perplexity_results.h"
#include "mrrope/error.h"

namespace mrrope {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr std::size_t kMostShards = 100000;

struct Part {
  fs::path folder;
  RecordedRun recorded;
  Shard shard;
  std::size_t units = 0;  // that were dealt to it
};

Part read_part(const fs::path& folder) {
  Part part{folder, read_run(folder), {}, 0};
  const auto entry = part.recorded.run.find("shard");
  if (entry == part.recorded.run.end()) {
    throw Error(ErrorKind::usage, cat(folder.string(), " holds a whole run, not a shard"),
                "give the folders of mrrope eval ... --shard 1/N, 2/N, ...");
  }
  // Without an answer a unit is not done.
  auto& units = part.recorded.units;
  units.erase(std::remove_if(units.begin(), units.end(),
                             [](const ordered_json& unit) { return unit.contains("no_answer"); }),
              units.end());
  try {
    part.shard = {entry->at("index").get<std::size_t>(), entry->at("count").get<std::size_t>()};
    part.units = entry->at("units").get<std::size_t>();
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::corrupt, cat("the shard of ", folder.string(), "/run.json: ", e.what()),
                "give another folder, or run this shard again");
  }
  if (part.shard.index < 1 || part.shard.index > part.shard.count ||
      part.shard.count > kMostShards) {
    throw Error(ErrorKind::corrupt,
                cat(folder.string(), " calls itself shard ", to_text(part.shard)),
                "give another folder, or run this shard again");
  }
  return part;
}

// Where one run would have written this unit: the order of the jobs' loops.
class UnitOrder {
 public:
  explicit UnitOrder(const ordered_json& run) : task_(run.value("task", "")) {
    std::size_t touched = 0;
    for (const ordered_json& method : run.at("methods")) {
      // Perplexity begins with the untouched model, which others are compared with.
      const bool first = task_ == "ppl" && method.value("untouched", false);
      const std::size_t at = (first ? 0 : run.at("methods").size()) + touched++;
      methods_[method.at("method").get<std::string>()] = at;
    }
    if (!run.contains("documents")) return;
    for (const ordered_json& document : run.at("documents")) {
      documents_.emplace(document.at("id").get<std::string>(), documents_.size());
    }
  }

  using Key = std::tuple<std::size_t, std::size_t, std::size_t, std::int64_t>;
  Key operator()(const ordered_json& unit) const {
    const auto method = methods_.find(unit.value("method", ""));
    const std::size_t m = method != methods_.end() ? method->second : SIZE_MAX;
    if (task_ == "ppl") {
      const auto document = documents_.find(unit.value("document", ""));
      return {document != documents_.end() ? document->second : SIZE_MAX, 0, m,
              unit.value("window", std::int64_t(0))};
    }
    if (task_ == "needle") {
      // Behind an endpoint a unit is one cell.
      const auto cells = unit.find("cells");
      if (cells == unit.end() || cells->size() != 1)
        return {unit.value("sample", SIZE_MAX), m, 0, 0};
      const ordered_json& cell = cells->front();
      return {unit.value("sample", SIZE_MAX), m, cell.at("length").get<std::size_t>(),
              std::int64_t(1e6 * cell.at("depth").get<double>())};
    }
    return {unit.value("set", SIZE_MAX), unit.value("group", SIZE_MAX), m, 0};
  }

 private:
  std::string task_;
  std::map<std::string, std::size_t> methods_;
  std::map<std::string, std::size_t> documents_;
};

void put_in_order(RecordedRun& whole) {
  const UnitOrder order(whole.run);
  std::vector<std::pair<UnitOrder::Key, ordered_json>> keyed;
  for (ordered_json& unit : whole.units) {
    const UnitOrder::Key key = order(unit);
    keyed.emplace_back(key, std::move(unit));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  whole.units.clear();
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    if (i > 0 && keyed[i].first == keyed[i - 1].first) {
      throw Error(ErrorKind::corrupt,
                  cat("two journals hold the same unit: ", keyed[i].second.dump().substr(0, 200)),
                  "these are not the shards of one run; run one of them again");
    }
    whole.units.push_back(std::move(keyed[i].second));
  }
}

// The cost of all: time and tokens add up, as if one machine had done it.
ordered_json measured_of(const std::vector<Part>& parts) {
  ordered_json all;
  double seconds = 0;
  std::int64_t tokens = 0;
  for (const Part& part : parts) {
    const auto one = part.recorded.run.find("measured");
    if (one == part.recorded.run.end()) continue;
    if (all.is_null()) all = *one;
    all["started"] = std::min(all.value("started", ""), one->value("started", ""));
    all["finished"] = std::max(all.value("finished", ""), one->value("finished", ""));
    seconds += one->value("seconds", 0.0);
    tokens += one->value("tokens", std::int64_t(0));
    all["peak_memory_bytes"] = std::max(all.value("peak_memory_bytes", std::uint64_t(0)),
                                        one->value("peak_memory_bytes", std::uint64_t(0)));
  }
  if (all.is_null()) return all;
  all["seconds"] = seconds;
  all["tokens"] = tokens;
  all["tokens_per_second"] = seconds > 0 ? double(tokens) / seconds : 0;
  return all;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto number = [&](const std::string& digits) -> std::size_t {
    if (digits.empty() || digits.size() > 6 ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
      return 0;
    }
    return std::stoul(digits);
  };
  Shard shard{0, 0};
  if (slash != std::string::npos) {
    shard = {number(text.substr(0, slash)), number(text.substr(slash + 1))};
  }
  if (shard.index < 1 || shard.index > shard.count || shard.count > kMostShards) {
    throw Error(ErrorKind::usage, cat("--shard ", text, " is no part of a whole"),
                "shards are counted from 1: give --shard 1/4, 2/4, 3/4 and 4/4");
  }
  return shard;
}

std::vector<bool> dealt(const std::vector<std::int64_t>& costs, const Shard& shard) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<std::int64_t> load(shard.count);
  std::vector<bool> mine(costs.size());
  for (const std::size_t unit : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += std::max<std::int64_t>(1, costs[unit]);
    mine[unit] = std::size_t(least - load.begin()) + 1 == shard.index;
  }
  return mine;
}

JoinedRun join_shards(const std::vector<fs::path>& folders) {
  std::vector<Part> parts;
  for (const fs::path& folder : folders) parts.push_back(read_part(folder));
  if (parts.empty()) throw Error(ErrorKind::usage, "no shard given", "name the folders of all");
  const Part& first = parts.front();
  const ordered_json whole = whole_run(first.recorded.run);
  for (const Part& part : parts) {
    const std::string why = run_difference(whole, whole_run(part.recorded.run));
    if (!why.empty() || part.shard.count != first.shard.count) {
      throw Error(
          ErrorKind::usage,
          cat(first.folder.string(), " and ", part.folder.string(),
              " are shards of different runs: ",
              why.empty() ? cat("one of ", first.shard.count, ", one of ", part.shard.count) : why),
          "give the shards of one command, cut into as many parts");
    }
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.shard.index < b.shard.index; });
  JoinedRun joined;
  std::size_t next = 1;
  for (Part& part : parts) {
    if (part.shard.index < next) {
      throw Error(
          ErrorKind::usage,
          cat("shard ", to_text(part.shard), " is given twice, once in ", part.folder.string()),
          "name each shard's folder once");
    }
    for (; next < part.shard.index; ++next) {
      joined.missing.push_back(cat("shard ", to_text({next, part.shard.count}), " is not there"));
    }
    ++next;
    if (part.recorded.units.size() != part.units) {
      joined.missing.push_back(
          cat("shard ", to_text(part.shard), " in ", part.folder.string(), " has done ",
              part.recorded.units.size(), " of ", part.units,
              " units; go on with: ", part.recorded.run.value("command", "its command")));
    }
    for (ordered_json& unit : part.recorded.units) {
      joined.recorded.units.push_back(std::move(unit));
    }
  }
  for (; next <= parts.front().shard.count; ++next) {
    joined.missing.push_back(
        cat("shard ", to_text({next, parts.front().shard.count}), " is not there"));
  }
  joined.recorded.run = whole;
  joined.recorded.run.erase("measured");
  try {
    if (ordered_json cost = measured_of(parts); !cost.is_null()) {
      joined.recorded.run["measured"] = std::move(cost);
    }
    put_in_order(joined.recorded);
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::corrupt, cat("run.json or a journal lacks something: ", e.what()),
                "run this shard again");
  }
  return joined;
}

WrittenResults results_of(const RecordedRun& recorded) {
  const std::string task = recorded.run.value("task", "");
  if (task == "ppl") {
    const PerplexityResults results = perplexity_results(recorded.run, recorded.units);
    return {results_text(to_json(results)), to_text(results)};
  }
  if (task == "needle") {
    const NeedleResults results = needle_results(recorded.run, recorded.units);
    return {results_text(to_json(results)), to_text(results, false)};
  }
  const SampleResults results = sample_results(recorded.run, recorded.units);
  return {results_text(to_json(results)), to_text(results)};
}

}  // namespace mrrope
