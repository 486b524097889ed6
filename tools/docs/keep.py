#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts what was measured into data, for the pages that make.py makes of it.

    tools/docs/keep.py run MODEL FOLDER... [--commit COMMIT]
    tools/docs/keep.py bench NAME TITLE [--commit COMMIT] -- COMMAND...

run: copies run.json, journal.jsonl and results.json of each finished evaluation to data/runs/MODEL/ (the name of
the folder stays), adds the commit, and leaves out the folders of the machine where it ran.
bench: runs a benchmark and keeps what it prints in data/bench/NAME.json with date, commit and processor.
The commit is that of this tree unless it is given.
"""
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = re.compile(r"(?<![A-Za-z0-9_.~-])(?:\.\.?/|~/|/)[^\s'\"=,]*/")  # before the name of a file


def commit_of(arguments):
    if "--commit" in arguments:
        at = arguments.index("--commit")
        commit = arguments[at + 1]
        del arguments[at:at + 2]
        return commit
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=8", "HEAD"], check=True, capture_output=True,
                          text=True).stdout.strip()


def keep_run(model, folders, commit):
    for folder in map(pathlib.Path, folders):
        run = json.loads((folder / "run.json").read_text())
        if not (folder / "results.json").exists():
            sys.exit(f"keep.py: {folder} is not finished: run its command again: {run['command']}")
        run["command"] = FOLDERS.sub("", run["command"])
        if "model_file" in run:
            run["model_file"]["path"] = pathlib.Path(run["model_file"]["path"]).name
        run = {"mrrope": run["mrrope"], "commit": run.get("commit", commit), **run}
        target = ROOT / "data/runs" / model / folder.name
        target.mkdir(parents=True, exist_ok=True)
        (target / "run.json").write_text(dumped(run))
        for name in ["journal.jsonl", "results.json"]:
            (target / name).write_bytes((folder / name).read_bytes())
        print(f"keep.py: {target.relative_to(ROOT)}, {sum(f.stat().st_size for f in target.iterdir()) >> 10} KiB")


def dumped(run):
    """As mrrope writes it: a line per key, and per entry of a list of objects."""
    compact = {"separators": (",", ":"), "ensure_ascii": False}
    lines = []
    for key, value in run.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join("    " + json.dumps(row, **compact) for row in value)
            lines.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, **compact)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def processor():
    lines = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    field = {k.strip(): v.strip() for k, v in (line.split(":", 1) for line in lines.splitlines() if ":" in line)}
    return (f"{field.get('Model name', 'unknown processor')} ({field['Architecture']}), {field['CPU(s)']} cores, "
            f"load {os.getloadavg()[0]:.1f} at the start")


def keep_bench(name, title, command, commit):
    machine = processor()  # with its load, before this adds to it
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"keep.py: {shlex.join(command)} ended with {done.returncode}\n{done.stderr}")
    shown = [pathlib.Path(word).name if pathlib.Path(word).exists() else word for word in command]
    kept = {"title": title, "command": shlex.join(shown), "date": datetime.date.today().isoformat(),
            "commit": commit, "machine": machine, "output": done.stdout.rstrip("\n").split("\n")}
    path = ROOT / f"data/bench/{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(f"keep.py: {path.relative_to(ROOT)}")


def main():
    arguments = sys.argv[1:]
    command = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1:]
    if len(arguments) < 3 or arguments[0] not in ("run", "bench") or (arguments[0] == "bench") != bool(command):
        sys.exit(__doc__)
    commit = commit_of(arguments)
    if arguments[0] == "run":
        keep_run(arguments[1], arguments[2:], commit)
    else:
        keep_bench(arguments[1], arguments[2], command, commit)


main()
