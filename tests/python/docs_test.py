# SPDX-License-Identifier: Apache-2.0
"""Runs every Python block of docs/guide/python.md in order, and compares what the comments promise.

docs_test.py PYTHON.md WORK_FOLDER    (the folder holds `checkpoint`; `mrrope` is in the PATH)
"""
import io
import os
import pathlib
import re
import sys
from contextlib import redirect_stdout


def blocks(text):
    """Indented blocks, each with its first line's number."""
    out, lines = [], text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("    "):
            if not out or out[-1][1]:
                out.append([number + 1, False, []])
            out[-1][2].append(line[4:])
        elif out and line.strip():
            out[-1][1] = True
        elif out:
            out[-1][2].append("")
    return [(number, "\n".join(body).rstrip()) for number, _, body in out]


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    os.chdir(sys.argv[2])
    scope, ran, promised = {}, 0, 0
    for number, body in blocks(text):
        if body.startswith("pip "):
            continue  # the test of the wheel types these
        said = io.StringIO()
        with redirect_stdout(said):
            exec(compile("\n" * (number - 1) + body, "docs/guide/python.md", "exec"), scope)
        ran += 1
        found = said.getvalue().splitlines()
        wanted = re.findall(r"^print\(.*\) +# (.*)$", body, re.MULTILINE)
        for line in wanted:
            promised += 1
            assert line in found or line.startswith("what "), (number, line, found)
    assert ran >= 12 and promised >= 7, (ran, promised)
    print(f"docs/guide/python.md: {ran} blocks, {promised} promised lines")


main()
