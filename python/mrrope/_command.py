# SPDX-License-Identifier: Apache-2.0
"""The command of this installation: started as `mrrope`, and by export()."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, NoReturn

from ._library import KINDS, Error, native_folder, path_bytes
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
    said = done.stderr.decode("utf-8", "replace").splitlines()
    if done.returncode == 0:
        return dict(json.loads(done.stdout))
    for number, line in enumerate(said):
        if line.startswith("mrrope: "):
            hint = " ".join(rest.strip() for rest in said[number + 1:])
            raise Error(line[len("mrrope: "):], hint, KINDS.get(done.returncode, "failed"))
    raise Error(f"mrrope {arguments[0]} ended with code {done.returncode}: {' '.join(said)}",
                kind=KINDS.get(done.returncode, "failed"))


def export(model: str | os.PathLike[str], method: str | Plan | Ladder, ctx: Length | None = None, *,
           out: str | os.PathLike[str], to: str = "gguf", scale: float | None = None,
           verify: bool = True, force: bool = False, native: bool = False, copy: bool = False,
           approximate: bool = False, split: bool = False, last_rung: bool = False,
           dialect: str = "v5") -> dict[str, Any]:
    """Writes a plan into files that another engine runs, and verifies them there.

    This runs `mrrope export`: `to` is "gguf" (llama.cpp, ollama, LM Studio) or "hf" (transformers,
    vLLM, SGLang). The answer holds the files, how the plan is encoded, and what the proof measured.

    >>> import mrrope, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "long.gguf")
    >>> made = mrrope.export(mrrope.bundled_model(), "pro", ctx="2k", out=path, verify=False)
    >>> made["context_length"], len(made["divisors"]), made["proof"]
    (2048, 64, None)
    """
    if to not in ("gguf", "hf"):
        raise Error(f"to {to!r} is unknown", 'choose "gguf" or "hf"')
    target = to if to == "gguf" or dialect == "v5" else f"hf-{dialect}"
    arguments = ["export", os.fsdecode(path_bytes(model, "the model")), "--to", target, "--json",
                 "--out=" + os.fsdecode(path_bytes(out, "out"))]
    if ctx is not None:
        arguments += ["--ctx", str(tokens(ctx))]
    if scale is not None:
        arguments += ["--scale", repr(float(scale))]
    flags = {"--verify=off": not verify, "--force": force, "--native": native, "--copy": copy,
             "--approximate": approximate or last_rung, "--split": split}
    arguments += [flag for flag, wanted in flags.items() if wanted]
    if isinstance(method, str):
        return _call([*arguments, "--method", method])
    if not isinstance(method, (Plan, Ladder)):
        raise Error(f"{type(method).__name__} is neither a method nor a plan",
                    'give "pro", or a plan of mrrope.plan() or mrrope.load()')
    with tempfile.TemporaryDirectory(prefix="mrrope-") as folder:
        path = os.path.join(folder, "plan.json")
        method.save(path)
        return _call([*arguments, "--plan", path])
