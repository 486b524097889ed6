# SPDX-License-Identifier: Apache-2.0
"""The C library of this installation, and its errors as exceptions."""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import sys
from typing import Any

KINDS = {1: "failed", 2: "usage", 3: "unsupported", 4: "corrupt", 5: "out_of_memory",
         6: "goal_not_met", 130: "interrupted"}


class Error(Exception):
    """What went wrong (`message`), what to do instead (`hint`), and its `kind`.

    >>> import mrrope
    >>> try:
    ...     mrrope.plan(mrrope.Geometry(128, 10000, 4096), "pro", scale=0.5)
    ... except mrrope.Error as error:
    ...     print(error.kind, "|", error.message)
    usage | scale 0.5 is not a number from 1 to 1e9: a plan lengthens a context
    """

    def __init__(self, message: str, hint: str = "", kind: str = "usage"):
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.hint = hint
        self.kind = kind


Error.__module__ = "mrrope"


def refusal(message: str, hint: str = "") -> Error:
    return Error(message, hint, "unsupported")


_NAMES = {"train-ctx": "train_length", "rope-freq-base": "base", "o": "out", "c": "ctx", "t": "threads",
          "ctk": "cache_type_k", "ctv": "cache_type_v", "ub": "ubatch_size", "fa": "flash_attn"}
_SWITCHES = ("copy", "deterministic", "force", "kv-unified", "native", "replace-scaling")
_PHRASES = {
    r"--to hf-(\w+)": r'to="hf", dialect="\1"',
    r"; in a program .*": "",
    r"mrrope plan \.\.\. -o FILE": "mrrope.plan(...).save(FILE)",
    r"mrrope plan -o\b": "Plan.save()",
    r"mrrope\.h says what a request holds": "help(mrrope.plan) says what may be given",
    r"mrrope (\w+) --help": r"help(mrrope.\1), and mrrope \1 --help",
    r"--rotary-dim (\S+) --rope-freq-base (\S+) --train-ctx (\w+)":
        r"mrrope.Geometry(rotary_dim=\1, base=\2, train_length=\3)",
}
_FLAG = re.compile(r"(?<![\w./-])(?:--(?P<no>no-)?(?P<long>[a-z][a-z-]*[a-z])|-(?P<short>o|c|t|ctk|ctv|ub|fa)\b)"
                   r"(?:[ =](?P<value>\d[\d.e+]*[km]?\b|[A-Z]+\b(?!')|"
                   r"(?<=--to )[\w-]+|(?<=--method )(?:'[^']+'|[\w:-]+)|(?<=-ct[kv] )\w+|(?<=--verify )\w+))?")


def _keyword(flag: re.Match[str]) -> str:
    long, value = flag["long"], flag["value"]
    name = _NAMES.get(long or flag["short"], (long or flag["short"]).replace("-", "_"))
    if flag["no"] or (long, value) == ("verify", "off"):
        return f"{name}=False"
    if value:
        value = value.strip("'")
        return f"{name}={value}" if value.isupper() or value.isdigit() else f'{name}="{value}"'
    asked = re.search(r"(add|give|with|or) $", flag.string[: flag.start()])
    return f"{name}=True" if long in _SWITCHES and asked else name


def in_python(text: str) -> str:
    """What the library or the command says, with the keywords of Python for the flags of the shell."""
    for said, instead in _PHRASES.items():
        text = re.sub(said, instead, text)
    return text if "--help" in text else _FLAG.sub(_keyword, text)


def native_folder() -> pathlib.Path:
    """The folder with bin/, lib/ and share/: the package's own, or MRROPE_NATIVE (a build folder)."""
    chosen = os.environ.get("MRROPE_NATIVE")
    return pathlib.Path(chosen) if chosen else pathlib.Path(__file__).parent


class Strides(ctypes.Structure):
    _fields_ = [("sequence", ctypes.c_int64), ("token", ctypes.c_int64), ("head", ctypes.c_int64)]


class Heads(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("from_", ctypes.c_void_p), ("from_strides", Strides),
                ("to", ctypes.c_void_p), ("to_strides", Strides)]


class Batch(ctypes.Structure):
    _fields_ = [("element", ctypes.c_int32), ("head_dim", ctypes.c_int32),
                ("sequences", ctypes.c_int64), ("tokens", ctypes.c_int64),
                ("queries", Heads), ("keys", Heads),
                ("positions", ctypes.POINTER(ctypes.c_int32)),
                ("first_position", ctypes.c_int64), ("inverse", ctypes.c_int32)]


_HANDLE = ctypes.c_void_p
_OUT = ctypes.POINTER(ctypes.c_void_p)
_TEXT = ctypes.c_char_p
_SIGNATURES = {
    "mrrope_version": (_TEXT, []),
    "mrrope_last_message": (_TEXT, []),
    "mrrope_last_hint": (_TEXT, []),
    "mrrope_make": (ctypes.c_int, [_TEXT, _OUT]),
    "mrrope_load": (ctypes.c_int, [_TEXT, _OUT]),
    "mrrope_inspect": (ctypes.c_int, [_TEXT, ctypes.c_int64, _OUT]),
    "mrrope_text_free": (None, [_HANDLE]),
    "mrrope_ladder_places": (ctypes.c_int, [_TEXT, _OUT]),
    "mrrope_plan_parse": (ctypes.c_int, [_TEXT, ctypes.c_int64, _OUT]),
    "mrrope_plan_free": (None, [_HANDLE]),
    "mrrope_table_create": (ctypes.c_int, [_HANDLE, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32,
                                           _OUT]),
    "mrrope_table_create_turning": (ctypes.c_int, [_HANDLE, _HANDLE, ctypes.c_int64, ctypes.c_int64,
                                                   ctypes.c_int32, _OUT]),
    "mrrope_table_free": (None, [_HANDLE]),
    "mrrope_workers_create": (ctypes.c_int, [ctypes.c_int32, _OUT]),
    "mrrope_workers_free": (None, [_HANDLE]),
    "mrrope_rotate": (ctypes.c_int, [_HANDLE, ctypes.POINTER(Batch), _HANDLE]),
    # In a library that was built with CUDA.
    "mrrope_cuda_rotate_and_wait": (ctypes.c_int, [_HANDLE, ctypes.POINTER(Batch), ctypes.c_int32]),
}


def _open() -> ctypes.CDLL:
    path = native_folder() / "lib" / "libmrrope_c.so"
    try:
        found = ctypes.CDLL(str(path))
    except OSError as reason:
        raise ImportError(
            f"the library of mrrope cannot be loaded: {reason} (install the wheel again, or set "
            "MRROPE_NATIVE to a build folder of the sources)") from None
    for name, (result, arguments) in _SIGNATURES.items():
        if name.startswith("mrrope_cuda_") and not hasattr(found, name):
            continue
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


library = _open()


def check(status: int) -> None:
    if status:
        raise Error(library.mrrope_last_message().decode("utf-8", "replace"),
                    in_python(library.mrrope_last_hint().decode("utf-8", "replace")),
                    KINDS.get(status, "failed"))


def path_bytes(path: str | os.PathLike[str], what: str = "path") -> bytes:
    try:
        out = os.fsencode(path)
    except TypeError:
        raise Error(f"{what} is {type(path).__name__}, not a path", "give a text or a pathlib.Path"
                    ) from None
    if b"\0" in out:
        raise Error(f"{what} holds a zero byte", "give a path that a file system can hold")
    return out


def ask(function: str, *arguments: Any) -> Any:
    """Calls a function that answers in JSON."""
    out = ctypes.c_void_p()
    check(getattr(library, function)(*arguments, ctypes.byref(out)))
    try:
        return json.loads(ctypes.cast(out, _TEXT).value or b"")
    finally:
        library.mrrope_text_free(out)


class Handle:
    """An object of the library, released with this one."""

    def __init__(self, free: str, make: str, *arguments: Any):
        self._free = getattr(library, free)
        self._finalizing = sys.is_finalizing
        self.pointer = ctypes.c_void_p()
        check(getattr(library, make)(*arguments, ctypes.byref(self.pointer)))

    def __del__(self) -> None:
        if getattr(self, "pointer", None) and not self._finalizing():
            self._free(self.pointer)
