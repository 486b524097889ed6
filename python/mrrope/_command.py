# SPDX-License-Identifier: Apache-2.0
"""The command of this installation: started as `mrrope`, and by export() and serve()."""
from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from ._library import KINDS, Error, in_python, native_folder, path_bytes
from ._plans import Ladder, Length, Plan, tokens


def _binary() -> pathlib.Path:
    path = native_folder() / "bin" / "mrrope"
    if not os.access(path, os.X_OK):
        raise Error(f"the command is not in {path}", "install the wheel again", "failed")
    return path


def main() -> NoReturn:
    """The script `mrrope`: becomes the command."""
    try:
        path = str(_binary())
        sys.stdout.flush()
        os.execv(path, [path, *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"mrrope: {error}")


def bundled_model() -> str:
    """The path of MrRoPE Tiny, the small model (window 1024) that comes with mrrope.

    >>> import mrrope
    >>> mrrope.bundled_model().endswith("mrrope-tiny.gguf")
    True
    """
    home = os.environ.get("MRROPE_HOME")
    folder = pathlib.Path(home) if home else native_folder() / "share" / "mrrope"
    path = folder / "models" / "mrrope-tiny.gguf"
    if not path.is_file():
        raise Error(f"the bundled model is not at {path}",
                    "install the wheel again, or set MRROPE_HOME to the folder of the sources",
                    "failed")
    return str(path)


def _call(arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run([str(_binary()), *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return dict(json.loads(done.stdout))
    raise _failure(arguments[0], done.returncode, done.stderr.splitlines())


def _failure(verb: str, code: int, lines: Iterable[bytes]) -> Error:
    """What the command said last, in the words of Python."""
    said = [line.decode("utf-8", "replace").rstrip() for line in lines]
    kind = KINDS.get(code, "failed")
    for number, line in enumerate(said):
        if line.startswith("mrrope: "):
            hint = " ".join(rest.strip() for rest in said[number + 1:])
            return Error(in_python(line[len("mrrope: "):]), in_python(hint), kind)
    return Error(f"mrrope {verb} ended with code {code}: {' '.join(said)}", kind=kind)


def _flags(options: dict[str, Any]) -> list[str]:
    """Of the command; None and False give none."""
    flags = []
    for name, value in options.items():
        flag = "--" + {"train_length": "train-ctx"}.get(name, name).replace("_", "-")
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        if value is None or isinstance(value, bool):
            flags += [flag] if value else []
        elif isinstance(value, (str, int, float, os.PathLike)):
            flags.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        else:
            raise Error(f"{name} is {type(value).__name__}", "give a text, a number, a list or True")
    return flags


def export(model: str | os.PathLike[str], method: str | Plan | Ladder, ctx: Length | None = None, *,
           out: str | os.PathLike[str], to: str = "gguf", scale: float | None = None,
           verify: bool = True, force: bool = False, native: bool = False, copy: bool = False,
           dialect: str = "v5") -> dict[str, Any]:
    """Writes a plan into files that another engine runs, and verifies them there.

    This runs `mrrope export`: `to` is "gguf" (llama.cpp, ollama, LM Studio) or "hf" (transformers,
    vLLM, SGLang). The answer holds the files, how the plan is encoded, and what the proof measured.

    >>> import mrrope, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "long.gguf")
    >>> made = mrrope.export(mrrope.bundled_model(), "pro", ctx="2k", out=path, verify=False)
    >>> made["context_length"], len(made["divisors"]), made["proof"]
    (2048, 64, None)
    """
    if to not in ("gguf", "hf"):
        raise Error(f"to {to!r} is unknown", 'choose "gguf" or "hf"')
    target = to if to == "gguf" or dialect == "v5" else f"hf-{dialect}"
    arguments = ["export", os.fsdecode(path_bytes(model, "the model")), *_flags({
        "to": target, "json": True, "out": os.fsdecode(path_bytes(out, "out")), "ctx": tokens(ctx),
        "scale": None if scale is None else float(scale),
        "verify": None if verify else "off", "force": bool(force), "native": bool(native),
        "copy": bool(copy)})]
    if isinstance(method, str):
        return _call([*arguments, "--method", method])
    if not isinstance(method, (Plan, Ladder)):
        raise Error(f"{type(method).__name__} is neither a method nor a plan",
                    'give "pro", or a plan of mrrope.plan() or mrrope.load()')
    with tempfile.TemporaryDirectory(prefix="mrrope-") as folder:
        path = os.path.join(folder, "plan.json")
        method.save(path)
        return _call([*arguments, "--plan", path])


_GRACE = 10  # seconds for running answers after SIGTERM


@dataclass(frozen=True)
class Server:
    """A server that serve() started."""

    base_url: str  # for clients of OpenAI's API
    model: str  # its name there
    method: str
    context: int  # tokens of one conversation
    parallel: int  # conversations computed at the same time
    pid: int


@contextlib.contextmanager
def serve(model: str | os.PathLike[str], ctx: Length | None = None, **options: Any
          ) -> Iterator[Server]:
    """Runs `mrrope serve` as long as a with block, on a free port, for clients of OpenAI's API.

    Options are its flags (`mrrope serve --help`): parallel=4, method="pro", kv_unified=True.

    >>> import mrrope
    >>> with mrrope.serve(mrrope.bundled_model(), ctx="2k", parallel=1) as server:
    ...     print(server.model, server.context, server.base_url.startswith("http://127.0.0.1:"))
    mrrope-tiny 2048 True
    """
    given = {"ctx": tokens(ctx), "port": 0, **options, "json": True}
    path = os.fsdecode(path_bytes(model, "the model"))
    process = subprocess.Popen([str(_binary()), "serve", f"--model={path}", *_flags(given)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    last: collections.deque[bytes] = collections.deque(maxlen=100)  # lines; a full pipe would stop it
    readers = [threading.Thread(target=last.extend, args=(process.stderr,), daemon=True)]
    readers[0].start()
    try:
        line = process.stdout.readline()
        try:
            about = json.loads(line)
            server = Server(f"{about['address']}/v1", about["model"], about["method"],
                            about["context"], about["parallel"], process.pid)
        except (ValueError, KeyError, TypeError):
            if line:
                process.terminate()  # it says something else
            code = process.wait()
            readers[0].join(_GRACE)
            raise _failure("serve", code, [*last, line]) from None
        readers.append(threading.Thread(target=collections.deque, args=(process.stdout, 0), daemon=True))
        readers[1].start()
        yield server
    finally:
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for reader in readers:
            reader.join(_GRACE)
