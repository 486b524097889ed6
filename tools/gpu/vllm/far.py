#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""far.py FOLDER TOKENS.json OUT RUNG...: log-probabilities under a ladder of vLLM's plugin, by definition, in float64.

FOLDER: a Llama that mrrope export --to hf-mrrope wrote with elastic:NAME or far:pi. TOKENS.json: {"tokens": [...]}. OUT
gets rung-N.json for rungs.py: {"tokens", "scores", "length": of the rung}. Near and far: queries have the border of
their own position and the scale of their rung at every position. The engine does the same on a ladder of one rung
(4e-4 nats apart at 2 windows); on others it climbs. Nothing here is shared with the plugin's kernel.
"""
import json
import pathlib
import sys

import torch

BLOCK = 256  # queries at once


def rotate(x, at, theta):
    """x [tokens, heads, dim] for positions `at`; pairs are halves of the first 2 len(theta) elements."""
    angle = (at.double()[:, None] * theta)[:, None, :]
    a, b, rest = x.split((len(theta), len(theta), x.shape[-1] - 2 * len(theta)), -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin(), rest), -1)


def attention(q, k, v, rope, number, first=0, sliding=0, softcap=0.0):
    """q [new, heads, dim] from position `first` on, k and v [all, key heads, dim], none rotated; rung `number`."""
    rung, window = rope["rungs"][number], rope["original_max_position_embeddings"]
    factors = torch.tensor((rope["rungs"][0] if "near_part" in rope else rung)["factors"], dtype=torch.float64)
    pairs = len(factors)
    theta = (rope["rope_theta"] ** (-torch.arange(pairs).double() / pairs) / factors).to(q.device)
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    j = torch.arange(k.shape[0], device=q.device)
    scale = rung.get("scale", 1.0)
    near_keys, far_keys = rotate(k, j, theta), rotate(k, j.double() / scale, theta)
    out = []
    for at in range(0, q.shape[0], BLOCK):
        some = q[at:at + BLOCK].clone()
        i = first + at + torch.arange(some.shape[0], device=q.device)
        border = i * 0
        if "near_part" in rope:
            near, step = rope["near_part"]["length"], rope["near_part"]["step"]
            some[..., :2 * pairs] *= (1 + (i >= window).double() * (rung["sharpness"] - 1))[:, None, None]
            border = torch.where(i >= window, (i + 1 - near) // step * step, 0)
            border *= not sliding
        some[..., :2 * pairs] *= rung["attention_factor"] ** 2
        shift = torch.floor(border.double() * (1 - 1 / scale) + 0.5)
        scores = torch.einsum("ihd,jhd->hij", rotate(some, i, theta), near_keys)
        far = torch.einsum("ihd,jhd->hij", rotate(some, i - shift, theta), far_keys)
        scores = torch.where(j[None, :] < border[:, None], far, scores) / q.shape[-1] ** 0.5
        scores = softcap * (scores / softcap).tanh() if softcap else scores
        hidden = (j[None, :] > i[:, None]) | (j[None, :] <= i[:, None] - (sliding or len(j)))
        out.append(torch.einsum("hij,jhd->ihd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v))
    return torch.cat(out)


def flash(q, k, v, *, cu_seqlens_q, seqused_k, max_seqlen_q, max_seqlen_k, block_table, causal, softmax_scale, softcap,
          fa_version, out=None, num_splits=0, return_softmax_lse=False, scheduler_metadata=None):
    """vLLM's flash_attn_varlen_func over pages, for tests without a GPU."""
    for given in (cu_seqlens_q, seqused_k, block_table):
        assert given.dtype == torch.int32 and given.stride(-1) == 1 and given.device == q.device
    starts, lengths = cu_seqlens_q.tolist(), seqused_k.tolist()
    assert len(starts) == len(lengths) + 1 == len(block_table) + 1 and starts[0] == 0 and starts[-1] <= len(q)
    assert max(lengths) <= max_seqlen_k and max(b - a for a, b in zip(starts, starts[1:])) <= max_seqlen_q
    assert num_splits < 2 or len(scheduler_metadata) == 1 + -(-len(lengths) // 4) * 16
    assert q.stride(2) == k.stride(3) == v.stride(3) == 1
    out = torch.empty_like(q) if out is None else out
    total = torch.full((q.shape[1], len(q)), -torch.inf)
    for a, b, n, pages in zip(starts, starts[1:], lengths, block_table):
        if b == a or n == 0:
            out[a:b] = torch.nan  # FlashAttention says nothing about them
            continue
        keys, values = (x[pages[:-(-n // x.shape[1])].long()].flatten(0, 1)[:n].double().repeat_interleave(
            q.shape[1] // x.shape[2], 1) for x in (k, v))
        scores = torch.einsum("ihd,jhd->hij", q[a:b].double(), keys) * softmax_scale
        scores = softcap * (scores / softcap).tanh() if softcap else scores
        if causal:
            scores.masked_fill_(torch.ones(b - a, n, dtype=torch.bool).triu(n - (b - a) + 1), -torch.inf)
        total[:, a:b] = scores.logsumexp(-1)
        out[a:b] = torch.einsum("hij,jhd->ihd", scores.softmax(-1), values).to(out.dtype)
    return (out, total) if return_softmax_lse else out


def scores(weights, config, tokens, rung):
    """Log-probability of each token but the first."""
    def norm(x, name):
        return x * (x.square().mean(-1, keepdim=True) + config["rms_norm_eps"]).rsqrt() * weights[name]

    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    ids = torch.tensor(tokens, device=weights["model.embed_tokens.weight"].device)
    x = weights["model.embed_tokens.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        y = norm(x, at + "input_layernorm.weight")
        q, k, v = ((y @ weights[f"{at}self_attn.{n}_proj.weight"].T).view(len(ids), h, -1)
                   for n, h in (("q", heads), ("k", kv), ("v", kv)))
        y = attention(q, k, v, config["rope_parameters"], rung).flatten(1)
        x = x + y @ weights[at + "self_attn.o_proj.weight"].T
        y = norm(x, at + "post_attention_layernorm.weight")
        gate, up = (y @ weights[f"{at}mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        x = x + (torch.nn.functional.silu(gate) * up) @ weights[at + "mlp.down_proj.weight"].T
    x = norm(x, "model.norm.weight")
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    found = []
    for at in range(0, len(ids) - 1, 1024):
        logits = (x[at:at + 1024] @ head.T).log_softmax(-1)[:len(ids) - 1 - at]
        found += logits.gather(1, ids[at + 1:at + 1 + len(logits), None])[:, 0].tolist()
    return found


def main():
    import safetensors.torch

    folder, tokens, out = (pathlib.Path(a) for a in sys.argv[1:4])
    config = json.loads((folder / "config.json").read_text())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = {name: w.to(device, torch.float64)
               for name, w in safetensors.torch.load_file(folder / "model.safetensors").items()}
    text = json.loads(tokens.read_text())["tokens"]
    out.mkdir(parents=True, exist_ok=True)
    for rung in map(int, sys.argv[4:]):
        length = config["rope_parameters"]["rungs"][rung]["length"]
        some = text[:length - 1]
        with torch.no_grad():
            made = {"tokens": some, "scores": scores(weights, config, some, rung), "length": length}
        (out / f"rung-{rung}.json").write_text(json.dumps(made))
        print(f"{folder.name} rung {rung}: {len(some)} tokens, {-sum(made['scores']) / len(made['scores']):.5f} nats")


if __name__ == "__main__":
    main()
