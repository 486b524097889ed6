// SPDX-License-Identifier: Apache-2.0
// One run in several parts, each with its own folder: on other machines, at other times.
//
// Shards share the units of work, each one line of the journal: a document under a method, a tree
// of needles under a method, ten samples under a method. A unit is computed with no timeline alive,
// so its numbers do not depend on the units before it; prefixes are shared inside a unit only. That
// is why any division gives the results of one run to the last bit (on the same kind of machine).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "eval/results/result_table.h"
#include "eval/run/run_folder.h"

namespace mrrope::eval {

// "2/4". Throws Error (usage).
Shard parse_shard(const std::string& text);

// Which units belong to this shard, by the cost of each: the most expensive first, each to the
// shard with the smallest load so far. The same on every machine.
std::vector<bool> assign_shard(const std::vector<std::int64_t>& costs, const Shard& shard);

// A merged run: units in the order in which one run would have written them. run.json is that of
// the whole run, with the cost of all shards.
struct JoinedRun {
  RecordedRun recorded;
  std::vector<std::string> missing;  // what is not done yet, one line per shard
};

// Merges the shards of one run. Throws Error: usage (a folder that is not a shard, shards of
// different runs, one given twice), failed, corrupt.
JoinedRun join_shards(const std::vector<std::filesystem::path>& folders);

// Whether the folder holds a shard; false where it cannot be read.
bool is_shard(const std::filesystem::path& folder);

// Merges the shards of one run into a folder: run.json, journal.jsonl and results.json of the whole
// run, byte for byte but for the command and the cost. Throws Error as join_shards() does, and
// usage where a shard is missing or not done.
struct WrittenRun {
  std::size_t units = 0;
  ResultTable table;
};
WrittenRun write_joined(const std::vector<std::filesystem::path>& folders,
                        const std::filesystem::path& out, const std::string& command);

// The results of a recorded run, by the row of its task. Throws Error (corrupt).
ResultTable results_of(const RecordedRun& recorded);

}  // namespace mrrope::eval
