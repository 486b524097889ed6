# SPDX-License-Identifier: Apache-2.0
"""Exports of the tiny model in transformers and in the gguf package, both from PyPI.

transformers_test.py MRROPE SCORE_TOKENS MODEL.gguf TEXT.json WORK_FOLDER

The model's Q8_0 weights are unpacked to float32, once as a Hugging Face checkpoint and once as a
GGUF, so that both engines hold the same numbers. Then each method is exported, loaded by
transformers, and the log-probability of every token of a 4K text is compared with the engine's.
"""
import json
import math
import pathlib
import sys

import gguf
import numpy
import torch
import transformers

from checkpoints import run, unpacked, value, write_checkpoint, write_gguf

METHODS = {"pro": [], "uni": [], "yarn": [], "power": ["--power=-0.5"]}
LENGTH = 4096

# Both compute in float32, in a different order: nats per token, over all tokens of a method.
MOST = 0.02
RMS = 0.001
# Another method changes tokens by at least this much, so a wrong plan would be noticed.
LEAST_SIGNAL = 0.05


def transformers_scores(folder, tokens):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0, :-1]
    picked = torch.log_softmax(logits.double(), -1).gather(1, torch.tensor(tokens[1:])[:, None])
    return picked[:, 0].numpy()


def check_scores(mrrope, score_tokens, work, text):
    seen = {}
    for method, flags in METHODS.items():
        flags = ["--method", method, *flags, "--ctx", LENGTH]
        plan = work / f"{method}.json"
        out = work / f"{method}-hf"
        run(mrrope, "plan", work / "model.gguf", *flags, "-o", plan)
        made = json.loads(run(mrrope, "export", work / "checkpoint", *flags, "--to", "hf", "-o",
                              out, "--json"))
        assert made["proof"]["transformers"] == transformers.__version__, made["proof"]
        own = json.loads(run(score_tokens, work / "model.gguf", plan, text, LENGTH))
        theirs = transformers_scores(out, own["tokens"])
        apart = numpy.abs(theirs - numpy.array(own["scores"]))
        rms = math.sqrt(float((apart ** 2).mean()))
        print(f"{method}: {len(apart)} tokens, largest difference {apart.max():.2e} nats, "
              f"rms {rms:.2e}, mean log-probability {theirs.mean():.5f}")
        assert apart.max() < MOST and rms < RMS, method
        seen[method] = theirs
    for method in METHODS:
        other = "pro" if method in ("uni", "power") else "uni"
        assert numpy.abs(seen[method] - seen[other]).mean() > LEAST_SIGNAL, "this test could not fail"


def check_dialects(mrrope, work):
    """The older spelling and the names that readers know, as transformers computes them."""
    for name, flags in {"v4": ["--method", "pro", "--to", "hf-v4"],
                        "linear": ["--method", "pi", "--native", "--to", "hf"],
                        "yarn": ["--method", "yarn", "--native", "--to", "hf"],
                        "llama3": ["--method", "llama3", "--native", "--to", "hf"]}.items():
        made = json.loads(run(mrrope, "export", work / "checkpoint", *flags, "--ctx", LENGTH,
                              "-o", work / name, "--json"))
        print(f"{name}: angles differ by {made['proof']['largest']:.1e}")
        assert made["proof"]["largest"] < 1e-6


def check_gguf_package(mrrope, model, work):
    """The gguf package reads the export: the plan is there, and everything else is unchanged."""
    out = work / "exported.gguf"
    plan = json.loads(run(mrrope, "plan", model, "--method", "pro", "--ctx", LENGTH, "--json"))
    run(mrrope, "export", model, "--method", "pro", "--ctx", LENGTH, "-o", out, "--no-verify")
    before, after = gguf.GGUFReader(model), gguf.GGUFReader(out)
    old = {t.name: t for t in before.tensors}
    new = {t.name: t for t in after.tensors}
    assert set(new) - set(old) == {"rope_freqs.weight"} and not set(old) - set(new)
    factors = new.pop("rope_freqs.weight").data
    assert numpy.array_equal(factors, numpy.array(plan["factor"], numpy.float32))
    for name, tensor in new.items():
        assert tensor.tensor_type == old[name].tensor_type
        assert numpy.array_equal(tensor.data, old[name].data), name
    changed = {"llama.context_length": LENGTH,
               "llama.rope.scaling.attn_factor": plan["attention_scale"],
               "llama.rope.scaling.original_context_length": 1024}
    for name, wanted in changed.items():
        assert math.isclose(value(after.fields[name]), wanted, rel_tol=1e-7), name
    for name, field in before.fields.items():
        if name not in changed and not name.startswith("GGUF."):
            assert value(after.fields[name]) == value(field), name
    print(f"gguf package: {len(new)} tensors and {len(before.fields)} keys are unchanged")


def main():
    mrrope, score_tokens, model, golden, work = map(pathlib.Path, sys.argv[1:])
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    reader = gguf.GGUFReader(model)
    check_gguf_package(mrrope, model, work)
    tensors = unpacked(reader)
    write_checkpoint(reader, tensors, work / "checkpoint")
    write_gguf(reader, tensors, work / "model.gguf")
    text = work / "text.txt"
    text.write_text(json.loads(golden.read_text())["text"])
    check_dialects(mrrope, work)
    check_scores(mrrope, score_tokens, work, text)


main()
