# SPDX-License-Identifier: Apache-2.0
"""mrrope inspect on real models, compared with their metadata as the gguf package of PyPI reads it.

inspect_test.py MRROPE TOOLS_MODELS
"""
import json
import pathlib
import subprocess
import sys

import gguf

sys.path.insert(0, sys.argv[2])
import fetch  # noqa: E402

# What a file of this kind does not state: the converters write no pattern for Gemma 3, in which
# every sixth layer is full.
FULL_EVERY = {"gemma3": 6}


def expected(path):
    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()

    def key(name, default=None):
        field = reader.fields.get(f"{architecture}.{name}")
        return default if field is None else field.contents()

    layers = key("block_count")
    heads = key("attention.head_count")
    embedding = key("embedding_length")
    head = key("attention.key_length", embedding // heads)
    window = key("attention.sliding_window", 0)
    full = layers // FULL_EVERY[architecture] if window else layers
    kinds = {"full": full, "windowed": layers - full}
    return {
        "name": reader.fields["general.name"].contents(),
        "architecture": architecture,
        "embedding": embedding,
        "layers": layers,
        "layer_kinds": {kind: count for kind, count in kinds.items() if count},
        "heads": heads,
        "kv_heads": key("attention.head_count_kv"),
        "key_length": head,
        "value_length": key("attention.value_length", head),
        "vocabulary": len(reader.fields["tokenizer.ggml.tokens"].data),
        "sliding_window": window,
        "rotary_dim": key("rope.dimension_count", head),
        "base": key("rope.freq_base"),
        "train_length": key("context_length"),
        "scaling": key("rope.scaling.type", "none"),
        "weight_bytes": sum(int(tensor.n_bytes) for tensor in reader.tensors),
    }


def inspected(mrrope, path):
    done = subprocess.run([mrrope, "inspect", "--json", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr}")
    facts = json.loads(done.stdout)
    facts.update(facts["geometry"])
    facts["scaling"] = facts["scaling"]["type"]
    return facts


def main():
    mrrope, tools = sys.argv[1:]
    models = json.loads((pathlib.Path(tools) / "models.json").read_text())
    missing = [name for name, model in models.items()
               if not (fetch.cache_folder() / model["file"]).exists()]
    wrong = 0
    for name, model in models.items():
        if name in missing:
            continue
        path = fetch.cache_folder() / model["file"]
        facts = inspected(mrrope, path)
        wanted = expected(path)
        for fact, value in wanted.items():
            if facts[fact] != value:
                wrong += 1
                print(f"{name}: {fact} is {facts[fact]!r}, the gguf package reads {value!r}")
        print(f"{name}: {len(wanted)} facts compared")
    if missing:
        print(f"SKIPPED: models are missing: type tools/models/fetch.py {' '.join(missing)}")
    sys.exit(1 if wrong else 77 if missing else 0)


main()
