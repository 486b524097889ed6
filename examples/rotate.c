/* SPDX-License-Identifier: Apache-2.0
 * The same rotation from C: in place, one thread. */
#include <stdio.h>

#include "mrrope/mrrope.h"

int main(void) {
  const mrrope_geometry llama3 = {128, 500000, 8192, MRROPE_HALVES};
  static float keys[64][8][128];
  mrrope_plan* plan = NULL;
  mrrope_table* table = NULL;
  mrrope_batch batch = {.element = MRROPE_F32, .head_dim = 128, .sequences = 1, .tokens = 64};
  keys[63][0][0] = 1;
  batch.keys.count = 8;
  batch.keys.from = batch.keys.to = keys;
  batch.keys.from_strides.token = batch.keys.to_strides.token = 8 * 128;
  batch.keys.from_strides.head = batch.keys.to_strides.head = 128;
  if (mrrope_plan_create(&llama3, "none", 1, &plan) != 0 ||
      mrrope_table_create(plan, 0, 64, MRROPE_F32, &table) != 0 ||
      mrrope_rotate(table, &batch, NULL) != 0) {
    fprintf(stderr, "%s\n", mrrope_last_error());
    return 1;
  }
  printf("cos 63 = %.4f, sin 63 = %.4f\n", keys[63][0][0], keys[63][0][64]);
  batch.first_position = 1;
  if (mrrope_rotate(table, &batch, NULL) == 0) return 1;
  printf("refused: %s\n", mrrope_last_error());
  mrrope_table_free(table);
  mrrope_plan_free(plan);
  return 0;
}
