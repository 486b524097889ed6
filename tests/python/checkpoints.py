# SPDX-License-Identifier: Apache-2.0
"""Models for tests in two formats: a GGUF file and a Hugging Face folder with the same numbers."""
import json
import subprocess
import sys

import gguf
import numpy
import safetensors.numpy


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def unpacked(reader):
    return {t.name: gguf.dequantize(t.data, t.tensor_type).astype(numpy.float32)
            for t in reader.tensors}


def value(field):
    return field.contents()


def write_gguf(reader, tensors, path, kind="llama", own=None):
    """With the keys of another file; or, where a model has its own, with the tokens of that file alone."""
    writer = gguf.GGUFWriter(path, kind)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture" or (own and not name.startswith("tokenizer.")):
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, value(field), field.types[0], sub_type=inner)
    for name, number in (own or {}).items():
        add = writer.add_float32 if isinstance(number, float) else writer.add_uint32
        add(f"{kind}.{name}", number)
    for name, data in tensors.items():
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def to_halves(rows, head):
    """Queries and keys converted back from llama.cpp's interleaved pairs."""
    return rows.reshape(-1, head // 2, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def to_interleaved(rows, head):
    """The opposite."""
    return rows.reshape(-1, 2, head // 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def write_checkpoint(reader, tensors, folder):
    """The numbers of a GGUF file of the kind llama or qwen2, whose keys the reader has."""
    kind = value(reader.fields["general.architecture"])

    def key(name):
        return value(reader.fields[f"{kind}.{name}"])

    head = key("rope.dimension_count")
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    weights = {}
    for name, data in tensors.items():
        *block, part, ending = name.split(".")
        if kind == "llama" and part in ("attn_q", "attn_k"):
            data = to_halves(data, head)
        theirs = f"model.layers.{block[1]}.{parts[part]}" if block else names[part]
        weights[f"{theirs}.{ending}"] = numpy.ascontiguousarray(data)
    folder.mkdir()
    safetensors.numpy.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({
        "architectures": [{"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}[kind]], "model_type": kind,
        "hidden_size": key("embedding_length"), "intermediate_size": key("feed_forward_length"),
        "num_hidden_layers": key("block_count"), "num_attention_heads": key("attention.head_count"),
        "num_key_value_heads": key("attention.head_count_kv"), "head_dim": head,
        "max_position_embeddings": key("context_length"),
        "rms_norm_eps": float(key("attention.layer_norm_rms_epsilon")),
        "rope_theta": float(key("rope.freq_base")), "tie_word_embeddings": "output.weight" not in tensors,
        "vocab_size": len(tensors["token_embd.weight"]), "torch_dtype": "float32"}))


def random_model(kind, base, reader, folder, file):
    """A model of three layers with attention that is far from uniform; the tokens are Tiny's."""
    hidden, inner, heads, kv_heads, head, layers = 128, 256, 4, 2, 32, 3
    vocabulary = next(t for t in reader.tensors if t.name == "token_embd.weight").shape[1]
    random = numpy.random.default_rng(7)

    def rows(count, width, size=1.0):
        return (random.standard_normal((count, width)) * size / width ** 0.5).astype(numpy.float32)

    tensors = {"token_embd.weight": rows(vocabulary, hidden, hidden ** 0.5),
               "output_norm.weight": numpy.ones(hidden, numpy.float32),
               "output.weight": rows(vocabulary, hidden, 3)}
    shapes = {"attn_q": (heads * head, hidden, 1.5), "attn_k": (kv_heads * head, hidden, 1.5),
              "attn_v": (kv_heads * head, hidden, 1), "attn_output": (hidden, heads * head, 1),
              "ffn_gate": (inner, hidden, 1), "ffn_up": (inner, hidden, 1), "ffn_down": (hidden, inner, 1)}
    for i in range(layers):
        for name, (count, width, size) in shapes.items():
            tensors[f"blk.{i}.{name}.weight"] = rows(count, width, size)
            if kind == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                tensors[f"blk.{i}.{name}.bias"] = rows(1, count, count ** 0.5)[0]
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{i}.{name}.weight"] = numpy.ones(hidden, numpy.float32)
    write_gguf(reader, tensors, file, kind, {
        "context_length": 1024, "embedding_length": hidden, "block_count": layers, "feed_forward_length": inner,
        "attention.head_count": heads, "attention.head_count_kv": kv_heads, "attention.key_length": head,
        "attention.value_length": head, "attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": head,
        "rope.freq_base": base})
    write_checkpoint(gguf.GGUFReader(file), tensors, folder)
