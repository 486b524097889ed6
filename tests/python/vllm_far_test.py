# SPDX-License-Identifier: Apache-2.0
"""Near and far keys for vLLM, as far as they need no vLLM: ladders, borders, rows, and the kernel. Needs torch.

The kernel runs in Triton's interpreter, if Triton is installed, against attention by definition in float64 (that
interpreter has no products of bfloat16).
tools/gpu/vllm/classes.py has the backend with vLLM's classes, and tools/gpu/vllm/far.py a server.
"""
import copy
import math
import os
import pathlib
import random
import sys
import types

os.environ["TRITON_INTERPRET"] = "1"
import torch

import mrrope
from mrrope import _vllm_far, _vllm_rungs
from mrrope._vllm_far import border_of, shifts

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools/gpu/vllm"))
import far
import rungs

WINDOW, NEAR, STEP = 96, 20, 12


def ladder_config(pairs=16, window=WINDOW, near=NEAR, step=STEP, trained=1.0, lengths=(96, 200, 500)):
    """As mrrope export writes it, from the library's ladder."""
    rungs = []
    for i, length in enumerate(lengths):
        last = step * ((length - near) // step)
        scale = last / math.floor((window - near - step) / 1.25) if i else 1.0
        sharp = (math.log(length) / math.log(window)) ** 0.5 if i else 1.0
        rungs.append({"rung": i, "length": length, "scale": scale, "sharpness": sharp, "attention_factor": 1.0,
                      "factors": [scale * trained ** p for p in range(pairs)]})
    return {"rope_type": "mrrope", "rope_theta": 10000.0, "original_max_position_embeddings": window, "near": near,
            "near_step": step, "rungs": rungs}


def refused(part, call, *args):
    try:
        call(*args)
    except ValueError as error:
        assert part in str(error), (part, str(error))
    else:
        raise AssertionError(f"not refused: {part}")


def check_ladder():
    good = ladder_config(trained=1.05)
    ladder = _vllm_rungs.read_ladder(good)
    assert (ladder.near.length, ladder.near.step, ladder.near.scales[0]) == (NEAR, STEP, 1.0)
    plain = {k: v for k, v in good.items() if k not in ("near", "near_step")}
    assert _vllm_rungs.read_ladder(plain).near is None
    own = _vllm_rungs.own_parameters(good)
    assert own == {"rope_type": "default", "rope_theta": 10000.0}

    def changed(edit):
        config = copy.deepcopy(good)
        edit(config)
        return config

    digests = {ladder.digest, _vllm_rungs.read_ladder(plain).digest}
    for edit in (lambda c: c.update(near=NEAR + 1), lambda c: c.update(near_step=STEP + 1),
                 lambda c: c["rungs"][1].update(sharpness=1.5)):
        digests.add(_vllm_rungs.read_ladder(changed(edit)).digest)
    assert len(digests) == 5, "two plans share their caches"
    for part, edit in (("near 0", lambda c: c.update(near=0)), ("near None", lambda c: c.pop("near")),
                       ("near True", lambda c: c.update(near=True)), ("near 84", lambda c: c.update(near=84)),
                       ("near_step '12'", lambda c: c.update(near_step="12")),
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
    # Rows of a mixed batch in any order.
    ladder = _vllm_rungs.read_ladder(ladder_config())
    tables = make_tables(ladder, True)
    chance = random.Random(1)
    for _ in range(20):
        batch = [(r, chance.randrange(ladder.rungs[r].length - c + 1), c)
                 for r, c in ((chance.randrange(3), chance.choice((1, 7, 60))) for _ in range(6))]
        positions = torch.cat([torch.arange(s, s + c) for _, s, c in batch] + [torch.full((50,), 10 ** 6)])
        tables.fill(positions, [r for r, _, _ in batch], [c for _, _, c in batch])
        wanted = [p - shifts(ladder.near, 500)[r][border_of(ladder.near, WINDOW, p) // STEP]
                  for r, s, c in batch for p in range(s, s + c)]
        assert tables.rows[:len(wanted)].tolist() == wanted and max(wanted) < WINDOW
        assert tables.rung[:6].tolist() == [r for r, _, _ in batch]


def make_tables(ladder, neox):
    return _vllm_far.Tables(ladder, ladder.near, neox, 16, 1024, "cpu")


def thetas(ladder):
    factors = torch.tensor(ladder.rungs[0].factors, dtype=torch.float64)
    return ladder.base ** (-torch.arange(len(factors)).double() / len(factors)) / factors


def rotated(x, angles, neox):
    """x [..., dim] by angles [..., pairs]; elements behind the pairs stay."""
    pairs = angles.shape[-1]
    a, b = (x[..., :pairs], x[..., pairs:2 * pairs]) if neox else (x[..., 0:2 * pairs:2], x[..., 1:2 * pairs:2])
    c, s = angles.cos(), angles.sin()
    out = x.clone()
    first, second = a * c - b * s, b * c + a * s
    if neox:
        out[..., :pairs], out[..., pairs:2 * pairs] = first, second
    else:
        out[..., 0:2 * pairs:2], out[..., 1:2 * pairs:2] = first, second
    return out


def by_definition(ladder, rung, q, k, v, start, scale, neox, sliding=0, softcap=0.0):
    """q [new, heads, dim] at start, start + 1, ...; k, v [all, key heads, dim], none rotated; float64."""
    near, window = ladder.near, ladder.rungs[0].length
    pairs = len(ladder.rungs[0].factors)
    theta = thetas(ladder)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    j = torch.arange(k.shape[0]).double()
    out = torch.zeros_like(q)
    for at in range(q.shape[0]):
        i = start + at
        border = 0 if sliding else border_of(near, window, i)
        shift = shifts(near, ladder.rungs[-1].length)[rung][border // near.step]
        distance = torch.where(j < border, i - shift - j / near.scales[rung], i - j)
        turned = rotated(q[at].expand(len(j), -1, -1), distance[:, None, None] * theta, neox)
        sharp = near.sharpness[rung] if i >= window else 1.0
        turned[..., :2 * pairs] *= sharp
        score = (turned * k).sum(-1) * scale
        if softcap:
            score = softcap * (score / softcap).tanh()
        hidden = (j > i) | (j <= i - sliding if sliding else j < 0)
        out[at] = (score.masked_fill(hidden[:, None], -math.inf).softmax(0)[..., None] * v).sum(0)
    return out


def check_tools():
    """The reference of far.py is the definition above, on one block and on several; requests of the load test."""
    config = ladder_config(trained=1.02)
    ladder = _vllm_rungs.read_ladder(config)
    torch.manual_seed(2)
    q, k, v = (torch.randn(n, 2, 32, dtype=torch.float64) for n in (300, 500, 500))
    for rung in (1, 2):
        some = slice(0, 200 if rung == 1 else 500)
        first = len(k[some]) - 150
        got = far.attention(q[:150], k[some], v[some], config, rung, first)
        wanted = by_definition(ladder, rung, q[:150], k[some], v[some], first, 32 ** -0.5, True)
        assert (got - wanted).abs().max() < 1e-10, rung
    whole = far.attention(q, k[:300], v[:300], config, 2)
    assert (whole[:40] - far.attention(q[:40], k[:300], v[:300], config, 2)).abs().max() < 1e-12
    refs = {r: {"length": n} for r, n in enumerate((1024, 4096, 8192))}
    for short in (16, 1100):
        jobs = rungs.load_jobs(refs, short)
        assert len(jobs) == 1000 and {rung for _, rung, _, _ in jobs} == {0, 1, 2}
        lengths = [1024, 4096, 8192]
        for i, rung, tokens, more in jobs:
            assert 0 < tokens < lengths[rung]
            if "max_tokens" in more:  # put on its rung by its length
                assert next(r for r, n in enumerate(lengths) if tokens + more["max_tokens"] <= n) == rung
        assert any(rung and tokens > 1024 for i, rung, tokens, _ in jobs if i % 16) == (short > 1000)


def check_kernel():
    """A batch of requests of all rungs, first and later chunks and single tokens, over scattered pages."""
    from mrrope import _vllm_kernel

    torch.manual_seed(1)
    for dtype, neox, heads, kv, dim, pairs, sliding, softcap, segments, allowed in (
            (torch.float32, True, 4, 2, 32, 16, 0, 0.0, 1, 2e-5), (torch.float32, False, 6, 2, 48, 16, 0, 0.0, 1, 2e-5),
            (torch.float32, True, 4, 4, 32, 16, 30, 0.0, 1, 2e-5), (torch.float32, True, 3, 1, 64, 24, 0, 5.0, 4, 2e-5),
            (torch.float32, True, 8, 1, 32, 16, 0, 0.0, 16, 2e-5), (torch.float16, True, 4, 2, 32, 16, 0, 0.0, 4, 4e-3)):
        ladder = _vllm_rungs.read_ladder(ladder_config(pairs, trained=1.02))
        tables = make_tables(ladder, neox)
        # rung, tokens there, tokens of this pass
        batch = [(2, 500, 70), (1, 96, 96), (0, 90, 33), (2, 130, 1), (1, 200, 1), (2, 300, 40)]
        if segments > 1:
            batch = [(r, n, 1) for r, n, _ in batch]
        page, pages = 16, 200
        tables.fill(torch.cat([torch.arange(n - c, n) for _, n, c in batch]), [r for r, _, _ in batch],
                    [c for _, _, c in batch])
        order = torch.randperm(pages)
        cache = torch.full((pages, kv, page, 2 * dim), float("nan"), dtype=dtype)
        keys, values = cache.transpose(1, 2).split(dim, dim=-1)
        block_table, queries, wanted, used = torch.zeros(len(batch), 40, dtype=torch.int32), [], [], 0
        theta = thetas(ladder)
        for row, (rung, n, count) in enumerate(batch):
            q, k, v = (torch.randn(m, h, dim, dtype=torch.float64) for m, h in ((count, heads), (n, kv), (n, kv)))
            q *= 2
            wanted.append(by_definition(ladder, rung, q, k, v, n - count, dim ** -0.5, neox, sliding, softcap))
            need = -(-n // page)
            block_table[row, :need] = order[used:used + need]
            slots = order[used + torch.arange(n) // page], torch.arange(n) % page
            used += need
            seen = torch.arange(n).double()[:, None, None] / ladder.near.scales[rung] * theta
            keys[slots], values[slots] = rotated(k, seen, neox).to(dtype), v.to(dtype)
            at = tables.rows[sum(len(x) for x in queries):][:count]
            queries.append(rotated(q, at[:, None, None] * theta, neox).to(dtype))
        query, out = torch.cat(queries), torch.full((sum(c for _, _, c in batch), heads, dim), float("nan"), dtype=dtype)
        counts = torch.tensor([0] + [c for _, _, c in batch])
        padded = 1 << (dim - 1).bit_length()
        parts = None if segments == 1 else (torch.full((len(query), heads, segments, padded), float("nan")),
                                            *(torch.full((len(query), heads, segments), float("nan")) for _ in "ab"))
        _vllm_kernel.attention(tables, query, keys, values, out, counts.cumsum(0).int(),
                               torch.tensor([n for _, n, _ in batch], dtype=torch.int32), block_table,
                               max(c for _, _, c in batch), dim ** -0.5, softcap, sliding, parts)
        error = (out.double() - torch.cat(wanted)).abs().max().item()
        assert error < allowed, (dtype, neox, heads, dim, sliding, segments, error)
        print(f"kernel, {dtype}, {heads} heads over {kv}, {dim} elements, {segments} segments: largest {error:.2g}")
    plain, far = (by_definition(ladder, rung, q, k, v, 0, 1.0, True) for rung in (0, 2))
    assert (plain - far).abs().max() < 1e-12, "inside the window"
    plain, far = (by_definition(ladder, rung, q, k, v, 260, 1.0, True) for rung in (1, 2))
    assert (plain - far).abs().max() > 0.05, "this test could not fail"


check_ladder()
check_places()
check_tools()
try:
    import triton  # noqa: F401
except ImportError:
    print("the kernel was NOT run: Triton is not installed")
else:
    check_kernel()
print("ok")
