# SPDX-License-Identifier: Apache-2.0
"""Near and far keys for vLLM, as far as they need no vLLM: ladders, borders, rows, and the kernel. Needs torch.

The kernel runs in Triton's interpreter (no bfloat16 there), if Triton is installed, against far.py in float64.
tools/gpu/vllm/classes.py has the backend with vLLM's classes, and tools/gpu/vllm/far.py a server.
"""
import copy
import functools
import math
import os
import pathlib
import random
import sys
import types

os.environ["TRITON_INTERPRET"] = "1"
import torch

import mrrope
from expressions import raises
from mrrope import _vllm, _vllm_far, _vllm_rungs
from mrrope._vllm_far import border_of, shifts

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools/gpu/vllm"))
import far
import rungs

WINDOW, NEAR, STEP = 96, 20, 12
refused = functools.partial(raises, ValueError)


def ladder_config(pairs=16, window=WINDOW, near=NEAR, step=STEP, trained=1.0, lengths=(96, 200, 500)):
    """As mrrope export writes it, from the library's ladder."""
    rungs = []
    for i, length in enumerate(lengths):
        last = step * ((length - near) // step)
        scale = last / math.floor((window - near - step) / 1.25) if i else 1.0
        sharp = (math.log(length) / math.log(window)) ** 0.5 if i else 1.0
        rungs.append({"rung": i, "length": length, "scale": scale, "sharpness": sharp, "attention_factor": 1.0,
                      "factors": [scale * trained ** p for p in range(pairs)]})
    return {"rope_type": "mrrope", "rope_theta": 10000.0, "original_max_position_embeddings": window,
            "near_part": {"length": near, "step": step}, "rungs": rungs}


def check_ladder():
    good = ladder_config(trained=1.05)
    ladder = _vllm_rungs.read_ladder(good)
    assert (ladder.near.length, ladder.near.step, ladder.near.scales[0]) == (NEAR, STEP, 1.0)
    plain = {k: v for k, v in good.items() if k != "near_part"}
    assert _vllm_rungs.read_ladder(plain).near is None
    own = _vllm_rungs.own_parameters(good)
    assert own == {"rope_type": "default", "rope_theta": 10000.0}

    def changed(edit):
        config = copy.deepcopy(good)
        edit(config)
        return config

    digests = {ladder.digest, _vllm_rungs.read_ladder(plain).digest}
    for edit in (lambda c: c["near_part"].update(length=NEAR + 1), lambda c: c["near_part"].update(step=STEP + 1),
                 lambda c: c["rungs"][1].update(sharpness=1.5)):
        digests.add(_vllm_rungs.read_ladder(changed(edit)).digest)
    assert len(digests) == 5, "two plans share their caches"
    for part, edit in (("part of 0", lambda c: c["near_part"].update(length=0)),
                       ("part of None", lambda c: c.update(near_part=5)),
                       ("part of True", lambda c: c["near_part"].update(length=True)),
                       ("part of 84", lambda c: c["near_part"].update(length=84)),
                       ("steps of '12'", lambda c: c["near_part"].update(step="12")),
                       ("scale None", lambda c: c["rungs"][1].pop("scale")),
                       ("scale 0.5", lambda c: c["rungs"][1].update(scale=0.5)),
                       ("sharpness nan", lambda c: c["rungs"][2].update(sharpness=float("nan"))),
                       ("not those of rung 0", lambda c: c["rungs"][1].update(scale=1.01)),
                       ("not those of rung 0", lambda c: c["rungs"][1]["factors"].__setitem__(3, 2.0)),
                       ("not those of rung 0", lambda c: c["rungs"][2].update(attention_factor=1.1)),
                       ("unmodified", lambda c: c["rungs"][0].update(sharpness=1.1))):
        refused(part, _vllm_rungs.read_ladder, changed(edit))
    low = copy.deepcopy(good)
    low["rungs"][2].update(scale=2.0, factors=[2.0 * f for f in good["rungs"][0]["factors"]])
    refused("beyond the window", _vllm_rungs.read_ladder, low)

    def config(backend, **more):
        named = types.SimpleNamespace(name=backend) if backend else None
        return types.SimpleNamespace(attention_config=types.SimpleNamespace(backend=named, **more))

    assert "was told none" in _vllm_far.wrong_backend(config(None))
    assert "was told FLASH_ATTN" in _vllm_far.wrong_backend(config("FLASH_ATTN"))
    assert _vllm_far.wrong_backend(config("CUSTOM", backend_per_kind={"full_attention": 1}))
    for source, wrong in (("        q, k = self.rotary_emb(positions, q, k)\n        x = self.attn(q, k, v)\n", False),
                          ("    if self.use_rope:\n        q, k = self.rotary_emb(positions, q, k)\n", True),
                          ("    q = self.q_norm(q)\n    q, k = self.rotary_emb(positions, q, k)\n", False),
                          ("    q, k = self.rotary_emb(positions, q, k)\n    k = self.k_norm(k)\n", True)):
        assert bool(_vllm_far.UNTURNABLE.search(source)) == wrong, source


def check_places():
    """Borders and shifts are the library's, at every length of a ladder with one rung beyond the window."""
    made = mrrope.ladder(mrrope.Geometry(32, 10000, 1024), "far:pi", ctx=8192, rung_step=8)
    assert len({rung.plan.scale for rung in made.rungs}) == 2
    near = _vllm_far.Near(made.near["length"], made.near["step"], (1.0, made.rungs[-1].plan.factor[0]), (1.0, 1.0))
    table, borders = shifts(near, 8192)[1], set()
    for n in range(1, 8193):
        place, border = made.place_at(n), border_of(near, 1024, n - 1)
        assert (border, table[border // near.step]) == (place.border, place.shift), n
        borders.add(border)
    assert len(borders) > 20 and max(borders) > 7000
    # Behind all rungs, rung 0 with the sharpness of each other one, rounded once.
    ladder = _vllm_rungs.read_ladder(ladder_config())
    angles = torch.arange(WINDOW)[:, None] * 10000.0 ** (-torch.arange(16).double() / 16)
    exact = torch.cat((angles.cos(), angles.sin()), -1)
    for dtype, unit in ((torch.float32, 2 ** -24), (torch.bfloat16, 2 ** -8)):
        whole = make_whole(ladder, dtype)
        assert whole.dtype == dtype and len(whole) == 796 + 2 * WINDOW
        for first, sharp in ((0, 1.0), (796, ladder.near.sharpness[1]), (796 + WINDOW, ladder.near.sharpness[2])):
            apart = (whole[first:first + WINDOW] - exact * sharp).abs()
            assert (apart <= 1.01 * unit * sharp * exact.abs()).all(), (dtype, first)
    # Rows of a mixed batch in any order.
    tables = make_tables(ladder, True)
    chance = random.Random(1)
    for _ in range(20):
        batch = [(r, chance.randrange(ladder.rungs[r].length - c + 1), c)
                 for r, c in ((chance.randrange(3), chance.choice((1, 7, 60))) for _ in range(6))]
        positions = torch.cat([torch.arange(s, s + c) for _, s, c in batch] + [torch.full((50,), 10 ** 6)])
        tables.fill(positions, [r for r, _, _ in batch], tuple(c for _, _, c in batch))
        wanted = [(r if p >= WINDOW else 0, p - shifts(ladder.near, 500)[r][border_of(ladder.near, WINDOW, p) // STEP])
                  for r, s, c in batch for p in range(s, s + c)]
        assert [query_row(ladder, row) for row in tables.rows[:len(wanted)].tolist()] == wanted
        assert tables.rung[:6].tolist() == [r for r, _, _ in batch]
    tables.rung.fill_(1)
    tables.fill(torch.arange(8), [0, 0], (3, 5))
    assert tables.rung[:3].tolist() == [0, 0, 1] and tables.rows[:8].tolist() == list(range(8))


def query_row(ladder, row):
    """The rung by which a row of the stacked table is sharpened (0: not), and its position."""
    behind = row - sum(rung.length for rung in ladder.rungs)
    assert 0 <= row < WINDOW or 0 <= behind < (len(ladder.rungs) - 1) * WINDOW, row
    return (0, row) if behind < 0 else (behind // WINDOW + 1, behind % WINDOW)


def make_whole(ladder, dtype=torch.float32):
    """The stacked table."""
    zero = ladder.rungs[0]
    return _vllm_rungs.stacked(ladder, _vllm.table(ladder.base, zero.factors, 1.0, WINDOW).to(dtype), _vllm.table)


def make_tables(ladder, neox):
    return _vllm_far.Tables(ladder, ladder.near, neox, 16, 1024, "cpu")


def check_load():
    """Requests of tools/gpu/vllm/rungs.py: each is put on its rung, beyond the window where plans differ."""
    lengths = (1024, 4096, 8192)
    for short in (16, 1100):
        jobs = rungs.load_jobs({r: {"length": n} for r, n in enumerate(lengths)}, short)
        assert len(jobs) == 1000 and {rung for _, rung, _, _ in jobs} == {0, 1, 2}
        for _, rung, tokens, more in jobs:
            whole = tokens + more.get("max_tokens", 1)
            assert 0 < tokens < lengths[rung] and whole <= lengths[rung]
            assert "max_tokens" not in more or next(r for r, n in enumerate(lengths) if whole <= n) == rung
        assert any(rung and tokens > 1024 for i, rung, tokens, _ in jobs if i % 16) == (short > 1000)


def rotate(x, rows):
    """As vLLM's rotary class: x [tokens, heads, dim] by a row of the stacked table each."""
    cos, sin = rows[:, None].chunk(2, -1)
    pairs = cos.shape[-1]
    a, b, rest = x.split((pairs, pairs, x.shape[-1] - 2 * pairs), -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)


def check_kernel():
    """A batch of requests of all rungs, first and later chunks and single tokens, over scattered pages."""
    from mrrope import _vllm_flash, _vllm_kernel

    def attend(q, k, v, **more):
        if more["causal"] and more.get("return_softmax_lse"):
            assert v.isfinite().all() and k.isfinite().all(), "pages of near keys have an end that was not written"
        return far.flash(q, k, v, **more)

    _vllm_flash.attend = attend
    torch.manual_seed(1)
    decoded = set()  # segments of near keys, where FlashAttention read the far ones
    # A step: of borders, and FlashAttention's form with it.
    for dtype, neox, heads, kv, dim, pairs, sliding, softcap, segments, allowed, step in (
            (torch.float32, True, 4, 2, 32, 16, 0, 0.0, 8, 2e-5, 0),
            (torch.float32, False, 6, 2, 48, 16, 0, 0.0, 2, 2e-5, 0),
            (torch.float32, True, 4, 4, 32, 16, 30, 0.0, 1, 2e-5, 0),
            (torch.float32, True, 3, 1, 64, 24, 0, 5.0, 4, 2e-5, 0),
            (torch.float32, True, 8, 1, 32, 16, 0, 0.0, 16, 2e-5, 0),
            (torch.half, True, 4, 2, 32, 16, 0, 0.0, 4, 4e-3, 0),
            (torch.float32, True, 4, 2, 32, 16, 0, 0.0, 8, 2e-5, 16),
            (torch.float32, False, 6, 2, 48, 16, 0, 0.0, 2, 2e-5, 32),
            (torch.float32, True, 3, 1, 64, 24, 0, 5.0, 1, 2e-5, 48),
            (torch.half, True, 4, 2, 32, 16, 0, 0.0, 8, 4e-3, 16)):
        config = ladder_config(pairs, trained=1.02, step=step or STEP)
        ladder = _vllm_rungs.read_ladder(config)
        tables = make_tables(ladder, neox)
        whole = make_whole(ladder).double()
        halves = torch.arange(2 * pairs).view(2, pairs)  # as the definition has the elements of pairs
        order = torch.cat(((halves if neox else halves.T).flatten(), torch.arange(2 * pairs, dim)))
        # rung, tokens there, tokens of this pass
        batch = [(2, 500, 70), (1, 96, 96), (0, 90, 33), (2, 130, 1), (1, 200, 1), (2, 300, 40)]
        batch = [(r, n, 1) for r, n, _ in batch] if segments in (4, 16) else batch
        if step:  # over the window, one query before and behind a border, others on rung 0
            batch = [(1, 110, 30), (2, 404, 2), (0, 50, 1), (0, 40, 9), *batch]
            batch = [b for b in batch if b[2] > 1] if segments == 1 else batch
        rung_of, lengths, counts = map(list, zip(*batch))
        tables.fill(torch.cat([torch.arange(n - c, n) for _, n, c in batch]), rung_of, tuple(counts))
        pages, page, used = torch.randperm(200), 16, 0
        keys, values = (torch.full((200, page, kv, dim), float("nan"), dtype=dtype) for _ in "kv")
        block_table, queries, wanted = torch.zeros(len(batch), 40, dtype=torch.int32), [], []
        for row, (rung, n, count) in enumerate(batch):
            q, k, v = (torch.randn(m, h, dim, dtype=torch.float64) for m, h in ((count, heads), (n, kv), (n, kv)))
            q *= 2
            wanted.append(far.attention(q, k, v, config, rung, n - count, sliding, softcap))
            need = -(-n // page)
            block_table[row, :need] = pages[used:used + need]
            slots = pages[used + torch.arange(n) // page], torch.arange(n) % page
            used += need
            keys[slots] = rotate(k, whole[ladder.first[rung]:][:n])[..., order].to(dtype)
            values[slots] = v.to(dtype)
            queries.append(rotate(q, whole[tables.rows[sum(map(len, queries)):][:count]])[..., order].to(dtype))
        query = torch.cat(queries)
        out = torch.full_like(query, float("nan"))
        _vllm_kernel.segments, _vllm_kernel.LEAST = lambda *_, n=segments: n, 32 if heads == 4 else 256
        _vllm_kernel.NEAR_LEAST = 128 if heads == 3 else 32
        parts = [part.fill_(float("nan")) for part in _vllm_kernel.make_parts(len(batch), heads, kv, dim, "cpu")]
        starts, lengths = torch.tensor([0, *counts]).cumsum(0).int(), torch.tensor(lengths, dtype=torch.int32)
        _vllm_flash.PAGE = 16 if heads == 4 else 128
        plan = _vllm_flash.make_plan(tables, starts.tolist(), lengths.tolist(), block_table, starts)
        assert bool(plan) == bool(step)
        assert not plan or (plan.single == (1 in counts) and plan.page == (step if heads == 6 else 16))
        far_pass = functools.partial(attend, max_seqlen_q=1, max_seqlen_k=500, causal=False, fa_version=3,
                                     return_softmax_lse=True)
        for gpus, flash in ((1, None), (2, None), (1, far_pass)):  # tensor parallelism: each has its share of the heads
            if kv % gpus or (flash and (sliding or max(counts) > 1)):
                continue
            out.fill_(float("nan"))
            for gpu in range(gpus):
                mine, its = (slice(gpu * n // gpus, (gpu + 1) * n // gpus) for n in (heads, kv))
                given = tables, query[:, mine], keys[:, :, its], values[:, :, its], out[:, mine]
                if plan:
                    _vllm_flash.attention(plan, *given, lengths, block_table, dim ** -0.5, softcap, 3)
                if not plan or plan.single:
                    _vllm_kernel.attention(*given, starts, lengths, block_table, 1 if plan else max(counts),
                                           dim ** -0.5, softcap, sliding, parts, flash)
            decoded |= {_vllm_kernel.near_segments(tables)} if flash else set()
            error = (out.double() - torch.cat(wanted)).abs().max().item()
            assert error < allowed, (dtype, neox, heads, dim, sliding, segments, step, gpus, error)
            print(f"{'FlashAttention' if plan or flash else 'kernel'}, {dtype}, {heads} heads over {kv}, {dim} "
                  f"elements, {segments} segments, {gpus} GPUs: largest {error:.2g}")
    assert decoded == {1, 4}
    # What is left to the kernel, and rung 0 alone, which FlashAttention does whole.
    given = [0, 2, 3], [300, 90], torch.zeros(2, 40, dtype=torch.int32), None
    tables.batch = [2, 0], [3, 1]
    assert _vllm_flash.make_plan(tables, *given) is None, "a batch of which no rungs were given"
    for tables.batch in (([], []), ([0, 0], [2, 1])):
        plan = _vllm_flash.make_plan(tables, *given)
        assert plan.plain.keys.tolist() == [300, 90] and not plan.single and plan.near is plan.far is None
    tables.batch, tables.rows = ([2, 2], [2, 1]), tables.rows[:10]
    assert _vllm_flash.make_plan(tables, *given).near
    assert _vllm_flash.make_plan(tables, [0, 2, 3], [90, 90], *given[2:]).far is None
    assert _vllm_flash.make_plan(tables, [0, 40, 41], [260, 90], *given[2:]) is None, "another shape"
    tables.batch = [2] * 16, [2] * 16
    assert _vllm_flash.make_plan(tables, [*range(0, 34, 2)], [90] * 16, *given[2:]) is None, "too many pages"
    near, other = (far.attention(q, k, v, config, rung, 0) for rung in (0, 2))
    assert (near - other).abs().max() < 1e-12, "inside the window"
    near, other = (far.attention(q, k, v, config, rung, 260) for rung in (1, 2))
    assert (near - other).abs().max() > 0.05, "this test could not fail"


check_ladder()
check_places()
check_load()
try:
    import triton  # noqa: F401
except ImportError:
    print("the kernel was NOT run: Triton is not installed")
else:
    check_kernel()
print("ok")
