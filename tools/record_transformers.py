#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what transformers' own RoPE functions return, for the unit tests to compare with.

    python3 -m pip install mpmath torch transformers
    python3 tools/record_transformers.py            # writes tests/golden/transformers.json
    python3 tools/record_transformers.py --out FILE

Each case holds the method and request in this project's words, the rope_parameters that
transformers was given, and what came back: inv_freq in float32 (nine digits bring every bit back)
and attention_factor. seq_len is left out where the function was called without it.
"""

import json
import sys

import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

import make_goldens

GEOMETRIES = [
    {"name": "LLaMA2-7B", "rotary_dim": 128, "base": 10000, "train_length": 4096},
    {"name": "LLaMA3-8B", "rotary_dim": 128, "base": 500000, "train_length": 8192},
    {"name": "Qwen2.5-3B", "rotary_dim": 128, "base": 1000000, "train_length": 32768},
    {"name": "SmolLM2-135M", "rotary_dim": 64, "base": 100000, "train_length": 8192},
    {"name": "MrRoPE Tiny", "rotary_dim": 128, "base": 10000, "train_length": 1024},
]
SCALES = (1.0, 2.0, 8.0, 32.0, 64.0)


def call(geometry, rope_parameters, longest, seq_len):
    """inv_freq and attention_factor of one transformers function."""
    config = transformers.LlamaConfig(
        hidden_size=geometry["rotary_dim"],
        num_attention_heads=1,
        head_dim=geometry["rotary_dim"],
        max_position_embeddings=longest,
        rope_parameters={"rope_theta": float(geometry["base"]), **rope_parameters},
    )
    function = ROPE_INIT_FUNCTIONS[rope_parameters["rope_type"]]
    inv_freq, attention_factor = function(config, torch.device("cpu"), seq_len=seq_len)
    assert inv_freq.dtype == torch.float32
    return inv_freq.tolist(), float(attention_factor)


def long_factors(geometry, scale):
    last = geometry["rotary_dim"] // 2 - 1
    return [round(1 + (scale - 1) * (i / last) ** 2 + 0.003 * (i * 37 % 11), 3)
            for i in range(last + 1)]


def short_factors(geometry):
    return [round(1 + 0.01 * (i % 13), 2) for i in range(geometry["rotary_dim"] // 2)]


def requests(geometry):
    """(method, scale, our parameters, rope_parameters, max_position_embeddings, seq_len)."""
    window = geometry["train_length"]
    for scale in SCALES:
        target = int(window * scale)
        original = {"factor": scale, "original_max_position_embeddings": window}

        yield "pi", scale, {}, {"rope_type": "linear", "factor": scale}, target, None
        dynamic = {"rope_type": "dynamic", "factor": scale}
        for seq_len in (None, window // 2, 4 * window):
            yield "dynamic-ntk", scale, {}, dynamic, window, seq_len

        yield "yarn", scale, {}, {"rope_type": "yarn", **original}, target, None
        betas = {"beta_fast": 16.0, "beta_slow": 2.0}
        yield "yarn", scale, betas, {"rope_type": "yarn", **original, **betas}, target, None
        betas = {"beta_slow": 1e-4}  # pushes the upper boundary past the last pair
        yield "yarn", scale, betas, {"rope_type": "yarn", **original, **betas}, target, None

        for betas in ({"beta_fast": 4.0, "beta_slow": 1.0}, {"beta_fast": 8.0, "beta_slow": 2.0}):
            factors = {"low_freq_factor": betas["beta_slow"],
                       "high_freq_factor": betas["beta_fast"]}
            llama3 = {"rope_type": "llama3", **original, **factors}
            yield "llama3", scale, betas, llama3, target, None

        lists = {"long_factor": long_factors(geometry, scale),
                 "short_factor": short_factors(geometry)}
        longrope = {"rope_type": "longrope", **original, **lists}
        for seq_len, used in ((window + 1, "long_factor"), (window, "short_factor")):
            yield "longrope", scale, {"factors": lists[used]}, longrope, target, seq_len


def record(geometry, method, scale, parameters, rope_parameters, longest, seq_len):
    inv_freq, attention_factor = call(geometry, rope_parameters, longest, seq_len)
    case = {"geometry": geometry["name"], "method": method, "scale": scale,
            "parameters": parameters}
    if seq_len is not None:
        case["seq_len"] = seq_len
    # The lists stand in the parameters already, or were not used.
    case["rope_parameters"] = {k: v for k, v in rope_parameters.items()
                               if not isinstance(v, list)}
    case["attention_factor"] = attention_factor
    text = json.dumps(case, separators=(",", ":"))
    return text[:-1] + ',"inv_freq":[' + ",".join(f"{x:.9g}" for x in inv_freq) + "]}"


def document():
    provenance = {
        "generator": "tools/record_transformers.py",
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "functions": "transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS",
    }
    cases = [record(g, *request) for g in GEOMETRIES for request in requests(g)]
    return "".join([
        '{"provenance":', json.dumps(provenance, indent=1), ",\n",
        '"geometries":[\n', ",\n".join(json.dumps(g, separators=(",", ":")) for g in GEOMETRIES),
        "\n],\n",
        '"cases":[\n', ",\n".join(cases), "\n]}\n",
    ])


if __name__ == "__main__":
    sys.exit(make_goldens.write(document, "transformers.json", __doc__))
