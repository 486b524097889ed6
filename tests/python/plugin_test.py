# SPDX-License-Identifier: Apache-2.0
"""The plugin for vLLM, on a stand-in for the module of vLLM that it changes. Needs torch.

docs/guide/export.md has the results with vLLM itself.
"""
import logging
import os
import sys
import types

import torch

import mrrope
from expressions import raises
from mrrope import _vllm, _vllm_rungs


class RotaryEmbedding(torch.nn.Module):
    """As vLLM 0.26 constructs it: the cache is made in the constructor."""

    def __init__(self, head_size, rotary_dim, max_position, base, is_neox_style, dtype):
        super().__init__()
        self.head_size, self.rotary_dim, self.base = head_size, rotary_dim, base
        self.max_position_embeddings, self.is_neox_style = max_position, is_neox_style
        self.register_buffer("cos_sin_cache", self._compute_cos_sin_cache().to(dtype))


def get_rope(head_size, max_position, is_neox_style=True, rope_parameters=None, dtype=None,
             dual_chunk_attention_config=None):
    return "vLLM's own", head_size, max_position, is_neox_style, rope_parameters, dtype


def check_table():
    """The library's rotation of (1, 0) is the table, temperature included."""
    plan = mrrope.plan(mrrope.Geometry(64, 500000, 8192), "pro", ctx="128k")
    length = 131072
    made = _vllm.table(plan.geometry.base, plan.factor, plan.attention_scale, length)
    assert made.shape == (length, 64) and made.dtype == torch.float32
    for first in (0, 8190, length - 16):
        rows = torch.zeros(1, 16, 64)
        rows[..., :32] = 1
        mrrope.rotate(rows, plan=plan, first_position=first)
        assert (rows[0] - made[first:first + 16]).abs().max() < 2e-7, first
    plain = _vllm.table(plan.geometry.base, [1.0] * 32, 1.0, length)
    assert (made - plain).abs().max() > 1, "this test could not fail"


def check_refusals():
    good = {"factors": [1.0] * 32, "attention_factor": 1.1, "rope_theta": 1e4}
    assert _vllm.checked(good, 64) == (1e4, (1.0,) * 32, 1.1)
    for part, wrong in (("64 factors", {}), ("has no", {"factors": None}),
                        ("positive", {"factors": [1.0] * 31 + [0.0]}),
                        ("positive", {"attention_factor": float("nan")}),
                        ("mrope_section", {"mrope_section": [8, 12, 12]})):
        raises(ValueError, part, _vllm.checked, {**good, **wrong}, 128 if "64" in part else 64)


class InputProcessor:
    """As vLLM admits requests."""

    def __init__(self, vllm_config):
        self.model_config = vllm_config.model_config

    def process_inputs(self, request):
        return request


def check_version():
    sys.modules["vllm"].__version__ = "0.26.0+cu130"
    _vllm.check_version()
    sys.modules["vllm"].__version__ = "0.99.0"
    for part in ("0.99.0", "0.26.0", _vllm.FORCE + "=1"):
        raises(ValueError, part, _vllm.check_version)
    os.environ[_vllm.FORCE] = "1"
    _vllm.check_version()
    del os.environ[_vllm.FORCE]
    sys.modules["vllm"].__version__ = "0.26.0"


def check_register():
    layers = types.ModuleType("vllm.model_executor.layers.rotary_embedding")
    layers.get_rope, layers.RotaryEmbedding = get_rope, RotaryEmbedding
    early = types.ModuleType("vllm.model_executor.models.early")  # imported before the plugin
    early.get_rope = get_rope
    parent = types.ModuleType("vllm.model_executor.layers")
    parent.rotary_embedding = layers
    admission = types.ModuleType("vllm.v1.engine.input_processor")
    admission.InputProcessor = InputProcessor
    logger = types.ModuleType("vllm.logger")
    logger.init_logger = logging.getLogger
    sys.modules.update({admission.__name__: admission, logger.__name__: logger,
                        "vllm.v1": types.ModuleType("vllm.v1"),
                        "vllm.v1.engine": types.ModuleType("vllm.v1.engine")})
    sys.modules.update({"vllm": types.ModuleType("vllm"), parent.__name__: parent,
                        "vllm.model_executor": types.ModuleType("vllm.model_executor"),
                        layers.__name__: layers, early.__name__: early})
    check_version()
    _vllm.register()
    # A model without rungs is admitted as before.
    config = types.SimpleNamespace(model_config=types.SimpleNamespace(
        hf_text_config=types.SimpleNamespace(rope_parameters={"rope_type": "default"})))
    assert InputProcessor(config).process_inputs("request") == "request"
    assert not _vllm_rungs.missing
    registered = layers.get_rope
    _vllm.register()
    assert registered is layers.get_rope is early.get_rope is not get_rope
    other = {"rope_type": "yarn", "factor": 4.0}
    assert early.get_rope(128, 4096, False, other) == ("vLLM's own", 128, 4096, False, other, None)
    assert early.get_rope(128, 4096)[4] is None
    # Interleaved, a part of the head.
    asked = {"rope_type": "mrrope", "rope_theta": 1e4, "factors": [float(i + 1) for i in range(32)],
             "attention_factor": 1.2, "partial_rotary_factor": 0.5}
    made = early.get_rope(128, 100, is_neox_style=False, rope_parameters=asked, dtype=torch.bfloat16)
    assert isinstance(made, RotaryEmbedding) and made.rotary_dim == 64 and not made.is_neox_style
    assert made.cos_sin_cache.shape == (100, 64) and made.cos_sin_cache.dtype == torch.bfloat16
    wanted = _vllm.table(1e4, asked["factors"], 1.2, 100).bfloat16()
    assert torch.equal(made.cos_sin_cache, wanted)
    assert made is early.get_rope(128, 100, False, asked, torch.bfloat16)
    assert made is not early.get_rope(128, 100, True, asked, torch.bfloat16)


check_table()
check_refusals()
check_register()
print("ok")
