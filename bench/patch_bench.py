# SPDX-License-Identifier: Apache-2.0
"""The cost of patch(): python bench/patch_bench.py [TOKENS]   (numpy, torch and transformers needed)

A random model of the shape of MrRoPE Tiny, on the CPU. First a pass of one token with and without a
patch, then the turns of a cache alone. "turns" of build/release/bin/elastic_bench models/mrrope-tiny.gguf
--tokens TOKENS are those of the engine.
"""
import statistics
import sys
import time

import torch
import transformers

import mrrope


def seconds(call, times=15):
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main():
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 32768
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=512, intermediate_size=1024, num_hidden_layers=10,
        num_attention_heads=4, num_key_value_heads=2, head_dim=128, max_position_embeddings=1024)
    model = transformers.LlamaForCausalLM(config).eval()
    row = torch.zeros((1, 1), dtype=torch.long)

    def step():
        with torch.no_grad():
            model(row, use_cache=False)

    step()
    print(f"a pass of one token: {1e3 * seconds(step):.2f} ms unpatched")
    for method in ("pro", "elastic:pro"):
        mrrope.patch(model, method, ctx=tokens)
        print(f"a pass of one token: {1e3 * seconds(step):.2f} ms under {method}")
        mrrope.unpatch(model)

    from mrrope._growing import turn_layers

    ladder = mrrope.ladder(mrrope.Geometry(128, 1e4, 1024), "elastic:pro", ctx=tokens)
    layers = [torch.randn(1, 2, tokens, 128).half() for _ in range(10)]

    def turns():
        for old, new in zip(ladder.rungs, ladder.rungs[1:]):
            turn_layers([keys[:, :, : old.length] for keys in layers], old.plan, new.plan,
                        torch.arange(old.length)[None], torch.get_num_threads())

    print(f"all {len(ladder.rungs) - 1} turns on the way to {tokens} tokens, 10 layers of 2 heads in "
          f"f16: {seconds(turns, 5):.3f} s")


main()
