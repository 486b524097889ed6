# SPDX-License-Identifier: Apache-2.0
"""vLLM's plugin for `rope_type: mrrope`: static plans where its longrope cannot run them, and ladders.

vLLM calls register() when it starts (entry point vllm.general_plugins). From then on a model whose
config.json says

    "rope_parameters": {"rope_type": "mrrope", "rope_theta": 10000.0,
                        "factors": [1.0, ...], "attention_factor": 1.1}

rotates by theta / factors, times attention_factor, whether its pairs are halves or interleaved and
however few elements of a head it rotates. `mrrope export --to hf-mrrope` writes it. With "rungs" in place
of "factors" every request has a plan of its own (_vllm_rungs.py), with "near_part" one for far keys (_vllm_far.py).
Other rope types go to vLLM unchanged.
"""
from __future__ import annotations

import os
import sys
from typing import Any

from . import _vllm_far, _vllm_rungs

ROPE_TYPE = "mrrope"
VERSIONS = ("0.26.0",)  # of vLLM, those that were tried
FORCE = "MRROPE_VLLM_ANY_VERSION"


def check_version() -> None:
    import vllm

    version = str(getattr(vllm, "__version__", "unknown")).split("+")[0]
    if version not in VERSIONS and os.environ.get(FORCE) != "1":
        raise ValueError(f"mrrope: vLLM {version} has not been tried with rope_type {ROPE_TYPE}, only "
                         f"{', '.join(VERSIONS)}; install that one, or set {FORCE}=1 to run it all the same")


def table(base: float, factors: Any, temperature: float, length: int) -> Any:
    """vLLM's cache: a row per position, the cosines of all pairs and then their sines, in float32.

    The angles are computed in float64: at position 131072 a float32 angle is off by 0.004.
    """
    import torch

    pairs = torch.arange(len(factors), dtype=torch.float64)
    theta = base ** (-pairs / len(factors)) / torch.tensor(factors, dtype=torch.float64)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), theta)
    return (torch.cat((angles.cos(), angles.sin()), dim=-1) * temperature).float()


def checked(parameters: dict[str, Any], rotary_dim: int) -> tuple[float, tuple[float, ...], float]:
    """Base, factors and temperature. ValueError, which stops vLLM with its text, if they are wrong."""
    factors = parameters.get("factors")
    if not isinstance(factors, (list, tuple)) or len(factors) != rotary_dim // 2:
        held = len(factors) if isinstance(factors, (list, tuple)) else "no"
        raise ValueError(f"rope_type {ROPE_TYPE}: {rotary_dim // 2} factors are needed, one for each pair "
                         f"that is rotated, and config.json has {held}: export the model again with "
                         "mrrope export --to hf-mrrope")
    temperature = parameters.get("attention_factor", 1.0)
    if not all(isinstance(x, (int, float)) and 0 < x < float("inf") for x in (*factors, temperature)):
        raise ValueError(f"rope_type {ROPE_TYPE}: factors and attention_factor must be positive numbers")
    if "mrope_section" in parameters:
        raise ValueError(f"rope_type {ROPE_TYPE} cannot run multi-dimensional positions (mrope_section): "
                         "name the method instead, mrrope export --native --method yarn")
    return float(parameters.get("rope_theta", 10000)), tuple(map(float, factors)), float(temperature)


def accept_rope_type() -> None:
    """transformers warns, many times, of a rope type that it has no check for; checked() and read_ladder() are ours."""
    try:
        from transformers.modeling_rope_utils import RotaryEmbeddingConfigMixin
    except ImportError:
        return  # transformers 4 does not warn
    setattr(RotaryEmbeddingConfigMixin, f"_validate_{ROPE_TYPE}_rope_parameters", lambda *_, **__: None)


def register() -> None:
    """Teaches vLLM the rope type. Calling it again changes nothing."""
    from vllm.model_executor.layers import rotary_embedding as layers

    original = layers.get_rope
    if getattr(original, "mrrope", False):
        return
    from vllm.logger import init_logger

    log = init_logger("vllm.mrrope").info  # vLLM shows its own loggers only
    accept_rope_type()
    _vllm_rungs.hook_admission(check_version, log)
    _vllm_far.register_backend()

    class PlanRotaryEmbedding(layers.RotaryEmbedding):  # type: ignore[misc]
        def __init__(self, *args: Any, factors: tuple[float, ...], temperature: float):
            self.factors, self.temperature = factors, temperature  # the constructor makes the cache
            super().__init__(*args)

        def _compute_cos_sin_cache(self) -> Any:
            # .to(): vLLM builds models under a default device.
            import torch

            with torch.device("cpu"):
                made = table(self.base, self.factors, self.temperature, self.max_position_embeddings)
            return made.to(torch.get_default_device())

    made: dict[Any, Any] = {}

    def get_rope(head_size: int, max_position: int, is_neox_style: bool = True,
                 rope_parameters: dict[str, Any] | None = None, dtype: Any = None,
                 *rest: Any, **more: Any) -> Any:
        parameters = rope_parameters or {}
        if parameters.get("rope_type") != ROPE_TYPE:
            return original(head_size, max_position, is_neox_style, rope_parameters, dtype, *rest, **more)
        import torch

        check_version()
        dtype = dtype or torch.get_default_dtype()
        if "rungs" in parameters:
            if any(rest) or any(more.values()):
                raise ValueError("mrrope: dual chunk attention has tables of its own; remove it from config.json")
            caller = sys._getframe(1).f_globals["__name__"]
            key = (caller, head_size, is_neox_style, dtype, repr(parameters))
            if key not in made:
                made[key] = _vllm_rungs.make_rotary(layers, original, table, caller, head_size, is_neox_style,
                                                    parameters, dtype)
            return made[key]
        rotary_dim = parameters.get("rope_dim") or int(
            head_size * parameters.get("partial_rotary_factor", 1.0))
        base, factors, temperature = checked(parameters, rotary_dim)
        # Layers share one table, as in vLLM.
        key = (head_size, rotary_dim, max_position, is_neox_style, dtype, base, factors, temperature)
        if key not in made:
            made[key] = PlanRotaryEmbedding(head_size, rotary_dim, max_position, base, is_neox_style,
                                            dtype, factors=factors, temperature=temperature)
            log("mrrope: one plan for all requests: factors %.6g to %.6g, attention_factor %.6g", min(factors),
                max(factors), temperature)
        return made[key]

    get_rope.mrrope = True  # type: ignore[attr-defined]
    layers.get_rope = get_rope
    # Model files that were imported before hold the old function under its name.
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("vllm.") and \
                module.__dict__.get("get_rope") is original:
            module.get_rope = get_rope  # type: ignore[attr-defined]
