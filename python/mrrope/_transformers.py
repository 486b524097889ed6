# SPDX-License-Identifier: Apache-2.0
"""Plans and ladders on a loaded model of transformers 5.

A static plan replaces the frequencies and the attention scaling of the model's rotary module. A
ladder does so at every rung, and turns the cached keys (_growing.py). Before either is in force, one
token is run under both ends: a model whose keys do not turn as the plan says is refused.
"""
from __future__ import annotations

import functools
import json
import os
import tempfile
from typing import Any

from ._library import Error, refusal as _refuse
from ._plans import (Geometry, Ladder, Length, Plan, geometry_of, inspect, load, plan, plan_or_ladder,
                     tokens)

_ATTRIBUTE = "_mrrope_patch"
_FULL = "full_attention"


def _names(layer_type: str) -> tuple[str, str]:
    """Of the frequencies and of the scaling in a rotary module."""
    prefix = f"{layer_type}_" if layer_type else ""
    return f"{prefix}inv_freq", f"{prefix}attention_scaling"


class Rotary:
    """The rotary module of a model: the frequencies and the scaling that plans replace."""

    def __init__(self, module: Any, layer_type: str):
        import torch

        self.module, self.layer_type = module, layer_type
        self.frequencies, self.scaling = _names(layer_type)
        self.own_type = getattr(module, "rope_type", None)
        kind = self.own_type.get(layer_type) if isinstance(self.own_type, dict) else self.own_type
        frequencies = getattr(module, self.frequencies)
        if kind in ("dynamic", "longrope"):  # those in use are of the last pass's length
            original = self.frequencies.replace("inv_freq", "original_inv_freq")
            frequencies = getattr(module, original, frequencies).to(frequencies.device)
        self.own = (frequencies, getattr(module, self.scaling))
        self._torch = torch
        self._made: dict[Any, Any] = {}

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy of a patched model would not be under the plan, or share it with the first."""
        raise Error("a patched model can be neither copied nor pickled",
                    "call mrrope.unpatch(model) first; model.save_pretrained() works as it is")

    def trained(self) -> list[float]:
        return list(self.own[0].double().tolist())

    def hold(self) -> None:
        """Keeps transformers from replacing the frequencies by itself (dynamic, longrope)."""
        if isinstance(self.own_type, dict):
            self.module.rope_type = {**self.own_type, self.layer_type: "default"}
        elif self.own_type is not None:
            self.module.rope_type = "default"

    def use(self, wanted: Plan) -> None:
        if all(factor == 1 for factor in wanted.factor) and wanted.attention_scale == 1:
            frequencies, scaling = self.own
        else:
            device = getattr(self.module, self.frequencies).device
            made = self._made.get((id(wanted), device))
            if made is None:
                # On top of the model's own, so that a pair that keeps its factor keeps its bits.
                factor = self._torch.tensor(wanted.factor, dtype=self._torch.float64)
                made = (self.own[0].double().cpu() / factor).to(device, self.own[0].dtype)
                self._made[id(wanted), device] = made
            frequencies, scaling = made, self.own[1] * wanted.attention_scale
        setattr(self.module, self.frequencies, frequencies)
        setattr(self.module, self.scaling, scaling)

    def restore(self) -> None:
        device = getattr(self.module, self.frequencies).device
        setattr(self.module, self.frequencies, self.own[0].to(device))
        setattr(self.module, self.scaling, self.own[1])
        if self.own_type is not None:
            self.module.rope_type = self.own_type


class _Reach:
    """max_position_embeddings, beyond which generate() warns; files keep the model's own."""

    def __init__(self, model: Any, longest: int):
        self.model, self.longest = model, longest
        configs = {id(config): config for config in (model.config, model.config.get_text_config())}
        self.own = [(config, config.max_position_embeddings) for config in configs.values()
                    if isinstance(getattr(config, "max_position_embeddings", None), int)]
        self.saver = model.__dict__.get("save_pretrained")
        save = model.save_pretrained

        @functools.wraps(save)
        def save_pretrained(*arguments: Any, **named: Any) -> Any:
            self._state(0)
            try:
                return save(*arguments, **named)
            finally:
                self._state(longest)

        model.save_pretrained = save_pretrained
        self._state(longest)

    def _state(self, longest: int) -> None:
        for config, own in self.own:
            config.max_position_embeddings = max(own, longest)

    def restore(self) -> None:
        self._state(0)
        del self.model.save_pretrained
        if self.saver is not None:
            self.model.save_pretrained = self.saver


def _longest(wanted: Plan | Ladder, ctx: Length | None) -> int:
    if isinstance(wanted, Ladder):
        return wanted.longest
    stated = tokens(ctx) or wanted.to_dict().get("length")
    return stated or round(wanted.scale * wanted.geometry.train_length)


def _facts(model: Any) -> dict[str, Any]:
    """What the library reads in the model's config."""
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "save_pretrained"):
        raise Error(f"{type(model).__name__} is not a model of transformers",
                    "give what AutoModelForCausalLM.from_pretrained returns")
    with tempfile.TemporaryDirectory(prefix="mrrope-") as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w") as file:
            json.dump(json.loads(config.to_json_string(use_diff=False)), file)
        try:
            return inspect(path)
        except Error as error:
            raise Error(error.message.replace(path, "the model's config"), error.hint, error.kind
                        ) from None


def _find_rotary(model: Any, geometry: Geometry, layer_type: str) -> tuple[Rotary, Any]:
    """The module that computes this geometry's angles, and the module that calls it."""
    frequencies, scaling = _names(layer_type)
    none = plan(geometry, "none")
    found = [(Rotary(module, layer_type), model.get_submodule(name.rpartition(".")[0]))
             for name, module in model.named_modules()
             if hasattr(module, frequencies) and hasattr(module, scaling)]
    if not found:
        raise _refuse(f"{type(model).__name__} has no rotary module with {frequencies} and "
                      f"{scaling}", "export the plan instead: mrrope.export(..., to='hf')")
    fits = [pair for pair in found if _close(pair[0].trained(), none.theta)
            and abs(pair[0].own[1] - geometry.trained_attention_scale) < 1e-5]
    if len(fits) != 1:
        kind = str(found[0][0].own[0].dtype).replace("torch.", "")
        raise _refuse(f"{len(fits)} rotary modules of {type(model).__name__} rotate as its config "
                      f"says (frequencies in {kind})",
                      "load the model with from_pretrained(..., dtype=...), which keeps them in "
                      "float32, and patch it before anything else changes them")
    return fits[0]


def _close(a: Any, b: Any, most: float = 1e-5) -> bool:
    return len(a) == len(b) and all(abs(x - y) <= most * abs(y) for x, y in zip(a, b))


def _fit(content: Plan | Ladder, geometry: Geometry) -> Plan | Ladder:
    """The plan of a file for the model at hand; only the pairing may differ (GGUF files reorder)."""
    theirs = content.geometry
    pairs = geometry.rotary_dim // 2
    same = (theirs.rotary_dim == geometry.rotary_dim
            and theirs.train_length == geometry.train_length
            and _close([theirs.base], [geometry.base])
            and _close(theirs.trained_factor or [1] * pairs, geometry.trained_factor or [1] * pairs)
            and _close([theirs.trained_attention_scale], [geometry.trained_attention_scale]))
    if not same:
        raise Error(f"the plan was made for another model: rotary_dim {theirs.rotary_dim}, base "
                    f"{theirs.base:g}, window {theirs.train_length}; this one has "
                    f"{geometry.rotary_dim}, {geometry.base:g}, {geometry.train_length}",
                    "make the plan from this model")
    if theirs.pairing == geometry.pairing:
        return content
    changed = content.to_dict()
    changed["geometry"]["pairing"] = geometry.pairing
    return type(content)(changed)


def _wanted(method: Any, ctx: Length | None, geometry: Geometry, options: dict[str, Any]
            ) -> Plan | Ladder:
    if isinstance(method, os.PathLike) or (isinstance(method, str) and method.endswith(".json")):
        method = load(method)
    if isinstance(method, (Plan, Ladder)):
        if ctx is not None or options:
            raise Error("a plan says how far it reaches", "give ctx and options with a method only")
        return _fit(method, geometry)
    if not isinstance(method, str):
        raise Error(f"{type(method).__name__} is neither a method nor a plan",
                    'give "pro", "elastic:pro", a plan file or mrrope.plan(...)')
    return plan_or_ladder(geometry, method, ctx, **options)


def _check_layers(model: Any, facts: dict[str, Any]) -> str:
    """The type of layers that rotate, where the config is nested by it. Refuses what one rotation cannot serve."""
    text = model.config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or {}
    nested = isinstance(rope.get(_FULL), dict)
    types = set(getattr(text, "layer_types", None) or ())
    mixed = "windowed" in facts["layer_kinds"] or {"sliding_attention", _FULL} <= types
    if mixed and not nested:
        raise _refuse(f"{type(model).__name__} rotates its sliding-window layers, which plans leave "
                      "alone, with the same module as the others",
                      "convert the model to GGUF, where layers are told apart")
    return _FULL if nested else ""


def _probe(model: Any, base: Any, rotary: Rotary, kinds: list[str], old: Plan, new: Plan,
           grows: bool) -> None:
    """Runs one token under both plans: its keys must be those of the first, turned."""
    import torch
    from transformers import DynamicCache

    from ._growing import can_turn, turn_layers

    if old == new:
        return
    position = old.geometry.train_length - 1
    states = [(module, module.training) for module in base.modules()]
    caches = []
    base.eval()
    try:
        device = base.get_input_embeddings().weight.device
        for wanted in (old, new):
            rotary.use(wanted)
            cache = DynamicCache(config=model.config)
            with torch.no_grad():
                base(input_ids=torch.zeros((1, 1), dtype=torch.long, device=device),
                     position_ids=torch.full((1, 1), position, device=device),
                     past_key_values=cache, use_cache=True)
            caches.append(cache)
    finally:
        for module, training in states:
            module.training = training
        rotary.restore()
    for index, kind in enumerate(kinds):
        if index >= len(caches[0].layers) or not getattr(caches[0].layers[index], "is_initialized", 0):
            continue
        before, after = (getattr(cache.layers[index], "keys", None) for cache in caches)
        if before is None or after is None:
            continue
        if kind == "full":
            if grows and not can_turn(caches[0].layers[index]):
                raise _refuse(f"layer {index} of {type(model).__name__} keeps its keys in a "
                              f"{type(caches[0].layers[index]).__name__}, where they cannot be turned",
                              'give a static method, e.g. "pro"')
            turn_layers([before], old, new, torch.tensor([[position]]), threads=1)
        most = 1e-3 if before.dtype == torch.float32 else 0.04
        apart = (before.float() - after.float()).abs().max()
        if not apart <= most * after.float().abs().max():  # also where it is not a number
            raise _refuse(f"the keys of layer {index} of {type(model).__name__} do not turn as the "
                          f"plan says (off by {float(apart):.2g})",
                          "export the plan instead, or run the model with mrrope generate")


def patch(model: Any, method: str | os.PathLike[str] | Plan | Ladder, ctx: Length | None = None,
          **options: Any) -> Plan | Ladder:
    """Puts a loaded causal model of transformers 5 under a plan or a ladder, and returns it.

    `method` is the name of a method ("pro", with ctx), of a growing context ("elastic:pro",
    "far:pi"), "auto", a plan file, a Plan or a Ladder; options are those of plan() and ladder() that
    do not replace what the model says about itself. Growing contexts leave the model unchanged inside
    its window and turn the keys of DynamicCache and StaticCache beyond it. The config's
    max_position_embeddings becomes the longest length, so that generate() does not warn before it.
    unpatch() restores the model. A patched model can be saved (save_pretrained writes it without the
    plan), but not copied.

        mrrope.patch(model, "elastic:pro", ctx="32k")
        model.generate(**inputs, max_new_tokens=100)
    """
    try:
        import transformers
    except ImportError:
        raise Error("transformers is not installed", "pip install transformers torch", "failed"
                    ) from None
    if int(transformers.__version__.partition(".")[0]) < 5:
        raise _refuse(f"transformers {transformers.__version__} is too old", "install 5 or later")
    if getattr(model, _ATTRIBUTE, None) is not None:
        raise Error("the model is patched already", "call mrrope.unpatch(model) first")
    facts = _facts(model)
    geometry = geometry_of(facts["geometry"])
    if facts["latent_attention"]:
        raise _refuse(f"{type(model).__name__} compresses its keys (MLA): the rotated part is not "
                      "where plans expect it", "run the model as GGUF with mrrope")
    wanted = _wanted(method, ctx, geometry, options)
    if isinstance(wanted, Ladder) and facts["mrope_sections"]:
        raise _refuse("positions of several dimensions (M-RoPE) cannot grow by rungs",
                      'give a static method, e.g. "pro"')
    rotary, base = _find_rotary(model, geometry, _check_layers(model, facts))
    ends = ((wanted.rungs[0].plan, wanted.rungs[-1].plan) if isinstance(wanted, Ladder)
            else (plan(geometry, "none"), wanted))
    rotary.hold()
    try:
        _probe(model, base, rotary, facts["layer_list"], *ends, grows=isinstance(wanted, Ladder))
        rotary.hold()
        if isinstance(wanted, Ladder):
            from ._growing import Growing

            full = [i for i, kind in enumerate(facts["layer_list"]) if kind == "full"]
            growing: Any = Growing(base, rotary, wanted, full)
        else:
            growing = None
            rotary.use(wanted)
    except BaseException:
        rotary.restore()
        raise
    setattr(model, _ATTRIBUTE, (rotary, growing, _Reach(model, _longest(wanted, ctx))))
    return wanted


def unpatch(model: Any) -> None:
    """Takes the plan or ladder of patch() away. Caches that were filled under it are of no use."""
    held = getattr(model, _ATTRIBUTE, None)
    if held is None:
        raise Error("the model is not patched", "call mrrope.patch(model, ...) first")
    rotary, growing, reach = held
    if growing is not None:
        growing.remove()
    rotary.restore()
    reach.restore()
    delattr(model, _ATTRIBUTE)
