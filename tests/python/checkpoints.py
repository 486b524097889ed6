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
