#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of the bundled model under three plans, by transformers in fp32.

    python tools/record_logprobs.py CHECKPOINT      # writes tests/golden/tiny_logprobs.json anew, with its text

CHECKPOINT is the Hugging Face form of models/mrrope-tiny.gguf. Needs torch, transformers and mpmath.
The plans come from tools/make_goldens.py, which has the papers' formulas; nothing is shared with mrrope.
"""

import json
import math
import pathlib
import sys

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from make_goldens import Geometry, attention_scale, factors_of

LENGTH = 4096
SCALE = 4.0
BAND = 256
SAMPLES = 64

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "tests/golden/tiny_logprobs.json"


def log_probabilities(model, tokens, method):
    config = model.config
    rotary = model.model.rotary_emb
    geometry = Geometry("", config.head_dim, 10000, config.max_position_embeddings)
    *_, factor = factors_of(geometry, method, SCALE, 0, {})
    rotary.inv_freq = torch.tensor([float(geometry.theta(i) / f) for i, f in enumerate(factor)])
    rotary.attention_scaling = float(attention_scale(geometry, method, SCALE, {}))
    with torch.no_grad():
        logits = model(tokens[None], use_cache=False).logits[0]
    scores = torch.log_softmax(logits[:-1].double(), -1)
    return scores[torch.arange(len(tokens) - 1), tokens[1:]].tolist()


def main():
    folder = sys.argv[1]
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                 attn_implementation="eager")
    model.eval()
    text = json.loads(GOLDEN.read_text())["text"]
    ids = [model.config.bos_token_id] + tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(ids) != LENGTH:
        sys.exit(f"the text has {len(ids)} tokens, not {LENGTH}")
    tokens = torch.tensor(ids)
    out = {
        "made_by": "tools/record_logprobs.py",
        "with": f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}, fp32",
        "model": "the fp16 checkpoint of models/mrrope-tiny.gguf",
        "scale": SCALE,
        "length": LENGTH,
        "band": BAND,
        "text": text,
        "token_sum": sum((i + 1) * t for i, t in enumerate(ids)) % 2**31,
        "methods": {},
    }
    positions = [1 + (LENGTH - 2) * i // (SAMPLES - 1) for i in range(SAMPLES)]
    out["positions"] = positions
    for method in ["pro", "uni", "yarn"]:
        values = [float("nan")] + log_probabilities(model, tokens, method)
        bands = []
        for start in range(0, LENGTH, BAND):
            part = values[max(start, 1):start + BAND]
            bands.append(round(sum(part) / len(part), 6))
        out["methods"][method] = {
            "bands": bands,
            "values": [round(values[p], 5) for p in positions],
        }
        print(method, math.exp(-sum(values[1:]) / (LENGTH - 1)), file=sys.stderr)
    GOLDEN.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
