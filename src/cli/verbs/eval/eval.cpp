// SPDX-License-Identifier: Apache-2.0
// mrrope eval: the verb over all tasks.
#include "base/text.h"
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

// The name that perplexity by ramp boundary had before; not listed.
void add_sweep(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("sweep", "Now a part of mrrope eval ppl")->group("");
  verb->allow_extras();
  verb->callback([] {
    refuse("mrrope sweep is now mrrope eval ppl with a range in --method",
           "type: mrrope eval ppl MODEL --ctx 8k --method 'pro(low=5..15,high=30..45/5)'");
  });
}

}  // namespace mrrope::cli
