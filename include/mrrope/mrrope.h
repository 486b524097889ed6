/* SPDX-License-Identifier: Apache-2.0
 *
 * mrrope for C and for everything that can call C: plans as plain numbers, and rotation with them.
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
/* Its two parts: what went wrong, and what to do instead (may be empty). */
const char* mrrope_last_message(void);
const char* mrrope_last_hint(void);

/* Plan of a static method ("pro", "pro(low=5)", ...) that stretches the window by `scale`; of
   dynamic-ntk, the one at `scale` windows. */
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

/* Rotation: the same structs and rules as mrrope/rotary.h, where each field is explained. */

typedef struct mrrope_table mrrope_table;
typedef struct mrrope_workers mrrope_workers;

enum mrrope_element { MRROPE_F32 = 0, MRROPE_F16 = 1, MRROPE_BF16 = 2 };

typedef struct mrrope_strides { /* in elements */
  int64_t sequence, token, head;
} mrrope_strides;

typedef struct mrrope_heads {
  int32_t count; /* 0: none */
  const void* from;
  mrrope_strides from_strides;
  void* to; /* equal to `from`: in place */
  mrrope_strides to_strides;
} mrrope_heads;

typedef struct mrrope_batch {
  int32_t element; /* enum mrrope_element */
  int32_t head_dim;
  int64_t sequences;
  int64_t tokens; /* of each sequence */
  mrrope_heads queries, keys;
  const int32_t* positions; /* sequences * tokens; NULL: from first_position on */
  int64_t first_position;
  int32_t inverse; /* 0 or 1 */
} mrrope_batch;

/* Cosines and sines of a plan for the positions [first, end), stored as `element`. */
int mrrope_table_create(const mrrope_plan* plan, int64_t first, int64_t end, int32_t element,
                        mrrope_table** out);
/* The table that takes keys rotated under `from` to keys rotated under `to`. */
int mrrope_table_create_turning(const mrrope_plan* from, const mrrope_plan* to, int64_t first,
                                int64_t end, int32_t element, mrrope_table** out);
/* Not while another thread reads the table. */
int mrrope_table_grow(mrrope_table* table, int64_t end);
void mrrope_table_free(mrrope_table* table);

/* Threads that wait for work; the calling thread is one of them. */
int mrrope_workers_create(int32_t threads, mrrope_workers** out);
void mrrope_workers_free(mrrope_workers* workers);

/* `workers` may be NULL: the calling thread alone. */
int mrrope_rotate(const mrrope_table* table, const mrrope_batch* batch, mrrope_workers* workers);
/* The share of one of `parts` threads of the caller, 0 to parts - 1. */
int mrrope_rotate_part(const mrrope_table* table, const mrrope_batch* batch, int32_t part,
                       int32_t parts);

/* NVIDIA GPUs, in libmrrope_cuda; see mrrope/rotary_cuda.h. A stream is a cudaStream_t. */
typedef struct mrrope_cuda_table mrrope_cuda_table;
/* stored: 1 copies the rows to the device, 0 computes angles where they are used. */
int mrrope_cuda_table_create(const mrrope_table* table, int32_t stored, mrrope_cuda_table** out);
void mrrope_cuda_table_free(mrrope_cuda_table* table);
int mrrope_cuda_rotate(const mrrope_cuda_table* table, const mrrope_batch* batch, void* stream);
/* Waits for the stream; fails if a position on the device had no row. */
int mrrope_cuda_check(const mrrope_cuda_table* table, void* stream);
/* All of it in one call, for other languages: on the default stream of `device`, with positions in
 * the memory of the host, done when it returns. Any position is allowed, whatever rows the table
 * has. */
int mrrope_cuda_rotate_and_wait(const mrrope_table* table, const mrrope_batch* batch,
                                int32_t device);

/* JSON, for other languages. *out is a text in UTF-8; release it with mrrope_text_free().
 *
 * mrrope_make: the plan or ladder of a request, as a plan file holds it. A request is an object:
 * - model: the path of a model file or folder; or geometry: {rotary_dim, base, train_length,
 *   pairing: "halves" (default) or "interleaved", trained_factor: [..], trained_attention_scale,
 *   long_factor: [..], long_length}
 * - method: "pro", "pro(low=5)", "elastic:pro", "far:pi(near=L/32)", ..., or "auto", the default of
 *   the command; its parameters may also be keys of the request: low: 5
 * - ctx or scale: how far it reaches
 * - with a model: replace_scaling, train_length
 *
 * docs/reference/methods.md has the notation and the parameters. An unknown key is refused. */
int mrrope_make(const char* request, char** out);
/* The plan or ladder of a plan file. */
int mrrope_load(const char* path, char** out);
/* What `mrrope inspect --json` says about a model itself. ctx 0: its trained window. */
int mrrope_inspect(const char* path, int64_t ctx, char** out);
/* Accepts NULL. */
void mrrope_text_free(char* text);
/* The plan of such a text; of a ladder, that of number `rung` of its list of rungs, from 0 on. */
int mrrope_plan_parse(const char* text, int64_t rung, mrrope_plan** out);
/* Where the cached keys of such a ladder change on the way to its longest text: a list of
 * {length: the last one, rung: its number in the list of rungs, border, shift, sharpness}, as in
 * mrrope/ladder.h; border and shift are 0 without a near part. */
int mrrope_ladder_places(const char* text, char** out);

#ifdef __cplusplus
}
#endif

#endif
