#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random model of Llama-3-8B's geometry as a GGUF in Q8_0, for timings only.

    random_llama.py OUT.gguf [--layers 32] [--window 8192]

Every byte of text is one token; the other tokens of the vocabulary are never made by the tokenizer.
Needs numpy.
"""
import argparse
import struct

import numpy as np

U32, F32, I32, STRING, ARRAY = 4, 6, 5, 8, 9
TYPE_F32, TYPE_Q8_0 = 0, 8
ALIGNMENT = 32


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, kind, payload):
    return text(name) + struct.pack("<I", kind) + payload


def u32(name, value):
    return key(name, U32, struct.pack("<I", value))


def f32(name, value):
    return key(name, F32, struct.pack("<f", value))


def array(name, kind, payloads):
    return key(name, ARRAY, struct.pack("<IQ", kind, len(payloads)) + b"".join(payloads))


def byte_words():
    """The printable stand-ins that byte-level tokenizers use for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    words, extra = {}, 0
    for byte in range(256):
        if byte in plain:
            words[byte] = chr(byte)
        else:
            words[byte] = chr(256 + extra)
            extra += 1
    return [words[byte] for byte in range(256)]


def tensors(layers, width, ffn, kv_width, vocabulary):
    yield "token_embd.weight", (width, vocabulary)
    for i in range(layers):
        yield f"blk.{i}.attn_norm.weight", (width,)
        yield f"blk.{i}.attn_q.weight", (width, width)
        yield f"blk.{i}.attn_k.weight", (width, kv_width)
        yield f"blk.{i}.attn_v.weight", (width, kv_width)
        yield f"blk.{i}.attn_output.weight", (width, width)
        yield f"blk.{i}.ffn_norm.weight", (width,)
        yield f"blk.{i}.ffn_gate.weight", (width, ffn)
        yield f"blk.{i}.ffn_up.weight", (width, ffn)
        yield f"blk.{i}.ffn_down.weight", (ffn, width)
    yield "output_norm.weight", (width,)
    yield "output.weight", (width, vocabulary)


def size_of(shape):
    elements = int(np.prod(shape))
    return elements * 4 if len(shape) == 1 else elements // 32 * 34


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--window", type=int, default=8192)
    args = parser.parse_args()

    vocabulary = 128256
    words = byte_words() + [f"<|filler_{i}|>" for i in range(vocabulary - 256)]
    keys = [
        key("general.architecture", STRING, text("llama")),
        key("general.name", STRING, text("random Llama-3-8B")),
        u32("llama.block_count", args.layers),
        u32("llama.context_length", args.window),
        u32("llama.embedding_length", 4096),
        u32("llama.feed_forward_length", 14336),
        u32("llama.attention.head_count", 32),
        u32("llama.attention.head_count_kv", 8),
        f32("llama.attention.layer_norm_rms_epsilon", 1e-5),
        u32("llama.rope.dimension_count", 128),
        f32("llama.rope.freq_base", 500000.0),
        u32("llama.vocab_size", vocabulary),
        key("tokenizer.ggml.model", STRING, text("gpt2")),
        key("tokenizer.ggml.pre", STRING, text("llama-bpe")),
        array("tokenizer.ggml.tokens", STRING, [text(w) for w in words]),
        array("tokenizer.ggml.token_type", I32,
              [struct.pack("<i", 1 if i < 256 else 5) for i in range(vocabulary)]),
        array("tokenizer.ggml.merges", STRING, [text(f"{words[0]} {words[1]}")]),
        u32("tokenizer.ggml.bos_token_id", 256),
        u32("tokenizer.ggml.eos_token_id", 257),
    ]
    infos, offset, plan = [], 0, list(tensors(args.layers, 4096, 14336, 1024, vocabulary))
    for name, shape in plan:
        kind = TYPE_F32 if len(shape) == 1 else TYPE_Q8_0
        infos.append(text(name) + struct.pack("<I", len(shape)) +
                     b"".join(struct.pack("<Q", n) for n in shape) + struct.pack("<IQ", kind, offset))
        offset += -(-size_of(shape) // ALIGNMENT) * ALIGNMENT
    header = (b"GGUF" + struct.pack("<IQQ", 3, len(plan), len(keys)) + b"".join(keys) +
              b"".join(infos))

    rng = np.random.default_rng(1)
    noise = rng.integers(-127, 128, size=(1 << 20, 32), dtype=np.int8)  # 32 MiB, used again
    with open(args.out, "wb") as file:
        file.write(header + b"\0" * (-len(header) % ALIGNMENT))
        for name, shape in plan:
            if len(shape) == 1:
                data = np.ones(shape, dtype=np.float32).tobytes()
            else:
                blocks = int(np.prod(shape)) // 32
                # Uniform in +-127 has a deviation of 73: unit variance per output needs this scale.
                scale = np.float16(1 / (73 * np.sqrt(shape[0])))
                rows = np.empty((blocks, 34), dtype=np.uint8)
                rows[:, :2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
                start = int(rng.integers(0, len(noise)))
                rows[:, 2:] = np.take(noise, np.arange(start, start + blocks) % len(noise),
                                      axis=0).view(np.uint8)
                data = rows.tobytes()
            file.write(data + b"\0" * (-len(data) % ALIGNMENT))


if __name__ == "__main__":
    main()
