# SPDX-License-Identifier: Apache-2.0
"""Attention over near and far keys in one pass, over vLLM's paged cache, in Triton.

Keys lie in the cache as they are seen from far away (rotated for j / s), so that nearly all of them are
used as they are; near ones are turned by j (1 - 1/s) in registers. Queries arrive sharpened and rotated for i - shift,
as far keys want them, and are turned by the shift for near ones. A tile of keys is far for all queries of a block,
near for all, or in between, where both scores are computed and the border of each query chooses. Sequences with
one new token are read by several programs each, a segment of keys to a program, the others by a program for each block
of queries. Where FlashAttention reads the far keys of such sequences, only near ones are left.
"""
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

LEAST = 256  # keys of a segment: short sequences have few of them
# Where only near keys are read: segments at most, their least keys, and as tiles() says.
NEAR_SEGMENTS, NEAR_LEAST, NEAR_TILES = 32, 128, (32, 4, 2)


@triton.jit
def _tiles_each(length, SEGMENTS: tl.constexpr, TILE: tl.constexpr, LEAST: tl.constexpr):
    """Of a segment."""
    return tl.maximum((length + SEGMENTS * TILE - 1) // (SEGMENTS * TILE), LEAST // TILE)


@triton.jit(do_not_specialize=["num_seqs"])  # one kernel for batches of all sizes
def _attend(out, part, part_max, part_sum, query, keys, values, block_table, seq_lens, starts, rungs, back, coarse,
            fine, far_keys, scale, softcap, num_seqs: tl.int32, table_stride: tl.int64,
            query_token: tl.int64, query_head: tl.int64, out_token: tl.int64, out_head: tl.int64, key_page: tl.int64,
            key_slot: tl.int64, key_head: tl.int64, value_page: tl.int64, value_slot: tl.int64,
            value_head: tl.int64, borders, coarse_rows, HEADS: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr,
            TILE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_Q: tl.constexpr, DIM: tl.constexpr,
            DIM_PADDED: tl.constexpr, PAIRS: tl.constexpr, PAIRS_PADDED: tl.constexpr, REST_PADDED: tl.constexpr,
            STRIDE: tl.constexpr, APART: tl.constexpr, NEAR: tl.constexpr, NEAR_STEP: tl.constexpr,
            TRAINED: tl.constexpr, SLIDING: tl.constexpr, SOFTCAP: tl.constexpr, SEGMENTS: tl.constexpr,
            FINE_ROWS: tl.constexpr, SINGLE: tl.constexpr, LEAST: tl.constexpr, ONLY_NEAR: tl.constexpr):
    tl.static_assert(FINE_ROWS % TILE == 0)  # a tile lies in one row of the coarse table
    block, kv, segment = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if SINGLE:
        seq = block
    else:
        left: tl.int32 = 0  # the sequence of this block: each has len // BLOCK_Q + 1 of them
        right = num_seqs
        while left < right:
            middle = (left + right) // 2
            if tl.load(starts + middle) // BLOCK_Q + middle <= block:
                left = middle + 1
            else:
                right = middle
        seq = left - 1
    start = tl.load(starts + seq)
    count = tl.load(starts + seq + 1) - start
    at_block = 0 if SINGLE else (block - start // BLOCK_Q - seq) * BLOCK_Q
    if (at_block >= count) | ((count == 1) != SINGLE):
        return
    length = tl.load(seq_lens + seq)
    far = tl.load(far_keys + seq) if ONLY_NEAR else 0
    per_segment = _tiles_each(length - far // TILE * TILE, SEGMENTS, TILE, LEAST)
    if ((far // TILE + segment * per_segment) * TILE >= length) | (far == length):
        return
    rung = tl.load(rungs + seq)

    rows = tl.arange(0, BLOCK_M)
    at = at_block + rows // GROUP
    head = kv * GROUP + rows % GROUP
    valid = (rows < BLOCK_Q * GROUP) & (at < count)
    i = length - count + at
    beyond = i >= TRAINED
    place = tl.where(beyond, (i + 1 - NEAR) // NEAR_STEP, 0)
    first = length - count + at_block
    last = tl.minimum(first + BLOCK_Q, length) - 1
    lowest = tl.where(first >= TRAINED, (first + 1 - NEAR) // NEAR_STEP, 0) * NEAR_STEP
    highest = tl.where(last >= TRAINED, (last + 1 - NEAR) // NEAR_STEP, 0) * NEAR_STEP
    border = place * NEAR_STEP
    if SLIDING:  # such layers see all of their keys where they are
        border, lowest, highest = border * 0, lowest * 0, highest * 0
    if rung == 0:  # the unmodified model: nothing is turned
        border, lowest, highest = border * 0 + length, length, length

    # Queries: the elements of pairs, and those that are not rotated.
    pair = tl.arange(0, PAIRS_PADDED)
    is_pair = pair < PAIRS
    q_at = (start + at).to(tl.int64) * query_token + head * query_head
    q_mask = valid[:, None] & is_pair[None, :]
    far_a = tl.load(query + q_at[:, None] + pair[None, :] * STRIDE, mask=q_mask, other=0.0)
    far_b = tl.load(query + q_at[:, None] + pair[None, :] * STRIDE + APART, mask=q_mask, other=0.0)
    kind = far_a.dtype
    qa, qb = far_a.to(tl.float32), far_b.to(tl.float32)
    turn = back + ((rung * borders + place) * (2 * PAIRS))[:, None] + pair[None, :]
    c = tl.load(turn, mask=q_mask, other=1.0)
    s = tl.load(turn + PAIRS, mask=q_mask, other=0.0)
    near_a, near_b = (qa * c - qb * s).to(kind), (qb * c + qa * s).to(kind)
    if REST_PADDED:
        rest = 2 * PAIRS + tl.arange(0, REST_PADDED)
        is_rest = rest < DIM
        q_rest = tl.load(query + q_at[:, None] + rest[None, :], mask=valid[:, None] & is_rest[None, :], other=0.0)

    dim = tl.arange(0, DIM_PADDED)
    acc = tl.zeros([BLOCK_M, DIM_PADDED], dtype=tl.float32)
    most = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    begin, end = 0, last // TILE + 1
    if SLIDING:
        begin = tl.maximum(first - SLIDING + 1, 0) // TILE
    far_end = tl.minimum(lowest, first + 1) // TILE  # behind it a query of the block has a mask or a border
    if SLIDING:
        far_end = begin
    mixed_end = tl.minimum((highest + TILE - 1) // TILE, end)
    if ONLY_NEAR:
        begin, far_end, mixed_end = far // TILE, far // TILE, far // TILE
    here = far // TILE + segment * per_segment
    there = here + per_segment
    for PART in tl.static_range(2 if ONLY_NEAR else 0, 3):  # 0: far, 1: both, 2: near
        if PART == 0:
            tile_from, tile_to = begin, far_end
        elif PART == 1:
            tile_from, tile_to = tl.maximum(begin, far_end), mixed_end
        else:
            tile_from, tile_to = tl.maximum(tl.maximum(begin, far_end), mixed_end), end
        for tile in range(tl.maximum(tile_from, here), tl.minimum(tile_to, there)):
            j = tile * TILE + tl.arange(0, TILE)
            there_is = j <= last
            page = tl.load(block_table + seq.to(tl.int64) * table_stride + j // PAGE, mask=there_is, other=0)
            k_at = page.to(tl.int64) * key_page + (j % PAGE) * key_slot + kv * key_head
            k_mask = is_pair[:, None] & there_is[None, :]
            ka = tl.load(keys + k_at[None, :] + pair[:, None] * STRIDE, mask=k_mask, other=0.0)
            kb = tl.load(keys + k_at[None, :] + pair[:, None] * STRIDE + APART, mask=k_mask, other=0.0)
            if PART < 2:
                score = tl.dot(far_a, ka, input_precision="ieee") + tl.dot(far_b, kb, input_precision="ieee")
            if PART > 0:
                c_at = coarse + (rung * coarse_rows + tile * TILE // FINE_ROWS) * (2 * PAIRS) + pair
                f_at = fine + ((rung * FINE_ROWS + j % FINE_ROWS) * (2 * PAIRS))[None, :] + pair[:, None]
                c0 = tl.load(c_at, mask=is_pair, other=1.0)[:, None]
                s0 = tl.load(c_at + PAIRS, mask=is_pair, other=0.0)[:, None]
                c1, s1 = tl.load(f_at, mask=k_mask, other=1.0), tl.load(f_at + PAIRS, mask=k_mask, other=0.0)
                kc, ks = c0 * c1 - s0 * s1, s0 * c1 + c0 * s1
                a, b = ka.to(tl.float32), kb.to(tl.float32)
                ta, tb = (a * kc - b * ks).to(kind), (b * kc + a * ks).to(kind)
                near = tl.dot(near_a, ta, input_precision="ieee") + tl.dot(near_b, tb, input_precision="ieee")
                if PART == 1:
                    score = tl.where(j[None, :] < border[:, None], score, near)
                else:
                    score = near
            if REST_PADDED:
                kr = tl.load(keys + k_at[None, :] + rest[:, None], mask=is_rest[:, None] & there_is[None, :],
                             other=0.0)
                score += tl.dot(q_rest, kr, input_precision="ieee")
            score *= scale
            if SOFTCAP:
                score = softcap * (1 - 2 / (tl.exp(2 * score / softcap) + 1))
            score *= 1.4426950408889634  # powers of 2 from here on
            if PART > 0:
                seen = j[None, :] <= i[:, None]
                if SLIDING:
                    seen &= j[None, :] > i[:, None] - SLIDING
                if ONLY_NEAR:
                    seen &= j[None, :] >= far
                score = tl.where(seen, score, float("-inf"))
            higher = tl.maximum(most, tl.max(score, 1))
            base = tl.where(higher == float("-inf"), 0.0, higher)
            p = tl.exp2(score - base[:, None])
            fade = tl.exp2(most - base)
            v_at = page.to(tl.int64) * value_page + (j % PAGE) * value_slot + kv * value_head
            v = tl.load(values + v_at[:, None] + dim[None, :], mask=there_is[:, None] & (dim < DIM)[None, :],
                        other=0.0)
            acc = acc * fade[:, None] + tl.dot(p.to(kind), v, input_precision="ieee")
            total = total * fade + tl.sum(p, 1)
            most = higher

    token = (start + at).to(tl.int64)
    o_mask = valid[:, None] & (dim < DIM)[None, :]
    if not SINGLE:
        o_at = token[:, None] * out_token + (head * out_head)[:, None] + dim[None, :]
        tl.store(out + o_at, (acc / total[:, None]).to(out.dtype.element_ty), mask=o_mask)
    else:
        p_at = (seq * HEADS + head) * SEGMENTS + segment
        tl.store(part + p_at[:, None] * DIM_PADDED + dim[None, :], acc, mask=o_mask)
        tl.store(part_max + p_at, most, mask=valid)
        tl.store(part_sum + p_at, total, mask=valid)


@triton.jit(do_not_specialize=["far_tokens"])
def _merge(out, part, part_max, part_sum, starts, seq_lens, far_keys, far_out, far_sum, far_tokens, out_token, out_head,
           HEADS: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr, SEGMENTS: tl.constexpr,
           TILE: tl.constexpr, LEAST: tl.constexpr, ONLY_NEAR: tl.constexpr):
    seq, head = tl.program_id(0), tl.program_id(1)
    token = tl.load(starts + seq).to(tl.int64)
    if tl.load(starts + seq + 1) - token != 1:
        return
    dim, segment, length = tl.arange(0, DIM_PADDED), tl.arange(0, SEGMENTS), tl.load(seq_lens + seq)
    far = tl.load(far_keys + seq) if ONLY_NEAR else 0
    each = _tiles_each(length - far // TILE * TILE, SEGMENTS, TILE, LEAST)
    there = ((far // TILE + segment * each) * TILE < length) & (far < length)
    at = (seq * HEADS + head) * SEGMENTS + segment
    most = tl.load(part_max + at, mask=there, other=float("-inf"))
    highest = tl.max(most, 0)
    if ONLY_NEAR:  # FlashAttention's sum is of powers of e
        far_most = tl.load(far_sum + head * far_tokens + token, mask=far > 0, other=float("-inf")) * 1.4426950408889634
        highest = tl.maximum(highest, far_most)
    share = tl.exp2(most - highest)  # 0 for a segment without keys
    total = tl.sum(tl.load(part_sum + at, mask=there, other=0.0) * share, 0)
    acc = tl.load(part + at[:, None] * DIM_PADDED + dim[None, :], mask=there[:, None], other=0.0)
    acc = tl.sum(acc * share[:, None], 0)
    if ONLY_NEAR:
        far_share = tl.exp2(far_most - highest)
        made = tl.load(far_out + (token * HEADS + head) * DIM + dim, mask=(dim < DIM) & (far > 0), other=0.0)
        acc += made.to(tl.float32) * far_share
        total += far_share
    tl.store(out + token * out_token + head * out_head + dim, (acc / total).to(out.dtype.element_ty), mask=dim < DIM)


def tiles(single: bool, small: bool, stages: int) -> tuple[int, int, int]:
    """Keys at once, warps and stages. tools/gpu/vllm/kernel.py tries others."""
    return (32, 4, stages) if single else (32 if small else 64, 8, stages)


def segments(sequences: int, kv: int) -> int:
    """Of the keys of a sequence: enough that the longest of a small batch does not hold up the others."""
    return min(128, max(32, triton.next_power_of_2(16384 // (sequences * kv))))


def near_segments(tables: Any) -> int:
    """As segments(), where FlashAttention reads the far keys: enough for those behind a border, in whole tiles, and for
    all of a request inside the window."""
    keys = max(tables.near + tables.step + NEAR_TILES[0], tables.window)
    return min(NEAR_SEGMENTS, triton.next_power_of_2(triton.cdiv(keys, NEAR_LEAST)))


def make_parts(sequences: int, heads: int, kv: int, dim: int, device: Any) -> tuple[Any, Any, Any]:
    """What segments leave behind, for batches of up to this many sequences: sums of values, maxima and totals."""
    rows = heads * max(n * max(NEAR_SEGMENTS, segments(n, kv)) for n in range(1, sequences + 1))
    return tuple(torch.empty(rows * n, device=device) for n in (triton.next_power_of_2(dim), 1, 1))


def attention(tables: Any, query: Any, keys: Any, values: Any, out: Any, starts: Any, seq_lens: Any,
              block_table: Any, longest_query: int, scale: float, softcap: float, sliding: int,
              parts: tuple[Any, Any, Any], flash: Any = None) -> None:
    """query, out: [tokens, heads, dim]; keys, values: [pages, slots, key heads, dim]. Sequences with several tokens
    are left out if `longest_query` is 1. flash: Schedule.make() of _vllm_flash, for far keys of a batch with one
    new token each."""
    tokens, heads, dim = query.shape
    sequences, kv = seq_lens.shape[0], keys.shape[2]
    group, padded, rest = heads // kv, triton.next_power_of_2(dim), dim - 2 * tables.pairs
    wide = query.element_size() > 2 or dim > 128
    small = wide or tables.tight  # tiles of which enough fit into registers and shared memory
    many = near_segments(tables) if flash else segments(sequences, kv)
    assert keys.stride(3) == values.stride(3) == query.stride(2) == out.stride(2) == 1
    assert sequences * heads * many <= len(parts[1])
    made = total = out
    least = NEAR_LEAST if flash else LEAST
    aside = tables.aside if flash else None  # near keys are read beside far ones
    if aside:
        aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for single in (False, True) if longest_query > 1 else (True,):
            tile, warps, stages = NEAR_TILES if flash else tiles(single, small, 1 if wide and tables.tight else 2)
            block_m = max(16 if single else 64 if small else 128, triton.next_power_of_2(group))
            block_q = 1 if single else block_m // group
            grid = (sequences, kv, many) if single else (tokens // block_q + sequences, kv, 1)
            _attend[grid](
                out, *parts, query, keys, values, block_table, seq_lens, starts, tables.rung, tables.back,
                tables.coarse, tables.fine, tables.far_keys, scale, softcap, sequences,
                block_table.stride(0), query.stride(0), query.stride(1), out.stride(0), out.stride(1),
                *keys.stride()[:3], *values.stride()[:3], tables.back.shape[1], tables.coarse.shape[1],
                HEADS=heads, GROUP=group, PAGE=keys.shape[1], TILE=tile, BLOCK_M=block_m, BLOCK_Q=block_q, DIM=dim,
                DIM_PADDED=padded, PAIRS=tables.pairs, PAIRS_PADDED=max(16, triton.next_power_of_2(tables.pairs)),
                REST_PADDED=max(16, triton.next_power_of_2(rest)) if rest else 0, STRIDE=tables.stride,
                APART=tables.apart, NEAR=tables.near, NEAR_STEP=tables.step, TRAINED=tables.window, SLIDING=sliding,
                SOFTCAP=softcap > 0, SEGMENTS=grid[2], FINE_ROWS=tables.fine.shape[1], SINGLE=single, LEAST=least,
                ONLY_NEAR=flash is not None, num_warps=warps, num_stages=stages)
    if flash:
        made, total = flash(query, keys, values, cu_seqlens_q=starts, seqused_k=tables.far_keys[:sequences],
                            block_table=block_table, softmax_scale=scale, softcap=softcap)
    if aside:
        torch.cuda.current_stream().wait_stream(aside)
    _merge[(sequences, heads)](out, *parts, starts, seq_lens, tables.far_keys, made, total, total.shape[-1],
                               out.stride(0), out.stride(1), HEADS=heads, DIM=dim, DIM_PADDED=padded, SEGMENTS=many,
                               TILE=tile, LEAST=least, ONLY_NEAR=flash is not None,
                               num_warps=8 if many * padded > 4096 else 4)
