# SPDX-License-Identifier: Apache-2.0
"""Results of evaluations as plain rows."""
from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from ._library import Error, path_bytes


def results(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a finished run: what `mrrope eval ... -o FOLDER` measured.

    Each row has task, method, plan, scale, length, metric, value, stderr and n, and depth where the
    task has depths. pandas.DataFrame(mrrope.results("run1")) is a table of them.

    >>> import mrrope
    >>> mrrope.results("/absent")
    Traceback (most recent call last):
    mrrope.Error: there is no /absent/results.json (give the folder of -o)
    """
    path = pathlib.Path(os.fsdecode(path_bytes(folder, "the folder"))) / "results.json"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if (path.parent / "journal.jsonl").exists():
            raise Error(f"the run in {path.parent} is not finished",
                        "give its command again: it goes on where it stopped") from None
        raise Error(f"there is no {path}", "give the folder of -o") from None
    except (OSError, UnicodeDecodeError) as reason:
        raise Error(f"cannot read {path}: {reason}", kind="failed") from None
    try:
        rows = json.loads(text)["results"]
        return [dict(row) for row in rows]
    except (ValueError, KeyError, TypeError):
        raise Error(f"{path} does not hold results", "give the folder of a mrrope eval", "corrupt"
                    ) from None
