# SPDX-License-Identifier: Apache-2.0
"""Python expressions with exactly what they give: tests/transcripts/unit/NAME.txt has them after "$ ", and below each its
value, or the kind, message and hint of the mrrope.Error that it raises. With MRROPE_UPDATE_TRANSCRIPTS in the environment
the file is written anew: read the difference. And calls that must raise an error."""
import difflib
import functools
import os
import pathlib

import mrrope

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "transcripts/unit"


def answer(expression, names):
    try:
        return repr(eval(expression, names))
    except mrrope.Error as error:
        return f"[{error.kind}] {error.message}" + (f"\n    {error.hint}" if error.hint else "")


def raises(kind, part, call, *arguments, **options):
    """The call raises an error of this class whose message has this part."""
    try:
        call(*arguments, **options)
    except kind as error:
        message = getattr(error, "message", str(error))  # without the hint
        assert part in message, f"{part!r} is not in {message!r}"
        assert getattr(error, "kind", "usage") in ("usage", "unsupported", "corrupt", "failed"), error.kind
        return
    raise AssertionError(f"not refused: {part}")


refused = functools.partial(raises, mrrope.Error)


def check(name, names, work):
    """`work`: a folder whose name is not shown."""
    path = FOLDER / f"{name}.txt"
    before, lines = path.read_text(), []
    for line in before.splitlines():
        if line.startswith("$ "):
            said = answer(line[2:], names).replace(f"{work}/", "")
            assert " --" not in said or "in_python" in line, f"hints name keywords, not flags of the shell: {said}"
            lines += [line, said]
        elif line.startswith("#"):
            lines.append(line)
    after = "\n".join(lines) + "\n"
    if os.environ.get("MRROPE_UPDATE_TRANSCRIPTS"):
        path.write_text(after)
    difference = "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), name, "today", lineterm=""))
    assert before == after or os.environ.get("MRROPE_UPDATE_TRANSCRIPTS"), difference
