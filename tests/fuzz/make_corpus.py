#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzzers into corpus/: small files of every kind the readers know.

Plan files are written only if the command is given: make_corpus.py build/release/bin/mrrope.
Files that a fuzzer found (named crash-* or found-*) are left alone.
"""
import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
U16, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 2, 4, 5, 6, 7, 8, 9, 10
CODES = {U16: "<H", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q"}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return text(value) if kind == STRING else struct.pack(CODES[kind], value)


def record(key, kind, value):
    head = text(key)
    if isinstance(value, list):
        body = b"".join(scalar(kind, v) for v in value)
        return head + struct.pack("<IIQ", ARRAY, kind, len(value)) + body
    return head + struct.pack("<I", kind) + scalar(kind, value)


def gguf(keys, tensors=(), version=3):
    """keys: (key, kind, value or list); tensors: (name, dims, type, data)."""
    infos, data = b"", b""
    for name, dims, kind, content in tensors:
        data += b"\0" * (-len(data) % 32)
        infos += text(name) + struct.pack("<I", len(dims))
        infos += b"".join(struct.pack("<Q", d) for d in dims)
        infos += struct.pack("<IQ", kind, len(data))
        data += content
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    head += b"".join(record(*key) for key in keys) + infos
    if not tensors:
        return head
    return head + b"\0" * (-len(head) % 32) + data


def floats(name, values):
    return (name, [len(values)], 0, struct.pack(f"<{len(values)}f", *values))


def model(arch, more=(), **changes):
    facts = dict(context_length=4096, embedding_length=64, block_count=4, head_count=4, head_count_kv=2,
                 dimension_count=16, freq_base=10000.0)
    facts.update(changes)
    keys = [("general.architecture", STRING, arch)]
    for name in ("context_length", "embedding_length", "block_count"):
        keys.append((f"{arch}.{name}", U32, facts[name]))
    for name in ("head_count", "head_count_kv"):
        keys.append((f"{arch}.attention.{name}", U32, facts[name]))
    keys.append((f"{arch}.rope.dimension_count", U32, facts["dimension_count"]))
    keys.append((f"{arch}.rope.freq_base", F32, facts["freq_base"]))
    return keys + [(k if "." in k and k.split(".")[0] in (arch, "general", "split", "tokenizer") else f"{arch}.{k}", t, v)
                   for k, t, v in more]


def gguf_seeds():
    yarn = [("rope.scaling.type", STRING, "yarn"), ("rope.scaling.factor", F32, 4.0),
            ("rope.scaling.original_context_length", U32, 1024)]
    yield "empty", gguf([])
    yield "version2", gguf(model("llama"), version=2)
    yield "llama", gguf(model("llama", [("general.name", STRING, "Seed"),
                                        ("tokenizer.ggml.tokens", STRING, ["a", "b", ""]),
                                        ("tokenizer.ggml.scores", F32, [0.5, 1.0])]),
                        [("blk.0.attn_q.weight", [64, 2], 2, b"q" * 72), floats("output_norm.weight", [1.0])])
    yield "llama3", gguf(model("llama", context_length=131072, freq_base=500000.0),
                         [floats("rope_freqs.weight", [1, 1, 1, 1, 2.5, 8, 8, 8])])
    yield "linear", gguf(model("llama", [("rope.scaling.type", STRING, "linear"),
                                         ("rope.scaling.factor", F32, 8.0)]))
    yield "yarn", gguf(model("qwen2", yarn))
    yield "yarn_grok", gguf(model("grok", yarn + [("rope.scaling.yarn_ext_factor", F32, 1.0),
                                                  ("rope.scaling.yarn_beta_fast", F32, 16.0),
                                                  ("rope.scaling.attn_factor", F32, 1.5)]))
    yield "phi3", gguf(model("phi3", [("rope.scaling.original_context_length", U32, 512),
                                      ("rope.scaling.attn_factor", F32, 1.19)]),
                       [floats("rope_factors_long.weight", [1, 2, 3, 4, 5, 6, 7, 8]),
                        floats("rope_factors_short.weight", [1, 1, 1, 1, 1, 1, 2, 2])])
    yield "gemma3", gguf(model("gemma3", [("attention.sliding_window", U32, 512),
                                          ("rope.freq_base_swa", F32, 10000.0),
                                          ("attention.key_length", U32, 16),
                                          ("attention.value_length", U32, 16)], block_count=7))
    yield "gemma4", gguf(model("gemma4", [("attention.sliding_window", U32, 512),
                                          ("attention.sliding_window_pattern", BOOL, [1, 1, 1, 0])]),
                         [floats("rope_freqs.weight", [1, 1, 1, 1, 1e30, 1e30, 1e30, 1e30])])
    yield "deepseek2", gguf(model("deepseek2", yarn + [("attention.key_length", U32, 80),
                                                       ("attention.value_length", U32, 64),
                                                       ("attention.key_length_mla", U32, 24),
                                                       ("rope.scaling.yarn_log_multiplier", F32, 0.1)],
                                  head_count_kv=1))
    yield "qwen2vl", gguf(model("qwen2vl", [("rope.dimension_sections", I32, [2, 3, 3, 0])]))
    yield "hybrid", gguf(model("lfm2", [("vocab_size", U32, 99)])[:5]
                         + [("lfm2.attention.head_count_kv", I32, [0, 2, 0, 2])])
    yield "qwen3next", gguf(model("qwen3next", [("full_attention_interval", U32, 4)]))
    yield "split", gguf(model("llama", [("split.no", U16, 0), ("split.count", U16, 2),
                                        ("split.tensors.count", I32, 3)]))
    yield "bloom", gguf([("general.architecture", STRING, "bloom")])
    yield "aligned", gguf([("general.alignment", U32, 32), ("a.u64", U64, 1 << 63)], [floats("x", [1.0])])


def export_seeds():
    def rows(name, *dims):
        return (name, list(dims), 0, b"x" * 4 * math.prod(dims))

    yield "factors", gguf(model("llama"), [rows("blk.0.attn_q.weight", 64, 64), rows("output_norm.weight", 64)])
    yield "llama3", gguf(model("llama"), [floats("rope_freqs.weight", [1, 1, 1, 1, 2.5, 8, 8, 8])])
    yield "lists", gguf(model("phi3", [("rope.scaling.original_context_length", U32, 512)]),
                        [floats("rope_factors_long.weight", [1, 2, 3, 4, 5, 6, 7, 8]),
                         floats("rope_factors_short.weight", [1, 1, 1, 1, 1, 1, 2, 2])])
    yield "relabelled", gguf(model("qwen2"), [rows("blk.0.attn_q.weight", 4, 64), rows("blk.0.attn_k.bias", 32),
                                              rows("blk.1.attn_qkv.weight", 4, 128)])
    yield "no_dimensions", gguf(model("qwen2"), [rows("blk.0.attn_q.weight")])
    yield "renamed_norm", gguf(model("seed_oss", [("attention.scale", F32, 0.5)]),
                               [rows("blk.0.post_attention_norm.weight", 64)])
    yield "output_bias", gguf(model("pangu-embedded"), [rows("blk.0.attn_output.bias", 64)])
    yield "interleaved", gguf(model("internlm2"), [rows("blk.0.attn_k.weight", 64, 32)])
    yield "quantised", gguf(model("qwen2"), [("blk.0.attn_q.weight", [64, 64], 2, b"q" * 2304)])
    yield "keys", gguf(model("qwen3"), [rows("output.weight", 64, 3)])
    yield "windows", gguf(model("gemma3", [("attention.sliding_window", U32, 512)], block_count=7))
    yield "aligned", gguf([("general.alignment", U32, 8)] + model("llama"), [])


# Plans as the command writes them: make_corpus.py path/to/mrrope.
PLANS = {
    "pro": "--method pro --scale 4", "yarn": "--method yarn --scale 4 --beta-fast 16 --beta-slow 2",
    "pi": "--method pi --scale 8", "none": "--method none --scale 1", "ntk": "--method ntk --scale 2",
    "llama3": "--method llama3 --scale 4", "custom": "--method custom --factors 1,1,2,4,4,4,4,4 --scale 4",
    "ladder": "--method elastic:pro --scale 16",
}


def plan_seeds(command):
    for name, flags in PLANS.items():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "plan.json"
            subprocess.run([command, "plan", "--rotary-dim", "16", "--rope-freq-base", "10000", "--train-ctx", "1024",
                            *flags.split(), "-o", str(out)], check=True)
            yield name, json.loads(out.read_text())
    yield "no_plan", {}
    yield "other_numbers", {"method": "pro", "scale": 4, "factor": [1, 2], "geometry": {"rotary_dim": 4}}


def tensor(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def safetensors(header, size):
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(data)) + data + b"\0" * size


def safetensors_seeds():
    yield "empty", safetensors({}, 0)
    yield "one", safetensors({"a": tensor("F32", [2], 0, 8)}, 8)
    yield "several", safetensors({"__metadata__": {"format": "pt"}, "b": tensor("BF16", [2, 2], 4, 12),
                                  "a": tensor("U8", [4], 0, 4), "c": tensor("F8_E4M3", [], 12, 13)}, 13)
    yield "padded", safetensors(b'{"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}   ', 2)
    yield "none_wide", safetensors({"a": tensor("I64", [0, 7], 0, 0)}, 0)
    yield "overlap", safetensors({"a": tensor("U8", [4], 0, 4), "b": tensor("U8", [4], 2, 6)}, 6)
    yield "index", json.dumps({"metadata": {"total_size": 8},
                               "weight_map": {"a": "model-00001-of-00002.safetensors",
                                              "b": "model-00002-of-00002.safetensors"}}).encode()
    yield "index_escape", json.dumps({"weight_map": {"a": "../secret"}}).encode()


def config(model_type, more=None, **changes):
    facts = dict(model_type=model_type, hidden_size=64, num_hidden_layers=4, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=4096, rope_theta=10000.0, vocab_size=100)
    facts.update(changes)
    facts.update(more or {})
    return facts


def config_seeds():
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024,
            "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707, "truncate": False}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 512}
    lists = {"type": "longrope", "short_factor": [1, 1, 1, 1, 1, 1, 1, 2.5], "long_factor": [1, 2, 3, 4, 5, 6, 7, 8]}
    mixed = ["sliding_attention", "full_attention", "linear_attention", "full_attention"]
    yield "llama", config("llama", rope_scaling=None)
    yield "llama3", config("llama", rope_scaling=llama3)
    yield "v5", config("llama", rope_parameters=dict(llama3, rope_theta=5e5))
    yield "yarn", config("qwen2", rope_scaling=yarn, use_sliding_window=False, sliding_window=4096)
    yield "gpt_oss", config("gpt_oss", rope_scaling=yarn, sliding_window=128, layer_types=mixed, head_dim=16)
    yield "phi3", config("phi3", rope_scaling=lists, original_max_position_embeddings=512)
    yield "gemma3", {"model_type": "gemma3", "text_config": {
        "model_type": "gemma3_text", "num_hidden_layers": 7, "sliding_window": 512,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}}}
    yield "gemma4", config("gemma4_text", layer_types=mixed, head_dim=16, num_global_key_value_heads=1,
                           per_layer_config={"01": {"head_dim": 32}}, rope_parameters={
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})
    yield "deepseek", config("deepseek_v3", rope_scaling=yarn, kv_lora_rank=32, qk_nope_head_dim=16,
                             qk_rope_head_dim=8, v_head_dim=16)
    yield "smollm3", config("smollm3", no_rope_layers=[1, 1, 1, 0], no_rope_layer_interval=4)
    yield "qwen2vl", config("qwen2_vl", rope_scaling={"type": "mrope", "mrope_section": [2, 3, 3]})
    yield "stablelm", config("stablelm", partial_rotary_factor=0.5)
    yield "neox", config("gpt_neox", rotary_pct=0.25, rotary_emb_base=10000)
    yield "qwen3next", config("qwen3_next", layer_types=mixed, head_dim=64, partial_rotary_factor=0.25)
    yield "hunyuan", config("hunyuan_v1_dense", rope_scaling={"type": "dynamic", "alpha": 1000.0, "factor": 1.0})
    yield "chatglm", {"model_type": "chatglm", "hidden_size": 64, "num_layers": 2, "num_attention_heads": 4,
                      "multi_query_group_num": 2, "kv_channels": 16, "seq_length": 8192, "rope_ratio": 50}
    yield "falcon", config("falcon", multi_query=True, alibi=False)
    yield "bloom", config("bloom")


def run_seeds():
    """A run folder: run.json on the first line, journal lines after it."""
    def text(task, settings, units, **more):
        methods = [{"method": m, "plan": f"sha256:{m}", "scale": s, "untouched": m == "none", "numbers": None}
                   for m, s in (("none", 1.0), ("pro", 4.0))]
        run = dict(task=task, model=dict(name="m", architecture="llama", train_length=64), engine="e",
                   settings=settings, methods=methods, **more)
        return "\n".join(json.dumps(line) for line in [run] + units).encode() + b"\n"

    def ppl(document, method, sums):
        lengths = [dict(length=n, sum=-float(n), count=n - 1, last_half_sum=-n / 2, last_half_count=n // 2,
                        band_sum=-n / 2, band_count=n // 2) for n in sums]
        return dict(task="ppl", document=document, method=method, lengths=lengths,
                    kl=dict(length=64, sum=0.5, count=2))

    documents = [dict(id="a", tokens=200), dict(id="b", tokens=100)]
    settings = dict(lengths=[64, 128], batch=32, kl_positions=2, stride=0)
    yield "ppl", text("ppl", settings, [ppl(d, m, [64, 128] if d == "a" else [64]) for d in "ab" for m in ("none", "pro")],
                      documents=documents)
    yield "ppl_sliding", text("ppl", dict(settings, stride=16),
                              [dict(task="ppl", document="a", method="pro", window=64, windows=3, sum_of_means=-2.5),
                               dict(task="ppl", document="b", method="pro", window=64, failed="not finite")],
                              documents=documents)

    def cell(length, depth):
        return dict(length=length, depth=depth, position=3, snapped=depth > 0, answer="271828", text=" 271828.",
                    gap=0.001)

    form = dict(name="planted", before="", needle="n", question="q", answer="a", stop=[], answer_tokens=16)
    needle = dict(lengths=[64, 128], depths=[0.0, 50.0], samples=2, seed=1, batch=32, share=True, form=form)
    yield "needle", text("needle", needle,
                         [dict(task="needle", method=m, sample=s, haystack="a", tokens=90, naive_tokens=200,
                               cells=[cell(n, d) for n in (64, 128) for d in (0.0, 50.0)])
                          for s in (0, 1) for m in ("none", "pro")], haystacks=[dict(id="a")])
    yield "needle_unanswered", text("needle", needle,
                                    [dict(task="needle", method="pro", sample=0, haystack="a", length=64, depth=0.0,
                                          no_answer="status 500")], haystacks=[dict(id="a")])

    def samples(task, scorer, record):
        sets = [dict(task=f"{task}/one" if task == "ruler" else task, length=n, samples=2, answer_tokens=8,
                     scorer=scorer) for n in (64, 128)]
        return text(task, dict(source="s", group=2, batch=32),
                    [dict(task=task, method=m, set=i, group=0, tokens=100, naive_tokens=120, samples=[record, record])
                     for i in (0, 1) for m in ("none", "pro")], sets=sets)

    yield "ruler", samples("ruler", "string_match_all", dict(id="0", prompt_tokens=50, expected=["one", "two"],
                                                             text="One", finish="decided", gap=None))
    yield "longbench", samples("longbench-v2", "longbench-v2",
                               dict(id="x", prompt_tokens=50, expected=["B"], tags=["longbench-v2/SD"], truncated=3,
                                    text="The correct answer is (B)", gap=0.5))
    for scored in ("passkey", "math_find", "code_debug", "longbook_qa_eng", "longbook_sum_eng", "math_calc"):
        answer = dict(math_find=9, code_debug=["parse_row", "B"], math_calc="[1, 2, 3]").get(scored, ["one", "two"])
        yield f"infinite_{scored}", samples("infinitebench", f"infinitebench/{scored}",
                                            dict(id="1", prompt_tokens=9, expected=["one"], answer=answer,
                                                 text="[1, 2], one B 9.0", gap=1.5))


def main():
    kinds = [("gguf", gguf_seeds()), ("export", export_seeds()), ("safetensors", safetensors_seeds()),
             ("config", config_seeds()), ("run", run_seeds())]
    if len(sys.argv) > 1:
        kinds.append(("plan", plan_seeds(sys.argv[1])))
    for name, seeds in kinds:
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, content in seeds:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            (folder / seed).write_bytes(data)


if __name__ == "__main__":
    main()
