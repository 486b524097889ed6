#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tune.sh found, as Markdown; and what its steps need to know of a plan.

  tune_tables.py tables OUT
  tune_tables.py parameters OWN.json FROM.json   flags that make FROM's plan for OWN's model
  tune_tables.py lengths OWN.json                the window and every doubling up to its length
"""
import json
import pathlib
import sys


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def length_text(n):
    return f"{n // 1024}K" if n % 1024 == 0 else str(n)


def headroom_of(plan):
    if "headroom" in plan:
        return plan["headroom"]
    return plan["scale"] * plan["geometry"]["train_length"] / plan["length"]


def parameters(own, other):
    """Nothing for the same model, for ladders and for lists of factors, which fit only theirs."""
    if own["geometry"] == other["geometry"] or other["method"] != "power":
        return None
    flags = [f"--{key.replace('_', '-')} {value}" for key, value in other["parameters"].items()]
    return " ".join(flags + [f"--headroom {headroom_of(other):.6g}"])


def lengths(plan):
    n, out = plan["geometry"]["train_length"], []
    while n < plan["length"]:
        out.append(str(n))
        n *= 2
    return ",".join(out + [str(plan["length"])])


def percent(value, digits=0):
    return "-" if value is None else f"{100 * value:.{digits}f}"


def describe(plan):
    p = plan["parameters"]
    names = ["power", "beta_fast", "beta_slow", "attn_coef"]
    words = [f"{name} {p[name]:.3g}" for name in names if name in p]
    if plan["method"] not in ("power", "elastic:power"):
        words.insert(0, plan["method"])
    text = ", ".join(words) + f", headroom {headroom_of(plan):.3g}"
    return text + (f", rung step {plan['rung_step']:.3g}" if "rung_step" in plan else "")


def search_table(folder):
    results = read(folder / "search" / "results.json")
    seconds = read(folder / "search" / "run.json").get("measured", {}).get("seconds")
    print(f"### {folder.name}\n")
    took = f", {seconds:.0f} s" if seconds else ""
    print(f"Found in {results['passes']:.1f} passes{took}, {len(results['trials'])} plans: "
          f"{describe(read(folder / 'found.json'))}.")
    proof = results.get("proof")
    if not proof:
        print("No proof yet.\n")
        return
    tuned = proof["tuned"]
    print(f"{proof['documents']} documents, {tuned['needles']['n']} needles: "
          + ("better than every published plan." if proof["better"] else
             f"NOT better; recommended: {proof['recommended']}.") + "\n")
    ends = [length_text(cell["length"]) for cell in tuned["perplexity"]]
    print("| method | " + " | ".join(ends) + " | needles |")
    print("|---" * (len(ends) + 2) + "|")

    def needles(row):
        n = row["needles"]
        return f"{percent(n['found'])} +-{percent(n['stderr'])} %" if n["n"] else "-"

    print("| **tuned** | " + " | ".join(f"**{c['value']:.3f}**" for c in tuned["perplexity"])
          + f" | **{needles(tuned)}** |")
    for row in proof["published"]:
        cells = [f"{c['value']:.3f} ({c['tuned_above_percent']:+.1f} +-{c['paired_stderr']:.1f})"
                 for c in row["perplexity"]]
        print(f"| {row['method']} | " + " | ".join(cells) + f" | {needles(row)} |")
    values = ["-" if v is None else f"{v:.3f}" if v < 100 else f"{v:.0f}"
              for v in proof["untouched"]]
    print("| none | " + " | ".join(values) + " | |\n")
    for row in proof["published"]:
        if row["against"]:
            print(f"- {row['method']} {row['against']}")
    print()


def eval_rows(folder, metric):
    return [row for row in read(folder / "results.json")["results"]
            if row["metric"] == metric and row.get("depth") is None]


def tables(out):
    for found in sorted(out.glob("*/found.json")):
        if (found.parent / "search" / "results.json").exists():
            search_table(found.parent)
    print("### Needles by the pinned protocol\n\n| plan | length | found | +- | n |\n|---|---|---|---|---|")
    for folder in sorted(out.glob("*-needles*/")):
        if (folder / "results.json").exists():
            for row in eval_rows(folder, "contains"):
                print(f"| {folder.name} | {length_text(row['length'])} | "
                      f"{percent(row['value'], 1)} % | {percent(row['stderr'], 1)} | {row['n']} |")
    print("\n### Plans of the other model\n")
    for folder in sorted(out.glob("*-from-*/")):
        if not (folder / "results.json").exists():
            continue
        rows = eval_rows(folder, "perplexity")
        ends = sorted({row["length"] for row in rows})
        print(f"{folder.name}, {rows[0]['n']} documents:\n")
        print("| plan | " + " | ".join(map(length_text, ends)) + " |")
        print("|---" * (len(ends) + 1) + "|")
        for method in dict.fromkeys(row["method"] for row in rows):
            by_length = {row["length"]: row for row in rows if row["method"] == method}
            name = pathlib.Path(method).stem if method.endswith(".json") else method
            print(f"| {name} | " + " | ".join(
                f"{by_length[n]['value']:.3f} +-{by_length[n]['stderr']:.3f}" for n in ends) + " |")
        print()


def main(arguments):
    if arguments[:1] == ["tables"] and len(arguments) == 2:
        tables(pathlib.Path(arguments[1]))
        return 0
    if arguments[:1] == ["parameters"] and len(arguments) == 3:
        flags = parameters(read(arguments[1]), read(arguments[2]))
        if flags is None:
            return 1
        print(flags)
        return 0
    if arguments[:1] == ["lengths"] and len(arguments) == 2:
        print(lengths(read(arguments[1])))
        return 0
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
