// SPDX-License-Identifier: Apache-2.0
// mrrope eval: the verb over all tasks.
#include "cli/app.h"
#include "cli/args/eval_options.h"

namespace mrrope::cli {

void add_eval(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("eval", "Measure how far each method extends a model");
  verb->require_subcommand(1);
  for (const auto add : {add_eval_ppl, add_eval_needle, add_eval_ruler, add_eval_infinitebench,
                         add_eval_longbench}) {
    add(*verb);
  }
}

}  // namespace mrrope::cli
