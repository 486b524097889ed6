#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users see: each file has commands after "$ " and below them exactly what they print.

transcripts.py MRROPE FILE...            compares
transcripts.py --update MRROPE FILE...   writes what the commands print now; read the difference

Lines of standard error begin with "! ", and a failure ends with "[exit N]". The commands run in an empty
folder with the bundled model as tiny.gguf and its Hugging Face folder as tiny; blank lines and lines that
begin with "#" before a command are kept.
"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent


def answer(command, folder, environment):
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, capture_output=True)
    lines = done.stdout.splitlines() + [f"! {line}".rstrip() for line in done.stderr.splitlines()]
    return lines + ([f"[exit {done.returncode}]"] if done.returncode else [])


def played(text, mrrope):
    """The text with the answers of today."""
    with tempfile.TemporaryDirectory(prefix="mrrope-transcript-") as folder:
        os.symlink(TESTS.parent / "models/mrrope-tiny.gguf", f"{folder}/tiny.gguf")
        os.symlink(TESTS / "golden/tiny_config", f"{folder}/tiny")
        os.mkdir(f"{folder}/bin")
        os.symlink(mrrope, f"{folder}/bin/mrrope")
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        environment.pop("MRROPE_COMMAND", None)
        environment["XDG_CACHE_HOME"] = f"{folder}/cache"
        out, heading = [], True
        for line in text.splitlines():
            if line.startswith("$ "):
                out += [line, *answer(line[2:], folder, environment), ""]
                heading = False
            elif line.startswith("#") or heading:
                out.append(line)
        return "\n".join(out).rstrip("\n") + "\n"


def main():
    arguments = sys.argv[1:]
    update = arguments[0] == "--update"
    mrrope, *files = arguments[update:]
    failed = False
    for name in files:
        path = pathlib.Path(name)
        before = path.read_text()
        after = played(before, pathlib.Path(mrrope).resolve())
        if update:
            path.write_text(after)
        elif after != before:
            failed = True
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, "today"))
    sys.exit(failed)


main()
