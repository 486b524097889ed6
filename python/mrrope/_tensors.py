# SPDX-License-Identifier: Apache-2.0
"""Rotation of arrays in place, without copies: whatever speaks DLPack (numpy, torch, jax, ...)."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ._library import Batch, Error, Handle, Heads, Strides, check, library
from ._plans import Plan, whole

_MOST_ROWS = 1 << 26  # of a table: 16 GiB at rotary_dim 64


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_ELEMENTS = {(2, 32): 0, (2, 16): 1, (4, 16): 2}  # f32, f16, bf16 of mrrope.h
_CPU = (1, 3)  # and pinned memory
_CUDA = (2, 13)  # and managed memory
_CUDA_DEFAULT_STREAM = 1  # in DLPack
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class View:
    """Address, shape and strides (in elements) of an array, valid as long as this object."""

    def __init__(self, array: Any, what: str):
        if not hasattr(array, "__dlpack__"):
            raise Error(f"{what} is {type(array).__name__}, not an array",
                        "give a numpy array, a torch tensor, or another one with __dlpack__")
        if getattr(array, "requires_grad", False):
            raise Error(f"{what} requires a gradient, which a rotation in place cannot give",
                        "give x.detach()")
        try:
            device, number = map(int, array.__dlpack_device__())
            self.gpu = number if device in _CUDA else None  # of several, which
            held = None
            if device in _CPU or (self.gpu is not None
                                  and hasattr(library, "mrrope_cuda_rotate_and_wait")):
                stream = {} if self.gpu is None else {"stream": _CUDA_DEFAULT_STREAM}
                self._capsule = array.__dlpack__(**stream)
                held = _DLTensor.from_address(_capsule_pointer(self._capsule, b"dltensor"))
        except Exception as reason:  # each library has its own, numpy's for read-only arrays
            raise Error(f"{what} cannot be shared: {reason}", "give a writable array") from None
        if held is None:
            raise Error(f"{what} is in the memory of a GPU, and this library of mrrope has no CUDA"
                        if self.gpu is not None else
                        f"{what} is not in the memory of the CPU (DLPack device {device})",
                        "move it with .cpu(), or build mrrope where nvcc is: pip install .",
                        "unsupported")
        if (held.device_type, held.device_id) != (device, number):
            raise Error(f"{what} says that it is on DLPack device {device}, and holds memory of "
                        f"{held.device_type}", "give a plain array")
        self.code, self.bits = held.code, held.bits
        self.kind = f"{_CODES.get(held.code, 'type ')}{held.bits}"
        if held.lanes != 1:
            raise Error(f"{what} has {held.lanes} lanes", "give a plain array")
        self.address = (held.data or 0) + held.byte_offset
        self.shape = [held.shape[i] for i in range(held.ndim)]
        if held.strides:
            self.strides = [held.strides[i] for i in range(held.ndim)]
        else:  # row by row
            self.strides = [1] * held.ndim
            for i in range(held.ndim - 2, -1, -1):
                self.strides[i] = self.strides[i + 1] * self.shape[i + 1]


class _Heads(View):
    """Queries or keys: the axes are b (sequence), h (head), t (token) and d (element)."""

    def __init__(self, array: Any, what: str, layout: str):
        super().__init__(array, what)
        if (self.code, self.bits) not in _ELEMENTS:
            raise Error(f"{what} has elements of type {self.kind}",
                        "give float32, float16 or bfloat16")
        self.element = _ELEMENTS[self.code, self.bits]
        axes = layout if len(self.shape) == 4 else layout.replace("b", "")
        if len(self.shape) != len(axes):
            raise Error(f"{what} has {len(self.shape)} axes, shape {tuple(self.shape)}",
                        f"give 4 ({layout}) or 3 ({layout.replace('b', '')}); "
                        "b: sequence, h: head, t: token, d: element")
        at = {axis: i for i, axis in enumerate(axes)}
        size = {axis: self.shape[i] for axis, i in at.items()}
        step = {axis: self.strides[i] for axis, i in at.items()}
        for axis, of in (("h", "heads"), ("d", "elements of a head")):
            if size[axis] >= 1 << 31:
                raise Error(f"{what} has {size[axis]} {of}, shape {tuple(self.shape)}",
                            f'give the order of its axes, e.g. layout="{layout}"')
        self.empty = 0 in (size.get("b"), size["h"], size["t"])  # then its strides mean nothing
        if size["d"] > 1 and step["d"] != 1 and not self.empty:
            raise Error(f"the elements of a head of {what} are {step['d']} apart, not contiguous",
                        "give x.contiguous(), or another layout")
        self.sequences, self.count = size.get("b", 1), size["h"]
        self.tokens, self.head_dim = size["t"], size["d"]
        strides = Strides(step.get("b", 0), step["t"], step["h"])
        self.heads = Heads(self.count, self.address, strides, self.address, strides)


class _Positions:
    """Positions of tokens; those of one shape of batch are converted once."""

    def __init__(self, stated: Any, first: int = 0):
        number = whole(first)
        if number is None or not 0 <= number < 1 << 31:
            raise Error(f"first_position {first!r} is not a position", "give 0 or more")
        self._stated, self._first = stated, number
        self._made: dict[tuple[int, int], tuple[Any, int, int]] = {}

    def of(self, sequences: int, count: int) -> tuple[Any, int, int]:
        """sequences * count positions as int32 (None: in order), the smallest and the largest."""
        if self._stated is None:
            return None, self._first, self._first + count - 1
        if (sequences, count) not in self._made:
            self._made[sequences, count] = self._convert(sequences, count)
        return self._made[sequences, count]

    def _convert(self, sequences: int, count: int) -> tuple[Any, int, int]:
        stated = self._stated.tolist() if hasattr(self._stated, "tolist") else self._stated
        if not isinstance(stated, Sequence) or isinstance(stated, (str, bytes, bytearray)):
            raise Error(f"positions {stated!r} is not a list", "give one position per token")
        given = [item for entry in stated
                 for item in (entry if isinstance(entry, (list, tuple)) else [entry])]
        flat = [number for number in map(whole, given) if number is not None]
        if len(flat) != len(given):
            raise Error("positions must be whole numbers from 0 to 2^31 - 1", "give integers")
        if len(flat) == count and sequences > 1:
            flat = flat * sequences
        if len(flat) != sequences * count:
            raise Error(f"{len(flat)} positions for {sequences} x {count} tokens",
                        "give one per token, or one per sequence and token")
        if not all(0 <= position < 1 << 31 for position in flat):
            raise Error("positions must be whole numbers from 0 to 2^31 - 1", "give integers")
        return (ctypes.c_int32 * len(flat))(*flat), min(flat), max(flat)


class Table(Handle):
    """Cosines and sines for the positions [first, end): of a plan, or of a turn between two."""

    def __init__(self, plan: Plan, first: int, end: int, element: int, to: Plan | None = None):
        if end - first > _MOST_ROWS:
            raise Error(f"positions from {first} to {end - 1} are too far apart",
                        f"rotate at most {_MOST_ROWS} of them at a time")
        self.plan, self.to, self.first, self.end, self.element = plan, to, first, end, element
        plans = [plan.pointer()] + ([to.pointer()] if to else [])
        super().__init__("mrrope_table_free",
                         "mrrope_table_create_turning" if to else "mrrope_table_create",
                         *plans, first, end, element)


def _tables(kept: dict[int, Table], plan: Plan, to: Plan | None = None) -> Callable[[int, int, int], Table]:
    """Makes tables, or takes one of those kept by element."""

    def table(first: int, end: int, element: int) -> Table:
        old = kept.get(element)
        if old is not None and old.first <= first and end <= old.end:
            return old
        made = kept[element] = Table(plan, first, end, element, to)
        return made  # another thread may have put its own there since

    return table


def _layout(layout: str) -> str:
    if not isinstance(layout, str) or sorted(layout) != ["b", "d", "h", "t"]:
        raise Error(f"layout {layout!r} is not made of b, h, t and d", 'e.g. "bhtd" or "bthd"')
    return layout


def _run(arrays: dict[str, Any], layout: str, positions: _Positions,
         make_table: Callable[[int, int, int], Table], workers: Handle | None, inverse: bool = False) -> None:
    heads = {what: _Heads(array, what, _layout(layout)) for what, array in arrays.items()
             if array is not None}
    if not heads:
        raise Error("neither queries nor keys are given", "give q, k or both")
    some = next(iter(heads.values()))
    for other in heads.values():
        for name in ("kind", "sequences", "tokens", "head_dim", "gpu"):
            if getattr(other, name) != getattr(some, name):
                raise Error(f"{' and '.join(heads)} differ in {name}: {getattr(some, name)} and "
                            f"{getattr(other, name)}", "give arrays of one type and length")
    if all(array.empty for array in heads.values()):
        return
    batch = Batch(some.element, some.head_dim, some.sequences, some.tokens)
    held, first, last = positions.of(some.sequences, some.tokens)
    if held is None:
        batch.first_position = first
    else:
        batch.positions = ctypes.cast(held, ctypes.POINTER(ctypes.c_int32))
    if "q" in heads:
        batch.queries = heads["q"].heads
    if "k" in heads:
        batch.keys = heads["k"].heads
    batch.inverse = bool(inverse)
    if some.gpu is not None:  # which computes its angles: no rows
        check(library.mrrope_cuda_rotate_and_wait(make_table(0, 0, some.element).pointer,
                                                  ctypes.byref(batch), some.gpu))
        return
    table = make_table(first, last + 1, some.element)
    check(library.mrrope_rotate(table.pointer, ctypes.byref(batch),
                                workers.pointer if workers else None))


def _workers(threads: int) -> Handle | None:
    if not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise Error(f"{threads!r} threads are not possible", "give 1 to 1024")
    return Handle("mrrope_workers_free", "mrrope_workers_create", threads) if threads > 1 else None


def rotate(q: Any = None, k: Any = None, *, plan: Plan, positions: Any = None,
           first_position: int = 0, layout: str = "bhtd", inverse: bool = False,
           threads: int = 1) -> None:
    """Rotates queries and keys by a plan, in place: numpy arrays, torch tensors and others.

    The axes are b (sequence), h (head), t (token) and d (element), in the order of `layout`; an
    array of three axes has no b. Heads may be any distance apart; their elements are contiguous.
    Positions count from `first_position`, or are given: one per token, or per sequence and token.
    `inverse` undoes the same call. Arrays of a GPU are rotated there, after the work of the current
    stream, and are done when this returns; that needs a library built with CUDA.

    >>> import mrrope, numpy
    >>> tiny = mrrope.Geometry(rotary_dim=4, base=10000, train_length=64)
    >>> keys = numpy.ones((2, 3, 4), numpy.float32)     # 2 heads, 3 tokens
    >>> mrrope.rotate(k=keys, plan=mrrope.plan(tiny, "none"))
    >>> [round(float(x), 4) for x in keys[0, 2]]        # by 2 and 0.02 radians
    [-1.3254, 0.9798, 0.4932, 1.0198]
    """
    _need_plan(plan)
    tables = _tables(plan.__dict__.setdefault("_tables", {}), plan)
    _run({"q": q, "k": k}, layout, _Positions(positions, first_position), tables, _workers(threads), inverse)


class Turn:
    """A turn between two plans, for many arrays of keys with the same positions."""

    def __init__(self, old: Plan, new: Plan, positions: Any = None, first_position: int = 0,
                 layout: str = "bhtd", threads: int = 1):
        _need_plan(old)
        _need_plan(new)
        self._layout, self._tables = layout, _tables({}, old, new)
        self._positions, self._workers = _Positions(positions, first_position), _workers(threads)

    def __call__(self, k: Any) -> None:
        _run({"k": k}, self._layout, self._positions, self._tables, self._workers)


def turn(k: Any, old: Plan, new: Plan, *, positions: Any = None, first_position: int = 0,
         layout: str = "bhtd", threads: int = 1) -> None:
    """Turns keys that were rotated under one plan to what they are under another, in place.

    This is what a cache needs when a growing context changes its rung. See rotate() for the rest.

    >>> import mrrope, numpy
    >>> tiny = mrrope.Geometry(rotary_dim=64, base=10000, train_length=1024)
    >>> none, pro = mrrope.plan(tiny, "none"), mrrope.plan(tiny, "pro", scale=4)
    >>> keys = numpy.ones((2, 3, 64), numpy.float32)
    >>> other = keys.copy()
    >>> mrrope.rotate(k=keys, plan=none)
    >>> mrrope.turn(keys, none, pro)
    >>> mrrope.rotate(k=other, plan=pro)
    >>> bool(abs(keys - other).max() < 1e-6)
    True
    """
    Turn(old, new, positions, first_position, layout, threads)(k)


def _need_plan(plan: Any) -> None:
    if not isinstance(plan, Plan):
        raise Error(f"{type(plan).__name__} is not a plan", "make one with mrrope.plan(...)")
