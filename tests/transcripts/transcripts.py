#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users see: each file has commands after "$ " and below them exactly what they print.

transcripts.py MRROPE FILE...            compares
transcripts.py --update MRROPE FILE...   writes what the commands print now; read the difference

Lines of standard error begin with "! ", and a failure ends with "[exit N]". The commands run in an empty folder with
the bundled model as tiny.gguf and its Hugging Face folder as tiny, a small Phi-3 as phi.gguf, cmake, docs, tests and
tools, a text as lemmas.txt, and pick.py as a command; lines that begin with "#" before a command are kept. Where the
data lie, how much memory is free and what takes how long is not shown, of a number nine decimals.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
LEMMAS = "".join(f"Lemma {i}. Let $x$ be an element of the group $G$. Then $x^{{{i * 37 % 101}}} = 1$ if and only if "
                 "$x$ is trivial.\n" for i in range(60))
# What depends on the machine.
MACHINE = ((r"\S*/share/mrrope/data/", "DATA/"), (r"(of|only) [\d.]+ .iB (available|are free)", r"\1 N GiB \2"),
           (r"about \d[\d.]* (s|min \d+ s|h \d+ min|years)\b", "about T"), (r"at [\d.e+]+ tokens/s", "at N tokens/s"),
           (r"llama.cpp \d\S+", "llama.cpp VERSION"), (r"(\d\.\d{9})\d+", r"\1"),
           (r'"[0-9a-f]{16}"', '"DIGEST"'))


def answer(command, folder, environment):
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, timeout=600,
                          stdin=subprocess.DEVNULL, capture_output=True)
    out, err = done.stdout.replace(folder + "/", ""), done.stderr.replace(folder + "/", "")
    for pattern, instead in MACHINE:
        out, err = re.sub(pattern, instead, out), re.sub(pattern, instead, err)
    lines = out.splitlines() + [f"! {line}".rstrip() for line in err.splitlines()]
    return lines + ([f"[exit {done.returncode}]"] if done.returncode else [])


def played(text, mrrope):
    """The text with the answers of today."""
    with tempfile.TemporaryDirectory(prefix="mrrope-transcript-") as folder:
        os.symlink(TESTS.parent / "models/mrrope-tiny.gguf", f"{folder}/tiny.gguf")
        os.symlink(TESTS / "golden/tiny_config", f"{folder}/tiny")
        os.mkdir(f"{folder}/bin")
        os.symlink(mrrope, f"{folder}/bin/mrrope")
        os.symlink(TESTS / "transcripts/pick.py", f"{folder}/bin/pick")
        os.symlink(TESTS / "golden/two_lists.gguf", f"{folder}/phi.gguf")
        for name in ("cmake", "docs", "tests", "tools"):
            os.symlink(TESTS.parent / name, f"{folder}/{name}")
        pathlib.Path(folder, "lemmas.txt").write_text(LEMMAS)
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
