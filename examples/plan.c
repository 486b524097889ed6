/* SPDX-License-Identifier: Apache-2.0
 * The same from C, and what a refusal looks like. */
#include <stdio.h>

#include "mrrope/mrrope.h"

int main(void) {
  const mrrope_geometry llama2 = {128, 10000, 4096, MRROPE_HALVES};
  mrrope_plan* plan = NULL;
  if (mrrope_plan_create(&llama2, "pro", 0.5, &plan) == 0) return 1;
  printf("refused: %s\n", mrrope_last_error());

  if (mrrope_plan_create(&llama2, "pro", 16, &plan) != 0) {
    fprintf(stderr, "%s\n", mrrope_last_error());
    return 1;
  }
  printf("%zu pairs, the last divided by %g\n", mrrope_plan_pairs(plan),
         mrrope_plan_factor(plan)[mrrope_plan_pairs(plan) - 1]);
  mrrope_plan_free(plan);
  return 0;
}
