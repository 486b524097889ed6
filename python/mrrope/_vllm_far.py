# SPDX-License-Identifier: Apache-2.0
"""Near and far keys in vLLM (`far:pi`): the part of the plugin for config.json with a ladder and a near part.

    "near_part": {"length": 128, "step": 128},
    "rungs": [..., {"rung": 1, "length": 1454, "scale": 1.9, "sharpness": 1.01, "factors": [...], ...}]

A request keeps the scale and the sharpness of its rung. A query at i has the border b = 0 inside the trained window
and step * floor((i + 1 - length) / step) beyond, a function of i alone, and sees keys from the border on
where they are, and a key j before it at i - shift - j / scale, where shift = round(b (1 - 1 / scale)): the engine's
definition on a ladder with one rung. Keys are cached as they are seen from far away, rotated for j / scale, and depend
on the rung and nothing else, so that prefix caching, chunks, preemption and forks change nothing.
"""
from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from . import _vllm_rungs

BACKEND = "mrrope._vllm_backend.FarAttentionBackend"
EXPORT = "export the model again with mrrope export --method far:pi --to hf-mrrope"
# In a model file: keys that are not rotated in every layer, or that change after the rotation, cannot be turned.
UNTURNABLE = re.compile(
    r"^ *(?:if|elif|else)\b[^\n]*:\s*\n(?:\s*#[^\n]*\n)*\s+[^\n]*self\.rotary_emb\("
    r"|rotary_emb\([^\n]*\n(?:[^\n]*\n){0,6}?[^\n]*\b(?:k_norm|key_layernorm|query_layernorm)\(", re.M)
FINE = 64           # turns are products of two tables: j = FINE * row of the coarse one + row of the fine one
tables: Any = None  # of the model of this process


class Near(NamedTuple):
    length: int
    step: int
    scales: tuple[float, ...]
    sharpness: tuple[float, ...]


def border_of(near: Near, window: int, position: int) -> int:
    """A query at this position sees keys before it as far ones."""
    return near.step * ((position + 1 - near.length) // near.step) if position >= window else 0


def shifts(near: Near, longest: int) -> list[list[int]]:
    """For each rung, by border / step."""
    places = max(0, longest - near.length) // near.step + 1
    return [[math.floor(near.step * k * (1 - 1 / scale) + 0.5) for k in range(places)] for scale in near.scales]


def read_near(parameters: dict[str, Any], rungs: tuple[Any, ...]) -> Near | None:
    """Of a checked ladder. Throws ValueError if it cannot be run as it was exported; None: no near part."""
    if "near_part" not in parameters:
        return None
    given, window = parameters["rungs"], rungs[0].length
    part = parameters["near_part"]
    length, step = (part.get("length"), part.get("step")) if isinstance(part, dict) else (None, None)
    if not all(isinstance(x, int) and not isinstance(x, bool) and x > 0 for x in (length, step)) \
            or length + step >= window or rungs[-1].length // step > 4096:
        _vllm_rungs.refuse(f"a near part of {length!r} tokens with steps of {step!r} is none of a window of {window}",
                           EXPORT)
    for i, rung in enumerate(given):
        scale, sharp = rung.get("scale"), rung.get("sharpness")
        if not _vllm_rungs.is_number(scale) or not _vllm_rungs.is_number(sharp) or (scale, sharp) < (1, 0):
            _vllm_rungs.refuse(f"rung {i} has scale {scale!r} and sharpness {sharp!r}", EXPORT)
        same = zip(rungs[i].factors, rungs[0].factors)
        if any(abs(a - scale * b) > 1e-9 * a for a, b in same) or rungs[i].temperature != rungs[0].temperature:
            _vllm_rungs.refuse(f"the factors of rung {i} are not those of rung 0 times its scale {scale}", EXPORT)
    near = Near(length, step, tuple(float(r["scale"]) for r in given), tuple(float(r["sharpness"]) for r in given))
    if near.scales[0] != 1 or near.sharpness[0] != 1:
        _vllm_rungs.refuse("rung 0 is not the unmodified model", EXPORT)
    for rung, row in zip(rungs[1:], shifts(near, rungs[-1].length)[1:]):
        for k, shift in enumerate(row):
            last = min(rung.length, k * step + length + step - 1) - 1  # of the queries with this border
            if last >= window and last - shift >= window and (last + 1 - length) // step == k:
                _vllm_rungs.refuse(f"queries of the rung of {rung.length} tokens would be rotated for position "
                                   f"{last - shift}, beyond the window of {window}", "export with headroom 1 or more")
    return near


class Tables:
    """What the kernel reads. All angles are computed in float64."""

    def __init__(self, ladder: Any, near: Near, neox: bool, requests: int, tokens: int, device: Any) -> None:
        import torch

        def cosines(angles: Any) -> Any:
            return torch.cat((angles.cos(), angles.sin()), -1).float().to(device)

        zero = ladder.rungs[0]
        longest = ladder.rungs[-1].length
        self.digest, self.neox, self.window, self.pairs = ladder.digest, neox, zero.length, len(zero.factors)
        self.near, self.step = near.length, near.step
        # Large tiles need 192 KiB of shared memory: Hopper and later.
        self.tight = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] not in (9, 10)
        self.aside = torch.cuda.Stream() if torch.cuda.is_available() else None
        # Where the elements of pair p are: p * stride, and `apart` behind it.
        self.stride, self.apart = (1, self.pairs) if neox else (2, 1)
        with torch.device("cpu"):
            theta = ladder.base ** (-torch.arange(self.pairs, dtype=torch.float64) / self.pairs)
            theta /= torch.tensor(zero.factors, dtype=torch.float64)
            turn = 1 - 1 / torch.tensor(near.scales, dtype=torch.float64)[:, None, None]
            back = torch.tensor(shifts(near, longest), dtype=torch.int64)
            coarse = FINE * torch.arange(longest // FINE + 1, dtype=torch.float64)[None, :, None]
            fine = torch.arange(FINE, dtype=torch.float64)[None, :, None]
            # Rows back from a query's position, [rungs, places of the border]: by its shift, and for a query beyond the
            # window on to where rung 0 stands once more, times the sharpness of its rung (_vllm_rungs.stacked()).
            self.back_rows = back.clone()
            for rung in range(1, len(near.scales)):
                self.back_rows[rung, 1:] -= ladder.first[-1] + ladder.rungs[-1].length + (rung - 1) * self.window
            self.back_rows = self.back_rows.to(device)
            self.back = cosines(back.double()[..., None] * theta)     # of queries, by their shift
            self.coarse = cosines(turn * coarse * theta)              # of near keys
            self.fine = cosines(turn * fine * theta)
            self.rung = torch.zeros(requests, dtype=torch.int32).to(device)   # of the requests of a batch
            self.far_keys = torch.zeros(requests, dtype=torch.int32).to(device)  # of requests with one new token
            self.rows = torch.zeros(tokens, dtype=torch.int64).to(device)     # of the queries of a batch
        self.batch: tuple[list[int], list[int]] = [], []  # rungs and tokens of its requests
        self.warm = len(near.scales) < 2  # nothing is left to compile

    def fill(self, positions: Any, rungs: list[int], counts: tuple[int, ...]) -> None:
        """As _vllm_rungs.fill(), which does the rows of keys."""
        import torch

        tokens = sum(counts)
        self.batch = rungs, list(counts)
        now, single = positions[:tokens], tokens == len(rungs)
        if not any(rungs):
            self.rung[:len(rungs)].zero_()
            self.rows[:tokens].copy_(now)
            if single:  # all keys of rung 0 are read as far ones are
                self.far_keys[:tokens].copy_(now + 1)
            return
        self.rung[:len(rungs)].copy_(_vllm_rungs.repeated(tuple(rungs), (1,) * len(rungs), self.rung.device))
        each = _vllm_rungs.repeated(tuple(rungs), counts, self.rung.device)
        place = torch.where(now >= self.window, (now + 1 - self.near) // self.step, 0)
        torch.sub(now, self.back_rows[each, place], out=self.rows[:tokens])
        if single:
            self.far_keys[:tokens].copy_(torch.where(each == 0, now + 1, place * self.step))


def make_tables(ladder: Any, caller_source: str, neox: bool, config: Any) -> Tables:
    import torch

    global tables
    if UNTURNABLE.search(caller_source):
        _vllm_rungs.refuse("this model leaves some layers unrotated, or changes keys after their rotation, so that "
                           "far keys cannot be turned", "export --method elastic:pro --to hf-mrrope")
    if tables is None:
        limits = config.scheduler_config
        tables = Tables(ladder, ladder.near, neox, limits.max_num_seqs, limits.max_num_batched_tokens,
                        torch.get_default_device())
    if (tables.digest, tables.neox) != (ladder.digest, neox):
        _vllm_rungs.refuse("another model with near and far keys runs in this process", "use two processes")
    return tables


def register_backend() -> None:
    """As --attention-backend CUSTOM, unless another plugin has taken that name."""
    try:
        from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend as register
    except ImportError:
        return  # wrong_backend() says so where it matters
    if not AttentionBackendEnum.CUSTOM.is_overridden():
        register(AttentionBackendEnum.CUSTOM, BACKEND)


def wrong_backend(config: Any) -> str:
    """Why this server cannot run near and far keys; empty if it can."""
    attention = getattr(config, "attention_config", None)
    chosen = getattr(getattr(attention, "backend", None), "name", None)
    if chosen != "CUSTOM" or getattr(attention, "backend_per_kind", None):
        return f"near and far keys need the plugin's attention backend, and vLLM was told {chosen or 'none'}"
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    path = AttentionBackendEnum.CUSTOM.get_path()
    return "" if path == BACKEND else f"another plugin has taken --attention-backend CUSTOM: {path}"
