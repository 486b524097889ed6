# SPDX-License-Identifier: Apache-2.0
"""Near and far keys for many queries at once, by two passes of vLLM's FlashAttention merged by their log-sum-exp.

A border is that of `step` queries in a row, and each such segment of a request is a sequence to FlashAttention. The
far pass reads the cache as it lies, up to the border. For the near pass keys from the lowest border on are turned to
where they are, once for each layer, into pages of their own, of which a segment reads those from its border to its last
query. Requests on rung 0 are one plain pass. Requests with one new token are left to the Triton kernel.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy
import torch
import triton
import triton.language as tl

from . import _vllm_rungs

PAGE = 16           # near keys to a page, at most
TILE = 16           # of a page, turned at once
ROWS = 128 * 128    # rows of queries that occupy a GPU: FlashAttention need not split their keys
SPLITS = 32         # of a sequence's keys, at most: as vLLM's own backend in CUDA graphs
attend: Any = None  # flash_attn_varlen_func, once find() has found it


def find(head_size: int) -> int | None:
    """The version of FlashAttention for this GPU, or None."""
    global attend
    from vllm.v1.attention.backends import fa_utils

    version = fa_utils.get_flash_attn_version(head_size=head_size)
    if version is None or head_size % 8 or head_size > 256:
        return None
    attend = fa_utils.flash_attn_varlen_func
    return version


class Schedule:
    """How FlashAttention 3 shares out the far keys of a batch with one new token each: made once for all layers, where
    CUDA graphs look for it."""

    def __init__(self, sequences: int, heads: int, kv: int, head_size: int, page: int, dtype: Any, device: Any) -> None:
        self.shape = {"num_heads_q": heads, "num_heads_kv": kv, "headdim": head_size, "page_size": page,
                      "qkv_dtype": dtype}
        self.made = torch.zeros(1 + -(-sequences // 4) * 16, dtype=torch.int32, device=device)

    def make(self, far_keys: Any, starts: Any, longest: int) -> Any:
        """The pass, as _vllm_kernel.attention() calls it."""
        from vllm.v1.attention.backends.fa_utils import get_scheduler_metadata

        common = {"max_seqlen_q": 1, "max_seqlen_k": longest, "causal": False, "num_splits": SPLITS}
        new = get_scheduler_metadata(batch_size=len(far_keys), cache_seqlens=far_keys, cu_seqlens_q=starts,
                                     **common, **self.shape)
        self.made[:len(new)] = new
        self.made[len(new):] = 0
        return functools.partial(attend, **common, scheduler_metadata=self.made[:len(new)], fa_version=3,
                                 return_softmax_lse=True)


class Pass(NamedTuple):
    """Sequences of one call, in int32 on the device."""
    starts: Any         # of queries, and their number
    keys: Any           # that each sees
    table: Any
    longest_query: int
    longest_key: int


class Plan(NamedTuple):
    """What all layers do in a batch."""
    single: bool          # there are requests for the Triton kernel
    plain: Pass | None
    near: Pass | None     # segments with far keys come first
    far: Pass | None
    tokens: Any = None    # of the near pass
    turns: Any = None     # of these, rows of Tables.back
    owners: Any = None    # of the tiles of near keys: the request
    firsts: Any = None    # and the position of the first key
    far_tokens: int = 0
    page: int = 0


def make_plan(tables: Any, starts: list[int], lengths: list[int], block_table: Any, query_starts: Any) -> Plan | None:
    """None: leave this batch to the Triton kernel. starts: where queries of a request begin, and the end."""
    counts = [b - a for a, b in zip(starts, starts[1:])]
    rungs, expected = tables.batch
    page = min(PAGE, tables.step & -tables.step)  # a border begins a page
    if page < TILE or (expected and counts != expected + [0] * (len(counts) - len(expected))):
        return None  # or a batch that vLLM warms up with
    rungs, block_table = rungs + [0] * (len(counts) - len(rungs)), block_table[:len(counts)]
    single = any(rungs) and 1 in counts
    plain, segments, tiles = [], [], []
    for request, (start, count, length, rung) in enumerate(zip(starts, counts, lengths, rungs)):
        plain.append(length if not rung and (count > 1 or not single) else 0)
        if count < 2 or not rung:
            continue
        at, lowest, begin = length - count, -1, len(tiles) * TILE // page
        while at < length:
            beyond = at >= tables.window
            border = (at + 1 - tables.near) // tables.step * tables.step if beyond else 0
            end = min(length, border + tables.step + tables.near - 1 if beyond else tables.window)
            lowest = border if lowest < 0 else lowest
            segments.append((border == 0, start + at - length + count, end - at, border, end - border, request,
                             rung * tables.back.shape[1] + border // tables.step, begin + (border - lowest) // page))
            at = end
        tiles += [(request, j) for j in range(lowest, lowest + -(-(length - lowest) // page) * page, TILE)]
    if len(tiles) * TILE > 8 * tables.rows.shape[0] + tables.window:
        return None  # many short ends of long texts

    def moved(*lists: Any) -> Any:
        made = _vllm_rungs.moved(numpy.concatenate(lists).astype(numpy.int32), block_table.device)
        return made.split([len(x) for x in lists])

    def whole(keys: Any) -> Pass | None:
        return Pass(query_starts, keys, block_table, max(counts), max(plain)) if any(plain) else None

    if not segments:
        return Plan(single, whole(moved(plain)[0]), None, None)
    segments.sort()
    is_near, first, count, border, near, request, turn, begin = numpy.array(segments).T
    far, ends = len(segments) - is_near.sum(), count.cumsum()
    tokens = numpy.arange(ends[-1]) + (first - ends + count).repeat(count)
    keys, tokens, turns, ends_there, near_there, begin, border_there, request, owners, firsts = moved(
        plain, tokens, turn.repeat(count), [0, *ends], near, begin, border[:far], request[:far], *zip(*tiles))
    steps = torch.arange(-(-near.max() // page), dtype=torch.int32, device=block_table.device)
    table = (begin[:, None] + steps).clamp_(max=len(tiles) * TILE // page - 1)
    # For one query at most FlashAttention 2 has a layout of its own.
    near_pass = Pass(ends_there, near_there, table, max(2, int(count.max())), int(near.max()))
    far_pass = Pass(ends_there[:far + 1], border_there, block_table.index_select(0, request),
                    max(2, int(count[:far].max())), int(border.max())) if far else None
    return Plan(single, whole(keys), near_pass, far_pass, tokens, turns, owners, firsts, int(count[:far].sum()), page)


@triton.jit
def _elements(DIM_PADDED: tl.constexpr, PAIRS: tl.constexpr, APART: tl.constexpr):
    """Of a head: whether they are turned, their pair, the other of it, and the sign of its part."""
    dim = tl.arange(0, DIM_PADDED)[None, :]
    second = dim // APART % 2
    first = dim - second * APART
    return dim, dim < 2 * PAIRS, first if APART > 1 else first // 2, dim + APART - 2 * second * APART, 2 * second - 1


# Lists of a plan lie one behind another: nothing may be compiled for how one is aligned.
@triton.jit(do_not_specialize=["far_tokens"], do_not_specialize_on_alignment=["tokens", "turns"])
def _queries(near, far, query, tokens, turns, back, far_tokens, query_token: tl.int64, query_head: tl.int64,
             HEADS: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr,
             PAIRS: tl.constexpr, APART: tl.constexpr):
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    dim, turned, pair, other, sign = _elements(DIM_PADDED, PAIRS, APART)
    turn = tl.load(turns + row)
    source = query + tl.load(tokens + row).to(tl.int64) * query_token + head * query_head
    mask = (head < HEADS) & (dim < DIM)
    far_query = tl.load(source + dim, mask=mask, other=0.0)
    q = far_query.to(tl.float32)
    o = tl.load(source + other, mask=mask & turned, other=0.0).to(tl.float32)
    c = tl.load(back + turn * (2 * PAIRS) + pair, mask=turned, other=1.0)
    s = tl.load(back + turn * (2 * PAIRS) + PAIRS + pair, mask=turned, other=0.0) * sign
    to = (row * HEADS + head) * DIM + dim
    tl.store(near + to, (q * c + o * s).to(near.dtype.element_ty), mask=mask)
    tl.store(far + to, far_query, mask=mask & (row < far_tokens))


@triton.jit(do_not_specialize_on_alignment=["owners", "firsts"])
def _near_keys(to_keys, to_values, keys, values, block_table, seq_lens, rungs, owners, firsts, coarse, fine,
               table_stride: tl.int64, key_page: tl.int64, key_slot: tl.int64, key_head: tl.int64,
               value_page: tl.int64, value_slot: tl.int64, value_head: tl.int64, coarse_rows, FINE_ROWS: tl.constexpr,
               HEADS: tl.constexpr, PAGE: tl.constexpr, TILE: tl.constexpr, DIM: tl.constexpr,
               DIM_PADDED: tl.constexpr, PAIRS: tl.constexpr, APART: tl.constexpr):
    tl.static_assert(FINE_ROWS % TILE == 0)  # a tile lies in one row of the coarse table
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    dim, turned, pair, other, sign = _elements(DIM_PADDED, PAIRS, APART)
    owner = tl.load(owners + row).to(tl.int64)
    rung, slot, first = tl.load(rungs + owner), tl.arange(0, TILE)[:, None], tl.load(firsts + row)
    j, length = first + slot, tl.load(seq_lens + owner)
    there = j < length  # zeros behind the last
    page = tl.load(block_table + owner * table_stride + j // PAGE, mask=there, other=0).to(tl.int64)
    source = keys + page * key_page + (j % PAGE) * key_slot + head * key_head
    mask = there & turned
    k = tl.load(source + dim, mask=there & (dim < DIM), other=0.0).to(tl.float32)
    o = tl.load(source + other, mask=mask, other=0.0).to(tl.float32)
    c_at = coarse + (rung * coarse_rows + first // FINE_ROWS) * (2 * PAIRS) + pair
    f_at = fine + (rung * FINE_ROWS + j % FINE_ROWS) * (2 * PAIRS) + pair
    some = turned & (first < length)
    c0, s0 = tl.load(c_at, mask=some, other=1.0), tl.load(c_at + PAIRS, mask=some, other=0.0)
    c1, s1 = tl.load(f_at, mask=mask, other=1.0), tl.load(f_at + PAIRS, mask=mask, other=0.0)
    to = ((row * TILE + slot) * HEADS + head) * DIM + dim
    k = k * (c0 * c1 - s0 * s1) + o * (s0 * c1 + c0 * s1) * sign
    tl.store(to_keys + to, k.to(to_keys.dtype.element_ty), mask=dim < DIM)
    v = tl.load(values + page * value_page + (j % PAGE) * value_slot + head * value_head + dim,
                mask=there & (dim < DIM), other=0.0)
    tl.store(to_values + to, v, mask=dim < DIM)


@triton.jit(do_not_specialize=["near_tokens", "far_tokens"], do_not_specialize_on_alignment=["tokens"])
def _join(out, near, near_sum, far, far_sum, tokens, near_tokens, far_tokens, out_token: tl.int64, out_head: tl.int64,
          HEADS: tl.constexpr, BLOCK: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr):
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    dim = tl.arange(0, DIM_PADDED)[None, :]
    mask, is_far = (head < HEADS) & (dim < DIM), row < far_tokens
    at = (row * HEADS + head) * DIM + dim
    made = tl.load(near + at, mask=mask, other=0.0).to(tl.float32)
    far_made = tl.load(far + at, mask=mask & is_far, other=0.0).to(tl.float32)
    a = tl.load(near_sum + head * near_tokens + row, mask=head < HEADS, other=0.0)
    b = tl.load(far_sum + head * far_tokens + row, mask=(head < HEADS) & is_far, other=float("-inf"))
    share = 1 / (1 + tl.exp(a - b))  # of far keys; 0 where there are none
    made += share * (far_made - made)
    to = out + tl.load(tokens + row).to(tl.int64) * out_token + head * out_head + dim
    tl.store(to, made.to(out.dtype.element_ty), mask=mask)


def attention(plan: Plan, tables: Any, query: Any, keys: Any, values: Any, out: Any, seq_lens: Any, block_table: Any,
              scale: float, softcap: float, version: int) -> None:
    """As _vllm_kernel.attention(), without requests that have one new token if plan.single."""
    heads, kv, dim = query.shape[1], keys.shape[2], query.shape[2]

    def run(q: Any, k: Any, v: Any, what: Pass, causal: bool, **more: Any) -> Any:
        return attend(q, k, v, cu_seqlens_q=what.starts, seqused_k=what.keys, max_seqlen_q=what.longest_query,
                      max_seqlen_k=what.longest_key, block_table=what.table, causal=causal, softmax_scale=scale,
                      softcap=softcap, fa_version=version, **more)

    if plan.plain:
        run(query, keys, values, plan.plain, True, out=out)
    if not plan.near:
        return
    tokens, padded = len(plan.tokens), triton.next_power_of_2(dim)
    elements = {"DIM": dim, "DIM_PADDED": padded, "PAIRS": tables.pairs, "APART": tables.apart}
    block = triton.next_power_of_2(min(heads, max(1, 4096 // padded)))
    grid = (tokens, triton.cdiv(heads, block))
    near, far = (query.new_empty(n, heads, dim) for n in (tokens, plan.far_tokens))
    _queries[grid](near, far, query, plan.tokens, plan.turns, tables.back, plan.far_tokens, query.stride(0),
                   query.stride(1), HEADS=heads, BLOCK=block, **elements)
    pages = keys.new_empty(2, len(plan.owners) * TILE // plan.page, plan.page, kv, dim)
    _near_keys[(len(plan.owners), kv)](
        *pages, keys, values, block_table, seq_lens, tables.rung, plan.owners, plan.firsts, tables.coarse, tables.fine,
        block_table.stride(0), *keys.stride()[:3], *values.stride()[:3], tables.coarse.shape[1],
        FINE_ROWS=tables.fine.shape[1], HEADS=kv, PAGE=keys.shape[1], TILE=TILE, **elements)
    splits = {"num_splits": int(tokens * heads >= ROWS), "return_softmax_lse": True}
    made, total = run(near, *pages, plan.near, True, **splits)
    far_made, far_total = run(far, keys, values, plan.far, False, **splits) if plan.far else (made, total)
    _join[grid](out, made, total, far_made, far_total, plan.tokens, tokens, plan.far_tokens, out.stride(0),
                out.stride(1), HEADS=heads, BLOCK=block, DIM=dim, DIM_PADDED=padded)
