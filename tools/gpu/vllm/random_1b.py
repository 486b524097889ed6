#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random Llama of 1.0 B parameters, the same bits on every machine: random_1b.py FOLDER [MODEL.gguf TINY.gguf].

Weights are random bytes times a power of two, so float16 holds them exactly. With a second argument also a
GGUF in float32 with the tokenizer of TINY.gguf, for mrrope's engine.
"""
import hashlib
import json
import pathlib
import sys
import time

import numpy
import safetensors.numpy

HIDDEN, INNER, HEADS, KV, HEAD, LAYERS, VOCABULARY, WINDOW = 2048, 8192, 32, 8, 64, 16, 8192, 1024
random = numpy.random.Generator(numpy.random.PCG64(22))


def rows(count, width, power):
    data = random.integers(-127, 128, (count, width), dtype=numpy.int8).astype(numpy.float16)
    data *= numpy.float16(2.0 ** power)
    return data


def interleaved(data):
    return data.reshape(-1, 2, HEAD // 2, data.shape[-1]).swapaxes(1, 2).reshape(data.shape)


def main():
    started = time.time()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    ones = numpy.ones(HIDDEN, numpy.float16)
    weights = {"model.embed_tokens.weight": rows(VOCABULARY, HIDDEN, -6), "model.norm.weight": ones,
               "lm_head.weight": rows(VOCABULARY, HIDDEN, -10)}
    names = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm",
             "lm_head.weight": "output"}
    shapes = {"self_attn.q_proj": ("attn_q", HEADS * HEAD, HIDDEN, -11),
              "self_attn.k_proj": ("attn_k", KV * HEAD, HIDDEN, -11),
              "self_attn.v_proj": ("attn_v", KV * HEAD, HIDDEN, -12),
              "self_attn.o_proj": ("attn_output", HIDDEN, HEADS * HEAD, -12),
              "mlp.gate_proj": ("ffn_gate", INNER, HIDDEN, -12),
              "mlp.up_proj": ("ffn_up", INNER, HIDDEN, -12),
              "mlp.down_proj": ("ffn_down", HIDDEN, INNER, -13)}
    for i in range(LAYERS):
        for name, (short, count, width, power) in shapes.items():
            weights[f"model.layers.{i}.{name}.weight"] = rows(count, width, power)
            names[f"model.layers.{i}.{name}.weight"] = f"blk.{i}.{short}"
        for name, short in (("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm")):
            weights[f"model.layers.{i}.{name}.weight"] = ones
            names[f"model.layers.{i}.{name}.weight"] = f"blk.{i}.{short}"
    digest = hashlib.sha256()
    for name in weights:
        digest.update(numpy.ascontiguousarray(weights[name][:64]).tobytes())
    safetensors.numpy.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if not (folder / "config.json").exists():
        (folder / "config.json").write_text(json.dumps({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
            "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "num_key_value_heads": KV, "head_dim": HEAD, "max_position_embeddings": WINDOW,
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
            "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 3,
            "vocab_size": VOCABULARY, "torch_dtype": "float16"}))
    count = sum(w.size for w in weights.values())
    print(f"{folder}: {count / 1e9:.2f} B parameters, {time.time() - started:.1f} s, "
          f"sha256 of the first 64 rows of each matrix {digest.hexdigest()}", flush=True)
    if len(sys.argv) < 3:
        return
    import gguf
    writer = gguf.GGUFWriter(sys.argv[2], "llama")
    for name, field in gguf.GGUFReader(sys.argv[3]).fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[0]
            inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub_type=inner)
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    for name, data in weights.items():
        if "q_proj" in name or "k_proj" in name:
            data = interleaved(data)
        writer.add_tensor(names[name] + ".weight", numpy.ascontiguousarray(data).astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
