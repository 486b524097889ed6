# SPDX-License-Identifier: Apache-2.0
"""Contexts that grow, in transformers: a forward pass ends where a rung ends, as in mrrope's engine.

Each cache remembers its place, that is its rung and border, and the positions of its tokens. Before
a part of a pass that belongs to another place, the cached keys are turned to it, in place.

With a near part (far:NAME) the model itself stays as shipped: new tokens are always near. Only keys
before the border are turned, to where the queries see them at the distance of
docs/design/growing-contexts.md.

A ladder that sharpens (`sharpen`) multiplies the scaling of the attention modules, as if their queries.
"""
from __future__ import annotations

import functools
import inspect as python_inspect
import itertools
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, StaticLayer

from ._library import refusal as _refuse
from ._plans import Ladder, Place, Plan
from ._tensors import Turn

_STATE = "_mrrope_state"
_serials = itertools.count(1)


def can_turn(layer: Any) -> bool:
    return type(layer) in (DynamicLayer, StaticLayer)


class _State:
    """What a cache holds: its place, and the position of every token, one row or one per sequence."""

    def __init__(self, owner: int):
        self.owner, self.count = owner, 0
        self.place: Place | None = None  # nothing is cached yet
        self.parts: list[torch.Tensor] = []

    def positions(self) -> torch.Tensor:
        rows = max((part.shape[0] for part in self.parts), default=1)
        if any(part.shape[0] not in (1, rows) for part in self.parts):
            raise _refuse("the number of sequences in the cache has changed",
                          "start a new cache: batches with padding cannot be split or repeated")
        self.parts = [torch.cat([part.expand(rows, -1) for part in self.parts], 1)]
        return self.parts[0]

    def crop(self, count: int) -> None:
        if count < self.count:
            self.parts = [self.positions()[:, :count]]
            self.count = count

    def add(self, positions: torch.Tensor) -> None:
        self.parts.append(positions)
        self.count += positions.shape[1]


def turn_layers(layers: list[torch.Tensor], old: Plan, new: Plan, positions: torch.Tensor,
                threads: int) -> None:
    """Turns keys [sequence, head, token, element] in place. Other devices than the CPU use torch."""
    ordered = positions.shape[0] == 1 and torch.equal(positions[0], torch.arange(positions.shape[1]))
    turn = Turn(old, new, None if ordered else positions, threads=threads)
    for keys in layers:
        _check_keys(keys, positions)
        if keys.device.type == "cpu" and keys.dtype != torch.float64:
            turn(keys)
        else:
            turn_by_torch(keys, old, new, positions)


def _check_keys(keys: torch.Tensor, positions: torch.Tensor) -> None:
    if keys.requires_grad:
        raise _refuse("growing contexts do not train: a turn in place has no gradient",
                      "run the model under torch.no_grad()")
    if positions.shape[0] not in (1, keys.shape[0]):
        raise _refuse("the number of sequences in the cache has changed",
                      "start a new cache: batches with padding cannot be split or repeated")


def turn_by_torch(keys: torch.Tensor, old: Plan, new: Plan, positions: torch.Tensor) -> None:
    """The same with torch's own operations, on the device of the keys."""
    theta = torch.tensor(new.theta, dtype=torch.float64) - torch.tensor(old.theta,
                                                                        dtype=torch.float64)
    turn_by_angles(keys, old.geometry, positions.double()[..., None] * theta,
                   new.attention_scale / old.attention_scale)


def turn_by_angles(keys: torch.Tensor, geometry: Any, angles: torch.Tensor,
                   scale: float | torch.Tensor) -> None:
    """Turns keys [sequence, head, token, element] in place by angles [sequence, token, pair]."""
    width = geometry.rotary_dim
    angles = angles[:, None]
    cosines = (angles.cos() * scale).float().to(keys.device)
    sines = (angles.sin() * scale).float().to(keys.device)
    rotated = keys[..., :width]
    if geometry.pairing == "halves":
        first, second = rotated[..., : width // 2], rotated[..., width // 2:]
    else:
        first, second = rotated[..., 0::2], rotated[..., 1::2]
    x, y = first.float(), second.float()
    turned = x * cosines - y * sines, x * sines + y * cosines  # x and y may be the keys themselves
    first.copy_(turned[0])
    second.copy_(turned[1])


class Growing:
    """A ladder on the module that calls the rotary module; see patch()."""

    def __init__(self, base: Any, rotary: Any, ladder: Ladder, full: list[int]):
        self.base, self.rotary, self.ladder, self.full = base, rotary, ladder, full
        self.serial = next(_serials)
        self.scalings = self._scalings() if ladder.sharpen else []
        self._had_own = "forward" in base.__dict__
        self._forward = base.forward
        self._signature = python_inspect.signature(self._forward)

        @functools.wraps(self._forward)
        def forward(*arguments: Any, **named: Any) -> Any:
            return self._run(self._signature.bind(*arguments, **named))

        base.forward = forward

    def _scalings(self) -> list[tuple[Any, float]]:
        """The attention module of each layer under the plan, with its own scaling."""
        name, width, found = type(self.base).__name__, self.ladder.geometry.rotary_dim, []
        for layer in self.full:
            modules = [module for module in self.base.modules()
                       if getattr(module, "layer_idx", None) == layer
                       and isinstance(getattr(module, "scaling", None), float)]
            if len(modules) != 1 or getattr(modules[0], "head_dim", None) != width:
                raise _refuse(f"sharpen {self.ladder.sharpen:g} needs an attention module with a "
                              f"scaling and heads of {width} elements, as many as rotate: layer "
                              f"{layer} of {name} has none", "make the ladder with sharpen=0")
            found.append((modules[0], modules[0].scaling))
        return found

    def remove(self) -> None:
        for module, own in self.scalings:
            module.scaling = own
        if self._had_own:
            self.base.forward = self._forward
        else:
            del self.base.forward

    # ---- one pass

    def _run(self, call: python_inspect.BoundArguments) -> Any:
        if torch.compiler.is_compiling():
            raise _refuse("growing contexts cannot be compiled: the plan follows the length",
                          "set generation_config.disable_compile = True, or patch a static method")
        given = call.arguments
        named = dict(given.pop("kwargs", {}))
        given = {name: value for name, value in given.items() if value is not None}
        tokens = given.get("input_ids", given.get("inputs_embeds"))
        if tokens is None or tokens.shape[1] == 0:
            return self._forward(**given, **named)  # its own message
        cache = given.get("past_key_values")
        past = int(cache.get_seq_length()) if cache is not None else 0
        positions = self._positions(given.get("position_ids"), past, tokens.shape[1])
        state = self._state(cache, past)
        lengths = (positions.amax(0) + 1).tolist()
        if sorted(lengths) != lengths or (state.count and lengths[0] < past_length(state)):
            raise _refuse("position_ids go back: several texts in one row cannot grow",
                          "give one text per row, or patch a static method")
        if self.ladder.near is not None and not torch.equal(
                positions, positions[:1].expand_as(positions)):
            raise _refuse(f"{self.ladder.method} needs texts of one length: the border of a batch "
                          "with padding differs from row to row",
                          'give texts of one length, or patch "elastic:pro"')
        parts = self._parts(lengths)
        if len(parts) == 1:
            self._enter(cache, state, parts[0][0])
            if cache is None and self._uses_cache(given):
                given["past_key_values"] = cache = DynamicCache(config=self.base.config)
            if cache is not None:
                setattr(cache, _STATE, state)
            out = self._forward(**given, **named)
            state.add(positions)
            return out
        return self._run_parts(given, named, cache, state, positions, parts, past)

    def _run_parts(self, given: dict[str, Any], named: dict[str, Any], cache: Any, state: _State,
                   positions: torch.Tensor, parts: list[tuple[Place, int, int]], past: int) -> Any:
        for name in ("output_hidden_states", "output_attentions"):
            asked = named.get(name, given.get(name))
            if getattr(self.base.config, name, False) if asked is None else asked:
                raise _refuse(f"{name} cannot be given for a pass over the end of a rung",
                              f"end the pass at token {past + parts[0][2]} and call again")
        for name, value in named.items():
            if isinstance(value, torch.Tensor) and name != "cache_position":
                raise _refuse(f"the argument {name} cannot be cut at the end of a rung",
                              f"end the pass at token {past + parts[0][2]} and call again")
        as_dict = named.get("return_dict", given.get("return_dict"))
        if as_dict is None:
            as_dict = getattr(self.base.config, "return_dict", True)
        keep = cache is not None or self._uses_cache(given)
        if cache is None:
            cache = DynamicCache(config=self.base.config)
        setattr(cache, _STATE, state)
        total = past + positions.shape[1]
        hidden: list[torch.Tensor] = []
        out: Any = None
        for place, start, end in parts:
            self._enter(cache, state, place)
            part = dict(given, past_key_values=cache, use_cache=True)
            for name in ("input_ids", "inputs_embeds", "position_ids"):
                if name in part:
                    part[name] = part[name][:, start:end]
            if "attention_mask" in part:
                part["attention_mask"] = _cut_mask(part["attention_mask"], start, end, past, total)
            more = dict(named)
            if not as_dict:
                (part if "return_dict" in part else more)["return_dict"] = True
            if more.get("cache_position") is not None:
                more["cache_position"] = more["cache_position"][start:end]
            out = self._forward(**part, **more)
            state.add(positions[:, start:end])
            hidden.append(out.last_hidden_state)
        out.last_hidden_state = torch.cat(hidden, 1)
        out.past_key_values = cache if keep else None
        return out if as_dict else out.to_tuple()

    # ---- its pieces

    def _uses_cache(self, given: dict[str, Any]) -> bool:
        wanted = given.get("use_cache")
        return bool(getattr(self.base.config, "use_cache", False) if wanted is None else wanted)

    def _positions(self, stated: Any, past: int, count: int) -> torch.Tensor:
        if stated is None:
            return torch.arange(past, past + count)[None]
        if stated.dim() != 2:
            raise _refuse(f"position_ids of {stated.dim()} dimensions cannot grow by rungs",
                          "give one position per token, or patch a static method")
        return stated.detach().to("cpu")

    def _state(self, cache: Any, past: int) -> _State:
        if cache is None or past == 0:
            return _State(self.serial)
        state: _State | None = getattr(cache, _STATE, None)
        if state is None or state.owner != self.serial or state.count < past:
            raise _refuse(f"the cache holds {past} tokens that this patch has not seen",
                          "start a new cache after mrrope.patch()")
        state.crop(past)
        return state

    def _parts(self, lengths: list[int]) -> list[tuple[Place, int, int]]:
        """(place, first, end) of each run of tokens in one place."""
        last = self.ladder.place_at(lengths[-1])
        if self.ladder.place_at(lengths[0]) == last:
            return [(last, 0, len(lengths))]
        out, start = [], 0
        for place, run in itertools.groupby(map(self.ladder.place_at, lengths)):
            count = len(list(run))
            out.append((place, start, start + count))
            start += count
        return out

    def _enter(self, cache: Any, state: _State, place: Place) -> None:
        """Puts the model under a rung, and turns the keys of the cache to its place."""
        if state.place is not None and state.place != place and state.count > 0:
            self._turn(cache, state, state.place, place)
        state.place = place
        self.rotary.use(self.ladder.rungs[0 if self.ladder.near else place.rung].plan)
        for module, own in self.scalings:
            module.scaling = own * place.sharpness

    def _far(self, place: Place, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Angles [sequence, token, pair] and lengths of keys in a place, against near ones."""
        plan, shipped = self.ladder.rungs[place.rung].plan, self.ladder.rungs[0].plan
        theta, factor = (torch.tensor(numbers, dtype=torch.float64)
                         for numbers in (shipped.theta, plan.factor))
        at = positions.double()[..., None]
        if bool((factor == factor[0]).all()):
            moved = torch.full_like(factor, place.shift)
        else:
            moved = place.border * (1 - 1 / factor)
        is_far = at < place.border
        longer = (plan.attention_scale / shipped.attention_scale) ** 2
        return (torch.where(is_far, at / factor + moved - at, torch.zeros_like(at)) * theta,
                torch.where(is_far, longer, 1.0)[:, None])

    def _turn(self, cache: Any, state: _State, old: Place, new: Place) -> None:
        if getattr(cache, "offloading", False):
            raise _refuse("an offloaded cache cannot be turned", "use DynamicCache or StaticCache")
        layers = [cache.layers[index] for index in self.full if index < len(cache.layers)]
        for layer in layers:
            if not can_turn(layer):
                raise _refuse(f"keys in a {type(layer).__name__} cannot be turned",
                              "use DynamicCache or StaticCache")
        positions = state.positions()
        filled = [layer.keys[:, :, : state.count] for layer in layers
                  if layer.is_initialized and layer.keys.numel() > 0]
        with torch.no_grad():
            if self.ladder.near is None:
                turn_layers(filled, self.ladder.rungs[old.rung].plan, self.ladder.rungs[new.rung].plan,
                            positions, torch.get_num_threads())
                return
            before, length_before = self._far(old, positions)
            after, length_after = self._far(new, positions)
            for keys in filled:
                _check_keys(keys, positions)
                turn_by_angles(keys, self.ladder.geometry, after - before,
                               length_after / length_before)


def past_length(state: _State) -> int:
    return int(state.parts[-1][:, -1].max()) + 1 if state.count else 0


def _cut_mask(mask: Any, start: int, end: int, past: int, total: int) -> Any:
    """The part of an attention mask for the tokens [start, end) of a pass."""
    if isinstance(mask, dict):
        if any(value is not None for name, value in mask.items() if name != "full_attention"):
            raise _refuse("masks of sliding-window layers cannot be cut at the end of a rung",
                          "give the mask of padding, of two dimensions")
        return {name: _cut_mask(value, start, end, past, total) for name, value in mask.items()}
    if mask is None:
        return None
    if mask.dim() == 2 and mask.shape[1] == total:
        return mask[:, : past + end]
    if mask.dim() == 4 and mask.shape[2] == total - past:
        rows = mask[:, :, start:end]
        return rows[..., : past + end] if mask.shape[3] == total else rows
    raise _refuse(f"an attention mask of shape {tuple(mask.shape)} cannot be cut at the end of a rung",
                  "give the mask of padding, of two dimensions")
