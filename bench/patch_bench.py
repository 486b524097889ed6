# SPDX-License-Identifier: Apache-2.0
"""The cost of patch(): python bench/patch_bench.py [TOKENS [ELASTIC_BENCH MODEL.gguf]]

Needs numpy, torch and transformers. A random model of the shape of MrRoPE Tiny, on the CPU. First passes
with and without a patch, in turns, so that a busy machine slows all of them alike. Then the turns of a
cache in f16 on the way to TOKENS; with the engine's bench and MrRoPE Tiny also the engine's, in
alternation.
"""
import re
import statistics
import subprocess
import sys
import time

import torch
import transformers

import mrrope
from mrrope._growing import turn_layers


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def passes(count, rounds, tokens):
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=512, intermediate_size=1408, num_hidden_layers=10,
        num_attention_heads=4, num_key_value_heads=2, head_dim=128, max_position_embeddings=1024)
    model = transformers.LlamaForCausalLM(config).eval()
    row = torch.zeros((1, count), dtype=torch.long)

    def step():
        with torch.no_grad():
            model(row, use_cache=False)

    taken = {"unpatched": [], "pro": [], "elastic:pro": []}
    for _ in range(rounds):
        for method, times in taken.items():
            if method != "unpatched":
                mrrope.patch(model, method, ctx=tokens)
            step()
            times.extend(seconds(step) for _ in range(3))
            if method != "unpatched":
                mrrope.unpatch(model)
    for method, times in taken.items():
        print(f"a pass of {count} tokens, {method}: fastest {1e3 * min(times):.3f} ms, median "
              f"{1e3 * statistics.median(times):.3f} ms", flush=True)


def beyond_the_window(window, width, layers):
    """CPU time of one pass over 1,500 tokens; and of the unpatched model in the pieces of a ladder."""
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=4 * width, intermediate_size=4 * width, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, head_dim=width, max_position_embeddings=window)
    model = transformers.LlamaForCausalLM(config).eval()
    row = torch.zeros((1, 1500), dtype=torch.long)
    taken = {}

    def measure(name, ends):
        cache, start, began = transformers.DynamicCache(config=config), 0, time.process_time()
        with torch.no_grad():
            for end in ends:
                model(row[:, start:end], past_key_values=cache)
                start = end
        taken.setdefault(name, []).append(time.process_time() - began)

    for _ in range(6):
        measure("unpatched", [1500])
        for method in ("pro", "auto", "elastic:pro"):
            made = mrrope.patch(model, method, ctx=4096)
            measure(method, [1500])
            mrrope.unpatch(model)
            if method != "pro":
                ends = [n for n in range(1, 1500) if made.place_at(n) != made.place_at(n + 1)] + [1500]
                measure(f"unpatched in the {len(ends)} pieces of {method}", ends)
    for name, times in taken.items():
        print(f"1500 tokens, window {window}, {name}: {min(times[1:]):.3f} s of CPU, "
              f"{min(times[1:]) / min(taken['unpatched'][1:]):.2f} of the unpatched pass", flush=True)


def turns_in_python(tokens):
    ladder = mrrope.ladder(mrrope.Geometry(128, 1e4, 1024), "elastic:pro", ctx=tokens)
    layers = [torch.randn(1, 2, tokens, 128).half() for _ in range(10)]

    def turns():
        for old, new in zip(ladder.rungs, ladder.rungs[1:]):
            turn_layers([keys[:, :, : old.length] for keys in layers], old.plan, new.plan,
                        torch.arange(old.length)[None], torch.get_num_threads())

    return len(ladder.rungs) - 1, turns


def turns_in_engine(program, model, tokens):
    said = subprocess.run([program, model, "--tokens", str(tokens), "--turns-only", "--threads",
                           str(torch.get_num_threads())], capture_output=True, text=True, check=True)
    return float(re.search(r"^elastic:pro .* turns +(\S+) s", said.stdout, re.M)[1])


def main():
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 32768
    for count, rounds in ((1, 20), (512, 5)):
        passes(count, rounds, tokens)
    beyond_the_window(1024, 64, 4)
    beyond_the_window(256, 16, 3)
    count, turns = turns_in_python(tokens)
    turns()
    here, there = [], []
    for _ in range(5):  # by turns, as above
        here.append(seconds(turns))
        if len(sys.argv) > 3:
            there.append(turns_in_engine(sys.argv[2], sys.argv[3], tokens))
    print(f"all {count} turns on the way to {tokens} tokens, 10 layers of 2 heads in f16: fastest "
          f"{min(here):.3f} s, median {statistics.median(here):.3f} s")
    if there:
        print(f"the same in the engine: fastest {min(there):.3f} s, median "
              f"{statistics.median(there):.3f} s")


main()
