// SPDX-License-Identifier: Apache-2.0
// mrrope merge: joins the shards of one run.
#include <iostream>
#include <memory>

#include "base/files/output_file.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/report_file.h"
#include "eval/run/shard.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace fs = std::filesystem;

namespace {

struct MergeFlags {
  std::vector<std::string> folders;
  std::string out;
  bool json = false;
};

void run_merge(const MergeFlags& flags) {
  eval::JoinedRun joined = eval::join_shards({flags.folders.begin(), flags.folders.end()});
  if (!joined.missing.empty()) {
    throw Error(ErrorKind::usage, cat("not all shards are done: ", joined.missing.front()),
                joined.missing.size() > 1 ? cat("and ", joined.missing.size() - 1, " more")
                                          : "run it, then give all folders again");
  }
  joined.recorded.run["command"] = command_line();
  const eval::TaskResults results = results_of(joined.recorded);
  const std::string json = eval::results_text(results.json);
  write_recorded(flags.out, joined.recorded);
  write_atomically(fs::path(flags.out) / "results.json", json);
  note(cat("joined ", joined.recorded.units.size(), " units of ", flags.folders.size(),
           " shards; wrote ", flags.out, "/results.json"));
  std::cout << (flags.json ? json : results.text(false));
  write_report({flags.out}, flags.out + "/report.html");
}

}  // namespace

void add_merge(CLI::App& app) {
  auto flags = std::make_shared<MergeFlags>();
  CLI::App* verb = app.add_subcommand("merge", "Join the shards of one evaluation");
  verb->add_option("folders", flags->folders, "All folders written by mrrope eval ... --shard")
      ->type_name("DIR")
      ->required();
  verb->add_option("-o,--out", flags->out, "Folder for the whole run")
      ->type_name("DIR")
      ->required();
  verb->add_flag("--json", flags->json, "Print results as JSON");
  verb->footer(
      "Examples:\n"
      "  mrrope eval ruler model.gguf --ctx 32k --shard 1/2 -o part1   # here\n"
      "  mrrope eval ruler model.gguf --ctx 32k --shard 2/2 -o part2   # on another machine\n"
      "  mrrope merge part1 part2 -o whole\n"
      "The results are those of one run, byte for byte. Shards of different runs are refused.");
  verb->callback([flags] { run_merge(*flags); });
}

}  // namespace mrrope::cli
