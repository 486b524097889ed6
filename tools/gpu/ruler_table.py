#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of ruler_table.sh, from the run folders in its list. Standard library only.

    ruler_table.py LIST
"""
import json
import math
import pathlib
import sys

TASKS = ["niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2",
         "niah_multikey_3", "niah_multivalue", "niah_multiquery", "vt", "cwe", "fwe", "qa_1", "qa_2"]
THRESHOLD = 85.6


def main():
    lengths, methods, scores = [], [], {}
    missing, tokens, naive, seconds = [], 0, 0, 0.0
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        length, _, method, tasks, folder = line.split()
        length, folder = int(length), pathlib.Path(folder)
        if length not in lengths:
            lengths.append(length)
        if method not in methods:
            methods.append(method)
        if not (folder / "results.json").exists():
            missing.append(f"{method} at {length}: {tasks}")
            continue
        results = json.loads((folder / "results.json").read_text())
        tokens += results["tokens"]
        naive += results["naive_tokens"]
        run = json.loads((folder / "run.json").read_text())
        seconds += run.get("measured", {}).get("seconds", 0.0)
        for row in results["results"]:
            task = row["task"].partition("/")[2]
            if task in TASKS and row["value"] is not None:
                scores[method, row["length"], task] = (100 * row["value"], 100 * (row["stderr"] or 0),
                                                       row["n"])
    lengths.sort()

    def mean(method, length):
        found = [scores.get((method, length, task)) for task in TASKS]
        if None in found:
            return None
        return (sum(f[0] for f in found) / len(found),
                math.sqrt(sum(f[1] ** 2 for f in found)) / len(found))

    def cell(score):
        return "-" if score is None else f"{score[0]:.1f} +-{score[1]:.1f}"

    columns = [f"{n // 1024}K" for n in lengths]
    print("| method | " + " | ".join(columns) + " | effective |")
    print("|---" * (len(columns) + 2) + "|")
    for method in methods:
        means = [mean(method, n) for n in lengths]
        good = [c for c, m in zip(columns, means) if m and m[0] >= THRESHOLD]
        print(f"| {method} | " + " | ".join(map(cell, means)) + f" | {good[-1] if good else 'none'} |")
    for n, column in zip(lengths, columns):
        here = [m for m in methods if any((m, n, t) in scores for t in TASKS)]
        if not here:
            continue
        print(f"\nBy task at {column}:\n\n| task | " + " | ".join(here) + " | n |")
        print("|---" * (len(here) + 2) + "|")
        for task in TASKS:
            row = [scores.get((m, n, task)) for m in here]
            count = max((s[2] for s in row if s), default=0)
            print(f"| {task} | " + " | ".join(map(cell, row)) + f" | {count} |")
    if naive:
        print(f"\n{tokens} prompt tokens computed of {naive} ({100 * (naive - tokens) / naive:.0f} % saved "
              f"by shared beginnings), {seconds:.0f} s over all processes.")
    for line in missing:
        print(f"missing: {line}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
