#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of a llama GGUF with attention computed from its definition, query by query.

    near_far.py MODEL.gguf SCORES.json... [--plan LADDER.json] [--method M]... [--lengths 1024,8192]

SCORES.json comes from tests/python/score_tokens (tokens and the engine's log-probabilities under the
same ladder). Every method reads those tokens:

    plan                 the ladder of --plan, as docs/design/growing-contexts.md defines it
    self-extend:G:W      Self-Extend in its exact form: groups of G, W neighbours
    dca:C                Dual Chunk Attention in its exact form: chunks of C tokens
    none                 the model as shipped

With plan the engine's perplexity is printed beside the reference's. Needs numpy, torch and gguf; uses
a GPU in double if there is one, else the CPU in float.
"""

import argparse
import json
import math

import gguf
import numpy as np
import torch

BLOCK = 256  # queries at a time


class Llama:
    def __init__(self, path, device, dtype):
        reader = gguf.GGUFReader(path)
        field = lambda name: reader.fields[f"llama.{name}"].contents()
        if reader.fields["general.architecture"].contents() != "llama":
            raise SystemExit(f"{path} is not a llama model")
        self.heads = field("attention.head_count")
        self.kv_heads = field("attention.head_count_kv")
        self.dim = field("attention.key_length")
        self.layers = field("block_count")
        self.window = field("context_length")
        self.eps = field("attention.layer_norm_rms_epsilon")
        base = field("rope.freq_base")
        self.theta = torch.tensor([base ** (-2 * i / self.dim) for i in range(self.dim // 2)],
                                  device=device, dtype=torch.float64)
        self.device, self.dtype = device, dtype
        self.tensors = {}
        for tensor in reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            self.tensors[tensor.name] = torch.tensor(np.array(values), device=device, dtype=dtype)

    def norm(self, x, name):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.tensors[name]

    # x: [tokens, heads, dim], angles: [tokens, pairs]. llama GGUF files pair neighbouring elements.
    def rotated(self, x, angles):
        cos = angles.cos().to(self.dtype)[:, None, :]
        sin = angles.sin().to(self.dtype)[:, None, :]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    def attention(self, q, k, v, zones):
        n = q.shape[0]
        out = torch.empty_like(q)
        group = self.heads // self.kv_heads
        keys = torch.arange(n, device=self.device)
        for first in range(0, n, BLOCK):
            queries = keys[first:first + BLOCK]
            end = int(queries[-1]) + 1
            score = torch.full((self.heads, len(queries), end), -math.inf, device=self.device,
                               dtype=self.dtype)
            for query_angles, key_angles, mask, weight in zones(queries, keys[:end]):
                a = self.rotated(q[first:first + BLOCK], query_angles).transpose(0, 1)
                b = self.rotated(k[:end], key_angles).repeat_interleave(group, 1).transpose(0, 1)
                score = torch.where(mask, a @ b.transpose(1, 2) * (weight / math.sqrt(self.dim)),
                                    score)
            values = v[:end].repeat_interleave(group, 1).transpose(0, 1)
            out[first:first + BLOCK] = (score.softmax(-1) @ values).transpose(0, 1)
        return out

    # The log-probability of tokens 1, 2, ...
    def scores(self, tokens, zones):
        t = self.tensors
        x = t["token_embd.weight"][torch.tensor(tokens, device=self.device)]
        for i in range(self.layers):
            p = f"blk.{i}."
            y = self.norm(x, p + "attn_norm.weight")
            split = lambda name, heads: (y @ t[p + name].T).view(len(tokens), heads, self.dim)
            y = self.attention(split("attn_q.weight", self.heads),
                               split("attn_k.weight", self.kv_heads),
                               split("attn_v.weight", self.kv_heads), zones)
            x = x + y.flatten(1) @ t[p + "attn_output.weight"].T
            y = self.norm(x, p + "ffn_norm.weight")
            y = torch.nn.functional.silu(y @ t[p + "ffn_gate.weight"].T) * (y @ t[p + "ffn_up.weight"].T)
            x = x + y @ t[p + "ffn_down.weight"].T
        x = self.norm(x, "output_norm.weight")
        head = t.get("output.weight", t["token_embd.weight"])
        out = []
        for first in range(0, len(tokens) - 1, BLOCK):
            logits = x[first:min(first + BLOCK, len(tokens) - 1)] @ head.T
            target = torch.tensor(tokens[first + 1:first + 1 + len(logits)], device=self.device)
            out += logits.log_softmax(-1).gather(1, target[:, None])[:, 0].tolist()
        return out


def plain(model):
    def zones(queries, keys):
        causal = keys[None, :] <= queries[:, None]
        yield queries[:, None] * model.theta, keys[:, None] * model.theta, causal, 1
    return zones


# Queries of one block may be on several rungs: each is a zone of its own.
def of_plan(model, ladder):
    near = ladder.get("near")
    rungs = ladder["rungs"]
    if near is None:
        raise SystemExit("--plan is not a ladder with a near part")

    def state(i):
        length = i + 1
        rung = next(r for r, at in enumerate(rungs) if length <= at["length"])
        if length <= model.window:
            return 0, 0
        return rung, near["step"] * ((length - near["length"]) // near["step"])

    def zones(queries, keys):
        states = [state(int(i)) for i in queries]
        for rung, border in sorted(set(states)):
            own = torch.tensor([s == (rung, border) for s in states], device=keys.device)[:, None]
            causal = own & (keys[None, :] <= queries[:, None])
            exact = keys[None, :] >= border
            yield queries[:, None] * model.theta, keys[:, None] * model.theta, causal & exact, 1
            if border == 0:
                continue
            factor = torch.tensor(rungs[rung]["factor"], device=keys.device, dtype=torch.float64)
            weight = rungs[rung]["attention_scale"] ** 2
            if bool((factor == factor[0]).all()):
                shift = math.floor(border * (1 - 1 / float(factor[0])) + 0.5)
                key_angles = keys[:, None] / factor * model.theta
                query_angles = (queries[:, None] - shift) * model.theta
            else:
                key_angles = (keys[:, None] - border) * model.theta / factor
                query_angles = (queries[:, None] - border) * model.theta
            yield query_angles, key_angles, causal & ~exact, weight
    return zones


def self_extend(model, group, neighbours):
    def zones(queries, keys):
        causal = keys[None, :] <= queries[:, None]
        exact = queries[:, None] - keys[None, :] < neighbours
        yield queries[:, None] * model.theta, keys[:, None] * model.theta, causal & exact, 1
        places = queries // group + neighbours - neighbours // group
        yield places[:, None] * model.theta, (keys // group)[:, None] * model.theta, causal & ~exact, 1
    return zones


def dual_chunks(model, chunk):
    def zones(queries, keys):
        causal = keys[None, :] <= queries[:, None]
        apart = queries[:, None] // chunk - keys[None, :] // chunk
        key_angles = (keys % chunk)[:, None] * model.theta
        inside = queries % chunk
        yield inside[:, None] * model.theta, key_angles, causal & (apart == 0), 1
        next_one = torch.minimum(inside + chunk, torch.full_like(inside, model.window - 1))
        yield next_one[:, None] * model.theta, key_angles, apart == 1, 1
        last = torch.full_like(inside, model.window - 1)
        yield last[:, None] * model.theta, key_angles, apart > 1, 1
    return zones


def zones_of(model, method, ladder):
    name, *numbers = method.split(":")
    if name == "none":
        return plain(model)
    if name == "plan" and ladder is not None:
        return of_plan(model, ladder)
    if name == "self-extend" and len(numbers) == 2:
        return self_extend(model, int(numbers[0]), int(numbers[1]))
    if name == "dca" and len(numbers) == 1:
        return dual_chunks(model, int(numbers[0]))
    raise SystemExit(f"'{method}' is not a method: give plan (with --plan), self-extend:G:W, dca:C or none")


def perplexity(scores, length):
    return math.exp(-sum(scores[:length - 1]) / (length - 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("scores", nargs="+")
    parser.add_argument("--plan")
    parser.add_argument("--method", action="append", default=[])
    parser.add_argument("--lengths", default="")
    flags = parser.parse_args()
    gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.float64) if gpu else ("cpu", torch.float32)
    model = Llama(flags.model, device, dtype)
    ladder = json.load(open(flags.plan)) if flags.plan else None
    for path in flags.scores:
        given = json.load(open(path))
        tokens = given["tokens"]
        lengths = [int(n) for n in flags.lengths.split(",") if n] or [len(tokens)]
        for method in flags.method or ["plan"]:
            with torch.no_grad():
                found = model.scores(tokens[:max(lengths)], zones_of(model, method, ladder))
            for length in lengths:
                line = {"text": path, "method": method, "length": length,
                        "perplexity": perplexity(found, length)}
                if method == "plan" and "scores" in given:
                    line["engine"] = perplexity(given["scores"], length)
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
