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


def write_gguf(reader, tensors, path):
    writer = gguf.GGUFWriter(path, value(reader.fields["general.architecture"]))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, value(field), kind, sub_type=inner)
    for name, data in tensors.items():
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def to_halves(rows, head):
    """Queries and keys converted back from llama.cpp's interleaved pairs."""
    return rows.reshape(-1, head // 2, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def write_checkpoint(reader, tensors, folder):
    def key(name):
        return value(reader.fields["llama." + name])

    head = key("rope.dimension_count")
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    weights = {}
    for name, data in tensors.items():
        words = name.split(".")
        if words[0] == "blk":
            if words[2] in ("attn_q", "attn_k"):
                data = to_halves(data, head)
            weights[f"model.layers.{words[1]}.{parts[words[2]]}.weight"] = data
        else:
            weights[names[words[0]] + ".weight"] = data
    folder.mkdir()
    safetensors.numpy.save_file({k: numpy.ascontiguousarray(v) for k, v in weights.items()},
                                folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": key("embedding_length"), "intermediate_size": key("feed_forward_length"),
        "num_hidden_layers": key("block_count"), "num_attention_heads": key("attention.head_count"),
        "num_key_value_heads": key("attention.head_count_kv"), "head_dim": head,
        "max_position_embeddings": key("context_length"),
        "rms_norm_eps": float(key("attention.layer_norm_rms_epsilon")),
        "rope_theta": float(key("rope.freq_base")), "tie_word_embeddings": True,
        "vocab_size": len(tensors["token_embd.weight"]), "torch_dtype": "float32"}))


def to_interleaved(rows, head):
    """The opposite of to_halves(), for weights and biases."""
    return rows.reshape(-1, 2, head // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def random_model(kind, reader, folder, file, head, base, biases):
    """A model of three layers with attention that is far from uniform; the tokens are Tiny's."""
    hidden, inner, heads, kv_heads, window, layers = 128, 256, 4, 2, 1024, 3
    vocabulary = next(t for t in reader.tensors if t.name == "token_embd.weight").shape[1]
    random = numpy.random.default_rng(7)

    def rows(count, width, size=1.0):
        return (random.standard_normal((count, width)) * size / width ** 0.5).astype(numpy.float32)

    weights = {"model.embed_tokens.weight": rows(vocabulary, hidden, hidden ** 0.5),
               "model.norm.weight": numpy.ones(hidden, numpy.float32),
               "lm_head.weight": rows(vocabulary, hidden, 3)}
    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight":
             "output_norm.weight", "lm_head.weight": "output.weight"}
    shapes = {"self_attn.q_proj": ("attn_q", heads * head, hidden, 1.5),
              "self_attn.k_proj": ("attn_k", kv_heads * head, hidden, 1.5),
              "self_attn.v_proj": ("attn_v", kv_heads * head, hidden, 1),
              "self_attn.o_proj": ("attn_output", hidden, heads * head, 1),
              "mlp.gate_proj": ("ffn_gate", inner, hidden, 1),
              "mlp.up_proj": ("ffn_up", inner, hidden, 1),
              "mlp.down_proj": ("ffn_down", hidden, inner, 1)}
    for i in range(layers):
        for name, (short, count, width, size) in shapes.items():
            weights[f"model.layers.{i}.{name}.weight"] = rows(count, width, size)
            names[f"model.layers.{i}.{name}.weight"] = f"blk.{i}.{short}.weight"
            if biases and name[:11] in ("self_attn.q", "self_attn.k", "self_attn.v"):
                weights[f"model.layers.{i}.{name}.bias"] = rows(1, count, count ** 0.5)[0]
                names[f"model.layers.{i}.{name}.bias"] = f"blk.{i}.{short}.bias"
        for name, short in {"input_layernorm": "attn_norm",
                            "post_attention_layernorm": "ffn_norm"}.items():
            weights[f"model.layers.{i}.{name}.weight"] = numpy.ones(hidden, numpy.float32)
            names[f"model.layers.{i}.{name}.weight"] = f"blk.{i}.{short}.weight"
    folder.mkdir()
    safetensors.numpy.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({
        "architectures": [{"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}[kind]],
        "model_type": kind, "hidden_size": hidden, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "head_dim": head, "max_position_embeddings": window, "rms_norm_eps": 1e-5,
        "rope_theta": base, "tie_word_embeddings": False, "vocab_size": int(vocabulary),
        "torch_dtype": "float32"}))

    writer = gguf.GGUFWriter(file, kind)
    for name, field in reader.fields.items():
        if name.startswith("tokenizer."):
            type_of = field.types[0]
            inner_type = field.types[-1] if type_of == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, value(field), type_of, sub_type=inner_type)
    writer.add_context_length(window)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(base)
    writer.add_layer_norm_rms_eps(1e-5)
    for name, data in weights.items():
        if kind == "llama" and ("q_proj" in name or "k_proj" in name):
            data = numpy.ascontiguousarray(to_interleaved(data, head))
        writer.add_tensor(names[name], data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def random_llama(reader, folder, file):
    random_model("llama", reader, folder, file, 32, 1e4, biases=False)


def random_qwen2(reader, folder, file):
    random_model("qwen2", reader, folder, file, 32, 5e4, biases=True)
