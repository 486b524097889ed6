// SPDX-License-Identifier: Apache-2.0
// One run in several parts, each with a folder of its own: on other machines, at other times.
//
// What is dealt out is the unit of work, one line of the journal: a document under a method, a tree
// of needles under a method, ten samples under a method. A unit is computed with no timeline alive,
// so its numbers do not depend on which units came before; prefixes are shared inside a unit only.
// That is why any deal gives the results of one run to the last bit (on the same kind of machine).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "eval/run/run_folder.h"

namespace mrrope {

// "2/4". Throws Error (usage).
Shard parse_shard(const std::string& text);

// Which units are this shard's, by the cost of each: the dearest first, each to the shard that has
// least so far. The same on every machine.
std::vector<bool> dealt(const std::vector<std::int64_t>& costs, const Shard& shard);

// A run put together: units in the order in which one run would have written them. run.json is
// that of the whole run, with the cost of all shards.
struct JoinedRun {
  RecordedRun recorded;
  std::vector<std::string> missing;  // what is not there yet, in words, one line per shard
};

// Puts shards of one run together. Throws Error: usage (a folder that is no shard, shards of
// different runs, one given twice), failed, corrupt.
JoinedRun join_shards(const std::vector<std::filesystem::path>& folders);

// What results.json holds for these units, and its text for a terminal: for every task of mrrope
// eval. Throws Error (corrupt).
struct WrittenResults {
  std::string json;
  std::string text;
};
WrittenResults results_of(const RecordedRun& recorded);

}  // namespace mrrope
