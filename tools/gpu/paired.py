#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pairs runs of the same samples under different methods.

    paired.py RUN RUN...          one run folder for each method
    paired.py A,A2 B,B2...        several: shards, or other seeds
    paired.py --loss RUN RUN...   needles by the loss of the right answer, text by text

Every later run is compared with the first one at every length, over the documents (perplexity), or the
samples or texts (needles, RULER) that both have. Prints Markdown: the value of each run, how much the
first one is worse (perplexity in percent, scores in points; below 0 it is better) with its standard
error, and the bound that it exceeds with a probability of 2.5 %. Only results.json and journal.jsonl
are read.
"""
import collections
import json
import math
import pathlib
import sys

# The 97.5 % quantile of Student's t for 1, 2, ... degrees of freedom; beyond, the normal one.
QUANTILE = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
            2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
            2.052, 2.048, 2.045, 2.042]


def quantile(freedom):
    return QUANTILE[freedom - 1] if freedom <= len(QUANTILE) else 1.96 + 2.4 / freedom


def values_of(folder):
    """Values by length and key: of a document its mean log-probability, of answers a score."""
    run = json.loads((folder / "run.json").read_text())
    values = collections.defaultdict(dict)
    for line in (folder / "journal.jsonl").read_text().splitlines():
        unit = json.loads(line)
        if unit.get("task") == "ppl":
            for part in unit["lengths"]:
                values[part["length"]][unit["document"]] = part["sum"] / part["count"]
        elif unit.get("task") == "needle" and LOSS:
            by_length = collections.defaultdict(list)
            for cell in unit["cells"]:
                by_length[cell["length"]].append(-cell["answer_loss"])
            for length, scores in by_length.items():
                values[length][unit["sample"]] = sum(scores) / len(scores)
        elif unit.get("task") == "needle":
            for cell in unit["cells"]:
                key = unit["sample"], cell["depth"]
                values[cell["length"]][key] = float(cell["answer"] in cell["text"])
        elif "samples" in unit:
            sets, group = run["sets"][unit["set"]], run["settings"]["group"]
            by_text = collections.defaultdict(list)
            for i, sample in enumerate(unit["samples"]):
                text = sample["text"].lower()
                found = [expected.lower() in text for expected in sample["expected"]]
                score = max(found) if sets["scorer"].endswith("part") else sum(found) / len(found)
                by_text[(unit["group"] * group + i) // sets.get("questions", 1)].append(score)
            for key, scores in by_text.items():
                values[sets["length"]][unit["set"], key] = sum(scores) / len(scores)
    return run, values


def joined(folders):
    """What several runs of one method have together."""
    joint = collections.defaultdict(dict)
    for folder in folders:
        run, values = values_of(folder)
        for length, by_key in values.items():
            joint[length].update({(run["seed"], key): value for key, value in by_key.items()})
    return run["task"], run["model"]["train_length"], joint


def mean_and_error(numbers):
    mean = sum(numbers) / len(numbers)
    if len(numbers) < 2:
        return mean, math.nan
    spread = sum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)
    return mean, math.sqrt(spread / len(numbers))


def main(folders):
    if len(folders) < 2:
        sys.exit(__doc__.strip())
    parts = [[pathlib.Path(part) for part in folder.split(",")] for folder in folders]
    runs = [(part[0], *joined(part)) for part in parts]
    first, task, window, ours = runs[0]
    perplexity = task == "ppl"
    print(f"| run | length | {'perplexity' if perplexity else 'loss' if LOSS else 'found'} | "
          f"{first.name} is worse by | at most | n |")
    print("|---|---|---|---|---|---|")
    for folder, _, _, values in runs:
        name = folder.parent.name if folder.name == "run" else folder.name
        for length in sorted(ours):
            if length <= window and perplexity and folder != first:
                continue
            keys = sorted(ours[length].keys() & values.get(length, {}).keys(), key=str)
            if not keys:
                print(f"| {name} | {length} | - | | | 0 |")
                continue
            mean, error = mean_and_error([values[length][key] for key in keys])
            value = f"{math.exp(-mean):.3f}" if perplexity else f"{100 * mean:.1f} +-{100 * error:.1f}"
            gap, error = mean_and_error([values[length][key] - ours[length][key] for key in keys])
            bound = gap + quantile(max(1, len(keys) - 1)) * error
            if perplexity:
                worse, size = 100 * (math.exp(gap) - 1), 100 * math.exp(gap) * error
                most, unit = 100 * (math.exp(bound) - 1), "%"
            elif LOSS:
                print(f"| {name} | {length} | {-mean:.3f} | {gap:+.3f} +-{error:.3f} nats | {bound:+.3f} | {len(keys)} |")
                continue
            else:
                worse, size, most, unit = 100 * gap, 100 * error, 100 * bound, "points"
            print(f"| {name} | {length} | {value} | {worse:+.1f} +-{size:.1f} {unit} | {most:+.1f} | {len(keys)} |")


LOSS = "--loss" in sys.argv
main([argument for argument in sys.argv[1:] if argument != "--loss"])
