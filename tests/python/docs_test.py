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

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "docs"))
from commands import blocks  # noqa: E402


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    os.chdir(sys.argv[2])
    scope, ran, promised = {}, 0, 0
    for number, lines in blocks(text):
        body = "\n".join(lines).rstrip()
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
