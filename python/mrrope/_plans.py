# SPDX-License-Identifier: Apache-2.0
"""Geometries, plans and ladders. Their numbers are the library's."""
from __future__ import annotations

import bisect
import ctypes
import json
import operator
import os
import pathlib
import threading
from dataclasses import asdict, dataclass
from typing import Any

from ._library import Error, Handle, ask, path_bytes

Length = int | str
_making = threading.Lock()


@dataclass(frozen=True)
class Geometry:
    """What a model's rotary embedding was trained with.

    >>> import mrrope
    >>> mrrope.Geometry(rotary_dim=128, base=500000, train_length=8192).pairing
    'halves'
    """

    rotary_dim: int  # rotated elements of a head
    base: float  # rope_theta
    train_length: int  # tokens
    pairing: str = "halves"  # or "interleaved"
    trained_factor: tuple[float, ...] = ()  # the vendor's own scaling; empty: all 1
    trained_attention_scale: float = 1.0
    long_factor: tuple[float, ...] = ()  # LongRoPE's list for texts beyond the window
    long_length: int = 0  # and how far it reaches


def geometry_of(stated: dict[str, Any]) -> Geometry:
    """From JSON, whose lists it makes tuples."""
    return Geometry(**{name: tuple(value) if isinstance(value, list) else value
                       for name, value in stated.items()})


class _Made:
    """What a plan file holds."""

    def __init__(self, content: dict[str, Any]):
        self._text = json.dumps(content)
        self.geometry = geometry_of(content["geometry"])
        self.method: str = content["method"]

    def to_dict(self) -> dict[str, Any]:
        """What a plan file holds."""
        return dict(json.loads(self._text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a plan file, which every verb of the command reads."""
        target = pathlib.Path(os.fsdecode(path_bytes(path)))
        try:
            target.write_text(json.dumps(self.to_dict(), indent=2) + "\n")
        except OSError as reason:
            raise Error(f"cannot write {target}: {reason.strerror}", "choose another path",
                        "failed") from None


class Plan(_Made):
    """The numbers of one extension of one model; made by plan() and load()."""

    def __init__(self, content: dict[str, Any]):
        super().__init__(content)
        self.scale: float = content["scale"]
        self.parameters: dict[str, Any] = content["parameters"]
        self.theta: list[float] = content["theta"]  # radians per position
        self.factor: list[float] = content["factor"]  # what divides the trained theta
        self.lambdas: list[float] = content["lambda"]  # factor[i + 1] / factor[i]
        self.attention_scale: float = content["attention_scale"]  # multiplies cos and sin
        self.low: int = content["boundaries"]["low"]  # first pair of the middle
        self.high: int = content["boundaries"]["high"]  # first pair scaled in full
        self._handle: Handle | None = None

    def pointer(self) -> ctypes.c_void_p:
        """The mrrope_plan of mrrope.h, owned by this object."""
        if self._handle is None:
            with _making:
                if self._handle is None:
                    self._handle = Handle("mrrope_plan_free", "mrrope_plan_parse",
                                          self._text.encode(), 0)
        return self._handle.pointer

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: what belongs to the library is made again."""
        state = dict(self.__dict__, _handle=None)
        state.pop("_tables", None)
        return state

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Plan) and self.geometry == other.geometry
                and self.factor == other.factor and self.attention_scale == other.attention_scale)

    def __hash__(self) -> int:
        return hash((self.geometry, tuple(self.factor), self.attention_scale))

    def __repr__(self) -> str:
        return (f"<mrrope.Plan {self.method}, scale {self.scale:g}, {len(self.factor)} pairs, "
                f"middle {self.low}..{self.high}, attention scale {self.attention_scale:.4f}>")


@dataclass(frozen=True)
class Rung:
    length: int  # tokens: the plan holds up to and including this length
    plan: Plan  # with a near part that of far keys alone


@dataclass(frozen=True)
class Place:
    length: int  # tokens: cached keys stay as they are up to and including this length
    rung: int  # its number in Ladder.rungs
    border: int  # with a near part: keys at positions before it are far
    shift: int  # and with one factor for all pairs, by how much far keys come closer
    sharpness: float  # multiplies queries


def _plan_of(ladder: dict[str, Any], rung: dict[str, Any]) -> Plan:
    own: dict[str, Any] = {"geometry": ladder["geometry"], "method": "none", "parameters": {}}
    if rung["length"] > ladder["geometry"]["train_length"]:
        own["method"] = ladder["method"].partition(":")[2]
        own["parameters"] = ladder["parameters"]
        if own["method"] == "dynamic-ntk":
            own["length"] = round(ladder["headroom"] * rung["length"])
    own.update((key, value) for key, value in rung.items()
               if key not in ("length", "border", "shift"))
    return Plan(own)


class Ladder(_Made):
    """Which plan is in force at which length; made by ladder() and load()."""

    def __init__(self, content: dict[str, Any]):
        super().__init__(content)
        self.rung_step: float = content["rung_step"]
        self.headroom: float = content["headroom"]
        self.longest: int = content["longest"]
        self.near: dict[str, int] | None = content.get("near")
        self.sharpen: float = content.get("sharpen", 0.0)
        self.rungs: list[Rung] = [Rung(rung["length"], _plan_of(content, rung))
                                  for rung in content["rungs"]]
        self._places: list[Place] = []
        self._lengths: list[int] = []

    def place_at(self, length: int) -> Place:
        """The rung and the border for a sequence of this many tokens."""
        if length > self.longest:
            raise Error(f"{length} tokens are more than the {self.longest} of {self.method}",
                        "make a ladder with a larger ctx")
        if not self._places:
            self._places = [Place(**place)
                            for place in ask("mrrope_ladder_places", self._text.encode())]
            self._lengths = [place.length for place in self._places]
        return self._places[bisect.bisect_left(self._lengths, length)]

    def rung_at(self, length: int) -> int:
        """The number of the rung for a sequence of this many tokens, from 0 on.

        >>> import mrrope
        >>> grows = mrrope.ladder(mrrope.Geometry(128, 10000, 4096), "elastic:pro", ctx="64k")
        >>> grows.rung_at(4096), grows.rung_at(4097), len(grows.rungs)
        (0, 1, 17)
        """
        return self.place_at(length).rung

    def border_at(self, length: int) -> int:
        """With a near part: keys at positions before the border are far in a sequence of `length`.

        >>> import mrrope
        >>> far = mrrope.ladder(mrrope.Geometry(128, 10000, 4096), "far:pi", ctx="16k")
        >>> far.near, far.border_at(4096), far.border_at(4097), far.border_at(16384)
        ({'length': 1024, 'step': 1024}, 0, 3072, 15360)
        """
        return self.place_at(length).border

    def __repr__(self) -> str:
        return (f"<mrrope.Ladder {self.method}, window {self.geometry.train_length}, "
                f"up to {self.longest} tokens>")


def whole(value: Any) -> int | None:
    """A whole number of Python, numpy or torch; None if it is none."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def tokens(length: Length | None, what: str = "ctx") -> int | None:
    """4096, or "128k" for 131072, or "1m"."""
    if length is None:
        return None
    number = whole(length)
    if number is not None:
        return number
    units = {"k": 1024, "m": 1024 * 1024}
    if isinstance(length, str) and length:
        unit = units.get(length[-1].lower(), 1)
        digits = length[:-1] if unit > 1 else length
        if digits.isascii() and digits.isdigit() and len(digits) < 20:
            return int(digits) * unit
    raise Error(f"{what} {length!r} is not a length",
                'write tokens as 4096, or "128k" for 131072, or "1m"')


def _content(answer: dict[str, Any]) -> Plan | Ladder:
    return Ladder(answer) if "rungs" in answer else Plan(answer)


def plan_or_ladder(model: str | os.PathLike[str] | Geometry, method: str,
                   ctx: Length | None = None, *, scale: float | None = None, **options: Any
                   ) -> Plan | Ladder:
    """What plan() or ladder() gives, whichever the method is ("auto" is either)."""
    request: dict[str, Any] = {"method": method, "ctx": tokens(ctx), "scale": scale, **options}
    for name in ("near", "near_step", "train_length"):
        if name in request and not (isinstance(request[name], float) and request[name] < 1):
            request[name] = tokens(request[name], name)
    if isinstance(model, Geometry):
        request["geometry"] = asdict(model)
    else:
        request["model"] = os.fsdecode(path_bytes(model, "the model"))
        try:
            request["model"].encode()
        except UnicodeEncodeError:
            raise Error(f"the path {request['model']!r} is not UTF-8",
                        "rename the file, or give a mrrope.Geometry") from None
    try:
        text = json.dumps(request, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as reason:
        raise Error(f"the request holds a value that is not a number: {reason}",
                    "give plain numbers, texts and lists") from None
    return _content(ask("mrrope_make", text.encode("utf-8", "surrogateescape")))


def _plain(value: Any) -> Any:
    """Numbers and lists of numpy and torch."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a number")


def plan(model: str | os.PathLike[str] | Geometry, method: str, ctx: Length | None = None, *,
         scale: float | None = None, **options: Any) -> Plan:
    """The plan of a method for a model file, a Hugging Face folder or a geometry.

    `method` is written as on the command line: "pro", "pro(low=5,headroom=1.25)". `ctx` is the wanted
    length (131072 or "128k"), `scale` says it in windows. Options are the parameters of the method
    (low=5) and, for a model, replace_scaling and train_length.

    >>> import mrrope
    >>> llama2 = mrrope.Geometry(rotary_dim=128, base=10000, train_length=4096)
    >>> pro = mrrope.plan(llama2, "pro", ctx="64k")
    >>> pro.low, pro.high, round(pro.attention_scale, 4)
    (20, 46, 1.2773)
    >>> pro.factor[0], pro.factor[63]
    (1.0, 16.0)
    """
    made = plan_or_ladder(model, method, ctx, scale=scale, **options)
    if isinstance(made, Ladder):
        raise Error(f"{method} is more than one plan", f'call mrrope.ladder(..., "{method}")')
    return made


def ladder(model: str | os.PathLike[str] | Geometry, method: str, ctx: Length | None = None, *,
           scale: float | None = None, **options: Any) -> Ladder:
    """The ladder of a context that grows: "elastic:NAME" or "far:NAME".

    Options are those of plan().

    >>> import mrrope
    >>> tiny = mrrope.Geometry(rotary_dim=128, base=10000, train_length=1024)
    >>> grows = mrrope.ladder(tiny, "elastic:pro", ctx=4096, rung_step=2)
    >>> [(rung.length, rung.plan.scale) for rung in grows.rungs]
    [(1024, 1.0), (2048, 2.0), (4096, 4.0)]
    """
    made = plan_or_ladder(model, method, ctx, scale=scale, **options)
    if isinstance(made, Plan):
        raise Error(f"{method} is one plan", f'call mrrope.plan(..., "{method}")')
    return made


def load(path: str | os.PathLike[str]) -> Plan | Ladder:
    """The plan or ladder of a plan file.

    >>> import mrrope, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "plan.json")
    >>> mrrope.plan(mrrope.Geometry(128, 10000, 4096), "yarn", scale=8).save(path)
    >>> mrrope.load(path).method
    'yarn'
    """
    return _content(ask("mrrope_load", path_bytes(path)))


def inspect(path: str | os.PathLike[str], ctx: Length | None = None) -> dict[str, Any]:
    """What a model file or folder says about itself, and the cache that `ctx` tokens need.

    >>> import mrrope
    >>> facts = mrrope.inspect(mrrope.bundled_model(), ctx="4k")
    >>> facts["architecture"], facts["geometry"]["train_length"], facts["kv_bytes"]["f16"]
    ('llama', 1024, 41943040)
    """
    length = tokens(ctx)
    if length is not None and not 1 <= length < 1 << 40:
        raise Error(f"a context of {length} tokens is not possible", "give 1 or more")
    return dict(ask("mrrope_inspect", path_bytes(path), length or 0))
