#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The models of pack.sh, by their names there."""
import json
import pathlib
import shutil
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]


def plugin(wheels):
    """A wheel with the plugin for vLLM alone, for a machine that has no wheel of mrrope."""
    info = "mrrope-0.dist-info"
    with zipfile.ZipFile(pathlib.Path(wheels) / "mrrope-0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("mrrope/__init__.py", "")
        for path in sorted((ROOT / "python/mrrope").glob("_vllm*.py")):
            wheel.write(path, f"mrrope/{path.name}")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: mrrope\nVersion: 0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt",
                       "[vllm.general_plugins]\nmrrope = mrrope._vllm:register\n")
        wheel.writestr(f"{info}/RECORD", "")


def glm(folder, tiny):
    """A random GLM: interleaved pairs, half of a head rotated. Its tokens are Tiny's."""
    import torch
    from transformers import GlmConfig, GlmForCausalLM

    torch.manual_seed(5)
    model = GlmForCausalLM(GlmConfig(
        vocab_size=8192, hidden_size=256, intermediate_size=512, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, max_position_embeddings=1024,
        rms_norm_eps=1e-5, attention_bias=False, tie_word_embeddings=False, bos_token_id=0,
        eos_token_id=1, pad_token_id=3,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() < 2:
                weight.fill_(1)
                continue
            width = weight.shape[1]
            size = 2 if "q_proj" in name or "k_proj" in name else 3 if "lm_head" in name else 1
            if "embed" in name:
                size = width ** 0.5
            weight.copy_((torch.randn(weight.shape) * size / width ** 0.5).half().float())
    model.half().save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path(tiny) / name, folder)


def score_glm(folder, tokens, out):
    """transformers in float32, as it is and under mrrope.patch(): GLM-none.json and GLM-pro.json."""
    import torch
    from transformers import AutoModelForCausalLM

    import mrrope

    ids = torch.tensor([json.loads(pathlib.Path(tokens).read_text())["tokens"]])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for method in ("none", "pro"):
        if method != "none":
            mrrope.patch(model, method, ctx="8k")
        with torch.no_grad():
            logits = model(ids).logits[0, :-1].double()
        scores = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0].tolist()
        (pathlib.Path(out) / f"glm-{method}.json").write_text(
            json.dumps({"tokens": ids[0].tolist(), "scores": scores}))


def tiny(folder, file):
    """The checkpoint's float16 numbers as a GGUF in float32."""
    import gguf
    import numpy
    import safetensors.numpy
    from checkpoints import to_interleaved, write_gguf

    reader = gguf.GGUFReader(ROOT / "models/mrrope-tiny.gguf")
    weights = safetensors.numpy.load_file(pathlib.Path(folder) / "model.safetensors")
    parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "attn_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    tensors = {}
    for tensor in reader.tensors:
        words = tensor.name.split(".")
        if words[0] == "blk":
            name = f"model.layers.{words[1]}.{parts[words[2]]}.weight"
        else:
            name = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}[words[0]] + ".weight"
        data = weights[name].astype(numpy.float32)
        if words[-2] in ("attn_q", "attn_k"):
            data = numpy.ascontiguousarray(to_interleaved(data, 128))
        # The order of rows must be right: the file holds the same numbers with 8 bits.
        near = gguf.dequantize(tensor.data, tensor.tensor_type)
        assert abs(near - data).max() < 0.02 * abs(data).max() + 1e-3, tensor.name
        tensors[tensor.name] = data
    write_gguf(reader, tensors, file)


def linked(folder, out, change):
    """The folder under another name, with config.json changed."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for file in pathlib.Path(folder).iterdir():
        if file.name != "config.json" and not (out / file.name).exists():
            (out / file.name).symlink_to(file.resolve())
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    change(config)
    (out / "config.json").write_text(json.dumps(config))


def plain(folder, out):
    """A ladder's model unmodified, with the same length: for speeds."""
    linked(folder, out, lambda c: c.update(rope_parameters={
        "rope_type": "default", "rope_theta": c["rope_parameters"]["rope_theta"]}))


def broken(folder, out, how):
    """A ladder that the plugin must refuse."""
    def change(config):
        rope = config["rope_parameters"]
        if how == "missing":
            rope["rungs"].pop(1)
        elif how == "lengths":
            rope["rungs"][2]["length"] = rope["rungs"][1]["length"]
        elif how == "factors":
            rope["rungs"][1]["factors"][0] = -1.0
        elif how == "near":
            rope["near_part"]["length"] = rope["original_max_position_embeddings"]
        else:
            rope["rope_theta"] *= 50
            rope["original"] = {"rope_type": "default", "rope_theta": rope["rope_theta"] / 50}
    linked(folder, out, change)


def shape(folder, tiny):
    """Qwen2.5-Coder-1.5B without its weights, for speeds with --load-format dummy. Its tokens are Tiny's."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960,
        "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_act": "silu",
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "use_sliding_window": False,
        "tie_word_embeddings": True, "vocab_size": 151936, "bos_token_id": 0, "eos_token_id": 1,
        "torch_dtype": "bfloat16"}))
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pathlib.Path(tiny) / name, folder)


def tokens(tiny, text, out):
    """The first 16383 of a text."""
    from tokenizers import Tokenizer

    ids = Tokenizer.from_file(f"{tiny}/tokenizer.json").encode(pathlib.Path(text).read_text()).ids
    ids = [0, *ids][:16383]
    assert len(ids) == 16383, f"{text} has {len(ids)} tokens only"
    pathlib.Path(out).write_text(json.dumps({"tokens": ids}))


def rung_reference(scored, rung, length):
    """Adds the length of its rung to what score_tokens printed."""
    made = json.loads(pathlib.Path(scored).read_text())
    pathlib.Path(rung).write_text(json.dumps({**made, "length": int(length)}))


if __name__ == "__main__":
    {"plugin": plugin, "plain": plain, "broken": broken, "rung-reference": rung_reference, "glm": glm,
     "score-glm": score_glm, "shape": shape, "tokens": tokens, "tiny": tiny}[sys.argv[1]](*sys.argv[2:])
