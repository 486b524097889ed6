// SPDX-License-Identifier: Apache-2.0
// The table of tasks. A new benchmark is a folder here, a row below and a verb in cli/verbs/eval.
#include "eval/tasks/infinitebench/infinitebench.h"
#include "eval/tasks/longbench/longbench.h"
#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "eval/tasks/ruler/ruler.h"

namespace mrrope::eval {

std::vector<Task>& tasks() {
  static std::vector<Task> rows = {perplexity_task(), needle_task(),
                                   sample_task("ruler", ruler_rules()),
                                   sample_task("infinitebench", infinitebench_rules()),
                                   sample_task("longbench-v2", longbench_rules())};
  return rows;
}

}  // namespace mrrope::eval
