/* SPDX-License-Identifier: Apache-2.0
 *
 * mrrope for C and for everything that can call C: plans as plain numbers.
 * No exception crosses this header. Functions that can fail return 0 on success, otherwise one of
 * the command's exit codes (2 usage, 3 unsupported model, 4 corrupt file, ...); the message is then
 * in mrrope_last_error() of the same thread.
 */
#ifndef MRROPE_MRROPE_H
#define MRROPE_MRROPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mrrope_plan mrrope_plan;

enum mrrope_pairing { MRROPE_HALVES = 0, MRROPE_INTERLEAVED = 1 };

typedef struct mrrope_geometry {
  int32_t rotary_dim;   /* rotated elements of a head */
  double base;          /* rope_theta */
  int64_t train_length; /* tokens */
  int32_t pairing;      /* enum mrrope_pairing */
} mrrope_geometry;

/* Version of the linked library. */
const char* mrrope_version(void);

/* "message (hint)" of the last failure in this thread; empty if none. Valid until the next call. */
const char* mrrope_last_error(void);

/* Plan of a method ("pro", "yarn", ...) that stretches the window by `scale`. */
int mrrope_plan_create(const mrrope_geometry* geometry, const char* method, double scale,
                       mrrope_plan** out);

/* Plan for a model file or folder, for a context of `ctx` tokens. */
int mrrope_plan_create_for_model(const char* path, const char* method, int64_t ctx,
                                 mrrope_plan** out);

/* Plan of a plan file. A ladder is refused: it holds many plans. */
int mrrope_plan_load(const char* path, mrrope_plan** out);

/* Accepts NULL. */
void mrrope_plan_free(mrrope_plan* plan);

/* rotary_dim / 2, the length of the two arrays below. */
size_t mrrope_plan_pairs(const mrrope_plan* plan);
/* Radians per position. Owned by the plan, as is the next. */
const double* mrrope_plan_theta(const mrrope_plan* plan);
/* What divides the trained theta. */
const double* mrrope_plan_factor(const mrrope_plan* plan);
/* Multiplies cos and sin, on top of what the model was trained with. */
double mrrope_plan_attention_scale(const mrrope_plan* plan);
/* First pair of the middle; first pair scaled in full. */
int32_t mrrope_plan_low(const mrrope_plan* plan);
int32_t mrrope_plan_high(const mrrope_plan* plan);

#ifdef __cplusplus
}
#endif

#endif
