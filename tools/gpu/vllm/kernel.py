#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kernel.py: microseconds of attention over near and far keys on a GPU, and how fast plain FlashAttention is beside it.

Needs vLLM and mrrope in one environment; takes about a minute. Timed in alternation, as CUDA graphs: FlashAttention
over the same cache, its two passes with near keys in pages of 16 and 128, and the Triton kernel; and for one new token
the Triton kernel in other shapes, and the one for near keys beside FlashAttention's pass over far ones. In brackets:
plain FlashAttention's time over this one's.
"""
import functools
import itertools
import math
import statistics
import subprocess
import sys
import time

import torch
from mrrope import _vllm_far, _vllm_flash, _vllm_kernel, _vllm_rungs

GEOMETRIES = ((32, 8, 64, 1024, 256), (12, 2, 128, 32768, 1024))  # heads, of keys, elements, window, near part and step
CHOICES = list(itertools.product((32, 64, 128), (32, 64), (4, 8), (2, 3)))  # segments, tile, warps, stages
CHOICES += [("near", *shape) for shape in itertools.product((64, 128, 256), (32, 64), (2, 4), (2,))]
NOW, HELPERS, KEYS, DEVICE = (64, 32, 4, 2), 12, (4096, 32768, 131072), "cuda"
MIXED = [512] * 12 + [3600] * 10 + [16384] * 6 + [32768] * 3 + [131072]  # as rungs.py speed
CASES = [([n], new) for n in KEYS for new in (2048, 8192, 1) if new <= n] + [([n] * 32, 1) for n in KEYS] + [(MIXED, 1)]


def make_bed(heads, kv, dim, window, near, pages):
    """Tables, a cache and block tables."""
    scale = near * (KEYS[-1] // near - 1) / math.floor((window - 2 * near) / 1.25)
    rungs = [{"rung": i, "length": n, "scale": s, "sharpness": 1 + 0.1 * i, "attention_factor": 1.0,
              "factors": [s] * (dim // 2)} for i, (n, s) in enumerate(((window, 1.0), (KEYS[-1], scale)))]
    ladder = _vllm_rungs.read_ladder({"rope_theta": 10000.0, "original_max_position_embeddings": window,
                                      "rungs": rungs, "near_part": {"length": near, "step": near}})
    return (_vllm_far.Tables(ladder, ladder.near, True, 32, 8192, DEVICE),
            torch.empty(pages, 16, kv, 2 * dim, dtype=torch.float16, device=DEVICE).normal_(),
            (torch.randperm(32 * KEYS[-1] // 16, device=DEVICE) % pages).int().view(32, -1))


def make_forms(bed, heads, dim, lengths, new, choices, version):
    """{name: (what to run, its output)}. Sequences of these lengths, `new` tokens of each are new."""
    requests, keys = len(lengths), max(lengths)
    query = 2 * torch.randn(requests * new, heads, dim, device=DEVICE).half()
    starts = [new * i for i in range(requests + 1)]
    begin, ends = (torch.tensor(x, dtype=torch.int32, device=DEVICE) for x in (starts, lengths))
    tables, kv, table, scale = bed[0], bed[1].split(dim, -1), bed[2][:requests], dim ** -0.5
    tables.fill(torch.cat([torch.arange(n - new, n, device=DEVICE) for n in lengths]),
                [int(n > tables.window) for n in lengths], (new,) * requests)
    made = {}

    def pass_over(far_keys):  # of one new token each, as vLLM's own backend does it too
        schedule = _vllm_flash.Schedule(requests, heads, kv[0].shape[2], dim, 16, torch.half, DEVICE)
        return schedule.make(far_keys, begin, keys)

    def plain(out):
        more = {"max_seqlen_q": new, "max_seqlen_k": keys, "causal": True, "fa_version": version}
        call = functools.partial(_vllm_flash.attend, **more) if whole is None else whole
        call(query, *kv, out=out, cu_seqlens_q=begin, seqused_k=ends, block_table=table, softmax_scale=scale,
             softcap=0.0)

    def passes(plan, out):
        _vllm_flash.attention(plan, tables, query, *kv, out, ends, table, scale, 0.0, version)

    def kernel(choice, parts, out):
        flash = {}
        if choice[0] == "near":
            _vllm_kernel.NEAR_LEAST, _vllm_kernel.NEAR_TILES = choice[1], choice[2:]
            flash = {"flash": far_pass}
        elif new == 1:
            _vllm_kernel.tiles, _vllm_kernel.segments = lambda *_: choice[1:], lambda *_: choice[0]
        _vllm_kernel.attention(tables, query, *kv, out, begin, ends, table, new, scale, 0.0, 0, parts, **flash)

    def add(name, call, *args):
        out = torch.zeros_like(query)
        made[name] = lambda: call(*args, out), out

    one = new == 1 and _vllm_flash.find(dim) == 3
    whole, far_pass = (pass_over(n) if one else None for n in (ends, tables.far_keys[:requests]))
    if version:
        add("plain", plain)
    for _vllm_flash.PAGE in (16, 128) if version and new > 1 else ():
        add(f"passes/{_vllm_flash.PAGE}", passes, _vllm_flash.make_plan(tables, starts, lengths, table, begin))
    for choice in choices:
        rows = 32 * heads * (_vllm_kernel.NEAR_SEGMENTS if choice[0] == "near" else choice[0])
        add(choice, kernel, choice, [torch.zeros(n, device=DEVICE) for n in (rows * dim, rows, rows)])
    return made


def clock(forms, repeat):
    """{name: microseconds}, and the largest difference between those that are not plain."""
    graphs, times = {}, {}
    for name, (run, _) in forms.items():
        try:
            run()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(repeat):
                    run()
            graphs[name], times[name] = graph, []
        except Exception as error:  # the others are still worth their time
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    for _, (name, graph) in itertools.product(range(4), graphs.items()):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times[name].append(begin.elapsed_time(end) * 1000 / repeat)
    ours = [forms[name][1].float() for name in times if name != "plain"]
    return ({name: statistics.median(taken[1:]) for name, taken in times.items()},
            max(((x - ours[0]).abs().max().item() for x in ours), default=math.nan))


def compile_share(share):
    """Into Triton's cache on the disk."""
    shapes = [(2, NOW)] * (share == 0) + [(1, choice) for choice in CHOICES[share::HELPERS]]
    for (new, choice), geometry in itertools.product(shapes, GEOMETRIES):
        try:
            _vllm_flash.find(geometry[2])
            make_forms(make_bed(*geometry, 64), geometry[0], geometry[2], [64], new, [choice], 0)[choice][0]()
        except Exception:
            pass  # clock() prints it


def main():
    began, tiles = time.time(), _vllm_kernel.tiles
    for helper in [subprocess.Popen([sys.executable, __file__, str(i)]) for i in range(HELPERS)]:
        helper.wait()
    print(f"{torch.cuda.get_device_name()}; other shapes are compiled after {time.time() - began:.0f} s")
    for geometry in GEOMETRIES:
        version, bed, ratios = _vllm_flash.find(geometry[2]), make_bed(*geometry, 32 * KEYS[-1] // 16), {}
        print("\n%d heads over %d of %d, window %d, near %d" % geometry, "FlashAttention", version)
        for lengths, new in CASES:
            _vllm_kernel.tiles, what = tiles, (bed, geometry[0], geometry[2], lengths, new)
            times, apart = clock(make_forms(*what, [NOW], version), 2 if new > 1 else 10)
            plain = times.get("plain", math.nan)
            each = (f"{name}: {t:.1f} ({plain / t:.2f})" for name, t in times.items())
            print(f"{len(lengths):2} x {new:4} new of {min(lengths)} to {max(lengths)}:", *each, f"{apart:.1e} apart",
                  flush=True)
            if new == 1:
                times, apart = clock(make_forms(*what, CHOICES, 0), 3)
                print("   near:", *(f"{t:.1f}" for name, t in times.items() if name[0] == "near"))
                for name, t in times.items():
                    ratios.setdefault(name, []).append(plain / t)
                print(f"   {len(times)} shapes, {apart:.1e} apart", flush=True)
        for name, each in sorted(ratios.items(), key=lambda x: -x[1][-1])[:12]:  # by the mixed batch
            print("segments, tile, warps, stages", name, *(f"{r:.2f}" for r in each))
        del bed, what
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    compile_share(int(sys.argv[1])) if len(sys.argv) > 1 else main()
